"""The distribution of recent run times as shares of a reference time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from hpcsimkit.kernel.prediction import LEVELS, SHORTEST

__all__ = ["Shares", "Times"]

WINDOW = 1000
"""Number of last jobs."""
REFRESH = 50
"""Number of ended jobs after which the distribution is computed anew."""
GRID = [(place + 0.5) / 20 for place in range(20)]
"""Levels at which it is evaluated for means."""

Times = tuple[float, float, list[float]]
"""E[r] [s], E[1 / max(r, 10)] [1/s] and the quantiles [s]."""


class Shares:
    """Run times of the last 1000 jobs as shares of a reference time, such as the requested time.

    Before the first job, the share is 1. The distribution is computed anew after each of the first 50 jobs,
    and after every 50 jobs later.

    Examples
    --------
    >>> shares = Shares()
    >>> for share in (0.25, 0.75):
    ...     shares.add(share)
    >>> mean, inverse, quantiles = shares.times(100)
    >>> mean, round(1 / inverse, 1), quantiles[:4]
    (50.0, 37.5, [25.0, 25.0, 25.0, 75.0])
    """

    def __init__(self) -> None:
        self._last: deque[float] = deque()
        self._sorted: list[float] = []
        self._grid = [1.0] * len(GRID)
        self._at_levels = [1.0] * len(LEVELS)
        self._times: dict[float, Times] = {}
        self._added = 0

    def add(self, share: float) -> None:
        """Add the share of a job that has ended."""
        if len(self._last) == WINDOW:
            del self._sorted[bisect_left(self._sorted, self._last.popleft())]
        self._last.append(share)
        insort(self._sorted, share)
        self._added += 1
        if self._added <= REFRESH or self._added % REFRESH == 0:
            count = len(self._sorted)
            self._grid = [self._sorted[int(level * count)] for level in GRID]
            self._at_levels = [self._sorted[int(level * count)] for level in LEVELS]
            self._times.clear()

    def times(self, reference: float) -> Times:
        """Return E[r] [s], E[1 / max(r, 10)] [1/s] and the quantiles [s] for a reference time [s]."""
        known = self._times.get(reference)
        if known is None:
            times = [share * reference for share in self._grid]
            mean = sum(times) / len(times)
            inverse = sum(1 / max(time, SHORTEST) for time in times) / len(times)
            known = mean, inverse, [share * reference for share in self._at_levels]
            self._times[reference] = known
        return known
