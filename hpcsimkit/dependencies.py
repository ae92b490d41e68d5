"""Jobs that are submitted only when another has ended: fields 17 and 18 of the Standard Workload Format."""

from __future__ import annotations

import numpy as np

from hpcsimkit.errors import WorkloadError
from hpcsimkit.job import Job
from hpcsimkit.system import System
from hpcsimkit.workload import Workload

__all__ = ["Dependencies"]


class Dependencies:
    """Who waits for whose end, in one run.

    A job waits for its preceding job if that is in the workload and was submitted earlier in the log; any
    other reference is void, so there are no circles. It is submitted `think_time` after that end; if the
    think time is unknown, at that end, but not before its recorded submission. If the preceding job is
    refused for good, so is it.

    Parameters
    ----------
    workload : Workload
        The jobs.

    Raises
    ------
    WorkloadError
        Job numbers are not unique, so that it is not clear who waits for whom.

    Attributes
    ----------
    void : int
        References that mean nothing: to a job that is not there, comes later, or is the job itself.

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
        """Return those rows that wait for nobody, in the order given."""
        dependent = {row for successors in self._successors.values() for row in successors}
        return [row for row in rows if row not in dependent]

    def release(self, job: Job, system: System) -> list[Job]:
        """Return the jobs that waited for the end of this one, now, with their submission times."""
        return [
            system.jobs[row]._replace(submit_time=_submission(system.jobs[row], system.now))
            for row in self._successors.pop(job.index, ())
        ]

    def cancel(self, job: Job, system: System) -> list[Job]:
        """Return the jobs that would have waited, directly or not, for the end of a job that was refused."""
        cancelled = [system.jobs[row] for row in self._successors.pop(job.index, ())]
        for each in cancelled:  # which grows meanwhile
            cancelled += [system.jobs[row] for row in self._successors.pop(each.index, ())]
        return cancelled


def _submission(job: Job, end: int) -> int:
    """Return when a job is submitted whose preceding job has ended [s]."""
    return max(end, job.submit_time) if job.think_time < 0 else end + job.think_time
