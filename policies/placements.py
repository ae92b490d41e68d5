"""Where a job runs: first, best and worst fit, depth- and breadth-first, round robin, random.

All see the machines as arrays and work on any request. For a job that needs machines of its own they say
which are best; a job that needs totals takes all that a machine has to give, the best machine first, but for
breadth-first. On counted nodes, where one is as good as another, they change nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import Allocation, MachineLevel, giving, on
from hpcsimkit.cluster import Level
from hpcsimkit.errors import ScheduleError
from hpcsimkit.job import Job
from hpcsimkit.locality import BREADTH, DEPTH
from hpcsimkit.machines import Machines
from hpcsimkit.need import Mask, Need, Places
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
        machines = need.usable(level).nonzero()[0]
        if len(machines) < need.nodes:
            return None
        return self.take(need, machines, level, system)

    def options(self, job: Job, level: Level, system: System) -> list[Allocation]:
        """Return, for a job of one machine, each that can be used, the best first; else the one choice."""
        cluster = system.cluster
        if not isinstance(cluster, Machines) or cluster.need(job).spread or job.nodes > 1:
            return super().options(job, level, system)
        need, machines = cluster.need(job), cluster.usable(job, level)
        if not len(machines):
            return []
        ranked = self._ranked(need, machines, level, system)
        found = (need.take(level, ranked[place : place + 1], self.style) for place in range(len(ranked)))
        return [allocation for allocation in found if allocation is not None]

    def take(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Allocation | None:
        """Return an allocation on the best of the machines that can be used."""
        return need.take(level, self._ranked(need, machines, level, system), self.style)

    def _ranked(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Places:
        """Return machines, the best first."""
        scores = np.asarray(self.scores(need, machines, level, system))
        order = scores.argsort(kind="stable") if scores.shape == machines.shape else machines[:0]
        if len(order) < len(machines) or (len(order) and np.isnan(scores[order[-1]])):
            raise ScheduleError(
                f"{self!r} at t={system.now} s: needs one score for each of {len(machines)} machines, found "
                f"shape {scores.shape} with {np.count_nonzero(np.isnan(scores))} not a number"
            )
        return machines[order]


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
    there = on(machines, level)
    left = np.maximum(there - need.amounts, 0) if not need.exclusive else np.zeros_like(there)
    return margins(left, need.shape.capacity[machines])


class RoundRobin(MachineOrder):
    """The machines that follow the last one used, in a circle."""

    def reset(self, system: System) -> None:
        """Begin with the first machine."""
        self._next = 0
        self._asked = -1

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation on the machines that follow."""
        self._follow(job, system)
        return super().place(job, level, system)

    def options(self, job: Job, level: Level, system: System) -> list[Allocation]:
        """Return the options, the machines that follow first."""
        self._follow(job, system)
        return super().options(job, level, system)

    def _follow(self, job: Job, system: System) -> None:
        """Go on behind the machines that the job asked about last was given, by whomever."""
        given = system.given(self._asked) if self._asked >= 0 else None
        if isinstance(given, Allocation):
            count = len(system.cluster.capacity)
            last = max(given.machines, key=lambda machine: (machine - self._next) % count)
            self._next = (last + 1) % count
        self._asked = job.index

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Any:
        """Return how many machines lie between the last one used and each."""
        return (machines - self._next) % len(level)


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

    What a machine can give is weighted by how many machines each resource would need alone, squared: most
    counts what is hardest to find. Of machines that can give the same, and for a job that needs machines of
    its own, the fullest comes first. The fewest machines are a packing problem; on CuSH's job sets this comes
    to 1.0005 times the fewest, and to 1.01 times where jobs placed breadth-first have left fragments.
    (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.1.)
    """

    style = DEPTH

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus what share of the need each machine can give, and a little of what is left."""
        if not need.spread:
            return _left_over(need, machines, level)
        there = on(machines, level)
        given = np.minimum(there, need.amounts)
        return ((there - given) * (1e-6 / need.shape.largest) - given * _weights(need, there)).sum(axis=1)


def _weights(need: Need, there: MachineLevel) -> Scores:
    """Return what a unit of each resource counts: most if alone it would need the most machines."""
    reached = np.sort(there, axis=0)[::-1].cumsum(axis=0)
    alone = [1 + int(reached[:, k].searchsorted(amount)) for k, amount in need.asked]
    weights = np.zeros(there.shape[1])
    for (k, amount), machines in zip(need.asked, alone, strict=True):
        weights[k] = (machines / max(alone)) ** 2 / amount
    return weights


class BreadthFirst(MachineOrder):
    """As many machines as possible: each gives one of each resource before any gives two.

    For a job that needs machines of its own, the emptiest come first. (CuSH, section 3.1.)
    """

    style = BREADTH

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus what share of each machine is free."""
        return -margins(on(machines, level), on(machines, need.shape.capacity))

    def take(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Allocation | None:
        """Return an allocation that is spread as evenly as free amounts allow."""
        if not need.spread or need.exclusive:
            return super().take(need, machines, level, system)
        there = on(machines, level)
        if not need.within(there.sum(axis=0).tolist()):
            return None
        amounts = np.zeros_like(there)
        scarce = []
        for k, amount in need.asked:
            if np.count_nonzero(there[:, k]) > amount:
                scarce.append((k, amount))
            else:
                amounts[:, k] = _evenly(there[:, k], amount)
        if scarce:
            _one_each(there > 0, scarce, amounts)
        used = giving(amounts)
        return Allocation(machines[used], on(used, amounts), self.style)


def _evenly(free: NDArray[np.int64], amount: int) -> NDArray[np.int64]:
    """Take an amount as evenly as possible, what is left of an even share from the first that have it.

    >>> _evenly(np.array([1, 5, 5, 5]), 9).tolist()
    [1, 3, 3, 2]
    """
    ascending = np.sort(free)
    reached = ascending.cumsum()
    none_gives_more = reached + ascending * np.arange(len(free) - 1, -1, -1)
    emptied = int(none_gives_more.searchsorted(amount, side="right"))
    if emptied == len(free):
        return free
    below = int(reached[emptied - 1]) if emptied else 0
    share, rest = divmod(amount - below, len(free) - emptied)
    taken = np.minimum(free, share)
    if rest:
        taken[(free > share).nonzero()[0][:rest]] += 1
    return taken


def _one_each(there: Mask, scarce: list[tuple[int, int]], amounts: NDArray[np.int64]) -> None:
    """Take one unit each of resources of which there are fewer units than machines that have them.

    As many machines as possible that give nothing yet shall give something.

    >>> amounts = np.zeros((3, 2), dtype=int)
    >>> _one_each(np.array([[True, True], [True, False], [True, True]]), [(0, 1), (1, 1)], amounts)
    >>> amounts.tolist()
    [[0, 1], [1, 0], [0, 0]]
    """
    used: Mask = np.asarray(amounts.any(axis=1))
    giver = _matched(there, scarce, used) if len(scarce) > 2 else None
    for place, (k, amount) in enumerate(scarce):
        if giver is not None:
            rank = giver != k
        else:  # unused ones first, and of those the ones that cannot give the other resource
            rank = 2 * used
            for other, _ in scarce[place + 1 :]:
                rank |= there[:, other]
        givers = there[:, k].nonzero()[0]
        givers = givers[rank[givers].argsort(kind="stable")][:amount]
        amounts[givers, k] = 1
        used[givers] = True


def _matched(there: Mask, scarce: list[tuple[int, int]], used: Mask) -> NDArray[np.int64]:
    """Return which of several scarce resources each machine gives, -1 for none, so that most give one.

    A largest matching, by augmenting paths (Kuhn), of unused machines with units of the resources.
    """
    giver = np.full(len(there), -1)
    given_by: dict[int, list[int]] = {k: [] for k, _ in scarce}

    def give(machine: int, tried: set[int]) -> bool:
        for k, amount in scarce:
            if there[machine, k] and k not in tried:
                tried.add(k)
                holders = given_by[k]
                freed = len(holders) if len(holders) < amount else None
                if freed is None:
                    freed = next((place for place, each in enumerate(holders) if give(each, tried)), None)
                if freed is not None:
                    holders[freed : freed + 1] = [machine]
                    giver[machine] = k
                    return True
        return False

    units = sum(amount for _, amount in scarce)
    for machine in np.flatnonzero(~used).tolist():
        units -= give(machine, set())
        if not units:
            break
    return giver
