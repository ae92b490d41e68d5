"""Measured values of a comparison, and the significance of their differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.store import Store
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.sequences import BSLD, OF_PROMISES
from hpcsimkit.results.statistics import Comparison, Mean, compared, mean_of, paired

Floats = NDArray[np.float64]

VALIDATION = "validation"


@dataclass(frozen=True)
class Standing:
    """Row of a comparison table: the mean of a policy, and its comparison with the policy under test.

    Parameters
    ----------
    mean : Mean
        Mean of a measure over the sequences.
    against : Comparison or None
        Paired differences, policy under test minus this one; None for the policy under test itself.
    """

    mean: Mean
    against: Comparison | None

    @property
    def is_beaten(self) -> bool:
        """Whether the policy under test has a significantly lower mean than this one.

        Both p-values, of the paired t-test and of Wilcoxon's signed-rank test, each corrected by Holm's
        method, must be below 0.05.
        """
        found = self.against
        return found is not None and found.difference.mean < 0 and found.is_significant


def standings(values: Mapping[str, Floats], one: str) -> dict[str, Standing]:
    """Compare one row with all others on the same sequences.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Values of each row.
    one : str
        Row of the policy under test; p-values are corrected for the number of other rows (Holm).

    Examples
    --------
    >>> rows = standings({"a": np.array([1.0, 2.0, 4.0]), "b": np.array([2.0, 4.0, 5.0])}, "a")
    >>> rows["a"].against is None, round(rows["b"].against.difference.mean, 3)
    (True, -1.333)
    """
    found = compared(values[one], {name: each for name, each in values.items() if name != one})
    return {name: Standing(mean_of(each), found.get(name)) for name, each in values.items()}


@dataclass(frozen=True)
class Verdict:
    """Comparison of a row with the baseline on the same sequences.

    Parameters
    ----------
    mean : Mean
        Mean of the row.
    against : Comparison
        Paired differences, row minus baseline.
    ratio : Mean
        Geometric mean of the ratios of row to baseline, with its interval (that of the logarithms' mean).
    """

    mean: Mean
    against: Comparison
    ratio: Mean

    @property
    def is_better(self) -> bool:
        """Whether the row is significantly lower.

        Both p-values are below 0.05, and both the mean and most sequences are lower.
        """
        found = self.against
        return found.is_significant and found.difference.mean < 0 and found.lower > found.higher

    @property
    def is_worse(self) -> bool:
        """Whether the row is significantly higher."""
        found = self.against
        return found.is_significant and found.difference.mean > 0 and found.lower < found.higher


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
    >>> half = found["half"].against
    >>> round(half.relative, 3), round(found["half"].ratio.mean, 3), half.lower, half.higher
    (-0.5, 0.5, 3, 0)
    >>> round(half.t_test_holm, 4), round(half.wilcoxon_holm, 4)  # 2 x 0.1181, 2 x 0.25
    (0.2362, 0.5)
    """
    found = paired([(each, rival) for each in values.values()])
    return {
        name: Verdict(mean_of(each), against, _geometric_mean(each / rival))
        for (name, each), against in zip(values.items(), found, strict=True)
    }


def _geometric_mean(ratios: Floats) -> Mean:
    found = mean_of(np.log(ratios))
    return Mean(*(float(np.exp(each)) for each in (found.mean, found.low, found.high)))


@dataclass(frozen=True)
class Scores:
    """Measured values of a comparison.

    Parameters
    ----------
    contest : Comparison
        Comparison of the plan with the values.
    values : mapping of str to mapping of str to array of float, shape (sequences,)
        Values by row and measure.

    Examples
    --------
    >>> values = {"ours": {BSLD: np.arange(8.0)}, "theirs": {BSLD: np.arange(8.0) + [1, 2, 1, 2, 1, 2, 1, 2]}}
    >>> scores = Scores(None, values)
    >>> scores.mean("theirs"), scores.mean("nobody"), scores.standings("ours")["theirs"].is_beaten
    (5.0, nan, True)
    """

    contest: Any  # a comparison of a plan, whose module need not be known here
    values: Mapping[str, Mapping[str, Floats]]

    @classmethod
    def kept(cls, contest: Any, store: Store) -> Scores:
        """Return the values of a comparison from the stored outcomes.

        Rows on several copies of each sequence have the means over the copies. Those of agents that are
        chosen by a validation have its best score as a measure, `VALIDATION`.
        """
        outcomes = {row: store.outcome(task) for row, task in contest.meetings.items()}
        found = {
            row: {measure: _means(values, contest.parts_of_values) for measure, values in outcome.items()}
            for row, outcome in outcomes.items()
        }
        for row, task in contest.meetings.items():
            learner = task.contestant.learner
            if learner is not None and getattr(learner, "validate", None) is not None:
                best = float(store.outcome(Training(learner))["best"])
                found[row][VALIDATION] = np.full(len(contest.parts_of_values), best)
        return cls(contest, found)

    def members(self, row: str) -> list[str]:
        """Return the policies of a row: itself, or the agents of a family; none if it does not exist."""
        if row in self.values or self.contest is None:
            return [row] * (row in self.values)
        return [each.name for each in self.contest.families().get(row, ())]

    def of(self, row: str, measure: str = BSLD) -> Floats:
        """Return the values of a measure of a row on each sequence: the mean over the agents of a family."""
        members = self.members(row) or [row]
        if len(members) == 1:
            return self.values[members[0]][measure]
        return np.mean([self.values[each][measure] for each in members], axis=0)

    def of_agents(self, row: str, measure: str = BSLD) -> Floats:
        """Return the mean over the sequences of each agent of a row."""
        return np.array([self.values[each][measure].mean() for each in self.members(row)])

    def mean(self, row: str, measure: str = BSLD) -> float:
        """Return the mean of a measure of a row; NaN if the row does not exist."""
        return float(self.of(row, measure).mean()) if self.members(row) else float("nan")

    def promises(self, row: str) -> tuple[float, float, float]:
        """Return the numbers of reservations and of violations of a row, and the mean delay [s]."""
        made, broken, delay = (self.of(row, measure) for measure in OF_PROMISES)
        total = float(broken.sum())
        return float(made.sum()), total, float((broken * delay).sum()) / max(total, 1.0)

    def standings(
        self, one: str, rows: Iterable[str] | None = None, measure: str = BSLD
    ) -> dict[str, Standing]:
        """Compare a row with some rows, or with all; p-values are corrected for their number."""
        names = list(self.values if rows is None else dict.fromkeys([*rows, one]))
        return standings({name: self.of(name, measure) for name in names}, one)

    def verdicts(self, rival: str, rows: Iterable[str], measure: str = BSLD) -> dict[str, Verdict]:
        """Compare rows with a rival; p-values are corrected for the number of rows."""
        names = tuple(rows)
        key = rival, names, measure
        if key not in self._verdicts:
            values = {name: self.of(name, measure) for name in names}
            self._verdicts[key] = verdicts(values, self.of(rival, measure))
        return self._verdicts[key]

    @cached_property
    def _verdicts(self) -> dict[tuple[str, tuple[str, ...], str], dict[str, Verdict]]:
        return {}


class Joined(Scores):
    """Scores on the sequences of several comparisons; some agents are in one of them only.

    Examples
    --------
    >>> one, other = (
    ...     {"SJF": {BSLD: np.array([n])}, f"agent {n}": {BSLD: np.array([2 * n])}}
    ...     for n in (1.0, 3.0)
    ... )
    >>> both = Joined.of_parts([Scores(None, one), Scores(None, other)])
    >>> both.of("SJF").tolist(), both.of("agent 3.0").tolist()
    ([1.0, 3.0], [6.0])
    """

    parts: Sequence[Scores]

    @classmethod
    def of_parts(cls, parts: Sequence[Scores]) -> Joined:
        """Return the scores of comparisons on different sequences as one."""
        first, names = parts[0].contest, dict.fromkeys(name for each in parts for name in each.values)
        values = {
            name: {
                measure: np.concatenate([each.values[name][measure] for each in parts if name in each.values])
                for measure in next(each.values[name] for each in parts if name in each.values)
            }
            for name in names
        }
        found = cls(first and first.joined([each.contest for each in parts]), values)
        vars(found)["parts"] = parts
        return found

    def of(self, row: str, measure: str = BSLD) -> Floats:
        """Return the values of a measure on each sequence of the comparisons with agents of the row."""
        return np.concatenate([each.of(row, measure) for each in self.parts if each.members(row)])


def _means(values: Any, parts: Sequence[int]) -> Floats:
    """Return the means over parts of some values, each of which may have several copies in a row.

    >>> _means([1.0, 3.0, 5.0], [2, 1]).tolist(), _means([1.0, 3.0, 5.0, 7.0], [1, 1]).tolist()
    ([2.0, 5.0], [2.0, 6.0])
    """
    found: Floats = np.array(values, dtype=np.float64)
    copies = len(found) // sum(parts)
    ends = np.cumsum(np.array(parts) * copies)[:-1]
    return found if len(found) == len(parts) else np.array([each.mean() for each in np.split(found, ends)])
