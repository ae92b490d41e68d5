"""Slurm's multifactor priority."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobqueue import JobColumns
from hpcsimkit.policy import Order
from hpcsimkit.system import System

__all__ = ["SlurmMultifactor"]

Shares = NDArray[np.float64]


class SlurmMultifactor(Order):
    """Slurm's multifactor priority, largest first (shares of the log: reads run times).

    The priority is the weighted sum of

    * age: min(wait / `max_age`, 1);
    * fair share: 2^(-usage / share), where usage is the user's part of all node-seconds used so far in this
      run (ended and running jobs), share the part the user is entitled to;
    * size: nodes / nodes of the cluster;
    * attribute: 1 - requested time / longest requested time: shorter is better;
    * partition: the queue's part of the node-seconds, relative to the largest one's.

    The defaults are the setting of SchedInspector (HPDC 2022, section 4.5): all weights 1000, age over seven
    days, and shares *of the log*: what each user and queue will have used at its end. So the configuration,
    though not the decisions, knows the future. With ``shares="equal"`` it does not: users seen so far have
    equal shares, queues are alike, and the longest requested time is that of the jobs seen so far.

    Parameters
    ----------
    age, fair_share, size, attribute, partition : float
        Weights, >= 0.
    max_age : int
        Wait that counts as full age [s], >= 1.
    shares : {"log", "equal"}
        Where shares of users and queues come from.
    """

    def __init__(
        self,
        *,
        age: float = 1000,
        fair_share: float = 1000,
        size: float = 0,
        attribute: float = 1000,
        partition: float = 1000,
        max_age: int = 7 * 24 * 3600,
        shares: str = "log",
    ) -> None:
        self.age = age
        self.fair_share = fair_share
        self.size = size
        self.attribute = attribute
        self.partition = partition
        self.max_age = max_age
        self.shares = shares

    def reset(self, system: System) -> None:
        """Work out the shares and start counting usage."""
        self._check()
        workload = system.workload
        self._system = system
        self._charged = 0
        users, self._user_of = np.unique(workload.user, return_inverse=True)
        self._used = np.zeros(len(users))
        self._seen = np.zeros(len(users), dtype=bool)
        self._longest = 1.0
        self._share: Shares | None = None
        self._queue_factor: Shares = np.ones(len(workload))
        if self.shares == "log":
            area = np.multiply(workload.run_time, workload.size, dtype=np.float64)
            queues, queue_of = np.unique(workload.queue, return_inverse=True)
            queue_share = _parts_of(area, queue_of, len(queues))
            self._share = _parts_of(area, self._user_of, len(users))
            self._queue_factor = (queue_share / queue_share.max(initial=1e-300))[queue_of]
            self._longest = float(workload.requested_time.max(initial=1))

    def _check(self) -> None:
        if self.shares not in ("log", "equal"):
            raise UsageError(f"slurm: shares needs 'log' or 'equal', found {self.shares!r}")
        for name in ("age", "fair_share", "size", "attribute", "partition", "max_age"):
            value, least = getattr(self, name), int(name == "max_age")
            if not (isinstance(value, int | float) and least <= value < float("inf")):
                raise UsageError(f"slurm: {name} needs a number of at least {least}, found {value!r}")

    def _usage(self, now: int) -> Shares:
        """Return the part of all node-seconds so far that each user has used."""
        system = self._system
        for row in system.ended[self._charged :]:
            job = system.jobs[row]
            self._used[self._user_of[row]] += job.size * (system.finishes[row] - system.starts[row])
        self._charged = len(system.ended)
        used = self._used.copy()
        for row in system.running.rows:
            used[self._user_of[row]] += system.jobs[row].size * (now - system.starts[row])
        return used / max(used.sum(), 1.0)

    def _look_at(self, jobs: JobColumns) -> Shares:
        """Take note of the users and requests that wait; returns the shares of all users."""
        if self._share is not None:
            return self._share
        self._seen[self._user_of[jobs.index]] = True
        self._longest = max(self._longest, float(jobs.requested_time.max()))
        return np.full(len(self._seen), 1 / np.count_nonzero(self._seen))

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return minus the priorities now."""
        users = self._user_of[jobs.index]
        fair = 2.0 ** (-self._usage(now)[users] / self._look_at(jobs)[users])
        return -(
            self.age * np.minimum((now - jobs.submit_time) / self.max_age, 1.0)
            + self.fair_share * fair
            + self.size * jobs.size / self._system.cluster.size
            + self.attribute * (1.0 - jobs.requested_time / self._longest)
            + self.partition * self._queue_factor[jobs.index]
        )


def _parts_of(area: Shares, group_of: NDArray[np.intp], groups: int) -> Shares:
    """Return the part of the node-seconds that each group uses; it is never quite nothing."""
    used = np.bincount(group_of, weights=area, minlength=groups)
    return np.maximum(used / max(used.sum(), 1.0), 1e-9)
