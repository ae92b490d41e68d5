"""Dense forms of the improvement over a baseline: waiting jobs cost reward while they wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System

__all__ = ["PromptImprovement", "PromptRatio"]

INTERACTIVE = 10
"""Lower bound of the run time in the denominator [s], as in the bounded slowdown."""


class PromptImprovement(Improvement):
    """Improvement as a dense reward, with a share at each decision.

    At each decision the metric is computed from the waiting so far, of started and of waiting jobs. Its
    increase since the last decision is the reward, by the same formula. The sum over an episode is therefore
    exactly the `Improvement`, less its value for a metric of 0 (1 for ``percentage`` and ``bounded``), so it
    ranks policies in the same order. With a warm-up, it is the `Improvement` less its value for the metric at
    the first decision: another constant of the episode, which no decision of the agent changes. It assigns
    credit to single decisions, of which an episode has hundreds. It reads run times, as rewards may.

    Parameters
    ----------
    baseline, kind
        Parameters of :class:`~hpcsimkit.agents.spaces.rewards.Improvement`.
    metric : {"mean_bounded_slowdown", "mean_wait_time", "max_bounded_slowdown"}
        Metric to minimise. (The maximum covers jobs that have started.)

    Raises
    ------
    UsageError
        When a run begins: the metric or the reward type is unknown.

    Examples
    --------
    >>> from hpcsimkit.policies import FCFS
    >>> PromptImprovement(FCFS(), "mean_wait_time")
    PromptImprovement(baseline=FCFS(), metric='mean_wait_time')
    """

    reads_compiled = True

    def on_begin(self, system: System) -> None:
        """Run the baseline, and reset the sums."""
        if self.metric not in ACCOUNTS:
            known = ", ".join(ACCOUNTS)
            raise UsageError(f"a metric that accrues is needed, one of {known}, found {self.metric!r}")
        super().on_begin(system)
        self._account = ACCOUNTS[self.metric](system)
        self._paid = self.worth(0.0)
        self._over = False

    def on_submit(self, job: Job, system: System) -> None:
        """Record a waiting job."""
        self._account.submit(job, system.now)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Record the start of a job."""
        self._account.start(job, system.now)

    def on_reject(self, job: Job, system: System) -> None:
        """Record that a job stops waiting without a start."""
        self._account.leave(job, system.now)

    def on_finish(self, system: System) -> None:
        """Compute the final metric."""
        super().on_finish(system)
        self._over = True

    def take(self, system: System) -> float:
        """Return the change of the improvement since the last call."""
        worth = self._earned if self._over else self.worth(self._account.value(system.now))
        lost, self._paid = worth - self._paid, worth
        return lost


class PromptRatio(PromptImprovement):
    """Logarithmic ratio of a metric to the baseline's, as a dense reward.

    Each halving has the same reward. (Where the baseline has 500, a bounded improvement hardly separates 5
    from 50, although that is the range with most to gain in a mean over sequences.) The sum over an episode
    is log((1 + baseline) / (1 + metric)), less its value for a metric of 0: -log(1 + metric).

    Parameters
    ----------
    baseline, metric
        Parameters of :class:`PromptImprovement`. The sum does not depend on the baseline.

    Raises
    ------
    UsageError
        When a run begins: the metric is unknown.

    Examples
    --------
    >>> from hpcsimkit.policies import FCFS
    >>> PromptRatio(FCFS(), "mean_wait_time")
    PromptRatio(baseline=FCFS(), metric='mean_wait_time')
    """

    reads_compiled = True

    def __init__(self, baseline: Policy, metric: str = "mean_bounded_slowdown") -> None:
        super().__init__(baseline, metric)

    def worth(self, value: float) -> float:
        """Return the reward of a metric value in this episode."""
        return math.log((1 + self._base) / (1 + value))


class _Mean:
    """Mean over all jobs of a quantity that grows while a job waits.

    Parameters
    ----------
    rates : array of float, shape (jobs,)
        Growth of each job's quantity per second, divided by the number of jobs.
    at_start : callable
        Function of a job and its wait [s] that returns its quantity at the start, divided by the number of
        jobs.
    """

    def __init__(self, rates: np.ndarray, at_start: Callable[[int, int], float], now: int) -> None:
        self._rates: list[float] = rates.tolist()
        self._at_start = at_start
        self._since, self._rate, self._sum = now, 0.0, 0.0
        self._waits_since: dict[int, int] = {}
        self._counted: dict[int, float] = {}

    def submit(self, job: Job, now: int) -> None:
        self._count(now)
        self._rate += self._rates[job.index]
        self._waits_since[job.index] = now

    def start(self, job: Job, now: int) -> None:
        row, rate = job.index, self._rates[job.index]
        grown = (now - self._waits_since.get(row, job.submit_time)) * rate
        self.leave(job, now)
        counted = self._at_start(row, now - job.submit_time)
        # A job that was stopped, as after a test, starts again: its first start no longer counts.
        self._sum += counted - self._counted.get(row, 0.0) - grown
        self._counted[row] = counted

    def leave(self, job: Job, now: int) -> None:
        self._count(now)
        self._rate -= self._rates[job.index]
        self._waits_since.pop(job.index, None)

    def value(self, now: int) -> float:
        self._count(now)
        return self._sum

    def _count(self, now: int) -> None:
        self._sum += self._rate * (now - self._since)
        self._since = now


class _Largest:
    """Maximum bounded slowdown of the jobs that have started."""

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
    """Return a function that computes the bounded slowdown of a job from its wait [s]."""
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
"""Accumulators of the metrics, by name."""
