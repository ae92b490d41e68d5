"""Gates: rules that say whether a job may start now and, if not, for which reason."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.system import System

__all__ = ["Dependencies", "Gate", "Gates", "Held"]


class Held(NamedTuple):
    """The answer of a gate that holds a job.

    Attributes
    ----------
    reason : str
        The reason, in a word: that of Slurm, if it has one.
    until : int or None
        Time at which the gate is asked again [s]; None if only an event can change the answer.
    never : bool
        Whether the job may never start: it is rejected.
    """

    reason: str
    until: int | None = None
    never: bool = False


class Gate(Parameters):
    """A rule that says whether a job may start now.

    A job that a gate holds is not in the queue: no order, backfiller or agent sees it. Each run works on its
    own copy, so any state that :meth:`reset` stores belongs to that run alone.

    :meth:`holds` is asked whenever a job is due, and again about each job that another method returns. Those
    that may start join the queue; those in the queue that may not leave it.

    Examples
    --------
    At most one job of each user runs:

    >>> class OneByOne(Gate):
    ...     def reset(self, workload):
    ...         self._running, self._due = set(), {}
    ...     def holds(self, job, system):
    ...         self._due[job.index] = job
    ...         return Held("MaxJobsPerUser") if job.user in self._running else None
    ...     def after_start(self, job, system):
    ...         self._running.add(job.user)
    ...         del self._due[job.index]
    ...         return [each for each in self._due.values() if each.user == job.user]
    ...     def after_end(self, job, system):
    ...         self._running.discard(job.user)
    ...         return [each for each in self._due.values() if each.user == job.user]
    >>> from hpcsimkit import Simulation, make
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [1, 1, 1],
    ...               "user": [1, 1, 2]}, machine_size=3)
    >>> Simulation(w, make("fcfs"), gates=(OneByOne(),)).run().start_time.tolist()
    [0, 9, 2]
    """

    columns: tuple[str, ...] = ()
    """Columns of the workload that the gate reads; if there are some and the workload has none of them, the
    gate holds no job, and is not asked."""

    reads_queue: bool = True
    """Whether the answer about a job may depend on the others in the queue, which then join one by one."""

    def reset(self, workload: Workload) -> None:
        """Prepare the run's own copy before the first event."""

    def due_by_log(self, rows: list[int]) -> list[int]:
        """Return the rows of the jobs, of those given, that are due at their submission times in the log.

        The others are due when :meth:`after_end` returns them. By default, all are. Called once or twice.
        """
        return rows

    def holds(self, job: Job, system: System) -> Held | None:
        """Return the reason for which a job that is due may not start now, or None, as by default."""
        return None

    def holds_each(self, jobs: Sequence[Job], system: System) -> list[Held | None]:
        """Return the answers about several jobs; by default, they are asked about one after the other."""
        return [self.holds(job, system) for job in jobs]

    def after_start(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs for which the answer may be another one since a job has started."""
        return ()

    def after_stop(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs for which the answer may be another one since a job was stopped, for now."""
        return ()

    def after_end(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs for which the answer may be another one since a job has ended for good.

        Those that were not due by the log are due from now on, or from their submission times. A job with
        another submission time than in the log counts as submitted then.
        """
        return ()

    def after_reject(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs for which the answer may be another one since a job was rejected.

        Those that were not due by the log are never due: they are rejected as well.
        """
        return ()


class Dependencies(Gate):
    """Jobs that are submitted only after another has ended: fields 17 and 18 of the Standard Workload Format.

    A job depends on its preceding job if that job is in the workload and was submitted earlier in the log;
    other references are void, so there are no cycles. A dependent job is submitted `think_time` after the end
    of its preceding job; if the think time is unknown, at that end, but not before its recorded submission
    time. If the preceding job is rejected, so is the dependent job.

    Dependencies in the manner of Slurm are another gate, :class:`~hpcsimkit.kernel.after_jobs.AfterJobs`.

    Attributes
    ----------
    void : int
        Number of void references: to a job that is absent, submitted later, or the job itself.

    Examples
    --------
    >>> w = Workload({"id": [1, 2, 3], "submit_time": [0, 5, 6], "run_time": [9, 9, 9], "nodes": [1, 1, 1],
    ...               "preceding": [3, 1, 7]})
    >>> dependencies = Dependencies()
    >>> dependencies.reset(w)
    >>> dependencies.due_by_log(w.arrival_order.tolist())
    [0, 2]
    """

    void = 0
    reads_queue = False

    def reset(self, workload: Workload) -> None:
        """Find the jobs that depend on each job.

        Raises
        ------
        WorkloadError
            Job numbers are not unique, so that dependencies are ambiguous.
        """
        place = np.empty(len(workload), dtype=np.int64)
        place[workload.arrival_order] = np.arange(len(workload))
        row_of = rows_by_number(workload)
        self.successors: dict[int, list[int]] = {}
        self.void = 0
        for job in workload.jobs:
            row = row_of.get(job.preceding) if job.preceding > 0 else None
            if row is not None and place[row] < place[job.index]:
                self.successors.setdefault(row, []).append(job.index)
            elif job.preceding > 0:
                self.void += 1

    def due_by_log(self, rows: list[int]) -> list[int]:
        """Return the rows without dependencies, in the given order."""
        dependent = {row for successors in self.successors.values() for row in successors}
        return [row for row in rows if row not in dependent]

    def after_end(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs that depend on the one that ends now, with their submission times."""
        return [
            system.jobs[row]._replace(submit_time=_submission(system.jobs[row], system.now))
            for row in self.successors.pop(job.index, ())
        ]

    def after_reject(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs that depend on a rejected job."""
        return [system.jobs[row] for row in self.successors.pop(job.index, ())]


def _submission(job: Job, end: int) -> int:
    """Return the submission time of a job after the end of its preceding job [s]."""
    return max(end, job.submit_time) if job.think_time < 0 else end + job.think_time


def rows_by_number(workload: Workload) -> dict[int, int]:
    """Return the row of each job by its number; raise a WorkloadError if two jobs have the same one."""
    row_of = {job.id: job.index for job in workload.jobs}
    if len(row_of) < len(workload):
        twice = len(workload) - len(row_of)
        raise WorkloadError(
            f"{workload.name}: dependencies need unique job numbers; {twice} are used more than once"
        )
    return row_of


class Gates:
    """The gates of one run, all of which a job has to pass.

    Parameters
    ----------
    gates : sequence of Gate
        The gates, which are copied; those whose columns the workload lacks are left out.
    workload : Workload
        The jobs of the run.

    Attributes
    ----------
    awaited : set of int
        Rows of the jobs that a gate has yet to submit.
    reads_queue : bool
        Whether the answers may depend on the jobs in the queue.
    """

    def __init__(self, gates: Iterable[Gate], workload: Workload) -> None:
        self._gates = [
            copy.copy(gate)
            for gate in gates
            if not gate.columns or any(name in workload.columns for name in gate.columns)
        ]
        self.awaited: set[int] = set()
        self.reads_queue = any(gate.reads_queue for gate in self._gates)
        for gate in self._gates:
            gate.reset(workload)

    def __bool__(self) -> bool:
        return bool(self._gates)

    def due_by_log(self, rows: list[int]) -> list[int]:
        """Return the rows of the jobs that are due at their submission times in the log."""
        due = rows
        for gate in self._gates:
            due = gate.due_by_log(due)
        if self._gates:
            self.awaited = set(rows).difference(due)
        return due

    def holds(self, job: Job, system: System) -> Held | None:
        """Return the answer of the first gate that holds a job, or None; those behind it are not asked."""
        for gate in self._gates:
            held = gate.holds(job, system)
            if held is not None:
                _check(held, gate, job, system)
                return held
        return None

    def holds_each(self, jobs: Sequence[Job], system: System) -> list[Held | None]:
        """Return the answers about several jobs; only if they do not depend on those in the queue."""
        answers: list[Held | None] = [None] * len(jobs)
        places = list(range(len(jobs)))
        for gate in self._gates:
            found = gate.holds_each([jobs[place] for place in places], system)
            for place, held in zip(places, found, strict=True):
                if held is not None:
                    _check(held, gate, jobs[place], system)
                    answers[place] = held
            places = [place for place in places if answers[place] is None]
        return answers

    def after_start(self, job: Job, system: System) -> list[Job]:
        """Return the jobs to ask about again since a job has started."""
        return [each for gate in self._gates for each in gate.after_start(job, system)]

    def after_stop(self, job: Job, system: System) -> list[Job]:
        """Return the jobs to ask about again since a job was stopped and will be back."""
        return [each for gate in self._gates for each in gate.after_stop(job, system)]

    def after_end(self, job: Job, system: System) -> list[Job]:
        """Return the jobs to submit, or to ask about again, since a job has ended for good."""
        return [each for gate in self._gates for each in gate.after_end(job, system)]

    def after_reject(self, job: Job, system: System) -> list[Job]:
        """Return the jobs to reject, or to ask about again, since a job was rejected."""
        return [each for gate in self._gates for each in gate.after_reject(job, system)]


def _check(held: object, gate: Gate, job: Job, system: System) -> None:
    """Raise a UsageError if the answer of a gate is none, or asks to be asked again in the past."""
    if not isinstance(held, Held):
        problem = f"holds() must return a Held or None, found {held!r}"
    elif not isinstance(held.reason, str) or not held.reason:
        problem = f"a reason is needed, found {held.reason!r}"
    elif held.until is not None and not held.until > system.now:
        problem = f"it can be asked again only later, found until={held.until!r}"
    else:
        return
    raise UsageError(f"{gate!r} for job {job.id} at t={system.now} s: {problem}")
