"""Places of jobs in partitions: on the machines that are free now, and in a plan of all partitions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.cluster.closures import Closure, Closures
from hpcsimkit.cluster.machine_profile import MachineProfile
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.cluster.request import Need
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System

__all__ = ["GROUP", "Places", "Plan", "Ticket"]

GROUP = 30
"""Time within which running jobs end together in the plan, at first [s]; see :func:`_groups`."""

Mask = NDArray[np.bool_]


class Ticket(NamedTuple):
    """A waiting job in one of its partitions.

    Attributes
    ----------
    job : Job
        The job.
    part : int
        Number of the partition.
    """

    job: Job
    part: int


class Places:
    """The machines of each partition, and what jobs need of them.

    Parameters
    ----------
    partitions : Partitions
        Partitions on machines.
    """

    def __init__(self, partitions: Partitions) -> None:
        assert isinstance(partitions.whole, Machines)
        self.machines: Machines = partitions.whole
        self.capacity = self.machines.capacity
        self.of: list[Mask] = []
        for view in partitions.views:
            mask = np.zeros(len(self.machines), dtype=np.bool_)
            mask[view.numbers] = True
            self.of.append(mask)
        self._needs: dict[tuple[int, int], Need] = {}

    def need(self, ticket: Ticket) -> Need:
        """Return what a job needs of the machines of a partition."""
        key = self.machines.size_of(ticket.job), ticket.part
        found = self._needs.get(key)
        if found is None:
            found = self._needs[key] = self.machines.need(ticket.job).on_some(self.of[ticket.part])
        return found

    def by_weight(self, weights: Mapping[str, int]) -> list[Mask]:
        """Return the machines of each weight, the lowest first; a weight is 1 if it is not given."""
        each = np.array([weights.get(name, 1) for name in self.machines.names])
        return [each == weight for weight in np.unique(each)]

    def first(self, ticket: Ticket, level: MachineLevel, among: Mask) -> Allocation | None:
        """Return an allocation on the first of some machines that have enough; None if too few do."""
        need = self.need(ticket)
        return need.take(level, np.flatnonzero(need.usable(level) & among))


class Plan(MachineProfile):
    """The capacity of each machine over time: where jobs of all partitions are given their places.

    Parameters
    ----------
    places : Places
        The machines.
    system : System
        The state of the cluster.
    resolution : int
        Grid of planned places [s].
    groups : bool
        Whether running jobs end in groups. Default: True.
    """

    def __init__(self, places: Places, system: System, resolution: int, *, groups: bool = True) -> None:
        super().__init__(places.machines, system.now, system.free)
        self._now, self._system, self._groups = system.now, system, groups
        self.cluster: Any = places
        # Places of jobs: first and last second, machines; last place of each request: length, beginning.
        self._planned: list[tuple[int, int, list[int]]] = []
        self._equal: dict[tuple[int, int], tuple[int, int]] = {}
        self._grid = resolution
        for end, _, allocation in system.releases:
            self.grow(max(end, system.now + 1), allocation)
        if isinstance(system.calendar, Closures):
            self.close(system.calendar)

    def first_place(self, ticket: Ticket, length: int, now: int) -> tuple[int, Allocation]:
        """Return the time [s] from which a job has a place for a length [s], and where.

        It is the first one if that is now. If not, running jobs are thought to end in groups, as in Slurm: a
        place begins with the last end of a group, or where one of another job begins or ends. Of equal
        requests, none has an earlier place than the one before it.
        """
        wanted: Any = ticket  # of the places, which stand for the cluster
        start, allocation = self.earliest(wanted, length, now)
        if start <= now or not self._groups:
            return start, allocation
        request = self.cluster.machines.size_of(ticket.job), ticket.part
        known, before = self._equal.get(request, (length, start))
        place = self._with_a_group(
            ticket, length, max(start, before) if known == length else start, allocation
        )
        self._equal[request] = length, place[0]
        return place

    def _with_a_group(
        self, ticket: Ticket, length: int, start: int, allocation: Allocation
    ) -> tuple[int, Allocation]:
        """Return the place of a job that has none before a time [s]."""
        first: tuple[int, Allocation] = start, allocation
        while True:
            later = min((time for time in self._edges if time > start), default=None)
            free = self.cluster.need(ticket).allowed & ~self.taken(ticket, start, start + length)
            ready, found = self._ready(ticket, free)
            if found is not None and ready <= start:
                return start, found
            if found is not None and (later is None or ready <= later):
                if not self.taken(ticket, ready, ready + length)[list(found.machines)].any():
                    return ready, found
                start = ready
            elif later is None:
                return first
            else:
                start = later

    @property
    def _edges(self) -> Iterator[int]:
        """The times at which places of jobs, and closures, begin or end [s]."""
        for begin, end, _ in self._planned:
            yield from (begin, end)
        yield from self.closures.times

    def taken(self, ticket: Ticket, begin: int, end: int) -> Mask:
        """Return a mask of the machines that others have, or that are closed, between two times [s]."""
        shut: Mask = np.zeros(len(self.cluster.machines), dtype=np.bool_)
        for first, last, machines in self._planned:
            if first < end and last > begin:
                shut[machines] = True
        closed = self.closures.machines(ticket.job, begin, end) if self.closures else None
        return shut if closed is None else shut | closed

    def _ready(self, ticket: Ticket, among: Mask) -> tuple[int, Allocation | None]:
        """Return when a job fits some machines as running jobs end group by group [s], and where."""
        level = np.array(self._system.free)
        found = self.cluster.first(ticket, level, among)
        if found is not None:
            return self._now, found
        ends = [
            (max(end, self._now + 1), allocation)
            for end, _, allocation in self._system.releases
            if among[list(allocation.machines)].any()
        ]
        for group in _groups([end for end, _ in ends]):
            for _, allocation in ends[group]:
                level = level + allocation
            found = self.cluster.first(ticket, level, among)
            if found is not None:
                return ends[group.stop - 1][0], found
        return self._now, None

    def reserve(self, start: int, end: int, allocation: Allocation) -> None:
        """Give the nodes of a planned job to it alone, from a later time to another [s].

        As Slurm's backfill keeps sets of nodes over time and not their amounts, no job behind it may use what
        is left of them; both times are rounded down to multiples of the grid.
        """
        start, end = (time // self._grid * self._grid for time in (start, end))
        start = max(start, self._now)
        if end > start:
            steps, machines = self._cut_out(start, end), list(allocation.machines)
            self._planned.append((start, end, machines))
            self._table[:, steps.start : steps.stop, machines] = 0
            self._join(steps.stop)
            self._join(steps.start)

    def _add(self, steps: range, allocation: Allocation, sign: int) -> None:
        """Change the available capacity in some steps; nowhere is there less than nothing.

        The plan holds jobs that have been stopped to their limits, though others use their machines by now.
        """
        super()._add(steps, allocation, sign)
        machines = self._numbers(allocation)
        there = self._table[:, steps.start : steps.stop, machines]
        self._table[:, steps.start : steps.stop, machines] = np.maximum(there, 0)

    def _closed_to(self, job: Any, after: int) -> tuple[Closure, ...]:
        return super()._closed_to(job.job, after)


def _groups(ends: Sequence[int]) -> Iterator[slice]:
    """Yield the groups of running jobs with sorted ends [s] that a plan takes as one.

    The first ones end within `GROUP` after a multiple of it; with each group, that time doubles.

    >>> [*_groups([10, 50, 61, 100, 1000, 1500])]
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 6, None)]
    """
    first, time = 0, GROUP
    while first < len(ends):
        origin = ends[0] // GROUP * GROUP + GROUP
        last = max(bisect_right(ends, origin + time), first + 1)
        yield slice(first, last)
        first, time = last, 2 * time
        while first < len(ends) and ends[first] > origin + time:
            time *= 2
