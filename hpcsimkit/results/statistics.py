"""Statistics of repeated simulations: intervals of means, paired significance tests, and average ranks.

Metrics of schedules are bounded (a slowdown is never below 1) and heavy-tailed, and so are their differences:
the symmetric interval of Student's t would include impossible values. All intervals are therefore bootstrap
intervals, bias-corrected and accelerated (BCa: Efron, Journal of the American Statistical Association 82,
1987), computed by :func:`scipy.stats.bootstrap` from `RESAMPLES` resamples. They stay within the range of the
values. With fewer than about ten replicates they are too narrow.

Replicates are independent repetitions of a simulation: sequences of jobs of an evaluation, seeds of a model
of workloads, periods of a log. Copies of a schedule are none; see :mod:`hpcsimkit.results.replicates`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "RESAMPLES",
    "SIGNIFICANT",
    "Comparison",
    "Mean",
    "Ranking",
    "compared",
    "holm",
    "mean_of",
    "means_of",
    "p_value_text",
    "p_values",
    "paired",
    "ranking_of",
    "ratio_of_means",
]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
"""Confidence level of all intervals."""

SIGNIFICANT = 0.05
"""p-value below which a difference is significant."""

RESAMPLES = 9999
"""Number of bootstrap resamples of an interval."""

ROWS = 100
"""Largest number of samples that are resampled together."""

SEED = 0
"""Random seed of the resampling, fixed so that equal values have equal intervals."""


@dataclass(frozen=True)
class Mean:
    """Mean (or ratio of means) with a confidence interval of the population value.

    Parameters
    ----------
    mean : float
        Sample mean over the replicates.
    low, high : float
        Ends of the BCa bootstrap interval; NaN for a single replicate.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Paired comparison of a policy with another one over the same replicates.

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
    lower, equal, higher : int
        Number of replicates with a value below, equal to and above that of the other policy.
    """

    difference: Mean
    relative: float
    t_test: float
    wilcoxon: float
    t_test_holm: float
    wilcoxon_holm: float
    lower: int
    equal: int
    higher: int

    def counts(self, direction: str) -> dict[str, int]:
        """Return the wins, ties and losses by replicate; empty if neither "lower" nor "higher" is better."""
        wins = {"lower": (self.lower, self.higher), "higher": (self.higher, self.lower)}.get(direction)
        return {} if wins is None else {"wins": wins[0], "ties": self.equal, "losses": wins[1]}

    @property
    def is_significant(self) -> bool:
        """Whether both corrected p-values are below 0.05."""
        return self.t_test_holm < SIGNIFICANT and self.wilcoxon_holm < SIGNIFICANT


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


def means_of(samples: Sequence[Floats]) -> list[Mean]:
    """Return the mean of each sample and its confidence interval, equal to those of `mean_of`.

    Samples of equal length are resampled together, which takes a tenth of the time. The mean of an empty
    sample is NaN.

    Examples
    --------
    >>> samples = [np.array([1.0, 1.0, 2.0, 4.0, 30.0]), np.array([]), np.ones(5)]
    >>> found = means_of(samples)
    >>> found[0] == mean_of(samples[0]), found[1].mean, found[2]
    (True, nan, Mean(mean=1.0, low=1.0, high=1.0))
    """
    found = [Mean(math.nan, math.nan, math.nan)] * len(samples)
    for length in {len(sample) for sample in samples} - {0}:
        places = [place for place, sample in enumerate(samples) if len(sample) == length]
        for first in range(0, len(places), ROWS):
            part = places[first : first + ROWS]
            table = np.array([samples[place] for place in part], dtype=np.float64)
            low, high = _intervals(_mean, table)
            for row, place in enumerate(part):
                found[place] = Mean(float(table[row].mean()), float(low[row]), float(high[row]))
    return found


def ratio_of_means(values: Floats, base: Floats) -> Mean:
    """Return the ratio of two means over the same replicates, and its confidence interval.

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
    values = np.ascontiguousarray(values)  # so that rounding does not depend on the number of samples
    return np.asarray(values.mean(axis=axis))


def _ratio(values: Floats, base: Floats, *, axis: int) -> Floats:
    return np.asarray(values.mean(axis=axis) / base.mean(axis=axis))


@lru_cache(maxsize=4096)
def _interval(statistic: Callable[..., Floats], *samples: bytes) -> tuple[float, float]:
    """Return the interval of a statistic of paired samples, given as the bytes of their float64."""
    low, high = _intervals(statistic, *map(np.frombuffer, samples))
    return float(low), float(high)


def _intervals(statistic: Callable[..., Floats], *samples: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the BCa interval of a statistic of paired samples, or of one sample in each row."""
    from scipy import stats

    if samples[0].shape[-1] < 2:
        return np.full(samples[0].shape[:-1], np.nan), np.full(samples[0].shape[:-1], np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about equal values, handled below
        found = stats.bootstrap(
            samples,
            statistic,
            axis=-1,
            n_resamples=RESAMPLES,
            batch=1 + 10**6 // samples[0].size,
            paired=len(samples) > 1,
            confidence_level=CONFIDENCE,
            method="BCa",
            random_state=np.random.default_rng(SEED),
        )
    low, high = map(np.array, found.confidence_interval)
    # All resamples are equal, or none is below (above) the statistic: the bias correction is undefined.
    undefined = ~np.isfinite(low + high)
    drawn = found.bootstrap_distribution[undefined]
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low[undefined], high[undefined] = np.quantile(drawn, tails, axis=-1)
    return low, high


def compared(values: Floats, others: Mapping[str, Floats]) -> dict[str, Comparison]:
    """Compare a policy with others on the same replicates.

    Parameters
    ----------
    values : array of float, shape (replicates,)
        Values of a metric under the policy.
    others : mapping of str to array of float, shape (replicates,)
        Values of the metric under the other policies, by name.

    Examples
    --------
    >>> one, other = np.array([1.0, 2.0, 3.0, 4.0, 9.0]), np.array([2.0, 3.5, 5.0, 7.0, 9.5])
    >>> found = compared(one, {"other": other})["other"]
    >>> found.difference.mean, round(found.relative, 3), round(found.t_test, 4), found.wilcoxon
    (-1.6, -0.296, 0.0205, 0.0625)
    >>> found.counts("higher")
    {'wins': 0, 'ties': 0, 'losses': 5}
    """
    pairs = [(values, other) for other in others.values()]
    return dict(zip(others, paired(pairs), strict=True))


def paired(pairs: Sequence[tuple[Floats, Floats]]) -> list[Comparison]:
    """Compare several pairs of samples; the p-values are corrected for all of them.

    Parameters
    ----------
    pairs : sequence of (array of float, array of float)
        Values of a metric under a policy and under another one on the same replicates, at least one.
    """
    differences = [values - other for values, other in pairs]
    ps = np.array([p_values(difference) for difference in differences]).reshape(-1, 2)
    corrected = np.array([holm(column) for column in ps.T])
    return [
        Comparison(
            difference=mean,
            relative=float(difference.mean() / other.mean()) if other.mean() else math.nan,
            t_test=float(t_test),
            wilcoxon=float(wilcoxon),
            t_test_holm=float(t_test_holm),
            wilcoxon_holm=float(wilcoxon_holm),
            lower=int((difference < 0).sum()),
            equal=int((difference == 0).sum()),
            higher=int((difference > 0).sum()),
        )
        for (_, other), difference, mean, (t_test, wilcoxon), (t_test_holm, wilcoxon_holm) in zip(
            pairs, differences, means_of(differences), ps, corrected.T, strict=True
        )
    ]


def p_values(differences: Floats) -> tuple[float, float]:
    """Return the two-sided p-values of the paired t-test and of Wilcoxon's signed-rank test.

    If all differences are 0, the p-values are 1; for a single replicate, they are NaN.

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
    Undefined p-values (NaN) do not count and remain undefined.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(ps, dtype=np.float64)
    order = np.argsort(values)
    factors = np.arange(np.count_nonzero(np.isfinite(values)), -np.count_nonzero(np.isnan(values)), -1)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return [float(value) for value in corrected]


def p_value_text(value: float) -> str:
    """Return a p-value with three digits, and a star if it is below `SIGNIFICANT`.

    >>> p_value_text(0.04321), p_value_text(0.5), p_value_text(float("nan"))
    ('0.0432*', '0.5', '')
    """
    return "" if not math.isfinite(value) else f"{value:.3g}{'*' if value < SIGNIFICANT else ''}"


# --- ranks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranking:
    """Average ranks of policies, and the difference of ranks that is significant.

    Friedman's test has the hypothesis that all policies are equal; only if it is rejected, pairs are compared
    by Nemenyi's test (Demsar, Journal of Machine Learning Research 7, 2006).

    Parameters
    ----------
    ranks : mapping of str to float
        Average rank of each policy, the best (lowest) first; ties share the mean of their ranks.
    replicates : int
        Number of replicates over which ranks are averaged.
    friedman : float
        p-value of Friedman's test, corrected for ties.
    critical_difference : float
        Difference of two average ranks above which Nemenyi's test is significant.
    left_out : int
        Number of replicates that are not ranked, as a policy has no value there. Default: 0.
    """

    ranks: Mapping[str, float]
    replicates: int
    friedman: float
    critical_difference: float
    left_out: int = 0

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Largest groups of two or more policies without a significant difference between any two."""
        names, ranks = list(self.ranks), np.array(list(self.ranks.values()))
        ends = np.searchsorted(ranks, ranks + self.critical_difference, side="right").tolist()
        beginnings = [0, *ends][: len(ends)]  # a group that ends where the one before it ends is a part of it
        return [
            tuple(names[first:end])
            for first, (end, before) in enumerate(zip(ends, beginnings, strict=True))
            if end - first > 1 and end > before
        ]


def ranking_of(values: Mapping[str, Floats], *, descending: bool = False) -> Ranking:
    """Rank policies on each replicate, and test the differences of their average ranks.

    Parameters
    ----------
    values : mapping of str to array of float, shape (replicates,)
        Values of a metric under each of three or more policies, on the same two or more replicates.
    descending : bool
        Whether the highest value has rank 1. Default: False.

    Examples
    --------
    >>> values = {"a": np.array([3.0, 2, 4, 3, 5]), "b": np.array([1.0, 1, 1, 2, 1]), "c": np.full(5, 3.0)}
    >>> found = ranking_of(values)
    >>> found.ranks, round(found.critical_difference, 3), found.groups
    ({'b': 1.0, 'c': 2.4, 'a': 2.6}, 1.482, [('b', 'c'), ('c', 'a')])
    """
    from scipy import stats

    table = np.column_stack(list(values.values()))
    replicates, policies = table.shape
    ranks = stats.rankdata(-table if descending else table, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    equal = bool((table == table[:, :1]).all())
    return Ranking(
        {list(values)[place]: float(ranks[place]) for place in order},
        replicates,
        1.0 if equal else float(stats.friedmanchisquare(*table.T).pvalue),
        _nemenyi(policies) * math.sqrt(policies * (policies + 1) / (6 * replicates)),
    )


@lru_cache
def _nemenyi(policies: int) -> float:
    """Return the critical value of Nemenyi's test: the studentized range over the square root of two."""
    from scipy import stats

    return float(stats.studentized_range.ppf(CONFIDENCE, policies, math.inf)) / math.sqrt(2)
