"""What a learner is paid: rewards that add up to metrics."""

from __future__ import annotations

from typing import Any

from hpcsimkit.job import Job
from hpcsimkit.learning import Reward
from hpcsimkit.system import System

__all__ = ["MinusMeanBoundedSlowdown", "MinusMeanWait", "Utilisation"]


class MinusMeanWait(Reward):
    """Minus the seconds that jobs have waited since the last decision, over the number of jobs.

    The sum over an episode is exactly minus the mean wait time [s].

    Parameters
    ----------
    scale : float
        Seconds that count as one.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Nobody waits yet."""
        self._since = system.now
        self._waited = self._waiting = 0

    def on_submit(self, job: Job, system: System) -> None:
        """One more waits."""
        self._count(system.now)
        self._waiting += 1

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """One fewer waits."""
        self._count(system.now)
        self._waiting -= 1

    def on_reject(self, job: Job, system: System) -> None:
        """One fewer waits."""
        self._count(system.now)
        self._waiting -= 1

    def _count(self, now: int) -> None:
        self._waited += self._waiting * (now - self._since)
        self._since = now

    def take(self, system: System) -> float:
        """Return minus the waiting since it was last asked."""
        self._count(system.now)
        waited, self._waited = self._waited, 0
        return -waited / (len(system.workload) * self.scale)


class MinusMeanBoundedSlowdown(Reward):
    """Minus the bounded slowdown of each job, when it starts, over the number of jobs.

    The sum over an episode is exactly minus the mean bounded slowdown. It reads run times, as rewards may.

    Parameters
    ----------
    threshold : float
        Run times below it count as it [s].
    """

    def __init__(self, threshold: float = 10.0) -> None:
        self.threshold = threshold

    def on_begin(self, system: System) -> None:
        """Nobody has started yet."""
        self._sum = 0.0
        self._started: list[Job] = []

    def on_end(self, job: Job, system: System) -> None:
        """Count a job when it has ended: only then its run time is what it really was."""
        run_time = system.now - system.start_time(job)
        response = system.now - job.submit_time
        self._sum += max(1.0, response / max(run_time, self.threshold))

    def take(self, system: System) -> float:
        """Return minus the slowdowns since it was last asked."""
        total, self._sum = self._sum, 0.0
        return -total / len(system.workload)


class Utilisation(Reward):
    """What was busy since the last decision, as a share of all there is from first to last.

    The sum over an episode is the utilisation times the makespan over the span of submissions; maximising
    it means finishing work early.

    Parameters
    ----------
    scale : float
        What a wholly busy machine is paid in all.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Nothing is busy yet."""
        self._since = system.now
        self._busy = 0
        self._area = 0

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """More is busy."""
        self._count(system.now)
        self._busy += system.cluster.main_amount(job, allocation)

    def on_end(self, job: Job, system: System) -> None:
        """Less is busy."""
        self._count(system.now)
        self._busy -= system.cluster.main_amount(job, system.given(job.index))

    def _count(self, now: int) -> None:
        self._area += self._busy * (now - self._since)
        self._since = now

    def take(self, system: System) -> float:
        """Return the busy share since it was last asked."""
        self._count(system.now)
        area, self._area = self._area, 0
        return self.scale * area / (system.cluster.size * max(system.workload.span, 1))
