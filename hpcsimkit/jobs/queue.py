"""Waiting jobs, kept in the order of the policy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import ScheduleError
from hpcsimkit.jobs.job import Job

__all__ = ["DEEP", "JobColumns", "JobQueue", "QueueOrder", "QueueOwner", "ScoredQueue", "make_queue"]

DEEP = 200
"""Number of waiting jobs from which numpy scans the queue faster than a Python loop."""

MANY = 40
"""Number of jobs from which it is faster to add or remove them together."""

UNKNOWN = object()
"""Key that has not been asked for."""

SHALLOW = 40
"""Number of waiting jobs from which numpy computes scores faster than a Python loop."""


class QueueOwner(Protocol):
    """The part of a run's state that a queue reads."""

    now: int
    jobs: list[Job]
    size_of: Callable[[Job], int]

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column of the workload."""
        ...


class QueueOrder(Protocol):
    """The part of the :class:`~hpcsimkit.kernel.policy.Order` interface that a queue uses."""

    @property
    def dynamic(self) -> bool:
        """Whether the order changes while jobs wait."""
        ...

    def key(self, job: Job) -> Any:
        """Return the sort key of a job; it does not depend on the time."""
        ...

    def scores(self, jobs: JobColumns, now: int) -> NDArray[Any]:
        """Return the scores of the waiting jobs now, shape (jobs,)."""
        ...

    @property
    def by_formula(self) -> bool:
        """Whether :meth:`formula` gives the score of a single job."""
        ...

    def formula(self, job: Any, now: int) -> Any:
        """Return the score of a job now, or of each of several jobs."""
        ...

    def arrive(self, job: Job) -> None:
        """Learn of a job that joins the queue, if the order changes while jobs wait."""
        ...


class JobColumns:
    """A subset of the jobs as numpy columns, each gathered on first access.

    Attributes are the columns of the workload (``nodes``, ``requested_time``, ``submit_time``, ``user`` ...),
    int64, shape (jobs,), plus ``index``, the rows of the jobs in the workload.
    """

    def __init__(self, system: QueueOwner, rows: NDArray[np.int64]) -> None:
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
    """Waiting jobs sorted by a key that is constant while a job waits; ties keep the order of arrival.

    Iteration visits a snapshot in policy order, so jobs may be started meanwhile.

    Parameters
    ----------
    system : QueueOwner
        State of the run to which the queue belongs.
    key : callable
        Sort key ``key(job)``, evaluated once when the job is added; smaller is earlier.
    """

    stored_in_order = True
    """Whether :attr:`jobs` and :attr:`table` are in policy order."""

    def __init__(self, system: QueueOwner, key: Callable[[Job], Any]) -> None:
        self._system = system
        self._size_of = system.size_of
        self._key = key
        self._key_of: dict[int, Any] = {}
        self._keys: list[Any] = []
        self._mirror: NDArray[np.int64] | None = None
        self._mirrored = DEEP
        self._gone = 0
        self._informed: list[Callable[[Job], None]] = []
        self._oldest: tuple[int, list[Job]] | None = None  # cache, valid until a job leaves
        # In stored order. The first `_gone` entries of a long queue have already left.
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

    @property
    def rows(self) -> list[int]:
        """Rows of the waiting jobs in the workload, in policy order."""
        return [job.index for job in self]

    def first(self) -> Job:
        """Return the first job in policy order; the queue must not be empty."""
        return self.jobs[self._gone]

    def job(self, row: int) -> Job:
        """Return the job of a row of the workload."""
        return self._system.jobs[row]

    def among(self, jobs: list[Job]) -> list[Job]:
        """Return the waiting jobs among some jobs, in the given order."""
        waiting = self._key_of
        return [job for job in jobs if job.index in waiting]

    def oldest(self, limit: int) -> list[Job]:
        """Return the `limit` jobs that arrived first, in policy order."""
        if limit >= len(self.jobs) - self._gone:
            return self.jobs[self._gone :]
        if self._oldest is None or self._oldest[0] != limit:
            rows = islice(self._key_of, limit)  # dictionaries preserve the order of insertion
            jobs = [self._system.jobs[row] for row in sorted(rows, key=self._key_of.__getitem__)]
            self._oldest = limit, jobs
        return self._oldest[1].copy()

    @property
    def table(self) -> NDArray[np.int64]:
        """Rows ``index, size, estimate`` of the waiting jobs, int64, shape (3, jobs), in stored order.

        Sizes are those of the cluster: numbers of nodes with homogeneous nodes, otherwise
        ``cluster.size_of``.

        The table is maintained from its first use until the queue is short again.
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
        """The waiting jobs as numpy columns, in stored order (see :attr:`table`)."""
        return JobColumns(self._system, self.table[0].copy())

    def entries(self) -> list[tuple[Job, int, int]]:
        """Return ``(job, size, estimate)`` of the waiting jobs, in policy order."""
        stored = zip(self.jobs, self.sizes, self.estimates, strict=True)
        return list(islice(stored, self._gone, None))

    def ranked(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return positions in :attr:`table` in policy order; here this is the stored order."""
        return positions

    # --- updates (by the system only) ----------------------------------------------------------------

    def inform(self, arrive: Callable[[Job], None]) -> None:
        """Let another order than that of the queue learn of the jobs that join, by its ``arrive(job)``."""
        self._informed.append(arrive)

    def forget_scores(self) -> None:
        """Compute the scores of the waiting jobs anew before they are next needed, if the order has any."""

    def add(self, job: Job, estimate: int, key: Any = UNKNOWN) -> None:
        """Add a job behind those with the same key, which may be known already."""
        for arrive in self._informed:
            arrive(job)
        if key is UNKNOWN:
            key = self._key(job)
        size = self._size_of(job)
        try:
            if key != key:
                raise self._unsortable(job, "key is not a number")
            position = bisect_right(self._keys, key, self._gone)
        except (TypeError, ValueError) as error:
            raise self._unsortable(job, f"key {key!r} cannot be sorted: {error}") from None
        self._key_of[job.index] = key
        self._keys.insert(position, key)
        self.jobs.insert(position, job)
        self.sizes.insert(position, size)
        self.estimates.insert(position, estimate)
        if self._mirror is not None:
            self._mirror_insert(position, (job.index, size, estimate))

    def add_all(self, jobs: Sequence[Job], estimates: Sequence[int]) -> None:
        """Add several jobs, as if one after the other."""
        if len(jobs) < MANY or self._informed or not self.stored_in_order:
            for job, estimate in zip(jobs, estimates, strict=True):
                self.add(job, estimate)
            return
        keys = [self._key(job) for job in jobs]  # once: an order may draw them
        if not all(isinstance(key, int | float) and key == key for key in keys):
            for job, estimate, key in zip(jobs, estimates, keys, strict=True):
                self.add(job, estimate, key)
            return
        self._forget_gone()
        self._key_of.update(zip((job.index for job in jobs), keys, strict=True))
        self._keys += keys
        self.jobs += jobs
        self.sizes += map(self._size_of, jobs)
        self.estimates += estimates
        self._keep(sorted(range(len(self.jobs)), key=self._keys.__getitem__))  # stable: ties by arrival

    def remove_all(self, jobs: Sequence[Job]) -> None:
        """Remove several jobs."""
        if not self.stored_in_order or len(jobs) < MANY:
            for job in jobs:
                self.remove(job)
            return
        self._forget_gone()
        for job in jobs:
            del self._key_of[job.index]
        self._oldest = None
        self._keep([place for place, job in enumerate(self.jobs) if job.index in self._key_of])

    def _keep(self, places: list[int]) -> None:
        """Keep the entries at some places, in their order."""
        self._mirror = None
        columns: tuple[list[Any], ...] = self._keys, self.jobs, self.sizes, self.estimates
        for entries in columns:
            entries[:] = [entries[place] for place in places]

    def _unsortable(self, job: Job, problem: str) -> ScheduleError:
        return ScheduleError(f"job {job.id} at t={self._system.now} s: the order's {problem}")

    def remove(self, job: Job) -> int:
        """Remove a job; return its estimate [s]."""
        row, jobs, position = job.index, self.jobs, self._gone
        key = self._key_of.pop(row)
        self._oldest = None
        if jobs[position].index != row:
            position = bisect_left(self._keys, key, position)
            if self._mirror is not None and jobs[position].index != row:  # many jobs may have the same key
                position += int((self._mirror[0, position : len(jobs)] == row).argmax())
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
        """Remove the first job of a long queue by advancing an offset instead of moving all others."""
        estimate = self.estimates[self._gone]
        self._gone += 1
        if self._gone > len(self.jobs) // 2 or len(self.jobs) - self._gone <= DEEP:
            self._forget_gone()
        return estimate

    def _forget_gone(self) -> None:
        """Delete the removed entries at the front."""
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
        if size < self._mirrored // 2:
            self._mirror = None
            return
        mirror[:, position:size] = mirror[:, position + 1 : size + 1]


class ScoredQueue(JobQueue):
    """Waiting jobs ordered by time-dependent scores, computed when they are first needed at an instant.

    Jobs are stored in order of arrival; the smallest score comes first, and ties keep the order of arrival.
    Scores by formula (:meth:`QueueOrder.formula`) are computed job by job in a short queue.
    """

    stored_in_order = False

    def __init__(self, system: QueueOwner, order: QueueOrder) -> None:
        arrival = count()
        super().__init__(system, key=lambda job: next(arrival))
        self._order = order
        self._shallow = SHALLOW if order.by_formula else 0
        self._mirrored = self._shallow
        self._scores: list[float] | NDArray[np.float64] | None = None
        self._scored_at = -1

    def oldest(self, limit: int) -> list[Job]:
        """Return the `limit` jobs that arrived first, in policy order."""
        positions = np.argsort(self.scores[:limit], kind="stable").tolist()
        return [self.jobs[self._gone + position] for position in positions]

    def __iter__(self) -> Iterator[Job]:
        jobs = self.jobs[self._gone :]
        return iter([jobs[position] for position in np.argsort(self.scores, kind="stable").tolist()])

    def entries(self) -> list[tuple[Job, int, int]]:
        """Return ``(job, size, estimate)`` of the waiting jobs, in policy order."""
        stored = super().entries()
        return [stored[position] for position in np.argsort(self.scores, kind="stable").tolist()]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the waiting jobs now, float64, shape (jobs,), in order of arrival."""
        return np.asarray(self._scores_now(), dtype=float)

    def _scores_now(self) -> list[float] | NDArray[np.float64]:
        """Return the scores of the waiting jobs now, computed once for each instant and set of jobs."""
        now = self._system.now
        if self._scores is None or self._scored_at != now:
            self._scored_at = now
            if len(self.jobs) < self._shallow:
                self._scores = self._by_formula(now)
            elif len(self):
                self._scores = self._checked(self._order.scores(self.columns, now))
            else:  # an order need not know how to score no jobs
                self._scores = []
        return self._scores

    def _by_formula(self, now: int) -> list[float]:
        """Return the scores of a short queue, each by the formula."""
        formula = self._order.formula
        scores = [formula(job, now) for job in self.jobs[self._gone :]]
        try:
            total = sum(scores)
        except TypeError:
            total = float("nan")
        return scores if total == total else self._checked(scores).tolist()

    def _checked(self, found: Any) -> NDArray[np.float64]:
        """Return the scores after checking that there is a number for each waiting job."""
        try:
            scores = np.array(found, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise ScheduleError(
                f"{self._order!r} at t={self._system.now} s: needs one score for each of {len(self)} jobs, "
                f"found what is no array of numbers: {type(found).__name__}"
            ) from None
        if scores.shape != (len(self),) or np.isnan(scores.min()):
            raise ScheduleError(
                f"{self._order!r} at t={self._system.now} s: needs one score for each of {len(self)} jobs, "
                f"found shape {scores.shape} with {np.count_nonzero(np.isnan(scores))} not a number"
            )
        return scores

    def first(self) -> Job:
        """Return the job with the smallest score."""
        if len(self) == 1:
            return self.jobs[self._gone]
        scores = self._scores_now()
        position = scores.index(min(scores)) if isinstance(scores, list) else int(scores.argmin())
        return self.jobs[self._gone + position]

    def ranked(self, positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sort positions in :attr:`table` by score."""
        return positions[np.argsort(self.scores[positions], kind="stable")]

    def forget_scores(self) -> None:
        """Compute the scores of the waiting jobs anew before they are next needed."""
        self._scores = None

    def add(self, job: Job, estimate: int, key: Any = UNKNOWN) -> None:
        """Add a job; all scores are recomputed."""
        self.forget_scores()
        self._order.arrive(job)
        super().add(job, estimate, key)

    def remove(self, job: Job) -> int:
        """Remove a job; the scores of the others are kept."""
        scores = self._scores
        if scores is not None:
            position = bisect_left(self._keys, self._key_of[job.index], self._gone) - self._gone
            if isinstance(scores, list):
                del scores[position]
            else:
                scores[position:-1] = scores[position + 1 :]
                self._scores = scores[:-1]
        return super().remove(job)


def make_queue(system: QueueOwner, order: QueueOrder) -> JobQueue:
    """Return the queue that matches an order: sorted once by ``key``, or repeatedly by ``scores``."""
    return ScoredQueue(system, order) if order.dynamic else JobQueue(system, order.key)
