"""Store of transitions, for rollouts of one round and for replay memories.

Its memory is used again by later rounds: thousands of small arrays per round would fragment the heap, and the
system would not get the memory back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

FIRST_ROWS = 32

Column = tuple[tuple[int, ...], DTypeLike]
"""Shape and dtype of a row."""


class Rollout:
    """Columns of the same length, one row per decision: observations, masks, actions, rewards ...

    Parameters
    ----------
    columns : sequence of (tuple of int, dtype)
        Shape and dtype of a row of each column.
    capacity : int, optional
        Maximum number of rows, of which a new one replaces the oldest; by default unlimited.

    Attributes
    ----------
    added : int
        Number of rows added so far, those that were replaced included.

    Examples
    --------
    >>> rollout = Rollout([((2,), np.float32), ((), np.int64)])
    >>> rollout.add([[0.5, 1.5], [2.5, 3.5]], [7, 8])
    >>> observation, action = rollout.row()
    >>> observation[:], action[...] = 4.5, 9
    >>> [column.tolist() for column in rollout.taken()]
    [[[0.5, 1.5], [2.5, 3.5], [4.5, 4.5]], [7, 8, 9]]
    >>> len(rollout)
    0
    >>> memory = Rollout([((), np.float32)], capacity=2)
    >>> for reward in (1.0, 2.0, 3.0):
    ...     memory.add([reward])
    >>> len(memory), memory.columns()[0].tolist()
    (2, [3.0, 2.0])
    """

    def __init__(self, columns: Sequence[Column], *, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.added = 0
        rows = FIRST_ROWS if capacity is None else capacity
        self._columns = [np.zeros((rows, *shape), dtype=dtype) for shape, dtype in columns]

    def __len__(self) -> int:
        """Number of recorded rows."""
        return self.added if self.capacity is None else min(self.added, self.capacity)

    def add(self, *rows: NDArray[Any] | Sequence[object]) -> None:
        """Append rows, the same number to each column, and at most as many as the capacity."""
        count = len(rows[0])
        self._make_room(count)
        if self.capacity is None:
            places: Any = slice(self.added, self.added + count)
        else:
            places = np.arange(self.added, self.added + count) % self.capacity
        for column, values in zip(self._columns, rows, strict=True):
            column[places] = values
        self.added += count

    def row(self) -> list[NDArray[Any]]:
        """Append a row, and return it: one view per column, to be written to at once."""
        self._make_room(1)
        self.added += 1
        place = self.added - 1 if self.capacity is None else (self.added - 1) % self.capacity
        return [column[place, ...] for column in self._columns]

    def columns(self) -> list[NDArray[Any]]:
        """Return views of all columns."""
        return [column[: len(self)] for column in self._columns]

    def taken(self) -> list[NDArray[Any]]:
        """Return copies of all columns, and clear them."""
        copies = [column.copy() for column in self.columns()]
        self.added = 0
        return copies

    def sample(self, rng: np.random.Generator, count: int) -> list[NDArray[Any]]:
        """Return rows drawn uniformly with replacement."""
        rows = rng.integers(len(self), size=count)
        return [column[rows] for column in self._columns]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns, as arrays by number."""
        return {str(number): column for number, column in enumerate(self.columns())}

    def restore(self, arrays: Mapping[str, NDArray[Any]], added: int) -> None:
        """Restore the arrays of :meth:`arrays`, given the number of rows added until then."""
        self.added = added
        for number, column in enumerate(self.columns()):
            column[:] = arrays[str(number)]

    def _make_room(self, count: int) -> None:
        """Double the memory if `count` more rows do not fit."""
        length = len(self._columns[0])
        if self.capacity is not None or self.added + count <= length:
            return
        more = max(length, self.added + count - length)
        self._columns = [
            np.concatenate([column, np.empty_like(column, shape=(more, *column.shape[1:]))])
            for column in self._columns
        ]
