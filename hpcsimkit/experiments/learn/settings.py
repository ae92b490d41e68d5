"""Settings of a study: a log, guards and tests to try, the goal."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.goal import Goal
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.experiments.settings.engine_table import Parallel
from hpcsimkit.experiments.source import Source
from hpcsimkit.kernel.policy import Policy


class Learning(Source, Parallel):
    """Settings of a study that chooses a policy for a log.

    Keys of the jobs are those of a :class:`~hpcsimkit.experiments.source.Source`.

    Parameters
    ----------
    times : list of float
        Multiples of the running mean wait from which a guard puts jobs first. Default: 10 and 30.
    seconds : list of int
        Time limits of tests [s]. Default: 60 and 300.
    objective : str
        Names of the metrics to lower, joined by ``and``: mean bounded slowdown, mean wait time, p95 wait
        time. Default: ``"mean bounded slowdown and mean wait time"``.
    longest_wait : float
        Maximum longest wait relative to that of FCFS with EASY, at least 1. Default: 1.5.
    fairness : float, optional
        Minimum fairness between users (Jain's index of their mean bounded slowdowns) relative to that of FCFS
        with EASY, above 0 and at most 1. Default: no limit.
    test_from : int, optional
        Number of the week, from 0, with which the last part of the log begins; by default two thirds of the
        whole weeks.
    beside : list of str
        Names of further policies to test on the last part, such as agents that were trained on the past.
        Default: none.

    Examples
    --------
    >>> Learning(objective="mean wait time").goal.metrics
    ('mean_wait_time',)
    """

    times: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: [10.0, 30.0]
    )
    seconds: list[Annotated[int, Field(ge=1)]] = Field(default_factory=lambda: [60, 300])
    objective: str = "mean bounded slowdown and mean wait time"
    longest_wait: float = Field(1.5, ge=1, allow_inf_nan=False)
    fairness: float | None = Field(None, gt=0, le=1)
    test_from: int | None = Field(None, ge=1)
    beside: list[str] = Field(default_factory=list)

    @field_validator("longest_wait", "fairness", mode="before")
    @classmethod
    def _number(cls, factor: object) -> object:
        """Return the number of a factor such as 1.5x."""
        if not isinstance(factor, str):
            return factor
        try:
            return float(factor.removesuffix("x"))
        except ValueError:
            raise ValueError(f"a factor such as 1.5x is needed, found {factor!r}") from None

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
