"""The actions that a policy may take, each of which is validated and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcsimkit.cluster import allocation as machines
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import Allocation, AnyCluster
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.capacity import NO_CALENDAR, Capacity, Listener
from hpcsimkit.kernel.ledger import Ledger, Mode, State
from hpcsimkit.kernel.service_time import ServiceTime
from hpcsimkit.results.attempts import Outcome

if TYPE_CHECKING:
    from hpcsimkit.jobs.queue import JobQueue

__all__ = ["Actions"]

MEMORY = "memory"
"""The resource that a suspended job keeps."""


class Suspended(NamedTuple):
    """What a suspended job had, and what it has.

    Attributes
    ----------
    allocation : Allocation or int
        The nodes on which it ran, and on which it goes on.
    memory : Allocation or None
        The memory that it keeps; None without any.
    expected : int
        Time until its expected end once it goes on [s], >= 1.
    """

    allocation: Allocation
    memory: machines.Allocation | None
    expected: int


class Actions(Capacity):
    """The jobs of a cluster, and the actions that change their states; see :class:`System`."""

    jobs: list[Job]
    ledger: Ledger
    queue: JobQueue
    allocations: list[Allocation | None] | None
    events: list[int]
    rejected: list[int]
    service_time: ServiceTime | None

    def __init__(self, cluster: AnyCluster, listener: Listener | None = None) -> None:
        super().__init__(cluster, listener)
        self.suspended: dict[int, Suspended] = {}
        self.partitioned = False

    @property
    def over(self) -> bool:
        """Whether no job runs, waits, is held or suspended, or is to come."""
        present = self.running.entries or self.queue.jobs or self.suspended or self.ledger.held
        return not (present or self.arrivals_left)

    @property
    def releases(self) -> list[tuple[int, int, Allocation]]:
        """Expected time [s], tie-breaker and amount of each release of capacity, by time.

        Capacity is released by running jobs at their expected ends, and at the ends of outages. Suspended
        jobs are expected to go on after all of these, and then to release the memory that they keep.
        """
        if not (self.suspended or self.gone):
            return self.running.entries
        found = super().releases
        kept = [
            (had.expected, row, had.memory) for row, had in self.suspended.items() if had.memory is not None
        ]
        last = max([self.now + 1, *(end for end, _, _ in found[-1:])])
        return [*found, *sorted((last + expected, row, memory) for expected, row, memory in kept)]

    def start(
        self,
        job: Job,
        allocation: Allocation | None = None,
        mode: int = Mode.READY,
        *,
        partition: str = "",
        limit: int | None = None,
    ) -> None:
        """Start a waiting job now.

        Parameters
        ----------
        job : Job
            A waiting job.
        allocation : Allocation, optional
            The nodes of the job; by default the choice of the cluster.
        mode : int
            The start mode to record. Default: ``Mode.READY``.
        partition : str
            Name of the partition in which the job starts, for a policy that schedules all of them. Default:
            none.
        limit : int, optional
            Time after which the job is stopped and waits again, if it is still running [s], >= 1, less than
            its estimate; only with ``Mode.TESTED``, which needs it. By default the job runs to its end.

        Raises
        ------
        ScheduleError
            The job is not waiting (not submitted yet, already started, or rejected), does not fit, or the
            limit is invalid.
        """
        try:
            row = job.index
            waits = self.ledger.state[row] == 1
        except (AttributeError, TypeError, IndexError):
            raise self._no_job(job) from None
        if not waits:
            raise self._not_waiting(job)
        if mode not in (1, 2, 3):
            self._check_test(job, mode, limit)
        job = self.jobs[row]  # the workload's own job, even if a copy was passed
        given = allocation
        level = self.free if self.calendar is NO_CALENDAR else self.room_for(job, seconds=limit)
        if allocation is None:
            allocation = self.cluster.place(job, level)
        elif self.cluster.holds(job, allocation, level):
            allocation = self.cluster.granted(job, allocation)
        else:
            allocation = None
        if allocation is None:
            raise self._no_place(job, given)
        self.free = self.free - allocation
        self.version += 1
        estimate = self.queue.remove(job)
        if partition or limit is not None:
            estimate = self._enter(row, partition, estimate, limit)
        ledger = self.ledger  # as `Ledger.begin`, without a call for each job
        ledger.state[row], ledger.starts[row] = 2, self.now
        ledger.modes[row], ledger.estimates[row] = mode, estimate
        self.running.add(row, self.now + estimate, allocation)
        if self.allocations is not None:
            self.allocations[row] = allocation
            self.events.append(row)
        self.listener.on_start(job, allocation)
        if limit is not None:
            self.listener.on_test(job)

    def _enter(self, row: int, partition: str, estimate: int, limit: int | None) -> int:
        """Enter the partition in which a job starts, if any; return the time until its expected end [s]."""
        if partition:
            self.ledger.partitions[row] = partition
        return estimate if limit is None else limit

    def reject(self, job: Job) -> None:
        """Reject a waiting job permanently: it never runs.

        A job that ran before and was stopped is given up: it keeps its attempts, and is not complete.

        Raises
        ------
        ScheduleError
            The job is not waiting.
        """
        try:
            waits = self.ledger.waits(job.index)
        except (AttributeError, TypeError, IndexError):
            raise self._no_job(job) from None
        if not waits:
            raise self._not_waiting(job)
        job = self.jobs[job.index]
        self.ledger.reject(job.index)
        self.rejected.append(job.index)
        self.version += 1
        self.queue.remove(job)
        self.listener.on_reject(job)

    def stop(
        self, job: Job, why: Outcome = Outcome.PREEMPTED, *, requeue: bool = True, delay: int = 0
    ) -> None:
        """Stop a running job now; unless it is lost, it waits again.

        It returns to the queue at once, or after the delay; its place there is that of its submission. The
        rules of the run (:class:`~hpcsimkit.kernel.restart.Restart`) say what it keeps of its work.

        Parameters
        ----------
        job : Job
            A running job.
        why : Outcome
            The reason. Default: ``Outcome.PREEMPTED``.
        requeue : bool
            Whether the job may start again. Default: True.
        delay : int
            Time until the job joins the queue again [s], added to that of the rules. Default: 0.

        Raises
        ------
        ScheduleError
            The job is not running, or the delay is not a whole number of seconds.
        UsageError
            Run times depend on the allocations, so that the work of an attempt is unknown.
        """
        try:
            row = job.index
            runs = self.ledger.state[row] == 2
        except (AttributeError, TypeError, IndexError):
            raise self._no_job(job) from None
        who = f"job {job.id} at t={self.now} s cannot be stopped"
        if not runs or job not in self.running:
            raise ScheduleError(f"{who}: it must be running here")
        if not isinstance(delay, int) or not 0 <= delay <= TIME_LIMIT:
            raise ScheduleError(f"{who}: delay needs a whole number of seconds from 0 on, found {delay!r}")
        if self.service_time is not None:
            raise UsageError(f"{who}: a run with a locality model stops no jobs")
        self.listener.on_stop(self.jobs[row], Outcome(why), requeue, delay)

    def suspend(self, job: Job) -> None:
        """Suspend a running job: its time stops, and its nodes are free except for its memory on machines.

        It is not in the queue. Only :meth:`resume` lets it go on.

        Raises
        ------
        ScheduleError
            The job is not running.
        UsageError
            Run times depend on the allocations, or the cluster has several partitions.
        """
        try:
            row = job.index
            runs = self.ledger.state[row] == 2
        except (AttributeError, TypeError, IndexError):
            raise self._no_job(job) from None
        who = f"job {job.id} at t={self.now} s cannot be suspended"
        if not runs or job not in self.running:
            raise ScheduleError(f"{who}: it must be running here")
        if self.service_time is not None or self.partitioned:
            what = "a locality model" if self.service_time is not None else "several partitions"
            raise UsageError(f"{who}: a run with {what} suspends no jobs")
        expected = max(self.running.expected_end(job) - self.now, 1)
        allocation = self._leave(job)
        memory = self.memory_of(allocation)
        if memory is not None:
            self.free = self.free - memory
        self.corrections += 1
        self.suspended[row] = Suspended(allocation, memory, expected)
        self.listener.on_suspend(self.jobs[row], allocation)

    def resumes(self, job: Job) -> bool:
        """Return whether a suspended job could go on now: on its machines, or on any homogeneous nodes."""
        had = self.suspended[job.index]
        level = self.free if had.memory is None else self.free + had.memory
        if self.calendar:
            end = self.now + had.expected
            level = self.calendar.level_for(job, level, self.now, end, self.releases)
        return bool(np.min(level - had.allocation) >= 0)

    def resume(self, job: Job) -> None:
        """Let a suspended job go on, on its machines, or on any homogeneous nodes.

        Raises
        ------
        ScheduleError
            The job is not suspended, or its nodes are not free.
        """
        row = getattr(job, "index", None)
        if row not in self.suspended:
            raise ScheduleError(f"{job!r} at t={self.now} s cannot be resumed: it must be suspended here")
        if not self.resumes(job):
            raise ScheduleError(f"job {job.id} at t={self.now} s cannot be resumed: its nodes are not free")
        had = self.suspended[row]
        self.forget_suspended(row)
        self.free = self.free - had.allocation
        self.ledger.resume(row, self.now, had.expected)
        self.running.add(row, self.now + had.expected, had.allocation)
        if self.allocations is not None:
            self.events.append(row)
        self.listener.on_resume(self.jobs[row])

    def forget_suspended(self, row: int) -> None:
        """Give back the memory of a suspended job (called by the simulation)."""
        memory = self.suspended.pop(row).memory
        if memory is not None:
            self.free = self.free + memory
        self.version += 1
        self.corrections += 1

    def _leave(self, job: Job) -> Allocation:
        """Take back the resources of a running job; return them."""
        _, _, allocation = self.running.remove(job.index)
        self.free = self.free + allocation
        self.version += 1
        return allocation

    def memory_of(self, allocation: Allocation) -> machines.Allocation | None:
        """Return the memory of an allocation on machines, which a suspended job keeps; None without any."""
        cluster = self.cluster
        if not isinstance(cluster, Machines) or MEMORY not in cluster.resources:
            return None
        amounts = np.zeros_like(allocation.amounts)
        column = list(cluster.resources).index(MEMORY)
        amounts[:, column] = allocation.amounts[:, column]
        return machines.Allocation(allocation.machines, amounts) if amounts.any() else None

    def wake(self, at: int | None, *, planned: bool = False) -> None:
        """Schedule a pass at a future time [s], irrespective of other events.

        Parameters
        ----------
        at : int or None
            The time; None, if `planned`, for no such pass.
        planned : bool
            Whether this pass replaces the one that was planned before, as a plan that has changed needs no
            pass at its old time. By default, it takes place beside all others.

        Raises
        ------
        ScheduleError
            The time is not in the future, is not a whole second, or is too far ahead.
        """
        if at is None and planned:
            self.listener.on_plan(None)
            return
        if at is None or not self.now < at <= self.now + TIME_LIMIT or at != int(at):
            raise ScheduleError(
                f"wake-up at t={at} s asked for at t={self.now} s: it must be a whole second that lies ahead"
                f" (by 10^11 s at most)"
            )
        (self.listener.on_plan if planned else self.listener.on_wake)(int(at))

    def _check_test(self, job: Job, mode: int, limit: int | None) -> None:
        """Check that a start that is not of the other modes is that of a test."""
        who = f"job {job.id} at t={self.now} s"
        if mode != Mode.TESTED:
            raise ScheduleError(f"{who}: a Mode is needed to start, found {mode!r}")
        if not (isinstance(limit, int) and 1 <= limit < self.estimate(job)):
            raise ScheduleError(
                f"{who}: a test needs a limit of at least 1 s below the estimate, found {limit!r}"
            )
        if self.service_time is not None:
            raise UsageError(f"{who} cannot be tested: a run with a locality model stops no jobs")

    def _no_place(self, job: Job, allocation: Allocation | None) -> ScheduleError:
        who = f"job {job.id} at t={self.now} s"
        if allocation is None or not self.fits(job):
            until = " until it would end" if self.calendar else ""
            return ScheduleError(f"{who} {self.cluster.shortage(job, self.room_for(job))}{until}")
        return ScheduleError(
            f"{who}: {allocation!r} does not lie within what is free, or is not what it needs"
        )

    def _no_job(self, found: object) -> ScheduleError:
        return ScheduleError(f"a job of the workload is needed at t={self.now} s, found {found!r}")

    def _not_waiting(self, job: Job) -> ScheduleError:
        state = State(self.ledger.state[job.index])
        if state is State.UNSEEN:
            found = f"it is submitted at t={job.submit_time} s"
        elif state is State.REJECTED:
            found = "it was rejected"
        else:
            found = f"it started at t={self.ledger.starts[job.index]} s"
        return ScheduleError(f"job {job.id} at t={self.now} s cannot start: it must be waiting; {found}")
