"""Arrivals drawn from the past: weeks, days or hours of the log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.workload import Workload

__all__ = ["PastArrivals"]

Integers = NDArray[np.int64]

HOUR, DAY, WEEK = 3_600, 86_400, 604_800

SHORTEST = 60
"""Time of a log from which arrivals are drawn at least [s]."""

RECENT = 26
"""Number of last weeks, or days, that are drawn from."""

FEWEST = 9
"""Number of weeks, or days, to draw from at least: each end of a window is exceeded once in ten times."""


class PastArrivals:
    """Submissions of the past, which take the place of those to come.

    Each week to come is one of the last weeks, as a whole, so that bursts of submissions and the habits of
    users stay together. If the log has fewer than nine of them, days take their place, and if it has fewer
    than nine days, hours at the same time of the day: the futures would have much the same arrivals
    otherwise. Of less than two days, any hours are drawn. A log of less than a day does not tell for how
    long submissions go on: they do for a time between none and the length of the log, which is drawn.

    Parameters
    ----------
    workload : Workload
        The jobs of a log.
    """

    def __init__(self, workload: Workload) -> None:
        self._order = workload.arrival_order
        self._submit = workload.submit_time[self._order]

    def draw(self, at: int, horizon: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Draw the submissions between a time and a later one.

        Parameters
        ----------
        at : int
            Time up to which submissions are known [s].
        horizon : int
            Length of the time to come [s].

        Returns
        -------
        (array of int64, array of int64), shapes (jobs,)
            Rows of past jobs, and the times at which they are submitted again [s], after `at`.
        """
        first = int(self._submit[0]) if len(self._submit) else at
        cycle, block = _cycle(at - first)
        if at - first < DAY:
            horizon = min(horizon, int((at - first) * rng.random()))
        recent = RECENT * max(cycle, DAY) // cycle
        rows: list[Integers] = []
        times: list[Integers] = []
        begin = at
        while begin < at + horizon and block >= SHORTEST:
            least = -((at - begin - block) // cycle)  # whole cycles back to known submissions
            most = max((begin - first) // cycle, least)
            back = cycle * int(rng.integers(least, min(most, least + recent - 1) + 1))
            until = min(begin + block, at + horizon)
            low, high = np.searchsorted(self._submit, [begin - back, until - back], side="right")
            rows.append(self._order[low:high])
            times.append(self._submit[low:high] + back)
            begin = until
        return np.concatenate([*rows, np.zeros(0, int)]), np.concatenate([*times, np.zeros(0, int)])


def _cycle(known: int) -> tuple[int, int]:
    """Return after which time submissions are alike, and for how long they are drawn together [s].

    Parameters
    ----------
    known : int
        Length of the log up to now [s].
    """
    for cycle in (WEEK, DAY):
        if known >= FEWEST * cycle:
            return cycle, cycle
    return (DAY if known >= 2 * DAY else 1), min(HOUR, known)
