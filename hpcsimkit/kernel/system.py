"""The current state of a simulated cluster, and the only operations that change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Cluster, Nodes
from hpcsimkit.cluster.opaque import Allocation, AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import ScheduleError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import QueueOrder, make_queue
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.actions import Actions
from hpcsimkit.kernel.capacity import Listener, Running
from hpcsimkit.kernel.ledger import Ledger, Mode
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.service_time import ServiceTime

__all__ = ["RunTimeEstimator", "System"]


AS_STOPPED = Restart()


class RunTimeEstimator(Protocol):
    """The part of the :class:`~hpcsimkit.kernel.policy.Estimator` interface that the system uses."""

    @property
    def corrects(self) -> bool:
        """Whether :meth:`correct` is called for a job that exceeds its estimate."""
        ...

    @property
    def requested(self) -> bool:
        """Whether the estimates are the requested times, so that :meth:`estimate` need not be called."""
        ...

    @property
    def observes(self) -> bool:
        """Whether :meth:`observe` is called when a job ends."""
        ...

    def estimate(self, job: Job) -> int:
        """Return the estimate [s], >= 1."""
        ...

    def prediction(self, job: Job) -> Prediction:
        """Return the predicted run time of a job."""
        ...

    def revisions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for each of some waiting jobs that changes with its prediction."""
        ...

    def correct(self, job: Job, elapsed: int) -> int:
        """Return a new estimate [s] for a job that has run `elapsed` seconds."""
        ...

    def observe(self, job: Job, system: System) -> None:
        """Update the estimator with a job that has just ended."""
        ...


class System(Actions):
    """The state that a policy may read (``now, queue, running, cluster, free``) and the actions it may take.

    The actions are :meth:`start`, :meth:`stop`, :meth:`suspend`, :meth:`resume`, :meth:`reject` and
    :meth:`wake`. Each is validated and recorded, and triggers its callbacks; an invalid action raises an
    error immediately.

    Attributes
    ----------
    queue : JobQueue
        Waiting jobs in policy order.
    ledger : Ledger
        The record of all jobs: their states, starts and ends.
    newcomers : list of Job
        Jobs submitted since the last pass, in order of arrival.
    ended : list of int
        Rows of the ended jobs, in the order in which they ended.
    rejected : list of int
        Rows of the jobs that left the queue without a start here (rejected, held by a gate, or started in
        another partition), once for each time.
    passes : int
        Number of passes begun so far.
    holds : dict of int to int
        Number of times an inspector held a job, by row; jobs that were never held are absent.
    stands_still : bool
        Whether a wake-up without pending events comes at once, without advancing the clock (published rules).
    restart : Restart
        Rules of stopped jobs: what they keep of their work, and when they may start again.
    allocations : list of Allocation or None
        Allocation of each job; None with homogeneous nodes.
    events : list of int
        Starts (rows) and ends (complements of rows) in chronological order; on machines only.
    service_time : ServiceTime or None
        The locality model, as used by :meth:`expected_penalty`.
    suspended : dict of int to Suspended
        The suspended jobs by row, in the order in which they were suspended.
    partitioned : bool
        Whether the run has several partitions.
    partition : str
        Name of the partition that this system is; empty for the whole cluster, unless it is one partition.
    partitions : Partitions or None
        The partitions, if one copy of the policy schedules all of them; else None.
    everywhere : System
        The system of the whole cluster; this one, except in a run with several partitions.
    billing : mapping of str to mapping of str to float
        Weights of resources in the billing of jobs, by the partition in which they start; without those that
        have no weights.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: AnyCluster,
        order: QueueOrder,
        estimator: RunTimeEstimator,
        seed: int,
        service_time: ServiceTime | None = None,
        listener: Listener | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        super().__init__(cluster, listener)
        self.workload = workload
        self.restart = AS_STOPPED
        self.ledger = Ledger(workload) if ledger is None else ledger
        self.order = order
        self.estimator = estimator
        self.estimate: Callable[[Job], int] = (
            attrgetter("requested_time")  # equivalent but faster
            if estimator.requested
            else self._checked_estimate
        )
        self._estimate_of_job: Callable[[Job], int] | None = None
        self._learns = estimator.observes
        self.size_of: Callable[[Job], int] = (
            attrgetter("nodes") if type(cluster).size_of is Cluster.size_of else cluster.size_of
        )
        self.service_time = service_time
        self.seed = seed
        self.partition = ""
        self.partitions: Partitions | None = None
        self.everywhere = self
        self.billing: Mapping[str, Mapping[str, float]] = {}
        self.jobs: list[Job] = self.ledger.jobs
        self.running = Running(self.jobs)
        self.newcomers: list[Job] = []
        self.arrivals_left = len(workload)
        self.passes = 0
        self.ended: list[int] = []
        self.rejected: list[int] = []
        self.holds: dict[int, int] = {}
        self.stands_still = False
        self.allocations: list[Allocation | None] | None = (
            None if isinstance(cluster, Nodes) else [None] * len(workload)  # here equal to job.nodes
        )
        self.events: list[int] = []
        self._streams = np.random.SeedSequence(seed)
        self.queue = make_queue(self, order)

    # --- reading -----------------------------------------------------------------------------------

    def expected_penalty(self, job: Job, allocation: Allocation) -> float:
        """Return the expected increase in run time of a job with an allocation [s].

        The increase is that of the requested time under the locality model of the run; 0 without a model.
        """
        return 0.0 if self.service_time is None else self.service_time.expected(job, allocation, self.cluster)

    def running_jobs(self) -> Iterator[Job]:
        """Yield the running jobs by expected end."""
        return (self.jobs[row] for row in self.running.rows)

    def start_time(self, job: Job) -> int:
        """Return the start time of a job [s], -1 if it has not started."""
        return self.ledger.starts[job.index]

    def given(self, row: int) -> Allocation:
        """Return the allocation that the job of a row received at its start."""
        return self.jobs[row].nodes if self.allocations is None else self.allocations[row]

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column of the workload; submission times are those of this run."""
        return self.ledger.submit_time if name == "submit_time" else self.workload.column(name)

    def random(self) -> np.random.Generator:
        """Return a new, independent random number generator derived from the seed of the run."""
        return np.random.default_rng(self._streams.spawn(1)[0])

    def another(self, policy: Any) -> Any:
        """Return a :class:`~hpcsimkit.kernel.simulation.Simulation` of another policy, for comparisons.

        Its other parameters are those of this run; it has no observers.
        """
        return self.listener.another(policy)

    def expect_attempts(self) -> None:
        """From now on, estimate attempts: without the work that is kept, with checkpoints and restarts.

        Without any of these, the estimate of a job is that of its attempt.
        """
        if self._estimate_of_job is None:
            self._estimate_of_job, self.estimate = self.estimate, self._estimate_of_attempt

    def _estimate_of_attempt(self, job: Job) -> int:
        assert self._estimate_of_job is not None
        row, ledger = job.index, self.ledger
        if not ledger.attempts[row] and self.restart.checkpoint is None:
            return self._estimate_of_job(job)
        work = max(self._estimate_of_job(job) - ledger.kept.get(row, 0), 1)
        return self.restart.duration(work, again=ledger.again(row))

    def _checked_estimate(self, job: Job) -> int:
        return self._whole(self.estimator.estimate(job), job)

    def _whole(self, estimate: int, job: Job) -> int:
        """Return the estimate if it is a whole number of seconds of at least 1; otherwise raise an error."""
        if not (isinstance(estimate, int | np.integer) and 1 <= estimate <= TIME_LIMIT):
            raise ScheduleError(
                f"{self.estimator!r} for job {job.id} at t={self.now} s: an estimate needs a whole number of "
                f"seconds, at least 1 and at most 10^11, found {estimate!r}"
            )
        return int(estimate)

    # --- actions of the simulation -------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Add a job to the queue (called by the simulation)."""
        self.ledger.state[job.index] = 1  # as `Ledger.submit`, without a call for each job
        self.arrivals_left -= 1
        self.newcomers.append(job)
        self.queue.add(job, self.estimate(job))

    def submit_all(self, jobs: list[Job]) -> None:
        """Add several jobs to the queue, as if one after the other (called by the simulation)."""
        self.ledger.submit_all(job.index for job in jobs)
        self.arrivals_left -= len(jobs)
        self.newcomers += jobs
        self.queue.add_all(jobs, [self.estimate(job) for job in jobs])

    def end(self, job: Job) -> None:
        """End a running job (called by the simulation)."""
        row = job.index
        self.ledger.state[row] = 3  # as `Ledger.end`, without a call for each job
        self.ledger.ends[row] = self.now
        self.ended.append(row)
        if self.allocations is not None:
            self.events.append(~row)
        self.free = self.free + self.running.remove(row)[2]  # as `_leave`, without a call for each job
        self.version += 1
        if self._learns:
            self.estimator.observe(job, self)

    def correct_estimates(self) -> None:
        """Correct the estimates of jobs that exceeded them, if the estimator does so (before a pass)."""
        if not self.estimator.corrects:
            return
        while self.running.overrun(self.now):
            self.correct(self.jobs[self.running.entries[0][1]])

    def correct(self, job: Job) -> None:
        """Correct the estimate of a running job that exceeded it."""
        elapsed, row = self.now - self.start_time(job), job.index
        before = self.ledger.kept.get(row, 0) + self.ledger.ran_before(row)
        corrected = self._whole(self.estimator.correct(job, elapsed + before), job) - before
        self.ledger.estimates[row] = max(corrected, elapsed + 1)
        self.expect(job)

    def expect(self, job: Job) -> None:
        """Adopt the corrected estimate of a running job."""
        row = job.index
        allocation = self.running.remove(row)[2]
        self.running.add(row, self.ledger.expected_end_of(row), allocation)
        self.corrections += 1
        self.version += 1

    # --- actions of gates and of other partitions ---------------------------------------------------

    def withdraw(self, *jobs: Job) -> None:
        """Remove jobs that a gate holds, or that were started or rejected in another partition."""
        rows = {job.index for job in jobs}
        self.queue.remove_all(jobs)
        self.newcomers = [newcomer for newcomer in self.newcomers if newcomer.index not in rows]
        self.rejected += [job.index for job in jobs]
        self.version += 1

    def occupy(self, job: Job, allocation: Allocation) -> None:
        """Give resources to a job that has started in another partition, as long as it runs."""
        self.free = self.free - allocation
        self.running.add(job.index, self.ledger.expected_end_of(job.index), allocation)
        self.corrections += 1
        self.version += 1

    def vacate(self, job: Job) -> None:
        """Take back the resources of a job of another partition, or of a job that is stopped."""
        # Plans count on the end of a test: they hold if it is over just then.
        tested = self.ledger.modes[job.index] == Mode.TESTED
        self.corrections += not (tested and self.running.expected_end(job) == self.now)
        self._leave(job)
