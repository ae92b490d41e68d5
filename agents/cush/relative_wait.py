"""Reward by waits over requested times, relative to the normalised turnaround of a baseline."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System

__all__ = ["MinusRelativeWait"]


class MinusRelativeWait(Reward):
    """Minus the waits since the last decision over the requested times, in units of a baseline's NTAT.

    The sum over an episode is minus the mean of wait / requested time over that of (wait + requested time) /
    requested time of the baseline: of the mean NTATs, the agent's less 1 over the baseline's, where jobs run
    as long as they request. Job sets thus count alike, with many jobs or few, of similar lengths or of very
    different ones; those that hardly need to wait count for little. The baseline runs once per job set, for
    all copies of the reward.

    Parameters
    ----------
    baseline : Policy
        Baseline without open seats.

    Examples
    --------
    Two jobs for the whole cluster: the baseline lets the one of 4 s wait for half of its requested time, so
    that its mean NTAT is 1.25; the agent lets the one of 2 s wait for twice its requested time:

    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.envs.environment import SchedulingEnv
    >>> from hpcsimkit.policies import SJF
    >>> sets = Fixed(Workload({"submit_time": [0, 0], "run_time": [4, 2], "nodes": [1, 1]}, machine_size=1))
    >>> reward = MinusRelativeWait(Pipeline(order=SJF()))
    >>> env = SchedulingEnv(sets, Pipeline(order=External()), QueueWindow(2), Slots(2), reward)
    >>> _ = env.reset(seed=1)
    >>> env.step(0)[1]
    -0.8
    """

    def __init__(self, baseline: Policy) -> None:
        self.baseline = baseline

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that shares what is known of job sets: parallel episodes may have the same ones."""
        self.__dict__.setdefault("_known", {})
        return copy(self)

    def on_begin(self, system: System) -> None:
        """Reset the sums, and run the baseline, unless its NTAT in this job set is known."""
        times = np.maximum(system.workload.requested_time.astype(np.float64), 1.0)
        known: dict[Any, float] = self.__dict__.setdefault("_known", {})
        key = (system.workload.hash, repr(system.cluster), repr(system.service_time))
        if key not in known:
            waits = system.another(self.baseline).run().wait_time
            known[key] = float((waits / times).sum()) + len(times)
        self._unit = known[key]
        self._rates = (1 / times).tolist()
        self._since = system.now
        self._waited = self._rate = 0.0

    def on_submit(self, job: Job, system: System) -> None:
        """Add a waiting job."""
        self._count(system.now)
        self._rate += self._rates[job.index]

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Remove a waiting job."""
        self._count(system.now)
        self._rate -= self._rates[job.index]

    def on_reject(self, job: Job, system: System) -> None:
        """Remove a waiting job."""
        self._count(system.now)
        self._rate -= self._rates[job.index]

    def _count(self, now: int) -> None:
        self._waited += self._rate * (now - self._since)
        self._since = now

    def take(self, system: System) -> float:
        """Return minus the relative waits since the last call."""
        self._count(system.now)
        waited, self._waited = self._waited, 0.0
        return -waited / self._unit
