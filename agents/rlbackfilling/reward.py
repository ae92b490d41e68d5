"""RLBackfilling's reward: an improvement over a baseline, with a penalty for delaying blocked jobs."""

from __future__ import annotations

from typing import Any, Literal

from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.observers import Promises
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.dirlab.pipelines import published
from hpcsimkit.policies.orders import SJF

__all__ = ["BASELINE", "TimelyImprovement"]

BASELINE: Policy = published("rlbackfilling", "fcfs", backfilling=True, candidates=SJF())
"""Baseline of RLBackfilling: first come, first served, with shortest-first backfilling."""


class TimelyImprovement(Improvement):
    """An :class:`~hpcsimkit.agents.spaces.rewards.Improvement`, minus a penalty per reservation violation.

    A reservation is violated when a job that was blocked at the head of the queue starts later than its first
    guaranteed start time (see :class:`~hpcsimkit.kernel.observers.Promises`); the penalty comes at that
    moment. The paper mentions "a large negative reward" (section 3.4); its code has none. All other
    parameters are those of :class:`~hpcsimkit.agents.spaces.rewards.Improvement`.

    Parameters
    ----------
    penalty : float
        Penalty per reservation violation, >= 0.

    Examples
    --------
    Four nodes: the blocked second job could start at 9 s, but waits until 52 s if job 3 starts before it. The
    mean wait of the baseline is 10 s; with job 3 first it is 14.5 s, and there is a penalty of 5; with job 4
    first it is 6 s:

    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.rlbackfilling.encoder import Candidates
    >>> from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
    >>> from hpcsimkit.envs.environment import SchedulingEnv
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.jobs.workload import Workload
    >>> columns = {"submit_time": [0, 1, 2, 2], "run_time": [9, 9, 50, 3], "nodes": [3, 4, 1, 1]}
    >>> reward = TimelyImprovement(Pipeline(), "mean_wait_time", "native", penalty=5.0)
    >>> env = SchedulingEnv(Fixed(Workload(columns, machine_size=4)), backfilling_seat(mode="penalty"),
    ...     Candidates(2), Slots(2), reward, stage="backfiller")
    >>> for action in (0, 1):  # job 3, or job 4
    ...     _ = env.reset()
    ...     env.step(action)[1]
    -9.5
    4.0
    """

    def __init__(
        self,
        baseline: Policy,
        metric: str = "mean_bounded_slowdown",
        kind: Literal["native", "percentage", "win-loss", "bounded"] = "percentage",
        penalty: float = 1.0,
    ) -> None:
        super().__init__(baseline, metric, kind)
        self.penalty = penalty

    def on_begin(self, system: System) -> None:
        """Run the baseline, and reset the violations."""
        super().on_begin(system)
        self._promises = Promises()
        self._paid = 0

    def on_block(self, job: Job, system: System) -> None:
        """Record the guaranteed start time of the blocked job."""
        self._promises.on_block(job, system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Check the start against the guaranteed start time."""
        self._promises.on_start(job, allocation, system)

    def take(self, system: System) -> float:
        """Return the improvement at the end, minus the penalty for violations since the last call."""
        broken, self._paid = self._promises.broken - self._paid, self._promises.broken
        return super().take(system) - self.penalty * broken
