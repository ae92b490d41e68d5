"""The state of a paused run, as encoders, masks and rewards read it: a system without actions.

Each part is read from the arrays of the run when it is asked for. What is not here cannot be read at an open
seat of a compiled run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.queue import BLOCKS, WAITING, Queue
from hpcsimkit.compiled.state import ARRIVED, FREE, RUNNING, Integers, Jobs, Run
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Estimator

__all__ = ["Shown", "ShownLedger", "ShownQueue", "ShownRunning"]


class Shown:
    """The readable part of a :class:`~hpcsimkit.kernel.system.System`.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    workload : Workload
        The jobs, with limited run times if they are killed.
    jobs, run, queue : Jobs, Run, Queue
        The arrays of the run.
    stands_still : bool
        See :class:`~hpcsimkit.kernel.system.System`.
    now : int
        The simulated time [s].
    """

    service_time = None
    allocations = None
    partition = ""
    events: tuple[int, ...] = ()
    suspended: tuple[int, ...] = ()
    calendar: tuple[int, ...] = ()

    def __init__(
        self,
        simulation: Any,
        workload: Workload,
        jobs: Jobs,
        run: Run,
        queue: Queue,
        stands_still: bool,
        now: int,
    ) -> None:
        self.workload = workload
        self.cluster = simulation.cluster
        self.estimator: Estimator = simulation.policy.estimator  # one that learns nothing from ended jobs
        self.seed = simulation.setup.seed
        self.another: Callable[[Any], Any] = simulation.another
        self.stands_still = stands_still
        self.now = now
        self.jobs: list[Job] = workload.jobs
        self.holds: dict[int, int] = {}
        self.queue = ShownQueue(self.jobs, queue, run.estimate)
        self.running = ShownRunning(jobs, run)
        self.ledger = ShownLedger(self)
        self._columns, self._run = jobs, run

    @property
    def free(self) -> int:
        """The number of free nodes."""
        return int(self._run.counters[FREE])

    @property
    def arrivals_left(self) -> int:
        """Number of submissions to come."""
        return len(self._columns.arrival_order) - int(self._run.counters[ARRIVED])

    @property
    def releases(self) -> list[tuple[int, int, int]]:
        """Expected end [s], row and nodes of each running job."""
        return self.running.entries

    @property
    def anything_ahead(self) -> bool:
        """Whether jobs are running or submissions pending."""
        return len(self.running) > 0 or self.arrivals_left > 0

    @property
    def passes(self) -> int:
        """Number of passes begun so far."""
        from hpcsimkit.compiled.state import PASSES

        return int(self._run.counters[PASSES])

    @property
    def ends(self) -> Integers:
        """End of each job [s], -1 if it has not ended."""
        start_time = self._run.start_time
        ends = np.where(start_time < 0, -1, start_time + self._columns.run_time)
        ends[self.running.rows] = -1
        return ends

    def estimate(self, job: Job) -> int:
        """Return the estimate of the job's total run time [s]."""
        return int(self._run.estimate[job.index])

    def start_time(self, job: Job) -> int:
        """Return the start time of a job [s], -1 if it has not started."""
        return int(self._run.start_time[job.index])

    def given(self, row: int) -> int:
        """Return the number of nodes of the job of a row."""
        return self.jobs[row].nodes

    def fits(self, job: Job) -> bool:
        """Return whether the job could start now."""
        return job.nodes <= self.free

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column of the workload."""
        return self.workload.column(name)


class ShownLedger:
    """The starts and ends of the jobs; see :class:`~hpcsimkit.kernel.ledger.Ledger`."""

    rejected = None  # at the seats that can be open
    stopped = ()
    past_holds: Mapping[int, Any] = {}

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def started(self, row: int) -> bool:
        """Return whether the job is running, or has run to its end."""
        return self.start_of(row) >= 0

    def start_of(self, row: int) -> int:
        """Return the start of the job [s], -1 if it has not started."""
        return int(self.start_time[row])

    def end_of(self, row: int) -> int:
        """Return the end of the job [s], -1 if it has not ended."""
        return int(self.end_time[row])

    def partition_of(self, row: int) -> str:
        """Return the name of no partition."""
        return ""

    def first_held(self) -> None:
        """Return None: there are no gates."""

    @property
    def submit_time(self) -> Integers:
        """Submission time of each job [s]."""
        return self._shown.column("submit_time")

    @property
    def start_time(self) -> Integers:
        """Start of each job [s], -1 if it has not started."""
        return self._shown._run.start_time

    @property
    def end_time(self) -> Integers:
        """End of each job [s], -1 if it has not ended."""
        return self._shown.ends

    @property
    def mode(self) -> NDArray[np.uint8]:
        """Start mode of each job."""
        return self._shown._run.mode


class ShownQueue:
    """The waiting jobs in the order of the policy, which is constant; see :class:`JobQueue`."""

    def __init__(self, jobs: list[Job], queue: Queue, estimate: Integers) -> None:
        self._jobs, self._queue, self._estimate = jobs, queue, estimate

    def __len__(self) -> int:
        return int(self._queue.counters[WAITING])

    def __iter__(self) -> Iterator[Job]:
        return map(self._jobs.__getitem__, self.rows)

    def __contains__(self, job: Job) -> bool:
        return job.index in self.row_array

    @property
    def rows(self) -> list[int]:
        """Rows of the waiting jobs in the workload."""
        rows: list[int] = self.row_array.tolist()
        return rows

    @property
    def table(self) -> NDArray[np.int64]:
        """Rows ``index, size, estimate`` of the waiting jobs, int64, shape (3, jobs)."""
        rows = self.row_array
        sizes = [self._jobs[row].nodes for row in rows.tolist()]
        return np.stack([rows, np.array(sizes, dtype=np.int64), self._estimate[rows]])

    def first(self) -> Job:
        """Return the first job; the queue must not be empty."""
        return self._jobs[self._queue.rows[self._queue.order[0], 0]]

    @property
    def row_array(self) -> Integers:
        """Rows of the waiting jobs, int64, shape (jobs,)."""
        queue = self._queue
        blocks = queue.order[: queue.counters[BLOCKS]].tolist()
        if len(blocks) == 1:
            return queue.rows[blocks[0], : queue.filled[blocks[0]]]
        parts = [queue.rows[block, : queue.filled[block]] for block in blocks]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


class ShownRunning:
    """The running jobs by expected end; see :class:`~hpcsimkit.kernel.capacity.Running`."""

    def __init__(self, jobs: Jobs, run: Run) -> None:
        self._jobs, self._run = jobs, run

    def __len__(self) -> int:
        return int(self._run.counters[RUNNING])

    @property
    def entries(self) -> list[tuple[int, int, int]]:
        """Expected end [s], row and nodes of each job."""
        count = len(self)
        ends, rows = self._run.expected[:, :count]
        return list(zip(ends.tolist(), rows.tolist(), self._jobs.nodes[rows].tolist(), strict=True))

    @property
    def rows(self) -> list[int]:
        """Rows of the running jobs."""
        rows: list[int] = self._run.expected[1, : len(self)].tolist()
        return rows

    def overrun(self, now: int) -> bool:
        """Return whether a running job has reached or passed its expected end."""
        return len(self) > 0 and bool(self._run.expected[0, 0] <= now)
