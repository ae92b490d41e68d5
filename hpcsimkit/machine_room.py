"""Backfilling on machines: the blocked job must still fit somewhere when its time comes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcsimkit.allocation import MachineLevel
from hpcsimkit.cluster import Room
from hpcsimkit.need import Mask, Need

__all__ = ["FORBIDDEN", "MachineRoom"]

FORBIDDEN = -1
"""What a level says of a machine that must not be used: less than nothing is left."""


@dataclass(slots=True)
class MachineRoom(Room):
    """What jobs behind a blocked one may use now without taking away its last place.

    Parameters
    ----------
    later : array of int64, shape (machines, resources)
        What is free at the shadow time, before the blocked job starts.
    head : Need
        Of the blocked job.
    """

    later: MachineLevel
    head: Need

    def sparing(self, need: Need) -> MachineLevel | None:
        """Return what a job that is still there at the shadow time may use, None if that is nothing.

        Where both need machines of their own, it may use any but the last ones that the head can start on.
        Where the head needs totals, it may be anywhere, if they leave enough. A job that needs totals behind
        a head that needs machines keeps to what the first such machines leave.
        """
        head, later = self.head, self.later
        if not head.spread and not need.spread:
            needed, spare = self._needed_for_head(need)
            return self.free if need.nodes <= spare else _but_for(self.free, needed, spare)
        if head.by_totals and not need.exclusive:
            left = later.sum(axis=0) - need.totals()
            return self.free if head.within(left.tolist()) else None
        kept = head.take(later, np.flatnonzero(head.usable(later)))
        return None if kept is None else np.minimum(self.free, later - kept)

    def _needed_for_head(self, need: Need) -> tuple[Mask, int]:
        """Return on which machines a job could run but leave too little for the head, and how many it may."""
        enough = self.head.usable(self.later)
        taken = need.shape.capacity if need.exclusive else need.amounts
        needed = enough & ~self.head.usable(self.later - taken) & need.usable(self.free)
        return needed, int(np.count_nonzero(enough)) - self.head.nodes


def _but_for(free: MachineLevel, needed: Mask, spare: int) -> MachineLevel:
    """Return what is free, without the machines that are needed beyond so many of them."""
    kept = np.flatnonzero(needed)[max(spare, 0) :]
    if not len(kept):
        return free
    free = free.copy("K")
    free[kept] = FORBIDDEN
    return free
