"""Verification of where jobs run: on nodes, on machines and in partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.calendar import Calendar
from hpcsimkit.cluster.limited import NODES
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.io.units import total_of
from hpcsimkit.jobs.constraint import counted, satisfied
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.numbered_nodes import NumberedNodes, nodes_alone
from hpcsimkit.kernel.verified_capacity import Excess, Use, excess
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

__all__ = ["impossible_beside_reservations", "impossible_during_outages", "impossible_places"]

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def impossible_places(
    cluster: AnyCluster,
    workload: Workload,
    result: Result,
    ran: Mask | None,
    positions: NDArray[np.int32] | None = None,
) -> Iterator[str]:
    """Yield jobs that run where they may not, or where too much is in use.

    Parameters
    ----------
    cluster : Cluster
        The cluster of the run.
    workload : Workload
        The jobs as in the log.
    result : Result
        Result of the run.
    ran : array of bool, shape (jobs,), or None
        Whether each job ran; None if all did.
    positions : array of int32, shape (2, jobs), optional
        Positions of the starts and ends of all jobs in time, see :func:`excess`.
    """
    jobs = _Jobs.of(workload, result, ran)
    if isinstance(cluster, Partitions):
        yield from _outside_partitions(cluster, jobs)
    whole = cluster.whole if isinstance(cluster, Partitions) else cluster
    if isinstance(whole, Machines) and result.placements is not None:
        yield from _wrong_allocations(whole, jobs, result.placements)
        yield from _overfull_machines(whole, jobs, result.placements)
    elif isinstance(whole, Nodes):
        use = jobs.use(workload.column("nodes"))
        found = excess(use, np.array([[whole.count]]), positions)
        yield from jobs.told(found, "when {used} nodes are in use, of {available}")


def impossible_during_outages(cluster: AnyCluster, result: Result) -> Iterator[str]:
    """Yield a job that runs on nodes or machines that are out of order."""
    down, each = result.downtime, result.by_attempt
    if down is None:
        return
    whole = cluster.whole if isinstance(cluster, Partitions) else cluster
    rows = np.flatnonzero(each.finished)
    if isinstance(whole, Machines) and each.placements is not None:
        placements = each.placements
        job, machine, amounts = placements.job, placements.machine, placements.amounts
        available = whole.capacity
    else:
        job, machine = rows, np.zeros(len(rows), dtype=np.int64)
        amounts = each.workload.column("nodes")[rows, None]
        available = np.array([[whole.size]])
    # Outages come first, so that a job is named that starts at the same time as one of them.
    use = Use(
        np.concatenate([np.full(len(down.start), -1), job]),
        np.concatenate([down.start, each.start_time[job]]),
        np.concatenate([down.end, each.end_time[job]]),
        np.concatenate([down.amounts, amounts]),
        np.concatenate([down.machine, machine]),
    )
    found = excess(use, available)
    if found is not None:
        who = "an outage begins" if found.row < 0 else f"job {each.workload.column('id')[found.row]} starts"
        used, there = found.used, found.available
        yield f"{who} at t={found.time} s, when {used} are in use or out of order, of {there}"


class _Jobs(NamedTuple):
    """The jobs, and the rows of those that ran.

    Attributes
    ----------
    workload : Workload
        All jobs.
    result : Result
        Their schedule.
    rows : array of int64 or slice
        Rows of the jobs that ran.
    """

    workload: Workload
    result: Result
    rows: NDArray[np.intp] | slice

    @classmethod
    def of(cls, workload: Workload, result: Result, ran: Mask | None) -> _Jobs:
        return cls(workload, result, slice(None) if ran is None else np.flatnonzero(ran))

    @property
    def numbers(self) -> NDArray[np.intp]:
        """Rows of the jobs that ran, as an array."""
        return np.arange(len(self.workload))[self.rows]

    def use(self, amounts: Integers, among: Mask | None = None, place: Integers | None = None) -> Use:
        """Return the use of amounts of each job, shape (jobs,), over time.

        Parameters
        ----------
        amounts : array of int64, shape (jobs,)
            Amounts in use.
        among : array of bool, shape (jobs,), optional
            Jobs that count; by default all that ran.
        place : array of int64, shape (jobs,), optional
            Place of each job.
        """
        rows = self.rows if among is None else np.flatnonzero(among)
        start, end = self.result.start_time[rows], self.result.end_time[rows]
        numbers = np.arange(len(self.workload))[rows]
        return Use(numbers, start, end, amounts[rows, None], None if place is None else place[rows])

    def starts(self, row: int) -> str:
        """Return the beginning of a message."""
        return f"job {self.workload.column('id')[row]} starts at t={self.result.start_time[row]} s"

    def first(self, wrong: Mask) -> Sequence[int]:
        """Return the first of the jobs for which a mask over all jobs is true, or none."""
        return (int(wrong.argmax()),) if wrong.any() else ()

    def told(self, found: Excess | None, text: str, **names: str) -> Iterator[str]:
        """Yield the message of an excess, if there is one."""
        if found is not None:
            numbers = {"used": found.used, "available": found.available}
            yield f"{self.starts(found.row)}, {text.format(**numbers, **names)}"


def impossible_beside_reservations(cluster: AnyCluster, calendar: Calendar, result: Result) -> Iterator[str]:
    """Yield a job that starts on machines while they are reserved for others."""
    each = result.by_attempt
    whole = cluster.whole if isinstance(cluster, Partitions) else cluster
    if not isinstance(whole, Machines):
        return
    for window in calendar.windows:
        if window.reserved and each.placements is not None:
            job, start = each.placements.job, each.start_time
            numbers = [number for machine in window.machines for number in whole.matching(machine)]
            within = (start >= window.start) & (start < window.end) & ~window.admits(each.workload)
            wrong = within[job] & np.isin(each.placements.machine, numbers)
            for item in np.flatnonzero(wrong)[:1]:
                who = f"job {each.workload.column('id')[job[item]]} starts at t={start[job[item]]} s"
                machine = whole.names[each.placements.machine[item]]
                yield f"{who} on machine {machine}, which is reserved for others"


# --- partitions --------------------------------------------------------------------------------------------


def _outside_partitions(cluster: Partitions, jobs: _Jobs) -> Iterator[str]:
    """Yield jobs in partitions that do not admit them, and partitions in which too much is in use."""
    started_in = jobs.result.started_in
    if started_in is None or cluster.is_whole:  # the one partition admits what fits the cluster
        return
    each = np.array([started_in == name for name in cluster.names], dtype=np.bool_)
    ran, partition = np.logical_or.reduce(each), each.argmax(axis=0)
    missing = np.zeros(len(ran), dtype=np.bool_)
    missing[jobs.rows] = ~ran[jobs.rows]
    for row in jobs.first(missing):
        yield f"{jobs.starts(row)} in no partition, but {str(started_in[row])!r}"
    refused = np.logical_or.reduce(each & ~cluster.admitted(jobs.workload))
    for row in jobs.first(refused):
        yield f"{jobs.starts(row)} in partition {started_in[row]!s}, which does not admit it"
    if cluster.machines is None:
        nodes = jobs.workload.column("nodes")
        counts = np.array([[view.cluster.size] for view in cluster.views])
        found = excess(jobs.use(nodes, ran, partition), counts)
        yield from _told_of_partition(cluster, jobs, found, NODES)
    else:
        yield from _outside_machines(cluster, jobs, each)
        yield from _beyond_limits(cluster, jobs, each)


def _told_of_partition(
    cluster: Partitions, jobs: _Jobs, found: Excess | None, resource: str, place: int | None = None
) -> Iterator[str]:
    if found is not None:
        name = cluster.names[found.place if place is None else place]
        text = "when {used} {resource} are in use in partition {name}, of {available}"
        yield from jobs.told(found, text, resource=resource, name=name)


def _outside_machines(cluster: Partitions, jobs: _Jobs, each: Mask) -> Iterator[str]:
    """Yield jobs on machines that are not of their partition."""
    placements = jobs.result.placements
    assert placements is not None
    for part, view, here in zip(cluster.parts, cluster.views, each, strict=True):
        there = np.zeros(view.total, dtype=np.bool_)
        there[view.numbers] = True
        for item in jobs.first(here[placements.job] & ~there[placements.machine]):
            machine = placements.cluster.names[placements.machine[item]]
            yield f"{jobs.starts(placements.job[item])} in partition {part.name} on machine {machine}"


def _beyond_limits(cluster: Partitions, jobs: _Jobs, each: Mask) -> Iterator[str]:
    """Yield partitions in which more is in use at once than their limits allow."""
    workload, machines = jobs.workload, cluster.machines
    assert machines is not None
    asked = dict(zip(machines.resources, _Requests.of(workload, machines).amounts, strict=True))
    # A log of nodes only asks for a total of CPUs.
    pooled = workload.column("spread") == 1 if workload.resources else np.ones(len(workload), dtype=np.bool_)
    number = np.where(pooled, 0, workload.column("nodes"))
    for place, (part, here) in enumerate(zip(cluster.parts, each, strict=True)):
        for name, most in part.in_use.items():
            amounts = number if name == NODES else asked[name] * np.where(pooled, 1, number)
            found = excess(jobs.use(amounts, here), np.array([[most]]))
            yield from _told_of_partition(cluster, jobs, found, name, place)


def _asked(workload: Workload, resource: str) -> Integers:
    """Return the requested amount of a resource: per node, or in total where the request is pooled.

    It is at least as much as that of its models in all.
    """
    models = [workload.column(name) for name in workload.resources if total_of(name) == resource]
    asked = np.sum(models, axis=0) if models else np.zeros(len(workload), dtype=np.int64)
    return np.maximum(asked, workload.column(resource)) if resource in workload.resources else asked


# --- machines ----------------------------------------------------------------------------------------------


class _Requests(NamedTuple):
    """The requests of all jobs on some machines; see :class:`~hpcsimkit.jobs.job.Request`.

    Attributes
    ----------
    amounts : list of array of int64, shape (jobs,)
        Amount of each resource per machine, or in total where the request is pooled.
    machines : array of int64, shape (jobs,)
        Number of machines, where the request is not pooled.
    pooled, exclusive : array of bool, shape (jobs,)
        Whether the amounts are totals, and whether the machines are not shared.
    """

    amounts: list[Integers]
    machines: Integers
    pooled: Mask
    exclusive: Mask

    @classmethod
    def of(cls, workload: Workload, cluster: Machines) -> _Requests:
        nodes = workload.column("nodes")
        if not workload.resources:  # a log of nodes only asks for that many CPUs
            unit = "cpus" if "cpus" in cluster.resources else cluster.unit
            amounts = [nodes if name == unit else np.zeros_like(nodes) for name in cluster.resources]
            return cls(amounts, nodes, nodes > 0, nodes < 0)
        amounts = [_asked(workload, name) for name in cluster.resources]
        spread, exclusive = workload.column("spread") == 1, workload.column("exclusive") == 1
        # A pooled request of whole machines without amounts is one for a whole machine.
        pooled = spread & np.logical_or.reduce([amount > 0 for amount in amounts])
        return cls(amounts, np.where(spread, 1, nodes), pooled, exclusive)


def _wrong_allocations(cluster: Machines, jobs: _Jobs, placements: Placements) -> Iterator[str]:
    """Yield jobs whose allocation is not what they request."""
    job, machine = placements.job, placements.machine
    outside = (machine < 0) | (machine >= len(cluster))
    for item in jobs.first(outside) if len(outside) else ():
        yield f"{jobs.starts(job[item])} on machine number {machine[item]}, of {len(cluster)}"
    workload = nodes_alone(jobs.workload) if isinstance(cluster, NumberedNodes) else jobs.workload
    requests, count = _Requests.of(workload, cluster), placements.machine_count
    wrong = np.where(requests.pooled, count == 0, count != requests.machines)
    wrong |= _with_wrong_amounts(cluster, requests, placements)
    wrong |= _without_features(cluster, workload, requests, placements)
    twice = job * len(cluster) + machine
    if (twice[1:] <= twice[:-1]).any():  # seldom: most allocations are in order of the machines
        twice.sort()
        wrong[twice[1:][twice[1:] == twice[:-1]] // len(cluster)] = True
    those = np.zeros(len(wrong), dtype=np.bool_)
    those[jobs.rows] = wrong[jobs.rows]
    for row in jobs.first(those):
        asked = cluster.need(jobs.workload.jobs[row]).text()
        yield f"{jobs.starts(row)} with {placements.allocation(row)!r}: it needs {asked}"


def _with_wrong_amounts(cluster: Machines, requests: _Requests, placements: Placements) -> Mask:
    """Return which jobs have other amounts than they request: on a machine, or in all."""
    job, machine = placements.job, placements.machine
    pooled, exclusive = requests.pooled[job], requests.exclusive[job]
    whole, exact = np.flatnonzero(exclusive), ~(pooled | exclusive)
    bad, wrong = np.zeros(len(job), dtype=np.bool_), np.zeros(len(requests.pooled), dtype=np.bool_)
    some_pooled = pooled.any()
    for resource, asked in enumerate(requests.amounts):
        given, needed = placements.amounts[:, resource], asked[job]
        bad |= (given < np.where(pooled, 0, needed)) if some_pooled else given < needed
        bad |= (given > needed) & exact
        bad[whole] |= given[whole] != cluster.capacity[machine[whole], resource]
        if some_pooled:
            total = placements.totals[:, resource]
            wrong |= requests.pooled & ((total < asked) | (~requests.exclusive & (total > asked)))
    wrong[job[bad]] = True
    return wrong


def _without_features(
    cluster: Machines, workload: Workload, requests: _Requests, placements: Placements
) -> Mask:
    """Return which jobs have machines without the features that they need."""
    wrong = np.zeros(len(workload), dtype=np.bool_)
    values = workload.column("constraint")
    for value in np.unique(values[values >= 0]).tolist() if "constraint" in workload.columns else ():
        constraint = workload.label("constraint", value)
        everywhere, counts = counted(constraint)
        here = values[placements.job] == value
        if everywhere.strip("& "):
            wrong[placements.job[here & ~_having(cluster, everywhere)[placements.machine]]] = True
        for some in _subsets(counts):
            having = np.logical_or.reduce([_having(cluster, condition) for condition, _ in some])
            found = np.bincount(
                placements.job, weights=here & having[placements.machine], minlength=len(wrong)
            )
            wrong |= (values == value) & ~requests.pooled & (found < sum(number for _, number in some))
    return wrong


def _subsets(counts: list[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield all sets of counts: each set needs as many machines as its numbers in all (Hall's theorem)."""
    for size in range(1, len(counts) + 1):
        yield from combinations(counts, size)


def _having(cluster: Machines, condition: str) -> Mask:
    """Return which machines satisfy a condition."""
    return np.array([satisfied(condition, features) for features in cluster.features])


def _overfull_machines(cluster: Machines, jobs: _Jobs, placements: Placements) -> Iterator[str]:
    """Yield machines on which more is in use than there is.

    Whole machines are not shared if this holds, as all of what they have is in use.
    """
    row, result = placements.job, jobs.result
    start, end = result.start_time[row], result.end_time[row]
    use = Use(row, start, end, placements.amounts, placements.machine)
    found = excess(use, np.asarray(cluster.capacity))
    if found is not None:
        names = {"name": cluster.names[found.place], "resource": cluster.resources[found.resource]}
        text = "when {used} {resource} are in use on machine {name}, of {available}"
        yield from jobs.told(found, text, **names)
