"""Statistics of evaluations: confidence intervals of means, and paired significance tests.

Metrics of schedules are bounded (a slowdown is never below 1) and heavy-tailed, and so are their differences:
the symmetric interval of Student's t would include impossible values. All intervals are therefore bootstrap
intervals, bias-corrected and accelerated (BCa: Efron, Journal of the American Statistical Association 82,
1987), computed by :func:`scipy.stats.bootstrap` from `RESAMPLES` resamples. They stay within the range of the
values. With fewer than about ten sequences they are too narrow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONFIDENCE", "RESAMPLES", "Comparison", "Mean", "compared", "holm", "mean_of", "ratio_of_means"]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
"""Confidence level of all intervals."""

RESAMPLES = 9999
"""Number of bootstrap resamples of an interval."""

SEED = 0
"""Random seed of the resampling, fixed so that equal values have equal intervals."""


@dataclass(frozen=True)
class Mean:
    """Mean (or ratio of means) with a confidence interval of the population value.

    Parameters
    ----------
    mean : float
        Sample mean over the sequences.
    low, high : float
        Ends of the BCa bootstrap interval; NaN for a single sequence.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Paired comparison of a policy with another one over the same sequences.

    Parameters
    ----------
    difference : Mean
        Mean of the paired differences.
    relative : float
        Mean difference as a share of the mean of the other policy.
    t_test, wilcoxon : float
        p-values of the paired t-test and of Wilcoxon's signed-rank test, two-sided.
    t_test_holm, wilcoxon_holm : float
        p-values corrected for multiple comparisons (Holm, 1979), separately for each test.
    """

    difference: Mean
    relative: float
    t_test: float
    wilcoxon: float
    t_test_holm: float
    wilcoxon_holm: float


def mean_of(values: Floats) -> Mean:
    """Return the mean of values and its confidence interval.

    For a single value, the ends are NaN; for equal values, they are the mean.

    Examples
    --------
    >>> found = mean_of(np.array([1.0, 1.0, 2.0, 4.0, 30.0]))
    >>> found.mean, 1 <= found.low < 4, 7.6 < found.high <= 30
    (7.6, True, True)
    >>> mean_of(np.ones(4))
    Mean(mean=1.0, low=1.0, high=1.0)
    """
    values = np.asarray(values, dtype=np.float64)
    return Mean(float(values.mean()), *_interval(_mean, values.tobytes()))


def ratio_of_means(values: Floats, base: Floats) -> Mean:
    """Return the ratio of two means over the same sequences, and its confidence interval.

    The pairs of values are resampled together.

    Examples
    --------
    >>> base = np.array([1.0, 2.0, 3.0, 7.0])
    >>> ratio_of_means(2 * base, base)
    Mean(mean=2.0, low=2.0, high=2.0)
    >>> found = ratio_of_means(np.array([2.0, 4.0, 7.0, 9.0]), base)
    >>> round(found.mean, 3), 9 / 7 <= found.low < found.mean < found.high <= 7 / 3
    (1.692, True)
    """
    values, base = (np.asarray(each, dtype=np.float64) for each in (values, base))
    return Mean(float(values.mean() / base.mean()), *_interval(_ratio, values.tobytes(), base.tobytes()))


def _mean(values: Floats, *, axis: int) -> Floats:
    return np.asarray(values.mean(axis=axis))


def _ratio(values: Floats, base: Floats, *, axis: int) -> Floats:
    return np.asarray(values.mean(axis=axis) / base.mean(axis=axis))


@lru_cache(maxsize=4096)
def _interval(statistic: Callable[..., Floats], *samples: bytes) -> tuple[float, float]:
    """Return the BCa interval of a statistic of paired samples, given as the bytes of their float64."""
    from scipy import stats

    columns = [np.frombuffer(sample) for sample in samples]
    if len(columns[0]) < 2:
        return float("nan"), float("nan")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about equal values, handled below
        found = stats.bootstrap(
            columns,
            statistic,
            n_resamples=RESAMPLES,
            batch=1 + 10**6 // len(columns[0]),
            paired=True,
            confidence_level=CONFIDENCE,
            method="BCa",
            random_state=np.random.default_rng(SEED),
        )
    low, high = map(float, found.confidence_interval)
    if np.isfinite([low, high]).all():
        return low, high
    # All resamples are equal, or none is below (above) the statistic: the bias correction is undefined.
    drawn = found.bootstrap_distribution
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    return low, high


def compared(values: Floats, others: Mapping[str, Floats]) -> dict[str, Comparison]:
    """Compare a policy with others on the same sequences.

    Parameters
    ----------
    values : array of float, shape (sequences,)
        Values of a metric under the policy.
    others : mapping of str to array of float, shape (sequences,)
        Values of the metric under the other policies, by name.

    Examples
    --------
    >>> one, other = np.array([1.0, 2.0, 3.0, 4.0, 9.0]), np.array([2.0, 3.5, 5.0, 7.0, 9.5])
    >>> found = compared(one, {"other": other})["other"]
    >>> found.difference.mean, round(found.relative, 3), round(found.t_test, 4), found.wilcoxon
    (-1.6, -0.296, 0.0205, 0.0625)
    """
    differences = [values - other for other in others.values()]
    ps = np.array([p_values(difference) for difference in differences]).reshape(-1, 2)
    corrected = np.array([holm(column) for column in ps.T])
    return {
        name: Comparison(
            difference=mean_of(difference),
            relative=float(difference.mean() / other.mean()) if other.mean() else float("nan"),
            t_test=float(t_test),
            wilcoxon=float(wilcoxon),
            t_test_holm=float(t_test_holm),
            wilcoxon_holm=float(wilcoxon_holm),
        )
        for (name, other), difference, (t_test, wilcoxon), (t_test_holm, wilcoxon_holm) in zip(
            others.items(), differences, ps, corrected.T, strict=True
        )
    }


def p_values(differences: Floats) -> tuple[float, float]:
    """Return the two-sided p-values of the paired t-test and of Wilcoxon's signed-rank test.

    If all differences are 0, the p-values are 1; for a single sequence, they are NaN.

    >>> p_values(np.zeros(4))
    (1.0, 1.0)
    """
    from scipy import stats

    if len(differences) < 2:
        return float("nan"), float("nan")
    if not differences.any():
        return 1.0, 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about equal or too few differences
        t_test = stats.ttest_1samp(differences, 0.0).pvalue
        return float(t_test), float(stats.wilcoxon(differences).pvalue)


def holm(ps: Sequence[float] | Floats) -> list[float]:
    """Correct p-values for multiple comparisons (Holm, Scandinavian Journal of Statistics 6, 1979).

    The smallest of n is multiplied by n, the next by n - 1 and so on; corrected values keep their order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(ps, dtype=np.float64)
    order = np.argsort(values)
    factors = np.arange(len(values), 0, -1)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return [float(value) for value in corrected]
