"""The record of one run: the state of each job, and its attempt to run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import Allocation
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.restart import Progress
from hpcsimkit.results.attempts import Attempt, Outcome

__all__ = ["Ledger", "Mode", "Record", "State"]


class Mode(IntEnum):
    """The way in which a job was started."""

    NONE = 0
    READY = 1
    RESERVED = 2
    BACKFILLED = 3
    TESTED = 4


class State(IntEnum):
    """The life-cycle state of a job."""

    UNSEEN = 0
    WAITING = 1
    RUNNING = 2
    DONE = 3
    REJECTED = 4
    HELD = 5
    SUSPENDED = 6


class Record:
    """The record of one run, as policies read it; see :class:`Ledger`.

    Jobs are given by their rows in the workload. The record of a start (time, mode, estimate,
    partition) is that of the current attempt of the job.

    Parameters
    ----------
    workload : Workload
        The jobs of the run.
    gated : bool
        Whether the run has gates, which may hold jobs, and replace them by copies with the submission times
        of this run.

    Attributes
    ----------
    gated : bool
        Whether the run has gates.
    jobs : list of Job
        The jobs by row, with the submission times of this run.
    state : bytearray
        :class:`State` of each job.
    attempts : list of int
        Number of each job's attempt to run, from 0: the end of another attempt has no effect.
    starts, ends : list of int
        Start and end of each job [s], -1 before.
    modes : bytearray
        :class:`Mode` of each start.
    estimates : list of int
        The scheduler's estimate of the run time [s] of each job that has started.
    partitions : dict of int to str
        Name of the partition in which each job started, by row, in a run with several partitions.
    partition : str
        Name of the only partition of the run; empty without partitions, or with several.
    stopped : list of Attempt
        The attempts that were stopped, in the order of their ends.
    kept : dict of int to int
        Work of earlier attempts that a job need not do again [s], by row; jobs without any are absent.
    failures : dict of int to int
        Number of failures of each job that has failed, by row.
    given_up : list of int
        Rows of the jobs that were stopped for good.
    incomplete : set of int
        Rows of the jobs that are killed at their requested times, in runs with gates, or stopped for good.
    held : dict of int to (int, str)
        Time since when a gate holds a job [s] and its reason, by row.
    past_holds : dict of int to list of (int, int, str)
        Beginning and end of each interval in which a gate held a job [s], and its reason, by row.
    """

    def __init__(self, workload: Workload, *, gated: bool = False) -> None:
        count = len(workload)
        self.gated = gated
        # The list of the workload belongs to all its runs.
        self.jobs: list[Job] = workload.jobs.copy() if gated else workload.jobs
        self.state = bytearray(count)
        self.attempts: list[int] = [0] * count
        self.starts: list[int] = [-1] * count
        self.ends: list[int] = [-1] * count
        self.modes = bytearray(count)
        self.estimates: list[int] = [-1] * count
        self.partitions: dict[int, str] = {}
        self.partition = ""
        self.stopped: list[Attempt] = []
        self.kept: dict[int, int] = {}
        self.failures: dict[int, int] = {}
        self.given_up: list[int] = []
        self._suspensions: dict[int, int] = {}
        self._parts: dict[int, list[int]] = {}  # by row: places in `stopped` of its current attempt
        self.incomplete: set[int] = set()
        self.held: dict[int, tuple[int, str]] = {}
        self.past_holds: dict[int, list[tuple[int, int, str]]] = {}
        self._joined: dict[int, int] = {}
        self._workload = workload
        self._submit_time: NDArray[np.int64] | None = None

    # --- reading -----------------------------------------------------------------------------------

    def waits(self, row: int) -> bool:
        """Return whether the job is waiting, so that it may start."""
        return self.state[row] == 1

    def started(self, row: int) -> bool:
        """Return whether the job is running, or has run to its end."""
        return self.starts[row] >= 0

    def start_of(self, row: int) -> int:
        """Return the start of the job [s], -1 if it has not started."""
        return self.starts[row]

    def end_of(self, row: int) -> int:
        """Return the end of the job [s], -1 if it has not ended."""
        return self.ends[row]

    def expected_end_of(self, row: int) -> int:
        """Return the end of the job by its estimate [s], once it has started."""
        return self.starts[row] + self.estimates[row]

    def joined(self, row: int) -> int:
        """Return the time at which the job joined the queue for its current attempt [s]."""
        return self._joined.get(row, self.jobs[row].submit_time)

    def work_left(self, row: int) -> int:
        """Return the work that the job has to do in its current or next attempt [s]."""
        return self.jobs[row].run_time - self.kept.get(row, 0)

    def again(self, row: int) -> bool:
        """Return whether the current attempt of the job is not its first one."""
        return self.attempts[row] > self._suspensions.get(row, 0)

    def ran_before(self, row: int) -> int:
        """Return the time that the current attempt of the job ran before it was suspended [s]."""
        parts = [self.stopped[place] for place in self._parts.get(row, ())]
        return sum(part.end_time - part.start_time for part in parts)

    def done_before(self, row: int) -> int:
        """Return the work that the current attempt of the job did before it was suspended [s]."""
        return sum(self.stopped[place].work for place in self._parts.get(row, ()))

    def partition_of(self, row: int) -> str:
        """Return the name of the partition in which the job started; empty if it has not, or without any."""
        if self.partition:
            return self.partition if self.starts[row] >= 0 else ""
        return self.partitions.get(row, "")

    def first_held(self) -> Job | None:
        """Return the first job that a gate holds, if any."""
        row = self.state.find(5)
        return None if row < 0 else self.jobs[row]

    def _reason(self, row: int) -> str:
        """Return the reason for which a gate holds a job; empty if none does."""
        return self.held[row][1] if row in self.held else ""

    @property
    def submit_time(self) -> NDArray[np.int64]:
        """Submission time of each job in this run [s], int64, shape (jobs,)."""
        return self._workload.column("submit_time") if self._submit_time is None else self._submit_time

    @property
    def start_time(self) -> NDArray[np.int64]:
        """Start of each job [s], -1 before, int64, shape (jobs,)."""
        return np.array(self.starts, dtype=np.int64)

    @property
    def end_time(self) -> NDArray[np.int64]:
        """End of each job [s], -1 before, int64, shape (jobs,)."""
        return np.array(self.ends, dtype=np.int64)

    @property
    def mode(self) -> NDArray[np.uint8]:
        """:class:`Mode` of each start, uint8, shape (jobs,)."""
        return np.frombuffer(bytes(self.modes), dtype=np.uint8)

    @property
    def rejected(self) -> NDArray[np.bool_] | None:
        """Which jobs have been rejected, bool, shape (jobs,); None for none."""
        if State.REJECTED not in self.state:
            return None
        return np.frombuffer(bytes(self.state), dtype=np.uint8) == State.REJECTED


class Ledger(Record):
    """The record of one run, shared by the systems of all partitions, which make the entries.

    Examples
    --------
    >>> ledger = Ledger(Workload({"submit_time": [0], "run_time": [9], "nodes": [1]}))
    >>> ledger.submit(0)
    >>> ledger.waits(0), ledger.started(0)
    (True, False)
    >>> ledger.begin(0, now=3, mode=Mode.READY, estimate=10)
    >>> ledger.waits(0), ledger.started(0), ledger.start_of(0), ledger.end_of(0)
    (False, True, 3, -1)
    """

    def submit(self, row: int) -> None:
        """Enter that a job waits."""
        self.state[row] = 1

    def submit_all(self, rows: Iterable[int]) -> None:
        """Enter that some jobs wait."""
        for row in rows:
            self.state[row] = 1

    def hold(self, row: int, now: int, reason: str) -> bool:
        """Enter that a gate holds a job that is due; return whether this, or its reason, is news."""
        self.state[row] = 5
        if row in self.held:
            if self.held[row][1] == reason:
                return False
            self.release(row, now)
        past = self.past_holds.get(row)
        if past and past[-1][1] == now and past[-1][2] == reason:  # only let into the queue at this instant
            self.held[row] = past.pop()[0], reason
        else:
            self.held[row] = now, reason
        return True

    def release(self, row: int, now: int, *, for_good: bool = False) -> None:
        """Enter that no gate holds a job any more, if one did; by default, no interval is empty."""
        if row in self.held:
            since, reason = self.held.pop(row)
            if now > since or for_good:
                self.past_holds.setdefault(row, []).append((since, now, reason))

    def release_all(self, rows: Sequence[int], now: int) -> None:
        """Enter that no gate holds some jobs any more."""
        held, past = self.held, self.past_holds
        for row in rows:
            since, reason = held.pop(row, (now, ""))
            if now > since:
                past.setdefault(row, []).append((since, now, reason))

    def explain(self, row: int, now: int, reason: str) -> None:
        """Enter the reason that the policy finds for which a job in the queue may not start, if any."""
        if self._reason(row) != reason:
            self.release(row, now)
            if reason:
                self.held[row] = now, reason

    def begin(self, row: int, now: int, mode: int, estimate: int) -> None:
        """Enter the start of an attempt."""
        self.state[row] = 2
        self.starts[row] = now
        self.modes[row] = mode
        self.estimates[row] = estimate

    def end(self, row: int, now: int) -> None:
        """Enter the end of a running job."""
        self.state[row] = 3
        self.ends[row] = now

    def suspend(self, row: int, now: int, done: int, allocation: Allocation) -> None:
        """Enter that a running job is suspended: its attempt is interrupted, its end that was to come void.

        In this part of the attempt, it has done some work [s].
        """
        self._enter_part(row, now, Outcome.SUSPENDED, done, allocation)
        self._parts.setdefault(row, []).append(len(self.stopped) - 1)
        self._suspensions[row] = self._suspensions.get(row, 0) + 1
        self.attempts[row] += 1
        self.state[row] = 6
        self.starts[row] = -1
        self._joined[row] = now

    def resume(self, row: int, now: int, estimate: int) -> None:
        """Enter that a suspended job goes on."""
        self.state[row] = 2
        self.starts[row] = now
        self.estimates[row] = estimate

    def stop(self, row: int, now: int, why: Outcome, progress: Progress, allocation: Allocation) -> None:
        """Enter that a running or suspended job is stopped: its attempt is over, and the end to come is void.

        The progress is that of the whole attempt, also before it was suspended.
        """
        parts = self._parts.pop(row, [])
        if self.state[row] == 2:
            if parts:
                self._enter_part(row, now, why, progress.kept + progress.lost, allocation)
                parts.append(len(self.stopped) - 1)
            else:
                self._enter_part(row, now, why, progress.kept, allocation, progress.lost)
            self.attempts[row] += 1
        else:
            self.stopped[parts[-1]] = self.stopped[parts[-1]]._replace(outcome=why)
            self._suspensions[row] -= 1  # the last one was a stop
        self._divide(parts, progress)
        if progress.kept:
            self.kept[row] = self.kept.get(row, 0) + progress.kept
        if why is Outcome.FAILED:
            self.failures[row] = self.failures.get(row, 0) + 1
        self.state[row] = 5
        self.starts[row] = self.estimates[row] = -1
        self.modes[row] = 0
        self.partitions.pop(row, None)

    def _enter_part(
        self, row: int, now: int, why: Outcome, work: int, allocation: Allocation, lost: int = 0
    ) -> None:
        """Append an attempt, or a part of one, that ends now."""
        joined, start, mode, partition = (
            self.joined(row),
            self.starts[row],
            self.modes[row],
            self.partition_of(row),
        )
        self.stopped.append(Attempt(row, joined, start, now, mode, why, work, lost, allocation, partition))

    def _divide(self, parts: Sequence[int], progress: Progress) -> None:
        """Divide the work that an attempt keeps and loses among its parts: what it did first is kept."""
        kept, done = progress.kept, progress.kept + progress.lost
        for place in parts:
            part = self.stopped[place]
            of_part = min(part.work, done)
            work = min(of_part, kept)
            self.stopped[place] = part._replace(work=work, lost=of_part - work)
            kept, done = kept - work, done - of_part

    def rejoin(self, row: int, now: int) -> None:
        """Enter that a job that was stopped is due again."""
        self._joined[row] = now

    def give_up(self, row: int) -> None:
        """Enter that a job that was stopped does not start again; its last attempt is that of its record."""
        last = next(attempt for attempt in reversed(self.stopped) if attempt.job == row)
        self.given_up.append(row)
        self.incomplete.add(row)
        self.state[row] = 3
        self.starts[row], self.ends[row], self.modes[row] = last.start_time, last.end_time, last.mode

    def reject(self, row: int) -> None:
        """Enter that a waiting job never runs or, if it was stopped before, does not start again."""
        if not self.again(row):
            self.state[row] = 4
        elif self.state[row] != 3:
            self.give_up(row)

    def resubmit(self, job: Job) -> None:
        """Replace a job by a copy with the submission time of this run (gates)."""
        if self._submit_time is None:
            self._submit_time = self._workload.column("submit_time").copy()
        self._submit_time[job.index] = job.submit_time
        self.jobs[job.index] = job
