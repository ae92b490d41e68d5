"""Significance tests, as in the paper and with days as samples.

The paper's p-values are reproduced if each of the twenty agents' runs counts as a sample of its own and each
baseline's days are repeated twenty times. This counts the agents' common source of variation, the days,
twenty times as independent. The same hypotheses are therefore tested again with one value per day, paired,
and corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpcsimkit.reproductions.masked_ppo.scores import Scores
from hpcsimkit.results.statistics import Comparison, compared

__all__ = ["Verdict", "judged"]


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
