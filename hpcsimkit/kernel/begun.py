"""Runs that begin with running and waiting jobs instead of an empty cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import Allocation
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import SCALED, Workload
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.cells import date
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    from hpcsimkit.kernel.policy import Policy

__all__ = [
    "BeginAt",
    "Begun",
    "begun_at",
    "begun_in",
    "begun_in_log",
    "begun_of",
    "remarks_on",
    "resume",
    "second_of",
    "time_on_clock",
]


@dataclass(frozen=True)
class Begun:
    """The state in which a run begins: the time, and the jobs that have started by then.

    Jobs of the workload that were submitted by that time and have not started are waiting. The run begins
    with a pass, and continues as the whole run would.

    If jobs have ended by then, they are the past of the run: the policy learns of all submissions, starts and
    ends, as in the whole run, and makes its first pass at `at`. So its estimators and its fair shares know
    the past; plans of reservations are made anew. Without ended jobs, the policy begins without a past.

    Parameters
    ----------
    at : int
        Time at which the policy takes over [s].
    started : mapping of int to int
        Start time [s] of each job that has started, by its row in the workload; at most `at`. Jobs whose run
        time is over by `at` have ended.
    allocations : mapping of int to Allocation
        Allocations of started jobs by row, on the whole cluster; by default the choice of the cluster, which
        with homogeneous nodes is the only one.
    partitions : mapping of int to str
        Names of the partitions in which jobs started, by row; by default the first one that admits the job.
    rejected : collection of int
        Rows of jobs submitted by `at` that neither started nor wait. Default: none.
    before : str
        Source of the starts, such as ``"log"``. If given, metrics leave out the jobs submitted
        before `at`, and a job that does not fit at its start time starts as soon as it fits, or waits, since
        logs may have more in use than the cluster has. By default, such a job is an error.

    Examples
    --------
    >>> from hpcsimkit import Simulation
    >>> from hpcsimkit.experiments.parts.registry import make
    >>> w = Workload({"submit_time": [0, 5, 9], "run_time": [10, 9, 1], "nodes": [3, 4, 1]}, machine_size=4)
    >>> Simulation(w, make("fcfs"), begun=Begun(at=6, started={0: 0})).run().start_time.tolist()
    [0, 10, 19]
    """

    at: int
    started: Mapping[int, int]
    allocations: Mapping[int, Allocation] = field(default_factory=dict)
    partitions: Mapping[int, str] = field(default_factory=dict)
    rejected: Collection[int] = ()
    before: str = ""

    def check(self, workload: Workload) -> None:
        """Raise a UsageError if the jobs cannot have started by that time."""
        for row in self.started:
            if not 0 <= row < len(workload):
                raise UsageError(f"begun: a row below {len(workload)} is needed, found {row!r}")
        rows = np.fromiter(self.started, dtype=np.int64, count=len(self.started))
        start = np.fromiter(self.started.values(), dtype=np.int64, count=len(rows))
        submitted = workload.submit_time[rows]
        for place in np.flatnonzero((start < submitted) | (start > self.at))[:1].tolist():
            raise UsageError(
                f"begun: job {workload.id[rows[place]]}, submitted at {submitted[place]} s, cannot have "
                f"started at {start[place]} s by {self.at} s"
            )
        for what, given in (("an allocation", self.allocations), ("a partition", self.partitions)):
            unknown = sorted(set(given) - set(self.started))
            if unknown:
                raise UsageError(f"begun: {what} belongs to a started job, found one of row {unknown[0]}")

    @property
    def record(self) -> dict[str, object]:
        """The plain values that identify the state in results."""
        before = {"before": self.before} if self.before else {}
        return {"at": self.at, "started": len(self.started), **before}


@dataclass(frozen=True)
class BeginAt:
    """The time at which the policy takes over, with the jobs that have started and wait by then.

    Parameters
    ----------
    at : int or str
        Time [s of the log's clock], or a date of a log that has dates, such as ``"2024-03-01T12:00:00"``.
    policy : Policy, optional
        The policy that schedules the jobs until then; by default they start as the log records.

    Examples
    --------
    >>> from hpcsimkit import Simulation
    >>> from hpcsimkit.experiments.parts.registry import make
    >>> w = Workload({"submit_time": [0, 5, 9], "run_time": [10, 9, 1], "nodes": [3, 4, 1]}, machine_size=4)
    >>> Simulation(w, make("fcfs+easy"), begin_at=BeginAt(9, make("fcfs"))).run().start_time.tolist()
    [0, 10, 9]
    """

    at: int | str
    policy: Policy | None = None

    def begun(self, workload: Workload, simulate: Callable[[Policy], Result]) -> Begun:
        """Return the state for the jobs of a run.

        Parameters
        ----------
        workload : Workload
            The jobs.
        simulate : callable
            Function that returns the result of another policy, with otherwise equal parameters.

        Raises
        ------
        UsageError
            The time lies outside the log, or the log does not record what is needed.
        """
        at = second_of(self.at, workload, "begin_at")
        if self.policy is None:
            return begun_in_log(workload, at)
        return replace(begun_in(simulate(self.policy), at), before=repr(self.policy))

    @property
    def record(self) -> dict[str, Any]:
        """The plain values of the parameters."""
        return {"at": self.at, "before": "log" if self.policy is None else repr(self.policy)}


def second_of(at: int | str, workload: Workload, who: str) -> int:
    """Return a time among the submissions of a log [s], given as such or as a date of its clock.

    Raises
    ------
    UsageError
        The time lies outside the log, or the log has no dates; the message begins with `who`.
    """
    at = time_on_clock(at, workload, who)
    first, last = (int(end(workload.submit_time, initial=0)) for end in (np.min, np.max))
    if not first <= at <= last:
        raise UsageError(f"{who}: a time among the submissions, {first} to {last} s, found {at} s")
    return at


def time_on_clock(at: int | str, workload: Workload, who: str) -> int:
    """Return a time [s of the log's clock], given as such or as a date of its clock.

    Raises
    ------
    UsageError
        The log has no dates; the message begins with `who`.
    """
    if not isinstance(at, str):
        return at
    calendar = calendar_of(workload)
    if calendar is None:
        raise UsageError(f"{who}: {workload.name} has no dates; seconds of its clock, found {at!r}")
    return date(at, calendar.zone) - calendar.start


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


def begun_in(result: Result, at: int) -> Begun:
    """Return the state of a finished run at a time, with its past, for another run of the same workload.

    Parameters
    ----------
    result : Result
        Result of the run, in which no job was stopped.
    at : int
        Time [s]; the events and starts of this instant are over.

    Raises
    ------
    UsageError
        Jobs were stopped.
    """
    if result.attempts is not None:
        raise UsageError(f"begun: a run in which no job was stopped is needed, found {result!r}")
    start, submitted = result.start_time, result.submit_time
    rows = np.flatnonzero((start >= 0) & (start <= at))
    in_order = rows[np.argsort(start[rows], kind="stable")]
    placements, started_in = result.placements, result.started_in
    return Begun(
        at,
        {int(row): int(start[row]) for row in in_order},
        {} if placements is None else {int(row): placements.allocation(int(row)) for row in in_order},
        {} if started_in is None else {int(row): str(started_in[row]) for row in in_order},
        frozenset(np.flatnonzero((start < 0) & (submitted <= at)).tolist()),
    )


def begun_at(result: Result, at: int) -> tuple[Workload, Begun]:
    """Return the jobs that had not ended by a time of a finished run, and the state of the run at that time.

    The run of these jobs has no past; see :func:`begun_in` for one that has.

    Parameters
    ----------
    result : Result
        Result of the run, in which all jobs ran.
    at : int
        Time [s]; the events and starts of this instant are over.

    Returns
    -------
    (Workload, Begun)
        Jobs without those that had ended, and the state in which a simulation of them begins.
    """
    rows = np.flatnonzero(result.end_time > at)
    kept = result.workload.select(rows, f"jobs that had not ended at {at} s")
    return kept, begun_of(result, at, rows)


def begun_of(result: Result, at: int, rows: NDArray[np.intp]) -> Begun:
    """Return the state of a finished run at a time, for another run of some of its jobs.

    Jobs of a recorded schedule may have started on unknown machines or in an unknown partition, where the
    cluster chooses.

    Parameters
    ----------
    result : Result
        Result of the run.
    at : int
        Time [s]; the events and starts of this instant are over.
    rows : array of int, shape (jobs,)
        Rows of the jobs of the other run, in their order there; those that have started have run.
    """
    start, placements, started_in = result.start_time, result.placements, result.started_in
    begun = [(place, row) for place, row in enumerate(rows.tolist()) if 0 <= start[row] <= at]
    placed = [] if placements is None else [each for each in begun if placements.machine_count[each[1]]]
    named = [] if started_in is None else [each for each in begun if started_in[each[1]]]
    return Begun(
        at,
        {place: int(start[row]) for place, row in begun},
        {} if placements is None else {place: placements.allocation(row) for place, row in placed},
        {} if started_in is None else {place: str(started_in[row]) for place, row in named},
    )


def begun_in_log(workload: Workload, at: int) -> Begun:
    """Return the state at a time that a log records: jobs start when submitted plus their recorded wait.

    Jobs submitted by then without a recorded wait are rejected.

    Raises
    ------
    UsageError
        The log has no recorded waits.
    """
    wait, submitted = workload.recorded_wait_time, workload.submit_time
    if not (wait >= 0).any():
        raise UsageError(
            f"begin_at: {workload.name} has no recorded waits; name a policy, as in '9000, fcfs'"
        )
    if any(step.startswith(SCALED) for step in workload.provenance):
        raise UsageError(f"begin_at: the waits of {workload.name} are not those of a scaled load")
    start = submitted + wait
    rows = np.flatnonzero((wait >= 0) & (start <= at))
    rows = rows[np.argsort(start[rows], kind="stable")]
    unknown = np.flatnonzero((wait < 0) & (submitted <= at)).tolist()
    started = dict(zip(rows.tolist(), start[rows].tolist(), strict=True))
    return Begun(at, started, rejected=frozenset(unknown), before="log")


def remarks_on(result: Result) -> list[str]:
    """Return the differences between the beginning of a run and the log from which it is taken."""
    begun = result.options.get("begun", {})
    if begun.get("before") != "log":
        return []
    workload, at = result.workload, begun["at"]
    wait = workload.recorded_wait_time
    recorded = workload.submit_time + wait
    late = (wait >= 0) & (recorded <= at) & (result.start_time > recorded)
    unknown = (wait < 0) & (workload.submit_time <= at)
    found = []
    if unknown.any():
        found.append(f"{unknown.sum():,} jobs submitted by {at} s without a recorded wait: rejected")
    if late.any():
        found.append(f"{late.sum():,} jobs start later than recorded before {at} s, as the machine is full")
    return found
