"""One run: the clock, the arrivals, the ends and the passes, on SimPy."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal

import numpy as np
from simpy.core import EmptySchedule
from simpy.events import Event

from hpcsimkit.clock import ARRIVAL, END, Clock, Instant, what_is_there_frozen
from hpcsimkit.cluster import Allocation, Cluster, as_cluster
from hpcsimkit.decision import Decision
from hpcsimkit.dependencies import Dependencies
from hpcsimkit.errors import HpcsimkitError, PolicyError, UsageError
from hpcsimkit.guard import Guard, IdleWakes, stalled
from hpcsimkit.job import Job
from hpcsimkit.observers import Observer
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policy import Policy
from hpcsimkit.result import Result
from hpcsimkit.service_time import Penalty, ServiceTime, as_service_time
from hpcsimkit.system import State, System
from hpcsimkit.workload import Workload

__all__ = ["Simulation"]


class Simulation:
    """Simulate a policy on a workload and a cluster.

    At an instant all ends come first, then all submissions in the order of the log, then one pass of the
    policy if jobs wait. Zero-length jobs end in a further round (ends, pass) of the same instant.

    Parameters
    ----------
    workload : Workload
        The jobs; each must fit the cluster (see :meth:`Workload.fitting`).
    policy : Policy
        The scheduler; the run works on its own copy.
    cluster : Cluster or int, optional
        The machine, or a number of nodes; by default the workload's ``machine_size``.
    seed : int
        Where all randomness of the run comes from, >= 0.
    walltime : {"run", "kill"}
        Jobs run their full run time, or are killed at their requested time.
    dependencies : bool
        A job is submitted when its preceding job has ended: see :mod:`~hpcsimkit.dependencies`.
    service_time : ServiceTime or callable, optional
        How long a job takes where it was placed; by default its run time.
    period : int, optional
        Passes happen only at multiples of so many seconds of the log's clock.
    observers : sequence of Observer
        Who is told what happens.
    name : str, optional
        What the result calls the policy; by default its representation.

    Raises
    ------
    UsageError
        A parameter is not understood.
    ScheduleError
        A job does not fit the empty cluster.

    Examples
    --------
    >>> from hpcsimkit.pipeline import Pipeline
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [10, 10, 5], "nodes": [2, 4, 1]}, machine_size=4)
    >>> Simulation(w, Pipeline()).run().start_time.tolist()
    [0, 10, 20]
    """

    semantics = "textbook"  # see :mod:`~hpcsimkit.semantics` for others

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        cluster: Cluster | int | None = None,
        *,
        seed: int = 0,
        walltime: Literal["run", "kill"] = "run",
        dependencies: bool = False,
        period: int | None = None,
        service_time: ServiceTime | Penalty | None = None,
        observers: Sequence[Observer] = (),
        name: str | None = None,
    ) -> None:
        self.workload = workload
        self.policy = policy
        self.seed = seed
        self.walltime = walltime
        self.dependencies = dependencies
        self.period = period
        self.service_time = as_service_time(service_time)
        self.observers = tuple(observers)
        self.name = name if name is not None else repr(policy)
        self.choices: list[tuple[str, int]] = []
        self._check()
        self.cluster = as_cluster(cluster, workload)
        self._decision: Decision | None = None
        self._begun = self._over = False
        self._environment = Clock(int(workload.submit_time.min()) if len(workload) else 0)
        self._guard = Guard(self.name, self._environment)
        self._seconds = 0.0

    # --- driving -------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run to the end and return the result; a pipeline with open seats is driven by hand instead.

        Raises
        ------
        UsageError
            A seat is open.
        StalledError
            Jobs wait for ever.
        """
        with what_is_there_frozen():
            decision = self.next_decision()
        if decision is not None:
            raise UsageError(
                f"the {decision.stage} seat is open: drive the simulation with next_decision() and answer()"
            )
        return self.result()

    def next_decision(self) -> Decision | None:
        """Let time run until an open seat is asked; None when the run is over."""
        self._guard.check()
        if self._decision is None and not self._over:
            began = time.perf_counter()
            self._advance()
            self._seconds += time.perf_counter() - began
        if self._decision is not None and not isinstance(self._decision, Decision):
            raise PolicyError(f"{self.name}: schedule() may yield decisions only, found {self._decision!r}")
        return self._decision

    def answer(self, choice: Any) -> None:
        """Answer the decision at hand with one of its options; else, or with none at hand, a UsageError."""
        self.answer_position(self._at_hand().position(choice))

    def answer_position(self, position: int) -> None:
        """Answer the decision at hand with the option of a position, counted from 0; else a UsageError."""
        decision = self._at_hand()
        if not 0 <= position < len(decision.options):
            raise UsageError(f"{decision!r} has no option of position {position}")
        choice = decision.options[position]
        self.choices.append((decision.stage, int(position)))
        began = time.perf_counter()
        with self._guard:
            self._resume(decision, choice)
        self._seconds += time.perf_counter() - began

    def _at_hand(self) -> Decision:
        if self._decision is not None:
            return self._decision
        raise UsageError("no decision is at hand: call next_decision() first")

    def result(self) -> Result:
        """Return the outcome of a run that is over."""
        if not self._over:
            raise UsageError("the run is not over yet")
        return Result.of(self, seconds=self._seconds)

    def another(self, policy: Policy) -> Simulation:
        """Return a run of another policy, all else being equal; nobody observes it."""
        same = ("seed", "walltime", "dependencies", "period", "service_time")
        return type(self)(self.workload, policy, self.cluster, **{name: getattr(self, name) for name in same})

    # --- the course of a run ---------------------------------------------------------------------------

    def _check(self) -> None:
        whole = (int, np.integer)
        for name, needed, given in (
            ("workload", "a Workload", isinstance(self.workload, Workload)),
            ("policy", "a Policy", isinstance(self.policy, Policy)),
            ("walltime", "'run' or 'kill'", self.walltime in ("run", "kill")),
            ("period", "a whole number of seconds, at least 1",
             self.period is None or (isinstance(self.period, whole) and self.period >= 1)),
            ("seed", "a whole number, at least 0", isinstance(self.seed, whole) and self.seed >= 0),
            ("observers", "Observers", all(isinstance(observer, Observer) for observer in self.observers)),
        ):  # fmt: skip
            if not given:
                raise UsageError(f"{name} needs {needed}, found {getattr(self, name)!r}")
        self.policy.check()

    def _begin(self) -> None:
        """Set up the clock, the state of the run and the process of arrivals."""
        self._begun = True
        workload = self.workload.killed_at_limit if self.walltime == "kill" else self.workload
        self._pass: Generator[Decision, Any, None] | None = None
        self._pass_wanted, self._pass_seconds = False, 0.0
        self._wakes: set[int] = set()
        self._idle_wakes = IdleWakes()
        self._end = self._on_end
        self._told_submit, self._told_start = self._told("on_submit"), self._told("on_start")
        self._told_end, self._told_pass = self._told("on_end"), self._told("on_pass")
        self._told_decision = self._told("on_decision")
        self._dependencies = Dependencies(workload) if self.dependencies else None
        with self._guard:
            self._seat(workload)
        self._environment.process(self._arrivals())

    def _seat(self, workload: Workload) -> None:
        """Make the run's own copy of the policy, and the system it acts on."""
        policy = copy.deepcopy(self.policy)
        order, estimator = policy.queue_order, policy.estimator
        system = self.system = System(workload, self.cluster, order, estimator, self.seed, self.service_time)
        system.now = self._environment.now
        system.on_start, system.on_reject, system.on_wake = self._on_start, self._on_reject, self._on_wake
        system.on_block, system.another = self._told("on_block"), self.another
        self._schedule = policy.schedule
        self._special = bool(self.period) or system.estimator.corrects
        if not isinstance(policy, Pipeline):  # which resets its stages itself
            order.reset(system)
            estimator.reset(system)
        policy.reset(system)
        for notify in self._told("on_begin"):
            notify(system)

    def _told(self, hook: str) -> list[Callable[..., None]]:
        """Return the observers' methods that override a hook."""
        return [
            getattr(observer, hook)
            for observer in self.observers
            if getattr(type(observer), hook) is not getattr(Observer, hook)
        ]

    def _advance(self) -> None:
        """Process events until a seat is asked or none is left."""
        try:
            if not self._begun:
                self._begin()
            with self._guard:
                self._step()
        except EmptySchedule:
            with self._guard:
                self._finish()

    def _step(self) -> None:
        """Process events; when an instant has no event left, and a pass is wanted, run it."""
        step, peek, system = self._environment.step, self._environment.peek, self.system
        while self._decision is None:
            step()
            if self._pass_wanted and peek() > system.now:
                self._run_pass()

    def _finish(self) -> None:
        if len(self.system.queue):
            raise stalled(self.system)
        self._over = True
        for notify in self._told("on_finish"):
            notify(self.system)

    # --- events ----------------------------------------------------------------------------------------

    def _arrivals(self) -> Generator[Event, None, None]:
        """Submit the jobs at their times: one process for all of them."""
        environment, system, jobs = self._environment, self.system, self.system.jobs
        rows: list[int] = self.workload.arrival_order.tolist()
        if self._dependencies is not None:
            rows = self._dependencies.independent(rows)
        system.arrivals_left = len(rows)
        now = environment.now
        for row in rows:
            job = jobs[row]
            submit_time = job.submit_time
            if submit_time != now or self._dependencies is not None:
                yield Instant(environment, self._rank(job), submit_time - now, [])
                now = system.now = submit_time
            try:
                system.submit(job)
                self._pass_wanted = True
                for notify in self._told_submit:
                    notify(job, system)
            except HpcsimkitError:
                raise
            except Exception as error:  # SimPy would raise a copy of it, without the place it comes from
                raise self._guard.in_one_line(error) from error

    def _on_start(self, job: Job, allocation: Allocation) -> None:
        seconds = job.run_time if self.service_time is None else self._served(job, allocation)
        Instant(self._environment, END, seconds, [self._end], job)
        for notify in self._told_start:
            notify(job, allocation, self.system)

    def _served(self, job: Job, allocation: Allocation) -> int:
        """Return how long a job runs where it was placed, by the locality model and its full run time."""
        assert self.service_time is not None
        seconds = self.service_time.actual(self.workload.jobs[job.index], allocation, self.cluster)
        return min(seconds, job.requested_time) if self.walltime == "kill" else seconds

    def _on_end(self, event: Event) -> None:
        system = self.system
        job: Job = event._value
        system.now = self._environment.now
        system.end(job)
        for notify in self._told_end:
            notify(job, system)
        if self._dependencies is not None:
            for successor in self._dependencies.release(job, system):
                self._submit_later(successor)
        if system.queue.jobs:
            self._pass_wanted = True

    def _on_reject(self, job: Job) -> None:
        refused = [job]
        if self._dependencies is not None:
            refused += self._dependencies.cancel(job, self.system)
        for each in refused:
            self.system.state[each.index] = State.REJECTED
            for notify in self._told("on_reject"):
                notify(each, self.system)

    def _on_wake(self, at: int) -> None:
        if at not in self._wakes:
            self._wakes.add(at)
            Instant(self._environment, ARRIVAL, at - self.system.now, [self._wake])

    def _wake(self, _: Event) -> None:
        now = self.system.now = self._environment.now
        self._wakes.discard(now)
        if len(self.system.queue):
            self._pass_wanted = True
            if self._idle_wakes.too_many(self.system):
                raise stalled(self.system)

    def _submit_later(self, job: Job) -> None:
        """Submit a job whose preceding job has just ended, when it has thought long enough."""
        self.system.resubmit_at(job)
        self.system.arrivals_left += 1
        Instant(self._environment, self._rank(job), job.submit_time - self.system.now, [self._arrive], job)

    def _rank(self, job: Job) -> float:
        """Return the rank of a submission; with dependencies it sees to it that the log's order is kept."""
        return ARRIVAL if self._dependencies is None else ARRIVAL + job.index / len(self.workload)

    def _arrive(self, event: Event) -> None:
        job: Job = event._value
        self.system.now = self._environment.now
        self.system.submit(job)
        self._pass_wanted = True
        for notify in self._told_submit:
            notify(job, self.system)

    # --- passes ----------------------------------------------------------------------------------------

    def _run_pass(self) -> None:
        """Run one pass, to its end or to its first question."""
        system = self.system
        self._pass_wanted = False
        if self._special and self._put_off():
            return
        system.passes += 1
        if self._told_pass:
            self._run_timed_pass()
            return
        self._pass = self._schedule(system)
        if self._pass is not None:
            self._decision = next(self._pass, None)
        if self._decision is None:
            system.newcomers.clear()

    def _run_timed_pass(self) -> None:
        began = time.perf_counter()
        self._pass = self._schedule(self.system)
        self._decision = None if self._pass is None else next(self._pass, None)
        self._pass_seconds = time.perf_counter() - began
        if self._decision is None:
            self._end_pass()

    def _put_off(self) -> bool:
        """Put a pass off to the next multiple of the period; if none is needed, correct estimates first."""
        system = self.system
        if self.period and system.now % self.period:
            self._on_wake(system.now + -system.now % self.period)
            return True
        system.correct_estimates()
        return False

    def _resume(self, decision: Decision, choice: Any) -> None:
        """Go on with the pass at hand, now that its question is answered."""
        for notify in self._told_decision:
            notify(decision, choice, self.system)
        began = time.perf_counter()
        try:
            self._decision = self._pass.send(choice)  # type: ignore[union-attr]
        except StopIteration:
            self._decision = None
        self._pass_seconds += time.perf_counter() - began
        if self._decision is None:
            self._end_pass()

    def _end_pass(self) -> None:
        self.system.newcomers.clear()
        for notify in self._told_pass:
            notify(self._pass_seconds, self.system)
