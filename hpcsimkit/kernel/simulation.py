"""One simulation run: clock, arrivals, job ends and scheduling passes, based on SimPy."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from simpy.core import EmptySchedule
from simpy.events import Event

from hpcsimkit.cluster.base import Allocation, Cluster, as_cluster
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.clock import ARRIVAL, END, Clock, Instant, what_is_there_frozen
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.dependencies import Dependencies
from hpcsimkit.kernel.guard import Guard, guarded
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Estimator, Order, Policy
from hpcsimkit.kernel.service_time import Penalty, ServiceTime, as_service_time
from hpcsimkit.kernel.stalls import IdleWakes, stalled
from hpcsimkit.kernel.system import State, System
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

__all__ = ["Simulation"]


class Simulation:
    """Simulate a policy on a workload and a cluster.

    At each instant, all job ends are processed first, then all submissions in the order of the log, then one
    pass of the policy if jobs are waiting. Zero-length jobs end in another round (ends, pass) of the same
    instant.

    Parameters
    ----------
    workload : Workload
        The jobs, each of which must fit the cluster (see :meth:`Workload.fitting`).
    policy : Policy
        The scheduler; the run uses its own copy.
    cluster : Cluster or int, optional
        The cluster, or a number of nodes; by default the workload's ``machine_size``.
    seed : int
        The random seed of the run, >= 0. Default: 0.
    walltime : {"run", "kill"}
        The wall-time limit: jobs run for their full run time, or are killed at their requested time. Default:
        ``"run"``.
    dependencies : bool
        Whether a job is submitted only after its preceding job has ended, see
        :mod:`~hpcsimkit.kernel.dependencies`. Default: False.
    service_time : ServiceTime or callable, optional
        The locality model: run time of a job as a function of its allocation; by default the run time of the
        log.
    period : int, optional
        Scheduling interval [s]: passes happen only at multiples of it; by default at every instant with an
        event.
    observers : sequence of Observer
        The observers with callbacks for the events of the run.
    name : str, optional
        The name of the policy in the result; by default its representation.

    Raises
    ------
    UsageError
        A parameter is invalid.
    ScheduleError
        A job does not fit the empty cluster.

    Examples
    --------
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [10, 10, 5], "nodes": [2, 4, 1]}, machine_size=4)
    >>> Simulation(w, Pipeline()).run().start_time.tolist()
    [0, 10, 20]
    """

    semantics = "textbook"  # see :mod:`~hpcsimkit.kernel.published_clock` for others

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
        self.observers = tuple(observers)
        self.choices: list[tuple[str, int]] = []
        with guarded(name if name is not None else type(policy).__name__):
            self.service_time = as_service_time(service_time)
            self.name = name if name is not None else repr(policy)
            self._check()
        self.cluster = as_cluster(cluster, workload)
        self._decision: Decision | None = None
        self._begun = self._over = False
        self._environment = Clock(int(workload.submit_time.min()) if len(workload) else 0)
        self.guard = Guard(self.name, self._environment)
        self._seconds = 0.0

    # --- driving -------------------------------------------------------------------------------------

    def run(self) -> Result:
        """Run to the end and return the result.

        A pipeline with open seats cannot be run this way; use :meth:`next_decision` and :meth:`answer`.

        Raises
        ------
        UsageError
            A seat is open.
        StalledError
            Jobs are waiting that can never start.
        """
        with what_is_there_frozen():
            decision = self.next_decision()
        if decision is not None:
            raise UsageError(
                f"the {decision.stage} seat is open: drive the simulation with next_decision() and answer()"
            )
        return self.result()

    def next_decision(self) -> Decision | None:
        """Advance the simulation to the next decision of an open seat; return None at the end of the run."""
        self.guard.check()
        if self._decision is None and not self._over:
            began = time.perf_counter()
            self._advance()
            self._seconds += time.perf_counter() - began
        return self._decision

    def answer(self, choice: Any) -> None:
        """Answer the pending decision with one of its options; raise a UsageError if that is impossible."""
        self.answer_position(self._at_hand().position(choice))

    def answer_position(self, position: int) -> None:
        """Answer the pending decision with the option at a position, counted from 0, or raise UsageError."""
        decision = self._at_hand()
        if not 0 <= position < len(decision.options):
            raise UsageError(f"{decision!r} has no option of position {position}")
        choice = decision.options[position]
        self.choices.append((decision.stage, int(position)))
        began = time.perf_counter()
        with self.guard:
            self._resume(decision, choice)
        self._seconds += time.perf_counter() - began

    def _at_hand(self) -> Decision:
        if self._decision is not None:
            return self._decision
        raise UsageError("no decision is at hand: call next_decision() first")

    def result(self) -> Result:
        """Return the result of a finished run."""
        if not self._over:
            raise UsageError("the run is not over yet")
        system = self.system
        with self.guard:  # a policy may have corrupted the system
            return Result(
                workload=system.workload,
                policy=self.name,
                size=self.cluster.size,
                submit_time=system.column("submit_time"),
                start_time=np.array(system.starts, dtype=np.int64),
                end_time=np.array(system.finishes, dtype=np.int64),
                mode=np.frombuffer(bytes(system.modes), dtype=np.uint8),
                killed=self._killed(),
                seed=self.seed,
                options=self._options(),
                choices=tuple(self.choices),
                seconds=self._seconds,
                passes=system.passes,
                placements=Placements.of(system.cluster, system.allocations, system.events),
            )

    def _options(self) -> dict[str, Any]:
        """Return the options that determine the schedule besides workload, cluster, policy and seed."""
        options: dict[str, Any] = {
            "walltime": self.walltime,
            "dependencies": self.dependencies,
            "period": self.period,
        }
        if self.semantics != "textbook":
            options["semantics"] = self.semantics
        if self.service_time is not None:
            options["service_time"] = repr(self.service_time)
        return options

    def _killed(self) -> NDArray[np.bool_]:
        """Return which jobs were killed at their requested time before they were complete."""
        if self.service_time is None:
            return self.workload.column("run_time") > self.system.workload.column("run_time")
        killed = np.zeros(len(self.workload), dtype=np.bool_)
        killed[self.cut_short] = True
        return killed

    def another(self, policy: Policy) -> Simulation:
        """Return a run of another policy with otherwise equal parameters and without observers."""
        same = ("seed", "walltime", "dependencies", "period", "service_time")
        return type(self)(self.workload, policy, self.cluster, **{name: getattr(self, name) for name in same})

    # --- the course of a run ---------------------------------------------------------------------------

    def _check(self) -> None:
        whole = (int, np.integer)
        for name, needed, given in (
            ("workload", "a Workload", isinstance(self.workload, Workload)),
            ("policy", "a Policy", isinstance(self.policy, Policy)),
            ("walltime", "'run' or 'kill'", self.walltime in ("run", "kill")),
            (
                "period",
                "a whole number of seconds from 1 to 10^11",
                self.period is None or (isinstance(self.period, whole) and 1 <= self.period <= TIME_LIMIT),
            ),
            ("seed", "a whole number, at least 0", isinstance(self.seed, whole) and self.seed >= 0),
            ("observers", "Observers", all(isinstance(observer, Observer) for observer in self.observers)),
        ):
            if not given:
                raise UsageError(f"{name} needs {needed}, found {getattr(self, name)!r}")
        self.policy.check()

    def _begin(self) -> None:
        """Set up the clock, the state of the run and the arrival process."""
        self._begun = True
        workload = self.workload.killed_at_limit if self.walltime == "kill" else self.workload
        self._pass: Generator[Decision, Any, None] | None = None
        self._pass_wanted, self._pass_seconds = False, 0.0
        self._wakes: set[int] = set()
        self.cut_short: list[int] = []  # rows of jobs that exceed their limit due to the locality model
        self._idle_wakes = IdleWakes()
        self._end = self._on_end
        self._told_submit, self._told_start = self._told("on_submit"), self._told("on_start")
        self._told_end, self._told_pass = self._told("on_end"), self._told("on_pass")
        self._told_decision = self._told("on_decision")
        self._dependencies = Dependencies(workload) if self.dependencies else None
        with self.guard:
            self._seat(workload)
        self._environment.process(self._arrivals())

    def _seat(self, workload: Workload) -> None:
        """Create the run's own copy of the policy and the system on which it acts."""
        policy = copy.deepcopy(self.policy)
        order, estimator = policy.queue_order, policy.estimator
        for found, needed in ((order, Order), (estimator, Estimator)):
            if not isinstance(found, needed):
                raise UsageError(f"{policy!r} needs an {needed.__name__} to go by, found {found!r}")
        system = self.system = self.guard.system = System(
            workload, self.cluster, order, estimator, self.seed, self.service_time
        )
        system.now = self._environment.now
        system.on_start, system.on_reject, system.on_wake = self._on_start, self._on_reject, self._on_wake
        system.on_block, system.another = self._told("on_block"), self.another
        self._schedule = policy.schedule
        self._special = bool(self.period) or system.estimator.corrects
        if not isinstance(policy, Pipeline):  # a pipeline resets its stages itself
            order.reset(system)
            estimator.reset(system)
        policy.reset(system)
        for notify in self._told("on_begin"):
            notify(system)

    def _told(self, hook: str) -> list[Callable[..., None]]:
        """Return the observers' methods that override a callback."""
        return [
            getattr(observer, hook)
            for observer in self.observers
            if getattr(type(observer), hook) is not getattr(Observer, hook)
        ]

    def _advance(self) -> None:
        """Process events until a decision is pending or no event is left."""
        try:
            if not self._begun:
                self._begin()
            with self.guard:
                self._step()
        except EmptySchedule:
            with self.guard:
                self._finish()

    def _step(self) -> None:
        """Process events; at the end of an instant, run a pass if one is due."""
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
        """Submit the jobs at their submission times, in a single process."""
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
            except BaseException as error:  # SimPy would raise a copy without the original traceback
                raise self.guard.told(error) from None

    def _on_start(self, job: Job, allocation: Allocation) -> None:
        seconds = job.run_time if self.service_time is None else self._served(job, allocation)
        Instant(self._environment, END, seconds, [self._end], job)
        for notify in self._told_start:
            notify(job, allocation, self.system)

    def _served(self, job: Job, allocation: Allocation) -> int:
        """Return the run time of a job with its allocation under the locality model."""
        assert self.service_time is not None
        seconds = self.service_time.actual(self.workload.jobs[job.index], allocation, self.cluster)
        if self.walltime != "kill" or seconds <= job.requested_time:
            return seconds
        self.cut_short.append(job.index)
        return job.requested_time

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
        """Submit a job at the end of its think time, now that its preceding job has ended."""
        self.system.resubmit_at(job)
        self.system.arrivals_left += 1
        Instant(self._environment, self._rank(job), job.submit_time - self.system.now, [self._arrive], job)

    def _rank(self, job: Job) -> float:
        """Return the priority of a submission; with dependencies, it preserves the order of the log."""
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
        """Run one pass to its end or to its first decision."""
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
            self._decision = self._asked(self._pass)
        if self._decision is None:
            system.newcomers.clear()

    def _run_timed_pass(self) -> None:
        began = time.perf_counter()
        self._pass = self._schedule(self.system)
        self._decision = None if self._pass is None else self._asked(self._pass)
        self._pass_seconds = time.perf_counter() - began
        if self._decision is None:
            self._end_pass()

    def _put_off(self) -> bool:
        """Postpone a pass to the next multiple of the period, or else correct estimates before the pass."""
        system = self.system
        if self.period and system.now % self.period:
            self._on_wake(system.now + -system.now % self.period)
            return True
        system.correct_estimates()
        return False

    def _resume(self, decision: Decision, choice: Any) -> None:
        """Resume the suspended pass with the chosen option."""
        for notify in self._told_decision:
            notify(decision, choice, self.system)
        assert self._pass is not None
        began = time.perf_counter()
        self._decision = self._asked(self._pass, choice)
        self._pass_seconds += time.perf_counter() - began
        if self._decision is None:
            self._end_pass()

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
        for notify in self._told_pass:
            notify(self._pass_seconds, self.system)
