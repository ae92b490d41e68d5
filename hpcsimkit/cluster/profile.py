"""Availability profiles: the available capacity over time, for planning the reservations of many jobs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Protocol

import numpy as np

from hpcsimkit.cluster.opaque import Allocation, Level
from hpcsimkit.jobs.job import Job

__all__ = ["LevelProfile", "Profile"]


class Capacity(Protocol):
    """The part of a cluster that a profile uses."""

    def fits(self, job: Job, level: Any) -> bool:
        """Return whether a job fits a level."""

    def place(self, job: Job, level: Any) -> Any:
        """Return an allocation for a job that fits the level."""

    def common(self, level: Any, other: Any) -> Any:
        """Return the capacity that is available in both levels."""

    def equal(self, level: Any, other: Any) -> bool:
        """Return whether two levels are the same capacity."""


class LevelProfile:
    """The available capacity of any cluster as a step function of time, from now to infinity.

    A job fits an interval if it fits the capacity that is free throughout the interval, since jobs do not
    migrate.

    Parameters
    ----------
    cluster : Capacity
        The cluster.
    now : int
        Start of the profile [s].
    level : Level
        Available capacity from then on.

    Examples
    --------
    >>> from hpcsimkit.cluster.base import Nodes
    >>> profile = LevelProfile(Nodes(4), now=0, level=1)
    >>> profile.grow(10, 3)
    >>> job = Job(index=0, id=1, submit_time=0, run_time=5, requested_time=5, nodes=2)
    >>> start, allocation = profile.earliest(job, duration=5, after=0)
    >>> profile.occupy(start, start + 5, allocation)
    >>> start, allocation, profile.levels
    (10, 2, [1, 2, 4])
    """

    def __init__(self, cluster: Capacity, now: int, level: Level) -> None:
        self.cluster = cluster
        self.times = [now]
        self.levels = [level]

    # --- reading -------------------------------------------------------------------------------------

    @property
    def begin(self) -> int:
        """The start of the profile [s]."""
        return self.times[0]

    def level(self, duration: int, free: Level, own: Allocation | None = None) -> Level:
        """Return the capacity that a job may use from now for a duration without delaying a reservation.

        Parameters
        ----------
        duration : int
            Duration [s].
        free : Level
            Capacity that is free now.
        own : Allocation, optional
            Allocation of the job's own reservation for that duration.
        """
        least = self._least(duration)
        return self.cluster.common(free, least if own is None else least + own)

    def fits(self, job: Job, duration: int) -> bool:
        """Return whether a job fits from the start of the profile for a duration [s]."""
        return self.cluster.fits(job, self._least(duration))

    def earliest(self, job: Job, duration: int, after: int) -> tuple[int, Allocation]:
        """Find the earliest feasible slot of a given duration [s] for a job, not before `after` [s].

        Returns
        -------
        (int, Allocation)
            Start of the slot [s], and an allocation on the first machines that are free throughout.
        """
        times, levels, cluster = self.times, self.levels, self.cluster
        position = max(bisect_right(times, after) - 1, 0)
        while True:
            start, last, level = max(times[position], after), position, levels[position]
            while cluster.fits(job, level):
                last += 1
                if last == len(times) or times[last] >= start + duration:
                    return start, cluster.place(job, level)
                level = cluster.common(level, levels[last])
            position += 1

    def earlier(
        self, job: Job, start: int, duration: int, allocation: Allocation, until: int
    ) -> tuple[int, Allocation]:
        """Find an earlier feasible slot for a job with a reservation at `start`; see :meth:`earliest`.

        The job may use the capacity of its own reservation. Without an earlier slot, return the current one.
        No slot that begins at or after `until` [s] is earlier, which saves the search for them.
        """
        self.release(start, start + duration, allocation)
        earlier, other = self.earliest(job, duration, self.begin)
        self.occupy(start, start + duration, allocation)
        return (earlier, other) if earlier < min(start, until) else (start, allocation)

    def _least(self, duration: int) -> Level:
        """Return the capacity that is free from the start of the profile throughout a duration [s]."""
        least = self.levels[0]
        for level in self.levels[1 : bisect_left(self.times, self.begin + duration)]:
            least = self.cluster.common(least, level)
        return least

    # --- changing ------------------------------------------------------------------------------------

    def grow(self, at: int, allocation: Allocation) -> None:
        """Add an allocation to the available capacity from an instant [s] not before the last step."""
        level = self.levels[-1] + allocation
        if at == self.times[-1]:
            self.levels[-1] = level
        else:
            self.times.append(at)
            self.levels.append(level)

    def advance(self, now: int) -> None:
        """Drop the profile before now [s]."""
        position = bisect_right(self.times, now) - 1
        if position > 0:
            del self.times[:position], self.levels[:position]
        if self.times[0] < now:
            self.times[0] = now

    def occupy(self, start: int, end: int, allocation: Allocation) -> None:
        """Subtract an allocation from the available capacity in [start, end) [s]."""
        levels, steps = self.levels, self._cut_out(start, end)
        for position in steps:
            levels[position] = levels[position] - allocation
        self._join(steps.stop)
        self._join(steps.start)

    def release(self, start: int, end: int, allocation: Allocation) -> None:
        """Add an allocation to the available capacity in [start, end) [s]."""
        levels, steps = self.levels, self._cut_out(start, end)
        for position in steps:
            levels[position] = levels[position] + allocation
        self._join(steps.stop)
        self._join(steps.start)

    def replace(self, start: int, end: int, planned: Allocation, actual: Allocation) -> bool:
        """Replace a planned by an actual allocation in [start, end) [s]; return whether they differ."""
        if np.array_equal(actual, planned):
            return False
        self.release(start, end, planned)
        self.occupy(start, end, actual)
        return True

    # --- steps ---------------------------------------------------------------------------------------

    def _cut_out(self, start: int, end: int) -> range:
        """Insert steps at two instants and return the positions of the steps between them."""
        return range(self._cut(start), self._cut(end)) if end > start else range(0)

    def _cut(self, at: int) -> int:
        """Insert a step at an instant if there is none, and return its position."""
        position = bisect_left(self.times, at)
        if position == len(self.times) or self.times[position] != at:
            self.times.insert(position, at)
            self.levels.insert(position, self.levels[position - 1])
        return position

    def _join(self, position: int) -> None:
        """Remove a step with the same available capacity as the step before it."""
        levels = self.levels
        if 0 < position < len(levels) and self.cluster.equal(levels[position], levels[position - 1]):
            del self.times[position], levels[position]


class Profile(LevelProfile):
    """The number of free nodes as a step function of time: a fast profile for homogeneous nodes.

    Nodes are interchangeable, so only their number matters for feasibility.

    Parameters
    ----------
    now : int
        Start of the profile [s].
    free : int
        Number of free nodes from then on.

    Examples
    --------
    >>> profile = Profile(0, 4)
    >>> profile.occupy(0, 10, 3)
    >>> small = Job(index=0, id=1, submit_time=0, run_time=5, requested_time=5, nodes=1)
    >>> profile.earliest(small._replace(nodes=2), 5, after=0), profile.earliest(small, 50, after=0)
    ((10, 2), (0, 1))
    """

    def __init__(self, now: int, free: int) -> None:
        self.times = [now]
        self.levels = [free]

    def level(self, duration: int, free: int, own: int | None = None) -> int:
        """Return the free nodes: a job that fits the profile may use any of them."""
        return free

    def fits(self, job: Job, duration: int) -> bool:
        """Return whether enough nodes are free from the start of the profile for a duration [s]."""
        nodes = job.nodes
        end = self.times[0] + duration
        for at, free in zip(self.times, self.levels, strict=True):
            if at >= end:
                return True
            if free < nodes:
                return False
        return True

    def earliest(self, job: Job, duration: int, after: int) -> tuple[int, int]:
        """Find the earliest feasible slot of a given duration [s] for a job, not before `after` [s]."""
        times, levels, nodes = self.times, self.levels, job.nodes
        last = len(times) - 1
        position = max(bisect_right(times, after) - 1, 0)
        while True:
            while levels[position] < nodes:
                position += 1
            start = max(times[position], after)
            end = start + duration
            while position < last and times[position + 1] < end:
                position += 1
                if levels[position] < nodes:
                    break
            else:
                return start, nodes

    def earlier(self, job: Job, start: int, duration: int, allocation: int, until: int) -> tuple[int, int]:
        """Find an earlier feasible slot for a job with a reservation at `start`.

        Where the new slot overlaps the current one, the job uses the nodes of its own reservation. So nodes
        must be free only from the new start to the current start, or to the new end if that comes first.
        """
        times, levels = self.times, self.levels
        position, last = 0, bisect_left(times, start)
        while position < last and times[position] < until:
            if levels[position] < allocation:
                position += 1
                continue
            begin = times[position]
            end = begin + duration
            position += 1
            while position < last and levels[position] >= allocation and times[position] < end:
                position += 1
            if position == last or times[position] >= end:
                return begin, allocation
        return start, allocation

    def occupy(self, start: int, end: int, allocation: int) -> None:
        """Subtract nodes from the free nodes in [start, end) [s]."""
        if end <= start:
            return
        times, levels = self.times, self.levels
        first = bisect_left(times, start)
        if first == len(times) or times[first] != start:
            times.insert(first, start)
            levels.insert(first, levels[first - 1])
        last = bisect_left(times, end, first)
        if last == len(times) or times[last] != end:
            times.insert(last, end)
            levels.insert(last, levels[last - 1])
        for position in range(first, last):
            levels[position] -= allocation
        if levels[last] == levels[last - 1]:
            del times[last], levels[last]
        if first and levels[first] == levels[first - 1]:
            del times[first], levels[first]

    def release(self, start: int, end: int, allocation: int) -> None:
        """Add nodes to the free nodes in [start, end) [s]."""
        self.occupy(start, end, -allocation)

    def replace(self, start: int, end: int, planned: int, actual: int) -> bool:
        """Do nothing, since nodes are interchangeable."""
        return False
