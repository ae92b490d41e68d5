"""Jobs on the machines of an experiment: those that fit, and the load that they offer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.units import memory_text
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import Description, describe
from hpcsimkit.workloads.describe import most_in_use

FITS_NOWHERE = "fits no machine"
"""Reason for which jobs are skipped on machines without partitions."""


def fitting(
    workload: Workload, cluster: Machines | Partitions, source: str, *, strict: bool = False
) -> Workload:
    """Return the jobs that fit the machines; the others are counted as skipped, or are errors.

    If jobs request processors only, ``machine_size`` is set to that of the cluster. `source` is the name of
    the source of the jobs, for messages; if `strict`, a job that fits no machine is an error.
    """
    if isinstance(cluster, Partitions):
        reasons = cluster.reasons(workload)
    else:
        reasons = np.where(cluster.misfits(workload), FITS_NOWHERE, "").astype(object)
    skipped = reasons != ""
    if skipped.any() and (strict or skipped.all()):
        row = int(np.argmax(skipped))
        job = workload.jobs[row]
        none = " (no job fits)" if skipped.all() else ""
        name, place = workload.label("id", job.id), place_of(workload, row, source)
        said = cluster.shortage(job, cluster.capacity) if reasons[row] == FITS_NOWHERE else reasons[row]
        raise WorkloadError(f"{place}: job {name} {said}{none}")
    workload = without(workload, reasons)
    return replace(workload, machine_size=None if workload.resources else cluster.size)


def without(workload: Workload, reasons: NDArray[Any]) -> Workload:
    """Return the jobs without a reason, text, shape (jobs,); the others are counted as skipped for it."""
    for reason in sorted({*reasons[reasons != ""]}):
        rows = reasons == reason
        workload, reasons = workload.without(rows, reason), reasons[~rows]
    return workload


def place_of(workload: Workload, row: int, source: str | None) -> str:
    """Return the file and, where the reader knows it, the line of a job, for messages.

    >>> place_of(Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}), 0, "log.swf")
    'log.swf'
    """
    place = source or workload.name
    return place if workload.lines is None else f"{place}:{workload.lines[row]}"


def offered_loads(workload: Workload, cluster: Machines) -> dict[str, float]:
    """Return the offered load of each resource: requested over available resource-seconds during arrivals.

    Requests are multiplied by run times; a job with exclusive machines may occupy more than it requests. The
    result is empty if all jobs arrive at one instant.

    Examples
    --------
    >>> columns = {"submit_time": [0, 10], "run_time": [5, 20], "nodes": [2, 1]}
    >>> w = Workload({**columns, "cpus": [4, 1], "gpus": [0, 2]}, resources=("cpus", "gpus"))
    >>> offered_loads(w, Machines.of(2, cpus=4, gpus=2))
    {'cpus': 0.75, 'gpus': 1.0}
    """
    if not workload.span:
        return {}
    needs = [cluster.need(job) for job in workload.jobs]
    asked = np.array([need.totals() for need in needs], dtype=float)
    area = workload.run_time.astype(float) @ asked
    there = zip(cluster.resources, area.tolist(), cluster.totals, strict=True)
    return {name: used / (total * workload.span) for name, used, total in there if total}


def described(
    workload: Workload, cluster: Machines | None, partitions: Partitions | None = None
) -> Description:
    """Return the description of a workload and, if there are machines and partitions, of its load on them."""
    description = describe(workload)
    if partitions is not None:
        reasons = partitions.reasons(workload)
        counts: dict[str, int | float | str] = {
            f"{reason} (jobs)": int(np.count_nonzero(reasons == reason))
            for reason in sorted({*reasons} - {""})
        }
        names = ", ".join(part.name for part in partitions.parts)
        sections = {**description.sections, "partitions": {"partitions": names, **counts}}
        description = replace(description, sections=sections)
    if cluster is None:
        return description
    totals = zip(cluster.resources, cluster.totals, strict=True)
    facts = {
        "machines": len(cluster),
        **{name: memory_text(total) if name == "memory" else total for name, total in totals},
        **{f"offered load of {name}": load for name, load in offered_loads(workload, cluster).items()},
        f"{FITS_NOWHERE} (jobs)": int(np.count_nonzero(cluster.misfits(workload))),
    }
    sections = {**description.sections}
    there = dict(zip(cluster.resources, cluster.totals, strict=True))
    more = [
        f"{_shown(name, most)} of {_shown(name, there[name])}"
        for name, most in most_in_use(workload).items()
        if most > there.get(name, most)
    ]
    if more:
        beyond = {"more in use on record than exists": ", ".join(more)}
        sections["stands out"] = {**sections["stands out"], **beyond}
    first = ("log", "stands out", "jobs", "time")
    about = {name: sections[name] for name in first}
    rest = {name: rows for name, rows in sections.items() if name not in first}
    return replace(description, sections={**about, "machines": facts, **rest})


def _shown(name: str, amount: int) -> str:
    return f"{memory_text(amount) if name == 'memory' else amount} {name}"
