"""Recording of the steps of a round in memory that later rounds reuse.

Thousands of small arrays per round would fragment the heap, and the system would not get the memory back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Tape"]

FIRST_ROWS = 1024


class Tape:
    """Columns of the same growing length, one row per step.

    Parameters
    ----------
    columns : sequence of (tuple of int, dtype)
        Shape and dtype of a row of each column.
    rows : int
        Number of rows for which there is memory at first.

    Examples
    --------
    >>> tape = Tape([((2,), np.float32), ((), np.int64)])
    >>> tape.add([[0.5, 1.5], [2.5, 3.5]], [7, 8])
    >>> tape.add([[4.5, 5.5]], [9])
    >>> [column.tolist() for column in tape.taken()]
    [[[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], [7, 8, 9]]
    >>> len(tape)
    0
    """

    def __init__(
        self, columns: Sequence[tuple[tuple[int, ...], DTypeLike]], *, rows: int = FIRST_ROWS
    ) -> None:
        self._columns = [np.empty((rows, *shape), dtype=dtype) for shape, dtype in columns]
        self._length = 0

    def __len__(self) -> int:
        """Number of recorded rows."""
        return self._length

    def add(self, *rows: NDArray[Any] | Sequence[object]) -> None:
        """Append rows, the same number to each column."""
        begin, end = self._length, self._length + len(rows[0])
        for number, column in enumerate(self._columns):
            if end > len(column):
                column = np.concatenate([column, np.empty_like(column, shape=(end, *column.shape[1:]))])
                self._columns[number] = column
            column[begin:end] = rows[number]
        self._length = end

    def taken(self) -> list[NDArray[Any]]:
        """Return copies of all columns, and clear the tape."""
        length, self._length = self._length, 0
        return [column[:length].copy() for column in self._columns]
