"""The state of a simulated cluster now, and the only verbs that change it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from enum import IntEnum
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster import Allocation, Cluster, Level, Nodes
from hpcsimkit.errors import ScheduleError
from hpcsimkit.job import Job
from hpcsimkit.jobqueue import make_queue
from hpcsimkit.policy import Estimator, Order, Policy
from hpcsimkit.service_time import ServiceTime
from hpcsimkit.workload import Workload

__all__ = ["Mode", "Running", "State", "System"]


class Mode(IntEnum):
    """How a job came to start."""

    NONE = 0
    READY = 1
    RESERVED = 2
    BACKFILLED = 3


class State(IntEnum):
    """Where a job is in its life."""

    UNSEEN = 0
    WAITING = 1
    RUNNING = 2
    DONE = 3
    REJECTED = 4


class Running:
    """Running jobs by expected end.

    The expected end is the start plus what the scheduler believes the job takes; a job that is still
    running then is expected to end one second from now, whenever that is.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, Allocation]] = []
        self._entry_of: dict[int, tuple[int, int, Allocation]] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, job: Job) -> bool:
        return job.index in self._entry_of

    @property
    def rows(self) -> list[int]:
        """Rows of the running jobs in the workload, by expected end."""
        return [entry[1] for entry in self.entries]

    def by_expected_end(self) -> list[tuple[int, int, Allocation]]:
        """Return expected end [s], row and allocation of each, for whoever makes a reservation."""
        return self.entries

    def overrun(self, now: int) -> bool:
        """Tell whether some job runs although it was expected to have ended."""
        return bool(self.entries) and self.entries[0][0] <= now

    def expected_end(self, job: Job) -> int:
        """Return when a running job is expected to end [s]; it may lie in the past."""
        return self._entry_of[job.index][0]

    def allocation(self, job: Job) -> Allocation:
        """Return what a running job occupies."""
        return self._entry_of[job.index][2]

    def add(self, row: int, expected_end: int, allocation: Allocation) -> None:
        """Let a job run."""
        entry = (expected_end, row, allocation)
        self._entry_of[row] = entry
        insort(self.entries, entry)

    def remove(self, row: int) -> tuple[int, int, Allocation]:
        """Let a job end; returns its expected end, row and allocation."""
        entry = self._entry_of.pop(row)
        entries = self.entries
        del entries[bisect_left(entries, entry)]
        return entry


class System:
    """What a policy may read (``now, queue, running, cluster, free``) and the verbs it may use.

    The verbs are :meth:`start`, :meth:`reject` and :meth:`wake`. Each validates, records and notifies, once
    and here; a rule broken is an error at that moment.

    Attributes
    ----------
    now : int
        The clock [s].
    queue : JobQueue
        Waiting jobs in policy order.
    running : Running
        Running jobs by expected end.
    cluster : Cluster
        The machine.
    free : Level
        What is free now.
    newcomers : list of Job
        Jobs that joined since the last pass, in order of arrival.
    ended : list of int
        Rows of the jobs that have ended, in the order in which they did.
    rejected : list of int
        Rows of the jobs that were rejected, in the order in which they were.
    version : int
        Changes whenever something starts, ends or is expected to end at another time.
    passes : int
        Passes begun so far.
    corrections : int
        Estimates of running jobs corrected so far.
    holds : dict of int to int
        How often the job of a row was held by an inspector, if ever.
    stands_still : bool
        Whether a wake-up with nothing ahead comes at once, the clock standing still (published rules).
    arrivals_left : int
        Submissions that are certain to come, whatever happens to the jobs that wait.
    allocations : list of Allocation or None
        What each job was given; None on counted nodes.
    events : list of int
        Starts (rows) and ends (complements of rows) in the order in which they happened; on machines only.
    service_time : ServiceTime or None
        The locality model; ask :meth:`expected_penalty`.
    another : callable
        ``another(policy)`` returns a :class:`~hpcsimkit.simulation.Simulation` of another policy, all else
        being equal: for whoever compares.
    estimate : callable
        ``estimate(job)``: how long the scheduler believes the job takes in all [s], >= 1.
    """

    def __init__(
        self, workload: Workload, cluster: Cluster, order: Order, estimator: Estimator, seed: int,
        service_time: ServiceTime | None = None,
    ) -> None:  # fmt: skip
        self.workload = workload
        self.cluster = cluster
        self.order = order
        self.estimator = estimator
        self.estimate: Callable[[Job], int] = (
            attrgetter("requested_time")  # the same, faster
            if type(estimator).estimate is Estimator.estimate
            else self._checked_estimate
        )
        self._learns = type(estimator).observe is not Estimator.observe
        self.size_of: Callable[[Job], int] = (
            attrgetter("nodes") if type(cluster).size_of is Cluster.size_of else cluster.size_of
        )
        self.service_time = service_time
        self.seed = seed
        self.now = 0
        self.free: Level = cluster.capacity
        self.jobs: list[Job] = workload.jobs
        self.running = Running()
        self.newcomers: list[Job] = []
        self.arrivals_left = len(workload)
        self.version = self.passes = self.corrections = 0
        self.ended: list[int] = []
        self.rejected: list[int] = []
        self.holds: dict[int, int] = {}
        self.stands_still = False
        count = len(workload)
        self.state = bytearray(count)
        self.modes = bytearray(count)
        self.starts: list[int] = [-1] * count
        self.finishes: list[int] = [-1] * count
        self.estimates: list[int] = [-1] * count
        self.allocations: list[Allocation | None] | None = (
            None if isinstance(cluster, Nodes) else [None] * count  # a count says nothing that is not known
        )
        self.events: list[int] = []
        self._streams = np.random.SeedSequence(seed)
        self._submit_times: NDArray[np.int64] | None = None
        self.queue = make_queue(self, order)
        self.on_start: Callable[[Job, Allocation], None] = lambda job, allocation: None
        self.on_reject: Callable[[Job], None] = lambda job: None
        self.on_wake: Callable[[int], None] = lambda at: None
        self.on_block: list[Callable[[Job, System], None]] = []
        self.another: Callable[[Policy], Any]

    # --- reading -----------------------------------------------------------------------------------

    def fits(self, job: Job) -> bool:
        """Tell whether the job could start now."""
        return self.cluster.fits(job, self.free)

    def expected_penalty(self, job: Job, allocation: Allocation) -> float:
        """Return by how much longer a job is expected to take with an allocation [s].

        That is what the locality model of the run makes of the requested time; 0 without a model.
        """
        return 0.0 if self.service_time is None else self.service_time.expected(job, allocation, self.cluster)

    @property
    def anything_ahead(self) -> bool:
        """Whether something runs or is still to come, so that waiting makes sense."""
        return bool(self.running.entries) or self.arrivals_left > 0

    def running_jobs(self) -> Iterator[Job]:
        """Yield the running jobs by expected end."""
        return (self.jobs[row] for row in self.running.rows)

    def start_time(self, job: Job) -> int:
        """Return when a job started [s], -1 if it has not."""
        return self.starts[job.index]

    def given(self, row: int) -> Allocation:
        """Return what the job of a row was given when it started."""
        return self.jobs[row].nodes if self.allocations is None else self.allocations[row]

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column of the workload; submission times are those of this run."""
        if name == "submit_time" and self._submit_times is not None:
            return self._submit_times
        return self.workload.column(name)

    def random(self) -> np.random.Generator:
        """Return a new generator of random numbers, independent of the others; the run's seed decides."""
        return np.random.default_rng(self._streams.spawn(1)[0])

    def _checked_estimate(self, job: Job) -> int:
        return self._whole(self.estimator.estimate(job), job)

    def _whole(self, estimate: int, job: Job) -> int:
        """See that an estimate is a whole number of seconds, at least 1."""
        if not isinstance(estimate, int | np.integer) or estimate < 1:
            raise ScheduleError(
                f"{self.estimator!r} for job {job.id} at t={self.now} s: an estimate needs a whole number of "
                f"seconds, at least 1, found {estimate!r}"
            )
        return int(estimate)

    # --- verbs of a policy ---------------------------------------------------------------------------

    def start(self, job: Job, allocation: Allocation | None = None, mode: int = Mode.READY) -> None:
        """Start a waiting job now.

        Parameters
        ----------
        job : Job
            One that waits in the queue.
        allocation : Allocation, optional
            Where; by default where the cluster places it.
        mode : int
            How it came to start, for the records.

        Raises
        ------
        ScheduleError
            The job does not wait (not submitted yet, started before, rejected), or does not fit.
        """
        row = job.index
        if self.state[row] != 1:
            raise self._not_waiting(job)
        job = self.jobs[row]  # what was asked for, whatever copy was handed in
        given = allocation
        if allocation is None:
            allocation = self.cluster.place(job, self.free)
        elif not self.cluster.holds(job, allocation, self.free):
            allocation = None
        if allocation is None:
            raise self._no_place(job, given)
        self.state[row] = 2
        self.starts[row] = self.now
        self.modes[row] = mode
        self.free = self.free - allocation
        self.version += 1
        estimate = self.estimates[row] = self.queue.remove(job)
        self.running.add(row, self.now + estimate, allocation)
        if self.allocations is not None:
            self.allocations[row] = allocation
            self.events.append(row)
        self.on_start(job, allocation)

    def reject(self, job: Job) -> None:
        """Refuse a waiting job for good: it never runs.

        Raises
        ------
        ScheduleError
            The job does not wait.
        """
        if self.state[job.index] != State.WAITING:
            raise self._not_waiting(job)
        job = self.jobs[job.index]
        self.state[job.index] = State.REJECTED
        self.rejected.append(job.index)
        self.version += 1
        self.queue.remove(job)
        self.on_reject(job)

    def wake(self, at: int) -> None:
        """Ask for a pass at an instant [s], later than now, whether or not anything happens then.

        Raises
        ------
        ScheduleError
            The instant has passed.
        """
        if at != int(at) or at <= self.now:
            raise ScheduleError(
                f"wake-up at t={at} s asked for at t={self.now} s: it must be a whole second that lies ahead"
            )
        self.on_wake(int(at))

    def _no_place(self, job: Job, allocation: Allocation | None) -> ScheduleError:
        who = f"job {job.id} at t={self.now} s"
        if allocation is None or not self.fits(job):
            return ScheduleError(f"{who} {self.cluster.shortage(job, self.free)}")
        return ScheduleError(
            f"{who}: {allocation!r} does not lie within what is free, or is not what it needs"
        )

    def _not_waiting(self, job: Job) -> ScheduleError:
        state = State(self.state[job.index])
        if state is State.UNSEEN:
            found = f"it is submitted at t={job.submit_time} s"
        elif state is State.REJECTED:
            found = "it was rejected"
        else:
            found = f"it started at t={self.starts[job.index]} s"
        return ScheduleError(f"job {job.id} at t={self.now} s cannot start: it must be waiting; {found}")

    # --- verbs of the simulation ---------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Let a job join the queue (the simulation does this)."""
        self.state[job.index] = 1
        self.arrivals_left -= 1
        self.newcomers.append(job)
        self.queue.add(job, self.estimate(job))

    def resubmit_at(self, job: Job) -> None:
        """Replace a job by a copy with the submission time that this run gave it (dependencies)."""
        if self._submit_times is None:
            self._submit_times = self.workload.column("submit_time").copy()
            self.jobs = self.jobs.copy()
        self._submit_times[job.index] = job.submit_time
        self.jobs[job.index] = job

    def end(self, job: Job) -> None:
        """Let a running job end (the simulation does this)."""
        row = job.index
        self.state[row] = 3
        self.finishes[row] = self.now
        self.ended.append(row)
        if self.allocations is not None:
            self.events.append(~row)
        self.version += 1
        self.free = self.free + self.running.remove(row)[2]
        if self._learns:
            self.estimator.observe(job, self)

    def correct_estimates(self) -> None:
        """Give jobs that outlived their estimates new ones, if the estimator does (before a pass)."""
        if not self.estimator.corrects:
            return
        while self.running.overrun(self.now):
            _, row, allocation = self.running.remove(self.running.entries[0][1])
            elapsed = self.now - self.starts[row]
            corrected = self._whole(self.estimator.correct(self.jobs[row], elapsed), self.jobs[row])
            self.estimates[row] = max(corrected, elapsed + 1)
            self.running.add(row, self.starts[row] + self.estimates[row], allocation)
            self.corrections += 1
            self.version += 1
