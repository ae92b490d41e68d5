"""Windows of start times: quantiles of simulated futures, calibrated at earlier times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVELS", "Windows", "scores", "stretched", "windows_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LEVELS = (0.1, 0.5, 0.9)
"""Levels of the lower end, the middle and the upper end of a window."""

SLACK = 600
"""Time that is added to the distance between the middle and each end [s], so that an end can be stretched."""

FEWEST = 50
"""Number of known starts from which windows are calibrated."""


class Windows(NamedTuple):
    """Windows of start times [s], each array of shape (jobs,)."""

    low: Floats
    middle: Floats
    high: Floats


def windows_of(starts: Integers) -> Windows:
    """Return the quantiles of simulated start times, shape (futures, jobs).

    They are those of Weibull's plotting positions, which another future does not exceed with just the
    probability of the level, however many futures there are: windows of few and of many can be compared.

    >>> windows_of(np.arange(9)[:, None]).high.tolist()
    [8.0]
    """
    return Windows(*np.quantile(starts, LEVELS, axis=0, method="weibull"))


def scores(windows: Windows, start: Integers) -> tuple[Floats, Floats]:
    """Return how far true start times lie below and above the middles, in distances to the ends.

    Scores up to 1 lie within the window, up to the slack.
    """
    low, middle, high = windows
    return (middle - start) / (middle - low + SLACK), (start - middle) / (high - middle + SLACK)


def stretched(windows: Windows, below: Floats, above: Floats, at: int | Integers) -> Windows:
    """Return windows of which each end would have held as many true starts of the past as it should.

    The distance of an end from the middle is multiplied by the quantile of its scores at the level of the
    window: conformal calibration, for each end on its own. With fewer than `FEWEST` scores, the windows stay
    as they are.

    Parameters
    ----------
    windows : Windows
        Windows at `at`.
    below, above : array of float64, shape (starts,)
        Scores of known starts.
    at : int, or array of int64, shape (jobs,)
        Time before which nothing starts, or each job does not [s].

    References
    ----------
    Romano, Patterson & Candès, "Conformalized quantile regression", NeurIPS 2019: the scores are here
    relative to the width of the window.
    """
    if len(below) < FEWEST:
        return windows
    low, middle, high = windows
    down, up = (max(float(np.quantile(each, LEVELS[-1])), 0.0) for each in (below, above))
    later = middle + up * (high - middle + SLACK)
    return Windows(
        np.maximum(middle - down * (middle - low + SLACK), at),
        middle,
        np.where(high > at, later, high),  # what starts at once in all futures does
    )
