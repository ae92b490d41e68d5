"""Is it chance? Once as the paper asked, once over days, which is what was sampled.

The paper's p-values come out if each of the twenty agents' runs counts as a sample of its own and each
baseline's days are repeated twenty times. That takes what agents have in common, the days, for chance twenty
times over; so the same question is asked again with one value a day, paired, and corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpcsimkit.campaigns.evaluation_statistics import Comparison, compared
from hpcsimkit.reproductions.masked_ppo.scores import Scores

__all__ = ["Verdict", "judged"]


@dataclass(frozen=True)
class Verdict:
    """One row of the tables against others, by one measure.

    Parameters
    ----------
    anova, t_tests : float, mapping of str to float
        p-values as in the paper: over agents x days, unpaired (Welch's test, two-sided).
    samples : int
        How many values each group has there.
    anova_of_days : float
        p-value of the analysis of variance with one value a day.
    paired : mapping of str to Comparison
        The row minus each other one, over days.
    """

    anova: float
    t_tests: Mapping[str, float]
    samples: int
    anova_of_days: float
    paired: Mapping[str, Comparison]


def judged(scores: Scores, measure: str, model: str, groups: Sequence[str], others: Sequence[str]) -> Verdict:
    """Compare the model with others.

    Parameters
    ----------
    scores : Scores
        On the days in question.
    measure : str
        What is compared.
    model : str
        The row of the agents.
    groups : sequence of str
        The paper's baselines, which the analysis of variance is about.
    others : sequence of str
        All rows that the agents are compared with.

    Examples
    --------
    Two agents on three days, and SJF; what counts as six samples in the paper are three days:

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
    """Return a row's mean of each day so often that there are as many values as the model has."""
    by_day = scores.by_day(row, measure)
    return np.tile(by_day, size // len(by_day))
