"""What is to be reached: metrics relative to FCFS with EASY, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.results.metrics import METRICS, Selection
from hpcsimkit.results.result import Result

REFERENCE = "fcfs+easy"
"""Policy to which metrics are relative."""

LONGEST = "max_wait_time"
"""Metric that is limited."""

COMPARED = ("mean_bounded_slowdown", "mean_wait_time")
"""Metrics of the front, whose differences are tested."""

FAIRNESS = "user_fairness"
"""Metric that may be limited: Jain's index of the users' mean bounded slowdowns."""

REPORTED = ("mean_bounded_slowdown", "mean_wait_time", "p95_wait_time", LONGEST)
"""Metrics in all tables."""

LEAST = 60.0
"""Time that is added to waits [s], so that a ratio of two short waits is near 1."""

SEVERITY = 3.0
"""Weight of the logarithms by which limits are exceeded."""

Figures = Mapping[str, float]
"""Values of metrics by name."""


def figures_of(result: Result, jobs: NDArray[np.bool_]) -> dict[str, float]:
    """Return the metrics `REPORTED`, and `FAIRNESS` where users are known, of some jobs of a result."""
    submit = result.submit_time[jobs]
    selection = Selection(jobs, int(submit.min(initial=0)), int(submit.max(initial=0)))
    known = bool((result.workload.user[jobs] >= 0).any())
    names = (*REPORTED, FAIRNESS) if known else REPORTED
    return {name: float(METRICS[name].function(result, selection)) for name in names}


class Goal(NamedTuple):
    """Metrics to lower, and the limits of the longest wait and of the fairness between users.

    Parameters
    ----------
    metrics : tuple of str
        Names of metrics among `REPORTED`, of equal weight.
    longest_wait : float
        Maximum longest wait relative to that of FCFS with EASY.
    fairness : float, optional
        Minimum fairness between users relative to that of FCFS with EASY, in (0, 1]; none by default.

    Examples
    --------
    >>> goal = Goal.named("mean bounded slowdown", 1.5)
    >>> reference = {"mean_bounded_slowdown": 8.0, "max_wait_time": 940.0}
    >>> goal.loss({"mean_bounded_slowdown": 4.0, "max_wait_time": 1440.0}, reference) == log(0.5)
    True
    >>> goal.loss({"mean_bounded_slowdown": 4.0, "max_wait_time": 2940.0}, reference) > log(0.5)
    True
    """

    metrics: tuple[str, ...]
    longest_wait: float
    fairness: float | None = None

    @classmethod
    def named(cls, objective: str, longest_wait: float) -> Goal:
        """Return the goal of an objective: names of metrics joined by ``and``."""
        metrics = tuple(part.strip().replace(" ", "_") for part in objective.split(" and "))
        for metric in metrics:
            if metric not in REPORTED:
                raise UsageError(f"--objective: unknown metric {metric!r}{nearest(metric, REPORTED)}")
        return cls(metrics, longest_wait)

    def loss(self, figures: Figures, reference: Figures) -> float:
        """Return the mean logarithm of the metrics relative to FCFS with EASY, plus a penalty.

        All metrics are of the same jobs.
        """
        ratios = [_log_ratio(figures, reference, metric) for metric in self.metrics]
        excess = max(_log_ratio(figures, reference, LONGEST) - log(self.longest_wait), 0.0)
        if self.fairness is not None:
            excess += max(log(self.fairness) - _log_ratio(figures, reference, FAIRNESS), 0.0)
        return sum(ratios) / len(ratios) + SEVERITY * excess

    def keeps_limit(self, figures: Figures, reference: Figures) -> bool:
        """Return whether the longest wait and the fairness are within their limits."""
        if self.fairness is not None and figures[FAIRNESS] < self.fairness * reference[FAIRNESS]:
            return False
        return figures[LONGEST] <= self.longest_wait * max(reference[LONGEST], LEAST)


def _log_ratio(figures: Figures, reference: Figures, metric: str) -> float:
    """Return the logarithm of a metric relative to the reference."""
    least = LEAST if METRICS[metric].unit == "s" else 0.0
    return log((figures[metric] + least) / (reference[metric] + least))
