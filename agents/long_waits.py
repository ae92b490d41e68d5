"""A reward for those who are to let nobody wait for long."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.job import Job
from hpcsimkit.learning import Reward
from hpcsimkit.system import System

__all__ = ["MinusLongWaits"]


class MinusLongWaits(Reward):
    """Minus what waiting jobs have suffered since the last decision, over the number of jobs.

    The sum over an episode is exactly minus the mean of ``(wait / scale) ** power``. With a power of 1 it
    is the mean wait; the larger the power, the more the longest waits count, and the fewer jobs starve.

    Parameters
    ----------
    power : float
        To which waits are raised, >= 1.
    scale : float
        Seconds that count as one.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 0, 0], "run_time": [10, 10, 10], "nodes": [1, 1, 1]}
    >>> reward = MinusLongWaits(power=2.0, scale=10.0)
    >>> simulation = Simulation(Workload(columns, machine_size=1), Pipeline(), observers=[reward])
    >>> starts = simulation.run().start_time.tolist()
    >>> starts, round(reward.take(simulation.system), 4)  # (0 + 1 + 4) / 3
    ([0, 10, 20], -1.6667)
    """

    def __init__(self, power: float = 3.0, scale: float = 86_400.0) -> None:
        self.power = power
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Nobody waits yet."""
        self._since, self._suffered = system.now, 0.0
        self._submitted: dict[int, int] = {}

    def on_submit(self, job: Job, system: System) -> None:
        """One more waits."""
        self._submitted[job.index] = system.now

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """One fewer waits."""
        submitted = self._submitted.pop(job.index)
        before = max(self._since, submitted) - submitted
        self._suffered += self._powered(system.now - submitted) - self._powered(before)

    def on_reject(self, job: Job, system: System) -> None:
        """One fewer waits."""
        self.on_start(job, None, system)

    def take(self, system: System) -> float:
        """Return minus what was suffered since it was last asked."""
        submitted = np.fromiter(self._submitted.values(), dtype=np.float64, count=len(self._submitted))
        before = np.maximum(self._since, submitted) - submitted
        suffered = self._suffered + float(
            (self._powered(system.now - submitted) - self._powered(before)).sum()
        )
        self._since, self._suffered = system.now, 0.0
        return -suffered / len(system.workload)

    def _powered(self, waits: Any) -> Any:
        return (waits / self.scale) ** self.power
