"""The state of one run, its events and its scheduling passes."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Iterable
from typing import Protocol

from simpy.events import Event

from hpcsimkit.cluster.calendar import Calendar
from hpcsimkit.cluster.closures import Closures
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import Allocation, AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun, resume
from hpcsimkit.kernel.clock import ARRIVAL, CHANGE, GIVE, RETURN, TEST, Instant
from hpcsimkit.kernel.failures import FailureEvents
from hpcsimkit.kernel.gate import Gates, Held
from hpcsimkit.kernel.ledger import Ledger, State
from hpcsimkit.kernel.observers import Callbacks, Observer
from hpcsimkit.kernel.parameters import parts
from hpcsimkit.kernel.past import Past, has_past
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.restart import Progress
from hpcsimkit.kernel.scheduler import Scheduler, SchedulerParameters
from hpcsimkit.kernel.stage import Hearing
from hpcsimkit.kernel.stalls import finish
from hpcsimkit.results.attempts import Outcome

__all__ = ["Run", "RunParameters"]


class RunParameters(SchedulerParameters, Protocol):
    """The parameters of a run: the part of :class:`~hpcsimkit.kernel.simulation.Simulation` that it reads."""

    workload: Workload
    policy: Policy
    cluster: AnyCluster
    observers: tuple[Observer, ...]


class Run(Scheduler):
    """All state of one run, created at once; the methods are its events and its scheduling passes.

    Parameters
    ----------
    parameters : RunParameters
        The parameters of the run. The policy and the order of events are copied.

    Attributes
    ----------
    clock : Clock
        The SimPy environment.
    ledger : Ledger
        The record of the run.
    cut_short : list of int
        Rows of the jobs that exceed their wall-time limit due to the locality model.
    served : dict of int to int
        Run time [s] of each started job by its row, under the locality model; empty without one.
    down : list of (int, int, Allocation)
        Beginning and end [s] of each outage, and its capacity.
    planned : set of int
        Numbers of the outages that the calendar has announced.

    Raises
    ------
    UsageError
        The policy has no order of the queue or no estimator.
    """

    # See Scheduler.
    __slots__ = (
        "_attempts",
        "_failures",
        "_follows_ends",
        "_gated",
        "_lasts_as_told",
        "_schedule_end",
        "ledger",
    )

    parameters: RunParameters
    simulator = "simpy"
    joins_at_once = True
    """Whether jobs that gates let in at the same instant may join the queue together."""

    def __init__(self, parameters: RunParameters) -> None:
        kill = parameters.setup.walltime == "kill"
        workload = parameters.workload.killed_at_limit if kill else parameters.workload
        self.gates = Gates(parameters.setup.all_gates, workload)
        self._gated = bool(self.gates)
        self._asking: set[tuple[int, int]] = set()
        self._passes_again = False
        begun = parameters.setup.begun
        setup, of_run, whole = parameters.setup, parameters.policy, parameters.cluster
        with_past = begun is not None and has_past(begun, workload, setup, whole, of_run)
        self.begun = None if with_past else begun
        self._service_time = parameters.setup.service_time
        self.cut_short: list[int] = []
        self.served: dict[int, int] = {}
        policy, cluster = self._scheduled(parameters)
        self.ledger = Ledger(workload, gated=self._gated)
        self._attempts = self.ledger.attempts
        if self._gated and kill:
            cut = parameters.workload.column("run_time") > workload.column("run_time")
            self.ledger.incomplete.update(cut.nonzero()[0].tolist())
        super().__init__(parameters, policy, workload, cluster, Callbacks(parameters.observers), self.ledger)
        self.guard.system = self.system
        self.events = copy.copy(parameters.setup.event_order)
        self.events.reset(self)
        self._schedule_end = self.events.schedule_end
        self._restart = parameters.setup.restart
        self._lasts_as_told = self._restart.plain and self._service_time is None
        self.down: list[tuple[int, int, Allocation]] = []
        self.planned: set[int] = set()
        self._down_nodes = 0, 0  # since when, and how many, by the calendar of homogeneous nodes
        self._failures: FailureEvents | None = None
        self.calendar = parameters.setup.calendar.on(workload)
        self._follow(self.calendar)
        self.reset()
        if begun is not None and with_past:
            for scheduler in self.acting:
                scheduler.replace_passes(Past(begun, scheduler).schedule)
        for notify in self.callbacks.on_begin:
            notify(self.system)
        self.events.begin(self)
        gone = self.calendar.outages if isinstance(self.system.calendar, Closures) else []
        if parameters.setup.outages is not None or gone:
            first = None if begun is None else begun.at
            self._failures = FailureEvents(parameters.setup.outages, gone, self, parameters.cluster, first)
        self._follows_ends = self._gated or self._failures is not None or bool(self.calendar)

    @property
    def acting(self) -> list[Scheduler]:
        """The schedulers that have passes: the run itself, or one for each partition."""
        return [self]

    def _scheduled(self, parameters: RunParameters) -> tuple[Policy, AnyCluster]:
        """Return the policy and the cluster of the run."""
        return parameters.policy, parameters.cluster

    # --- the course of the run -------------------------------------------------------------------------

    def advance(self) -> None:
        """Process events until a decision is pending.

        Raises
        ------
        simpy.core.EmptySchedule
            No event is left.
        """
        self.events.advance(self)

    def finish(self) -> None:
        """End the run once no event is left.

        Raises
        ------
        StalledError
            Jobs are still waiting.
        """
        finish(self.system, self.callbacks.on_finish)

    # --- events ----------------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Add a job that is due to the queue, unless a gate holds it."""
        held = self.gates.holds(job, self.system) if self._gated else None
        if held is None:
            if self._gated:
                self.ledger.release(job.index, self.system.now)
            self.join(job)
        else:
            self.expect(job, -1)
            self._hold(job, held)

    def join(self, job: Job) -> None:
        """Add a job to the queue."""
        self.system.submit(job)
        self.pass_wanted = True
        for notify in self.callbacks.on_submit:
            notify(job, self.system)

    def expect(self, job: Job, times: int = 1) -> None:
        """Count one more submission of a job that is certain to come, or one fewer."""
        self.system.arrivals_left += times

    def take_over(self, begun: Begun) -> None:
        """Set the running jobs of a begun run, schedule their ends, and request a pass at once.

        Raises
        ------
        ScheduleError
            The jobs cannot run at the same time, or not with their allocations.
        """
        system = self.system
        for row, start in begun.started.items():
            job = system.jobs[row]
            resume(job, start, begun.allocations.get(row), system)
            self._schedule_end(job, start + job.run_time - system.now)
        Instant(self.clock, ARRIVAL, 0, [self._wake])

    def submit_now(self, event: Event) -> None:
        """Process the event of a single submission; its value is the job."""
        self.system.now = self.clock.now
        self.submit(event._value)

    def end(self, event: Event) -> None:
        """Process the end of an attempt; the value of the event is the job, and the number of the attempt."""
        # SimPy cannot cancel events: the end of an attempt that was stopped comes all the same.
        job, attempt = event._value
        if self._attempts[job.index] != attempt:
            return
        system = self.system
        system.now = self.clock.now
        system.end(job)
        for notify in self.callbacks.on_end:
            notify(job, system)
        if self._follows_ends:
            self._follow_end(job)
        if system.queue.jobs or self.acts_on_running:  # as `capacity_changed`, without a call for each job
            self.pass_wanted = True

    def _follow_end(self, job: Job) -> None:
        """Let gates, outages and windows follow the end of a job."""
        if self._gated:
            self._ask_again(self.gates.after_end(job, self.system))
        if self._failures is not None and self._failures.incomplete:
            self._failures.after_end(self.system.given(job.index))
        if self._gone:
            self._count_down()

    def capacity_changed(self) -> None:
        """Request a pass at this instant, if any jobs wait."""
        if self.system.queue.jobs or self.acts_on_running:
            self.pass_wanted = True

    def set_time(self) -> None:
        """Set the time of the system to that of the clock."""
        self.system.now = self.clock.now

    def _follow(self, calendar: Calendar) -> None:
        """Subtract the nodes that are gone at the beginning, and schedule the first change."""
        system, now = self.system, self.clock.now
        cluster = system.cluster
        if calendar and isinstance(cluster, Machines):
            system.calendar = Closures.of(calendar.windows, cluster, system.workload)
        elif calendar:
            whole = self.parameters.cluster
            calendar.check_nodes(cluster if isinstance(whole, Partitions) and whole.is_whole else whole)
            system.calendar = calendar
        for part in parts(self.policy) if calendar else ():
            if isinstance(part, Hearing) and not part.heeds_calendar:
                raise UsageError(f"{part!r} knows no calendar")
        self._gone = 0
        self._changes = [time for time in system.calendar.times if time > now]
        system.changes_left = len(self._changes)
        self._take_windows()
        self._schedule_change()

    def _take_windows(self) -> None:
        """Take the nodes that the calendar says are gone now, or forget the closures that are over."""
        system, now = self.system, self.clock.now
        if isinstance(system.calendar, Closures):
            system.calendar.forget(now)  # what is gone for all goes out of order, see FailureEvents
            return
        gone, before = system.calendar.gone(now), self._gone
        if gone != before:
            system.free, self._gone = system.free + before - gone, gone
            self._count_down()

    def _count_down(self) -> None:
        """Record the nodes that were down up to now, and count those that are: gone and not in use.

        Whatever is down in the end has been recorded: the last change that is processed comes after all jobs,
        when nothing that is gone is in use, so that this amount differs from the one before.
        """
        since, nodes = self._down_nodes
        # Jobs beyond their estimates keep their nodes, so that the free capacity is below 0.
        down = self._gone + min(self.system.free, 0)
        if down != nodes:
            now = self.clock.now
            if nodes and now > since:
                self.down.append((since, now, nodes))
            self._down_nodes = now, down

    def _schedule_change(self) -> None:
        """Schedule the next change of the calendar; each one schedules the next."""
        if self._changes:
            at = self._changes.pop(0)
            Instant(self.clock, CHANGE, at - self.clock.now, [self._change])

    def _change(self, event: Event) -> None:
        self.set_time()
        system = self.system
        self._take_windows()
        if self._failures is not None:  # what the calendar returns may be out of order by now
            self._failures.after_end()
        self.calendar_changed()
        if not system.over:
            self._schedule_change()

    def calendar_changed(self) -> None:
        """Request a pass after a change of the calendar."""
        self.system.version += 1
        self.system.changes_left -= 1
        self.capacity_changed()

    def rank(self, job: Job) -> float:
        """Return the priority of a submission; with gates, it preserves the order of the log."""
        # Below 1, so that all submissions still follow the ends and changes of their instant.
        return ARRIVAL + job.index / len(self.system.workload) if self._gated else ARRIVAL

    def _submit_later(self, job: Job) -> None:
        """Submit a job that is due from its submission time on, or from now on."""
        self.ledger.resubmit(job)
        self.expect(job)
        seconds = max(job.submit_time - self.system.now, 0)
        Instant(self.clock, self.rank(job), seconds, [self.submit_now], job)

    # --- gates -------------------------------------------------------------------------------------------

    def _ask_again(self, jobs: Iterable[Job]) -> None:
        """Let the jobs that gates no longer hold join the queue at this instant, and the others leave it."""
        waiting: dict[int, Job] = {}
        held: list[Job] = []
        for job in jobs:
            row = job.index
            if self.ledger.waits(row):
                waiting[row] = job
            elif row in self.ledger.held:
                held.append(job)
            elif row in self.gates.awaited:
                self.gates.awaited.discard(row)
                self._submit_later(job)
        if held:
            self._ask_soon(held)
        answers = zip(waiting.values(), self.gates.holds_each([*waiting.values()], self.system), strict=True)
        leaving = [(job, answer) for job, answer in answers if answer is not None]
        if leaving:
            self._leave_queue(leaving)

    def _ask_at(self, job: Job, at: int) -> None:
        """Ask the gates about a job that they hold again at a time [s]."""
        if (job.index, at) not in self._asking:
            self._asking.add((job.index, at))
            self.expect(job)
            Instant(self.clock, self.rank(job), at - self.system.now, [self._ask_now], (job, at))

    def _ask_now(self, event: Event) -> None:
        self.set_time()
        job, at = event._value
        self._asking.discard((job.index, at))
        if job.index in self.ledger.held and not self.ledger.waits(job.index):
            self.submit(job)
        else:
            self.expect(job, -1)

    def _ask_soon(self, jobs: list[Job]) -> None:
        """Ask the gates about jobs that they hold again at this instant, in the order of the log."""
        now = self.system.now
        heard = self.callbacks.on_submit or self.callbacks.on_hold
        if heard or not self.joins_at_once or self.gates.reads_queue or len(jobs) == 1:
            for job in jobs:
                self._ask_at(job, now)
            return
        asked = {(job.index, now): job for job in jobs}
        for key in self._asking.intersection(asked):
            del asked[key]
        self._asking.update(asked)
        self.system.arrivals_left += len(asked)
        self._ask_in_turn([asked[key] for key in sorted(asked)])

    def _ask_in_turn(self, jobs: list[Job]) -> None:
        if jobs:
            Instant(self.clock, self.rank(jobs[0]), 0, [self._ask_each_now], jobs)

    def _ask_each_now(self, event: Event) -> None:
        """Ask about the jobs that come before the next event of this instant, later about the others."""
        self.set_time()
        system, jobs, now = self.system, event._value, self.system.now
        others = max(bisect_left(jobs, self.clock.next_rank(), key=self.rank), 1)
        self._ask_in_turn(jobs[others:])
        jobs = jobs[:others]
        self._asking.difference_update([(job.index, now) for job in jobs])
        held = [job for job in jobs if job.index in self.ledger.held and not self.ledger.waits(job.index)]
        system.arrivals_left -= len(jobs) - len(held)
        answers = self.gates.holds_each(held, system)
        if any(answer is not None and answer.never for answer in answers):
            for job in held:
                self.submit(job)
            return
        joining = [job for job, answer in zip(held, answers, strict=True) if answer is None]
        for job, answer in zip(held, answers, strict=True):
            if answer is not None:
                system.arrivals_left -= 1
                self._hold(job, answer)
        if joining:
            self.ledger.release_all([job.index for job in joining], now)
            system.submit_all(joining)
            self.pass_wanted = True

    def _hold(self, job: Job, held: Held) -> None:
        """Keep a job that is due out of the queue, or reject it if it can never start."""
        if self.ledger.hold(job.index, self.system.now, held.reason):
            for notify in self.callbacks.on_hold:
                notify(job, held.reason, self.system)
        if held.never:
            self.ledger.release(job.index, self.system.now, for_good=True)
            self.on_reject(job)
        elif held.until is not None:
            self._ask_at(job, held.until)

    def _leave_queue(self, leaving: list[tuple[Job, Held]]) -> None:
        """Take jobs out of the queue; another pass follows, as they may have been in the way of others."""
        self.withdraw(*(job for job, _ in leaving))
        hold, now = self.ledger.hold, self.system.now
        for job, held in leaving:
            if held.never or held.until is not None or self.callbacks.on_hold:
                self._hold(job, held)
            else:
                hold(job.index, now, held.reason)
        if not self._passes_again:
            self._passes_again = True
            Instant(self.clock, RETURN, 0, [self._pass_again])

    def on_hold(self, job: Job, reason: str) -> None:
        """Keep a job that the policy skips out of the queue until the end of the pass."""
        self.withdraw(job)
        self._hold(job, Held(reason))
        self.skipped.append(job)

    def readmit(self) -> None:
        """Put the jobs that the policy has skipped into the queue again, unless a gate holds them by now."""
        for job in self.skipped:
            held = self.gates.holds(job, self.system)
            if held is not None:
                self._hold(job, held)
            else:  # without a pass; the record says that it is held until the next one
                self.expect(job)
                self.system.submit(job)

    def forget_skipped(self) -> None:
        """Enter that the jobs that were skipped are no longer held."""
        skipped, self.skipped = self.skipped, []
        for job in skipped:
            if self.ledger.waits(job.index):
                self.ledger.release(job.index, self.system.now)

    def withdraw(self, *jobs: Job) -> None:
        """Remove jobs that a gate holds from the queue."""
        self.system.withdraw(*jobs)

    def _pass_again(self, _: Event) -> None:
        self.set_time()
        self._passes_again = False
        self.capacity_changed()

    # --- actions of the policy (see Listener) ------------------------------------------------------------

    def on_start(self, job: Job, allocation: Allocation) -> None:
        """Schedule the end of a job that has just started."""
        if self._lasts_as_told and not self._attempts[job.index]:
            self._schedule_end(job, job.run_time)
        else:
            self._schedule_end(job, self._duration(job, allocation))
        if self._failures is not None:
            self._failures.started(job.index, allocation)
        for notify in self.callbacks.on_start:
            notify(job, allocation, self.system)
        if self._gated:
            self._ask_again(self.gates.after_start(job, self.system))

    def _duration(self, job: Job, allocation: Allocation) -> int:
        """Return the time that an attempt that has just begun will take, unless it is stopped [s]."""
        if self._service_time is not None:
            return self._served(job, allocation)
        row = job.index
        again = self._attempts[row] > 0  # no attempt of it was suspended before it has started
        return self._restart.duration(self.ledger.work_left(row), again)

    def on_test(self, job: Job) -> None:
        """Schedule the stop of a job that has just begun its test, which is as long as its estimate says."""
        if not self.events.knows("outages"):
            raise UsageError(f"job {job.id}: the rules {self.events.name!r} stop no jobs")
        row = job.index
        attempt = job, self._attempts[row]
        Instant(self.clock, TEST, self.ledger.estimates[row], [self._stop_test], attempt)

    def _stop_test(self, event: Event) -> None:
        """Stop a job whose test is over."""
        job, attempt = event._value
        if self._attempts[job.index] == attempt and self.ledger.state[job.index] == State.RUNNING:
            self.set_time()
            self.on_stop(job, Outcome.TESTED, True, 0)

    def _served(self, job: Job, allocation: Allocation) -> int:
        """Return the run time of a job with its allocation under the locality model [s]."""
        parameters, model = self.parameters, self._service_time
        assert model is not None
        seconds = model.actual(parameters.workload.jobs[job.index], allocation, self.system.cluster)
        if parameters.setup.walltime == "kill" and seconds > job.requested_time:
            self.cut_short.append(job.index)
            self.ledger.incomplete.add(job.index)
            seconds = job.requested_time
        self.served[job.index] = seconds
        return seconds

    def on_stop(self, job: Job, why: Outcome, requeue: bool, delay: int) -> None:
        """Stop a running job, which returns to the queue unless it is lost."""
        if not self.events.knows("outages"):
            raise UsageError(f"job {job.id}: the rules {self.events.name!r} stop no jobs")
        ledger, row, now = self.ledger, job.index, self.system.now
        progress = self._progress(job, why)
        if row in self.system.suspended:
            allocation = self.system.suspended[row].allocation
            self.system.forget_suspended(row)
        else:
            allocation = self.leave(job)
            if self.system.allocations is not None:
                self.system.events.append(~row)
        ledger.stop(row, now, why, progress, allocation)
        for notify in self.callbacks.on_stop:
            notify(job, why, self.system)
        if self._failures is not None and self._failures.incomplete:
            # Later, as the policy may use what it has freed in this pass.
            Instant(self.clock, RETURN, 0, [self._drain])
        if not requeue or self._restart.gives_up(ledger.failures.get(row, 0)):
            ledger.give_up(row)
            self._end_for_good(job)
            self.capacity_changed()
            return
        if self._gated:
            self._ask_again(self.gates.after_stop(job, self.system))
        self._come_back(job, self._restart.delay + delay)
        self.capacity_changed()

    def _end_for_good(self, job: Job) -> None:
        """Tell that a job that was stopped has been given up."""
        self.system.ended.append(job.index)
        for notify in self.callbacks.on_end:
            notify(job, self.system)
        if self._gated:
            self._ask_again(self.gates.after_end(job, self.system))

    def _progress(self, job: Job, why: Outcome) -> Progress:
        """Return the work that the current attempt of a job has done, also before it was suspended."""
        ledger, row = self.ledger, job.index
        elapsed = ledger.ran_before(row)
        if row not in self.system.suspended:
            elapsed += self.system.now - ledger.starts[row]
        return self._restart.progress(elapsed, ledger.work_left(row), ledger.again(row), why)

    def on_suspend(self, job: Job, allocation: Allocation) -> None:
        """Record that a job has been suspended; its end that was to come is void."""
        if not self.events.knows("outages"):
            raise UsageError(f"job {job.id}: the rules {self.events.name!r} suspend no jobs")
        ledger, row = self.ledger, job.index
        elapsed = ledger.ran_before(row) + self.system.now - ledger.starts[row]
        kept, lost = self._restart.progress(
            elapsed, ledger.work_left(row), ledger.again(row), Outcome.SUSPENDED
        )
        ledger.suspend(row, self.system.now, kept + lost - ledger.done_before(row), allocation)
        if self.system.allocations is not None:
            self.system.events.append(~row)
        for notify in self.callbacks.on_stop:
            notify(job, Outcome.SUSPENDED, self.system)
        if self._failures is not None:
            Instant(self.clock, RETURN, 0, [self._drain])
        self.capacity_changed()

    def on_resume(self, job: Job) -> None:
        """Schedule the end of a job that goes on."""
        ledger, row, system = self.ledger, job.index, self.system
        whole = self._restart.duration(ledger.work_left(row), ledger.again(row))
        self._schedule_end(job, whole - ledger.ran_before(row))
        for notify in self.callbacks.on_start:
            notify(job, system.running.allocation(job), system)

    def _drain(self, _: Event) -> None:
        if self._failures is not None:
            self.set_time()
            self._failures.after_end()

    def leave(self, job: Job) -> Allocation:
        """Take back the resources of a job that is stopped; return them."""
        allocation = self.system.running.allocation(job)
        self.system.vacate(job)
        return allocation

    def _come_back(self, job: Job, delay: int) -> None:
        """Let a job that was stopped join the queue again, now or after the delay [s]."""
        self.system.expect_attempts()
        self.expect(job)
        if delay:
            Instant(self.clock, RETURN, delay, [self._rejoin], job)
        else:
            self.rejoin(job)

    def _rejoin(self, event: Event) -> None:
        self.set_time()
        self.rejoin(event._value)

    def rejoin(self, job: Job) -> None:
        """Add a job that was stopped to the queue again, unless a gate holds it."""
        self.ledger.rejoin(job.index, self.system.now)
        self.submit(job)

    def on_take(self, capacity: Allocation, until: int, number: int) -> None:
        """Schedule the return of capacity that has gone out of order."""
        system = self.system
        self.down.append((system.now, until, capacity))
        Instant(self.clock, GIVE, until - system.now, [self._give], number)
        for notify in self.callbacks.on_take:
            notify(capacity, until, system)

    def _give(self, event: Event) -> None:
        self.set_time()
        capacity = self.give(event._value)
        for notify in self.callbacks.on_give:
            notify(capacity, self.system)
        if self._failures is not None:
            self._failures.after_give(capacity)
        self.capacity_changed()

    def take(self, capacity: Allocation, until: int, *, planned: bool = False) -> None:
        """Take free capacity out of order until a time [s]; `planned` if the calendar has announced it."""
        number = self.system.take(capacity, until, planned=planned)
        if planned:
            self.planned.add(number)

    def give(self, number: int) -> Allocation:
        """Return capacity that was out of order; return what it is."""
        return self.system.give(number, planned=number in self.planned)

    def on_reject(self, job: Job) -> None:
        """Reject the jobs that are never due without a rejected job; one that was stopped is given up."""
        if self.ledger.again(job.index):
            self.ledger.reject(job.index)
            self._end_for_good(job)
            return
        refused, others = [job], list[Job]()
        for each in refused:  # the list grows during iteration
            self.ledger.reject(each.index)
            for notify in self.callbacks.on_reject:
                notify(each, self.system)
            for other in self.gates.after_reject(each, self.system):
                if other.index in self.gates.awaited:
                    self.gates.awaited.discard(other.index)
                    refused.append(other)
                else:
                    others.append(other)
        self._ask_again(others)

    def wake_time(self, at: int) -> int | None:
        """Return the time of a wake-up under the order of events, or None if it does not occur."""
        return self.events.wake_time(self, at)
