"""Measured values of a comparison, and the significance of their differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.store import Store
from hpcsimkit.reproductions.sequences import BSLD, OF_PROMISES
from hpcsimkit.results.statistics import Comparison, Mean, compared, mean_of

__all__ = ["Scores", "Standing", "standings"]

Floats = NDArray[np.float64]


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
        """Return the values of a comparison from the stored outcomes."""
        outcomes = {row: store.outcome(task) for row, task in contest.meetings.items()}
        return cls(
            contest,
            {
                row: {measure: np.array(values, dtype=np.float64) for measure, values in outcome.items()}
                for row, outcome in outcomes.items()
            },
        )

    def of(self, row: str, measure: str = BSLD) -> Floats:
        """Return the values of a measure of a row on each sequence."""
        return self.values[row][measure]

    def mean(self, row: str, measure: str = BSLD) -> float:
        """Return the mean of a measure of a row; NaN if the row does not exist."""
        return float(self.of(row, measure).mean()) if row in self.values else float("nan")

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
