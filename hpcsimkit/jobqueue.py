"""Waiting jobs, kept in the order of the policy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import ScheduleError
from hpcsimkit.job import Job

if TYPE_CHECKING:
    from hpcsimkit.policy import Order
    from hpcsimkit.system import System

__all__ = ["DEEP", "JobColumns", "JobQueue", "ScoredQueue", "make_queue"]

DEEP = 200
"""From so many waiting jobs on, numpy scans the queue faster than a Python loop does."""


class JobColumns:
    """Some jobs as numpy columns, each gathered when it is first read.

    Attributes are the columns of the workload (``nodes``, ``requested_time``, ``submit_time``, ``user``
    ...), int64, shape (jobs,), plus ``index``, the rows of the jobs in the workload.
    """

    def __init__(self, system: System, rows: NDArray[np.int64]) -> None:
        self.index = rows
        self._system = system

    def __len__(self) -> int:
        return len(self.index)

    def __getattr__(self, name: str) -> NDArray[np.int64]:
        if name.startswith("_"):
            raise AttributeError(name)
        column = self._system.column(name)[self.index]
        setattr(self, name, column)
        return column


class JobQueue:
    """Waiting jobs sorted by a key that never changes while a job waits; ties keep the order of arrival.

    Iterating visits a snapshot in policy order, so jobs may be started meanwhile.

    Parameters
    ----------
    system : System
        Whose queue this is.
    key : callable
        ``key(job)``, evaluated once, when the job joins; smaller is earlier.
    """

    stored_in_order = True
    """Whether :attr:`jobs` and :attr:`table` are in policy order."""

    def __init__(self, system: System, key: Callable[[Job], Any]) -> None:
        self._system = system
        self._size_of = system.size_of
        self._key = key
        self._key_of: dict[int, Any] = {}
        self._keys: list[Any] = []
        self._mirror: NDArray[np.int64] | None = None
        self._gone = 0
        self._oldest: tuple[int, list[Job]] | None = None  # as asked for last, until one leaves
        # As they are stored: a long queue begins with what has left (`_gone` of them).
        self.jobs: list[Job] = []
        self.sizes: list[int] = []
        self.estimates: list[int] = []

    # --- reading -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.jobs) - self._gone

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs[self._gone :])

    def __contains__(self, job: Job) -> bool:
        return job.index in self._key_of

    def first(self) -> Job:
        """Return the job the policy puts first; the queue must not be empty."""
        return self.jobs[self._gone]

    def job(self, row: int) -> Job:
        """Return the job of a row of the workload."""
        return self._system.jobs[row]

    def among(self, jobs: list[Job]) -> list[Job]:
        """Return those of some jobs that wait, in the order given."""
        waiting = self._key_of
        return [job for job in jobs if job.index in waiting]

    def oldest(self, limit: int) -> list[Job]:
        """Return the `limit` jobs that joined first, in policy order."""
        if limit >= len(self):
            return self.jobs[self._gone :]
        if self._oldest is None or self._oldest[0] != limit:
            rows = islice(self._key_of, limit)  # a dictionary keeps the order in which jobs joined
            jobs = [self._system.jobs[row] for row in sorted(rows, key=self._key_of.__getitem__)]
            self._oldest = limit, jobs
        return self._oldest[1].copy()

    @property
    def table(self) -> NDArray[np.int64]:
        """Rows ``index, size, estimate`` of the waiting jobs, int64, shape (3, jobs), as they are stored.

        Sizes are the cluster's: on counted nodes how many, else see ``cluster.size_of``.

        Kept from the first time it is asked for, until the queue is short again.
        """
        gone, size = self._gone, len(self.jobs)
        if self._mirror is None:
            self._mirror = np.empty((3, max(4 * DEEP, 2 * size)), dtype=np.int64)
            self._mirror[0, gone:size] = [job.index for job in self.jobs[gone:]]
            self._mirror[1, gone:size] = self.sizes[gone:]
            self._mirror[2, gone:size] = self.estimates[gone:]
        return self._mirror[:, gone:size]

    @property
    def columns(self) -> JobColumns:
        """The waiting jobs as numpy columns, in the order they are stored (see :attr:`table`)."""
        return JobColumns(self._system, self.table[0].copy())

    def ranked(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sort positions in :attr:`table` by the policy; they come in stored order, which is that here."""
        return positions

    # --- changing (by the system only) ---------------------------------------------------------------

    def add(self, job: Job, estimate: int) -> None:
        """Let a job join."""
        key, size = self._key(job), self._size_of(job)
        if key != key:
            raise ScheduleError(f"job {job.id} at t={self._system.now} s: the order's key is not a number")
        position = bisect_right(self._keys, key, self._gone)
        self._key_of[job.index] = key
        self._keys.insert(position, key)
        self.jobs.insert(position, job)
        self.sizes.insert(position, size)
        self.estimates.insert(position, estimate)
        if self._mirror is not None:
            self._mirror_insert(position, (job.index, size, estimate))

    def remove(self, job: Job) -> int:
        """Let a job leave; returns its estimate [s]."""
        row, jobs, position = job.index, self.jobs, self._gone
        key = self._key_of.pop(row)
        self._oldest = None
        if jobs[position].index != row:
            position = bisect_left(self._keys, key, position)
            while jobs[position].index != row:
                position += 1
        if position == self._gone and len(jobs) - position > DEEP:
            return self._leave_in_front()
        estimate = self.estimates.pop(position)
        del self._keys[position], jobs[position], self.sizes[position]
        if self._mirror is not None:
            self._mirror_delete(position)
        if self._gone and len(jobs) - self._gone <= DEEP:
            self._forget_gone()
        return estimate

    def _leave_in_front(self) -> int:
        """Let the first job of a long queue leave without moving all others: what is gone is only counted."""
        estimate = self.estimates[self._gone]
        self._gone += 1
        if self._gone > len(self.jobs) // 2 or len(self.jobs) - self._gone <= DEEP:
            self._forget_gone()
        return estimate

    def _forget_gone(self) -> None:
        """Drop what is gone from the front."""
        gone, self._gone, self._mirror = self._gone, 0, None
        del self._keys[:gone], self.jobs[:gone], self.sizes[:gone], self.estimates[:gone]

    def _mirror_insert(self, position: int, column: tuple[int, int, int]) -> None:
        mirror, size = self._mirror, len(self.jobs)
        assert mirror is not None
        if size > mirror.shape[1]:
            self._mirror = None
            return
        if position + 1 < size:
            mirror[:, position + 1 : size] = mirror[:, position : size - 1]
        mirror[:, position] = column

    def _mirror_delete(self, position: int) -> None:
        mirror, size = self._mirror, len(self.jobs)
        assert mirror is not None
        if size < DEEP // 2:
            self._mirror = None
            return
        mirror[:, position:size] = mirror[:, position + 1 : size + 1]


class ScoredQueue(JobQueue):
    """Waiting jobs in the order of scores that change with time, computed for all of them at once.

    Stored in order of arrival; the first job is the one of smallest score, ties keep the order of arrival.
    """

    stored_in_order = False

    def __init__(self, system: System, order: Order) -> None:
        arrival = count()
        super().__init__(system, key=lambda job: next(arrival))
        self._order = order
        self._scores: NDArray[np.float64] | None = None
        self._scored_at = -1

    def oldest(self, limit: int) -> list[Job]:
        """Return the `limit` jobs that joined first, in policy order."""
        positions = np.argsort(self.scores[:limit], kind="stable").tolist()
        return [self.jobs[self._gone + position] for position in positions]

    def __iter__(self) -> Iterator[Job]:
        jobs = self.jobs[self._gone :]
        return iter([jobs[position] for position in np.argsort(self.scores, kind="stable").tolist()])

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the waiting jobs now, float64, shape (jobs,), in order of arrival."""
        now = self._system.now
        if self._scores is None or self._scored_at != now:
            self._scores = self._checked(np.asarray(self._order.scores(self.columns, now), dtype=float))
            self._scored_at = now
        return self._scores

    def _checked(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if scores.shape != (len(self),) or np.isnan(scores).any():
            raise ScheduleError(
                f"{self._order!r} at t={self._system.now} s: needs one score for each of {len(self)} jobs, "
                f"found shape {scores.shape} with {np.count_nonzero(np.isnan(scores))} not a number"
            )
        return scores

    def first(self) -> Job:
        """Return the job of smallest score."""
        position = int(self.scores.argmin()) if len(self) > 1 else 0
        return self.jobs[self._gone + position]

    def ranked(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sort positions in :attr:`table` by score."""
        return positions[np.argsort(self.scores[positions], kind="stable")]

    def add(self, job: Job, estimate: int) -> None:
        """Let a job join; all are scored anew."""
        self._scores = None
        super().add(job, estimate)

    def remove(self, job: Job) -> int:
        """Let a job leave; the scores of the others stay."""
        if self._scores is not None:
            position = bisect_left(self._keys, self._key_of[job.index], self._gone) - self._gone
            self._scores = np.delete(self._scores, position)
        return super().remove(job)


def make_queue(system: System, order: Order) -> JobQueue:
    """Return the kind of queue an order needs: sorted once by ``key``, or scored anew by ``scores``."""
    return ScoredQueue(system, order) if order.dynamic else JobQueue(system, order.key)
