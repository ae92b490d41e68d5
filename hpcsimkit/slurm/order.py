"""The order of the queue: by tier, priority and number, with jobs before those that they may preempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["preempting_first"]


def preempting_first(queue: Sequence[int], goes_before: Callable[[int, int], bool]) -> list[int]:
    """Return the places of a queue in the order in which a merge sort leaves them.

    Slurm compares two jobs by whether one of them may preempt the other, and only then by their ranks. Such
    comparisons contradict each other: if `high` may preempt `low`, a job of a third QOS may rank above
    `high` and below `low`. The result depends on the sort, which is that of the C library: halves are sorted
    and merged, and of two equal elements the left one comes first.

    Parameters
    ----------
    queue : sequence of int
        Places in the order before the sort, that of the job numbers.
    goes_before : callable
        Whether a place comes before another one.

    Examples
    --------
    >>> qos, rank = ["normal", "low", "high"], [1, 0, 2]  # high may preempt low
    >>> def goes_before(one, other):
    ...     pair = qos[one], qos[other]
    ...     return pair == ("high", "low") or (pair != ("low", "high") and rank[one] < rank[other])
    >>> [qos[place] for place in preempting_first([0, 1, 2], goes_before)]
    ['normal', 'high', 'low']
    """
    if len(queue) < 2:
        return list(queue)
    half = len(queue) // 2
    left, right = preempting_first(queue[:half], goes_before), preempting_first(queue[half:], goes_before)
    merged: list[int] = []
    first = second = 0
    while first < len(left) and second < len(right):
        if goes_before(right[second], left[first]):
            merged.append(right[second])
            second += 1
        else:
            merged.append(left[first])
            first += 1
    return [*merged, *left[first:], *right[second:]]
