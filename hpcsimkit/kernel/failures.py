"""Failures during a run: jobs on nodes that go out of order are stopped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from heapq import merge
from operator import attrgetter
from typing import Protocol

import numpy as np
from simpy.events import Event

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.outages import Outage, Outages, OutageSource, PlannedOutage
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.clock import OUTAGE, Clock, Instant
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome

__all__ = ["FailingRun", "FailureEvents"]

STREAM = 1
"""Number of the stream of random numbers of failures, so that they do not depend on those of the policy."""


class FailingRun(Protocol):
    """The part of a :class:`~hpcsimkit.kernel.run.Run` that its failures read and call."""

    system: System
    clock: Clock

    def set_time(self) -> None:
        """Set the time of all systems to that of the clock."""

    def on_stop(self, job: Job, why: Outcome, requeue: bool, delay: int) -> None:
        """Stop a running job."""

    def take(self, capacity: Allocation, until: int, *, planned: bool = False) -> None:
        """Take free capacity out of order until a time [s]; `planned` if the calendar has announced it."""

    def capacity_changed(self) -> None:
        """Request a pass at this instant, if any jobs wait."""


class FailureEvents:
    """The outages of one run as events; each one schedules the next.

    Parameters
    ----------
    source : OutageSource or None
        The outages.
    windows : sequence of Outage
        Planned outages: the windows of the calendar on machines.
    run : Run
        The run.
    cluster : Cluster
        The cluster of the run, with its partitions.
    begin : int, optional
        Time before which there are no outages [s], in a begun run; by default the beginning of the run.

    Attributes
    ----------
    incomplete : list of (Outage, int)
        The outages that wait for nodes that are still in use, with the number of these.

    Raises
    ------
    UsageError
        An outage does not fit the cluster.
    """

    def __init__(
        self,
        source: OutageSource | None,
        windows: Sequence[Outage],
        run: FailingRun,
        cluster: AnyCluster,
        begin: int | None = None,
    ) -> None:
        self._run = run
        self._first = run.system.now if begin is None else begin
        self._counted = isinstance(run.system.cluster, Nodes)
        if self._counted and isinstance(cluster, Partitions) and not cluster.is_whole:
            raise UsageError(f"outages on partitions need machines, found {cluster!r}")
        rng = np.random.default_rng([run.system.seed, STREAM])
        given = None if source is None else source.on(run.system.workload, run.system.cluster)
        sources = filter(None, (given, Outages(windows)))
        each = (some.outages(run.system.cluster, self._first, rng) for some in sources)
        self._coming = merge(*each, key=attrgetter("start"))
        self._begun: list[Outage] = []  # on machines: those that may not be over yet
        self._capacities: list[list[int]] = [] if self._counted else run.system.cluster.capacity.tolist()
        # Rows of the jobs that have started, by machine.
        self._started_on: dict[int, list[int]] = defaultdict(list)
        for _, row, allocation in () if self._counted else run.system.running.entries:
            self.started(row, allocation)
        self.incomplete: list[tuple[Outage, int]] = []
        self._in_use = set[int]()  # the machines of incomplete outages
        self._schedule_next()

    def _schedule_next(self) -> None:
        outage = next(self._coming, None)
        if outage is not None:
            clock = self._run.clock
            Instant(clock, OUTAGE, max(max(outage.start, self._first) - clock.now, 0), [self._begin], outage)

    def _begin(self, event: Event) -> None:
        """Stop the jobs on the nodes of an outage, unless they drain, and take the nodes."""
        run, outage = self._run, event._value
        run.set_time()
        system = run.system
        if system.over:
            return  # the run is over
        if self._counted:
            left = outage.nodes if outage.drain else self._fail_nodes(outage)
        else:
            if not outage.drain:
                self._fail_machines(outage)
            self._begun.append(outage)
            left = len(outage.machines)
        self.incomplete.append((outage, left))
        self._take_what_is_free()
        run.capacity_changed()
        self._schedule_next()

    def started(self, row: int, allocation: Allocation) -> None:
        """Note where a job has started, so that the jobs of a machine that fails are found."""
        if not self._counted:
            for machine in allocation.machines:
                self._started_on[machine].append(row)

    def after_end(self, freed: Allocation | None = None) -> None:
        """Take what has become free of nodes that go out of order: nothing but `freed`, if it is given."""
        # Most jobs end on machines of which nothing goes out of order.
        if self.incomplete and (self._counted or freed is None or _meets(freed, self._in_use)):
            self._take_what_is_free()

    def _take_what_is_free(self) -> None:
        """Take what is free of incomplete outages, and forget those that are over or complete."""
        now = self._run.system.now
        taken = [(each, self._take(each, left)) for each, left in self.incomplete if each.end > now]
        self.incomplete = [(each, left) for each, left in taken if left]
        if not self._counted:
            self._in_use = {int(machine) for outage, _ in self.incomplete for machine in outage.machines}

    def after_give(self, capacity: Allocation) -> None:
        """Take what has returned from one outage, although another one is not over or complete yet."""
        now = self._run.system.now
        self._begun = [each for each in self._begun if each.end > now]
        for outage in self._begun:
            if _meets(capacity, {int(each) for each in outage.machines}):
                self._take(outage, 0)
        self.after_end()

    def _take(self, outage: Outage, left: int) -> int:
        """Take the free capacity of an outage; return the number of nodes or machines still in use."""
        if not self._counted:
            return sum([not self._take_machine(int(each), outage) for each in outage.machines])
        taken = min(left, max(self._run.system.free, 0))
        if taken:
            self._run.take(taken, outage.end)
        return left - taken

    def _by_start(self, job: Job) -> tuple[int, int]:
        return self._run.system.ledger.starts[job.index], job.index

    # --- homogeneous nodes ----------------------------------------------------------------------------------

    def _fail_nodes(self, outage: Outage) -> int:
        """Stop the jobs on nodes from a position on; return the number of nodes that are there to fail.

        The busy nodes are listed by the start of their jobs, the idle ones follow.
        """
        system = self._run.system
        jobs = sorted(system.running_jobs(), key=self._by_start)
        present = sum(job.nodes for job in jobs) + max(system.free, 0)
        wanted = min(outage.nodes, present)
        first = min(int(outage.position * present), present - wanted)
        node = 0
        for job in jobs:
            if node < first + wanted and node + job.nodes > first:
                self._run.on_stop(job, Outcome.FAILED, True, 0)
            node += job.nodes
        return wanted

    # --- machines ----------------------------------------------------------------------------------------

    def _fail_machines(self, outage: Outage) -> None:
        """Stop the jobs on the machines of an outage."""
        run, system = self._run, self._run.system
        machines = {int(each) for each in outage.machines}
        if not system.suspended and all(map(self._is_idle, machines)):
            return
        rows = dict.fromkeys(row for machine in machines for row in self._started_on.pop(machine, ()))
        suspended = [row for row, had in system.suspended.items() if _meets(had.allocation, machines)]
        running = [row for row in rows if self._runs_on(row, machines)]
        by_start = sorted((system.jobs[row] for row in running), key=self._by_start)
        for job in (*(system.jobs[row] for row in suspended), *by_start):
            run.on_stop(job, Outcome.FAILED, True, 0)

    def _is_idle(self, machine: int) -> bool:
        """Return whether all of a machine is free."""
        free: list[int] = self._run.system.free[machine].tolist()
        return free == self._capacities[machine]

    def _runs_on(self, row: int, machines: Set[int]) -> bool:
        """Return whether a job that has started on some machines still runs on any of them."""
        system = self._run.system
        job = system.jobs[row]
        return job in system.running and _meets(system.running.allocation(job), machines)

    def _take_machine(self, machine: int, outage: Outage) -> bool:
        """Take the free capacity of a machine; return whether all of it is out of order.

        Where nothing is free, the machine may be taken for one in use although other outages have all of it:
        there is nothing to take until one of them is over, and `after_give` looks at the machine then.
        """
        system = self._run.system
        free = system.free[machine].tolist()
        if not any(free):
            return False
        planned = isinstance(outage, PlannedOutage)
        self._run.take(Allocation([machine], np.array([free])), outage.end, planned=planned)
        if free == self._capacities[machine]:
            return True
        gone = [each.amounts[0] for _, _, each in system.gone if each.machines == (machine,)]
        return np.array_equal(sum(gone), self._capacities[machine])


def _meets(allocation: Allocation, machines: Set[int]) -> bool:
    """Return whether an allocation has any of some machines."""
    return not machines.isdisjoint(allocation.machines)
