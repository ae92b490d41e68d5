"""Intervals in which gates held jobs, with their reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

    from hpcsimkit.jobs.workload import Workload

__all__ = ["HeldJobs"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldJobs:
    """The intervals in which gates held jobs, as a table with one row for each.

    The rows are in the order of the jobs in the log, those of a job in the order of time. An empty interval
    is that of a job that was rejected, as it could never start, or given up, as it could not start again.

    Parameters
    ----------
    job : array of int64, shape (intervals,)
        Rows of the jobs.
    start, end : array of int64, shape (intervals,)
        Beginning and end [s].
    reason : array of str, shape (intervals,)
        Reason of the gate, such as ``"Licenses"``.

    Examples
    --------
    >>> held = HeldJobs.of({3: [(0, 9, "Licenses")], 1: [(4, 5, "BeginTime"), (5, 9, "Licenses")]})
    >>> held.job.tolist(), held.seconds({"Licenses"}, jobs=4).tolist()
    ([1, 1, 3], [0, 4, 0, 9])
    """

    job: Integers
    start: Integers
    end: Integers
    reason: NDArray[np.str_]

    @classmethod
    def of(cls, intervals: Mapping[int, Iterable[tuple[int, int, str]]]) -> HeldJobs | None:
        """Return the table of the intervals of each row; None if there are none."""
        rows = [(row, *each) for row in sorted(intervals) for each in intervals[row]]
        if not rows:
            return None
        job, start, end, reason = zip(*rows, strict=True)
        rows_of, begin, until = (np.array(column, dtype=np.int64) for column in (job, start, end))
        return cls(rows_of, begin, until, np.array(reason, dtype=np.str_))

    def __len__(self) -> int:
        return len(self.job)

    @property
    def reasons(self) -> list[str]:
        """The reasons, sorted."""
        return sorted(set(self.reason.tolist()))

    def seconds(self, reasons: Iterable[str], jobs: int) -> Integers:
        """Return the time for which each job was held for some reasons [s], int64, shape (jobs,)."""
        counted = np.isin(self.reason, list(reasons))
        took = (self.end - self.start)[counted]
        return np.bincount(self.job[counted], took, minlength=jobs).astype(np.int64)

    def refused(self, jobs: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """Return how many jobs, of all or some, bool, shape (jobs,), could never start (again), by reason."""
        counted = True if jobs is None else jobs[self.job]
        refused = self.reason[(self.start == self.end) & counted].tolist()
        return {reason: refused.count(reason) for reason in sorted(set(refused))}

    def to_frame(self, workload: Workload) -> pandas.DataFrame:
        """Return a table with one row per interval: ``job_id, start_time, end_time, reason``."""
        import pandas

        return pandas.DataFrame(
            {
                "job_id": workload.column("id")[self.job],
                "start_time": self.start,
                "end_time": self.end,
                "reason": pandas.Categorical(self.reason.tolist(), categories=self.reasons),
            }
        )
