"""Slurm's multifactor priority."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.jobqueue import JobColumns
from hpcsimkit.policy import Order
from hpcsimkit.system import System

__all__ = ["SlurmMultifactor"]

Shares = NDArray[np.float64]


class SlurmMultifactor(Order):
    """Weighted sum of age, fair share, size, job attribute and partition; the largest priority first.

    * age: min(wait / `max_age`, 1);
    * fair share: 2^(-usage / share), where usage is the user's part of all node-seconds used so far in this
      run (ended and running jobs), share the part the user is entitled to;
    * size: nodes / nodes of the cluster;
    * attribute: 1 - requested time / longest requested time of the log: shorter is better;
    * partition: the queue's part of the node-seconds, relative to the largest one's.

    The defaults are the setting of SchedInspector (HPDC 2022, section 4.5): all weights 1000, age over seven
    days, and shares *of the log*: what each user and queue will have used at its end. That makes the
    configuration, though not the decisions, know the future; ``shares="equal"`` does not.

    Parameters
    ----------
    age, fair_share, size, attribute, partition : float
        Weights, >= 0.
    max_age : int
        Wait that counts as full age [s].
    shares : {"log", "equal"}
        Where shares of users and queues come from.
    """

    def __init__(
        self, *, age: float = 1000, fair_share: float = 1000, size: float = 0, attribute: float = 1000,
        partition: float = 1000, max_age: int = 7 * 24 * 3600, shares: str = "log",
    ) -> None:  # fmt: skip
        self.age = age
        self.fair_share = fair_share
        self.size = size
        self.attribute = attribute
        self.partition = partition
        self.max_age = max_age
        self.shares = shares

    def reset(self, system: System) -> None:
        """Work out the shares and start counting usage."""
        if self.shares not in ("log", "equal"):
            raise UsageError(f"slurm: shares needs 'log' or 'equal', found {self.shares!r}")
        workload = system.workload
        self._system = system
        self._seen = 0
        self._users, user_rows = np.unique(workload.user, return_inverse=True)
        queues, queue_rows = np.unique(workload.queue, return_inverse=True)
        self._user_of: NDArray[np.intp] = user_rows
        self._used = np.zeros(len(self._users))
        area = np.multiply(workload.run_time, workload.nodes, dtype=np.float64)
        self._share = self._part(user_rows, area, len(self._users))
        queue_share = self._part(queue_rows, area, len(queues))
        self._queue_factor = (queue_share / queue_share.max(initial=1e-300))[queue_rows]
        self._longest = float(workload.requested_time.max(initial=1))

    def _part(self, rows: NDArray[np.intp], area: NDArray[np.float64], groups: int) -> Shares:
        """Return the part of the node-seconds that each group is entitled to; it is never quite nothing."""
        if self.shares == "equal":
            return np.full(groups, 1 / max(groups, 1))
        used = np.bincount(rows, weights=area, minlength=groups)
        return np.maximum(used / max(used.sum(), 1.0), 1e-9)

    def _usage(self, now: int) -> Shares:
        """Return the part of all node-seconds so far that each user has used."""
        system = self._system
        for row in system.ended[self._seen :]:
            job: Job = system.jobs[row]
            self._used[self._user_of[row]] += job.nodes * (system.finishes[row] - system.starts[row])
        self._seen = len(system.ended)
        used = self._used.copy()
        for row in system.running.rows:
            used[self._user_of[row]] += system.jobs[row].nodes * (now - system.starts[row])
        return used / max(used.sum(), 1.0)

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return minus the priorities now."""
        users = self._user_of[jobs.index]
        fair = 2.0 ** (-self._usage(now)[users] / self._share[users])
        return -(
            self.age * np.minimum((now - jobs.submit_time) / self.max_age, 1.0)
            + self.fair_share * fair
            + self.size * jobs.nodes / self._system.cluster.size
            + self.attribute * (1.0 - jobs.requested_time / self._longest)
            + self.partition * self._queue_factor[jobs.index]
        )
