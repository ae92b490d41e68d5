"""Measurements of all runs, in the order of days, and their significance tests.

The paper's p-values are reproduced if each of the twenty agents' runs counts as a sample of its own and each
baseline's days are repeated twenty times. This counts the agents' common source of variation, the days,
twenty times as independent. The same hypotheses are therefore tested again with one value per day, paired,
and corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.results.statistics import Comparison, compared

__all__ = ["MEASURES", "UTILISATION", "WAIT", "WEIGHTED", "Scores", "Verdict", "judged"]


Floats = NDArray[np.float64]

WAIT, UTILISATION, WEIGHTED = MEASURES = ("wait", "utilisation", "weighted")
"""Mean wait [min], the paper's utilisation [%], and the one weighted by time and capacity [%]."""


@dataclass(frozen=True)
class Scores:
    """Measurements of all runs.

    Parameters
    ----------
    days : sequence of str
        Days of the measurements.
    rows : mapping of str to array of float, shape (runs, days, 3)
        Runs of each row of the tables, with measures in the order of `MEASURES`.
    """

    days: Sequence[str]
    rows: Mapping[str, Floats]

    @classmethod
    def of(cls, outcomes: Iterable[tuple[str, Sequence[Sequence[Any]]]], days: Sequence[str]) -> Scores:
        """Gather outcomes of tasks: pairs of a row, and its ``[day, seed, wait, utilisation, weighted]``.

        >>> scores = Scores.of([("a", [["d1", 0, 1.0, 2.0, 3.0], ["d2", 0, 5.0, 6.0, 7.0]])], ["d2", "d1"])
        >>> scores.values("a", "wait").tolist()
        [[5.0, 1.0]]
        """
        rows: dict[str, list[Floats]] = {}
        for row, outcome in outcomes:
            runs: dict[int, dict[str, Sequence[float]]] = {}
            for day, seed, *measured in outcome:
                runs.setdefault(seed, {})[day] = measured
            rows.setdefault(row, []).extend(np.array([run[day] for day in days]) for run in runs.values())
        return cls(days, {row: np.stack(runs) for row, runs in rows.items()})

    def on(self, days: Sequence[str]) -> Scores:
        """Return the scores of some days."""
        places = [self.days.index(day) for day in days]
        return Scores(days, {row: values[:, places] for row, values in self.rows.items()})

    def values(self, row: str, measure: str) -> Floats:
        """Return the values of a measure, shape (runs, days)."""
        return self.rows[row][:, :, MEASURES.index(measure)]

    def by_day(self, row: str, measure: str) -> Floats:
        """Return the mean over runs, shape (days,)."""
        return self.values(row, measure).mean(axis=0)

    def mean(self, row: str, measure: str) -> float:
        """Return the mean over runs and days."""
        return float(self.values(row, measure).mean())

    def spread(self, row: str, measure: str) -> float | None:
        """Return the standard deviation of the means of runs, or None for a single run."""
        of_runs = self.values(row, measure).mean(axis=1)
        return float(of_runs.std(ddof=1)) if len(of_runs) > 1 else None


@dataclass(frozen=True)
class Verdict:
    """Comparison of a row of the tables with others, by one measure.

    Parameters
    ----------
    anova, t_tests : float, mapping of str to float
        p-values as in the paper: over agents x days, unpaired (Welch's test, two-sided).
    samples : int
        Number of values in each group of these tests.
    anova_of_days : float
        p-value of the analysis of variance with one value per day.
    paired : mapping of str to Comparison
        Paired comparisons over days, the row minus each other one.
    """

    anova: float
    t_tests: Mapping[str, float]
    samples: int
    anova_of_days: float
    paired: Mapping[str, Comparison]


def judged(scores: Scores, measure: str, model: str, groups: Sequence[str], others: Sequence[str]) -> Verdict:
    """Compare the model with other rows.

    Parameters
    ----------
    scores : Scores
        Scores on the days of the comparison.
    measure : str
        Measure to compare.
    model : str
        Row of the agents.
    groups : sequence of str
        Groups of the analysis of variance: the paper's baselines.
    others : sequence of str
        All rows to compare the agents with.

    Examples
    --------
    Two agents on three days, and SJF; the paper's six samples are three days:

    >>> days = ["2021-05-01", "2021-05-02", "2021-05-03"]
    >>> waits = {"agents": [[[1.0], [4.0], [9.0]], [[2.0], [4.0], [8.0]]], "SJF": [[[3.0], [5.0], [12.0]]]}
    >>> scores = Scores(days, {row: np.array(values) for row, values in waits.items()})
    >>> found = judged(scores, "wait", "agents", ["SJF"], ["SJF"])
    >>> found.samples, round(found.t_tests["SJF"], 3)
    (6, 0.379)
    >>> round(found.paired["SJF"].difference.mean, 3), round(found.paired["SJF"].t_test, 3)
    (-2.0, 0.12)
    """
    from scipy import stats

    ours = scores.values(model, measure).ravel()
    repeated = {row: _repeated(scores, row, measure, len(ours)) for row in others}
    t_tests = {row: stats.ttest_ind(ours, values, equal_var=False).pvalue for row, values in repeated.items()}
    by_day = {row: scores.by_day(row, measure) for row in others}
    own = scores.by_day(model, measure)
    return Verdict(
        anova=float(stats.f_oneway(ours, *(repeated[row] for row in groups)).pvalue),
        t_tests={row: float(p) for row, p in t_tests.items()},
        samples=len(ours),
        anova_of_days=float(stats.f_oneway(own, *(by_day[row] for row in groups)).pvalue),
        paired=compared(own, by_day),
    )


def _repeated(scores: Scores, row: str, measure: str, size: int) -> np.ndarray:
    """Return a row's daily means, repeated to the model's number of values."""
    by_day = scores.by_day(row, measure)
    return np.tile(by_day, size // len(by_day))
