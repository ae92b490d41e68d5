"""Where a job runs: first, best and worst fit, depth- and breadth-first, round robin, random.

All see the machines as arrays and work on any request. For a job that needs machines of its own they say
which are best; a job that needs totals takes all that a machine has to give, the best machine first, but for
breadth-first. On counted nodes, where one is as good as another, they change nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import Allocation, MachineLevel
from hpcsimkit.cluster import Level
from hpcsimkit.job import Job
from hpcsimkit.locality import BREADTH, DEPTH
from hpcsimkit.machines import Machines
from hpcsimkit.need import Need, Places
from hpcsimkit.policy import Placement
from hpcsimkit.system import System

__all__ = [
    "BestFit", "BreadthFirst", "DepthFirst", "FirstFit", "MachineOrder", "RandomPlacement", "RoundRobin",
    "WorstFit", "margins",
]  # fmt: skip

Scores = NDArray[np.float64]


def margins(level: MachineLevel, capacity: MachineLevel) -> Scores:
    """Return what share of each machine is free, the mean over the resources that it has.

    Parameters
    ----------
    level, capacity : array of int64, shape (..., machines, resources)
        What is free, and what the empty machines have.

    Returns
    -------
    array of float64, shape (..., machines)
        In [0, 1]; 1 for a machine that has nothing at all.

    Examples
    --------
    >>> capacity = np.array([[4, 2], [4, 0]])
    >>> margins(np.array([[1, 1], [1, 0]]), capacity).tolist()
    [0.375, 0.25]
    """
    total = np.zeros(level.shape[:-1])
    for k in range(capacity.shape[-1]):  # one after the other: the sums of equal machines come out equal
        total += level[..., k] / np.maximum(capacity[..., k], 1)
    kinds = np.count_nonzero(capacity, axis=-1)
    return np.where(kinds > 0, total / np.maximum(kinds, 1), 1.0)


class MachineOrder(Placement):
    """Takes the machines of smallest score; ties go to the first machine.

    Override :meth:`scores` for a placement of your own.

    Examples
    --------
    >>> class Lonely(MachineOrder):
    ...     def scores(self, need, machines, level, system):
    ...         return -level[machines, 0]
    >>> Lonely()
    Lonely()
    """

    style = ""
    """What allocations say about how they were chosen."""

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Any:
        """Return one number for each of the machines that can be used, smaller is better.

        Parameters
        ----------
        need : Need
            What the job needs.
        machines : array of int, shape (usable,)
            Numbers of the machines that can be one of the job's, ascending.
        level : array of int64, shape (machines, resources)
            What is free.
        system : System
            The state now.
        """
        return machines

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation on the machines of smallest score."""
        cluster = system.cluster
        if not isinstance(cluster, Machines):
            return cluster.place(job, level)
        need = cluster.need(job)
        if need.lacking:
            return None
        machines = np.flatnonzero(need.usable(level))
        if not need.spread and len(machines) < need.nodes:
            return None
        return self.take(need, machines, level, system)

    def options(self, job: Job, level: Level, system: System) -> list[Allocation]:
        """Return, for a job of one machine, each machine that can be used, the best first; else one choice."""
        cluster = system.cluster
        if not isinstance(cluster, Machines) or cluster.need(job).spread or job.nodes > 1:
            return super().options(job, level, system)
        need, machines = cluster.need(job), cluster.usable(job, level)
        if need.lacking or not len(machines):
            return []
        ranked = machines[np.argsort(self.scores(need, machines, level, system), kind="stable")]
        found = (need.take(level, ranked[place : place + 1], self.style) for place in range(len(ranked)))
        return [allocation for allocation in found if allocation is not None]

    def take(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Allocation | None:
        """Return an allocation on the best of the machines that can be used."""
        scores = self.scores(need, machines, level, system)
        if need.nodes == 1 and not need.spread:
            best = machines[np.argmin(scores)]
            return need.take(level, best[None], self.style)
        return need.take(level, machines[np.argsort(scores, kind="stable")], self.style)


class FirstFit(MachineOrder):
    """The machines that are listed first."""


class BestFit(MachineOrder):
    """The machines on which least is left over, in shares of what they have."""

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return the share of each machine that is left over."""
        return _left_over(need, machines, level)


class WorstFit(MachineOrder):
    """The machines on which most is left over, in shares of what they have."""

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus the share of each machine that is left over."""
        return -_left_over(need, machines, level)


def _left_over(need: Need, machines: Places, level: MachineLevel) -> Scores:
    """Return what share of each machine would be left; of a job that needs totals, nothing of those."""
    there = level[machines]
    left = np.maximum(there - need.amounts, 0) if not need.exclusive else np.zeros_like(there)
    return margins(left, need.shape.capacity[machines])


class RoundRobin(MachineOrder):
    """The machines that follow the last one used, in a circle."""

    def reset(self, system: System) -> None:
        """Begin with the first machine."""
        self._next = 0

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Any:
        """Return how many machines lie between the last one used and each."""
        return (machines - self._next) % len(level)

    def take(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Allocation | None:
        """Return an allocation, and remember where it ends."""
        allocation = super().take(need, machines, level, system)
        if allocation is not None:
            last = max(allocation.machines, key=lambda machine: (machine - self._next) % len(level))
            self._next = (last + 1) % len(level)
        return allocation


class RandomPlacement(MachineOrder):
    """Any machines that can be used, all equally likely."""

    def reset(self, system: System) -> None:
        """Take a stream of random numbers of the run."""
        self._random = system.random()

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Draw a number for each machine."""
        return self._random.random(len(machines))


class DepthFirst(MachineOrder):
    """As few machines as possible: those first that can give most of what is needed.

    Of machines that can give the same, and for a job that needs machines of its own, the fullest comes first.
    Fragments make the fewest machines a packing problem; taking the largest first comes close (1.01 times
    the fewest on CuSH's job sets). (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.1.)
    """

    style = DEPTH

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus what share of the need each machine can give, and a little of what is left."""
        there = level[machines]
        left = margins(np.maximum(there - need.amounts, 0), need.shape.capacity[machines])
        if not need.spread:
            return left
        wanted = np.maximum(need.amounts, 1)
        given = np.minimum(there, need.amounts) / wanted
        return left * 1e-6 - given.sum(axis=1)


class BreadthFirst(MachineOrder):
    """As many machines as possible: each gives one of each resource before any gives two.

    For a job that needs machines of its own, the emptiest come first. (CuSH, section 3.1.)
    """

    style = BREADTH

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus what share of each machine is free."""
        return -margins(level[machines], need.shape.capacity[machines])

    def take(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Allocation | None:
        """Return an allocation that is spread as evenly as free amounts allow."""
        if not need.spread or need.exclusive:
            return super().take(need, machines, level, system)
        if not (need.supply(level) >= need.amounts).all():
            return None
        there = level[machines]
        amounts = np.zeros_like(there)
        for k in np.argsort(need.amounts, kind="stable").tolist():  # the scarce ones first
            amounts[:, k] = _spread(there[:, k], int(need.amounts[k]), amounts.any(axis=1))
        used = amounts.any(axis=1)
        if not used.any():
            used = np.arange(len(machines)) < 1
        return Allocation(machines[used].tolist(), amounts[used], self.style)


def _spread(free: NDArray[np.int64], amount: int, used: Any) -> NDArray[np.int64]:
    """Take an amount as evenly as possible; what is left of an even share comes from unused machines first.

    >>> _spread(np.array([1, 5, 5, 5]), 9, np.array([False, True, False, False])).tolist()
    [1, 2, 3, 3]
    """
    low, high = 0, int(free.max(initial=0))  # the largest even share that is not too much
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(free, middle).sum() <= amount else (low, middle - 1)
    taken = np.minimum(free, low)
    more = np.flatnonzero(free > low)
    more = more[np.argsort(used[more], kind="stable")][: amount - int(taken.sum())]
    taken[more] += 1
    return taken
