"""What RLBackfilling's agent is paid."""

from __future__ import annotations

from typing import Any, Literal

from hpcsimkit.agents.rewards import Improvement
from hpcsimkit.job import Job
from hpcsimkit.observers import Promises
from hpcsimkit.policies.dirlab.pipelines import published
from hpcsimkit.policies.orders import SJF
from hpcsimkit.policy import Policy
from hpcsimkit.system import System

__all__ = ["BASELINE", "TimelyImprovement"]

BASELINE: Policy = published("rlbackfilling", "fcfs", backfilling=True, candidates=SJF())
"""What RLBackfilling's agents are compared with: first come, first served, the shortest backfilled first."""


class TimelyImprovement(Improvement):
    """An :class:`~hpcsimkit.agents.rewards.Improvement`, less something for each broken promise.

    A promise is broken when a job that was blocked at the head starts later than its reservation was at
    first (see :class:`~hpcsimkit.observers.Promises`); it is paid for then. The paper speaks of "a large
    negative reward" (section 3.4); its code has none. Parameters beside the penalty are those of an
    :class:`~hpcsimkit.agents.rewards.Improvement`.

    Parameters
    ----------
    penalty : float
        What a broken promise costs, >= 0.

    Examples
    --------
    Four nodes: the blocked second job could start at 9 s, but waits until 52 s if job 3 is started before it.
    The baseline's mean wait is 10 s; with job 3 started first it is 14.5 s, and 5 are taken off; with job 4
    it is 6 s:

    >>> from hpcsimkit.agents.masks import Slots
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> from hpcsimkit.agents.rlbackfilling.encoder import Candidates
    >>> from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
    >>> from hpcsimkit.environment import SchedulingEnv
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.workload import Workload
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
        self, baseline: Policy, metric: str = "mean_bounded_slowdown",
        kind: Literal["native", "percentage", "win-loss", "bounded"] = "percentage", penalty: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(baseline, metric, kind)
        self.penalty = penalty

    def on_begin(self, system: System) -> None:
        """Let the baseline run; nothing is promised yet."""
        super().on_begin(system)
        self._promises = Promises()
        self._paid = 0

    def on_block(self, job: Job, system: System) -> None:
        """Note what the blocked job is promised."""
        self._promises.on_block(job, system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """See whether the promise is kept."""
        self._promises.on_start(job, allocation, system)

    def take(self, system: System) -> float:
        """Return the improvement at the end, less what promises cost that have been broken since."""
        broken, self._paid = self._promises.broken - self._paid, self._promises.broken
        return super().take(system) - self.penalty * broken
