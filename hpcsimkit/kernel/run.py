"""The state of one run, its events and its scheduling passes."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, Literal, Protocol

from simpy.events import Event

from hpcsimkit.cluster.opaque import Allocation, AnyCluster
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.clock import ARRIVAL, Instant
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.dependencies import Dependencies
from hpcsimkit.kernel.guard import Guard
from hpcsimkit.kernel.observers import Callbacks, Observer
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Estimator, Order, Policy
from hpcsimkit.kernel.service_time import ServiceTime
from hpcsimkit.kernel.stalls import IdleWakes, stalled
from hpcsimkit.kernel.system import Listener, State, System

__all__ = ["EventOrder", "Run", "RunParameters"]


class RunParameters(Protocol):
    """The parameters of a run: the part of :class:`~hpcsimkit.kernel.simulation.Simulation` that it reads."""

    workload: Workload
    policy: Policy
    cluster: AnyCluster
    seed: int
    walltime: Literal["run", "kill"]
    dependencies: bool
    period: int | None
    service_time: ServiceTime | None
    observers: tuple[Observer, ...]
    event_order: EventOrder
    guard: Guard

    def another(self, policy: Policy) -> Any:
        """Return a simulation of another policy with otherwise equal parameters."""
        ...


class EventOrder(Parameters, ABC):
    """The order of events within an instant, and the points at which scheduling passes take place.

    Each run works on its own copy, so any state that :meth:`reset` stores belongs to that run alone.
    """

    name: str
    """Name of the rules, such as ``"textbook"``."""

    unsupported: tuple[str, ...] = ()
    """Parameters of a simulation that these rules do not support."""

    def reset(self, run: Run) -> None:
        """Prepare the run's own copy before the first event."""

    @abstractmethod
    def begin(self, run: Run) -> None:
        """Schedule the submissions of the jobs."""

    @abstractmethod
    def advance(self, run: Run) -> None:
        """Process events and run passes until a decision is pending.

        Raises
        ------
        simpy.core.EmptySchedule
            No event is left.
        """

    @abstractmethod
    def schedule_end(self, job: Job, seconds: int) -> None:
        """Schedule the end of a job that has just started and runs for a number of seconds."""

    @abstractmethod
    def wake_time(self, run: Run, at: int) -> int | None:
        """Return the time of a wake-up requested for a future time [s], or None if it does not occur."""


class Run(Listener):
    """All state of one run, created at once; the methods are its events and its scheduling passes.

    Parameters
    ----------
    parameters : RunParameters
        The parameters of the run. The policy and the order of events are copied.

    Attributes
    ----------
    system : System
        The state of the cluster, on which the policy acts.
    clock : Clock
        The SimPy environment.
    decision : Decision or None
        The pending decision of an open seat.
    pass_wanted : bool
        Whether an event since the last pass calls for another one.
    cut_short : list of int
        Rows of the jobs that exceed their wall-time limit due to the locality model.

    Raises
    ------
    UsageError
        The policy has no order of the queue or no estimator.
    """

    def __init__(self, parameters: RunParameters) -> None:
        self.parameters = parameters
        self.guard, self.clock = parameters.guard, parameters.guard.clock
        kill = parameters.walltime == "kill"
        workload = parameters.workload.killed_at_limit if kill else parameters.workload
        self.dependencies = Dependencies(workload) if parameters.dependencies else None
        self.callbacks = Callbacks(parameters.observers)
        self._timed = bool(self.callbacks.on_pass)
        self.decision: Decision | None = None
        self.pass_wanted = False
        self.cut_short: list[int] = []
        self._pass: Generator[Decision, Any, None] | None = None
        self._pass_seconds = 0.0
        self._wakes: set[int] = set()
        self._idle_wakes = IdleWakes()
        policy = copy.deepcopy(parameters.policy)
        order, estimator = _queue_parts(policy)
        self.system = self.guard.system = System(
            workload, parameters.cluster, order, estimator, parameters.seed, parameters.service_time, self
        )
        self.system.now = self.clock.now
        self.events = copy.copy(parameters.event_order)
        self.events.reset(self)
        self._schedule, self._schedule_end = policy.schedule, self.events.schedule_end
        self._checks_before_pass = bool(parameters.period) or estimator.corrects
        self._reset(policy, order, estimator)
        for notify in self.callbacks.on_begin:
            notify(self.system)
        self.events.begin(self)

    def _reset(self, policy: Policy, order: Order, estimator: Estimator) -> None:
        if not isinstance(policy, Pipeline):  # a pipeline resets its stages itself
            order.reset(self.system)
            estimator.reset(self.system)
        policy.reset(self.system)

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
        if len(self.system.queue):
            raise stalled(self.system)
        for notify in self.callbacks.on_finish:
            notify(self.system)

    # --- events ----------------------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Add a job to the queue."""
        self.system.submit(job)
        self.pass_wanted = True
        for notify in self.callbacks.on_submit:
            notify(job, self.system)

    def submit_now(self, event: Event) -> None:
        """Process the event of a single submission; its value is the job."""
        self.system.now = self.clock.now
        self.submit(event._value)

    def end(self, event: Event) -> None:
        """Process the end of a job, the value of the event."""
        system = self.system
        job: Job = event._value
        system.now = self.clock.now
        system.end(job)
        for notify in self.callbacks.on_end:
            notify(job, system)
        if self.dependencies is not None:
            for successor in self.dependencies.release(job, system):
                self._submit_later(successor)
        if system.queue.jobs:
            self.pass_wanted = True

    def rank(self, job: Job) -> float:
        """Return the priority of a submission; with dependencies, it preserves the order of the log."""
        return ARRIVAL if self.dependencies is None else ARRIVAL + job.index / len(self.system.workload)

    def _submit_later(self, job: Job) -> None:
        """Submit a job at the end of its think time, now that its preceding job has ended."""
        system = self.system
        system.resubmit_at(job)
        system.arrivals_left += 1
        Instant(self.clock, self.rank(job), job.submit_time - system.now, [self.submit_now], job)

    def _wake(self, _: Event) -> None:
        now = self.system.now = self.clock.now
        self._wakes.discard(now)
        if len(self.system.queue):
            self.pass_wanted = True
            if self._idle_wakes.too_many(self.system):
                raise stalled(self.system)

    # --- actions of the policy (see Listener) ------------------------------------------------------------

    def on_start(self, job: Job, allocation: Allocation) -> None:
        """Schedule the end of a job that has just started."""
        seconds = job.run_time if self.system.service_time is None else self._served(job, allocation)
        self._schedule_end(job, seconds)
        for notify in self.callbacks.on_start:
            notify(job, allocation, self.system)

    def _served(self, job: Job, allocation: Allocation) -> int:
        """Return the run time of a job with its allocation under the locality model [s]."""
        parameters, model = self.parameters, self.system.service_time
        assert model is not None
        seconds = model.actual(parameters.workload.jobs[job.index], allocation, parameters.cluster)
        if parameters.walltime != "kill" or seconds <= job.requested_time:
            return seconds
        self.cut_short.append(job.index)
        return job.requested_time

    def on_reject(self, job: Job) -> None:
        """Reject the jobs that depend on a rejected job."""
        refused = [job]
        if self.dependencies is not None:
            refused += self.dependencies.cancel(job, self.system)
        for each in refused:
            self.system.state[each.index] = State.REJECTED
            for notify in self.callbacks.on_reject:
                notify(each, self.system)

    def on_wake(self, at: int) -> None:
        """Schedule a wake-up, at most one per instant."""
        time_of_wake = self.events.wake_time(self, at)
        if time_of_wake is not None and time_of_wake not in self._wakes:
            self._wakes.add(time_of_wake)
            Instant(self.clock, ARRIVAL, time_of_wake - self.system.now, [self._wake])

    def on_block(self, job: Job) -> None:
        """Notify the observers of a blocked job."""
        for notify in self.callbacks.on_block:
            notify(job, self.system)

    def another(self, policy: Policy) -> Any:
        """Return a simulation of another policy with otherwise equal parameters and without observers."""
        return self.parameters.another(policy)

    # --- passes ----------------------------------------------------------------------------------------

    def run_pass(self) -> None:
        """Run one pass to its end or to its first decision."""
        system = self.system
        self.pass_wanted = False
        if self._checks_before_pass and self._put_off():
            return
        system.passes += 1
        if self._timed:
            self._run_timed_pass()
            return
        self._pass = self._schedule(system)
        if self._pass is not None:
            self.decision = self._asked(self._pass)
        if self.decision is None:
            system.newcomers.clear()

    def resume(self, decision: Decision, choice: Any) -> None:
        """Resume the suspended pass with the chosen option."""
        for notify in self.callbacks.on_decision:
            notify(decision, choice, self.system)
        assert self._pass is not None
        began = time.perf_counter()
        self.decision = self._asked(self._pass, choice)
        self._pass_seconds += time.perf_counter() - began
        if self.decision is None:
            self._end_pass()

    def _run_timed_pass(self) -> None:
        began = time.perf_counter()
        self._pass = self._schedule(self.system)
        self.decision = None if self._pass is None else self._asked(self._pass)
        self._pass_seconds = time.perf_counter() - began
        if self.decision is None:
            self._end_pass()

    def _put_off(self) -> bool:
        """Postpone a pass to the next multiple of the period, or else correct estimates before the pass."""
        system, period = self.system, self.parameters.period
        if period and system.now % period:
            self.on_wake(system.now + -system.now % period)
            return True
        system.correct_estimates()
        return False

    def _asked(self, asking: Generator[Decision, Any, None], choice: Any = None) -> Decision | None:
        """Return the next decision of a pass that is resumed with a choice, or None if it is over."""
        if not hasattr(asking, "send"):
            raise self._misused("must return nothing, or be a generator", asking)
        try:
            decision = asking.send(choice)
        except StopIteration:
            return None
        if not isinstance(decision, Decision):
            raise self._misused("may yield decisions only", decision)
        return decision

    def _misused(self, rule: str, found: object) -> PolicyError:
        return PolicyError(f"{self.guard.subject}: schedule() {rule}, found {found!r}")

    def _end_pass(self) -> None:
        self.system.newcomers.clear()
        for notify in self.callbacks.on_pass:
            notify(self._pass_seconds, self.system)


def _queue_parts(policy: Policy) -> tuple[Order, Estimator]:
    """Return the order of the queue and the run-time estimator of a policy, each of the right class."""
    order, estimator = policy.queue_order, policy.estimator
    for found, needed in ((order, Order), (estimator, Estimator)):
        if not isinstance(found, needed):
            raise UsageError(f"{policy!r} needs an {needed.__name__} to go by, found {found!r}")
    return order, estimator
