"""Is the difference chance? Intervals of means, and paired tests on sequences that all policies have met."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONFIDENCE", "Comparison", "Mean", "compared", "holm", "mean_of"]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
"""Of all intervals."""


@dataclass(frozen=True)
class Mean:
    """A mean, and the interval in which that of all sequences is expected.

    Parameters
    ----------
    mean : float
        Of the sequences there are.
    low, high : float
        Ends of the interval of Student's t; not a number for a single sequence.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """What is better, and by how much: one policy minus another, sequence by sequence.

    Parameters
    ----------
    difference : Mean
        Mean of the differences.
    relative : float
        The same as a share of the other's mean.
    t_test, wilcoxon : float
        p-values of the paired t-test and of Wilcoxon's signed-rank test, two-sided.
    t_test_holm, wilcoxon_holm : float
        The same, corrected for all comparisons that are made together (Holm, 1979), each test for itself.
    """

    difference: Mean
    relative: float
    t_test: float
    wilcoxon: float
    t_test_holm: float
    wilcoxon_holm: float


def mean_of(values: Floats) -> Mean:
    """Return the mean of values and its confidence interval.

    Examples
    --------
    >>> found = mean_of(np.array([1.0, 2.0, 3.0]))
    >>> found.mean, round(found.low, 4), round(found.high, 4)  # 2 -+ 4.3027 / sqrt(3)
    (2.0, -0.4841, 4.4841)
    """
    from scipy import stats

    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Mean(mean, float("nan"), float("nan"))
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * float(values.std(ddof=1)) / count**0.5
    return Mean(mean, mean - margin, mean + margin)


def compared(values: Floats, others: Mapping[str, Floats]) -> dict[str, Comparison]:
    """Compare a policy with others on the same sequences.

    Parameters
    ----------
    values : array of float, shape (sequences,)
        What a metric was under the policy.
    others : mapping of str to array of float, shape (sequences,)
        And under others, by their names.

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
    """Return the p-values of the paired t-test and of Wilcoxon's test for differences, two-sided.

    Where nothing differs they are 1; of a single sequence they are not numbers.

    >>> p_values(np.zeros(4))
    (1.0, 1.0)
    """
    from scipy import stats

    if len(differences) < 2:
        return float("nan"), float("nan")
    if not differences.any():
        return 1.0, 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of differences that are all alike, or too few to say much
        t_test = stats.ttest_1samp(differences, 0.0).pvalue
        return float(t_test), float(stats.wilcoxon(differences).pvalue)


def holm(ps: Sequence[float] | Floats) -> list[float]:
    """Correct p-values for being several (Holm, Scandinavian Journal of Statistics 6, 1979).

    The smallest of n is multiplied by n, the next by n - 1 and so on; none falls below a smaller one's.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(ps, dtype=np.float64)
    order = np.argsort(values)
    factors = np.arange(len(values), 0, -1)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return [float(value) for value in corrected]
