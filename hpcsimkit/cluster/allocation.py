"""Allocations: the machines that a job occupies, and the amounts on each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import UsageError

__all__ = ["Allocation", "MachineLevel", "giving", "on", "with_all"]

MANY = 4
"""An allocation on at least one machine in so many also keeps the amounts on all of them."""

MachineLevel = NDArray[np.int64]
"""Available amounts on each machine, int64, shape (machines, resources)."""


class Allocation:
    """Resources of machines that a job occupies, to be added to or subtracted from levels.

    Parameters
    ----------
    machines : iterable of int
        Distinct numbers of the machines.
    amounts : array of int, shape (len(machines), resources)
        Amount of each resource on each of the machines.
    style : str
        Style of the placement (``"depth"``, ``"breadth"``), for locality models. Default: none.

    Raises
    ------
    UsageError
        The amounts are not whole numbers.

    Examples
    --------
    >>> free = np.array([[4, 1], [8, 0], [8, 2]])
    >>> allocation = Allocation([0, 2], [[1, 1], [8, 0]])
    >>> (free - allocation).tolist(), (free - allocation + allocation).tolist() == free.tolist()
    ([[3, 0], [8, 0], [0, 2]], True)
    >>> allocation.totals
    (9, 1)
    """

    __array_ufunc__ = None  # so that `level - allocation` calls the allocation's __rsub__

    everywhere: MachineLevel | None = None
    """The amounts on all machines of the cluster, if the allocation has many of them: faster to subtract."""

    def __init__(self, machines: Iterable[int], amounts: ArrayLike, style: str = "") -> None:
        if isinstance(machines, np.ndarray) and machines.dtype == np.intp and len(machines) > 1:
            self.numbers = machines
        else:
            self.machines = tuple(map(index, machines))
            if len(self.machines) == 1:
                self.numbers = slice(self.machines[0], self.machines[0] + 1)
        self.amounts = np.asarray(amounts)
        self.style = style
        if self.amounts.dtype != np.int64:
            self.amounts = _whole(self.amounts)

    @classmethod
    def of_level(cls, amounts: MachineLevel, style: str = "") -> Allocation:
        """Return the allocation of what all machines of a cluster give, most of them perhaps nothing.

        Parameters
        ----------
        amounts : array of int64, shape (machines, resources)
            Amount of each resource on each machine, >= 0; it must not change any more.
        style : str
            Style of the placement. Default: none.

        Examples
        --------
        >>> Allocation.of_level(np.array([[0, 0], [0, 2], [1, 0]]))
        Allocation([1, 2], [[0, 2], [1, 0]])
        """
        machines = giving(amounts)
        allocation = cls(machines, on(machines, amounts), style)
        if len(machines) * MANY >= len(amounts):
            allocation.everywhere = amounts
        return allocation

    @cached_property
    def machines(self) -> tuple[int, ...]:
        """Numbers of the machines."""
        numbers = self.numbers
        assert isinstance(numbers, np.ndarray)  # slices are created from `machines` only
        return tuple(numbers.tolist())

    @cached_property
    def numbers(self) -> slice | NDArray[np.intp]:
        """The machines as an index into levels."""
        return np.array(self.machines, dtype=np.intp)

    @cached_property
    def rows(self) -> list[list[int]]:
        """The amounts as lists of Python integers, one list per machine."""
        return self.amounts.tolist()

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """The total amount of each resource."""
        return tuple(self.amounts.sum(axis=0).tolist())

    def lies_within(self, count: int) -> bool:
        """Return whether the machines are non-empty, distinct and numbered below `count`."""
        if "machines" not in vars(self):  # created from an array, usually in ascending order
            numbers = self.numbers
            assert isinstance(numbers, np.ndarray)
            if not np.count_nonzero(numbers[1:] <= numbers[:-1]):
                return bool(numbers[0] >= 0 and numbers[-1] < count)
        machines = self.machines
        if not machines or min(machines) < 0 or max(machines) >= count:
            return False
        return len(set(machines)) == len(machines)

    def there(self, level: MachineLevel) -> MachineLevel:
        """Return the amounts of a level on the machines, int64, shape (len(machines), resources)."""
        return level[self.numbers] if isinstance(self.numbers, slice) else on(self.numbers, level)

    def __rsub__(self, level: MachineLevel) -> MachineLevel:
        if self.everywhere is not None:
            return level - self.everywhere
        left = level.copy("K")
        if isinstance(self.numbers, slice):
            left[self.numbers] -= self.amounts
        else:
            left[self.numbers] = on(self.numbers, level) - self.amounts
        return left

    def __radd__(self, level: MachineLevel) -> MachineLevel:
        if self.everywhere is not None:
            return level + self.everywhere
        left = level.copy("K")
        if isinstance(self.numbers, slice):
            left[self.numbers] += self.amounts
        else:
            left[self.numbers] = on(self.numbers, level) + self.amounts
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


def on(machines: NDArray[np.intp], level: MachineLevel) -> MachineLevel:
    """Return the rows of a level for some machines, stored by column for fast access.

    >>> on(np.array([2, 0]), np.array([[4, 1], [8, 0], [7, 2]])).tolist()
    [[7, 2], [4, 1]]
    """
    return level.T.take(machines, axis=1).T


def giving(amounts: NDArray[Any]) -> NDArray[np.intp]:
    """Return the numbers of the machines with nonzero amounts, ascending.

    >>> giving(np.array([[0, 1], [0, 0], [7, 2]])).tolist()
    [0, 2]
    """
    something = amounts[:, 0]
    for k in range(1, amounts.shape[1]):  # by column, which is fastest
        something = something | amounts[:, k]
    return something.nonzero()[0]


def with_all(level: MachineLevel, allocations: Sequence[Allocation]) -> MachineLevel:
    """Return a level plus many released allocations.

    >>> with_all(np.array([[1], [2]]), [Allocation([0], [[3]]), Allocation([0, 1], [[1], [1]])]).tolist()
    [[5], [3]]
    """
    level = level.copy("K")
    if allocations:
        # As one list, which is faster than joining many short arrays.
        machines = [machine for allocation in allocations for machine in allocation.machines]
        np.add.at(level, machines, np.concatenate([allocation.amounts for allocation in allocations]))
    return level


def _whole(amounts: NDArray[Any]) -> MachineLevel:
    """Return amounts as whole numbers."""
    if amounts.dtype.kind not in "iuf" or (amounts != np.rint(amounts)).any():
        raise UsageError(f"an allocation needs whole amounts, found {amounts.tolist()}")
    return amounts.astype(np.int64)
