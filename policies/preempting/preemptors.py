"""Preemptors of a pipeline: which running jobs to stop for a job of a higher tier."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import add
from typing import Any, Literal

from hpcsimkit.cluster import allocation as machines
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import Allocation
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Preemptor
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome

__all__ = ["PreemptLowerTiers"]

MODES = ("requeue", "cancel", "suspend")
FIRST = ("youngest", "oldest", "least_lost", "smallest", "placement")


class PreemptLowerTiers(Preemptor):
    """Jobs of a lower tier are stopped for one of a higher tier.

    The tier of a job is a column of the log. By default, jobs that are stopped return to the queue; what they
    keep of their work is up to the ``restart`` rules of the run. Suspended jobs go on as soon as their nodes
    are free and no job of a higher tier waits, else after the starts of a pass; higher tiers first, then
    those that were suspended first.

    Parameters
    ----------
    by : str
        Column of the tier, such as ``"queue"``, ``"qos"`` or ``"partition"``. Default: ``"queue"``.
    tiers : sequence of str or int
        Values of the column (names, if the log has names), highest tier first; other values belong to a tier
        below all of them. By default, larger numbers are higher tiers.
    first : {"youngest", "oldest", "least_lost", "smallest", "placement"}
        First choice among lower tiers, the lowest tier before others: the job that started last, the one that
        started first, the one that has done the least work, the one with the fewest nodes, or jobs on the
        machines that the placement would choose if all of them were stopped. Default: ``"youngest"``.
    exempt_time : int
        Time from its start during which a job is not stopped [s], >= 0. Default: 0.
    mode : {"requeue", "cancel", "suspend"}
        Whether a job that is stopped returns to the queue, never runs again, or is suspended. Default:
        ``"requeue"``.
    grace_time : int
        Time for which a job that was chosen runs on before it is stopped [s], >= 0; it is not stopped if no
        job of a higher tier waits any more. Default: 0.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> from hpcsimkit.policies import FCFS, Pipeline
    >>> w = Workload({"submit_time": [0, 5], "run_time": [20, 4], "nodes": [2, 2], "queue": [1, 2]},
    ...              machine_size=2)
    >>> policy = Pipeline(FCFS(), preemptor=PreemptLowerTiers())
    >>> Simulation(w, policy).run().end_time.tolist()
    [24, 9]
    """

    def __init__(
        self,
        by: str = "queue",
        tiers: Sequence[str | int] = (),
        first: Literal["youngest", "oldest", "least_lost", "smallest", "placement"] = "youngest",
        exempt_time: int = 0,
        mode: Literal["requeue", "cancel", "suspend"] = "requeue",
        grace_time: int = 0,
    ) -> None:
        self.by = by
        self.tiers = tiers
        self.first = first
        self.exempt_time = exempt_time
        self.mode = mode
        self.grace_time = grace_time

    @property
    def acts_on_running(self) -> bool:  # type: ignore[override]
        """Whether jobs may have to be resumed while none waits."""
        return self.mode == "suspend"

    def reset(self, system: System) -> None:
        """Find the tier of each job."""
        self._tier = self.tiers_in(system.workload)
        self._graces: dict[int, int] = {}  # when jobs that were chosen may be stopped, by row
        self._attempts: dict[int, int] = {}  # the attempts of these jobs

    def tiers_in(self, workload: Workload) -> list[int]:
        """Return the tier of each job of a workload; larger is higher.

        Raises
        ------
        UsageError
            A parameter is invalid, or the log has no such column or name.
        """
        if self.first not in FIRST:
            raise UsageError(f"preemptor: first needs one of {', '.join(FIRST)}, found {self.first!r}")
        if self.mode not in MODES:
            raise UsageError(f"preemptor: mode needs one of {', '.join(MODES)}, found {self.mode!r}")
        if not isinstance(self.by, str):
            raise UsageError(f"preemptor: by needs the name of a column, found {self.by!r}")
        for name in ("exempt_time", "grace_time"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                raise UsageError(f"preemptor: {name} needs a whole number, at least 0, found {value!r}")
        return _tiers(workload, self.by, self.tiers)

    # --- between passes --------------------------------------------------------------------------------

    def before_pass(self, system: System) -> None:
        """Resume suspended jobs, unless one of a higher tier waits."""
        if self._graces:  # another partition may have stopped a job, which runs again by now
            now = system.ledger.attempts
            self._graces = {
                row: at
                for row, at in self._graces.items()
                if system.jobs[row] in system.running and now[row] == self._attempts[row]
            }
        if system.suspended:
            self._resume(system, max((self._tier[job.index] for job in system.queue), default=None))

    def after_pass(self, system: System) -> None:
        """Resume jobs whose nodes are still free, and let those go on above which no job waits any more."""
        if system.suspended:
            self._resume(system)
        if self._graces:
            highest = max((self._tier[job.index] for job in system.queue), default=-math.inf)
            self._graces = {row: at for row, at in self._graces.items() if self._tier[row] < highest}

    def _resume(self, system: System, least: int | None = None) -> None:
        """Resume the suspended jobs of a least tier, or all, as far as their nodes are free."""
        tier = self._tier
        for row in sorted(system.suspended, key=lambda row: -tier[row]):  # stable: those suspended first
            if (least is None or tier[row] >= least) and system.resumes(system.jobs[row]):
                system.resume(system.jobs[row])

    # --- the choice ------------------------------------------------------------------------------------

    def victims(self, head: Job, system: System) -> Sequence[Job]:
        """Return the jobs to stop so that `head` fits; those in their grace only when all are due."""
        chosen = self.to_stop(head, system)
        if chosen and self.fits_without(head, chosen, system):
            due = all(self._graces[job.index] <= system.now for job in chosen)
            return chosen if due else ()
        return super().victims(head, system)

    def stop(self, job: Job, head: Job, system: System) -> None:
        """Stop a job that was chosen, or grant it its grace."""
        if self.grace_time and job.index not in self._graces:
            self._graces[job.index] = system.now + self.grace_time
            self._attempts[job.index] = system.ledger.attempts[job.index]
            system.wake(system.now + self.grace_time)
            return
        self._graces.pop(job.index, None)
        if self.mode == "suspend":
            system.suspend(job)
        elif self.mode == "cancel":
            system.stop(job, Outcome.CANCELLED, requeue=False)
        else:
            system.stop(job)

    def freed(self, job: Job, system: System) -> Allocation:
        """Return what a stop of a running job frees: all but its memory if it is suspended."""
        allocation = super().freed(job, system)
        kept = system.memory_of(allocation) if self.mode == "suspend" else None
        if kept is None:
            return allocation
        return machines.Allocation(allocation.machines, allocation.amounts - kept.amounts)

    def to_stop(self, head: Job, system: System) -> list[Job]:
        """Return the running jobs of lower tiers that are in their grace."""
        jobs = [system.jobs[row] for row in self._graces if self._tier[row] < self._tier[head.index]]
        return [job for job in jobs if job in system.running]

    def candidates(self, head: Job, system: System) -> Sequence[Job]:
        """Return the running jobs of lower tiers, the lowest tier first."""
        tier, ledger, now = self._tier, system.ledger, system.now
        lower = [
            job
            for job in system.running_jobs()
            if tier[job.index] < tier[head.index]
            and now - ledger.starts[job.index] >= self.exempt_time
            and job.index not in self._graces
        ]
        if self.first == "placement" and isinstance(system.cluster, Machines):
            lower = self._where_placed(head, lower, system)
        key = self._key(system)
        return sorted(lower, key=lambda job: (tier[job.index], key(job), job.index))

    def _where_placed(self, head: Job, lower: Sequence[Job], system: System) -> list[Job]:
        """Return the jobs on the machines that would be chosen for a job if all of them were stopped."""
        level: Any = system.free
        for job in lower:
            level = add(level, self.freed(job, system))
        allocation = system.cluster.place(head, system.room_for(head, level, lower))
        if allocation is None:
            return []
        chosen = set(allocation.machines)
        return [job for job in lower if not chosen.isdisjoint(system.running.allocation(job).machines)]

    def _key(self, system: System) -> Callable[[Job], int]:
        """Return the sort key of the first choice within a tier."""
        starts, now = system.ledger.starts, system.now
        if self.first == "youngest":
            return lambda job: -starts[job.index]
        if self.first == "least_lost":
            return lambda job: (now - starts[job.index]) * job.size
        if self.first == "smallest":
            return lambda job: job.size
        return lambda job: starts[job.index]


def _tiers(workload: Workload, by: str, tiers: Sequence[str | int]) -> list[int]:
    """Return the tier of each job; larger is higher."""
    if by not in workload.columns:
        raise UsageError(f"preemptor: the log has no column {by!r} of tiers")
    column = workload.column(by).tolist()
    if not tiers:
        return column
    names = workload.labels.get(by, ())
    rank: dict[int, int] = {}
    for place, tier in enumerate(tiers):
        if isinstance(tier, str) and tier not in names:
            raise UsageError(f"preemptor: no job has {by} {tier!r}")
        rank[names.index(tier) if isinstance(tier, str) else tier] = len(tiers) - place
    return [rank.get(value, 0) for value in column]
