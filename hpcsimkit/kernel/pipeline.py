"""The pipeline scheduler: order, inspect, place and start jobs; backfill behind the first blocked job."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from itertools import compress, islice
from typing import Any

import numpy as np

from hpcsimkit.cluster.base import Room
from hpcsimkit.cluster.limited import LimitedMachines
from hpcsimkit.cluster.opaque import Allocation, Level
from hpcsimkit.errors import ScheduleError, StalledError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobQueue
from hpcsimkit.jobs.views import views
from hpcsimkit.kernel.decision import Answering, Decision, External
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.policy import (
    FCFS,
    Admission,
    Backfiller,
    Estimator,
    Inspector,
    Order,
    Placement,
    Policy,
    Preemptor,
    Requested,
    Tester,
)
from hpcsimkit.kernel.reservation import EASY, admissible
from hpcsimkit.kernel.settling import SettlingBackfiller
from hpcsimkit.kernel.stage import Stage
from hpcsimkit.kernel.system import System

__all__ = ["LIMITS", "SEATS", "Pipeline", "ask"]

SEATS = {
    "order": Order,
    "inspector": Inspector,
    "placement": Placement,
    "backfiller": Backfiller,
    "estimates": Estimator,
    "preemptor": Preemptor,
    "gate": Admission,
    "tester": Tester,
}
"""The seats (decision points) of a pipeline, each with the class of its stage."""

LIMITS = {"order": "window", "backfiller": "max_candidates"}
"""The seats with a limited number of options, each with the parameter of the limit."""

_READY, _RESERVED, _BACKFILLED, _TESTED = (int(mode) for mode in Mode if mode)

Asking = Generator[Decision, Any, Any]


class Pipeline(Policy):
    """A scheduler composed of stages, any of which may be an open seat (:class:`External`).

    A pass takes the first job of the order, lets the inspector accept or hold it, places and starts it, and
    repeats until a job does not fit. For this job, the preemptor may stop running jobs. If it does not, the
    job is the head; the backfiller may start other jobs behind it, and the tester may let further ones run
    for a short time.

    Parameters
    ----------
    order : Order or External
        The order of the waiting jobs.
    inspector : Inspector or External, optional
        The inspector that accepts or holds the selected job; a held job ends the pass.
    placement : Placement or External, optional
        The choice of nodes; by default the cluster's own: the first machines on which the job fits.
    backfiller : Backfiller or External, optional
        The backfilling rule behind the head; by default no backfilling.
    estimates : Estimator, optional
        The run-time estimator; by default the requested times.
    preemptor : Preemptor or External, optional
        The choice of running jobs to stop for a job that does not fit; by default none is stopped.
    gate : Admission or External, optional
        The decision whether a job that is about to start, or to block others, is skipped until the next pass;
        by default none is.
    tester : Tester or External, optional
        The choice of waiting jobs that run for a short time in what the reservations leave; by default none.
        It needs a backfiller that makes reservations. An open seat is asked job by job.
    commit : bool
        Whether the selected job is kept until it starts (as in some published simulators), instead of a new
        selection at every pass. Default: False.
    fitting : bool
        Whether only jobs that fit now are selected (greedy list scheduling without head-of-line blocking);
        the pass ends when no job fits. Default: False.
    window : int, optional
        Maximum number of jobs, longest waiting first, from which the order selects. By default unlimited.
    max_candidates : int, optional
        Maximum number of candidates of an open backfiller seat; by default `window`. Without an open seat it
        has no effect.
    max_interval : int, optional
        Maximum time [s] until the next pass after a job was held or the order seat declined; by default the
        next event triggers it.
    max_rejections : int, optional
        Maximum number of times that a job is held; by default unlimited.

    Examples
    --------
    >>> Pipeline(order=FCFS(), backfiller=EASY())
    Pipeline(order=FCFS(), backfiller=EASY())
    """

    seat_of_tests = "tester"
    """Name of the seat that is asked about tests, if it is open."""

    def __init__(  # noqa: PLR0913 - stored keywords
        self,
        order: Order | External | None = None,
        inspector: Inspector | External | None = None,
        placement: Placement | External | None = None,
        backfiller: Backfiller | External | None = None,
        *,
        estimates: Estimator | None = None,
        preemptor: Preemptor | External | None = None,
        gate: Admission | External | None = None,
        tester: Tester | External | None = None,
        commit: bool = False,
        fitting: bool = False,
        window: int | None = None,
        max_candidates: int | None = None,
        max_interval: int | None = None,
        max_rejections: int | None = None,
    ) -> None:
        self.order = order
        self.inspector = inspector
        self.placement = placement
        self.backfiller = backfiller
        self.estimates = estimates
        self.preemptor = preemptor
        self.gate = gate
        self.tester = tester
        self.commit = commit
        self.fitting = fitting
        self.window = window
        self.max_candidates = max_candidates
        self.max_interval = max_interval
        self.max_rejections = max_rejections

    def _repr_html_(self) -> str:
        """Return a diagram of the stages, for notebooks."""
        return str(views().pipeline_html(self, SEATS))

    @property
    def queue_order(self) -> Order:
        """The order stage, or the heuristic behind its open seat."""
        order = self.order.base if isinstance(self.order, External) else self.order
        return order if order is not None else FCFS()

    @property
    def reason_of_gate(self) -> str:
        """Reason of the jobs that the gate skips, in results."""
        return self.gate.reason if isinstance(self.gate, Admission) else Admission.reason

    @property
    def acts_on_running(self) -> bool:  # type: ignore[override]
        """Whether there is a pass after every event, also if no job waits."""
        return self._preemptor is not None and self._preemptor.acts_on_running

    @property
    def _preemptor(self) -> Preemptor | None:
        """The preemptor, or the heuristic behind its open seat."""
        return self.preemptor.base if isinstance(self.preemptor, External) else self.preemptor

    @property
    def estimator(self) -> Estimator:
        """The run-time estimator."""
        return self.estimates if self.estimates is not None else Requested()

    def check(self) -> None:
        """Check that every stage has the class of its seat and that all numbers are in range."""
        for seat, kind in SEATS.items():
            stage = getattr(self, seat)
            seated = stage.base if isinstance(stage, External) and seat != "estimates" else stage
            if seated is not None and not isinstance(seated, kind):
                raise UsageError(f"the {seat} of a pipeline needs a {kind.__name__}, found {seated!r}")
        order = self.queue_order
        if type(order).key is Order.key and not order.dynamic:
            raise UsageError(
                f"{type(order).__name__} needs a method key(job), formula(job, now) or scores(jobs, now)"
            )
        if self.fitting and (self.commit or self.backfiller is not None):
            raise UsageError(
                "with 'fitting' no job blocks others: nothing to commit to or to backfill behind"
            )
        if self.preemptor is not None:
            self._check_preemptor(self.preemptor)
        if self.tester is not None:
            self._check_tester(self.tester)
        limits = {"window": 1, "max_candidates": 1, "max_interval": 1, "max_rejections": 0}
        for name, least in limits.items():
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= least):
                raise UsageError(f"{name} needs a whole number of at least {least}, found {value!r}")

    def _check_preemptor(self, preemptor: Preemptor | External) -> None:
        seated = preemptor.base if isinstance(preemptor, External) else preemptor
        if seated is None:
            raise UsageError("an open preemptor seat needs a base, which says who may be stopped")
        if seated is not preemptor and getattr(seated, "grace_time", False):
            raise UsageError(f"an open preemptor seat knows no grace_time, found {seated!r}")
        if self.fitting or (isinstance(self.backfiller, Backfiller) and self.backfiller.plans):
            raise UsageError("a preemptor needs a head: neither 'fitting' nor a backfiller that plans")

    def _check_tester(self, tester: Tester | External) -> None:
        backfiller = self.backfiller
        if isinstance(tester, External) and tester.base is None:
            raise UsageError("an open tester seat needs a base, such as tests(seconds=300)")
        filler = backfiller.base or EASY() if isinstance(backfiller, External) else backfiller
        if filler is None or type(filler).hole is Backfiller.hole:
            needed = "tests need a backfiller with reservations that they do not delay (easy, easy-k, ...)"
            raise UsageError(f"{needed}, found {filler!r}")
        if self.preemptor is not None:
            raise UsageError("a pipeline has either tests or a preemptor, found both")

    def reset(self, system: System) -> None:
        """Reset the stages, in the order in which they act."""
        self._committed: Job | None = None
        self._head: Job | None = None
        self._reserved: set[int] = set()
        self._fitting: tuple[Level, list[Job], list[Job]] = None, [], []  # a level, some jobs, those that fit
        if isinstance(self.backfiller, External) and self.backfiller.base is None:
            self.backfiller.base = EASY()
        for stage in (getattr(self, seat) for seat in SEATS):
            if stage is not None:
                stage.reset(system)
        self._filler: Backfiller | None = (
            self.backfiller.base if isinstance(self.backfiller, External) else self.backfiller
        )
        self._planned = self._filler if self._filler is not None and self._filler.plans else None
        self._may_be_held = self.gate is not None or system.ledger.gated
        unattended = not (
            any(isinstance(stage, External) for stage in (self.order, self.placement, self.tester))
            or self.inspector
            or self.preemptor
            or self.gate
            or self.window
            or self.fitting
            or self._planned
        )
        self._plain = (
            unattended
            and not (self.placement or self.tester or system.calendar)
            and system.allocations is None
        )
        settles = unattended and not getattr(self.backfiller, "decline", False)
        self._keeps_first = not (self.commit or self.window)
        self._asks = isinstance(self.order, External) or self.gate is not None
        self._settling = self._filler if settles and isinstance(self._filler, SettlingBackfiller) else None

    # --- a pass --------------------------------------------------------------------------------------

    def schedule(self, system: System) -> Asking | None:
        """Run one scheduling pass; see the class.

        Without decisions to yield before a job is blocked, and with homogeneous nodes, a plain loop produces
        the same schedule faster.
        """
        queue, filler, settling = system.queue, self._filler, self._settling
        first = queue.first if self._keeps_first else partial(self._first, queue)
        if (
            settling is not None
            and settling.settled == system.version  # nothing has started, ended, or been taken by a calendar
            and first() is self._head  # so it still does not fit
            and settling.skip(system)
        ):
            return None
        if not self._plain:
            return self._run_in_full(system)
        fits, reserved = system.cluster.fits, self._reserved
        while queue.jobs:
            job = first()
            if not fits(job, system.free):
                break
            self._committed = None
            system.start(job, None, _RESERVED if job.index in reserved else _READY)
        else:
            return None
        if self.commit:
            self._committed = job
        if filler is not None:
            self._block(job, system, filler)
            if isinstance(self.backfiller, External):
                return self._backfill(job, system, filler)
            found = filler.fill(job, system)
            for other in self._still_waiting(found, system) if self._may_be_held else found:
                system.start(other, None, _BACKFILLED)
            if settling is not None:
                settling.settled = system.version
        return None

    def _first(self, queue: JobQueue) -> Job:
        """Return the job to start next: the selected one that is kept, or else the first one."""
        kept = self._committed
        if kept is not None and kept in queue:
            return kept
        return queue.oldest(self.window)[0] if self.window else queue.first()

    def _run_in_full(self, system: System) -> Asking:
        """Run a pass of any pipeline."""
        if self._planned is not None:
            return self._run_planned(system, self._planned)
        if self._preemptor is not None:
            return self._run_with(self._preemptor, system)
        return self._run_fitting(system) if self.fitting else self._run(system)

    def _run_with(self, preemptor: Preemptor, system: System) -> Asking:
        """Run a pass between two actions of the preemptor."""
        preemptor.before_pass(system)
        yield from self._run(system)
        preemptor.after_pass(system)

    def _run_planned(self, system: System, planned: Backfiller) -> Asking:
        """Run a pass of a backfiller that plans, and request the pass that its plan then needs."""
        planned.plan(system)
        yield from self._run(system)
        system.wake(planned.next_pass(system), planned=True)

    def _run(self, system: System) -> Asking:
        """Run a pass that yields the decisions of open seats."""
        planned, queue = self._planned, system.queue
        while queue.jobs:
            job: Job | None = (yield from self._next(system)) if self._asks else self._first(queue)
            if job is None:
                return
            if self.inspector is not None and not (yield from self._accept(job, system)):
                return
            if not system.ledger.waits(job.index):  # the inspector rejected it permanently
                continue
            if planned is not None and not planned.due(job, system):
                break
            level = system.room_for(job) if planned is None else planned.level(job, system)
            allocation = yield from self._place(job, level, system)
            if allocation is None and self.preemptor is not None:
                allocation = yield from self._preempt(job, self.preemptor, system)
            if allocation is None:
                break
            self._committed = None
            system.start(job, allocation, _RESERVED if job.index in self._reserved else _READY)
        else:
            return
        if self.commit:
            self._committed = job
        if self._filler is not None:
            yield from self._run_behind(job, system, self._filler)

    def _run_behind(self, head: Job, system: System, filler: Backfiller) -> Asking:
        """Run what follows in a pass once a job is blocked: backfilling, then tests."""
        self._block(head, system, filler)
        yield from self._backfill(head, system, filler)
        if self.tester is not None:
            yield from self._test(head, system, filler, self.tester)

    def _test(self, head: Job, system: System, filler: Backfiller, tester: Tester | External) -> Asking:
        """Let jobs behind the head run for a short time."""
        holder = getattr(self, self.seat_of_tests)
        seat = holder if isinstance(holder, External) else None
        chooser: Tester = tester.base if isinstance(tester, External) else tester
        for job, seconds, level in chooser.chosen(head, filler, system):
            if seat is not None:
                decision = Decision(
                    self.seat_of_tests,
                    system,
                    job,
                    options=lambda: (True, False),
                    default=lambda: True,
                    seconds=seconds,
                    hole=lambda: filler.hole(head, system),
                )
                if not (yield from ask(seat, decision)):
                    continue
            if (yield from self._admit(job, system)):
                allocation = yield from self._place(job, level, system)
                system.start(job, allocation, _TESTED, limit=seconds)

    def _still_waiting(self, jobs: Iterable[Job], system: System) -> Iterable[Job]:
        """Return the jobs, each in its turn, without those for which a start of this pass closed a gate."""
        if not self._may_be_held:
            return jobs
        held, waits = system.ledger.held, system.ledger.waits
        rows = ((job, getattr(job, "index", None)) for job in jobs)
        # A job that waits all the same is skipped by the policy of another partition.
        return (job for job, row in rows if not held or row not in held or waits(row))

    def _next(self, system: System) -> Asking:
        """Return the next job that the gate admits; None if none is left, or an open order seat declined."""
        seat, queue = self.order if isinstance(self.order, External) else None, system.queue
        while queue.jobs:
            job: Job | None = (yield from self._select(system, seat)) if seat else self._first(queue)
            if job is None or self.gate is None or (yield from self._admit(job, system)):
                return job
        return None

    def _preempt(self, job: Job, preemptor: Preemptor | External, system: System) -> Asking:
        """Stop running jobs for a job that does not fit; return its allocation, or None if it must wait."""
        if isinstance(preemptor, External):
            base: Preemptor = preemptor.base
            while not base.fits_without(job, base.to_stop(job, system), system):
                candidates = list(preemptor.base.candidates(job, system))
                options = [*candidates, None]
                if not candidates or (yield from self._ask_to_stop(job, preemptor, options, system)) is None:
                    return None
        else:
            victims = preemptor.victims(job, system)
            for victim in victims:
                preemptor.stop(victim, job, system)
            if not victims:
                return None
        return (yield from self._place(job, system.room_for(job), system))

    def _ask_to_stop(self, job: Job, seat: External, options: list[Job | None], system: System) -> Asking:
        """Yield the decision which job to stop next; stop and return it, or None to let the job wait."""

        def default() -> Job | None:
            return next(iter(seat.base.victims(job, system)), None)

        decision = Decision("preemptor", system, job, options=lambda: options, default=default)
        victim = yield from ask(seat, decision)
        if victim is not None:
            seat.base.stop(victim, job, system)
        return victim

    def _run_fitting(self, system: System) -> Asking:
        """Run a pass without head-of-line blocking: jobs that fit start in the order of the policy."""
        if not (isinstance(self.order, External) or self.window or self.inspector):
            for job in self._still_waiting(self._fitting_jobs(system), system):
                if not (yield from self._start_fitting(job, system)):
                    return
            return
        while jobs := list(self._fitting_jobs(system)):
            selected = jobs[0]
            if isinstance(self.order, External):
                selected = yield from self._ask_order(system, self.order, jobs.copy)
            if selected is None or not (yield from self._start_fitting(selected, system)):
                return

    def _start_fitting(self, job: Job, system: System) -> Asking:
        """Start a fitting job unless it is rejected; return False if it is held, which ends the pass."""
        if not (yield from self._admit(job, system)):
            return True
        if self.inspector is not None and not (yield from self._accept(job, system)):
            return False
        if job in system.queue:
            allocation = yield from self._place(job, system.room_for(job), system)
            system.start(job, allocation, _READY)
        return True

    def _fitting_jobs(self, system: System) -> Iterable[Job]:
        """Return the jobs that fit now, in policy order; each is checked when its turn comes."""
        cluster, queue, free = system.cluster, system.queue, system.free
        if self.window:
            jobs = queue.oldest(self.window)
            if free is not self._fitting[0] or jobs != self._fitting[1]:
                self._fitting = free, jobs, list(compress(jobs, cluster.fit_each(jobs, free)))
            return list(filter(system.fits, self._fitting[2])) if system.calendar else self._fitting[2]
        room = Room(free, float("inf"), free)
        return admissible(cluster.fitting(queue, free), system, room) if len(queue) else ()

    def _block(self, job: Job, system: System, filler: Backfiller) -> None:
        """Record the blocked job and, if the backfiller makes reservations, its reservation."""
        if job is not self._head:
            self._head = job
            if filler.reserves:
                self._reserved.add(job.index)
        system.listener.on_block(job)

    # --- the decisions -------------------------------------------------------------------------------

    def _select(self, system: System, seat: External) -> Asking:
        """Return the job selected by the open order seat, or None to start no further job now."""
        queue, kept = system.queue, self._committed
        if kept is not None and kept in queue:
            return kept
        limit = self.window or len(queue)
        return (yield from self._ask_order(system, seat, lambda: queue.oldest(limit)))

    def _ask_order(self, system: System, seat: External, jobs: Callable[[], list[Job]]) -> Asking:
        """Yield the decision of the open order seat on `jobs`, listed in the order of its heuristic."""
        declined = [None] if seat.decline and self._may_hold(system) else []
        decision = Decision(
            "order",
            system,
            None,
            options=lambda: [*jobs(), *declined],
            default=lambda: jobs()[0],
        )
        job = yield from ask(seat, decision)
        if job is None:
            self._wake(system)
        return job

    def _accept(self, job: Job, system: System) -> Asking:
        """Return whether the inspector accepts the job; a held job is inspected again by `max_interval`."""
        held = system.holds.get(job.index, 0)
        if job is self._committed or (self.max_rejections is not None and held >= self.max_rejections):
            return True
        inspector = self.inspector
        accepted: Any
        if isinstance(inspector, External):
            base: Inspector = inspector.base or Inspector()
            decision = Decision(
                "inspector",
                system,
                job,
                options=lambda: (True, False) if self._may_hold(system) else (True,),
                default=lambda: base.accept(job, system),
            )
            accepted = yield from ask(inspector, decision)
        else:
            assert inspector is not None
            accepted = _yes_or_no(inspector, inspector.accept(job, system), job, system)
        if accepted or not system.ledger.waits(job.index):
            return True
        self._check_hold(job, system)
        system.holds[job.index] = held + 1
        self._wake(system)
        return False

    def _admit(self, job: Job, system: System) -> Asking:
        """Return whether the gate, if any, lets a job start in this pass; otherwise, the job is skipped."""
        gate = self.gate
        if gate is None or job is self._committed:
            return True
        if isinstance(gate, External):
            base: Admission = gate.base or Admission()
            decision = Decision(
                "gate",
                system,
                job,
                options=lambda: (True, False) if self._may_hold(system.everywhere) else (True,),
                default=lambda: base.admits(job, system),
            )
            admitted = yield from ask(gate, decision)
        else:
            admitted = _yes_or_no(gate, gate.admits(job, system), job, system)
        if not admitted:
            self._check_hold(job, system.everywhere)  # it may start in another partition
            system.listener.on_hold(job, self.reason_of_gate)
            self._wake(system)
        return admitted

    def _check_hold(self, job: Job, system: System) -> None:
        """Raise a StalledError if a job is held and no other pass is certain to follow."""
        if not self._may_hold(system):
            raise StalledError(
                f"job {job.id} at t={system.now} s is held although nothing runs and nothing is to come"
            )

    def _wake(self, system: System) -> None:
        """Schedule the next pass after `max_interval` at the latest, if it is set."""
        if self.max_interval is not None:
            system.wake(system.now + self.max_interval)

    def _may_hold(self, system: System) -> bool:
        """Return whether another pass is certain to follow if no job is started now."""
        return system.anything_ahead or (system.stands_still and self.max_interval is not None)

    def _place(self, job: Job, level: Level, system: System) -> Asking:
        """Return an allocation of the placement stage within `level`, or None if the job does not fit."""
        placement = self.placement
        if placement is None:
            return system.cluster.place(job, level)
        # Also asked where limits refuse the job: a random placement draws what it draws without limits.
        cluster = system.cluster
        allowed = not isinstance(cluster, LimitedMachines) or cluster.allows(job, level)
        if isinstance(placement, External):
            base: Placement = placement.base or Placement()
            options = base.options(job, level, system)
            asking = ask(placement, _among(options, "placement", system, job))
            allocation = (yield from asking) if options and allowed else None
        else:
            found = placement.place(job, level, system)
            allocation = found if allowed else None
        _check_place(placement, job, allocation, level, system)
        return allocation

    def _backfill(self, head: Job, system: System, filler: Backfiller) -> Asking:
        """Start jobs behind the head, one after the other."""
        if isinstance(self.backfiller, External):
            yield from self._ask_to_backfill(head, system, filler, self.backfiller)
        else:
            for job in self._still_waiting(filler.fill(head, system), system):
                if self.gate is not None and not (yield from self._admit(job, system)):
                    continue
                allocation: Allocation = yield from self._place(job, filler.level(job, system), system)
                system.start(job, allocation, _BACKFILLED)
        if self._settling is not None:
            self._settling.settled = system.version

    def _ask_to_backfill(self, head: Job, system: System, filler: Backfiller, seat: External) -> Asking:
        """Yield decisions on the backfilling candidates until none is left or the agent declines."""
        limit = self.max_candidates or self.window
        while candidates := list(islice(filler.fill(head, system), limit)):
            options: list[Job | None] = [*candidates, None] if seat.decline else [*candidates]
            job = yield from ask(seat, _among(options, "backfiller", system, head))
            if job is None:
                return
            if not (yield from self._admit(job, system)):
                continue
            allocation = yield from self._place(job, filler.level(job, system), system)
            system.start(job, allocation, _BACKFILLED)


def _check_place(
    placement: Placement | External, job: Job, allocation: Allocation | None, level: Level, system: System
) -> None:
    """Check that the placement found an allocation if one exists, and that it lies within `level`.

    Whether it lies within the free capacity is checked by the system when the job starts.
    """
    cluster = system.cluster
    if allocation is None and cluster.fits(job, level):
        problem = f"must find a place, it fits: {cluster.shortage(job, level)}"
    elif allocation is not None and level is not system.free and not cluster.holds(job, allocation, level):
        problem = f"needs a place that delays nobody before it, found {allocation!r}"
    else:
        return
    raise ScheduleError(f"{placement!r} for job {job.id} at t={system.now} s {problem}")


def _yes_or_no(stage: Stage, answer: Any, job: Job, system: System) -> bool:
    """Return the answer of a stage about a job, or raise a ScheduleError."""
    if not isinstance(answer, bool | np.bool_):
        who = f"{stage!r} for job {job.id} at t={system.now} s"
        raise ScheduleError(f"{who}: True or False is needed, found {answer!r}")
    return bool(answer)


def _among(options: Sequence[Any], stage: str, system: System, job: Job) -> Decision:
    """Return a decision with a fixed list of options, the first of which is the default."""
    return Decision(stage, system, job, options=lambda: options, default=lambda: options[0])


def ask(seat: External, decision: Decision) -> Asking:
    """Return the option chosen at a seat.

    An open seat suspends the pass until an agent answers; an :class:`Answering` seat answers at once.
    """
    if seat.skip and len(decision.options) == 1:
        return decision.options[0]
    if not isinstance(seat, Answering):
        return (yield decision)
    position = seat.answer(decision)
    options = decision.options
    if not (isinstance(position, int | np.integer) and 0 <= position < len(options)):
        raise UsageError(f"{type(seat).__name__} answers {position!r} to {decision!r}")
    return options[position]
