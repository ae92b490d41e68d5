"""A policy, the system on which it acts, and its scheduling passes."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Generator
from typing import Any, Protocol

from simpy.events import Event

from hpcsimkit.cluster.opaque import Allocation, AnyCluster
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.capacity import Listener
from hpcsimkit.kernel.clock import ARRIVAL, Instant
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.guard import Guard
from hpcsimkit.kernel.ledger import Ledger
from hpcsimkit.kernel.observers import Callbacks
from hpcsimkit.kernel.parameters import parts
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Estimator, Order, Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.stage import Hearing
from hpcsimkit.kernel.stalls import IdleWakes, stalled
from hpcsimkit.kernel.system import System

__all__ = ["Scheduler", "SchedulerParameters"]


class SchedulerParameters(Protocol):
    """The parameters of a run that its schedulers read."""

    setup: Setup
    guard: Guard

    def another(self, policy: Policy) -> Any:
        """Return a simulation of another policy with otherwise equal parameters."""
        ...


class Scheduler(Listener):
    """A copy of a policy, the system on which it acts, and its scheduling passes.

    A run has one scheduler, which is the run itself, or one for each partition.

    Parameters
    ----------
    parameters : SchedulerParameters
        The parameters of the run.
    policy : Policy
        The policy, which is copied.
    workload : Workload
        The jobs of the run.
    cluster : Cluster
        The cluster on which the policy acts.
    callbacks : Callbacks
        The callbacks of the observers.
    ledger : Ledger
        The record of the run.

    Attributes
    ----------
    policy : Policy
        The policy as it was given.
    system : System
        The state of the cluster.
    decision : Decision or None
        The pending decision of an open seat.
    pass_wanted : bool
        Whether an event since the last pass calls for another one.
    skipped : list of Job
        Jobs that the policy has skipped in its last pass.

    Raises
    ------
    UsageError
        The policy has no order of the queue or no estimator.
    """

    # Beyond 30 attributes, Python reads those of an instance more slowly, except for these.
    __slots__ = (
        "_checks_before_pass",
        "_pass",
        "_schedule",
        "_timed",
        "acts_on_running",
        "callbacks",
        "clock",
        "decision",
        "pass_wanted",
        "skipped",
        "system",
    )

    def __init__(
        self,
        parameters: SchedulerParameters,
        policy: Policy,
        workload: Workload,
        cluster: AnyCluster,
        callbacks: Callbacks,
        ledger: Ledger,
    ) -> None:
        self.parameters = parameters
        self.guard, self.clock = parameters.guard, parameters.guard.clock
        self.callbacks = callbacks
        self._timed = bool(callbacks.on_pass)
        self.decision: Decision | None = None
        self.pass_wanted = False
        self._pass: Generator[Decision, Any, None] | None = None
        self._pass_seconds = 0.0
        self._wakes: set[int] = set()
        self._planned_pass: int | None = None
        self._idle_wakes = IdleWakes()
        self.skipped: list[Job] = []
        self.policy = policy
        self._policy = copy.deepcopy(policy)
        # Each once: an agent that is watched and its watcher have the same heuristic behind them.
        for part in {id(part): part for part in parts(policy, self._policy)}.values():
            if isinstance(part, Hearing):
                callbacks.add(part)
        order, estimator = self._order, self._estimator = _queue_parts(self._policy)
        setup = parameters.setup
        self.system = System(
            workload, cluster, order, estimator, setup.seed, setup.service_time, self, ledger
        )
        self.system.now = self.clock.now
        self.system.restart = setup.restart
        if not setup.restart.plain:
            self.system.expect_attempts()
        self._schedule: Callable[[System], Any] = self._policy.schedule
        self.acts_on_running = self._policy.acts_on_running
        self._checks_before_pass = self._wants_checks = bool(setup.period) or estimator.corrects

    def reset(self) -> None:
        """Reset the policy before the first event."""
        system, policy = self.system, self._policy
        if not isinstance(policy, Pipeline):  # a pipeline resets its stages itself
            self._order.reset(system)
            self._estimator.reset(system)
        policy.reset(system)

    # --- passes that are given ---------------------------------------------------------------------------

    def replace_passes(self, schedule: Callable[[System], Any]) -> None:
        """Let a function make all passes, until :meth:`begin_passes`: they are given, and no time is kept."""
        self._schedule, self._checks_before_pass = schedule, False

    def wrap_passes(self, wrapper: Callable[[Callable[[System], Any]], Callable[[System], Any]]) -> None:
        """Replace the function that makes all passes by another that is made of it."""
        self._schedule = wrapper(self._schedule)

    @property
    def acting_policy(self) -> Policy:
        """The copy of the policy that acts in this run."""
        return self._policy

    def begin_passes(self) -> Any:
        """Let the policy make its first pass now, or at the next multiple of the period; return the pass.

        All waiting jobs are new to it, and a plan of its own would be void.
        """
        self._schedule, self._checks_before_pass = self._first_pass, self._wants_checks
        self.system.corrections += 1
        self.system.version += 1
        if self._checks_before_pass and self._put_off():
            return None
        return self._first_pass(self.system)

    def _first_pass(self, system: System) -> Any:
        self._schedule = self._policy.schedule
        ledger = system.ledger
        system.newcomers[:] = sorted(system.queue, key=lambda job: (ledger.joined(job.index), job.index))
        return self._schedule(system)

    def own_part(self, allocation: Allocation) -> Allocation | None:
        """Return the part of an allocation of the whole cluster on which this scheduler acts, if any."""
        return allocation

    # --- actions of the policy (see Listener) ------------------------------------------------------------

    def on_wake(self, at: int) -> None:
        """Schedule a wake-up, at most one per instant."""
        time_of_wake = self.wake_time(at)
        if time_of_wake is not None and time_of_wake not in self._wakes:
            self._wakes.add(time_of_wake)
            Instant(self.clock, ARRIVAL, time_of_wake - self.system.now, [self._wake])

    def on_plan(self, at: int | None) -> None:
        """Schedule the wake-up that the plan needs; an event scheduled for another time has no effect."""
        planned = None if at is None else self.wake_time(at)
        if planned is not None and planned != self._planned_pass:
            Instant(self.clock, ARRIVAL, planned - self.system.now, [self._wake_as_planned])
        self._planned_pass = planned

    def on_block(self, job: Job) -> None:
        """Notify the observers of a blocked job."""
        for notify in self.callbacks.on_block:
            notify(job, self.system)

    def readmit(self) -> None:
        """Put the jobs that the policy has skipped into the queue again, at the end of a pass."""

    def forget_skipped(self) -> None:
        """Forget the jobs that were skipped, at the beginning of the next pass."""

    def another(self, policy: Policy) -> Any:
        """Return a simulation of another policy with otherwise equal parameters and without observers."""
        return self.parameters.another(policy)

    def wake_time(self, at: int) -> int | None:
        """Return the time of a wake-up requested for a future time [s], or None if it does not occur."""
        return at

    def _wake(self, _: Event) -> None:
        now = self.system.now = self.clock.now
        self._wakes.discard(now)
        if len(self.system.queue) or self.acts_on_running:
            self.pass_wanted = True
            if self._idle_wakes.too_many(self.system):
                raise stalled(self.system)

    def _wake_as_planned(self, event: Event) -> None:
        if self._planned_pass == self.clock.now:
            self._planned_pass = None
            self._wake(event)

    # --- passes ----------------------------------------------------------------------------------------

    def run_pass(self) -> None:
        """Run one pass to its end or to its first decision."""
        system = self.system
        if self._checks_before_pass and self._put_off():
            self.pass_wanted = False
            return
        if self.skipped:
            self.forget_skipped()
        system.passes += 1
        if self._timed:
            self._run_timed_pass()
            return
        asking = self._schedule(system)
        if asking is not None:
            self._pass = asking
            self.decision = self._asked(asking)
            if self.decision is not None:
                return
        system.newcomers.clear()  # as `_conclude`, without a call for each pass
        self.pass_wanted = False
        if self.skipped:
            self.readmit()

    def resume(self, decision: Decision, choice: Any) -> None:
        """Resume the suspended pass with the chosen option."""
        for notify in self.callbacks.on_decision:
            notify(decision, choice, self.system)
        assert self._pass is not None
        began = time.perf_counter() if self._timed else 0.0
        self.decision = self._asked(self._pass, choice)
        if self._timed:
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
        system, period = self.system, self.parameters.setup.period
        if period and system.now % period:
            self.on_wake(system.now + -system.now % period)
            return True
        self.correct_estimates()
        return False

    def correct_estimates(self) -> None:
        """Correct the estimates of jobs that exceeded them, if the estimator does so."""
        self.system.correct_estimates()

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

    def _conclude(self) -> None:
        self.system.newcomers.clear()
        self.pass_wanted = False  # a job that this pass has stopped has been seen in the queue
        if self.skipped:
            self.readmit()

    def _end_pass(self) -> None:
        self._conclude()
        for notify in self.callbacks.on_pass:
            notify(self._pass_seconds, self.system)


def _queue_parts(policy: Policy) -> tuple[Order, Estimator]:
    """Return the order of the queue and the run-time estimator of a policy, each of the right class."""
    order, estimator = policy.queue_order, policy.estimator
    for name, found, needed in (("queue_order", order, Order), ("estimator", estimator, Estimator)):
        if not isinstance(found, needed):
            raise UsageError(f"{name} of {policy!r} must be an {needed.__name__}, found {found!r}")
    return order, estimator
