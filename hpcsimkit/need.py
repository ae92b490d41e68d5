"""What a job asks for, worked out once for the machines of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import Allocation, MachineLevel
from hpcsimkit.units import memory_text

__all__ = ["Need", "Shape", "amounts_text"]

Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


class Shape(NamedTuple):
    """What needs are judged against: the resources' names and what the empty machines have."""

    resources: tuple[str, ...]
    capacity: MachineLevel


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
    lacking : str
        What the cluster does not have at all, in words; empty if there is no such thing.
    constraint : str
        As in the request, for messages.
    """

    def __init__(
        self, shape: Shape, amounts: Sequence[int], *, nodes: int = 1, spread: bool = False,
        exclusive: bool = False, allowed: Mask | None = None, lacking: str = "", constraint: str = "",
    ) -> None:  # fmt: skip
        self.shape = shape
        self.amounts = np.array(amounts, dtype=np.int64)
        self.nodes = nodes
        self.spread = spread
        self.exclusive = exclusive
        self.allowed = allowed
        self.lacking = lacking
        self.constraint = constraint
        # What to compare; something must be, since machines ruled out have less than nothing.
        self._compared = [(k, amount) for k, amount in enumerate(amounts) if amount] or [(0, 0)]
        self._somewhere = self.usable(shape.capacity)

    # --- where ---------------------------------------------------------------------------------------

    def usable(self, level: MachineLevel) -> Mask:
        """Tell which machines can be one of the job's; for a spread need, which have anything to give.

        Returns
        -------
        array of bool, shape (machines,)
        """
        if self.spread:
            usable = np.zeros(len(level), dtype=bool)
            for k, _ in self._compared:
                usable |= level[:, k] > 0
        else:
            k, amount = self._compared[0]
            usable = level[:, k] >= amount
            for k, amount in self._compared[1:]:
                usable &= level[:, k] >= amount
        if self.exclusive:
            usable &= (level == self.shape.capacity).all(axis=1)
        if self.allowed is not None:
            usable &= self.allowed
        return usable

    def fits(self, level: MachineLevel) -> bool:
        """Tell whether the level has enough."""
        if self.lacking:
            return False
        if self.spread:
            return bool((self.supply(level) >= self.amounts).all())
        usable = self.usable(level)
        return bool(usable.any()) if self.nodes == 1 else int(np.count_nonzero(usable)) >= self.nodes

    def supply(self, level: MachineLevel) -> NDArray[np.int64]:
        """Return how much of each resource a spread job could get, int64, shape (resources,)."""
        if self.exclusive or self.allowed is not None:
            level = level[self.usable(level)]
        return level.sum(axis=0)

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
        there = level[order]
        before = np.cumsum(there, axis=0) - there
        if len(order) and not (before[-1] + there[-1] >= self.amounts).all():
            return None
        amounts = np.clip(self.amounts - before, 0, there)
        used = amounts.any(axis=1)
        machines = order[used]
        if not len(machines):
            return None if len(order) == 0 else Allocation(order[:1].tolist(), amounts[:1], style)
        amounts = self.shape.capacity[machines] if self.exclusive else amounts[used]
        ascending = np.argsort(machines)
        return Allocation(machines[ascending].tolist(), amounts[ascending], style)

    def met_by(self, allocation: Allocation, level: MachineLevel) -> bool:
        """Tell whether an allocation gives just what is needed and lies within the level."""
        machines = list(allocation.machines)
        known = all(0 <= machine < len(level) for machine in machines) and len(set(machines)) == len(machines)
        if not known or allocation.amounts.shape != (len(machines), level.shape[1]):
            return False
        given, there = allocation.amounts, level[machines]
        if (given < 0).any() or (given > there).any():
            return False
        if self.allowed is not None and not self.allowed[machines].all():
            return False
        if self.exclusive and (given != self.shape.capacity[machines]).any():
            return False
        if self.spread:
            total = given.sum(axis=0)
            return bool((total >= self.amounts).all() if self.exclusive else (total == self.amounts).all())
        if len(machines) != self.nodes:
            return False
        return bool((given >= self.amounts).all() if self.exclusive else (given == self.amounts).all())

    def totals(self) -> list[int]:
        """Return how much of each resource is needed in all."""
        return (self.amounts * (1 if self.spread else self.nodes)).tolist()

    # --- when ----------------------------------------------------------------------------------------

    def watch(self, level: MachineLevel) -> Watch:
        """Return something that is told of releases and tells when the need fits."""
        if self.spread and not self.exclusive and self.allowed is None:
            return _WatchTotals(self, level)
        return _WatchLevel(self, level) if self.spread else _WatchMachines(self, level, self._somewhere)

    # --- in words ------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return what is needed in words."""
        what = amounts_text(self.shape.resources, self.amounts)
        having = f" that have {self.constraint}" if self.constraint else ""
        whole = "whole " if self.exclusive else ""
        if self.spread:
            return f"{what} in all{f' of {whole}machines' if whole or having else ''}{having}"
        if self.nodes == 1:
            return f"a {whole}machine with {what}{having.replace('have', 'has')}"
        return f"{self.nodes} {whole}machines with {what} each{having}"

    def found(self, level: MachineLevel) -> str:
        """Return in words what there is of it in a level."""
        if self.lacking:
            return f"the cluster has no {self.lacking}"
        empty = level is self.shape.capacity
        if self.spread:
            there = amounts_text(self.shape.resources, self.supply(level), like=self.amounts)
            return f"the cluster has {there}" if empty else f"{there} are free"
        count = int(np.count_nonzero(self.usable(level)))
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
