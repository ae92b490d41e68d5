"""Lost capacity: idle nodes while the smallest waiting job would have fitted them, integrated over time.

The schedule is examined in windows of jobs, whose arrays fit the caches of a processor: the memory does not
depend on the length of the log. Within a window, idle nodes change at starts and ends only, and waiting jobs
become fewer at starts only. From one such instant to the next, capacity is lost either all the time, or from
the first submission of a job that fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Spans", "lost_capacity", "smallest_covering"]

Integers = NDArray[np.int64]

WINDOW = 2**15
"""Minimum number of jobs that are submitted in a window."""


class Spans(NamedTuple):
    """Times of jobs that all ran [s], and the nodes that they occupied; each array has shape (jobs,)."""

    submit: Integers
    start: Integers
    end: Integers
    nodes: Integers

    def at(self, rows: slice | NDArray[np.bool_] | Integers) -> Spans:
        """Return some of the jobs."""
        return Spans(*(column[rows] for column in self))

    def and_also(self, others: Spans) -> Spans:
        """Return these jobs and then the others."""
        return Spans(*map(np.concatenate, zip(self, others, strict=True)))

    def within(self, begin: int, stop: int) -> Spans:
        """Return the jobs with their times moved into a window."""
        submit, start, end = (np.clip(column, begin, stop) for column in self[:3])
        return Spans(submit, start, end, self.nodes)


def lost_capacity(jobs: Spans, size: int, begin: int, stop: int) -> float:
    """Return the node-seconds that are idle while the smallest waiting job would fit, from `begin` to `stop`.

    Parameters
    ----------
    jobs : Spans
        The jobs, in any order.
    size : int
        Number of nodes.
    begin, stop : int
        Limits of the time span [s], within that from the first submission to the last end.

    Examples
    --------
    >>> jobs = Spans(*map(np.array, ([0, 2, 3], [0, 9, 5], [9, 12, 12], [3, 2, 1])))
    >>> lost_capacity(jobs, 4, 0, 12)  # from 3 to 5 the third job would fit the one idle node
    2.0
    """
    if (np.diff(jobs.submit) < 0).any():
        jobs = jobs.at(np.argsort(jobs.submit, kind="stable"))
    return sum(
        (
            _lost(here.within(opening, closing), size, opening, closing)
            for opening, closing, here in _windows(jobs, begin, stop)
        ),
        0.0,
    )


def _windows(jobs: Spans, begin: int, stop: int) -> Iterator[tuple[int, int, Spans]]:
    """Yield windows that follow each other, with the jobs that wait or run in each.

    At least as many jobs are submitted in a window as were left by the one before, so that a job is in two
    windows on average, at most.
    """
    left, first = jobs.at(slice(0)), 0
    while first < len(jobs.submit):
        last = first + max(WINDOW, len(left.submit))
        here = left.and_also(jobs.at(slice(first, last)))
        opening = int(jobs.submit[first])
        closing = int(jobs.submit[last]) if last < len(jobs.submit) else max(opening, stop)
        if max(begin, opening) < min(stop, closing):
            yield max(begin, opening), min(stop, closing), here
        left, first = here.at(here.end > closing), last


def _lost(jobs: Spans, size: int, begin: int, stop: int) -> float:
    """Return the lost capacity of a window in which all times are."""
    instants, place = _instants(np.concatenate([[begin], jobs.start, jobs.end]))
    of_start, of_end = np.split(place[1:], 2)
    change = np.zeros(len(instants), dtype=np.int64)
    np.subtract.at(change, of_start, jobs.nodes)
    np.add.at(change, of_end, jobs.nodes)
    idle = size + np.cumsum(change)

    waits = np.flatnonzero(jobs.submit < jobs.start)
    submit, nodes = jobs.submit[waits], jobs.nodes[waits]
    after = np.searchsorted(instants, submit)  # the first instant from the submission on
    smallest = smallest_covering(after, of_start[waits], nodes, len(instants), nothing=size + 1)

    until = np.append(instants[1:], stop)
    since = np.where(smallest <= idle, instants, until)
    between = np.flatnonzero(after > 0)
    between = between[nodes[between] <= idle[after[between] - 1]]
    np.minimum.at(since, after[between] - 1, submit[between])
    return float(np.einsum("i,i", idle, until - since, dtype=np.float64))


def _instants(time: Integers) -> tuple[Integers, Integers]:
    """Return the distinct times, ascending, and the position of each time among them.

    As :func:`numpy.unique` with its inverse, by one sort of plain numbers: times with their positions behind
    them. That takes a fraction of the time of an indirect sort.
    """
    bits, first = len(time).bit_length(), int(time.min())
    if (int(time.max()) - first).bit_length() + bits > 63:
        return np.unique(time, return_inverse=True)
    keys = time - first
    keys <<= bits
    keys |= np.arange(len(time))
    keys.sort()
    order = keys & ((1 << bits) - 1)
    keys >>= bits
    opens = np.append(True, keys[1:] != keys[:-1])
    place = np.empty(len(time), dtype=np.int64)
    place[order] = np.cumsum(opens) - 1
    return keys[opens] + first, place


def smallest_covering(
    first: Integers, stop: Integers, value: Integers, size: int, *, nothing: int
) -> NDArray[np.signedinteger]:
    """Return for each position below `size` the smallest value with a range [first, stop) that covers it.

    The algorithm fills a sparse table from the top: a range is covered by two overlapping blocks of 2^k
    positions, and a block of 2^k by two of 2^(k-1). Its cost is O((ranges + size) log size), without a loop
    over the ranges.

    Parameters
    ----------
    first, stop : array of int64, shape (ranges,)
        Limits of the ranges: positions below `size`, and those after the last ones.
    value : array of int64, shape (ranges,)
        Values >= 0.
    size : int
        Number of positions.
    nothing : int
        Value where no range is, and of ranges with larger ones.

    Examples
    --------
    >>> ranges = np.array([0, 1, 6]), np.array([4, 3, 6]), np.array([5, 2, 1])
    >>> smallest_covering(*ranges, 6, nothing=9).tolist()
    [5, 2, 2, 5, 9, 9]
    """
    kind = np.min_scalar_type(-nothing - 1)  # short numbers are compared many at a time
    value = np.minimum(value, nothing).astype(kind)
    smallest = np.full(size, nothing, dtype=kind)
    shifted = smallest.copy()
    level = (np.frexp(stop - first)[1] - 1).astype(np.int8)  # floor(log2), -1 for empty ranges
    for k in range(int(level.max(initial=-1)), -1, -1):
        block = 1 << k
        here = np.flatnonzero(level == k)
        np.minimum.at(smallest, first[here], value[here])
        np.minimum.at(smallest, stop[here] - block, value[here])
        if k:
            half = block // 2
            shifted[:half] = smallest[:half]
            np.minimum(smallest[half:], smallest[:-half], out=shifted[half:])
            smallest, shifted = shifted, smallest
    return smallest
