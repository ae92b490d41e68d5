"""The base classes of a scheduler: the policy, and the stages of a pipeline.

To write a scheduler of your own, in the order of effort:

* an :class:`Order` with ``key(job)``: a priority that does not depend on time;
* an :class:`Order` with ``formula(job, now)`` or ``scores(jobs, now)``: a time-dependent priority, of each
  job alone or of all jobs at once;
* another stage: :class:`Inspector`, :class:`Placement`, :class:`Backfiller`, :class:`Estimator`;
* a :class:`Policy` with ``schedule(system)``: the whole scheduling pass.

Each run works on its own deep copy of the policy, so any state that :meth:`Policy.reset` or a pass stores on
``self`` belongs to that run alone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import Allocation, Level
from hpcsimkit.errors import UsageError, lacking
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.holes import Hole
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.stage import Hearing, Stage
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result

__all__ = [
    "FCFS",
    "Admission",
    "Backfiller",
    "Estimator",
    "Inspector",
    "Order",
    "OrderOfAnother",
    "Placement",
    "Policy",
    "Preemptor",
    "Requested",
    "Tester",
]


class Order(Stage):
    """Order of the waiting jobs. Smaller is earlier; ties keep the order of arrival.

    Override one of three methods: ``key(job)``, evaluated once when a job arrives; ``scores(jobs, now)``,
    evaluated for all waiting jobs at each pass; or ``formula(job, now)``, arithmetic on the time and on
    attributes of a job. A time-dependent order is fastest as a formula: it serves a single job in a short
    queue as well as the columns of all jobs in a long one.

    Examples
    --------
    >>> class Smallest(Order):
    ...     def key(self, job):
    ...         return job.nodes
    >>> Smallest().dynamic
    False
    """

    @property
    def dynamic(self) -> bool:
        """Whether the order changes while jobs wait."""
        return self.by_formula or type(self).scores is not Order.scores

    @property
    def by_formula(self) -> bool:
        """Whether the order is given by :meth:`formula`."""
        return type(self).formula is not Order.formula and type(self).scores is Order.scores

    def key(self, job: Job) -> Any:
        """Return the sort key of a job; it must not depend on the time."""
        return job.submit_time

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return the sort keys at time `now`, shape (jobs,); `jobs` holds the columns of the waiting jobs."""
        scores: np.ndarray[Any, Any] = self.formula(jobs, now)
        return scores

    def formula(self, job: Any, now: int) -> Any:
        """Return the sort key of a job at time `now`, or of each job if `job` holds columns of jobs."""
        return job.submit_time

    def arrive(self, job: Job) -> None:
        """Called when a job joins the queue, if this order has scores, before the first of them.

        The order is that of the queue, or of the candidates of :class:`~hpcsimkit.kernel.reservation.EASY`.
        """

    def sort(self, jobs: list[Job], system: System) -> list[Job]:
        """Return the jobs sorted by this order at the current time; ties keep their given order."""
        if not self.dynamic:
            return sorted(jobs, key=self.key)
        rows = np.array([job.index for job in jobs], dtype=np.int64)
        scores = self.scores(JobColumns(system, rows), system.now)
        return [jobs[position] for position in np.argsort(scores, kind="stable").tolist()]


class FCFS(Order):
    """First come, first served: jobs ordered by submission time.

    >>> FCFS().key(Job(index=0, id=1, submit_time=7, run_time=5, requested_time=5, nodes=1))
    7
    """

    def key(self, job: Job) -> int:
        """Return the submission time [s]."""
        return job.submit_time


class OrderOfAnother(Order):
    """An order that changes another one, with which names of policies join it.

    Attributes
    ----------
    base : Order or None
        The other order.
    """

    base: Order | None = None


class Inspector(Stage):
    """Decision to start the selected job or to hold it until the next scheduling point."""

    def accept(self, job: Job, system: System) -> bool:
        """Return True to let the selected job go on, False to hold it."""
        return True


class Placement(Stage):
    """Choice of the nodes on which a job runs."""

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        """Return an allocation within the available capacity, or None if the job does not fit.

        `level` is the capacity that the job may use: all free capacity or, behind a blocked job, the part
        that does not delay the blocked job. If the job fits `level`, an allocation must be returned.
        """
        return system.cluster.place(job, level)

    def options(self, job: Job, level: Level, system: System) -> list[Allocation]:
        """Return the candidate allocations of an open placement seat, the heuristic's choice first."""
        allocation = self.place(job, level, system)
        return [] if allocation is None else [allocation]


class Backfiller(Stage):
    """Selection of jobs that may start although a job ahead of them does not fit.

    ``fill`` yields jobs that may start now; the pipeline starts each one before it requests the next.
    """

    reserves = False
    """Whether the first blocked job gets a reservation (recorded in the start modes)."""

    plans = False
    """Whether every job, even the first, starts only when :meth:`due` (conservative backfilling)."""

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Yield the jobs behind the blocked job `head` that may start now, best first."""
        raise lacking(self, "a method fill(head, system)")

    def level(self, job: Job, system: System) -> Level:
        """Return the capacity within which a job just yielded by :meth:`fill` is to be placed."""
        return system.room_for(job)

    def plan(self, system: System) -> None:
        """Update the plan at the beginning of a pass (only if :attr:`plans`)."""

    def due(self, job: Job, system: System) -> bool:
        """Return whether the plan allows a waiting job to start now (only if :attr:`plans`)."""
        return True

    def hole(self, head: Job, system: System) -> Hole:
        """Return the capacity that the reservations leave at the end of a pass, for tests.

        Only backfillers that make reservations have one.
        """
        raise UsageError(f"tests need reservations that they do not delay, found {self!r}")

    def next_pass(self, system: System) -> int | None:
        """Return the time [s] at which the plan needs a pass, or None (only if :attr:`plans`).

        It is asked for at the end of each pass, and replaces the one before.
        """
        return None


class Tester(Stage):
    """Choice of the waiting jobs that run for a short time in a hole that reservations leave.

    Examples
    --------
    The next waiting job that fits runs for at most 10 s:

    >>> from hpcsimkit import EASY, FCFS, Pipeline, Simulation, Workload
    >>> class Next(Tester):
    ...     def chosen(self, head, filler, system):
    ...         fits = (job for job in system.queue if job is not head and system.fits(job))
    ...         yield from ((job, 10, system.free) for job in [*fits][:1])
    >>> w = Workload(
    ...     {"submit_time": [0, 1, 2], "run_time": [100, 50, 5], "requested_time": [100, 50, 900],
    ...      "nodes": [1, 2, 1]},
    ...     machine_size=2,
    ... )
    >>> Simulation(w, Pipeline(FCFS(), backfiller=EASY(), tester=Next())).run().end_time.tolist()
    [100, 150, 7]
    """

    def chosen(self, head: Job, filler: Backfiller, system: System) -> Iterator[tuple[Job, int, Level]]:
        """Yield waiting jobs, each with the time of its test [s] and the capacity in which to place it.

        It is called at the end of a pass in which `head` was blocked, and `filler` has made the reservations.
        The pipeline starts each job before it requests the next.
        """
        raise lacking(self, "a method chosen(head, filler, system)")


class Preemptor(Stage):
    """Choice of the running jobs to stop for a job that does not fit."""

    acts_on_running = False
    """Whether there is a pass after every event, also if no job waits."""

    def before_pass(self, system: System) -> None:
        """Act before a pass, such as to resume suspended jobs."""

    def after_pass(self, system: System) -> None:
        """Act after a pass."""

    def stop(self, job: Job, head: Job, system: System) -> None:
        """Stop a job that was chosen for `head`; by default it is preempted, and returns to the queue."""
        system.stop(job)

    def to_stop(self, head: Job, system: System) -> Sequence[Job]:
        """Return the running jobs that were chosen before and will be stopped for `head`; by default none."""
        return ()

    def fits_without(self, head: Job, jobs: Sequence[Job], system: System) -> bool:
        """Return whether `head` could start now if some running jobs were stopped."""
        level = system.free
        for job in jobs:
            level = level + self.freed(job, system)
        return system.cluster.fits(head, system.room_for(head, level, jobs))

    def freed(self, job: Job, system: System) -> Allocation:
        """Return what a stop of a running job frees."""
        return system.running.allocation(job)

    def candidates(self, head: Job, system: System) -> Sequence[Job]:
        """Return the running jobs that may be stopped for `head`, first choice first.

        A job that returns to the queue may become the next head: it must not be able to stop `head` in turn.
        """
        raise lacking(self, "a method candidates(head, system)")

    def victims(self, head: Job, system: System) -> Sequence[Job]:
        """Return the jobs to stop so that `head` fits; empty if it must wait.

        By default, as many candidates as are needed, without those that turn out not to be.
        """
        chosen = list(self.to_stop(head, system))
        before = len(chosen)
        if self.fits_without(head, chosen, system):
            return ()
        for job in self.candidates(head, system):
            chosen.append(job)
            if self.fits_without(head, chosen, system):
                break
        else:
            return ()
        for job in chosen[before:-1]:
            others = [each for each in chosen if each is not job]
            if self.fits_without(head, others, system):
                chosen = others
        return chosen[before:]


class Admission(Stage):
    """Decision whether a waiting job may start in this pass; one that may not is skipped until the next pass.

    It is asked about a job that is about to start, or to block others. A job that is skipped leaves the queue
    for this pass, as a job that a gate holds: it blocks no other and has no reservation.
    """

    reason = "Admission"
    """Reason of the jobs that are skipped, in results."""

    def admits(self, job: Job, system: System) -> bool:
        """Return whether a waiting job may start now."""
        return True


class Estimator(Stage):
    """Run-time estimate used by the scheduler; by default the requested time.

    Reservations and backfilling use these estimates; orders read the attributes of the job itself, or
    :meth:`prediction`.
    """

    live = False
    """Whether predictions change while a job waits: orders then ask for their :meth:`revisions`."""

    @property
    def corrects(self) -> bool:
        """Whether :meth:`correct` is called for a job that exceeds its estimate.

        Otherwise, it is expected to end one second from now. A subclass may define a class attribute.
        """
        return False

    @property
    def requested(self) -> bool:
        """Whether the estimates are the requested times, so that :meth:`estimate` need not be called."""
        return type(self).estimate is Estimator.estimate

    @property
    def observes(self) -> bool:
        """Whether :meth:`observe` is called when a job ends."""
        return type(self).observe is not Estimator.observe

    def estimate(self, job: Job) -> int:
        """Return the estimate [s], >= 1; repeated calls for a job must return the same value."""
        return job.requested_time

    def prediction(self, job: Job) -> Prediction:
        """Return the predicted run time of a job, for orders; by default its estimate, as if it were certain.

        Repeated calls for a job must return the same value, unless predictions are :attr:`live`.
        """
        return Prediction.certain(self.estimate(job))

    def revisions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for each of some waiting jobs that changes with its prediction, shape (jobs,)."""
        return np.zeros(len(rows), dtype=np.int64)

    def correct(self, job: Job, elapsed: int) -> int:
        """Return a new estimate [s] for a job that has run for `elapsed` seconds and reached its estimate."""
        return elapsed + 1

    def observe(self, job: Job, system: System) -> None:
        """Update the estimator with a job that has just ended."""


class Requested(Estimator):
    """Run-time estimate equal to the user's requested time."""


class Policy(Hearing):
    """A complete scheduler: :meth:`schedule` is called once at each instant with an event.

    Examples
    --------
    >>> class Greedy(Policy):
    ...     def schedule(self, system):
    ...         for job in system.queue:
    ...             if system.fits(job):
    ...                 system.start(job)
    """

    selects_machines = False
    """Whether the policy selects machines itself, for jobs that share one machine each."""

    acts_on_running = False
    """Whether :meth:`schedule` is also called while no job waits, as the policy acts on running jobs, too."""

    schedules_partitions = False
    """Whether one copy schedules all partitions: its system is the whole cluster, with its ``partitions``.

    It needs a cluster with partitions. By default, each partition has its own copy."""

    @property
    def queue_order(self) -> Order:
        """The order in which ``system.queue`` is kept; arrival order unless a subclass overrides it.

        It is read once per run and reset before the policy.
        """
        return FCFS()

    @property
    def estimator(self) -> Estimator:
        """The run-time estimator of the scheduler."""
        return Requested()

    def reset(self, system: System) -> None:
        """Prepare the run's own copy before the first event."""

    def check(self) -> None:
        """Raise a UsageError if the parameters are invalid; called before every run."""

    def check_workload(self, workload: Workload) -> None:
        """Raise a UsageError if the policy cannot run on a workload; called before every run."""

    def remarks_on(self, result: Result) -> list[str]:
        """Return notes that the policy adds to the report of a result, such as fallbacks taken."""
        return []

    def schedule(self, system: System) -> Generator[Decision, Any, None] | None:
        """Start jobs at the current time, as a plain method or as a generator that yields decisions."""
        raise lacking(self, "a method schedule(system)")
