"""Gates: rules that decide when a job joins the queue. Dependencies between jobs are one of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import numpy as np

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.system import System

__all__ = ["Dependencies", "Gate", "Gates"]


class Gate(Parameters):
    """A rule that decides when jobs join the queue.

    A job that is held is not in the queue: no order, backfiller or agent sees it. Each run works on its own
    copy, so any state that :meth:`reset` stores belongs to that run alone. A gate holds jobs that are due; it
    takes no job out of the queue.

    Examples
    --------
    At most one job of each user is in the queue or on the cluster:

    >>> class OneByOne(Gate):
    ...     def reset(self, workload):
    ...         self._present, self._held = set(), []
    ...     def holds(self, job, system):
    ...         if job.user in self._present:
    ...             self._held.append(job)
    ...             return True
    ...         self._present.add(job.user)
    ...         return False
    ...     def after_end(self, job, system):
    ...         self._present.discard(job.user)
    ...         due, self._held = self._held, []
    ...         return due
    >>> from hpcsimkit import Simulation, make
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [1, 1, 1],
    ...               "user": [1, 1, 2]}, machine_size=3)
    >>> Simulation(w, make("fcfs"), gates=(OneByOne(),)).run().start_time.tolist()
    [0, 9, 2]
    """

    def reset(self, workload: Workload) -> None:
        """Prepare the run's own copy before the first event."""

    def due_by_log(self, rows: list[int]) -> list[int]:
        """Return the rows of the jobs, of those given, that are due at their submission times in the log.

        The others are due when :meth:`after_end` returns them. By default, all are. Called once or twice.
        """
        return rows

    def holds(self, job: Job, system: System) -> bool:
        """Return whether a job that is due may not join the queue yet; by default none is held."""
        return False

    def after_end(self, job: Job, system: System) -> Iterable[Job]:
        """Return jobs that are due from now on, or from their submission times, since a job has ended.

        A job with another submission time than in the log counts as submitted then.
        """
        return ()

    def after_reject(self, job: Job, system: System) -> Iterable[Job]:
        """Return jobs that are never due, since a job was rejected: they are rejected as well."""
        return ()


class Dependencies(Gate):
    """Jobs that are submitted only after another has ended: fields 17 and 18 of the Standard Workload Format.

    A job depends on its preceding job if that job is in the workload and was submitted earlier in the log;
    other references are void, so there are no cycles. A dependent job is submitted `think_time` after the end
    of its preceding job; if the think time is unknown, at that end, but not before its recorded submission
    time. If the preceding job is rejected, so is the dependent job.

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

    def reset(self, workload: Workload) -> None:
        """Find the jobs that depend on each job.

        Raises
        ------
        WorkloadError
            Job numbers are not unique, so that dependencies are ambiguous.
        """
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

    def due_by_log(self, rows: list[int]) -> list[int]:
        """Return the rows without dependencies, in the given order."""
        dependent = {row for successors in self._successors.values() for row in successors}
        return [row for row in rows if row not in dependent]

    def after_end(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs that depend on the one that ends now, with their submission times."""
        return [
            system.jobs[row]._replace(submit_time=_submission(system.jobs[row], system.now))
            for row in self._successors.pop(job.index, ())
        ]

    def after_reject(self, job: Job, system: System) -> Iterable[Job]:
        """Return the jobs that depend, directly or indirectly, on a rejected job."""
        cancelled = [system.jobs[row] for row in self._successors.pop(job.index, ())]
        for each in cancelled:  # the list grows during iteration
            cancelled += [system.jobs[row] for row in self._successors.pop(each.index, ())]
        return cancelled


def _submission(job: Job, end: int) -> int:
    """Return the submission time of a job after the end of its preceding job [s]."""
    return max(end, job.submit_time) if job.think_time < 0 else end + job.think_time


class Gates:
    """The gates of one run, all of which a job has to pass.

    Parameters
    ----------
    gates : sequence of Gate
        The gates, which are copied.
    workload : Workload
        The jobs of the run.
    """

    def __init__(self, gates: Iterable[Gate], workload: Workload) -> None:
        self._gates = [copy.copy(gate) for gate in gates]
        for gate in self._gates:
            gate.reset(workload)

    def __bool__(self) -> bool:
        return bool(self._gates)

    def due_by_log(self, rows: list[int]) -> list[int]:
        """Return the rows of the jobs that are due at their submission times in the log."""
        for gate in self._gates:
            rows = gate.due_by_log(rows)
        return rows

    def holds(self, job: Job, system: System) -> bool:
        """Return whether a gate holds a job that is due; those behind it are not asked yet."""
        return any(gate.holds(job, system) for gate in self._gates)

    def after_end(self, job: Job, system: System) -> list[Job]:
        """Return jobs that are due, now or later, since a job has ended."""
        return [due for gate in self._gates for due in gate.after_end(job, system)]

    def after_reject(self, job: Job, system: System) -> list[Job]:
        """Return jobs that are never due, since a job was rejected."""
        return [each for gate in self._gates for each in gate.after_reject(job, system)]
