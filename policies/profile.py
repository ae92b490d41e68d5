"""What will be free when: the plan behind reservations of many jobs, on any cluster and on counted nodes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from hpcsimkit.cluster import Allocation, Cluster, Level
from hpcsimkit.job import Job

__all__ = ["LevelProfile", "Profile"]


class LevelProfile:
    """A level as a step function of time, from now to eternity, on any cluster.

    A job fits an interval if it fits what is free throughout: it does not move while it runs.

    Parameters
    ----------
    cluster : Cluster
        Whose levels these are.
    now : int
        Where it begins [s].
    level : Level
        What is free from then on.

    Examples
    --------
    >>> from hpcsimkit.cluster import Nodes
    >>> profile = LevelProfile(Nodes(4), now=0, level=1)
    >>> profile.grow(10, 3)
    >>> job = Job(index=0, id=1, submit_time=0, run_time=5, requested_time=5, nodes=2)
    >>> start, allocation = profile.earliest(job, duration=5, after=0)
    >>> profile.occupy(start, start + 5, allocation)
    >>> start, allocation, profile.levels
    (10, 2, [1, 2, 4])
    """

    def __init__(self, cluster: Cluster, now: int, level: Level) -> None:
        self.cluster = cluster
        self.times = [now]
        self.levels = [level]

    # --- reading -------------------------------------------------------------------------------------

    @property
    def begin(self) -> int:
        """Where it begins [s]."""
        return self.times[0]

    def level(self, duration: int, free: Level, own: Allocation | None = None) -> Level:
        """Return what may be used from now for a duration without touching anybody's reservation.

        Parameters
        ----------
        duration : int
            How long [s].
        free : Level
            What is free now.
        own : Allocation, optional
            What the job's own reservation holds all that time.
        """
        least = self._least(duration)
        return self.cluster.common(free, least if own is None else least + own)

    def fits(self, job: Job, duration: int) -> bool:
        """Tell whether a job fits from the beginning of the profile for a duration [s]."""
        return self.cluster.fits(job, self._least(duration))

    def earliest(self, job: Job, duration: int, after: int) -> tuple[int, Allocation]:
        """Find the earliest hole for a job and so many seconds that does not begin before `after`.

        Returns
        -------
        (int, Allocation)
            When it begins [s], and the first machines that are free throughout.
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

    def earlier(self, job: Job, duration: int, start: int, allocation: Allocation) -> tuple[int, Allocation]:
        """Find the earliest hole for a job whose reservation is there from `start` on; see :meth:`earliest`.

        What the reservation itself holds is there for it. If there is nothing earlier, it stays.
        """
        self.release(start, start + duration, allocation)
        earlier, other = self.earliest(job, duration, self.begin)
        self.occupy(start, start + duration, allocation)
        return (earlier, other) if earlier < start else (start, allocation)

    def _least(self, duration: int) -> Level:
        """Return what is free from the beginning of the profile throughout a duration [s]."""
        least = self.levels[0]
        for level in self.levels[1 : bisect_left(self.times, self.begin + duration)]:
            least = self.cluster.common(least, level)
        return least

    # --- changing ------------------------------------------------------------------------------------

    def grow(self, at: int, allocation: Allocation) -> None:
        """Let an allocation become free at an instant [s] that is not before the last step."""
        level = self.levels[-1] + allocation
        if at == self.times[-1]:
            self.levels[-1] = level
        else:
            self.times.append(at)
            self.levels.append(level)

    def advance(self, now: int) -> None:
        """Forget what lies before now [s]."""
        position = bisect_right(self.times, now) - 1
        if position > 0:
            del self.times[:position], self.levels[:position]
        if self.times[0] < now:
            self.times[0] = now

    def occupy(self, start: int, end: int, allocation: Allocation) -> None:
        """Take an allocation in [start, end) [s]."""
        levels, steps = self.levels, self._cut_out(start, end)
        for position in steps:
            levels[position] = levels[position] - allocation
        self._join(steps.stop)
        self._join(steps.start)

    def release(self, start: int, end: int, allocation: Allocation) -> None:
        """Give an allocation back in [start, end) [s]."""
        levels, steps = self.levels, self._cut_out(start, end)
        for position in steps:
            levels[position] = levels[position] + allocation
        self._join(steps.stop)
        self._join(steps.start)

    def replace(self, start: int, end: int, planned: Allocation, actual: Allocation) -> bool:
        """Take another allocation than planned in [start, end) [s]; tells whether that changes anything."""
        if np.array_equal(actual, planned):
            return False
        self.release(start, end, planned)
        self.occupy(start, end, actual)
        return True

    # --- steps ---------------------------------------------------------------------------------------

    def _cut_out(self, start: int, end: int) -> range:
        """Make steps begin at two instants; returns the positions of those between."""
        return range(self._cut(start), self._cut(end)) if end > start else range(0)

    def _cut(self, at: int) -> int:
        """Make a step begin at an instant; returns its position."""
        position = bisect_left(self.times, at)
        if position == len(self.times) or self.times[position] != at:
            self.times.insert(position, at)
            self.levels.insert(position, self.levels[position - 1])
        return position

    def _join(self, position: int) -> None:
        """Remove a step on the level of the one before it."""
        if 0 < position < len(self.times) and self._same(position):
            del self.times[position], self.levels[position]

    def _same(self, position: int) -> bool:
        return np.array_equal(self.levels[position], self.levels[position - 1])


class Profile(LevelProfile):
    """Free nodes as a step function of time: the same on counted nodes, faster.

    Whichever nodes a reservation gets, none is in the way of another: what is free throughout an interval is
    a matter of numbers.

    Parameters
    ----------
    now : int
        Where it begins [s].
    free : int
        Free nodes from then on.

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
        """Return all free nodes: a job that fits the plan may have any of them."""
        return free

    def fits(self, job: Job, duration: int) -> bool:
        """Tell whether enough nodes are free from the beginning of the profile for a duration [s]."""
        nodes = job.nodes
        end = self.times[0] + duration
        for at, free in zip(self.times, self.levels, strict=True):
            if at >= end:
                return True
            if free < nodes:
                return False
        return True

    def earliest(self, job: Job, duration: int, after: int) -> tuple[int, int]:
        """Find the earliest hole of enough nodes and seconds that does not begin before `after`."""
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

    def earlier(self, job: Job, duration: int, start: int, allocation: int) -> tuple[int, int]:
        """Find the earliest hole for a job whose reservation is there from `start` on.

        Where the hole overlaps the reservation's present place, its own nodes are there for it; so nodes
        must be free only from the new start to the present one, or to the end if that comes first.
        """
        times, levels = self.times, self.levels
        position, last = 0, bisect_left(times, start)
        while position < last:
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

    def release(self, start: int, end: int, allocation: int) -> None:
        """Give nodes back in [start, end) [s]."""
        self.occupy(start, end, -allocation)

    def replace(self, start: int, end: int, planned: int, actual: int) -> bool:
        """Do nothing: nodes are nodes."""
        return False

    def _same(self, position: int) -> bool:
        return self.levels[position] == self.levels[position - 1]
