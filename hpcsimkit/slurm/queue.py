"""The waiting jobs of a run in Slurm's order, and what each asks for in each of its partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.system import System
from hpcsimkit.slurm.limits import Ask, qos_in_order
from hpcsimkit.slurm.plan import Places, Ticket
from hpcsimkit.slurm.priority import FairShare, Usage, billing_of, standing
from hpcsimkit.slurm.rules import Rules
from hpcsimkit.slurm.tres import NODES, amounts_of, requested

__all__ = ["Waiting"]

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
        self._profile, self._system, self._parts = profile, system, partitions.parts
        self.names = partitions.names
        assert partitions.machines is not None
        self._resources: Sequence[str] = partitions.machines.resources
        self._users, self._accounts = _labels(workload, "user"), _labels(workload, "group")
        pairs = zip(self._accounts, self._users, strict=True)
        self.associations = profile.associations.with_users(list(dict.fromkeys(pairs)))
        self._place = [
            self.associations.of(account, user)
            for account, user in zip(self._accounts, self._users, strict=True)
        ]
        self._places = np.array(self._place, dtype=np.intp)
        self._qos = [profile.qos.get(name) for name in _labels(workload, "qos")]
        self._qos_of_part = [profile.qos.get(profile.partition_qos.get(name, "")) for name in self.names]
        self._asked = requested(workload, self._resources)
        self._admitted = partitions.admitted(workload)
        limits = workload.column("requested_time").astype(float)
        self._standing = standing(
            profile.priority, self._asked, self._qos, limits, partitions, profile.factors, profile.qos
        )
        self._add_whole_nodes(partitions)
        self._tiers = np.array([part.priority for part in partitions.parts])
        self._numbers = np.argsort(np.argsort(workload.column("id"), kind="stable"), kind="stable")
        self._state = np.frombuffer(system.ledger.state, dtype=np.uint8)
        self._since = workload.column("submit_time").astype(np.int64).copy()
        self._asks: dict[tuple[int, int], Ask] = {}
        self._fair_share = FairShare(self.associations, profile.priority)
        self._usage = Usage(self.associations, profile.priority.half_life, system.now)
        self._running: set[int] = set()
        self._begin = self._at = system.now
        self._fair = self._fair_share.factors(self._usage.at_time(system.now))

    def _add_whole_nodes(self, partitions: Partitions) -> None:
        """Let the size of jobs with whole nodes count all CPUs of the first nodes that suffice."""
        workload, rules = self._system.workload, self._profile.priority
        rows = np.flatnonzero(workload.column("exclusive") == 1).tolist()
        if not rows or not rules.size or "SMALL_RELATIVE_TO_TIME" in rules.flags:
            return
        places, cpus = Places(partitions), list(self._resources).index("cpus")
        everywhere = np.ones(len(places.machines), dtype=np.bool_)
        weight = rules.size * (-1 if rules.favor_small else 1) / places.machines.totals[cpus] / 2
        for row in rows:
            for part in self.parts_of(row):
                whole = places.first(Ticket(workload.jobs[row], part), places.capacity, everywhere)
                if whole is not None:
                    self._standing[part, row] += weight * (whole.totals[cpus] - self._asked["cpus"][row])

    # --- the jobs ------------------------------------------------------------------------------------------

    def parts_of(self, row: int) -> list[int]:
        """Return the numbers of the partitions of a job."""
        found: list[int] = np.flatnonzero(self._admitted[:, row]).tolist()
        return found

    def asks(self, ticket: Ticket) -> Ask:
        """Return what a job asks for in a partition."""
        row, part = ticket.job.index, ticket.part
        found = self._asks.get((row, part))
        if found is None:
            found = self._asks[row, part] = self._ask(row, part, amounts_of(self._asked, row))
        return found

    def _ask(self, row: int, part: int, amounts: Mapping[str, float]) -> Ask:
        weights = self._parts[part].billing
        billed = {**amounts, "billing": billing_of(amounts, weights, largest=self._largest)}
        qos = qos_in_order(self._qos[row], self._qos_of_part[part])
        limit = self._system.jobs[row].requested_time
        nodes = amounts.get(NODES, 1.0) or 1.0
        return Ask(row, self._users[row], self._accounts[row], self._place[row], qos, billed, nodes, limit)

    @property
    def _largest(self) -> bool:
        return "MAX_TRES" in self._profile.priority.flags

    # --- events --------------------------------------------------------------------------------------------

    def joined(self, row: int, now: int) -> None:
        """Let the age of a job begin, unless it is that of its submission."""
        if "ACCRUE_ALWAYS" not in self._profile.priority.flags:
            self._since[row] = now

    def running(self, job: Job, partition: str, allocation: Allocation) -> Ask:
        """Return what a job has that has started in a partition."""
        amounts = dict(zip(self._resources, map(float, allocation.totals), strict=True))
        amounts[NODES] = float(len(allocation.machines))
        return self._ask(job.index, self.names.index(partition), amounts)

    def start(self, ask: Ask, now: int) -> None:
        """Enter that a job has started."""
        factor = 1.0 if (qos := self._qos[ask.row]) is None else qos.usage_factor
        self._running.add(ask.row)
        self._usage.begin(ask.row, ask.place, ask.amounts["billing"] * factor, now)

    def runs(self, row: int) -> bool:
        """Return whether a job was entered as running."""
        return row in self._running

    def end(self, row: int, now: int) -> None:
        """Enter that a job runs no longer."""
        self._running.discard(row)
        self._usage.end(row, now)

    # --- preemption ----------------------------------------------------------------------------------------

    def may_preempt(self, ticket: Ticket, job: Job, system: System) -> bool:
        """Return whether a running job may be stopped for a waiting one in a partition."""
        profile, partition = self._profile, system.ledger.partition_of(job.index)
        if partition in profile.protected:
            return False
        if profile.preempt == "partition_prio":
            return bool(self._tiers[self.names.index(partition)] < self._tiers[ticket.part])
        mine, other = self._qos[ticket.job.index], self._qos[job.index]
        return mine is not None and other is not None and other.name in mine.preempts

    def requeues(self, job: Job) -> bool:
        """Return whether a job that is stopped waits again; else it is lost."""
        qos, mode = self._qos[job.index], self._profile.preempt_mode
        if self._profile.preempt == "qos" and qos is not None and qos.mode in ("requeue", "cancel"):
            mode = qos.mode
        return mode != "cancel"

    # --- priority ------------------------------------------------------------------------------------------

    def calculate(self, now: int) -> bool:
        """Compute all priorities anew, if it is time to; return whether it was."""
        period = self._profile.priority.calc_period
        last = now - (now - self._begin) % period
        if last == self._at:
            return False
        self._at = last
        self._fair = self._fair_share.factors(self._usage.at_time(now))
        return True

    def next_calculation(self, now: int) -> int:
        """Return the time at which priorities are computed anew [s]."""
        period = self._profile.priority.calc_period
        return self._begin + ((now - self._begin) // period + 1) * period

    def priorities(self, rows: Integers, parts: Integers) -> Integers:
        """Return the priorities of jobs in partitions, as of the last calculation."""
        rules = self._profile.priority
        if rules.basic:
            return np.zeros(len(rows), dtype=np.int64)
        age = np.minimum(np.maximum(self._at - self._since[rows], 0) / rules.max_age, 1.0)
        found = (
            rules.age * age + rules.fair_share * self._fair[self._places[rows]] + self._standing[parts, rows]
        )
        return np.maximum(np.floor(found), 1).astype(np.int64)

    def in_order(self) -> Iterator[tuple[int, int]]:
        """Yield the rows and partitions of the waiting jobs by tier, priority and number."""
        waiting = np.flatnonzero(self._state == 1)
        parts, places = np.nonzero(self._admitted[:, waiting])
        rows = waiting[places]
        order = np.lexsort((parts, self._numbers[rows], -self.priorities(rows, parts), -self._tiers[parts]))
        return zip(rows[order].tolist(), parts[order].tolist(), strict=True)


def _labels(workload: Workload, column: str) -> list[str]:
    """Return the name of each job's value of a column; empty for an unknown one."""
    values, value_of = np.unique(workload.column(column), return_inverse=True)
    names: list[Any] = ["" if value < 0 else workload.label(column, value) for value in values.tolist()]
    return [names[place] for place in value_of.tolist()]
