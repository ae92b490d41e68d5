"""Lists of waiting jobs with scores, in arrays that all passes of a run share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import machine_code, pasted
from hpcsimkit.compiled.state import Integers, Jobs, Numbers

BY_RANK, BY_KEY, BY_ESTIMATE, WFP3, UNICEF, XFACTOR = range(6)
"""Codes of orders: that of the queue, keys, estimates, and formulas."""


@machine_code
def score(jobs: Jobs, estimate: int, order: int, row: int, now: int, weight: Numbers) -> float:
    """Return the score of a job; mirrors ``Order.key`` or ``Order.scores``.

    `weight` is the job's key, its size (WFP3) or the denominator of the formula (UNICEF), by row.
    """
    if order == BY_KEY:
        return float(weight[row])
    if order == BY_ESTIMATE:
        return float(estimate)
    wait, requested = now - jobs.submit_time[row], jobs.requested_time[row]
    if order == WFP3:
        ratio = wait / requested
        return float(-(ratio * ratio * ratio) * weight[row])
    if order == UNICEF:
        return float(-wait / weight[row])
    return float(-(wait + requested) / requested)


SHORT = 16
"""Number of jobs that are sorted by insertion, before sorted parts are merged."""


class Listing(NamedTuple):
    """Space for a list of waiting jobs; a pass uses the first positions.

    Attributes
    ----------
    rows : array of int64, shape (jobs,)
        Rows of the listed jobs.
    scores : array of float64, shape (jobs,)
        Their scores.
    other_rows, other_scores : array of int64 and float64, shape (jobs,)
        Space to merge sorted parts.
    shares : Shares, optional
        Shares and usage of users, if they are in the scores of the candidates of backfilling.
    """

    rows: Integers
    scores: Numbers
    other_rows: Integers
    other_scores: Numbers
    shares: Any = None


def new_listing(jobs: int, shares: Any = None) -> Listing:
    """Return space for a list of at most `jobs` jobs, with shares or None."""
    return Listing(
        np.empty(jobs, dtype=np.int64),
        np.empty(jobs, dtype=np.float64),
        np.empty(jobs, dtype=np.int64),
        np.empty(jobs, dtype=np.float64),
        shares,
    )


@machine_code
def sort(listing: Listing, count: int) -> None:
    """Sort the first `count` jobs by score; jobs with equal scores keep their order."""
    for begin in range(0, count, SHORT):
        _insert(listing, begin, min(begin + SHORT, count))
    width = SHORT
    while width < count:
        for begin in range(0, count - width, 2 * width):
            _merge(listing, begin, begin + width, min(begin + 2 * width, count))
        width *= 2


@pasted
def _insert(listing: Listing, begin: int, end: int) -> None:
    """Sort the positions from `begin` to `end` by insertion."""
    rows, scores = listing.rows, listing.scores
    for position in range(begin + 1, end):
        row, score = rows[position], scores[position]
        place = position
        while place > begin and scores[place - 1] > score:
            rows[place], scores[place] = rows[place - 1], scores[place - 1]
            place -= 1
        rows[place], scores[place] = row, score


@pasted
def _merge(listing: Listing, begin: int, middle: int, end: int) -> None:
    """Merge two sorted parts that follow each other, unless they are in order already."""
    rows, scores = listing.rows, listing.scores
    if scores[middle - 1] <= scores[middle]:
        return
    for position in range(begin, middle):
        listing.other_rows[position] = rows[position]
        listing.other_scores[position] = scores[position]
    left, right = begin, middle
    for position in range(begin, end):
        if left == middle:
            return
        if right < end and scores[right] < listing.other_scores[left]:
            rows[position], scores[position] = rows[right], scores[right]
            right += 1
        else:
            rows[position], scores[position] = listing.other_rows[left], listing.other_scores[left]
            left += 1
