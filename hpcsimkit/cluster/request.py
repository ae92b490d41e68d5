"""Resource demands of jobs, precomputed for the machines of one cluster."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel, giving
from hpcsimkit.io.units import memory_text

__all__ = ["Conditions", "Count", "Need", "Shape", "Watch", "amounts_text"]

Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


class Shape(NamedTuple):
    """Resource names, capacity of the empty machines, and what follows from it for all jobs."""

    resources: tuple[str, ...]
    capacity: MachineLevel
    largest: NDArray[np.int64]
    """Largest amount of each resource on one machine."""
    divisors: NDArray[np.float64]
    """Amount of each resource on each machine, at least 1, by which shares of it are computed."""
    kinds: NDArray[np.float64]
    """Number of resources of each machine, at least 1."""
    bare: Places
    """Numbers of the machines without resources."""
    numbers: Places
    """Numbers of all machines."""


class Count(NamedTuple):
    """Count of a constraint: a condition, the machines that satisfy it, and how many of them a job needs."""

    condition: str
    machines: Mask
    number: int


class Conditions(NamedTuple):
    """Conditions on the machines of a request.

    Parameters
    ----------
    text : str
        Constraint for all machines, for messages. Default: none.
    allowed : array of bool, shape (machines,), optional
        Machines that satisfy it; by default all.
    counts : sequence of Count
        Counts of the constraint; each machine counts for one of them only. Each is less than the number of
        machines, and so or equal is their sum; the other machines may be any that are allowed. Default: none.
    """

    text: str = ""
    allowed: Mask | None = None
    counts: Sequence[Count] = ()


ANYWHERE = Conditions()


class Need:
    """Resource demand shared by all jobs of one size and request; see :class:`~hpcsimkit.jobs.job.Request`.

    Parameters
    ----------
    shape : Shape
        Resources of the cluster.
    amounts : sequence of int
        Requested amounts, in the order of the cluster's resources: per node, or in total if `spread`.
    nodes : int
        Number of different machines; ignored if `spread`. Default: 1.
    spread : bool
        Whether the request is pooled: its amounts are totals over any machines. Default: False.
    exclusive : bool
        Whether the machines are not shared with other jobs. Default: False.
    conditions : Conditions
        Conditions on the machines; no counts if `spread`. Default: none.
    lacking : mapping of str to int, optional
        Requested resources that the cluster does not have at all; if there are any, no machine is usable. An
        empty request cannot be met either, since such a job would have no location, and exclusive use by
        other jobs could not be checked.
    """

    def __init__(
        self,
        shape: Shape,
        amounts: Sequence[int],
        *,
        nodes: int = 1,
        spread: bool = False,
        exclusive: bool = False,
        conditions: Conditions = ANYWHERE,
        lacking: Mapping[str, int] | None = None,
    ) -> None:
        self.shape = shape
        self.amounts = np.array(amounts, dtype=np.int64)
        self.amounts.setflags(write=False)
        self.nodes = 1 if spread else nodes
        self.spread = spread and any(amounts)  # an exclusive request without amounts is not pooled
        self.exclusive = exclusive
        self.lacking = dict(lacking or {})
        self.empty = not (exclusive or lacking or any(amounts))
        self.constraint, self.allowed, self.counts = conditions
        if lacking or self.empty:
            self.allowed = np.zeros(len(shape.capacity), dtype=np.bool_)
        self.quotas = _quotas(self.counts)
        # Whether a comparison of the totals is sufficient.
        self.by_totals = self.spread and not exclusive and self.allowed is None
        self._totals = tuple(amount * self.nodes for amount in self.amounts.tolist())
        self.pooled = spread
        # Whether an allocation needs to be one machine with exactly these amounts.
        self._is_part_of_one = self.nodes == 1 and not (self.spread or exclusive or self.quotas)
        self._row = self.amounts.tolist()
        # Allocations of one machine, which jobs share: to make and to free one for each start takes long.
        self._singles: dict[tuple[int, str], Allocation] = {}
        # At least one comparison is needed, since excluded machines have negative amounts.
        self.asked = [(k, amount) for k, amount in enumerate(self.amounts.tolist()) if amount] or [(0, 0)]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for other processes, which make the allocations of one machine anew."""
        return vars(self) | {"_singles": {}}

    def on_some(self, machines: Mask) -> Need:
        """Return the same demand, which only some of the machines can meet."""
        other = copy.copy(self)
        vars(other).pop("_somewhere", None)
        other.allowed = machines if self.allowed is None else self.allowed & machines
        other.by_totals = False
        return other

    # --- placement -----------------------------------------------------------------------------------

    def usable(self, level: MachineLevel) -> Mask:
        """Return which machines have enough for one node; for a pooled request, which have any of it.

        Returns
        -------
        array of bool, shape (machines,)
        """
        k, amount = self.asked[0]
        if self.spread:
            usable = level[:, k] > 0
            for k, _ in self.asked[1:]:
                usable |= level[:, k] > 0
        else:
            usable = level[:, k] >= amount
            for k, amount in self.asked[1:]:
                usable &= level[:, k] >= amount
        if self.exclusive:
            usable &= (level == self.shape.capacity).all(axis=1)
        if self.allowed is not None:
            usable &= self.allowed
        return usable

    def usable_on(self, machine: int, there: Sequence[int]) -> bool:
        """Return whether a machine has enough for one node of a per-node request that is not exclusive."""
        if self.allowed is not None and not self.allowed[machine]:
            return False
        return self.within(there)

    def fits(self, level: MachineLevel) -> bool:
        """Return whether the level is sufficient."""
        if self.spread:
            return self.within(self.supply(level).tolist())
        usable = self.usable(level)
        if self.nodes == 1:
            return bool(usable.any())
        return bool(self.enough(usable)) if self.quotas else int(np.count_nonzero(usable)) >= self.nodes

    def enough(self, usable: Mask) -> Any:
        """Return whether usable machines, bool, shape (..., machines), suffice for a per-node request.

        Returns
        -------
        bool or array of bool, shape (...)
        """
        enough = np.count_nonzero(usable, axis=-1) >= self.nodes
        for machines, number in self.quotas:
            enough = enough & (np.count_nonzero(usable & machines, axis=-1) >= number)
        return enough

    def within(self, supply: Sequence[int]) -> bool:
        """Return whether a supply of each resource is sufficient for a pooled request, or for one node."""
        for k, amount in self.asked:  # noqa: SIM110 - a hot loop over all waiting jobs
            if supply[k] < amount:
                return False
        return True

    def supply(self, level: MachineLevel) -> NDArray[np.int64]:
        """Return the amount of each resource available to a pooled request, int64, shape (resources,)."""
        supply: NDArray[np.int64] = np.add.reduce(level if self.by_totals else level[self.usable(level)])
        return supply

    def take(self, level: MachineLevel, order: Places, style: str = "") -> Allocation | None:
        """Return an allocation on machines in the given order, or None if their amounts are insufficient.

        Parameters
        ----------
        level : array of int64, shape (machines, resources)
            Available amounts.
        order : array of int
            Numbers of the usable machines, best first.
        style : str
            Style of the allocation. Default: none.
        """
        if self.spread:
            return self._fill(level, order, style)
        if len(order) < self.nodes:
            return None
        if self.nodes == 1:
            return self._on_one(int(order[0]), style)
        machines = sorted(self._first(order))
        if len(machines) < self.nodes:
            return None
        if self.exclusive:
            return Allocation(machines, self.shape.capacity[machines], style)
        return Allocation(machines, np.repeat(self.amounts[None], self.nodes, axis=0), style)

    def _on_one(self, machine: int, style: str) -> Allocation:
        """Return the allocation of a single machine, the same object for all jobs."""
        found = self._singles.get((machine, style))
        if found is None:
            amounts = self.shape.capacity[[machine]] if self.exclusive else self.amounts[None]
            found = self._singles[machine, style] = Allocation([machine], amounts, style)
        return found

    def _first(self, order: Places) -> list[int]:
        """Return the first machines, each unless the others could then not meet the quotas.

        The sets of machines that can be divided among the counts are those of a transversal matroid, for
        which this yields the best set, as far as there is any. (Edmonds & Fulkerson, J. Res. NBS 1965.)
        """
        if not self.quotas:
            return order[: self.nodes].tolist()
        others = [self.nodes - number for _, number in self.quotas]
        chosen: list[int] = []
        for machine in order.tolist():
            outside = [place for place, (machines, _) in enumerate(self.quotas) if not machines[machine]]
            if len(chosen) < self.nodes and all(others[place] for place in outside):
                chosen.append(machine)
                for place in outside:
                    others[place] -= 1
        return chosen

    def _fill(self, level: MachineLevel, order: Places, style: str) -> Allocation | None:
        """Return an allocation that uses each machine up before the next one."""
        amounts = np.zeros(level.shape, dtype=np.int64, order="F")
        for k, amount in self.asked:
            there, given = level[:, k].take(order), amounts[:, k]
            reached = np.add.accumulate(there)
            last = int(reached.searchsorted(amount))
            if last == len(order):
                return None
            there[last] += amount - reached[last]
            given[order[: last + 1]] = there[: last + 1]
        if self.exclusive:
            machines = giving(amounts)
            return Allocation(machines, self.shape.capacity[machines], style)
        return Allocation.of_level(amounts, style)

    def met_by(self, allocation: Allocation, level: MachineLevel) -> bool:
        """Return whether an allocation matches the demand exactly and lies within the level."""
        if self._is_part_of_one:
            return self._met_on_one_machine(allocation, level)
        if not _lies_within(allocation, level):
            return False
        numbers, given = allocation.numbers, allocation.amounts
        if self.allowed is not None and not self.allowed[numbers].all():
            return False
        if self.exclusive and (given != self.shape.capacity[numbers]).any():
            return False
        if not self.spread:
            enough = given >= self.amounts if self.exclusive else given == self.amounts
            counted = all(machines[numbers].sum() >= number for machines, number in self.quotas)
            return len(given) == self.nodes and bool(enough.all()) and counted
        if self.exclusive:
            return self.within(allocation.totals)
        return tuple(np.add.reduce(given).tolist()) == self._totals

    def _met_on_one_machine(self, allocation: Allocation, level: MachineLevel) -> bool:
        """Return the same for a job on one machine, in Python, which is faster for so few numbers."""
        if len(allocation.machines) != 1 or allocation.amounts.tolist() != [self._row]:
            return False
        machine = allocation.machines[0]
        if not 0 <= machine < len(level) or not (self.allowed is None or self.allowed[machine]):
            return False
        for there, given in zip(level[machine].tolist(), self._row, strict=True):  # noqa: SIM110 - a hot loop
            if there < given:
                return False
        return True

    def totals(self) -> list[int]:
        """Return the total demand for each resource."""
        return list(self._totals)

    @cached_property
    def dominant_share(self) -> float:
        """The dominant share: the largest requested fraction of the cluster's total of any resource.

        (Ghodsi et al., Dominant Resource Fairness, NSDI 2011.)
        """
        whole = self.shape.capacity.sum(axis=0).tolist()
        return max(amount / there for amount, there in zip(self._totals, whole, strict=True) if there)

    # --- earliest start ------------------------------------------------------------------------------

    def watch(self, level: MachineLevel) -> Watch:
        """Return an object that processes releases and reports when the demand fits."""
        if self.by_totals:
            return _WatchTotals(self, level)
        if self.spread or self.quotas:
            return _WatchLevel(self, level)
        return _WatchMachines(self, level, self._somewhere)

    @cached_property
    def _somewhere(self) -> Mask:
        """Machines that are usable when empty."""
        return self.usable(self.shape.capacity)

    # --- messages ------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the demand in words."""
        wanted = dict(zip(self.shape.resources, self.amounts, strict=True)) | self.lacking
        what = amounts_text(wanted, wanted.values())
        having = f" that have {self.constraint}" if self.constraint else ""
        whole = "whole " if self.exclusive else ""
        if self.pooled:
            return f"{what} in all{f' of {whole}machines' if whole or having else ''}{having}"
        if self.nodes == 1:
            return f"a {whole}machine with {what}{having.replace('have', 'has')}"
        counts = "".join(f", {each.number} of them with {each.condition}" for each in self.counts)
        return f"{self.nodes} {whole}machines with {what} each{having}{counts}"

    def found(self, level: MachineLevel) -> str:
        """Return the matching supply of a level in words."""
        if self.lacking:
            return f"the cluster has no {next(iter(self.lacking))}"
        if self.allowed is not None and not self.allowed.any():
            return f"no machine has {self.constraint}"
        empty = level is self.shape.capacity
        if self.spread:
            there = amounts_text(self.shape.resources, self.supply(level), like=self.amounts)
            return f"the cluster has {there}" if empty else f"{there} are free"
        usable = self.usable(level)
        count = int(np.count_nonzero(usable))
        if self.exclusive and not empty:
            return f"{count or 'none'} {'is' if count <= 1 else 'are'} idle"
        counts = "".join(
            f", {np.count_nonzero(usable & each.machines)} with {each.condition}" for each in self.counts
        )
        have = f"{'has' if count <= 1 else 'have'} so much{'' if empty else ' free'}"
        return f"{count or 'none'} {have}{counts}"


def _lies_within(allocation: Allocation, level: MachineLevel) -> bool:
    """Return whether an allocation has amounts of at least 0 of what its machines have."""
    given = allocation.everywhere
    if given is not None and given.shape == level.shape and _least(given | (level - given)) >= 0:
        return True  # otherwise only machines of others may lack something
    if not allocation.lies_within(len(level)):
        return False
    given, there = allocation.amounts, allocation.there(level)
    return given.shape == there.shape and _least(given | (there - given)) >= 0  # negative if either is


def _least(amounts: MachineLevel) -> int:
    """Return the least number of an array, in half of the time that its own method takes for a short one."""
    flat = amounts.ravel("K")
    return int(flat[flat.argmin()])


def _quotas(counts: Sequence[Count]) -> list[tuple[Mask, int]]:
    """Return how many machines a job needs at least of those that satisfy any condition of a set of counts.

    Machines can be divided among the counts if and only if this holds for all sets. (Hall, J. London Math.
    Soc. 1935.)
    """
    return [
        (np.logical_or.reduce([each.machines for each in some]), sum(each.number for each in some))
        for size in range(1, len(counts) + 1)
        for some in combinations(counts, size)
    ]


def amounts_text(
    resources: Iterable[str], amounts: Iterable[int], like: NDArray[np.int64] | None = None
) -> str:
    """Return the nonzero amounts in words; with `like`, those that are nonzero in `like`.

    >>> amounts_text(("cpus", "gpus", "memory"), (8, 0, 64_000_000_000))
    '8 cpus, 64 GB memory'
    """
    shown = amounts if like is None else like
    words = [
        f"{memory_text(amount) if name == 'memory' else amount} {name}"
        for name, amount, wanted in zip(resources, amounts, shown, strict=True)
        if wanted
    ]
    return ", ".join(words) or "nothing"


class Watch(Protocol):
    """Accumulator of released allocations that reports when a demand fits."""

    def add(self, allocation: Allocation) -> bool:
        """Add a released allocation; return whether the demand fits now."""


class _WatchTotals:
    """Accumulator for pooled requests without constraints, which compares totals only."""

    def __init__(self, need: Need, level: MachineLevel) -> None:
        self._missing = (need.amounts - level.sum(axis=0)).tolist()

    def add(self, allocation: Allocation) -> bool:
        missing = [lack - given for lack, given in zip(self._missing, allocation.totals, strict=True)]
        self._missing = missing
        return all(lack <= 0 for lack in missing)


class _WatchMachines:
    """Accumulator for per-node requests, as lists because a release changes only a few rows."""

    def __init__(self, need: Need, level: MachineLevel, somewhere: Mask) -> None:
        enough = need.usable(level)
        self._waited_for = (somewhere & ~enough).tolist()
        self._left = need.nodes - int(np.count_nonzero(enough))
        self._level = level
        self._rows: dict[int, list[int]] = {}
        self._wanted = need.shape.capacity.tolist() if need.exclusive else need.amounts.tolist()
        self._exclusive = need.exclusive

    def add(self, allocation: Allocation) -> bool:
        for place, machine in enumerate(allocation.machines):
            if not self._waited_for[machine]:
                continue
            row = self._rows.get(machine)
            if row is None:
                row = self._level[machine].tolist()
            given = allocation.rows[place]
            row = self._rows[machine] = [a + b for a, b in zip(row, given, strict=True)]
            wanted = self._wanted[machine] if self._exclusive else self._wanted
            if all(a >= b for a, b in zip(row, wanted, strict=True)):
                self._waited_for[machine] = False
                self._left -= 1
        return self._left <= 0


class _WatchLevel:
    """Accumulator for any request, based on the full level."""

    def __init__(self, need: Need, level: MachineLevel) -> None:
        self._need = need
        self._level = level

    def add(self, allocation: Allocation) -> bool:
        self._level = self._level + allocation
        return self._need.fits(self._level)
