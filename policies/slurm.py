"""Slurm's multifactor priority."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.system import System

__all__ = ["SlurmMultifactor"]

Shares = NDArray[np.float64]
Priorities = Mapping[str, float]

WEIGHTS = ("age", "fair_share", "size", "attribute", "partition", "qos")


class SlurmMultifactor(Order):
    """Slurm's multifactor priority, largest first.

    The priority is the weighted sum of six factors in [0, 1]:

    * age: min(wait / `max_age`, 1);
    * fair share: 2^(-usage / share), where usage is the user's fraction of all node-seconds used so far in
      this run (by completed and running jobs) and share is the fraction that the user is entitled to;
    * size: nodes / nodes of the cluster;
    * attribute: 1 - requested time / longest requested time, which favours short jobs;
    * partition: the priority of the job's partition (column ``queue``) / the largest one;
    * QOS: the priority of the job's quality of service (column ``qos``) / the largest one.

    By default, the order uses no future information: all users seen so far are entitled to equal shares, and
    the longest requested time is that of the jobs seen so far. Priorities of partitions and QOS are part of
    Slurm's configuration and not recorded in logs. If they are not given, Slurm's defaults apply, equal for
    all: 1 for a partition (``PriorityJobFactor``), 0 for a QOS (``Priority``). Usage does not decay.

    On a cluster with :class:`~hpcsimkit.cluster.partitions.Partitions`, each partition has its own queue, in
    which the factor of that partition would be equal for all jobs. It needs no priorities here: which
    partition is first at an instant follows from the ``priority`` in its definition.

    ``shares="log"`` is the setting of SchedInspector (HPDC 2022, section 4.5) and **reads the future**: the
    users' shares and the partition factors are computed from the node-seconds used in the whole log, and the
    longest requested time is that of the whole log.

    Parameters
    ----------
    age, fair_share, size, attribute, partition, qos : float
        Weights of the factors, >= 0.
    max_age : int
        Waiting time at which the age factor reaches 1 [s], >= 1.
    shares : {"equal", "log"}
        Source of the users' shares.
    partition_priority, qos_priority : mapping of str to float, optional
        Priorities by name, >= 0, such as ``{"high": 10, "normal": 1}``, for all partitions or QOS in the log.
        Jobs without a partition or QOS have the default priority.

    Raises
    ------
    UsageError
        At the start of a run, if a parameter is out of its range or a priority is missing.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [4, 4, 4], "qos": [0, 0, 1]}
    >>> w = Workload(columns, machine_size=4, labels={"qos": ("normal", "high")})
    >>> Simulation(w, Pipeline(order=SlurmMultifactor())).run().start_time.tolist()
    [0, 9, 18]
    >>> urgent = SlurmMultifactor(qos_priority={"high": 10, "normal": 1})
    >>> Simulation(w, Pipeline(order=urgent)).run().start_time.tolist()
    [0, 18, 9]
    """

    def __init__(  # noqa: PLR0913 - stored keywords
        self,
        *,
        age: float = 1000,
        fair_share: float = 1000,
        size: float = 0,
        attribute: float = 1000,
        partition: float = 1000,
        qos: float = 1000,
        max_age: int = 7 * 24 * 3600,
        shares: str = "equal",
        partition_priority: Priorities | None = None,
        qos_priority: Priorities | None = None,
    ) -> None:
        self.age = age
        self.fair_share = fair_share
        self.size = size
        self.attribute = attribute
        self.partition = partition
        self.qos = qos
        self.max_age = max_age
        self.shares = shares
        self.partition_priority = partition_priority
        self.qos_priority = qos_priority

    def reset(self, system: System) -> None:
        """Compute the shares and reset the usage."""
        self._check()
        workload = system.workload
        self._system = system
        self._charged = 0
        users, self._user_of = np.unique(workload.user, return_inverse=True)
        self._used = np.zeros(len(users))
        self._seen = np.zeros(len(users), dtype=bool)
        self._longest = 1.0
        self._share: Shares | None = None
        factors = {
            "partition": _factors("partition", workload, "queue", self.partition_priority, 1),
            "qos": _factors("qos", workload, "qos", self.qos_priority, 0),
        }
        if self.shares == "log":
            area = np.multiply(workload.run_time, workload.size, dtype=np.float64)
            self._share = _parts_of(area, self._user_of, len(users))
            self._longest = float(workload.requested_time.max(initial=1))
            if self.partition_priority is None:
                queues, queue_of = np.unique(workload.queue, return_inverse=True)
                queue_share = _parts_of(area, queue_of, len(queues))
                factors["partition"] = (queue_share / queue_share.max(initial=1e-300))[queue_of]
        self._standing = self.partition * factors["partition"] + self.qos * factors["qos"]

    def _check(self) -> None:
        if self.shares not in ("equal", "log"):
            raise UsageError(f"slurm: shares needs 'equal' or 'log', found {self.shares!r}")
        for name in (*WEIGHTS, "max_age"):
            value, least = getattr(self, name), int(name == "max_age")
            if not (isinstance(value, int | float) and least <= value < float("inf")):
                raise UsageError(f"slurm: {name} needs a number of at least {least}, found {value!r}")

    def _usage(self, now: int) -> Shares:
        """Return the fraction of all node-seconds used so far by each user."""
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
        """Record the users and requested times of waiting jobs, and return the shares of all users."""
        if self._share is not None:
            return self._share
        self._seen[self._user_of[jobs.index]] = True
        self._longest = max(self._longest, float(jobs.requested_time.max()))
        return np.full(len(self._seen), 1 / np.count_nonzero(self._seen))

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return minus the current priorities."""
        users = self._user_of[jobs.index]
        fair = 2.0 ** (-self._usage(now)[users] / self._look_at(jobs)[users])
        return -(
            self.age * np.minimum((now - jobs.submit_time) / self.max_age, 1.0)
            + self.fair_share * fair
            + self.size * jobs.size / self._system.cluster.size
            + self.attribute * (1.0 - jobs.requested_time / self._longest)
            + self._standing[jobs.index]
        )


def _factors(
    what: str, workload: Workload, column: str, priorities: Priorities | None, default: float
) -> Shares:
    """Return the priority of each job's partition or QOS, relative to the largest one."""
    if priorities is None:
        return np.full(len(workload), float(default))
    if not isinstance(priorities, Mapping):
        raise UsageError(f"slurm: {what}_priority needs numbers by name, found {priorities!r}")
    for name, value in priorities.items():
        if not (isinstance(value, int | float) and 0 <= value < float("inf")):
            raise UsageError(
                f"slurm: {what}_priority of {name!r} needs a number of at least 0, found {value!r}"
            )
    numbers, number_of = np.unique(workload.column(column), return_inverse=True)
    given = np.full(len(numbers), float(default))
    for place, number in enumerate(numbers.tolist()):
        if number >= 0:
            name = workload.label(column, number)
            if name not in priorities:
                raise UsageError(
                    f"slurm: {what}_priority needs a number for {name!r}, which jobs of the log have"
                )
            given[place] = priorities[name]
    factors: Shares = (given / max(*priorities.values(), default, 1e-300))[number_of]
    return factors


def _parts_of(area: Shares, group_of: NDArray[np.intp], groups: int) -> Shares:
    """Return the fraction of the node-seconds used by each group, at least 1e-9."""
    used = np.bincount(group_of, weights=area, minlength=groups)
    return np.maximum(used / max(used.sum(), 1.0), 1e-9)
