"""A reward that penalises long waits more than proportionally."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System

__all__ = ["MinusLongWaits"]


class MinusLongWaits(Reward):
    """Minus the growth of a power of the wait times since the last decision, divided by the number of jobs.

    The sum over an episode is exactly minus the mean of ``(wait / scale) ** power``. With a power of 1 it is
    the mean wait; a larger power gives the longest waits more weight and prevents starvation.

    Parameters
    ----------
    power : float
        Exponent of the waits, >= 1.
    scale : float
        Unit of time [s].

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

    def __init__(self, power: float = 3.0, scale: Positive = 86_400.0) -> None:
        self.power = power
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Reset the sums."""
        self._since, self._suffered = system.now, 0.0
        self._submitted: dict[int, int] = {}

    def on_submit(self, job: Job, system: System) -> None:
        """Record a waiting job."""
        self._submitted[job.index] = system.now

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Add the cost of a job that starts, and drop the job."""
        submitted = self._submitted.pop(job.index)
        before = max(self._since, submitted) - submitted
        self._suffered += self._powered(system.now - submitted) - self._powered(before)

    def on_reject(self, job: Job, system: System) -> None:
        """Add the cost of a job that is rejected, and drop the job."""
        self.on_start(job, None, system)

    def take(self, system: System) -> float:
        """Return minus the cost since the last call."""
        submitted = np.fromiter(self._submitted.values(), dtype=np.float64, count=len(self._submitted))
        before = np.maximum(self._since, submitted) - submitted
        suffered = self._suffered + float(
            (self._powered(system.now - submitted) - self._powered(before)).sum()
        )
        self._since, self._suffered = system.now, 0.0
        return -suffered / len(system.workload)

    def _powered(self, waits: Any) -> Any:
        return (waits / self.scale) ** self.power
