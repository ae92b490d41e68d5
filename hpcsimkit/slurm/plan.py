"""Places of jobs in partitions: on the machines that are free now, and in a plan of all partitions."""

from __future__ import annotations

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

__all__ = ["Places", "Plan", "Ticket"]

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

    def first(self, ticket: Ticket, level: MachineLevel, among: Mask) -> Allocation | None:
        """Return an allocation on the first of some machines that have enough; None if too few do."""
        need = self.need(ticket)
        return need.take(level, np.flatnonzero(need.usable(level) & among))


class Plan(MachineProfile):
    """The capacity of each machine over time, on a grid: where jobs of all partitions are given their places.

    Parameters
    ----------
    places : Places
        The machines.
    system : System
        The state of the cluster.
    resolution : int
        Grid [s]: expected ends are rounded up to multiples of it from now on.
    """

    def __init__(self, places: Places, system: System, resolution: int) -> None:
        super().__init__(places.machines, system.now, system.free)
        self._now = system.now
        self.cluster: Any = places
        self._grid = resolution
        for end, _, allocation in system.releases:
            self.grow(system.now + max(self.rounded(end - system.now), resolution), allocation)
        if isinstance(system.calendar, Closures):
            self.close(system.calendar)

    def first_place(self, ticket: Ticket, length: int, now: int) -> tuple[int, Allocation]:
        """Return the first time [s] from which a job fits for a length [s], and where."""
        wanted: Any = ticket  # of the places, which stand for the cluster
        return self.earliest(wanted, length, now)

    def reserve(self, start: int, end: int, allocation: Allocation) -> None:
        """Give the nodes of a planned job to it alone, from a later time to another [s].

        As Slurm's backfill keeps sets of nodes over time and not their amounts, no job behind it may use what
        is left of them; both times are rounded down to multiples of the grid.
        """
        start, end = (time // self._grid * self._grid for time in (start, end))
        start = max(start, self._now)
        if end > start:
            steps, machines = self._cut_out(start, end), list(allocation.machines)
            self._table[:, steps.start : steps.stop, machines] = 0
            self._join(steps.stop)
            self._join(steps.start)

    def rounded(self, seconds: int) -> int:
        """Return a time rounded up to the grid [s]."""
        return -(-seconds // self._grid) * self._grid

    def _closed_to(self, job: Any, after: int) -> tuple[Closure, ...]:
        return super()._closed_to(job.job, after)
