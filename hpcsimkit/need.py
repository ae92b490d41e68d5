"""What a job asks for, worked out once for the machines of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import Allocation, MachineLevel, giving, on
from hpcsimkit.units import memory_text

__all__ = ["Need", "Shape", "Watch", "amounts_text"]

Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


class Shape(NamedTuple):
    """What needs are judged against: the resources' names, what the empty machines have, and at most."""

    resources: tuple[str, ...]
    capacity: MachineLevel
    largest: NDArray[np.int64]


class Need:
    """What all jobs of one size and request need; see :class:`~hpcsimkit.job.Request`.

    Parameters
    ----------
    shape : Shape
        Of the cluster.
    amounts : sequence of int
        In the order of the cluster's resources: on each of the machines, or in all if `spread`.
    nodes : int
        Different machines, if not `spread`.
    spread, exclusive : bool
        As in the request.
    allowed : array of bool, shape (machines,), optional
        Machines that have what the constraint asks for; by default all.
    lacking : mapping of str to int, optional
        What is asked for besides that the cluster does not have at all; then no machine can be used.
    constraint : str
        As in the request, for messages.
    """

    def __init__(
        self, shape: Shape, amounts: Sequence[int], *, nodes: int = 1, spread: bool = False,
        exclusive: bool = False, allowed: Mask | None = None, lacking: Mapping[str, int] | None = None,
        constraint: str = "",
    ) -> None:  # fmt: skip
        self.shape = shape
        self.amounts = np.array(amounts, dtype=np.int64)
        self.amounts.setflags(write=False)
        self.nodes = 1 if spread else nodes
        self.spread = spread and any(amounts)  # nothing is not spread: the job is on one machine
        self.exclusive = exclusive
        self.allowed = np.zeros(len(shape.capacity), dtype=np.bool_) if lacking else allowed
        self.lacking = dict(lacking or {})
        self.constraint = constraint
        # Whether it fits wherever enough is free in all.
        self.by_totals = self.spread and not exclusive and self.allowed is None
        self._totals = tuple(amount * self.nodes for amount in self.amounts.tolist())
        self._in_all = spread
        # Something must be compared, since machines ruled out have less than nothing.
        self.asked = [(k, amount) for k, amount in enumerate(self.amounts.tolist()) if amount] or [(0, 0)]

    # --- where ---------------------------------------------------------------------------------------

    def usable(self, level: MachineLevel) -> Mask:
        """Tell which machines can be one of the job's; for a spread need, which have anything to give.

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

    def fits(self, level: MachineLevel) -> bool:
        """Tell whether the level has enough."""
        if self.spread:
            return self.within(self.supply(level).tolist())
        usable = self.usable(level)
        return bool(usable.any()) if self.nodes == 1 else int(np.count_nonzero(usable)) >= self.nodes

    def within(self, supply: Sequence[int]) -> bool:
        """Tell whether a supply of each resource is enough for a spread job."""
        for k, amount in self.asked:  # noqa: SIM110 - asked of all that wait, again and again
            if supply[k] < amount:
                return False
        return True

    def supply(self, level: MachineLevel) -> NDArray[np.int64]:
        """Return how much of each resource a spread job could get, int64, shape (resources,)."""
        return (level if self.by_totals else level[self.usable(level)]).sum(axis=0)

    def take(self, level: MachineLevel, order: Places, style: str = "") -> Allocation | None:
        """Take what is needed from machines in the order given; None if they have not enough.

        Parameters
        ----------
        level : array of int64, shape (machines, resources)
            What is free.
        order : array of int
            Usable machines, the best first.
        style : str
            For the allocation.
        """
        if self.spread:
            return self._fill(level, order, style)
        if len(order) < self.nodes:
            return None
        machines = [int(order[0])] if self.nodes == 1 else sorted(order[: self.nodes].tolist())
        if self.exclusive:
            return Allocation(machines, self.shape.capacity[machines], style)
        amounts = self.amounts[None] if self.nodes == 1 else np.repeat(self.amounts[None], self.nodes, axis=0)
        return Allocation(machines, amounts, style)

    def _fill(self, level: MachineLevel, order: Places, style: str) -> Allocation | None:
        """Take all that each machine has until there is enough."""
        amounts = np.zeros_like(level)
        for k, amount in self.asked:
            there = level[:, k].take(order)
            reached = there.cumsum()
            last = int(reached.searchsorted(amount))
            if last == len(order):
                return None
            amounts[order[:last], k] = there[:last]
            amounts[order[last], k] = amount - reached[last] + there[last]
        machines = giving(amounts)
        amounts = self.shape.capacity[machines] if self.exclusive else on(machines, amounts)
        return Allocation(machines, amounts, style)

    def met_by(self, allocation: Allocation, level: MachineLevel) -> bool:
        """Tell whether an allocation gives just what is needed and lies within the level."""
        if not allocation.lies_within(len(level)):
            return False
        numbers, given = allocation.numbers, allocation.amounts
        there = allocation.there(level)
        if given.shape != there.shape or (given | (there - given)).min() < 0:  # below zero if either is
            return False
        if self.allowed is not None and not self.allowed[numbers].all():
            return False
        if self.exclusive and (given != self.shape.capacity[numbers]).any():
            return False
        if not self.spread:
            enough = given >= self.amounts if self.exclusive else given == self.amounts
            return len(given) == self.nodes and bool(enough.all())
        if self.exclusive:
            return self.within(allocation.totals)
        return allocation.totals == self._totals

    def totals(self) -> list[int]:
        """Return how much of each resource is needed in all."""
        return list(self._totals)

    @cached_property
    def dominant_share(self) -> float:
        """The largest of its shares of what the cluster has of each resource.

        (Ghodsi et al., Dominant Resource Fairness, NSDI 2011.)
        """
        whole = self.shape.capacity.sum(axis=0).tolist()
        return max(amount / there for amount, there in zip(self._totals, whole, strict=True) if there)

    # --- when ----------------------------------------------------------------------------------------

    def watch(self, level: MachineLevel) -> Watch:
        """Return something that is told of releases and tells when the need fits."""
        if self.by_totals:
            return _WatchTotals(self, level)
        return _WatchLevel(self, level) if self.spread else _WatchMachines(self, level, self._somewhere)

    @cached_property
    def _somewhere(self) -> Mask:
        """Which machines can be one of the job's when they are empty."""
        return self.usable(self.shape.capacity)

    # --- in words ------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return what is needed in words."""
        wanted = dict(zip(self.shape.resources, self.amounts, strict=True)) | self.lacking
        what = amounts_text(wanted, wanted.values())
        having = f" that have {self.constraint}" if self.constraint else ""
        whole = "whole " if self.exclusive else ""
        if self._in_all:
            return f"{what} in all{f' of {whole}machines' if whole or having else ''}{having}"
        if self.nodes == 1:
            return f"a {whole}machine with {what}{having.replace('have', 'has')}"
        return f"{self.nodes} {whole}machines with {what} each{having}"

    def found(self, level: MachineLevel) -> str:
        """Return in words what there is of it in a level."""
        if self.lacking:
            return f"the cluster has no {next(iter(self.lacking))}"
        if self.allowed is not None and not self.allowed.any():
            return f"no machine has {self.constraint}"
        empty = level is self.shape.capacity
        if self.spread:
            there = amounts_text(self.shape.resources, self.supply(level), like=self.amounts)
            return f"the cluster has {there}" if empty else f"{there} are free"
        count = int(np.count_nonzero(self.usable(level)))
        if self.exclusive and not empty:
            return f"{count or 'none'} {'is' if count <= 1 else 'are'} idle"
        return f"{count or 'none'} {'has' if count <= 1 else 'have'} so much{'' if empty else ' free'}"


def amounts_text(
    resources: Iterable[str], amounts: Iterable[int], like: NDArray[np.int64] | None = None
) -> str:
    """Return amounts in words: those that are not 0, or those that are not 0 in `like`.

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
    """Is told of releases, one after the other; tells when the need fits."""

    def add(self, allocation: Allocation) -> bool:
        """Count what an allocation gives back; tell whether the need fits now."""


class _WatchTotals:
    """A total that any machines may give: only totals count."""

    def __init__(self, need: Need, level: MachineLevel) -> None:
        self._missing = (need.amounts - level.sum(axis=0)).tolist()

    def add(self, allocation: Allocation) -> bool:
        missing = [lack - given for lack, given in zip(self._missing, allocation.totals, strict=True)]
        self._missing = missing
        return all(lack <= 0 for lack in missing)


class _WatchMachines:
    """So many machines with enough each; in lists, since a release changes a row or two."""

    def __init__(self, need: Need, level: MachineLevel, somewhere: Mask) -> None:
        enough = need.usable(level)
        self._waited_for = (somewhere & ~enough).tolist()
        self._left = need.nodes - int(np.count_nonzero(enough))
        self._level = level
        self._rows: dict[int, list[int]] = {}
        self._wanted = need.shape.capacity.tolist() if need.exclusive else need.amounts.tolist()
        self._exclusive = need.exclusive

    def add(self, allocation: Allocation) -> bool:
        for machine, given in zip(allocation.machines, allocation.rows, strict=True):
            if not self._waited_for[machine]:
                continue
            row = self._rows.get(machine)
            if row is None:
                row = self._level[machine].tolist()
            row = self._rows[machine] = [a + b for a, b in zip(row, given, strict=True)]
            wanted = self._wanted[machine] if self._exclusive else self._wanted
            if all(a >= b for a, b in zip(row, wanted, strict=True)):
                self._waited_for[machine] = False
                self._left -= 1
        return self._left <= 0


class _WatchLevel:
    """Any need, from the level itself."""

    def __init__(self, need: Need, level: MachineLevel) -> None:
        self._need = need
        self._level = level

    def add(self, allocation: Allocation) -> bool:
        self._level = self._level + allocation
        return self._need.fits(self._level)
