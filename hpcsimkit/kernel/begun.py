"""Runs that begin with running and waiting jobs instead of an empty cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hpcsimkit.cluster.opaque import Allocation
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result

__all__ = ["Begun", "begun_at", "resume"]


@dataclass(frozen=True)
class Begun:
    """The state in which a run begins: the time, and the jobs that are running by then.

    Jobs of the workload that were submitted by that time and are not running are waiting. The run begins with
    a pass, and continues as the whole run would, if the policy keeps no state of its own (conservative
    backfilling keeps a plan, estimators keep histories).

    Parameters
    ----------
    at : int
        Time at which the run begins [s].
    started : mapping of int to int
        Start time [s] of each running job by its row in the workload; at most `at`, and so that the job ends
        after `at`.
    allocations : mapping of int to Allocation
        Allocations of running jobs by row; by default the choice of the cluster, which with counted nodes is
        the only one.

    Examples
    --------
    >>> from hpcsimkit import Simulation
    >>> from hpcsimkit.experiments.parts.registry import make
    >>> w = Workload({"submit_time": [0, 5, 8], "run_time": [10, 9, 1], "nodes": [3, 4, 1]}, machine_size=4)
    >>> Simulation(w, make("fcfs"), begun=Begun(at=6, started={0: 0})).run().start_time.tolist()
    [0, 10, 19]
    """

    at: int
    started: Mapping[int, int]
    allocations: Mapping[int, Allocation] = field(default_factory=dict)

    def check(self, workload: Workload) -> None:
        """Raise a UsageError if the jobs cannot be running at that time."""
        for row, start in self.started.items():
            if not 0 <= row < len(workload):
                raise UsageError(f"begun: a row below {len(workload)} is needed, found {row!r}")
            job = workload.jobs[row]
            if not job.submit_time <= start <= self.at < start + job.run_time:
                raise UsageError(
                    f"begun: job {job.id}, submitted at {job.submit_time} s, cannot run from {start} to "
                    f"{start + job.run_time} s and at {self.at} s"
                )
        unknown = sorted(set(self.allocations) - set(self.started))
        if unknown:
            raise UsageError(f"begun: an allocation belongs to a running job, found one of row {unknown[0]}")


def resume(job: Job, start: int, allocation: Allocation | None, system: System) -> None:
    """Record a job that was started before the run began.

    Raises
    ------
    ScheduleError
        The job does not fit beside the others, or not with its allocation.
    """
    if allocation is None:
        allocation = system.cluster.place(job, system.free)
    elif not system.cluster.holds(job, allocation, system.free):
        raise ScheduleError(f"begun: job {job.id}: {allocation!r} is not free, or is not what it needs")
    if allocation is None:
        raise ScheduleError(f"begun: job {job.id} {system.cluster.shortage(job, system.free)}")
    row = job.index
    system.ledger.begin(row, start, Mode.READY, system.estimate(job))
    system.occupy(job, allocation)
    if system.allocations is not None:
        system.allocations[row] = allocation
        system.events.append(row)


def begun_at(result: Result, at: int) -> tuple[Workload, Begun]:
    """Return the jobs that had not ended by a time of a finished run, and the state of the run at that time.

    Parameters
    ----------
    result : Result
        Result of the run, in which all jobs ran.
    at : int
        Time [s]; the events and starts of this instant are over.

    Returns
    -------
    (Workload, Begun)
        Jobs without those that had ended, and the state for ``Simulation(begun=...)``.
    """
    rows = np.flatnonzero(result.end_time > at)
    kept = result.workload.select(rows, f"jobs that had not ended at {at} s")
    started = {
        place: int(result.start_time[row]) for place, row in enumerate(rows) if result.start_time[row] <= at
    }
    placements = result.placements
    given = (
        {} if placements is None else {place: placements.allocation(int(rows[place])) for place in started}
    )
    return kept, Begun(at, started, given)
