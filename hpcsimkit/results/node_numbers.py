"""Node numbers of jobs, assigned after a run on homogeneous nodes."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

__all__ = ["assign_nodes", "most_at_once"]

Integers = NDArray[np.int64]


def assign_nodes(start: Integers, end: Integers, nodes: Integers, size: int) -> list[tuple[range, ...]]:
    """Assign node numbers to each job, as the intervals of a Gantt chart.

    The algorithm sweeps over the instants, job ends before job starts. A job gets the first free interval
    that is large enough or, if there is none, the lowest free nodes. At each instant, zero-length jobs get
    their nodes before all others that start.

    Parameters
    ----------
    start, end : array of int64, shape (jobs,)
        Start and end times [s]; -1 for jobs that never ran.
    nodes : array of int64, shape (jobs,)
        Sizes of the jobs; the total never exceeds `size`.
    size : int
        Number of nodes; they are numbered from 0.

    Returns
    -------
    list of tuple of range
        Intervals of node numbers of each job, ascending; none for a job that never ran.

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
    """Return the maximum number of nodes in use, with the event order of :func:`assign_nodes`.

    >>> most_at_once(np.array([0, 0, 5]), np.array([9, 5, 9]), np.array([1, 2, 3]))
    4
    """
    rows, are_starts = _events(start, end)
    return int(np.cumsum(np.where(are_starts, nodes[rows], -nodes[rows])).max(initial=0))


def _events(start: Integers, end: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Return rows and start flags: at each instant ends, then zero-length jobs one by one, then starts."""
    rows = np.flatnonzero(start >= 0)
    instant = (end[rows] == start[rows]).astype(np.int64)
    rank = np.concatenate([2 - instant, instant])  # 0 for an end, 2 for a start, 1 for zero-length jobs
    row = np.concatenate([rows, rows])
    is_end = np.repeat([False, True], len(rows))
    order = np.lexsort((is_end, row, rank, np.concatenate([start[rows], end[rows]])))
    return row[order], ~is_end[order]


class _Holes:
    """Free node numbers as sorted, disjoint intervals that never touch."""

    def __init__(self, size: int) -> None:
        self._holes = [range(size)]

    def take(self, count: int) -> tuple[range, ...]:
        """Take numbers from the first free interval that is large enough, else the lowest ones."""
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
        """Release numbers and merge adjacent free intervals."""
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
