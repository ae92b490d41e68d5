"""How many nodes will be free when: the plan behind reservations of many jobs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

__all__ = ["Profile"]


class Profile:
    """Free nodes as a step function of time, from now to eternity.

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
    >>> profile.earliest(nodes=2, duration=5, after=0), profile.earliest(nodes=1, duration=50, after=0)
    (10, 0)
    """

    __slots__ = ("free", "times")

    def __init__(self, now: int, free: int) -> None:
        self.times = [now]
        self.free = [free]

    def advance(self, now: int) -> None:
        """Forget what lies before now [s]."""
        position = bisect_right(self.times, now) - 1
        if position > 0:
            del self.times[:position], self.free[:position]
        if self.times[0] < now:
            self.times[0] = now

    def occupy(self, start: int, end: int, nodes: int) -> None:
        """Take nodes in [start, end) [s]; a negative number gives them back."""
        if end <= start:
            return
        first, last = self._cut(start), self._cut(end)
        free = self.free
        for position in range(first, last):
            free[position] -= nodes
        self._join(last)
        self._join(first)

    def _cut(self, at: int) -> int:
        """Make a step begin at an instant; returns its position."""
        position = bisect_left(self.times, at)
        if position == len(self.times) or self.times[position] != at:
            self.times.insert(position, at)
            self.free.insert(position, self.free[position - 1])
        return position

    def _join(self, position: int) -> None:
        """Remove a step that is as high as the one before it."""
        if 0 < position < len(self.times) and self.free[position] == self.free[position - 1]:
            del self.times[position], self.free[position]

    def fits(self, nodes: int, duration: int) -> bool:
        """Tell whether so many nodes are free from the beginning of the profile for a duration [s]."""
        end = self.times[0] + duration
        for at, free in zip(self.times, self.free, strict=True):
            if at >= end:
                return True
            if free < nodes:
                return False
        return True

    def earliest(self, nodes: int, duration: int, after: int) -> int:
        """Return the earliest start, not before `after`, of a hole of so many nodes and seconds."""
        times, free = self.times, self.free
        last = len(times) - 1
        position = max(bisect_right(times, after) - 1, 0)
        while True:
            while free[position] < nodes:
                position += 1
            start = max(times[position], after)
            end = start + duration
            while position < last and times[position + 1] < end:
                position += 1
                if free[position] < nodes:
                    break
            else:
                return start

    def earlier(self, nodes: int, duration: int, start: int) -> int:
        """Return the earliest start to which a reservation could move that now begins at `start`.

        Where the hole overlaps the reservation's present place, its own nodes are there for it; so nodes
        must be free only from the new start to the present one, or to the end if that comes first.
        """
        times, free = self.times, self.free
        position, last = 0, bisect_left(times, start)
        while position < last:
            if free[position] < nodes:
                position += 1
                continue
            begin = times[position]
            end = begin + duration
            position += 1
            while position < last and free[position] >= nodes and times[position] < end:
                position += 1
            if position == last or times[position] >= end:
                return begin
        return start
