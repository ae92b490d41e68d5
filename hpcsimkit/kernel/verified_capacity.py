"""Verification that the resources in use never exceed a capacity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Excess", "Use", "excess"]

Integers = NDArray[np.int64]

ALMOST = 10
"""Numbers are almost in order if at most one in so many is less than the one before it."""

NEVER = np.iinfo(np.int64).min
"""A time before all others."""


class Use(NamedTuple):
    """Use of resources over time, one item for each job and place.

    Attributes
    ----------
    row : array of int64, shape (items,)
        Row of the job.
    start, end : array of int64, shape (items,)
        Times at which the use begins and ends [s].
    amounts : array of int64, shape (items, resources)
        Amounts in use.
    place : array of int64, shape (items,), optional
        Number of the machine or partition; by default there is only one place.
    """

    row: Integers
    start: Integers
    end: Integers
    amounts: Integers
    place: Integers | None = None


class Excess(NamedTuple):
    """The first instant at which more is in use than there is.

    Attributes
    ----------
    row : int
        Row of a job that starts then.
    time : int
        Time [s].
    place, resource : int
        Numbers of the place and of the resource.
    used, available : int
        Amount in use, and amount that exists.
    """

    row: int
    time: int
    place: int
    resource: int
    used: int
    available: int


def excess(use: Use, available: Integers, positions: NDArray[np.int32] | None = None) -> Excess | None:
    """Return the first excess of a use, if there is any.

    Jobs use their resources from their start up to, but not including, their end. So a job without run time
    uses nothing: another pass follows at its end, in the same instant.

    Parameters
    ----------
    use : Use
        Use of the resources.
    available : array of int64, shape (places, resources)
        Amounts that exist.
    positions : array of int32, shape (2, items), optional
        Positions of each start and each end among all of them, in the order of time. They spare the sorting
        of a use in one place. They are compared with the times; if they are wrong, all events are sorted.

    Examples
    --------
    >>> use = Use(np.arange(3), np.array([0, 2, 5]), np.array([5, 9, 9]), np.array([[2], [1], [3]]))
    >>> excess(use, np.array([[4]]))
    >>> excess(use, np.array([[3]]))
    Excess(row=2, time=5, place=0, resource=0, used=4, available=3)
    """
    if not len(use.row):
        return None
    if available.size == 1 and _within(use, int(available[0, 0]), positions):
        return None
    return _first(use, available)


def _within(use: Use, available: int, positions: NDArray[np.int32] | None) -> bool:
    """Return whether a use in one place certainly never exceeds what is available."""
    start, end, amount = use.start, use.end, use.amounts[:, 0]
    peak = None if positions is None else _peak_in_order(start, end, amount, positions)
    if peak is None:
        peak = _peak(start, end, amount)
    return peak is not None and peak <= available


def _peak_in_order(
    start: Integers, end: Integers, amount: Integers, positions: NDArray[np.int32]
) -> int | None:
    """Return at least the largest amount in use, or None if the given order is not an order in time.

    The sum of the changes up to the last event of an instant is the amount in use then, in any order within
    the instant. Only the sums before it depend on that order: they may exceed all amounts in use.
    """
    jobs = len(start)
    if positions.shape != (2, jobs):
        return None
    starts, ends = positions.astype(np.intp)  # numbers of 32 bits are slow as indices
    events = np.full(2 * jobs, NEVER, dtype=np.int64)
    try:
        events[starts], events[ends] = start, end
    except IndexError:
        return None
    # If two events had one position, another position would be left, which would still be NEVER.
    if events[0] == NEVER or (events[1:] < events[:-1]).any():
        return None
    events[starts] = amount
    events[ends] = -amount
    return int(np.cumsum(events, out=events).max())


def _peak(start: Integers, end: Integers, amount: Integers) -> int | None:
    """Return the largest amount in use in one place, or None if the numbers are too large to be packed.

    Time and change of each event are packed into one number, as numbers are sorted in a third of the time of
    rows. Changes are at most as large as the largest amount: those of ends are negative, and thus precede
    those of starts. Starts that are almost in order are sorted separately, before both are merged.
    """
    jobs, first, most = len(start), start.min(), int(amount.max())
    bits = (2 * most).bit_length()
    if int(end.max() - first).bit_length() + bits > 62:
        return None
    events = np.empty(2 * jobs, dtype=np.int64)
    starts, ends = events[:jobs], events[jobs:]
    np.subtract(start, first, out=starts)
    np.subtract(end, first, out=ends)
    events <<= bits
    events += most
    starts += amount
    ends -= amount
    if ALMOST * np.count_nonzero(starts[1:] < starts[:-1]) < jobs:
        starts.sort(kind="stable")
        ends.sort()
        events.sort(kind="stable")
    else:
        events.sort()
    events &= (1 << bits) - 1
    events -= most
    return int(np.cumsum(events, out=events).max())


def _first(use: Use, available: Integers) -> Excess | None:
    """Return the first excess in any place; this sorts all events."""
    items, time = len(use.row), np.concatenate([use.end, use.start])
    place = np.zeros(len(time), dtype=np.int64) if use.place is None else np.tile(use.place, 2)
    order = _by_place_and_time(place, time)
    time, place = time[order], place[order]
    found: list[Excess] = []
    for resource in range(available.shape[1]):
        amount = use.amounts[:, resource]
        if not amount.any():
            continue
        # No place needs a sum of its own: by its last event, all that began there has ended.
        used = np.cumsum(np.concatenate([-amount, amount])[order])
        over = np.flatnonzero(used > available[:, resource][place])
        if len(over):
            at = over[time[over].argmin()]
            row, where = int(use.row[order[at] % items]), int(place[at])
            there = int(available[where, resource])
            found.append(Excess(row, int(time[at]), where, resource, int(used[at]), there))
    return min(found, key=lambda each: each.time, default=None)


def _by_place_and_time(place: Integers, time: Integers) -> NDArray[np.intp]:
    """Return the order of events by place, then by time; equal ones keep their order: ends come first."""
    first = time.min()
    bits = int(time.max() - first).bit_length()
    if int(place.max()).bit_length() + bits > 62:
        return np.lexsort((time, place))
    return np.argsort((place << bits) + (time - first), kind="stable")
