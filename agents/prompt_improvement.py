"""The improvement over a baseline, paid as it is lost: jobs that wait cost something while they wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from hpcsimkit.agents.rewards import Improvement
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.policy import Policy
from hpcsimkit.system import System

__all__ = ["PromptImprovement", "PromptRatio"]

INTERACTIVE = 10
"""Run times below it count as it [s], as in the bounded slowdown."""


class PromptImprovement(Improvement):
    """What an :class:`~hpcsimkit.agents.rewards.Improvement` pays at the end, paid decision by decision.

    At each decision the metric is reckoned from what has come so far: the waiting of jobs that have started,
    and of those that wait. What it has risen since the last decision is paid at once, by the same formula.
    The sum over an episode is therefore exactly what an `Improvement` pays, less what it would pay if the
    metric were 0 (1 for ``percentage`` and ``bounded``): all orders of policies are the same. But a learner
    need not guess any more which of hundreds of decisions it was. It reads run times, as rewards may.

    Parameters
    ----------
    baseline, kind
        As of :class:`~hpcsimkit.agents.rewards.Improvement`.
    metric : {"mean_bounded_slowdown", "mean_wait_time", "max_bounded_slowdown"}
        What is to become lower. (Of the maximum, jobs that have started are known.)

    Raises
    ------
    UsageError
        When a run begins: a parameter is not understood.

    Examples
    --------
    >>> from hpcsimkit.policies import FCFS
    >>> PromptImprovement(FCFS(), "mean_wait_time")
    PromptImprovement(baseline=FCFS(), metric='mean_wait_time')
    """

    def __init__(
        self, baseline: Policy, metric: str = "mean_bounded_slowdown",
        kind: Literal["native", "percentage", "win-loss", "bounded"] = "percentage",
    ) -> None:  # fmt: skip
        super().__init__(baseline, metric, kind)

    def on_begin(self, system: System) -> None:
        """Let the baseline run; nobody has waited yet."""
        if self.metric not in ACCOUNTS:
            known = ", ".join(ACCOUNTS)
            raise UsageError(f"a metric that accrues is needed, one of {known}, found {self.metric!r}")
        super().on_begin(system)
        self._account = ACCOUNTS[self.metric](system)
        self._paid = self.worth(0.0)
        self._over = False

    def on_submit(self, job: Job, system: System) -> None:
        """One more waits."""
        self._account.submit(job, system.now)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """One fewer waits."""
        self._account.start(job, system.now)

    def on_reject(self, job: Job, system: System) -> None:
        """One fewer waits, and never runs."""
        self._account.leave(job, system.now)

    def on_finish(self, system: System) -> None:
        """Measure what has come of it."""
        super().on_finish(system)
        self._over = True

    def take(self, system: System) -> float:
        """Return what the improvement has lost since it was last asked."""
        worth = self._earned if self._over else self.worth(self._account.value(system.now))
        lost, self._paid = worth - self._paid, worth
        return lost


class PromptRatio(PromptImprovement):
    """By how much a metric is multiplied, on a logarithmic scale, paid decision by decision.

    Each halving is worth the same. (A bounded improvement hardly tells 5 from 50 where the baseline has 500,
    and that is where most is to be gained of a mean over sequences.) The sum over an episode is
    log((1 + baseline's) / (1 + ours)), less what that would be if ours were 0: it is -log(1 + ours).

    Parameters
    ----------
    baseline, metric
        As of :class:`PromptImprovement`. The sum does not depend on the baseline.

    Raises
    ------
    UsageError
        When a run begins: a parameter is not understood.

    Examples
    --------
    >>> from hpcsimkit.policies import FCFS
    >>> PromptRatio(FCFS(), "mean_wait_time")
    PromptRatio(baseline=FCFS(), metric='mean_wait_time')
    """

    def __init__(self, baseline: Policy, metric: str = "mean_bounded_slowdown") -> None:
        super().__init__(baseline, metric)

    def worth(self, value: float) -> float:
        """Return what is paid for a value of the metric in this episode."""
        return math.log((1 + self._base) / (1 + value))


class _Mean:
    """The mean over all jobs of a sum that grows while a job waits.

    Parameters
    ----------
    rates : array of float, shape (jobs,)
        By how much that of a job grows in a second, over the number of jobs.
    at_start : callable
        Returns the sum of a job that starts after so many seconds, over the number of jobs.
    """

    def __init__(self, rates: np.ndarray, at_start: Callable[[int, int], float], now: int) -> None:
        self._rates: list[float] = rates.tolist()
        self._at_start = at_start
        self._since, self._rate, self._sum = now, 0.0, 0.0

    def submit(self, job: Job, now: int) -> None:
        self._count(now)
        self._rate += self._rates[job.index]

    def start(self, job: Job, now: int) -> None:
        self.leave(job, now)
        wait = now - job.submit_time
        self._sum += self._at_start(job.index, wait) - wait * self._rates[job.index]

    def leave(self, job: Job, now: int) -> None:
        self._count(now)
        self._rate -= self._rates[job.index]

    def value(self, now: int) -> float:
        self._count(now)
        return self._sum

    def _count(self, now: int) -> None:
        self._sum += self._rate * (now - self._since)
        self._since = now


class _Largest:
    """The largest bounded slowdown of the jobs that have started."""

    def __init__(self, system: System) -> None:
        self._slowdown = _slowdown_of(system)
        self._largest = 0.0

    def submit(self, job: Job, now: int) -> None:
        pass

    def start(self, job: Job, now: int) -> None:
        self._largest = max(self._largest, self._slowdown(job.index, now - job.submit_time))

    def leave(self, job: Job, now: int) -> None:
        pass

    def value(self, now: int) -> float:
        return self._largest


def _slowdown_of(system: System) -> Callable[[int, int], float]:
    """Return the bounded slowdown of a job that starts after so many seconds."""
    run_times: list[int] = system.workload.run_time.tolist()

    def slowdown(row: int, wait: int) -> float:
        return max(1.0, (wait + run_times[row]) / max(run_times[row], INTERACTIVE))

    return slowdown


def _mean_slowdown(system: System) -> _Mean:
    jobs, slowdown = len(system.workload), _slowdown_of(system)
    rates = 1 / np.maximum(system.workload.run_time, INTERACTIVE) / jobs
    return _Mean(rates, lambda row, wait: slowdown(row, wait) / jobs, system.now)


def _mean_wait(system: System) -> _Mean:
    jobs = len(system.workload)
    return _Mean(np.full(jobs, 1 / jobs), lambda _, wait: wait / jobs, system.now)


ACCOUNTS: Mapping[str, Callable[[System], _Mean | _Largest]] = {
    "mean_bounded_slowdown": _mean_slowdown,
    "mean_wait_time": _mean_wait,
    "max_bounded_slowdown": _Largest,
}
"""How metrics accrue."""
