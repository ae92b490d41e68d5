"""The waiting jobs of a run in Slurm's order, and what each asks for in each of its partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.system import System
from hpcsimkit.slurm.accounts import Qos
from hpcsimkit.slurm.limits import Ask
from hpcsimkit.slurm.order import preempting_first
from hpcsimkit.slurm.plan import Ticket
from hpcsimkit.slurm.priority import FairShare, Usage
from hpcsimkit.slurm.requests import Requests
from hpcsimkit.slurm.rules import Rules
from hpcsimkit.slurm.tres import NODES

__all__ = ["Waiting", "records_of", "requeues"]

Integers = NDArray[np.int64]


class Waiting:
    """The waiting jobs of a run, their priorities, and the usage of those that run.

    Parameters
    ----------
    profile : Rules
        The configuration.
    partitions : Partitions
        The partitions of the run.
    system : System
        The state of the cluster.
    """

    def __init__(self, profile: Rules, partitions: Partitions, system: System) -> None:
        workload = system.workload
        self._profile = profile
        self._requests = requests = Requests(profile, partitions, workload)
        self.names = requests.names
        self.associations = requests.associations
        self._admitted, self._tiers = requests.admitted, requests.tiers
        self._state = np.frombuffer(system.ledger.state, dtype=np.uint8)
        self._since = workload.column("submit_time").astype(np.int64).copy()
        self._asks: dict[tuple[int, int], Ask] = {}
        self._record = records_of(workload)
        by_qos = profile.preempt == "qos"
        self._preempting = {
            name: frozenset(qos.preempts) for name, qos in profile.qos.items() if by_qos and qos.preempts
        }
        self._fair_share = FairShare(self.associations, profile.priority)
        self._usage = Usage(self.associations, profile.priority.half_life, system.now)
        self._running: set[int] = set()
        self._begin = self._at = system.now
        self._fair = self._fair_share.factors(self._usage.at_time(system.now))

    # --- the jobs ------------------------------------------------------------------------------------------

    def parts_of(self, row: int) -> list[int]:
        """Return the numbers of the partitions of a job."""
        return self._requests.parts_of(row)

    def asks(self, ticket: Ticket) -> Ask:
        """Return what a job asks for in a partition."""
        row, part = ticket.job.index, ticket.part
        found = self._asks.get((row, part))
        if found is None:
            found = self._asks[row, part] = self._requests.ask(row, part)
        return found

    def record(self, job: Job) -> int:
        """Return the record of a job in Slurm's queue: tasks of an array have one."""
        return int(self._record[job.index])

    # --- events --------------------------------------------------------------------------------------------

    def joined(self, row: int, now: int) -> None:
        """Let the age of a job begin, unless it is that of its submission."""
        if "ACCRUE_ALWAYS" not in self._profile.priority.flags:
            self._since[row] = now

    def running(self, job: Job, partition: str, allocation: Allocation) -> Ask:
        """Return what a job has that has started in a partition."""
        totals = map(float, allocation.totals)
        amounts = dict(zip(self._requests.resources, totals, strict=True))
        amounts[NODES] = float(len(allocation.machines))
        return self._requests.ask(job.index, self.names.index(partition), amounts)

    def start(self, ask: Ask, now: int) -> None:
        """Enter that a job has started."""
        self._running.add(ask.row)
        billing = ask.amounts["billing"] * self._requests.usage_factor(ask.row)
        self._usage.begin(ask.row, ask.place, billing, now)

    def runs(self, row: int) -> bool:
        """Return whether a job was entered as running."""
        return row in self._running

    def end(self, row: int, now: int) -> None:
        """Enter that a job runs no longer."""
        self._running.discard(row)
        self._usage.end(row, now)

    # --- preemption ----------------------------------------------------------------------------------------

    def stops_others(self, ticket: Ticket) -> bool:
        """Return whether running jobs may be stopped for a waiting one in a partition, if there are any."""
        profile = self._profile
        if profile.preempt != "qos":
            return profile.preempt == "partition_prio"
        mine = self._requests.qos[ticket.job.index]
        return mine is not None and mine.name in self._preempting

    def to_stop(self, ticket: Ticket, system: System) -> list[Job]:
        """Return the running jobs that may be stopped for a waiting one, in Slurm's order.

        Those of a lower QOS or tier come first, then those on fewer machines, then those submitted earlier.
        """
        profile, requests, running = self._profile, self._requests, system.running

        def key(job: Job) -> tuple[int, int, int]:
            qos = requests.qos[job.index]
            tier = self._tiers[self.names.index(system.ledger.partition_of(job.index))]
            rank = tier if profile.preempt == "partition_prio" else 0 if qos is None else qos.priority
            return int(rank), len(running.allocation(job).machines), int(requests.numbers[job.index])

        return sorted((job for job in running if self.may_preempt(ticket, job, system)), key=key)

    def may_preempt(self, ticket: Ticket, job: Job, system: System) -> bool:
        """Return whether a running job may be stopped for a waiting one in a partition."""
        profile, partition = self._profile, system.ledger.partition_of(job.index)
        if partition in profile.protected:
            return False
        if profile.preempt == "partition_prio":
            return bool(self._tiers[self.names.index(partition)] < self._tiers[ticket.part])
        mine, other = self._requests.qos[ticket.job.index], self._requests.qos[job.index]
        return mine is not None and other is not None and other.name in mine.preempts

    def requeues(self, job: Job, system: System) -> bool:
        """Return whether a job that is stopped waits again; else it is lost."""
        partition = system.ledger.partition_of(job.index)
        return requeues(self._profile, self._requests.qos[job.index], partition)

    def grace_time(self, job: Job, system: System) -> int:
        """Return for how long a running job that is to be stopped runs on first [s]."""
        if self._profile.preempt == "qos":
            qos = self._requests.qos[job.index]
            return 0 if qos is None else qos.grace_time
        return self._profile.grace_times.get(system.ledger.partition_of(job.index), 0)

    # --- priority ------------------------------------------------------------------------------------------

    def calculate(self, now: int, fair_shares: Mapping[tuple[str, str], float] | None = None) -> bool:
        """Compute all priorities anew, if it is time to; return whether it was.

        Fair shares by account and user take the place of those of the run.
        """
        interval = self._profile.priority.calc_period
        last = now - (now - self._begin) % interval
        due = last != self._at
        if due:
            self._at = last
            self._fair = self._fair_share.factors(self._usage.at_time(now))
        for key, share in (fair_shares or {}).items():
            self._fair[self.associations.of(*key)] = share
        return due

    def next_calculation(self, now: int) -> int:
        """Return the time at which priorities are computed anew [s]."""
        interval = self._profile.priority.calc_period
        return self._begin + ((now - self._begin) // interval + 1) * interval

    def priorities(self, rows: Integers, parts: Integers) -> Integers:
        """Return the priorities of jobs in partitions, as of the last calculation."""
        rules = self._profile.priority
        if rules.basic:
            return np.zeros(len(rows), dtype=np.int64)
        age = np.minimum(np.maximum(self._at - self._since[rows], 0) / rules.max_age, 1.0)
        places, standing = self._requests.place[rows], self._requests.standing[parts, rows]
        found = rules.age * age + rules.fair_share * self._fair[places] + standing
        return np.maximum(np.floor(found), 1).astype(np.int64)

    def in_order(self) -> Iterator[tuple[int, int]]:
        """Yield the rows and partitions of the waiting jobs by tier, priority and number.

        Jobs whose QOS may preempt others go before these: see
        :func:`~hpcsimkit.slurm.order.preempting_first`.
        """
        waiting = np.flatnonzero(self._state == 1)
        parts, places = np.nonzero(self._admitted[:, waiting])
        rows = waiting[places]
        numbers = self._requests.numbers[rows]
        order = np.lexsort((parts, numbers, -self.priorities(rows, parts), -self._tiers[parts]))
        if self._preempting:
            order = self._preempting_first(rows, parts, np.lexsort((parts, numbers)), order)
        return zip(rows[order].tolist(), parts[order].tolist(), strict=True)

    def _preempting_first(
        self, rows: Integers, parts: Integers, queue: Integers, order: Integers
    ) -> Integers:
        """Return an order of the waiting jobs in which those that may preempt others go before them.

        The tasks of an array are one record of Slurm's queue.
        """
        qos = [self._requests.qos[row] for row in rows.tolist()]
        names = ["" if each is None else each.name for each in qos]
        if not any(self._preempting.get(name, frozenset()) & {*names} for name in {*names}):
            return order
        rank = np.argsort(order).tolist()
        above = [self._preempting.get(name, frozenset()) for name in names]

        def goes_before(one: int, other: int) -> bool:
            if names[other] in above[one]:
                return True
            return names[one] not in above[other] and bool(rank[one] < rank[other])

        records: dict[tuple[int, int], list[int]] = {}
        for place, of in zip(queue.tolist(), self._record[rows[queue]].tolist(), strict=True):
            records.setdefault((of, int(parts[place])), []).append(place)
        places_of = {places[0]: places for places in records.values()}
        first = preempting_first(list(places_of), goes_before)
        return np.array([place for each in first for place in places_of[each]], dtype=np.int64)


def requeues(profile: Rules, qos: Qos | None, partition: str) -> bool:
    """Return whether a job of a QOS that is stopped in a partition waits again; else it is lost."""
    mode = profile.preempt_mode
    if profile.preempt == "partition_prio":
        mode = profile.preempt_modes.get(partition, mode)
    elif qos is not None and qos.mode in ("requeue", "cancel"):
        mode = qos.mode
    return mode != "cancel"


def records_of(workload: Workload) -> Integers:
    """Return the record of each job in Slurm's queue: tasks of an array, such as 7_1 and 7_2, have one."""
    if "id" not in workload.labels:
        return np.arange(len(workload))
    names = [workload.label("id", number) for number in workload.id.tolist()]
    first: dict[str, int] = {}
    records = [first.setdefault(name.rpartition("_")[0] or name, row) for row, name in enumerate(names)]
    return np.array(records, dtype=np.int64)
