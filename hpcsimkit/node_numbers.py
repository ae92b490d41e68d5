"""Which nodes a job had: identities given out after a run on identical, merely counted nodes."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

__all__ = ["assign_nodes", "most_at_once"]

Integers = NDArray[np.int64]


def assign_nodes(start: Integers, end: Integers, nodes: Integers, size: int) -> list[tuple[range, ...]]:
    """Give each job the numbers of its nodes, as the intervals of a Gantt chart.

    A sweep over the instants, ends before starts. A job gets the first hole that holds it whole; if there
    is none, the lowest free nodes. Jobs of zero length have their nodes before all others that start then.

    Parameters
    ----------
    start, end : array of int64, shape (jobs,)
        Times [s]; -1 for jobs that never ran.
    nodes : array of int64, shape (jobs,)
        Sizes; at no time more than `size` together.
    size : int
        Nodes there are, numbered from 0.

    Returns
    -------
    list of tuple of range
        For each job its intervals of node numbers, ascending; none for a job that never ran.

    Examples
    --------
    >>> start, end, nodes = np.array([0, 0, 5]), np.array([9, 5, 9]), np.array([1, 2, 3])
    >>> assign_nodes(start, end, nodes, size=4)
    [(range(0, 1),), (range(1, 3),), (range(1, 4),)]
    """
    assigned: list[tuple[range, ...]] = [()] * len(start)
    holes = _Holes(size)
    sizes = nodes.tolist()
    rows, are_starts = _events(start, end)
    for row, starts in zip(rows.tolist(), are_starts.tolist(), strict=True):
        if starts:
            assigned[row] = holes.take(sizes[row])
        else:
            holes.give_back(assigned[row])
    return assigned


def most_at_once(start: Integers, end: Integers, nodes: Integers) -> int:
    """Return how many nodes jobs have together at most, in the order of :func:`assign_nodes`.

    >>> most_at_once(np.array([0, 0, 5]), np.array([9, 5, 9]), np.array([1, 2, 3]))
    4
    """
    rows, are_starts = _events(start, end)
    return int(np.cumsum(np.where(are_starts, nodes[rows], -nodes[rows])).max(initial=0))


def _events(start: Integers, end: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Return rows and whether they start: at an instant ends, zero-length jobs one by one, then starts."""
    rows = np.flatnonzero(start >= 0)
    instant = (end[rows] == start[rows]).astype(np.int64)
    rank = np.concatenate([2 - instant, instant])  # an end is 0 and a start 2, both 1 for a zero-length job
    row = np.concatenate([rows, rows])
    is_end = np.repeat([False, True], len(rows))
    order = np.lexsort((is_end, row, rank, np.concatenate([start[rows], end[rows]])))
    return row[order], ~is_end[order]


class _Holes:
    """Free node numbers as sorted, disjoint intervals that never touch."""

    def __init__(self, size: int) -> None:
        self._holes = [range(size)]

    def take(self, count: int) -> tuple[range, ...]:
        """Take numbers: of the first hole that is large enough, else the lowest there are."""
        for position, hole in enumerate(self._holes):
            if len(hole) >= count:
                self._holes[position : position + 1] = [hole[count:]] if len(hole) > count else []
                return (hole[:count],)
        taken: list[range] = []
        while count:
            hole = self._holes.pop(0)
            taken.append(hole[:count])
            if len(hole) > count:
                self._holes.insert(0, hole[count:])
            count -= len(taken[-1])
        return tuple(taken)

    def give_back(self, intervals: tuple[range, ...]) -> None:
        """Return numbers; holes that touch become one."""
        holes = self._holes
        for freed in intervals:
            first, stop = freed.start, freed.stop
            low = high = bisect_left(holes, first, key=_start)
            if low and holes[low - 1].stop == first:
                low -= 1
                first = holes[low].start
            if high < len(holes) and holes[high].start == stop:
                stop = holes[high].stop
                high += 1
            holes[low:high] = [range(first, stop)]


def _start(interval: range) -> int:
    return interval.start
