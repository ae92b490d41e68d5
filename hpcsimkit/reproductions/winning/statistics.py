"""Ratios of schedules to those of a rival, over logs: means, intervals and significance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Blocks", "Pooled", "pooled"]

Floats = NDArray[np.float64]

DRAWS = 2000
"""Number of bootstrap samples."""


class Blocks(NamedTuple):
    """A metric of a log in blocks of time: sums over the jobs of each block, and their number.

    Parameters
    ----------
    ours, rivals : array of float, shape (blocks,)
        Sum of the metric over the jobs submitted in each block, under either policy.
    """

    ours: Floats
    rivals: Floats

    @property
    def ratio(self) -> float:
        """Ratio of the means; the jobs are the same."""
        return float(self.ours.sum() / self.rivals.sum())

    def drawn(self, random: np.random.Generator) -> Floats:
        """Return ratios of bootstrap samples of blocks, shape (draws,)."""
        chosen = random.integers(0, len(self.ours), (DRAWS, len(self.ours)))
        ratios: Floats = self.ours[chosen].sum(axis=1) / self.rivals[chosen].sum(axis=1)
        return ratios


class Pooled(NamedTuple):
    """Ratios to the baseline, pooled over logs.

    Parameters
    ----------
    mean : float
        Geometric mean over the logs.
    low, high : float
        95 % interval by a bootstrap of blocks within logs; NaN without blocks.
    p : float
        Significance of the logarithms of the ratios: t-test with the logs as the random units.
    won, logs : int
        Number of logs with a ratio below 1, and of all.
    """

    mean: float
    low: float
    high: float
    p: float
    won: int
    logs: int

    @property
    def text(self) -> str:
        """The mean with its interval, for a table."""
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @property
    def is_better(self) -> bool:
        """Whether both the interval and the test say that the ratio is below 1."""
        return self.mean < 1 and self.high < 1 and self.p < 0.05


def pooled(ratios: Sequence[float], blocks: Sequence[Blocks] = (), seed: int = 0) -> Pooled:
    """Return the ratios of several logs as one.

    >>> found = pooled([0.5, 0.5, 2.0])
    >>> round(found.mean, 3), found.won, found.logs
    (0.794, 2, 3)
    """
    logarithms = np.log(ratios)
    low, high = np.nan, np.nan
    if blocks:
        random = np.random.default_rng(seed)
        drawn = np.mean([np.log(each.drawn(random)) for each in blocks], axis=0)
        low, high = np.exp(np.quantile(drawn, [0.025, 0.975])).tolist()
    return Pooled(
        float(np.exp(logarithms.mean())),
        low,
        high,
        _p_of(logarithms),
        int((logarithms < 0).sum()),
        len(logarithms),
    )


def _p_of(logarithms: Floats) -> float:
    """Return the p-value of a two-sided t-test against 0; NaN for fewer than two logs, or equal ones."""
    from scipy.stats import ttest_1samp

    if len(logarithms) < 2 or not logarithms.std():
        return float("nan")
    return float(ttest_1samp(logarithms, 0.0).pvalue)
