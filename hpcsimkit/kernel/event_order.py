"""Rules for the order of events: those of the textbook, and those of simulators behind published results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from simpy.events import Event

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.capacity import Running
from hpcsimkit.kernel.clock import ARRIVAL, BEFORE_ENDS, END, Clock, Instant
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.gate import Gates
from hpcsimkit.kernel.ledger import Ledger
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.system import System

__all__ = ["EVENT_ORDERS", "DirlabOrder", "EventOrder", "OrderedRun", "TextbookOrder"]


class OrderedRun(Protocol):
    """The part of a :class:`~hpcsimkit.kernel.run.Run` that an order of events reads and calls."""

    system: System
    ledger: Ledger
    clock: Clock
    gates: Gates
    begun: Begun | None
    decision: Decision | None
    pass_wanted: bool

    def take_over(self, begun: Begun) -> None:
        """Set the running jobs of a begun run."""

    def submit(self, job: Job) -> None:
        """Add a job that is due to the queue, unless a gate holds it."""

    def join(self, job: Job) -> None:
        """Add a job to the queue."""

    def submit_now(self, event: Event) -> None:
        """Process the event of a single submission."""

    def end(self, event: Event) -> None:
        """Process the end of an attempt: the value of the event is the job, and the number of the attempt."""

    def rank(self, job: Job) -> float:
        """Return the priority of a submission."""

    def run_pass(self) -> None:
        """Run one pass to its end or to its first decision."""


class EventOrder(Parameters, ABC):
    """The order of events within an instant, and the points at which scheduling passes take place.

    Each run works on its own copy, so any state that :meth:`reset` stores belongs to that run alone.
    """

    name: str
    """Name of the rules, such as ``"textbook"``."""

    known: tuple[str, ...] | None = None
    """Options of a run that these rules know, by field of a setup; by default all, those to come too."""

    @classmethod
    def knows(cls, option: str) -> bool:
        """Return whether these rules know an option of a run."""
        return cls.known is None or option in cls.known

    def reset(self, run: OrderedRun) -> None:
        """Prepare the run's own copy before the first event."""

    @abstractmethod
    def begin(self, run: OrderedRun) -> None:
        """Schedule the submissions of the jobs."""

    @abstractmethod
    def advance(self, run: OrderedRun) -> None:
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
    def wake_time(self, run: OrderedRun, at: int) -> int | None:
        """Return the time of a wake-up requested for a future time [s], or None if it does not occur."""


class TextbookOrder(EventOrder):
    """All job ends of an instant first, then all submissions in the order of the log, then one pass.

    Zero-length jobs end in another round (ends, pass) of the same instant.
    """

    name = "textbook"

    def begin(self, run: OrderedRun) -> None:
        """Schedule the first submission; each one schedules the next."""
        system = run.system
        rows = run.gates.due_by_log(system.workload.arrival_order.tolist())
        if run.begun is not None:
            rows = [row for row in rows if row not in run.begun.started]
        system.arrivals_left = len(rows)
        self._run = run
        self._coming = map(system.jobs.__getitem__, rows)
        # With gates, a job that is submitted later than in the log may come in between.
        self._separately = bool(run.gates)
        self._submit_one = run.submit if run.gates else run.join
        # Shared by all events: SimPy does not change the lists.
        self._ends: list[Callable[[Any], None]] = [run.end]
        self._attempts = run.ledger.attempts
        self._submissions: list[Callable[[Any], None]] = [self._submit]
        if run.begun is not None:
            run.take_over(run.begun)
        self._schedule_next(run.clock.now - 1)

    def _submit(self, event: Event) -> None:
        """Submit a job and those that follow at the same instant, and schedule the next submission."""
        job: Job = event._value
        now = self._run.system.now = job.submit_time
        self._submit_one(job)
        self._schedule_next(now)

    def _schedule_next(self, now: int) -> None:
        """Submit the next jobs of this instant, and schedule the first submission after it."""
        run, separately = self._run, self._separately
        for job in self._coming:
            if separately or job.submit_time > now:
                rank = run.rank(job) if separately else ARRIVAL
                Instant(run.clock, rank, job.submit_time - run.clock.now, self._submissions, job)
                return
            self._submit_one(job)

    def advance(self, run: OrderedRun) -> None:
        """Process events, with a pass at the end of an instant, until a decision is pending."""
        step, pending, system = run.clock.step, run.clock.pending, run.system
        while run.decision is None:
            step()
            if run.pass_wanted and not (pending and pending[0][0] <= system.now):
                run.run_pass()

    def schedule_end(self, job: Job, seconds: int) -> None:
        """Schedule the end of a job."""
        Instant(self._run.clock, END, seconds, self._ends, (job, self._attempts[job.index]))

    def wake_time(self, run: OrderedRun, at: int) -> int:
        """Return the requested time."""
        return at


class DirlabOrder(EventOrder):
    """Rules of the simulators behind RLScheduler, SchedInspector and RLBackfilling.

    Events are processed one at a time, with a pass after each. At each instant, submissions are processed
    first, in the order of the log; no job is submitted before its predecessor in the log. Job ends follow in
    the order of the job starts, but are sorted (stably) by expected end whenever the policy makes a
    reservation.

    A wake-up, such as that of a held job, occurs only if no other event happens earlier. Without pending
    events, it occurs at once and the clock does not advance.

    Other properties of those simulators are up to the policy: see :mod:`hpcsimkit.policies.dirlab`.

    Parameters
    ----------
    following : int, optional
        Submission time [s] of the job that follows the simulated ones in their log. After the last
        submission, those simulators still consider it: it prevents later wake-ups. By default none.

    Examples
    --------
    Both jobs arrive at 5 s; the first starts before the second is submitted:

    >>> from hpcsimkit.experiments.parts.registry import make
    >>> from hpcsimkit.jobs.workload import Workload
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> w = Workload({"submit_time": [5, 5], "run_time": [100, 10], "nodes": [1, 1]}, machine_size=1)
    >>> Simulation(w, make("sjf")).run().start_time.tolist()
    [15, 5]
    >>> Simulation(w, make("sjf"), event_order=DirlabOrder()).run().start_time.tolist()
    [5, 105]
    """

    name = "dirlab"
    known = ("cluster", "seed", "walltime", "event_order", "simulator")

    def __init__(self, following: int | None = None) -> None:
        self.following = following

    def reset(self, run: OrderedRun) -> None:
        """Replace the running jobs by a list that keeps the order of simultaneous job ends."""
        run.system.running = self._running = RunningList(run.system.jobs)
        run.system.stands_still = True

    def begin(self, run: OrderedRun) -> None:
        """Schedule the first submission; each one schedules the next."""
        self._run = run
        self._coming = iter(run.system.jobs)
        self._schedule_submission()

    def _schedule_submission(self) -> None:
        """Schedule the submission of the next job of the log."""
        job = next(self._coming, None)
        if job is not None:
            clock = self._run.clock
            self._next_submission = job.submit_time
            Instant(clock, BEFORE_ENDS, max(job.submit_time - clock.now, 0), [self._submit], job)

    def _submit(self, event: Event) -> None:
        self._schedule_submission()
        self._run.submit_now(event)

    def advance(self, run: OrderedRun) -> None:
        """Process events, with a pass after each, until a decision is pending."""
        while run.decision is None:
            run.clock.step()
            if run.pass_wanted:
                run.run_pass()

    def schedule_end(self, job: Job, seconds: int) -> None:
        """Schedule the end of a job; jobs that end at the same time may swap their events."""
        run = self._run

        def end(event: Event) -> None:
            event._value = self._running.next_to_end(run.clock.now), 0  # these rules know no other attempts
            run.end(event)

        self._running.expect(job, run.system.now + seconds)
        Instant(run.clock, END, seconds, [end], job)

    def wake_time(self, run: OrderedRun, at: int) -> int | None:
        """Return the requested time if no other event happens earlier; now if there is no other event."""
        system = run.system
        if not system.anything_ahead:
            return system.now
        submission = self._next_submission if system.arrivals_left else self.following
        events = [time for time in (submission, self._running.next_end) if time is not None]
        return at if at < min(events, default=at + 1) else None


class RunningList(Running):
    """Running jobs, including the order of simultaneous job ends."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        super().__init__(jobs)
        self._ending: dict[int, list[Job]] = {}
        self._shared: set[int] = set()

    @property
    def next_end(self) -> int | None:
        """Time of the next job end [s], or None."""
        return min(self._ending, default=None)

    def expect(self, job: Job, end: int) -> None:
        """Record the time at which a started job will end [s]."""
        together = self._ending.setdefault(end, [])
        together.append(job)
        if len(together) > 1:
            self._shared.add(end)

    def next_to_end(self, now: int) -> Job:
        """Remove and return the first of the jobs that end now."""
        together = self._ending[now]
        job = together.pop(0)
        if not together:
            del self._ending[now]
            self._shared.discard(now)
        return job

    def sort_ends(self) -> None:
        """Sort simultaneous job ends by expected end."""
        for end in self._shared:
            self._ending[end].sort(key=self.expected_end)


EVENT_ORDERS: dict[str, type[EventOrder]] = {order.name: order for order in (TextbookOrder, DirlabOrder)}
"""Event orders by the name of their rules."""
