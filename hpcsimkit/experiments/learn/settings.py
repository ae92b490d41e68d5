"""Settings of a study: a log, the goal, and the effort of the search."""

from __future__ import annotations

from pydantic import Field, field_validator

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.goal import Goal
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.experiments.settings.engine_table import Parallel
from hpcsimkit.experiments.source import Source
from hpcsimkit.kernel.policy import Policy


class Learning(Source, Parallel):
    """Settings of a study that learns an order from a log.

    Keys of the jobs are those of a :class:`~hpcsimkit.experiments.source.Source`.

    Parameters
    ----------
    objective : str
        Names of the metrics to lower, joined by ``and``: mean bounded slowdown, mean wait time, p95 wait
        time. Default: ``"mean bounded slowdown and mean wait time"``.
    longest_wait : float
        Maximum longest wait relative to that of FCFS with EASY, at least 1. Default: 1.5.
    fairness : float, optional
        Minimum fairness between users (Jain's index of their mean bounded slowdowns) relative to that of FCFS
        with EASY, above 0 and at most 1. Default: no limit.
    evaluations : int
        Number of simulations of the search, 20 or more. Default: 360.
    choose_from, test_from : int, optional
        Numbers of the weeks, from 0, with which the second and the third part of the log begin; by default
        one and two thirds of the whole weeks.
    guard : bool
        Whether a learned order has a guard: it falls back to the order of the best heuristic while that is
        better in recent weeks, see :class:`~hpcsimkit.policies.portfolio.guarded.Guarded`. Default: False.
    perfect : bool
        Whether the parameters are searched with actual run times as predictions as well, which shows how much
        better predictions could gain. Default: False.
    beside : list of str
        Names of further policies to test on the last part, such as agents that were trained on the first two.
        Default: none.

    Examples
    --------
    >>> Learning(objective="mean wait time").goal.metrics
    ('mean_wait_time',)
    """

    objective: str = "mean bounded slowdown and mean wait time"
    longest_wait: float = Field(1.5, ge=1, allow_inf_nan=False)
    fairness: float | None = Field(None, gt=0, le=1)
    evaluations: int = Field(360, ge=20)
    choose_from: int | None = Field(None, ge=1)
    test_from: int | None = Field(None, ge=2)
    guard: bool = False
    perfect: bool = False
    beside: list[str] = Field(default_factory=list)

    @field_validator("objective")
    @classmethod
    def _known(cls, objective: str) -> str:
        try:
            Goal.named(objective, 1.0)
        except UsageError as error:
            raise ValueError(str(error).removeprefix("--objective: ")) from None
        return objective

    def policy_named(self, name: str) -> Policy:
        """Return the policy of a name; only those of `beside` may refer to code.

        Other names are made by the study, or read from its files.
        """
        return self.policy_of(name, self.trust if name in self.beside else Trust(()))

    @property
    def goal(self) -> Goal:
        """The metrics to lower, and the limits."""
        return Goal.named(self.objective, self.longest_wait)._replace(fairness=self.fairness)
