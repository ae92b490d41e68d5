"""What an experiment says of its machines, made: where jobs go, how long they take there, who fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpcsimkit import registry
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.locality import LOCALITIES
from hpcsimkit.machines import Machines
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policy import Placement
from hpcsimkit.service_time import ServiceTime, as_service_time
from hpcsimkit.units import memory_text
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import Description, describe

__all__ = ["FITS_NOWHERE", "described", "fitting", "locality_of", "offered_loads", "placement_of"]

FITS_NOWHERE = "fits no machine"
"""Why jobs are left out."""


def placement_of(name: str, folder: str | None = None) -> Placement:
    """Return the placement of a name, as :func:`hpcsimkit.registry.make` understands it.

    Raises
    ------
    UsageError
        The name is unknown, or stands for something else.

    Examples
    --------
    >>> placement_of("best-fit")
    BestFit()
    """
    made = registry.make(name, folder)
    placement = made.placement if isinstance(made, Pipeline) else None
    if not isinstance(placement, Placement) or made != Pipeline(placement=placement):
        known = ", ".join(entry.name for entry in registry.entries() if entry.kind == "placement")
        raise UsageError(f"{name!r} is no placement alone; placements are {known}")
    return placement


def locality_of(name: str, folder: str | None = None) -> ServiceTime:
    """Return the locality model of a name: one of `LOCALITIES`, or the user's own.

    Parameters
    ----------
    name : str
        A name of :data:`hpcsimkit.locality.LOCALITIES`, or ``module:Name`` or ``file.py:Name`` of a
        :class:`~hpcsimkit.service_time.ServiceTime` (a class that needs no arguments, or an object) or of a
        function ``penalty(job, seconds, allocation, cluster)``.
    folder : str, optional
        Where modules and files are looked for besides the current folder.

    Raises
    ------
    UsageError
        The name is unknown, or stands for something else.

    Examples
    --------
    >>> locality_of("sierra")
    KindLocality(compute_spread=0.1, network_crowded=2.0)
    """
    if name in LOCALITIES:
        return LOCALITIES[name]
    if ":" not in name:
        known = ", ".join(LOCALITIES)
        raise UsageError(f"unknown locality {name!r}; known are {known}, and your own: module:name")
    found = registry.imported(name, folder)
    try:
        model = as_service_time(found() if isinstance(found, type) else found)
    except TypeError as error:
        raise UsageError(f"{name!r} cannot be made: {error}") from None
    if model is None:
        raise UsageError(f"{name!r} needs a ServiceTime or a function, found None")
    return model


def fitting(workload: Workload, cluster: Machines, source: str, *, strict: bool = False) -> Workload:
    """Return the jobs that fit the machines; the others are counted as skipped, or refused.

    Parameters
    ----------
    workload : Workload
        The jobs. Where they ask for processors only, its ``machine_size`` becomes the cluster's.
    cluster : Machines
        The machines.
    source : str
        Where the jobs come from, for messages.
    strict : bool
        Refuse a job that fits nowhere.

    Raises
    ------
    WorkloadError
        No job fits; or, if `strict`, one does not.
    """
    misfits = cluster.misfits(workload)
    if misfits.any() and (strict or misfits.all()):
        job = workload.jobs[int(np.argmax(misfits))]
        none = " (no job fits)" if misfits.all() else ""
        name = workload.label("id", job.id)
        raise WorkloadError(f"{source}: job {name} {cluster.shortage(job, cluster.capacity)}{none}")
    size = None if workload.resources else cluster.size
    return replace(workload.without(misfits, FITS_NOWHERE), machine_size=size)


def offered_loads(workload: Workload, cluster: Machines) -> dict[str, float]:
    """Return resource-seconds asked for over those there are while jobs arrive, for each resource there is.

    What a job asks for counts, for its run time; a job that takes whole machines may use up more. Empty if
    all jobs arrive at one instant.

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


def described(workload: Workload, cluster: Machines | None) -> Description:
    """Return what is in a workload and, if there are machines, what it asks of them."""
    description = describe(workload)
    if cluster is None:
        return description
    totals = zip(cluster.resources, cluster.totals, strict=True)
    facts = {
        "machines": len(cluster),
        **{name: memory_text(total) if name == "memory" else total for name, total in totals},
        **{f"offered load of {name}": load for name, load in offered_loads(workload, cluster).items()},
        f"{FITS_NOWHERE} (jobs)": int(np.count_nonzero(cluster.misfits(workload))),
    }
    first = ("jobs", "time")
    about = {name: description.sections[name] for name in first}
    rest = {name: rows for name, rows in description.sections.items() if name not in first}
    return replace(description, sections={**about, "machines": facts, **rest})
