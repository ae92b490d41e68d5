"""The schedule that a log records, as a policy."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import SCALED, Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result

__all__ = ["Recorded"]


class Recorded(Policy):
    """Start each job at the time that the log records: submission plus recorded wait.

    It is a policy and not a copy of the log, so that its schedule is valid on the simulated machine, and
    metrics, tables, traces and placements of it are those of every other policy. Where the log contradicts
    the machine, the schedule differs from the log, and `remarks_on` counts the difference: jobs without a
    recorded wait are rejected; a job recorded on a machine that is full starts as soon as it fits, in the
    order of recorded starts, without delaying others. Start modes are not recorded; all jobs count as ready.
    """

    def check_workload(self, workload: Workload) -> None:
        """Raise a UsageError for a workload without recorded waits, or with other submission times."""
        if (workload.recorded_wait_time < 0).all():
            raise UsageError(f"recorded: {workload.name} has no recorded waits")
        if any(step.startswith(SCALED) for step in workload.provenance):
            raise UsageError(f"recorded: the waits of {workload.name} are not those of a scaled load")

    def reset(self, system: System) -> None:
        """Read the recorded start times."""
        wait = system.workload.recorded_wait_time
        recorded = np.where(wait < 0, -1, system.workload.submit_time + wait)
        self._starts: list[int] = recorded.tolist()
        self._due: list[tuple[int, int]] = []
        self._late: list[tuple[int, int]] = []

    def schedule(self, system: System) -> None:
        """Start the jobs that are due and fit."""
        for job in system.newcomers:
            start = self._starts[job.index]
            if start < 0:
                system.reject(job)
                continue
            heappush(self._due, (start, job.index))
            if start > system.now:
                system.wake(start)
        while self._due and self._due[0][0] <= system.now:
            self._late.append(heappop(self._due))
        self._late = [(start, row) for start, row in self._late if not self._starts_now(row, system)]

    def _starts_now(self, row: int, system: System) -> bool:
        """Start a job if it fits, and return whether it does."""
        if not system.ledger.waits(row):  # a gate holds it; it will be a newcomer again
            return True
        job = system.jobs[row]
        fits = system.fits(job)
        if fits:
            system.start(job)
        return fits

    def remarks_on(self, result: Result) -> list[str]:
        """Return the differences between a result and the log."""
        workload, ran = result.workload, result.finished
        late = (result.wait_time - workload.recorded_wait_time)[ran]
        moved = late > 0
        found = []
        if missing := int(np.count_nonzero(workload.recorded_wait_time < 0)):
            found.append(f"{missing:,} jobs without a recorded wait: rejected")
        if moved.any():
            found.append(
                f"{moved.sum():,} of {ran.sum():,} jobs start later than recorded, as the machine is full: "
                f"by {late[moved].mean():,.0f} s on average, {late.max():,.0f} s at most"
            )
        return found
