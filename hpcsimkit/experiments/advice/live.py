"""The jobs of a log and those of the live queue, with the schedule that is on record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.parts.on_machines import fitting, without
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import SCALED, Workload
from hpcsimkit.kernel.after_jobs import AfterJobs, Term, terms_of
from hpcsimkit.kernel.job_gates import ArrayLimits
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.recorded_nodes import RecordedNodes
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.whole_nodes import with_whole_nodes
from hpcsimkit.workloads.readers.slurm_queue import Queue, read_queue

__all__ = ["OPEN", "Live", "live_case", "live_jobs", "recorded_result"]

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

OPEN = 2**60
"""Start and end of jobs for which they are not known yet [s]."""

ON_CLOCK = ("UnixStartTime", "TimeZoneString")
"""Keys of the header that define the clock of a log."""

NAME = re.compile(r"(?<=:)\d+(?:_\d+)?")
FAR = 604_800
"""Time within which a job of the queue may begin at the earliest, for it to have a window [s]."""

MISSING = "999999999999"
"""Number of jobs that are in no log."""


@dataclass(frozen=True)
class Live:
    """The jobs of a log and of a live queue.

    Parameters
    ----------
    jobs : Workload
        All jobs.
    at : int
        Time of the queue [s of the clock of the jobs].
    ended : array of bool, shape (jobs,)
        Mask of the jobs that had ended by then.
    reasons : mapping of str to str
        Reasons for which jobs wait, as the queue states them, by job.
    stuck : mapping of str to str
        Reasons of the jobs that do not start by themselves, or not within `FAR`, by job, and of those that
        depend on them; they are not among the jobs.
    """

    jobs: Workload
    at: int
    ended: Mask
    reasons: Mapping[str, str]
    stuck: Mapping[str, str]


def live_case(case: Case, path: str, at: int | None = None) -> tuple[Case, Live]:
    """Return the case of the jobs of a log that have ended and of a live queue, with the gates of the queue.

    Parameters
    ----------
    case : Case
        Case of the log.
    path : str
        Path of the queue; see :func:`~hpcsimkit.workloads.readers.slurm_queue.read_queue`.
    at : int, optional
        Time of the queue [s]; by default the last one in it.

    Raises
    ------
    UsageError
        The times of both are not those of the same clock, or no job of the queue fits the cluster.
    WorkloadError
        The queue cannot be read.
    """
    source, cluster = case.source, case.cluster
    options: dict[str, Any] = {"timezone": source.timezone, "cluster": source.cluster_name}
    if source.features is not None:
        options["features"] = source.features
    if isinstance(cluster, Partitions) and cluster.column != "qos":
        options["default_times"] = cluster.default_times
    queue = read_queue(path, at, size=source.size, **options)
    if source.profile is not None and source.size == "requested":
        allocated = read_queue(path, at, size="allocated", **options)
        jobs = with_whole_nodes(queue.jobs, allocated.jobs, source.profile.machines)
        queue = replace(queue, jobs=jobs)

    def prepare(jobs: Workload) -> Workload:
        if isinstance(cluster, Partitions):
            jobs = cluster.with_rules(without(jobs, cluster.missing(jobs)))
        if isinstance(cluster, Machines | Partitions):
            return fitting(jobs, cluster, path)
        return jobs.fitting(cluster.size)

    live = live_jobs(case.jobs, queue, prepare)
    gates = [
        gate
        for gate in (AfterJobs("ignore"), ArrayLimits())
        if any(_told(live.jobs, each) for each in gate.columns)
    ]
    setup = replace(case.setup, gates=(*case.setup.gates, *gates))
    return replace(case, jobs=live.jobs, options=setup), live


def _told(jobs: Workload, column: str) -> bool:
    return column in jobs.columns and bool((jobs.column(column) >= 0).any())


def live_jobs(history: Workload, queue: Queue, prepare: Callable[[Workload], Workload]) -> Live:
    """Return the jobs of a log that had ended by the time of a queue, and those of the queue.

    Parameters
    ----------
    history : Workload
        The log.
    queue : Queue
        The queue.
    prepare : callable
        Function that applies to the jobs of the queue what the log has been through.

    Raises
    ------
    UsageError
        The times of both are not those of the same clock.
    """
    _check_clock(history, queue.jobs)
    names = _names(queue.jobs)
    reasons = dict(zip(names, queue.reasons, strict=True))
    far = queue.jobs.submit_time > queue.at + FAR
    stuck = {**queue.stuck, **{names[row]: reasons[names[row]] for row in np.flatnonzero(far).tolist()}}
    stuck = _with_dependents(queue.jobs, reasons, stuck)
    jobs = prepare(queue.jobs.select([row for row, name in enumerate(names) if name not in stuck]))
    end = history.submit_time + np.maximum(history.recorded_wait_time, 0) + history.run_time
    named = np.array([name in reasons or name in stuck for name in _names(history)], dtype=bool)
    history = history.select(np.flatnonzero((end <= queue.at) & ~named), f"ended by {queue.at} s")
    resources = tuple(dict.fromkeys((*history.resources, *jobs.resources)))
    merged = _numbered(history, resources).merge(_numbered(jobs, resources))
    merged = _running_first(_with_own_numbers(merged))
    ended = np.array([name not in reasons for name in _names(merged)], dtype=bool)
    return Live(merged, queue.at, ended, {name: text for name, text in reasons.items() if text}, stuck)


def _with_dependents(jobs: Workload, reasons: Mapping[str, str], stuck: Mapping[str, str]) -> dict[str, str]:
    """Return jobs that do not start by themselves, with those that depend on them, and so on."""
    texts = jobs.column("dependency").tolist()
    asked = {
        name: terms_of(jobs.label("dependency", text))
        for name, text in zip(_names(jobs), texts, strict=True)
        if text >= 0
    }
    found = dict(stuck)
    while more := [name for name, terms in asked.items() if name not in found and _never(*terms, found)]:
        found |= {name: reasons[name] for name in more}
    return found


def _never(terms: Sequence[Term], any_of: bool, stuck: Mapping[str, str]) -> bool:
    """Return whether a job waits for jobs, or tasks of arrays, that do not start."""
    gone = {*stuck, *(name.partition("_")[0] for name in stuck)}
    waits = [term.job in gone for term in terms]
    return bool(waits) and (all(waits) if any_of else any(waits))


def _check_clock(history: Workload, queue: Workload) -> None:
    for key in ON_CLOCK:
        first, second = history.header.get(key, "none"), queue.header.get(key, "none")
        if first != second:
            raise UsageError(
                f"{queue.name}: times of the clock of {history.name} are needed ({key} {first}), found "
                f"{second}; print both with SLURM_TIME_FORMAT=%s, or name their zone (--timezone)"
            )


def _names(workload: Workload) -> list[str]:
    return [workload.label("id", number) for number in workload.id.tolist()]


def _numbered(workload: Workload, resources: tuple[str, ...]) -> Workload:
    """Return jobs that are numbered from 0 and have names, with further resources that they do not need."""
    columns = {**workload.columns, "id": np.arange(len(workload))}
    columns |= {name: np.zeros(len(workload), dtype=np.int64) for name in resources if name not in columns}
    labels = {**workload.labels, "id": tuple(_names(workload))}
    return replace(workload, columns=columns, labels=labels, resources=resources, lines=None)


def _with_own_numbers(workload: Workload) -> Workload:
    """Return the jobs with dependencies on their numbers in place of names."""
    if "dependency" not in workload.columns:
        return workload
    number_of = {
        name: str(number) for name, number in zip(_names(workload), workload.id.tolist(), strict=True)
    }
    tasks: dict[str, list[str]] = {}
    for name, number in number_of.items():
        tasks.setdefault(name.partition("_")[0], []).append(number)

    def numbers(match: re.Match[str]) -> str:
        name = match[0]
        return number_of.get(name) or ":".join(tasks.get(name, [MISSING]))

    texts = tuple(NAME.sub(numbers, text) for text in workload.labels.get("dependency", ()))
    return replace(workload, labels={**workload.labels, "dependency": texts})


def _running_first(workload: Workload) -> Workload:
    """Return the jobs with the tasks of an array that run submitted before those that wait.

    Slurm makes a task eligible again when it starts. The limit of the array would let those that wait take
    their turns first, and hold the ones that run.
    """
    if "array_job" not in workload.columns:
        return workload
    submit, wait = workload.submit_time.copy(), workload.recorded_wait_time.copy()
    array, starts = workload.column("array_job"), wait >= 0
    for each in np.unique(array[(array >= 0) & starts]).tolist():
        waiting = np.flatnonzero((array == each) & ~starts)
        running = np.flatnonzero((array == each) & starts)
        earlier = np.minimum(submit[running], submit[waiting].min(initial=OPEN) - 1)
        wait[running] += submit[running] - earlier
        submit[running] = earlier
    columns = {**workload.columns, "submit_time": submit, "recorded_wait_time": wait}
    return replace(workload, columns=columns)


def recorded_result(workload: Workload, ended: Mask, cluster: AnyCluster, name: str) -> Result:
    """Return the schedule that is on record, as far as it is known.

    Parameters
    ----------
    workload : Workload
        The jobs.
    ended : array of bool, shape (jobs,)
        Mask of the jobs whose ends are known. Of the others, those without a recorded wait have not started.
    cluster : Cluster
        The cluster. On machines, jobs are where the log says (``node_list``).
    name : str
        Name of the policy.

    Returns
    -------
    Result
        The starts and ends; `OPEN` where they are not known yet, and -1 for ended jobs without a recorded
        wait.

    Raises
    ------
    UsageError
        The log has no recorded waits.
    """
    wait = workload.recorded_wait_time
    if not (wait >= 0).any():
        raise UsageError(f"{workload.name}: recorded waits are needed, found none")
    if any(step.startswith(SCALED) for step in workload.provenance):
        raise UsageError(f"{workload.name}: recorded waits are not those of a scaled load")
    unknown = np.where(ended, UNKNOWN, OPEN)
    start = np.where(wait >= 0, workload.submit_time + wait, unknown)
    end = np.where(start >= 0, np.where(ended, start + workload.run_time, OPEN), UNKNOWN)
    machines = cluster.machines if isinstance(cluster, Partitions) else cluster
    placements = _placements(workload, machines, start, end) if isinstance(machines, Machines) else None
    return Result(
        workload,
        name,
        cluster.size,
        workload.submit_time,
        start,
        end,
        np.zeros(len(start), dtype=np.uint8),
        np.zeros(len(start), dtype=bool),
        placements=placements,
        started_in=_partitions(workload, cluster, placements) if isinstance(cluster, Partitions) else None,
    )


def _placements(workload: Workload, machines: Machines, start: Integers, end: Integers) -> Placements:
    """Return the machines of the jobs on record; none for jobs of which the log does not say."""
    known = start < OPEN
    nodes = RecordedNodes(workload, machines, np.where(known, start, UNKNOWN), end)
    rows: list[int] = []
    parts: list[int] = []
    amounts = [np.zeros((0, len(machines.resources)), dtype=np.int64)]
    lists = nodes.machines if "node_list" in workload.columns else [None] * len(workload)
    for row, numbers in enumerate(lists):
        if numbers is None or not len(numbers):
            continue
        need = machines.need(workload.jobs[row])
        rows += [row] * len(numbers)
        parts += numbers.tolist()
        each = machines.capacity[numbers] if need.exclusive else np.tile(need.amounts, (len(numbers), 1))
        amounts.append(each)
    return Placements(
        machines,
        len(workload),
        np.array(rows, dtype=np.int64),
        np.array(parts, dtype=np.int64),
        np.concatenate(amounts),
    )


def _partitions(
    workload: Workload, partitions: Partitions, placements: Placements | None
) -> NDArray[np.str_]:
    """Return the partition of each job on record: of several, the first that has all its machines.

    Empty if the log names none, or several while its machines are unknown or in none of these.
    """
    of_part = {
        part.name: set() if view.numbers is None else set(view.numbers.tolist())
        for part, view in zip(partitions.parts, partitions.views, strict=True)
    }
    column = "queue" if "queue" in workload.columns else partitions.column
    labels = [workload.label(column, value) for value in workload.column(column).tolist()]
    several = [row for row, label in enumerate(labels) if label not in of_part]
    for row in several:
        machines = set() if placements is None else set(placements.allocation(row).machines)
        named = (name.strip() for name in labels[row].split(","))
        labels[row] = next((name for name in named if machines and machines <= of_part.get(name, set())), "")
    return np.array(labels, dtype=np.str_)
