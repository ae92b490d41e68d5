"""The past of a begun run: passes that start the jobs whose starts are given, until the policy takes over."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import ScheduleError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.ledger import State
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.scheduler import Scheduler
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.system import System

__all__ = ["Past", "has_past"]

NOT_YET = State.UNSEEN, State.HELD


def has_past(begun: Begun, workload: Workload, setup: Setup, cluster: AnyCluster, policy: Policy) -> bool:
    """Return whether the time before a begun run is simulated, too, instead of its running jobs set at once.

    It is if jobs have ended or were rejected, and if more than running jobs depends on the past: partitions,
    gates, changes of capacity. A policy that schedules all partitions hears of the starts of running jobs.
    """
    if begun.before or begun.rejected or setup.all_gates or setup.calendar or setup.outages is not None:
        return True
    if isinstance(cluster, Partitions) and (policy.schedules_partitions or not cluster.is_whole):
        return True
    rows = np.fromiter(begun.started, dtype=np.int64, count=len(begun.started))
    start = np.fromiter(begun.started.values(), dtype=np.int64, count=len(rows))
    return bool((start + workload.column("run_time")[rows] <= begun.at).any())


class Past:
    """The passes of one scheduler before a begun run begins.

    Parameters
    ----------
    begun : Begun
        The state in which the policy takes over.
    scheduler : Scheduler
        The scheduler whose passes are replaced.
    """

    def __init__(self, begun: Begun, scheduler: Scheduler) -> None:
        self._begun, self._scheduler = begun, scheduler
        system = scheduler.system
        name, jobs = system.partition, system.jobs
        self._names = _partitions_of(begun, system)
        # Jobs without run time come first at their instant: they leave what they had to the others.
        in_order = sorted((start, jobs[row].run_time > 0, row) for row, start in begun.started.items())
        self._coming = deque(
            (start, row)
            for start, _, row in in_order
            if system.partitions is not None or begun.partitions.get(row, name) == name
        )
        self._due: list[tuple[int, int]] = []

    def schedule(self, system: System) -> Any:
        """Start the jobs that are due; from the beginning on, let the policy take over."""
        begun, now = self._begun, system.now
        for job in list(system.newcomers) if begun.rejected else ():
            if job.index in begun.rejected and system.ledger.waits(job.index):
                system.reject(job)
        while self._coming and self._coming[0][0] <= now:
            self._due.append(self._coming.popleft())
        self._due = [(start, row) for start, row in self._due if not self._is_over(start, row, system)]
        if now < begun.at:
            following = self._coming[0][0] if self._coming else begun.at
            system.wake(min(following, begun.at))
            return None
        if self._due and self._scheduler.clock.peek() <= now:  # a job without run time ends at this instant
            return None
        if not begun.before:
            for start, row in self._due:
                raise self._does_not_fit(start, row, system)
        return self._scheduler.begin_passes()

    def _is_over(self, start: int, row: int, system: System) -> bool:
        """Start a job if it waits and fits; return whether nothing is left to do for it."""
        ledger = system.ledger
        if not ledger.waits(row):
            return State(ledger.state[row]) not in NOT_YET
        job, allocation = system.jobs[row], self._begun.allocations.get(row)
        is_here = job in system.queue  # else it waits in another partition
        if not is_here:
            return True
        if start < system.now and not self._begun.before:
            raise self._does_not_fit(start, row, system)
        if allocation is not None:
            allocation = self._scheduler.own_part(allocation)
        if allocation is not None and system.cluster.holds(job, allocation, system.room_for(job)):
            system.start(job, allocation, partition=self._names.get(row, ""))
            return True
        if (allocation is None or self._begun.before) and system.fits(job):
            name = self._names.get(row, "")
            place = _place_in(name, job, system)
            if place is not None or not name:
                system.start(job, place, partition=name)
                return True
        return False

    def _does_not_fit(self, start: int, row: int, system: System) -> ScheduleError:
        job, allocation = system.jobs[row], self._begun.allocations.get(row)
        who = f"begun: job {job.id}, which started at {start} s,"
        if not system.ledger.waits(row) or system.fits(job):
            return ScheduleError(f"{who} was held by a gate, or not due, or did not fit")
        if allocation is None:
            return ScheduleError(f"{who} {system.cluster.shortage(job, system.free)}")
        return ScheduleError(f"{who} does not fit: {allocation!r} is not free, or is not what it needs")


def _place_in(name: str, job: Job, system: System) -> Allocation | None:
    """Return an allocation on the first machines of a partition that suffice, or None."""
    if not name or not isinstance(system.cluster, Machines):
        return None
    assert system.partitions is not None
    numbers = system.partitions.views[system.partitions.names.index(name)].numbers
    machines = np.zeros(len(system.cluster), dtype=np.bool_)
    machines[numbers] = True
    level, need = system.room_for(job), system.cluster.need(job).on_some(machines)
    return need.take(level, np.flatnonzero(need.usable(level)))


def _partitions_of(begun: Begun, system: System) -> dict[int, str]:
    """Return the partitions of the started jobs by row, if the policy schedules all partitions."""
    partitions = system.partitions
    if partitions is None:
        return {}
    first = np.argmax(partitions.admitted(system.workload), axis=0)
    return {row: begun.partitions.get(row, partitions.names[first[row]]) for row in begun.started}
