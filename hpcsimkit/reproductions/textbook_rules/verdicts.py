"""Is a row better than the better one of the heuristics? Paired, and corrected for looking often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.campaigns.evaluation_statistics import Mean, holm, mean_of, p_values
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.sequences import BSLD, SIGNIFICANT
from hpcsimkit.reproductions.textbook_rules.contest import RIVALS, Contest

__all__ = ["Judged", "Verdict", "judged", "verdicts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """How a row does against the rival, on the same sequences.

    Parameters
    ----------
    mean : Mean
        Of the row.
    difference : Mean
        The row minus the rival.
    relative : float
        The same as a share of the rival's mean.
    ratio : Mean
        The row over the rival: geometric mean, and its interval (that of the logarithms' mean).
    t_test, wilcoxon : float
        p-values of the paired t-test and of Wilcoxon's signed-rank test of the differences, two-sided,
        corrected by Holm's method, each test for itself.
    below, above : int
        Sequences on which the row has less than the rival, and more.
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
        """Whether the row has less for sure: both p-values below 0.05, and mean and most sequences agree."""
        return self._by_both_tests and self.difference.mean < 0 and self.below > self.above

    @property
    def is_worse(self) -> bool:
        """Whether it has more for sure."""
        return self._by_both_tests and self.difference.mean > 0 and self.below < self.above

    @property
    def _by_both_tests(self) -> bool:
        return self.t_test < SIGNIFICANT and self.wilcoxon < SIGNIFICANT


def verdicts(values: Mapping[str, Floats], rival: Floats) -> dict[str, Verdict]:
    """Compare rows with a rival on the same sequences.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Of each row, more than 0; p-values are corrected for the number of rows.
    rival : array of float, shape (sequences,)
        Of the rival.

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
        mean=mean_of(values), difference=difference, relative=difference.mean / float(rival.mean()),
        ratio=ratio, t_test=t_test, wilcoxon=wilcoxon, below=int((values < rival).sum()),
        above=int((values > rival).sum()),
    )  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """A log with everything that was measured, and what it says.

    Parameters
    ----------
    scores : Scores
        What was measured.
    rival : str
        The row of the better heuristic: that with the lower mean on the very sequences that everybody is
        tested on, so that no agent wins because the wrong heuristic was picked.
    learned, others : mapping of str to Verdict
        Of trained agents, and of all other rows but the rival; p-values are corrected in each for itself.
    """

    scores: Scores[Contest]
    rival: str
    learned: Mapping[str, Verdict]
    others: Mapping[str, Verdict]

    @property
    def name(self) -> str:
        """Of the log."""
        return self.scores.contest.trace.name

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Of all rows but the rival, in their order."""
        found = {**self.learned, **self.others}
        return {row: found[row] for row in self.scores.values if row in found}

    @property
    def better(self) -> list[str]:
        """Learned rows that have less than the rival for sure."""
        return [row for row, verdict in self.learned.items() if verdict.is_better]

    @property
    def worse(self) -> list[str]:
        """Learned rows that have more for sure."""
        return [row for row, verdict in self.learned.items() if verdict.is_worse]

    def ratios(self) -> dict[str, Floats]:
        """Return every row over the rival, sequence by sequence."""
        rival = self.scores.of(self.rival)
        return {row: self.scores.of(row) / rival for row in self.scores.values if row != self.rival}


def judged(scores: Scores[Contest]) -> Judged:
    """Pick the better heuristic, and compare everybody with it."""
    rival = min(RIVALS, key=scores.mean)
    learned = scores.contest.learned
    others = [row for row in scores.values if row != rival and row not in learned]
    return Judged(scores, rival, _against(scores, learned, rival), _against(scores, others, rival))


def _against(scores: Scores[Contest], rows: Iterable[str], rival: str) -> dict[str, Verdict]:
    return verdicts({row: scores.of(row, BSLD) for row in rows}, scores.of(rival, BSLD))
