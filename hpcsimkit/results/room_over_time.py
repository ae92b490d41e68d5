"""For how long the requests of waiting jobs were free, on record and in the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.jobs.timeline import Curve
from hpcsimkit.results.compared_use import ComparedUse
from hpcsimkit.results.machine_levels import MachineLevels
from hpcsimkit.results.recorded_nodes import RecordedNodes

__all__ = ["RoomOverTime"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

BEGIN = -1
"""Time before all submissions [s]."""


class _Request(NamedTuple):
    """What a job needs: of how many of which machines, and how much of each; `exclusive` means all of it."""

    machines: tuple[int, ...]
    amounts: tuple[int, ...]
    nodes: int
    exclusive: bool = False
    pooled: bool = False


class _Free(NamedTuple):
    """Free amounts of machines over time, and the capacity of all machines, shape (machines, resources)."""

    levels: MachineLevels
    capacity: Integers

    def room(self, request: _Request) -> tuple[Integers, Floats, Floats]:
        """Return times, whether a request is free from each on, and for how long it was before [s]."""
        machine, time, free = self.levels
        first = np.searchsorted(machine, request.machines)
        counts = np.searchsorted(machine, request.machines, side="right") - first
        rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        opening = np.cumsum(counts) - counts
        if request.pooled:
            fits = np.array([True])
            for resource, amount in enumerate(request.amounts):
                curve = _sum_of(time[rows], free[rows, resource], opening)
                fits = fits & (curve.value >= amount)
        else:
            needed = self.capacity[machine[rows]] if request.exclusive else np.array(request.amounts)
            enough = (free[rows] >= needed).all(axis=1)
            curve = _sum_of(time[rows], enough.astype(np.int64), opening)
            fits = curve.value >= request.nodes
        long = np.diff(curve.time).astype(float)
        before = np.concatenate([[0.0], np.cumsum(long * fits[:-1])])
        return curve.time, fits.astype(float), before


def _sum_of(time: Integers, value: Integers, opening: Integers) -> Curve:
    """Return the sum over machines of a value at times; `opening` are the first rows of the machines."""
    change = np.diff(value, prepend=0)
    change[opening] = value[opening]
    return Curve.of_changes(time, change)


@dataclass(frozen=True, eq=False)
class RoomOverTime:
    """The times at which the requests of the compared jobs of a validation were free.

    Where the log names the nodes of nearly all jobs, they are looked for on each machine that a job may use,
    else in the totals of the nodes or machines of its group of partitions.

    Parameters
    ----------
    use : ComparedUse
        Requests and use of the jobs in both schedules.
    """

    use: ComparedUse

    def seconds(
        self, which: str, rows: Integers, begin: Integers, end: Integers, *, down: bool = True
    ) -> Floats:
        """Return for how long between two times the requests of jobs were free [s].

        Parameters
        ----------
        which : {"recorded", "simulated"}
            The schedule.
        rows, begin, end : array of int64, shape (n,)
            Places of jobs among the compared ones, and times [s].
        down : bool
            Whether machines were out of order as in the run, or never. Default: True.
        """
        found = np.zeros(len(rows))
        waits = np.flatnonzero(end > begin)
        free = self._free[which, down]
        of_request: dict[_Request, list[int]] = {}
        for place in waits.tolist():
            of_request.setdefault(self._requests[rows[place]], []).append(place)
        for request, places in of_request.items():
            time, fits, before = free.room(request)
            parts = []
            for when in (begin[places], end[places]):
                last = np.maximum(np.searchsorted(time, when, side="right") - 1, 0)
                parts.append(before[last] + fits[last] * (when - time[last]))
            found[places] = parts[1] - parts[0]
        return found

    @cached_property
    def _requests(self) -> list[_Request]:
        """What each compared job needs."""
        result, jobs = self.use.validation.result, self.use.validation.jobs
        if self.use.nodes is None:
            pool = np.zeros(len(self.use.submit), dtype=np.int64)
            for number, (group, _) in enumerate(self.use.groups):
                pool[group] = number
            asked = self.use.asked.astype(np.int64).tolist()
            return [
                _Request((group,), tuple(each), 1) for group, each in zip(pool.tolist(), asked, strict=True)
            ]
        cluster = self.use.nodes.cluster
        needs = [cluster.need(result.workload.jobs[row]) for row in np.flatnonzero(jobs).tolist()]
        parts = self._machines_of_parts(cluster)
        known: dict[tuple[int, str], _Request] = {}
        found = []
        for need, part in zip(needs, self._parts, strict=True):
            if (id(need), part) not in known:
                machines = parts[part][need.usable(cluster.capacity)[parts[part]]]
                known[id(need), part] = _Request(
                    tuple(machines.tolist()),
                    tuple(need.amounts.tolist()),
                    need.nodes,
                    exclusive=need.exclusive,
                    pooled=need.pooled,
                )
            found.append(known[id(need), part])
        return found

    @property
    def _parts(self) -> list[str]:
        """The partition of each compared job; all the same without partitions."""
        result, jobs = self.use.validation.result, self.use.validation.jobs
        if not isinstance(self.use.cluster, Partitions):
            return [""] * int(jobs.sum())
        assert result.started_in is not None  # as in each run on partitions
        return [str(name) for name in result.started_in[jobs].tolist()]

    def _machines_of_parts(self, cluster: Machines) -> dict[str, NDArray[np.intp]]:
        everything = {"": np.arange(len(cluster))}
        if not isinstance(self.use.cluster, Partitions):
            return everything
        views = zip(self.use.cluster.names, self.use.cluster.views, strict=True)
        return everything | {name: view.numbers for name, view in views if view.numbers is not None}

    @cached_property
    def _free(self) -> dict[tuple[str, bool], _Free]:
        """Free amounts of each schedule, with the outages and without."""
        names, with_down = ("recorded", "simulated"), (True, False)
        if self.use.validation.result.downtime is None:
            with_down = (True,)  # type: ignore[assignment]
        return {(name, down): self._free_amounts(name, down) for name in names for down in with_down}

    def _free_amounts(self, which: str, down: bool) -> _Free:
        nodes, result = self.use.nodes, self.use.validation.result
        if nodes is None:
            return self._free_totals(which, down)
        if which == "recorded":
            found = nodes if down else RecordedNodes(nodes.workload, nodes.cluster, nodes.start, nodes.end)
            return _Free(found.levels, nodes.cluster.capacity)
        each = result.by_attempt
        placements = each.placements
        assert placements is not None
        used, amounts = placements.machine, placements.amounts
        start, end = each.start_time[placements.job], each.end_time[placements.job]
        if down and (out := result.downtime) is not None:
            used, amounts = np.concatenate([used, out.machine]), np.concatenate([amounts, out.amounts])
            start, end = np.concatenate([start, out.start]), np.concatenate([end, out.end])
        parts = used, start, end, amounts
        machines = range(len(nodes.cluster))
        return _Free(MachineLevels.of(nodes.cluster.capacity, BEGIN, machines, parts), nodes.cluster.capacity)

    def _free_totals(self, which: str, down: bool) -> _Free:
        """Return the free totals of the groups of partitions, each as if it were one machine."""
        columns: list[list[Integers]] = [[], [], []]
        capacity = np.array([amounts for _, amounts in self.use.groups], dtype=np.int64)
        for number, (group, _) in enumerate(self.use.groups):
            curves = self.use.in_use(which, group, or_down=down) if group.any() else []
            time = np.concatenate([[BEGIN], curves[0].time]) if curves else np.array([BEGIN])
            used = np.array([np.append(0, curve.value) for curve in curves]).T if curves else 0
            columns[0].append(np.full(len(time), number))
            columns[1].append(time)
            columns[2].append(np.broadcast_to(capacity[number] - used, (len(time), capacity.shape[1])))
        machine, time, free = (np.concatenate(column) for column in columns)
        return _Free(MachineLevels(machine, time, free.astype(np.int64)), capacity)
