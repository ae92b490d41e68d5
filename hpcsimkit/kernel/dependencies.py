"""Jobs that are submitted only after another has ended: fields 17 and 18 of the Standard Workload Format."""

from __future__ import annotations

import numpy as np

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.system import System

__all__ = ["Dependencies"]


class Dependencies:
    """Dependencies between the jobs of one run.

    A job depends on its preceding job if that job is in the workload and was submitted earlier in the log;
    other references are void, so there are no cycles. A dependent job is submitted `think_time` after the end
    of its preceding job; if the think time is unknown, at that end, but not before its recorded submission
    time. If the preceding job is rejected, so is the dependent job.

    Parameters
    ----------
    workload : Workload
        Workload with the jobs and their dependencies.

    Raises
    ------
    WorkloadError
        Job numbers are not unique, so that dependencies are ambiguous.

    Attributes
    ----------
    void : int
        Number of void references: to a job that is absent, submitted later, or the job itself.

    Examples
    --------
    >>> w = Workload({"id": [1, 2, 3], "submit_time": [0, 5, 6], "run_time": [9, 9, 9], "nodes": [1, 1, 1],
    ...               "preceding": [3, 1, 7]})
    >>> Dependencies(w).independent(w.arrival_order.tolist())
    [0, 2]
    """

    def __init__(self, workload: Workload) -> None:
        place = np.empty(len(workload), dtype=np.int64)
        place[workload.arrival_order] = np.arange(len(workload))
        row_of = {job.id: job.index for job in workload.jobs}
        if len(row_of) < len(workload):
            twice = len(workload) - len(row_of)
            raise WorkloadError(
                f"{workload.name}: dependencies need unique job numbers; {twice} are used more than once"
            )
        self._successors: dict[int, list[int]] = {}
        self.void = 0
        for job in workload.jobs:
            row = row_of.get(job.preceding) if job.preceding > 0 else None
            if row is not None and place[row] < place[job.index]:
                self._successors.setdefault(row, []).append(job.index)
            elif job.preceding > 0:
                self.void += 1

    def independent(self, rows: list[int]) -> list[int]:
        """Return the rows without dependencies, in the given order."""
        dependent = {row for successors in self._successors.values() for row in successors}
        return [row for row in rows if row not in dependent]

    def release(self, job: Job, system: System) -> list[Job]:
        """Return the jobs that depend on a job that ends now, with their submission times."""
        return [
            system.jobs[row]._replace(submit_time=_submission(system.jobs[row], system.now))
            for row in self._successors.pop(job.index, ())
        ]

    def cancel(self, job: Job, system: System) -> list[Job]:
        """Return the jobs that depend, directly or indirectly, on a rejected job."""
        cancelled = [system.jobs[row] for row in self._successors.pop(job.index, ())]
        for each in cancelled:  # the list grows during iteration
            cancelled += [system.jobs[row] for row in self._successors.pop(each.index, ())]
        return cancelled


def _submission(job: Job, end: int) -> int:
    """Return the submission time of a job after the end of its preceding job [s]."""
    return max(end, job.submit_time) if job.think_time < 0 else end + job.think_time
