"""Attempts of jobs to run: a job that was stopped and came back has several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

    from hpcsimkit.jobs.workload import Workload
    from hpcsimkit.results.placements import Placements

__all__ = ["COLUMNS", "Attempt", "Attempts", "Downtime", "Outcome", "numbers_of"]

Integers = NDArray[np.int64]


class Outcome(IntEnum):
    """The reason why an attempt ended."""

    COMPLETED = 0
    LIMIT = 1
    PREEMPTED = 2
    FAILED = 3
    CANCELLED = 4
    REQUEUED = 5
    SUSPENDED = 6
    TESTED = 7


class Attempt(NamedTuple):
    """An attempt of a job to run, from its start to its end.

    Attributes
    ----------
    job : int
        Row of the job.
    submit_time : int
        Time at which the job joined the queue for this attempt [s].
    start_time, end_time : int
        Start and end [s].
    mode : int
        Start mode, a :class:`~hpcsimkit.kernel.ledger.Mode`.
    outcome : int
        The reason of the end, an :class:`Outcome`.
    work : int
        Work done in this attempt that counts: it is complete, or kept for the next attempt [s].
    lost : int
        Work done that is lost [s].
    allocation : Allocation or int
        The nodes of the attempt.
    partition : str
        Name of the partition, empty without partitions.
    """

    job: int
    submit_time: int
    start_time: int
    end_time: int
    mode: int
    outcome: int
    work: int
    lost: int
    allocation: Any
    partition: str = ""


COLUMNS = Attempt._fields[:8]
"""The columns of the table of attempts that are numbers."""


def numbers_of(attempts: Sequence[Attempt]) -> Integers:
    """Return the numbers of attempts, int64, shape (8, attempts), in the order of :data:`COLUMNS`."""
    listed = np.array([attempt[: len(COLUMNS)] for attempt in attempts], dtype=np.int64)
    return listed.reshape(-1, len(COLUMNS)).T


@dataclass(frozen=True, eq=False)
class Attempts:
    """All attempts of a run, as a table with one row for each; times in seconds of the log's clock.

    The rows are in the order of the jobs in the log, those of a job in the order of time. The time of an
    attempt is the sum of work, lost work and overhead (checkpoints and restarts).

    Parameters
    ----------
    job : array of int64, shape (attempts,)
        Rows of the jobs.
    submit_time, start_time, end_time : array of int64, shape (attempts,)
        Times at which the job joined the queue for the attempt, and at which the attempt began and ended [s].
    mode : array of uint8, shape (attempts,)
        Start mode of each attempt.
    outcome : array of uint8, shape (attempts,)
        The reason of each end, an :class:`Outcome`.
    work, lost : array of int64, shape (attempts,)
        Work that counts, and work that is lost [s].
    placements : Placements, optional
        Allocation of each attempt to machines; None with homogeneous nodes.
    partition : array of str, shape (attempts,), optional
        Name of the partition of each attempt; None without partitions.

    Examples
    --------
    >>> attempts = Attempts.of([Attempt(1, 0, 0, 5, 1, Outcome.FAILED, 3, 2, 4),
    ...                         Attempt(0, 0, 5, 9, 1, Outcome.COMPLETED, 4, 0, 1),
    ...                         Attempt(1, 5, 9, 12, 1, Outcome.COMPLETED, 2, 0, 4)])
    >>> attempts.job.tolist(), attempts.number.tolist(), attempts.overhead.tolist()
    ([0, 1, 1], [1, 1, 2], [0, 0, 1])
    """

    job: Integers
    submit_time: Integers
    start_time: Integers
    end_time: Integers
    mode: NDArray[np.uint8]
    outcome: NDArray[np.uint8]
    work: Integers
    lost: Integers
    placements: Placements | None = None
    partition: NDArray[np.str_] | None = None

    @classmethod
    def of(cls, attempts: Sequence[Attempt]) -> Attempts:
        """Return the table of attempts, in the order of the jobs, without their places."""
        ordered = sorted(attempts, key=lambda each: each.job)  # stable: those of a job remain in order
        return cls.of_numbers(numbers_of(ordered))

    @classmethod
    def of_numbers(cls, numbers: Integers) -> Attempts:
        """Return the table of attempts given as numbers, int64, shape (8, attempts), see :data:`COLUMNS`."""
        columns: dict[str, Any] = dict(zip(COLUMNS, numbers, strict=True))
        mode, outcome = (columns.pop(name).astype(np.uint8) for name in ("mode", "outcome"))
        return cls(mode=mode, outcome=outcome, **columns)

    def __len__(self) -> int:
        return len(self.job)

    @property
    def number(self) -> Integers:
        """Number of each attempt among those of its job, from 1, int64, shape (attempts,)."""
        first = np.flatnonzero(np.diff(self.job, prepend=-1))
        lengths = np.diff(first, append=len(self.job))
        return np.arange(len(self.job)) - np.repeat(first, lengths) + 1

    @property
    def overhead(self) -> Integers:
        """Time of each attempt that was no work: checkpoints and restarts [s], int64, shape (attempts,)."""
        return self.end_time - self.start_time - self.work - self.lost

    @property
    def first(self) -> NDArray[np.bool_]:
        """Which attempts are the first ones of their jobs, apart from tests that were stopped, bool."""
        counted = np.flatnonzero(self.outcome != Outcome.TESTED)
        first = np.zeros(len(self), dtype=np.bool_)
        first[counted[np.diff(self.job[counted], prepend=-1) != 0]] = True
        return first

    def count(self, jobs: int) -> Integers:
        """Return the number of attempts of each job, int64, shape (jobs,)."""
        return np.bincount(self.job, minlength=jobs)

    def lost_work(self, workload: Workload) -> Integers:
        """Return the lost work of each job [node-seconds, or those of the first resource].

        It is int64, shape (jobs,).

        >>> from hpcsimkit.jobs.workload import Workload
        >>> jobs = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [1, 2]}, machine_size=2)
        >>> attempts = Attempts.of([Attempt(1, 0, 0, 5, 1, Outcome.FAILED, 3, 2, 2)])
        >>> attempts.lost_work(jobs).tolist()
        [0, 4]
        """
        found = np.zeros(len(workload), dtype=np.int64)
        np.add.at(found, self.job, self.lost * workload.size[self.job])
        return found

    def to_frame(self, workload: Workload) -> pandas.DataFrame:
        """Return a table with one row per attempt.

        Its columns are ``job_id, attempt, submit_time, start_time, end_time, outcome, work, lost, overhead``.
        """
        import pandas

        names = pandas.Index([each.name.lower() for each in Outcome])
        return pandas.DataFrame(
            {
                "job_id": workload.column("id")[self.job],
                "attempt": self.number,
                "submit_time": self.submit_time,
                "start_time": self.start_time,
                "end_time": self.end_time,
                "outcome": pandas.Categorical.from_codes(self.outcome.tolist(), names),
                "work": self.work,
                "lost": self.lost,
                "overhead": self.overhead,
            }
        )


@dataclass(frozen=True, eq=False)
class Downtime:
    """Capacity that was out of order, as a table with one row for each outage of nodes or of a machine.

    Parameters
    ----------
    start, end : array of int64, shape (outages,)
        Beginning and end [s].
    machine : array of int64, shape (outages,)
        Number of the machine; 0 with homogeneous nodes.
    amounts : array of int64, shape (outages, resources)
        Amount of each resource, or number of nodes.
    """

    start: Integers
    end: Integers
    machine: Integers
    amounts: Integers

    @property
    def amount(self) -> Integers:
        """Part of the size of the cluster, int64, shape (outages,)."""
        return self.amounts[:, 0]
