"""Arrivals drawn from the past: weeks of the log, at the same time of the week."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.workload import Workload

__all__ = ["PastArrivals"]

Integers = NDArray[np.int64]

DAY, WEEK = 86_400, 604_800

SHORTEST = 60
"""Time of a log from which arrivals are drawn at least [s]."""

RECENT = 26
"""Number of last weeks that are drawn from."""


class PastArrivals:
    """Submissions of the past, which take the place of those to come.

    Each week to come is one of the last weeks, as a whole, so that bursts of submissions and the habits of
    users stay together. If the log is shorter than a week, days take the place of weeks. If it is shorter
    than a day, it does not tell for how long submissions go on: some of it is repeated, for a time between
    none and the length of the log, which is drawn.

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
        cycle = next((each for each in (WEEK, DAY) if at - first >= each), at - first)
        if cycle < DAY:
            horizon = min(horizon, int(cycle * rng.random()))
        rows: list[Integers] = []
        times: list[Integers] = []
        begin = at
        while begin < at + horizon and cycle >= SHORTEST:
            least = (begin - at) // cycle + 1  # whole cycles back to known submissions
            most = max((begin - first) // cycle, least)
            back = cycle * int(rng.integers(least, min(most, least + RECENT - 1) + 1))
            until = min(begin + cycle, at + horizon)
            low, high = np.searchsorted(self._submit, [begin - back, until - back], side="right")
            rows.append(self._order[low:high])
            times.append(self._submit[low:high] + back)
            begin = until
        return np.concatenate([*rows, np.zeros(0, int)]), np.concatenate([*times, np.zeros(0, int)])
