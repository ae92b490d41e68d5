"""The capacity of a simulated cluster: free capacity, and its expected releases."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from hpcsimkit.cluster.calendar import Calendar
from hpcsimkit.cluster.closures import Closures
from hpcsimkit.cluster.opaque import Allocation, AnyCluster, Level
from hpcsimkit.errors import ScheduleError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.results.attempts import Outcome

__all__ = ["Capacity", "Listener", "Running"]


NO_CALENDAR = Calendar()
"""The calendar of runs without one; hot paths compare with it first, as that calls no function."""


class Listener:
    """Methods that the system calls after an action of the policy; here they do nothing.

    Attributes
    ----------
    policy : Policy or None
        The policy as it was given: the run acts on a copy of it.
    """

    policy: Any = None

    def on_start(self, job: Job, allocation: Allocation) -> None:
        """Called when a job has started."""

    def on_test(self, job: Job) -> None:
        """Called when a job has started that is to be stopped by the end of its estimate."""

    def on_reject(self, job: Job) -> None:
        """Called when a job has been rejected."""

    def on_wake(self, at: int) -> None:
        """Called when the policy has requested a pass at a future time [s]."""

    def on_plan(self, at: int | None) -> None:
        """Called when the policy has planned a pass at a future time [s], or none."""

    def on_stop(self, job: Job, why: Outcome, requeue: bool, delay: int) -> None:
        """Called when a running job is to be stopped."""

    def on_suspend(self, job: Job, allocation: Allocation) -> None:
        """Called when a running job has been suspended."""

    def on_resume(self, job: Job) -> None:
        """Called when a suspended job has been resumed."""

    def on_take(self, capacity: Allocation, until: int, number: int) -> None:
        """Called when capacity has been taken, with the number by which it is given back."""

    def on_block(self, job: Job) -> None:
        """Called when the head of the queue does not fit, before other jobs are backfilled."""

    def on_hold(self, job: Job, reason: str) -> None:
        """Called when the policy skips a waiting job until the next pass."""

    def another(self, policy: Any) -> Any:
        """Return a simulation of another policy with otherwise equal parameters."""
        raise NotImplementedError(f"{type(self).__name__} needs a method another(policy)")


class Running:
    """Running jobs by expected end.

    The expected end is the start time plus the scheduler's run-time estimate. A job that exceeds its estimate
    is always expected to end one second from now. Iteration visits a snapshot of the jobs, which may be
    stopped meanwhile.

    Parameters
    ----------
    jobs : sequence of Job
        The jobs of the run by row.
    """

    def __init__(self, jobs: Sequence[Job] = ()) -> None:
        self.jobs = jobs
        self.entries: list[tuple[int, int, Allocation]] = []
        self._entry_of: dict[int, tuple[int, int, Allocation]] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, job: Job) -> bool:
        return job.index in self._entry_of

    def __iter__(self) -> Iterator[Job]:
        return iter([self.jobs[row] for row in self.rows])

    @property
    def rows(self) -> list[int]:
        """Rows of the running jobs in the workload, by expected end."""
        return [entry[1] for entry in self.entries]

    def sort_ends(self) -> None:
        """Do nothing: a hook for DirlabOrder, which sorts the ends of the same second by expected end."""

    def overrun(self, now: int) -> bool:
        """Return whether a running job has reached or passed its expected end."""
        return bool(self.entries) and self.entries[0][0] <= now

    def expected_end(self, job: Job) -> int:
        """Return the expected end [s] of a running job; it may lie in the past."""
        return self._entry_of[job.index][0]

    def allocation(self, job: Job) -> Allocation:
        """Return the allocation of a running job."""
        return self._entry_of[job.index][2]

    def add(self, row: int, expected_end: int, allocation: Allocation) -> None:
        """Add a job that has started."""
        entry = (expected_end, row, allocation)
        self._entry_of[row] = entry
        insort(self.entries, entry)

    def remove(self, row: int) -> tuple[int, int, Allocation]:
        """Remove a job that has ended; return its expected end, row and allocation."""
        entry = self._entry_of.pop(row)
        entries = self.entries
        del entries[bisect_left(entries, entry)]
        return entry


class Capacity:
    """The capacity of a cluster at the current time.

    Attributes
    ----------
    now : int
        The simulated time [s].
    cluster : Cluster
        The machine.
    free : Level
        The capacity that is free now.
    running : Running
        Running jobs by expected end.
    version : int
        Counter of changes: job starts, job ends, rejections, new expected ends, and changes of capacity.
    corrections : int
        Counter of changes that invalidate a plan of reservations: corrected estimates of running jobs, stops,
        outages, and starts and ends of jobs of other partitions on shared machines.
    calendar : Calendar or Closures
        Capacity that is known ahead to be gone or reserved for some time.
    gone : list of (int, int, Allocation)
        Capacity that is out of order: until when [s], a number below 0, and what it is; by the time.
    changes_left : int
        Number of times that are known at which the free capacity will change: those of the calendar, and the
        ends of outages.
    arrivals_left : int
        Number of submissions that are certain to come, irrespective of the waiting jobs.
    estimate : callable
        Function ``estimate(job)`` that returns the scheduler's estimate of the time that the job will run if
        it starts now [s], >= 1.
    listener : Listener
        The object that is notified of the actions.
    """

    # Beyond 30 attributes, Python reads those of an instance more slowly, except for these.
    __slots__ = (
        "__dict__",
        "allocations",
        "calendar",
        "cluster",
        "estimate",
        "free",
        "jobs",
        "ledger",
        "listener",
        "now",
        "queue",
        "running",
        "version",
    )

    estimate: Callable[[Job], int]

    def __init__(self, cluster: AnyCluster, listener: Listener | None = None) -> None:
        self.now = 0
        self.cluster = cluster
        self.free: Level = cluster.capacity
        self.running = Running()
        self.version = self.corrections = 0
        self.calendar: Calendar | Closures = NO_CALENDAR
        self.gone: list[tuple[int, int, Allocation]] = []
        self._taken = 0
        self.changes_left = 0
        self.arrivals_left = 0
        self.listener = Listener() if listener is None else listener

    def fits(self, job: Job) -> bool:
        """Return whether the job could start now."""
        return self.cluster.fits(job, self.free if self.calendar is NO_CALENDAR else self.room_for(job))

    def room_for(
        self,
        job: Job,
        level: Level | None = None,
        stopped: Collection[Job] = (),
        seconds: int | None = None,
    ) -> Level:
        """Return the capacity that the job may use if it starts now and runs for as long as estimated.

        It is the free capacity, or a level in which some running jobs are `stopped`, except for what the
        calendar takes meanwhile. With `seconds`, the job runs for that time.
        """
        if level is None:
            level = self.free
        if self.calendar is NO_CALENDAR or not self.calendar:
            return level
        releases = self.releases
        if stopped:
            rows = {each.index for each in stopped}
            releases = [each for each in releases if each[1] not in rows]
        end = self.now + (self.estimate(job) if seconds is None else seconds)
        return self.calendar.level_for(job, level, self.now, end, releases)

    @property
    def releases(self) -> list[tuple[int, int, Allocation]]:
        """Expected time [s], tie-breaker and amount of each release of capacity, by time.

        Capacity is released by running jobs at their expected ends, and at the ends of outages.
        """
        if not self.gone:
            return self.running.entries
        releases = self.running.entries.copy()
        for outage in self.gone:  # few: faster than sorting all
            insort(releases, outage)
        return releases

    @property
    def anything_ahead(self) -> bool:
        """Whether jobs are running, or submissions or changes pending, so that waiting makes sense."""
        return bool(self.running.entries) or self.arrivals_left > 0 or self.changes_left > 0

    def take(self, capacity: Allocation, until: int, *, planned: bool = False) -> int:
        """Take free capacity out of order until a time [s]; return the number of the outage.

        If it is `planned`, the calendar has announced it, so that plans of reservations hold.

        Raises
        ------
        ScheduleError
            The capacity is not free, or the time does not lie ahead.
        """
        if not self.now < until <= self.now + TIME_LIMIT:
            raise ScheduleError(f"capacity taken until t={until} s at t={self.now} s: the end must lie ahead")
        left = self.free - capacity
        if np.min(left) < 0:
            raise ScheduleError(f"{capacity!r} cannot be taken at t={self.now} s: it is not free")
        self.free = left
        self._taken += 1
        insort(self.gone, (until, -self._taken, capacity))
        self.changes_left += 1
        self.version += 1
        self.corrections += not planned
        self.listener.on_take(capacity, until, self._taken)
        return self._taken

    def give(self, number: int, *, planned: bool = False) -> Allocation:
        """Return the capacity of an outage, by its number, to the free capacity; see :meth:`take`."""
        place = next(place for place, entry in enumerate(self.gone) if entry[1] == -number)
        _, _, capacity = self.gone.pop(place)
        self.free = self.free + capacity
        self.changes_left -= 1
        self.version += 1
        self.corrections += not planned
        return capacity
