"""Paired comparisons of rows with the better heuristic, corrected for multiple testing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.sequences import BSLD
from hpcsimkit.reproductions.textbook_rules.contest import RIVALS, Contest
from hpcsimkit.results.statistics import SIGNIFICANT, Mean, holm, mean_of, p_values

__all__ = ["Judged", "Verdict", "judged", "verdicts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """Comparison of a row with the baseline on the same sequences.

    Parameters
    ----------
    mean : Mean
        Mean of the row.
    difference : Mean
        Mean difference, row minus baseline.
    relative : float
        Mean difference as a share of the baseline's mean.
    ratio : Mean
        Geometric mean of the ratios of row to baseline, with its interval (that of the logarithms' mean).
    t_test, wilcoxon : float
        p-values of the paired t-test and of Wilcoxon's signed-rank test of the differences, two-sided, each
        corrected separately by Holm's method.
    below, above : int
        Number of sequences on which the row is below, and above, the baseline.
    """

    mean: Mean
    difference: Mean
    relative: float
    ratio: Mean
    t_test: float
    wilcoxon: float
    below: int
    above: int

    @property
    def is_better(self) -> bool:
        """Whether the row is significantly lower.

        Both p-values are below 0.05, and both the mean and most sequences are lower.
        """
        return self._by_both_tests and self.difference.mean < 0 and self.below > self.above

    @property
    def is_worse(self) -> bool:
        """Whether the row is significantly higher."""
        return self._by_both_tests and self.difference.mean > 0 and self.below < self.above

    @property
    def _by_both_tests(self) -> bool:
        return self.t_test < SIGNIFICANT and self.wilcoxon < SIGNIFICANT


def verdicts(values: Mapping[str, Floats], rival: Floats) -> dict[str, Verdict]:
    """Compare rows with a baseline on the same sequences.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Positive values of each row; p-values are corrected for the number of rows.
    rival : array of float, shape (sequences,)
        Values of the baseline.

    Examples
    --------
    >>> rival = np.array([2.0, 4.0, 8.0])
    >>> found = verdicts({"half": rival / 2, "same": rival}, rival)
    >>> half = found["half"]
    >>> round(half.relative, 3), round(half.ratio.mean, 3), half.below, half.above
    (-0.5, 0.5, 3, 0)
    >>> round(half.t_test, 4), round(half.wilcoxon, 4), found["same"].t_test  # 2 x 0.1181, 2 x 0.25
    (0.2362, 0.5, 1.0)
    """
    ps = np.array([p_values(each - rival) for each in values.values()]).reshape(-1, 2)
    t_tests, wilcoxons = (holm(column) for column in ps.T)
    return {
        name: _verdict(each, rival, t_test, wilcoxon)
        for (name, each), t_test, wilcoxon in zip(values.items(), t_tests, wilcoxons, strict=True)
    }


def _verdict(values: Floats, rival: Floats, t_test: float, wilcoxon: float) -> Verdict:
    logarithms = mean_of(np.log(values / rival))
    ratio = Mean(*(float(np.exp(each)) for each in (logarithms.mean, logarithms.low, logarithms.high)))
    difference = mean_of(values - rival)
    return Verdict(
        mean=mean_of(values),
        difference=difference,
        relative=difference.mean / float(rival.mean()),
        ratio=ratio,
        t_test=t_test,
        wilcoxon=wilcoxon,
        below=int((values < rival).sum()),
        above=int((values > rival).sum()),
    )


@dataclass(frozen=True)
class Judged:
    """Measurements of a log, with the comparisons of its rows.

    Parameters
    ----------
    scores : Scores
        Measurements.
    rival : str
        Row of the better heuristic: the one with the lower mean on the test sequences themselves, so that no
        agent wins because the wrong heuristic was picked.
    learned, others : mapping of str to Verdict
        Comparisons of trained agents, and of all other rows but the baseline; p-values are corrected
        separately in each.
    """

    scores: Scores[Contest]
    rival: str
    learned: Mapping[str, Verdict]
    others: Mapping[str, Verdict]

    @property
    def name(self) -> str:
        """Name of the log."""
        return self.scores.contest.trace.name

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Comparisons of all rows but the baseline, in their order."""
        found = {**self.learned, **self.others}
        return {row: found[row] for row in self.scores.values if row in found}

    @property
    def best(self) -> str:
        """Learned row with the lowest mean."""
        return min(self.learned, key=lambda row: self.learned[row].mean.mean)

    @property
    def better(self) -> list[str]:
        """Learned rows significantly below the baseline."""
        return [row for row, verdict in self.learned.items() if verdict.is_better]

    @property
    def worse(self) -> list[str]:
        """Learned rows significantly above the baseline."""
        return [row for row, verdict in self.learned.items() if verdict.is_worse]

    def ratios(self) -> dict[str, Floats]:
        """Return the ratios of every row to the baseline, sequence by sequence."""
        rival = self.scores.of(self.rival)
        return {row: self.scores.of(row) / rival for row in self.scores.values if row != self.rival}


def judged(scores: Scores[Contest]) -> Judged:
    """Pick the better heuristic, and compare all other rows with it."""
    rival = min(RIVALS, key=scores.mean)
    learned = scores.contest.learned
    others = [row for row in scores.values if row != rival and row not in learned]
    return Judged(scores, rival, _against(scores, learned, rival), _against(scores, others, rival))


def _against(scores: Scores[Contest], rows: Iterable[str], rival: str) -> dict[str, Verdict]:
    return verdicts({row: scores.of(row, BSLD) for row in rows}, scores.of(rival, BSLD))
