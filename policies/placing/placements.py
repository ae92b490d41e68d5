"""Placements: first fit, best fit, worst fit, depth-first, breadth-first, round robin and random.

All placements rank the machines and support any request. A per-node request takes the best machines. A pooled
request takes as much as possible from each machine, best machine first, except under breadth-first placement.
On homogeneous nodes, placements have no effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel, giving, on
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.cluster.request import Mask, Need, Places
from hpcsimkit.errors import ScheduleError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.locality import BREADTH, DEPTH
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.system import System

__all__ = [
    "BestFit",
    "BreadthFirst",
    "DepthFirst",
    "FirstFit",
    "MachineOrder",
    "RandomPlacement",
    "RoundRobin",
    "WorstFit",
    "margins",
]

Scores = NDArray[np.float64]

GRID = 2.0**40
"""Number of steps into which a share of 1 is divided when shares are compared."""


def on_grid(shares: Scores) -> Scores:
    """Return sums of shares rounded to multiples of 2^-40, which rounding errors do not tell apart.

    >>> (0.1 + 0.2 + 0.3 == 0.3 + 0.2 + 0.1, *on_grid(np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1])).tolist())
    (False, 0.6000000000003638, 0.6000000000003638)
    """
    rounded: Scores = np.rint(shares * GRID) / GRID
    return rounded


def margins(level: MachineLevel, capacity: MachineLevel) -> Scores:
    """Return the free share of each machine, averaged over the resources that it has.

    Parameters
    ----------
    level, capacity : array of int64, shape (..., machines, resources)
        Available capacity and total capacity of the machines.

    Returns
    -------
    array of float64, shape (..., machines)
        The free shares, in [0, 1], as multiples of 2^-40; 1 for a machine without resources.

    Examples
    --------
    >>> capacity = np.array([[4, 2], [4, 0]])
    >>> margins(np.array([[1, 1], [1, 0]]), capacity).tolist()
    [0.375, 0.25]
    """
    kinds = np.count_nonzero(capacity, axis=-1)
    return np.where(kinds > 0, _mean_shares(level, np.maximum(capacity, 1), np.maximum(kinds, 1)), 1.0)


def _mean_shares(level: MachineLevel, divisors: NDArray[Any], kinds: NDArray[Any]) -> Scores:
    """Return the mean of the amounts of each machine, as shares of its divisors, over a number of kinds."""
    shares = level / divisors
    total = shares[..., 0]
    for k in range(1, shares.shape[-1]):  # by column, which is fastest
        total = total + shares[..., k]
    return on_grid(total / kinds)


class MachineOrder(Placement):
    """Placement on the machines with the smallest scores; ties go to the machine listed first.

    Override :meth:`scores` to define a placement.

    Examples
    --------
    >>> class Lonely(MachineOrder):
    ...     def scores(self, need, machines, level, system):
    ...         return -level[machines, 0]
    >>> Lonely()
    Lonely()
    """

    style = ""
    """The placement style recorded in allocations."""

    ranks_all = False
    """Whether all machines are ranked for a pooled request, even those with nothing to give, to save time."""

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Any:
        """Return one score for each usable machine; smaller is better.

        With several rows of scores, shape (rows, usable), each row decides ties in the rows before it.

        Parameters
        ----------
        need : Need
            The job's resource demand.
        machines : array of int, shape (usable,)
            Numbers of the usable machines, ascending.
        level : array of int64, shape (machines, resources)
            Available capacity of all machines.
        system : System
            The current state.
        """
        return machines

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation on the machines with the smallest scores."""
        cluster = system.cluster
        if not isinstance(cluster, Machines):
            return cluster.place(job, level)
        need = cluster.need(job)
        if self.ranks_all and need.by_totals:
            machines = need.shape.numbers
        else:
            machines = need.usable(level).nonzero()[0]
        if len(machines) < need.nodes:
            return None
        return self.take(need, machines, level, system)

    def options(self, job: Job, level: Level, system: System) -> list[Allocation]:
        """Return one option per usable machine, best first, for jobs on one machine; else a single one."""
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
        """Return an allocation on the best of the usable machines."""
        return need.take(level, self._ranked(need, machines, level, system), self.style)

    def _ranked(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Places:
        """Return the machines, best first."""
        scores = np.asarray(self.scores(need, machines, level, system))
        if scores.ndim == 2 and scores.shape[1:] == machines.shape and not np.isnan(scores).any():
            return machines[np.lexsort(scores[::-1])]
        order = scores.argsort(kind="stable") if scores.shape == machines.shape else machines[:0]
        if len(order) < len(machines) or (len(order) and (last := scores[order[-1]]) != last):
            raise ScheduleError(
                f"{self!r} at t={system.now} s: needs one score for each of {len(machines)} machines, found "
                f"shape {scores.shape} with {np.count_nonzero(np.isnan(scores))} not a number"
            )
        return machines[order]


class FirstFit(MachineOrder):
    """Placement on the machines listed first."""


class BestFit(MachineOrder):
    """Placement on the machines with the smallest free share after the start."""

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return the free share of each machine after the start."""
        return _left_over(need, machines, level)


class WorstFit(MachineOrder):
    """Placement on the machines with the largest free share after the start."""

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus the free share of each machine after the start."""
        return -_left_over(need, machines, level)


def _left_over(need: Need, machines: Places, level: MachineLevel) -> Scores:
    """Return the free share of each machine after the start, with all it can hold of a pooled request."""
    shape = need.shape
    if need.exclusive:
        whole = shape.capacity[machines]
        return margins(np.zeros_like(whole), whole)
    # For all machines, which is faster than for some.
    shares = _mean_shares(np.maximum(level - need.amounts, 0), shape.divisors, shape.kinds)
    if len(shape.bare):
        shares[shape.bare] = 1
    return shares[machines]


class RoundRobin(MachineOrder):
    """Placement on the machines that follow the last one used, cyclically."""

    def reset(self, system: System) -> None:
        """Start at the first machine."""
        self._next = 0
        self._asked = -1

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation on the next machines."""
        self._follow(job, system)
        return super().place(job, level, system)

    def options(self, job: Job, level: Level, system: System) -> list[Allocation]:
        """Return the options, next machines first."""
        self._follow(job, system)
        return super().options(job, level, system)

    def _follow(self, job: Job, system: System) -> None:
        """Advance past the machines allocated to the job of the last call, by any placement."""
        given = system.given(self._asked) if self._asked >= 0 else None
        if isinstance(given, Allocation):
            count = len(system.cluster.capacity)
            last = max(given.machines, key=lambda machine: (machine - self._next) % count)
            self._next = (last + 1) % count
        self._asked = job.index

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Any:
        """Return the cyclic distance of each machine from the next machine."""
        return (machines - self._next) % len(level)


class RandomPlacement(MachineOrder):
    """Placement on usable machines chosen uniformly at random."""

    draws = True

    def reset(self, system: System) -> None:
        """Create a random number generator of the run."""
        self._random = system.random()

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return a random number for each machine."""
        return self._random.random(len(machines))


class DepthFirst(MachineOrder):
    """Packed placement on as few machines as possible: machines that cover most of the request come first.

    The coverage of each resource is weighted by the square of the number of machines that the resource alone
    would need, so that the scarcest resource counts most. Ties in coverage, and machines for per-node
    requests, are ranked fullest first. The minimum number of machines is a packing problem; on CuSH's job
    sets this heuristic uses 1.0005 times the minimum, and 1.01 times the minimum if breadth-first placements
    have fragmented the machines. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.1.)
    """

    style = DEPTH
    ranks_all = True

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus the weighted coverage of each machine and, to break ties, the capacity left over."""
        if not need.spread:
            return _left_over(need, machines, level)
        there = _there(machines, level)
        covered, left, weights = np.zeros(len(there)), np.zeros(len(there)), _weights(need, there)
        for k, (largest, amount) in enumerate(zip(need.shape.largest.tolist(), need.totals(), strict=True)):
            column = there[:, k]
            if amount >= largest:  # no machine has more than the job needs
                covered += column * weights[k]
            else:
                given = np.minimum(column, amount)
                covered += given * weights[k]
                left += (column - given) / largest
        return np.stack([-on_grid(covered), on_grid(left)])


def _there(machines: Places, level: MachineLevel) -> MachineLevel:
    """Return the rows of a level for machines in ascending order, as they are if these are all of them."""
    return level if len(machines) == len(level) else on(machines, level)


def _weights(need: Need, there: MachineLevel) -> list[float]:
    """Return the weight per unit of each resource, largest if the resource alone needs the most machines."""
    weights = [0.0] * there.shape[1]
    alone = []
    for k, amount in need.asked:
        ascending = there[:, k].copy()
        ascending.sort()
        alone.append(1 + int(np.add.accumulate(ascending[::-1]).searchsorted(amount)))
    for (k, amount), machines in zip(need.asked, alone, strict=True):
        weights[k] = (machines / max(alone)) ** 2 / amount
    return weights


class BreadthFirst(MachineOrder):
    """Spread placement on as many machines as possible.

    For per-node and exclusive requests, the emptiest machines come first. A pooled request is divided among
    all usable machines, resource by resource in the order of the cluster's resources:

    1. A resource of which at least as many units are requested as machines have it available is divided as
       evenly as possible: in rounds of one unit from each machine with units left; the last, incomplete round
       takes from the machines listed first.
    2. A *scarce* resource, of which fewer units are requested, is assigned after those, one unit per machine.
       Up to two scarce resources go to machines without any unit of the job first, then to machines that lack
       the later scarce resource, then to machines listed first.
    3. Three or more scarce resources are assigned together: to as many machines without any unit as possible,
       and among sets of equal size to the one with the machines listed first. Which machine of the set gives
       which of these resources is unspecified.

    (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.1.)

    Examples
    --------
    Three machines with CPUs, two of them with GPUs: the GPU is scarce and goes to a machine without CPUs of
    the job.

    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0], "run_time": [9], "nodes": [1], "cpus": [2], "gpus": [1], "spread": [1]}
    >>> workload = Workload(columns, resources=("cpus", "gpus"))
    >>> cluster = Machines.of(1, "plain", cpus=4) + Machines.of(2, "gpu", cpus=4, gpus=4)
    >>> result = Simulation(workload, Pipeline(placement=BreadthFirst()), cluster).run()
    >>> result.placements.machine.tolist(), result.placements.amounts.tolist()
    ([0, 1, 2], [[1, 0], [1, 0], [0, 1]])
    """

    style = BREADTH
    ranks_all = True

    def scores(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Scores:
        """Return minus the free share of each machine."""
        return -margins(on(machines, level), on(machines, need.shape.capacity))

    def take(self, need: Need, machines: Places, level: MachineLevel, system: System) -> Allocation | None:
        """Return an allocation spread as evenly as the available capacity allows."""
        if not need.spread or need.exclusive:
            return super().take(need, machines, level, system)
        there = _there(machines, level)
        some = there > 0
        having = np.add.reduce(some).tolist()
        amounts = np.zeros(there.shape, dtype=np.int64, order="F")
        scarce = []
        for k, amount in need.asked:
            if having[k] > amount:
                scarce.append((k, amount))
            elif (divided := _evenly(there[:, k], amount)) is not None:
                amounts[:, k] = divided
            else:
                return None
        if scarce:
            _one_each(some, scarce, amounts)
        if len(machines) < len(level):
            of_some, amounts = amounts, np.zeros(level.shape, dtype=np.int64, order="F")
            amounts[machines] = of_some
        return Allocation.of_level(amounts, self.style)


def _evenly(free: NDArray[np.int64], amount: int) -> NDArray[np.int64] | None:
    """Split an amount as evenly as possible; the remainder goes to the first machines with spare units.

    None is returned if not so many units are free.

    >>> _evenly(np.array([1, 5, 5, 5]), 9).tolist()
    [1, 3, 3, 2]
    """
    ascending = free.copy()
    ascending.sort()
    reached = np.add.accumulate(ascending)
    if reached[-1] < amount:
        return None
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
    """Assign single units of resources with fewer requested units than machines that have them.

    The assignment uses as many unused machines as possible.

    >>> amounts = np.zeros((3, 2), dtype=int)
    >>> _one_each(np.array([[True, True], [True, False], [True, True]]), [(0, 1), (1, 1)], amounts)
    >>> amounts.tolist()
    [[0, 1], [1, 0], [0, 0]]
    """
    used = np.zeros(len(amounts), dtype=np.bool_)
    used[giving(amounts)] = True
    giver = _matched(there, scarce, used) if len(scarce) > 2 else None
    for place, (k, amount) in enumerate(scarce):
        if giver is not None:
            rank = giver != k
        else:  # unused machines first, and among them those without the other resource
            rank = used.astype(np.int8)  # sorted faster than wider numbers
            for other, _ in scarce[place + 1 :]:
                rank += rank
                rank += there[:, other]
        givers = there[:, k].nonzero()[0]
        givers = givers[rank[givers].argsort(kind="stable")[:amount]]
        amounts[:, k][givers] = 1
        used[givers] = True


def _matched(there: Mask, scarce: list[tuple[int, int]], used: Mask) -> NDArray[np.int64]:
    """Return the scarce resource assigned to each machine, -1 for none, for the largest number of machines.

    A maximum matching of unused machines and units of the resources, by augmenting paths (Kuhn).
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
