"""Slurm's multifactor priority."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp2, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.system import System

__all__ = ["SlurmMultifactor", "SlurmTerms"]

Shares = NDArray[np.float64]
Priorities = Mapping[str, float]

LN2 = log(2)

WEIGHTS = ("age", "fair_share", "size", "attribute", "partition", "qos")


class SlurmTerms(NamedTuple):
    """What the priorities depend on besides time.

    Attributes
    ----------
    user : array of int64, shape (jobs,)
        Number of each job's user or group, from 0.
    share : array of float64, shape (users,)
        Share of each user, relative to the sum of the shares of the users seen so far.
    entitled : float
        Sum of these shares at the beginning of a run: 0, or 1 if all users count from then on.
    longest : float
        Longest requested time known at the beginning of a run [s].
    billing : array of float64, shape (jobs,)
        Usage of each job per second.
    standing : array of float64, shape (jobs,)
        Part of each job's priority that depends on its size, partition and QOS.
    """

    user: NDArray[np.intp]
    share: Shares
    entitled: float
    longest: float
    billing: Shares
    standing: Shares


class SlurmMultifactor(Order):
    """Slurm's multifactor priority, largest first.

    The priority is the weighted sum of six factors in [0, 1]:

    * age: min(wait / `max_age`, 1);
    * fair share: 2^(-usage / share), where usage is the user's fraction of all usage so far in this run (by
      completed and running jobs) and share is the fraction that the user is entitled to. The usage of a job
      is its billing times its run time, and loses half of its value in each `half_life`;
    * size: nodes / nodes of the cluster;
    * attribute: 1 - requested time / longest requested time, which favours short jobs;
    * partition: the priority of the job's partition (column ``queue``) / the largest one;
    * QOS: the priority of the job's quality of service (column ``qos``) / the largest one.

    By default, the order uses no future information: all users who have submitted a job so far are entitled
    to equal shares, and the longest requested time is that of the jobs submitted so far. Priorities of
    partitions and QOS are part of Slurm's configuration and not recorded in logs. If they are not given,
    Slurm's defaults apply, equal for all: 1 for a partition (``PriorityJobFactor``), 0 for a QOS
    (``Priority``). Usage decays with Slurm's default half-life of a week, and the billing of a job is its
    size: nodes, or CPUs on machines.

    On a cluster with :class:`~hpcsimkit.cluster.partitions.Partitions`, each partition has its own queue, in
    which the factor of that partition would be equal for all jobs. It needs no priorities here: which
    partition is first at an instant follows from the ``priority`` in its definition. Slurm
    itself counts usage in all partitions. With ``usage="cluster"``, so does the order: usage, users and
    longest requested time are those of all jobs submitted so far, whether they waited, started at once or
    have ended. By default only those of the own partition count, so that partitions without common machines
    never influence each other.

    ``shares="log"`` is the setting of SchedInspector (HPDC 2022, section 4.5) and **reads the future**: the
    users' shares and the partition factors are computed from the node-seconds used in the whole log, and the
    longest requested time is that of the whole log.

    Parameters
    ----------
    age, fair_share, attribute, partition, qos : float
        Weights of these factors, >= 0. Default: 1000.
    size : float
        Weight of the size factor, >= 0. Default: 0.
    max_age : int
        Waiting time at which the age factor reaches 1 [s], >= 1.
    shares : {"equal", "log"} or mapping of str to float
        Source of the users' shares, or the shares themselves by name, above 0, such as ``{"ada": 2, "ben":
        1}``, for all users in the log (``RawShares`` of ``sshare``). Default: ``"equal"``.
    shares_by : {"user", "group"}
        Column of those who have shares: users or accounts. Default: ``"user"``.
    half_life : float
        Time in which usage loses half of its value [s] (``PriorityDecayHalfLife``), 0 for no decay. Default:
        a week.
    usage : {"partition", "cluster"}
        Jobs that are counted on a cluster with partitions, in usage, users and longest requested time: those
        of the own partition, or all. Default: ``"partition"``.
    billing : mapping of str to float, optional
        Weights of the resources of the machines in the billing of a job (``TRESBillingWeights``), >= 0, of
        memory per GiB, such as ``{"cpus": 1, "gpus": 16, "memory": 0.25}``. By default those of the partition
        in which the job starts; if it has none, 1 for each node, or for each unit of the first resource.
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
        shares: str | Priorities = "equal",
        shares_by: str = "user",
        half_life: float = 7 * 24 * 3600,
        usage: str = "partition",
        billing: Priorities | None = None,
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
        self.shares_by = shares_by
        self.half_life = half_life
        self.usage = usage
        self.billing = billing
        self.partition_priority = partition_priority
        self.qos_priority = qos_priority

    def reset(self, system: System) -> None:
        """Compute the shares and reset the usage."""
        workload = system.workload
        self._system = system
        self._terms = self.terms(workload, system.cluster.size)
        self._billing_in = {
            name: _billing(_in_log(weights, workload), workload).tolist()
            for name, weights in (system.billing.items() if self.billing is None else ())
        }
        self._billing, self._user_of = self._terms.billing.tolist(), self._terms.user.tolist()
        self._entitled, self._longest = self._terms.entitled, self._terms.longest
        self._seen = np.full(len(self._terms.share), bool(self._entitled))
        self._used = np.zeros(len(self._seen) + 1)
        self._charged, self._charged_at = 0, system.now
        if self.usage == "cluster" and system.everywhere is not system:
            system.everywhere.queue.inform(self._arrive_anywhere)

    def terms(self, workload: Workload, size: int) -> SlurmTerms:
        """Return what does not change during a run on a cluster of a size (number of nodes or CPUs).

        Raises
        ------
        UsageError
            A parameter is out of its range or a priority is missing.
        """
        self._check()
        users, user = np.unique(workload.column(self.shares_by), return_inverse=True)
        share, entitled, longest = np.ones(len(users)), 0.0, 1.0
        partition = _factors("partition", workload, "queue", self.partition_priority, 1)
        qos = _factors("qos", workload, "qos", self.qos_priority, 0)
        if isinstance(self.shares, Mapping):
            share = _named("shares", workload, self.shares_by, self.shares, users.tolist())
        if self.shares == "log":
            area = np.multiply(workload.run_time, workload.size, dtype=np.float64)
            share, entitled = _parts_of(area, user, len(users)), 1.0
            longest = float(workload.requested_time.max(initial=1))
            if self.partition_priority is None:
                queues, queue_of = np.unique(workload.queue, return_inverse=True)
                queue_share = _parts_of(area, queue_of, len(queues))
                partition = (queue_share / queue_share.max(initial=1e-300))[queue_of]
        standing = self.size * workload.size / max(size, 1) + self.partition * partition + self.qos * qos
        return SlurmTerms(user, share, entitled, longest, _billing(self.billing, workload), standing)

    def _check(self) -> None:
        if not isinstance(self.shares, Mapping) and self.shares not in ("equal", "log"):
            raise UsageError(
                f"slurm: shares needs 'equal' or 'log', or numbers by name, found {self.shares!r}"
            )
        if self.shares_by not in ("user", "group"):
            raise UsageError(f"slurm: shares_by needs 'user' or 'group', found {self.shares_by!r}")
        if self.usage not in ("partition", "cluster"):
            raise UsageError(f"slurm: usage needs 'partition' or 'cluster', found {self.usage!r}")
        for name in (*WEIGHTS, "max_age", "half_life"):
            value, least = getattr(self, name), int(name == "max_age")
            if not (isinstance(value, int | float) and least <= value < float("inf")):
                raise UsageError(f"slurm: {name} needs a number of at least {least}, found {value!r}")

    @property
    def unit(self) -> float:
        """Usage of a job with a billing of 1 that never ends, if usage decays [s]."""
        return self.half_life / LN2

    def arrive(self, job: Job) -> None:
        """Record the user and the requested time of a job."""
        self._see(job.index, job.requested_time)

    def _arrive_anywhere(self, job: Job) -> None:
        """Record a job that arrives in any partition; it may change the scores of jobs that wait here."""
        self.arrive(job)
        self._system.queue.forget_scores()

    def _see(self, row: int, requested_time: int) -> None:
        user = self._user_of[row]
        if not self._seen[user]:
            self._seen[user] = True
            self._entitled += float(self._terms.share[user])
        self._longest = max(self._longest, requested_time)

    def _usage(self, now: int) -> Shares:
        """Return the usage so far of each user and, in the last position, of all, as it counts now."""
        system = self._counted
        for row in system.ended[self._charged :]:
            end = system.ledger.end_of(row)
            self._used *= self._decayed(end - self._charged_at)
            self._charge(self._used, row, end)
            self._charged_at = end
        self._charged = len(system.ended)
        used: Shares = self._used * self._decayed(now - self._charged_at)
        for row in self._running():
            self._charge(used, row, now)
        return used

    def _decayed(self, seconds: int) -> float:
        """Return what a unit of usage counts after some time."""
        return exp2(-seconds / self.half_life) if self.half_life else 1.0

    def _charge(self, used: Shares, row: int, now: int) -> None:
        """Add the usage of a job that has run until now."""
        seconds: float = now - self._system.ledger.start_of(row)
        if self.half_life:
            seconds = (1.0 - exp2(-seconds / self.half_life)) * self.unit
        billing = self._billing
        if self._billing_in:
            billing = self._billing_in.get(self._system.ledger.partition_of(row), billing)
        usage = billing[row] * seconds
        used[self._user_of[row]] += usage
        used[-1] += usage

    @property
    def _counted(self) -> System:
        """The system with the jobs whose usage is counted."""
        return self._system.everywhere if self.usage == "cluster" else self._system

    def _running(self) -> list[int]:
        """Return the rows of the running jobs that are counted; others may run on shared machines."""
        rows, system = self._counted.running.rows, self._system
        if self.usage == "cluster" or not system.partition:
            return rows
        return [row for row in rows if system.ledger.partition_of(row) == system.partition]

    def _look_at(self, jobs: JobColumns) -> None:
        """Record jobs that wait in the queue of another order."""
        users = self._terms.user[jobs.index]
        for position in np.flatnonzero(~self._seen[users] | (jobs.requested_time > self._longest)).tolist():
            self._see(int(jobs.index[position]), int(jobs.requested_time[position]))

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return minus the current priorities."""
        if self._system.order is not self:  # it may rank jobs that it has not seen on arrival
            self._look_at(jobs)
        terms, used = self._terms, self._usage(now)
        users = terms.user[jobs.index]
        ratios = (used[users] / max(used[-1], 1e-9)) / (terms.share[users] / self._entitled)
        # numpy's power depends on the processor in the last digit
        fair = np.fromiter(map(exp2, (-ratios).tolist()), dtype=np.float64, count=len(ratios))
        return -(
            self.age * np.minimum((now - jobs.submit_time) / self.max_age, 1.0)
            + self.fair_share * fair
            + self.attribute * (1.0 - jobs.requested_time / self._longest)
            + terms.standing[jobs.index]
        )


def _factors(
    what: str, workload: Workload, column: str, priorities: Priorities | None, default: float
) -> Shares:
    """Return the priority of each job's partition or QOS, relative to the largest one."""
    if priorities is None:
        return np.full(len(workload), float(default))
    numbers, number_of = np.unique(workload.column(column), return_inverse=True)
    given = _named(f"{what}_priority", workload, column, priorities, numbers.tolist(), default)
    factors: Shares = (given / max(*priorities.values(), default, 1e-300))[number_of]
    return factors


def _named(
    what: str,
    workload: Workload,
    column: str,
    values: Priorities,
    numbers: Sequence[int],
    default: float = 1,
) -> Shares:
    """Return the value that is given for the name of each number in a column, or a default for none."""
    _check_numbers(what, values)
    given = np.full(len(numbers), float(default))
    for place, number in enumerate(numbers):
        if number >= 0:
            name = workload.label(column, number)
            if name not in values:
                raise UsageError(f"slurm: {what} needs a number for {name!r}, which jobs of the log have")
            given[place] = values[name]
    if what == "shares" and not given.all():
        raise UsageError("slurm: shares of 0 entitle to nothing; numbers above 0 are needed")
    return given


def _check_numbers(what: str, values: Priorities) -> None:
    if not isinstance(values, Mapping):
        raise UsageError(f"slurm: {what} needs numbers by name, found {values!r}")
    for name, value in values.items():
        if not (isinstance(value, int | float) and 0 <= value < float("inf")):
            raise UsageError(f"slurm: {what} of {name!r} needs a number of at least 0, found {value!r}")


def _billing(weights: Priorities | None, workload: Workload) -> Shares:
    """Return the weighted sum of the resources of each job, of memory in GiB."""
    if weights is None:
        return workload.size.astype(np.float64)
    _check_numbers("billing", weights)
    unknown = [name for name in weights if name not in workload.resources]
    if unknown:
        there = ", ".join(workload.resources) or "none"
        raise UsageError(f"slurm: billing needs resources of the log ({there}), found {unknown[0]!r}")
    factor = np.where(workload.column("spread") == 1, 1, workload.nodes)
    units = {"memory": 1024**3}
    amounts = [
        workload.column(name) * (factor * (weight / units.get(name, 1))) for name, weight in weights.items()
    ]
    return np.sum(amounts, axis=0, initial=0.0) if amounts else np.zeros(len(workload))


def _in_log(weights: Priorities, workload: Workload) -> Priorities | None:
    """Return the weights of the resources in a log; None if there are none."""
    return {name: weight for name, weight in weights.items() if name in workload.resources} or None


def _parts_of(area: Shares, group_of: NDArray[np.intp], groups: int) -> Shares:
    """Return the fraction of the node-seconds used by each group, at least 1e-9."""
    used = np.bincount(group_of, weights=area, minlength=groups)
    return np.maximum(used / max(used.sum(), 1.0), 1e-9)
