"""The rewards of the masked-PPO scheduler, as in its published code.

Each step's reward is a running value since the beginning of the episode, so only the last one is the metric.
Waiting and running jobs are left out. For reproduction only; :mod:`hpcsimkit.agents.spaces.rewards` has
better rewards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System

__all__ = ["RunningMeanWait", "RunningUtilisation"]


class RunningMeanWait(Reward):
    """Minus the mean wait [s] of the jobs that have ended so far; 0 before the first."""

    reads_compiled = True

    def on_begin(self, system: System) -> None:
        """Reset the sums."""
        self._ended = self._waited = 0

    def on_end(self, job: Job, system: System) -> None:
        """Add a job that has ended."""
        self._ended += 1
        self._waited += system.start_time(job) - job.submit_time

    def take(self, system: System) -> float:
        """Return the running mean."""
        return -self._waited / self._ended if self._ended else 0.0


class RunningUtilisation(Reward):
    """Running utilisation: the mean over snapshots, machines, and memory, CPUs and GPUs.

    There is a snapshot after every single start and every single end, those of one instant ordered by
    requested time, regardless of the time between them. A missing resource of a machine counts as unused.
    """

    reads_compiled = True

    def on_begin(self, system: System) -> None:
        """Reset the sums."""
        cluster = system.cluster
        if not isinstance(cluster, Machines):
            raise UsageError(f"{self!r} needs machines, found {cluster!r}")
        capacity = cluster.capacity
        self._weight = np.divide(1.0, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
        self._weight /= len(cluster) * capacity.shape[1]
        self._used = self._sum = 0.0
        self._snapshots = 0
        self._ends: list[tuple[int, int, float]] = []

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Take a snapshot after a start."""
        self._see_ends()
        self._see(self._share(allocation))

    def on_end(self, job: Job, system: System) -> None:
        """Store an end until all ends of its instant are known."""
        if self._ends and system.ledger.end_of(self._ends[0][1]) != system.now:
            self._see_ends()
        self._ends.append((job.requested_time, job.index, self._share(system.given(job.index))))

    def take(self, system: System) -> float:
        """Return the running mean."""
        self._see_ends()
        return self._sum / self._snapshots if self._snapshots else 0.0

    def _share(self, allocation: Allocation) -> float:
        return float((allocation.amounts * self._weight[list(allocation.machines)]).sum())

    def _see_ends(self) -> None:
        """Take a snapshot after each end of an instant."""
        for _, _, share in sorted(self._ends):
            self._see(-share)
        self._ends.clear()

    def _see(self, change: float) -> None:
        self._used += change
        self._sum += self._used
        self._snapshots += 1
