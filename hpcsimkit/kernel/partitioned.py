"""Runs on a cluster with partitions: one scheduler for each, which share the clock and the record of jobs.

A single partition over the whole cluster is the plain run, whose system has the name of the partition.
"""

from __future__ import annotations

import copy
from collections import Counter
from itertools import compress
from typing import Any

from simpy.events import Event

from hpcsimkit.cluster.closures import Closures
from hpcsimkit.cluster.opaque import Allocation, AnyCluster
from hpcsimkit.cluster.partitions import Partition, Partitions, View
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.kernel.run import Run, RunParameters
from hpcsimkit.kernel.scheduler import Scheduler
from hpcsimkit.kernel.stalls import stalled
from hpcsimkit.results.attempts import Outcome

__all__ = ["PartitionedRun", "policy_in", "run_of"]


def run_of(parameters: RunParameters) -> Run:
    """Return the run of a simulation, of the class that its cluster needs."""
    if not isinstance(parameters.cluster, Partitions):
        return Run(parameters)
    if parameters.policy.schedules_partitions:
        return SharedRun(parameters)
    return WholeRun(parameters) if parameters.cluster.is_whole else PartitionedRun(parameters)


class WholeRun(Run):
    """A run on a cluster with one partition, which consists of the whole cluster."""

    def _scheduled(self, parameters: RunParameters) -> tuple[Policy, AnyCluster]:
        partitions = parameters.cluster
        assert isinstance(partitions, Partitions)
        (self._name,), self._billing = partitions.names, partitions.billing
        return parameters.policy, partitions.whole

    def reset(self) -> None:
        """Reset the policy on a system with the name of the partition."""
        self.system.partition, self.system.billing = self._name, self._billing
        self.ledger.partition = self._name
        super().reset()


class SharedRun(Run):
    """A run whose policy schedules all partitions: one system, the whole cluster."""

    def _scheduled(self, parameters: RunParameters) -> tuple[Policy, AnyCluster]:
        partitions = parameters.cluster
        assert isinstance(partitions, Partitions)
        self._partitions = partitions
        return parameters.policy, partitions.whole

    def reset(self) -> None:
        """Reset the policy on a system that knows the partitions."""
        self.system.partitions, self.system.billing = self._partitions, self._partitions.billing
        super().reset()


def policy_in(part: Partition, policy: Policy) -> Policy:
    """Return the policy of a partition: that of the run, with the order of the partition, if it has one.

    At an open order seat, it is the heuristic whose choice is the default.
    """
    if part.order is None:
        return policy
    if not isinstance(part.order, Order):
        raise UsageError(f"partition {part.name!r}: order needs an Order, found {part.order!r}")
    if not isinstance(policy, Pipeline):
        raise UsageError(
            f"partition {part.name!r} has an order of its own: a pipeline is needed, found {policy!r}"
        )
    changed = copy.copy(policy)
    changed.order = External(part.order) if isinstance(policy.order, External) else part.order
    return changed


class PartitionScheduler(Scheduler):
    """The scheduler of one partition.

    Parameters
    ----------
    run : PartitionedRun
        The run, which learns of all actions.
    part : Partition
        The partition.
    view : View
        The part of the cluster that belongs to the partition.
    """

    def __init__(self, run: PartitionedRun, part: Partition, view: View) -> None:
        parameters = run.parameters
        policy = policy_in(part, parameters.policy)
        if view.cluster.limited and policy.selects_machines:
            raise UsageError(
                f"partition {part.name!r} has in_use: a policy whose machines are chosen by a placement is "
                f"needed, found {policy!r}"
            )
        whole = run.system
        super().__init__(parameters, policy, whole.workload, view.cluster, run.callbacks, run.ledger)
        self.system.partitioned = True
        self.run, self.view = run, view
        self.neighbours: list[PartitionScheduler] = []
        self.system.partition, self.system.everywhere, self.system.billing = part.name, whole, whole.billing

    def want_pass(self) -> None:
        """Request a pass at this instant, if any jobs wait."""
        if len(self.system.queue) or self.acts_on_running:
            self.pass_wanted = self.run.pass_wanted = True

    def own_part(self, allocation: Allocation) -> Allocation | None:
        """Return the part of an allocation of the whole cluster that lies in the partition, if any."""
        return allocation if self.view.numbers is None else self.view.part_of(allocation)

    def on_start(self, job: Job, allocation: Allocation) -> None:
        """Forward the start of a job."""
        self.run.started(job, allocation, self)

    def on_test(self, job: Job) -> None:
        """Forward the test of a job."""
        self.run.on_test(job)

    def on_reject(self, job: Job) -> None:
        """Forward the rejection of a job."""
        self.run.rejected(job, self)

    def on_stop(self, job: Job, why: Outcome, requeue: bool, delay: int) -> None:
        """Forward the stop of a job."""
        self.run.on_stop(job, why, requeue, delay)

    def on_hold(self, job: Job, reason: str) -> None:
        """Keep a job that the policy skips out of the queue of the partition until the end of the pass."""
        self.system.withdraw(job)
        self.skipped.append(job)
        self.run.skip(job, reason)

    def readmit(self) -> None:
        """Put the jobs that were skipped into the queue again, except for those that a gate holds by now."""
        for job in self.skipped:
            if self.system.ledger.waits(job.index):
                self.system.arrivals_left += 1
                self.system.submit(job)

    def forget_skipped(self) -> None:
        """Enter that the partition skips no job any more."""
        skipped, self.skipped = self.skipped, []
        for job in skipped:
            self.run.skip_no_more(job)

    def on_take(self, capacity: Allocation, until: int, number: int) -> None:
        """Refuse to take capacity of a partition by itself."""
        if not self.run.takes:
            raise UsageError(f"partition {self.system.partition!r}: outages belong to the whole cluster")

    def _wake(self, event: Event) -> None:
        self.run.set_time()
        super()._wake(event)
        self.want_pass()

    def correct_estimates(self) -> None:
        """Correct estimates of running jobs, each by the partition in which the job started."""
        system, run = self.system, self.run
        while system.estimator.corrects and system.running.overrun(system.now):
            job = system.jobs[system.running.entries[0][1]]
            owner = run.owner[job.index]
            owner.system.correct(job)
            for other in (run, *owner.neighbours):
                if job in other.system.running:
                    other.system.expect(job)


class PartitionedRun(Run):
    """A run on a cluster with partitions.

    Its own system is that of the whole cluster: observers see it, and the result is made from it. The policy
    acts on the systems of the partitions, a copy on each.

    Attributes
    ----------
    schedulers : list of PartitionScheduler
        The schedulers of the partitions, in the order in which they have their passes.
    owner : dict of int to PartitionScheduler
        The partition in which each running job started, by row.
    """

    _deciding: PartitionScheduler

    joins_at_once = False

    def _scheduled(self, parameters: RunParameters) -> tuple[Policy, AnyCluster]:
        partitions = parameters.cluster
        assert isinstance(partitions, Partitions)
        self._partitions = partitions
        return Policy(), partitions.whole

    def reset(self) -> None:
        """Create the schedulers of the partitions, and reset each."""
        partitions, system = self._partitions, self.system
        self.owner: dict[int, PartitionScheduler] = {}
        self.takes = False
        self._left: list[PartitionScheduler] = []
        self._taken: dict[int, list[tuple[PartitionScheduler, int]]] = {}
        self._skipping: Counter[int] = Counter()  # number of partitions whose policies skip a job, by row
        system.billing = partitions.billing
        each = zip(partitions.parts, partitions.views, strict=True)
        defined = [PartitionScheduler(self, part, view) for part, view in each]
        priority = {part.name: part.priority for part in partitions.parts}
        self.schedulers = sorted(defined, key=lambda scheduler: -priority[scheduler.system.partition])
        for scheduler in defined:
            scheduler.neighbours = [
                other
                for other in defined
                if other is not scheduler and scheduler.view.shares_with(other.view)
            ]
        admitted = partitions.admitted(self.parameters.workload)
        self._queued_in = [tuple(compress(defined, column)) for column in admitted.T.tolist()]
        rows: list[int] = system.workload.arrival_order.tolist()
        due = self.gates.due_by_log(rows)
        for scheduler, jobs in zip(defined, admitted, strict=True):
            scheduler.system.arrivals_left = int(jobs[due].sum())
            scheduler.system.now = system.now
            if isinstance(system.calendar, Closures):
                assert scheduler.view.numbers is not None
                scheduler.system.calendar = system.calendar.on(scheduler.view.numbers)
                scheduler.system.changes_left = system.changes_left
            scheduler.reset()

    @property
    def acting(self) -> list[Scheduler]:
        """The schedulers of the partitions."""
        return [*self.schedulers]

    def set_time(self) -> None:
        """Set the time of all systems to that of the clock."""
        now = self.system.now = self.clock.now
        for scheduler in self.schedulers:
            scheduler.system.now = now

    def calendar_changed(self) -> None:
        """Request passes of all partitions after a change of the calendar."""
        super().calendar_changed()
        for scheduler in self.schedulers:
            system = scheduler.system
            if isinstance(system.calendar, Closures):
                system.calendar.forget(system.now)
            system.version += 1
            system.changes_left -= 1
            scheduler.want_pass()

    # --- events ----------------------------------------------------------------------------------------

    def expect(self, job: Job, times: int = 1) -> None:
        """Count one more submission of a job in its partitions, or one fewer."""
        super().expect(job, times)
        for scheduler in self._queued_in[job.index]:
            scheduler.system.arrivals_left += times

    def withdraw(self, *jobs: Job) -> None:
        """Remove jobs that a gate holds from all queues."""
        super().withdraw(*jobs)
        for scheduler in self.schedulers:
            queue = scheduler.system.queue  # without those that the policy skips in this pass
            of_its_own = [job for job in jobs if scheduler in self._queued_in[job.index] and job in queue]
            if of_its_own:
                scheduler.system.withdraw(*of_its_own)
                self._left.append(scheduler)

    def _pass_again(self, event: Event) -> None:
        super()._pass_again(event)
        for scheduler in self._left:
            scheduler.want_pass()
        self._left.clear()

    def join(self, job: Job) -> None:
        """Add a job to the queues of the partitions that admit it."""
        self.set_time()
        for scheduler in self._queued_in[job.index]:
            scheduler.system.submit(job)
            scheduler.want_pass()
        super().join(job)

    def leave(self, job: Job) -> Allocation:
        """Take back the resources of a job that is stopped, in all partitions."""
        owner = self.owner.pop(job.index)
        for each in (owner, *owner.neighbours):
            if job in each.system.running:
                each.system.vacate(job)
                each.want_pass()
        return super().leave(job)

    def _come_back(self, job: Job, delay: int) -> None:
        for scheduler in self.schedulers:
            scheduler.system.expect_attempts()
        super()._come_back(job, delay)

    def take(self, capacity: Allocation, until: int, *, planned: bool = False) -> None:
        """Take free capacity out of order, in all partitions that contain it."""
        number, self.takes = self.system.take(capacity, until, planned=planned), True
        if planned:
            self.planned.add(number)
        parts = self._taken[number] = []
        for scheduler in self.schedulers:
            part = scheduler.view.part_of(capacity)
            if part is not None:
                parts.append((scheduler, scheduler.system.take(part, until, planned=planned)))
                scheduler.want_pass()
        self.takes = False

    def give(self, number: int) -> Allocation:
        """Return capacity that was out of order, in all partitions that contain it."""
        for scheduler, part in self._taken.pop(number):
            scheduler.system.give(part, planned=number in self.planned)
            scheduler.want_pass()
        return super().give(number)

    def end(self, event: Event) -> None:
        """End a job in its partition and in those that share its machines."""
        job, attempt = event._value
        if self._attempts[job.index] != attempt:
            return
        self.set_time()
        owner = self.owner.pop(job.index)
        owner.system.end(job)
        owner.want_pass()
        for other in owner.neighbours:
            if job in other.system.running:
                other.system.vacate(job)
                other.want_pass()
        super().end(event)

    def started(self, job: Job, allocation: Allocation, owner: PartitionScheduler) -> None:
        """Record a job that has started in a partition, in the whole cluster and in all other partitions."""
        system, everywhere = self.system, owner.view.to_whole(allocation)
        system.queue.remove(job)
        system.occupy(job, everywhere)
        if system.allocations is not None:
            system.allocations[job.index] = everywhere
            system.events.append(job.index)
        self.owner[job.index] = owner
        self.ledger.release(job.index, system.now)  # the policy of another partition may have skipped it
        self.ledger.partitions[job.index] = owner.system.partition
        self._withdraw(job, owner)
        for other in owner.neighbours:
            part = other.view.part_of(everywhere)
            if part is not None:
                other.system.occupy(job, part)
        self.on_start(job, everywhere)

    def rejected(self, job: Job, owner: PartitionScheduler) -> None:
        """Record a job that the policy of a partition has rejected."""
        self.ledger.release(job.index, self.system.now)
        self.system.withdraw(job)
        self._withdraw(job, owner)
        self.on_reject(job)

    def skip(self, job: Job, reason: str) -> None:
        """Enter that the policy of a partition skips a job, which may start in another one."""
        self._skipping[job.index] += 1
        news = self.ledger.hold(job.index, self.system.now, reason)
        self.ledger.submit(job.index)
        for notify in self.callbacks.on_hold if news else ():
            notify(job, reason, self.system)

    def skip_no_more(self, job: Job) -> None:
        """Enter that the policy of a partition does not skip a job any more."""
        self._skipping[job.index] -= 1
        if not self._skipping[job.index] and self.ledger.waits(job.index):
            self.ledger.release(job.index, self.system.now)

    def _withdraw(self, job: Job, owner: PartitionScheduler) -> None:
        """Remove a job from the queues of all other partitions."""
        for other in self._queued_in[job.index]:
            if other is not owner:
                other.system.withdraw(job)
                other.want_pass()

    def finish(self) -> None:
        """End the run once no event is left; raise a StalledError if jobs are still waiting."""
        for scheduler in self.schedulers:
            if len(scheduler.system.queue):
                raise stalled(scheduler.system)
        super().finish()

    # --- passes ----------------------------------------------------------------------------------------

    def run_pass(self) -> None:
        """Run the passes of all partitions that need one, until a decision is pending."""
        system = self.system
        while self.decision is None:
            following = next((each for each in self.schedulers if each.pass_wanted), None)
            if following is None:
                self.pass_wanted = False
                return
            if self.clock.peek() <= system.now:  # the end of a job without run time
                return
            self._deciding = following
            following.run_pass()
            system.passes = sum(each.system.passes for each in self.schedulers)
            self.decision = following.decision
        system.newcomers.clear()

    def resume(self, decision: Decision, choice: Any) -> None:
        """Resume the suspended pass with the chosen option, then run those of the other partitions."""
        self._deciding.resume(decision, choice)
        self.decision = self._deciding.decision
        self.run_pass()
