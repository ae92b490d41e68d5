"""Which machines a job occupies, and how much of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Allocation", "MachineLevel"]

MachineLevel = NDArray[np.int64]
"""What is free on each machine, int64, shape (machines, resources)."""


class Allocation:
    """What a job occupies on machines; added to and subtracted from levels, which stay as they are.

    Parameters
    ----------
    machines : sequence of int
        Numbers of the machines, each once.
    amounts : array of int, shape (len(machines), resources)
        How much of each resource on each of them.
    style : str
        How a placement chose them (``"depth"``, ``"breadth"``): what a locality model may go by.

    Examples
    --------
    >>> free = np.array([[4, 1], [8, 0], [8, 2]])
    >>> allocation = Allocation([0, 2], [[1, 1], [8, 0]])
    >>> (free - allocation).tolist(), (free - allocation + allocation).tolist() == free.tolist()
    ([[3, 0], [8, 0], [0, 2]], True)
    >>> allocation.totals
    (9, 1)
    """

    __array_ufunc__ = None  # so that `level - allocation` is asked of the allocation

    def __init__(self, machines: Sequence[int], amounts: ArrayLike, style: str = "") -> None:
        self.machines = tuple(machines)
        self.amounts = np.asarray(amounts, dtype=np.int64)
        self.style = style

    @cached_property
    def rows(self) -> list[list[int]]:
        """The amounts as lists of Python's integers, one a machine."""
        return self.amounts.tolist()

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """How much of each resource in all."""
        return tuple(self.amounts.sum(axis=0).tolist())

    def __rsub__(self, level: MachineLevel) -> MachineLevel:
        left = level.copy("K")
        if len(self.machines) == 1:
            left[self.machines[0]] -= self.amounts[0]
        else:
            left[self.machines, :] -= self.amounts
        return left

    def __radd__(self, level: MachineLevel) -> MachineLevel:
        left = level.copy("K")
        if len(self.machines) == 1:
            left[self.machines[0]] += self.amounts[0]
        else:
            left[self.machines, :] += self.amounts
        return left

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, Allocation)
            and self.machines == other.machines
            and self.style == other.style
            and np.array_equal(self.amounts, other.amounts)
        )

    def __hash__(self) -> int:
        return hash((self.machines, self.totals, self.style))

    def __repr__(self) -> str:
        style = f", {self.style!r}" if self.style else ""
        return f"Allocation({list(self.machines)}, {self.amounts.tolist()}{style})"
