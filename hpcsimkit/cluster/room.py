"""Backfilling on machines: the blocked job must still fit at its shadow time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcsimkit.cluster.allocation import MachineLevel
from hpcsimkit.cluster.base import Room
from hpcsimkit.cluster.request import Mask, Need

__all__ = ["FORBIDDEN", "MachineRoom"]

FORBIDDEN = -1
"""Amount that marks an unusable machine in a level."""


@dataclass(slots=True)
class MachineRoom(Room[MachineLevel]):
    """Capacity for backfilling on machines that preserves the earliest start of the blocked job.

    Parameters
    ----------
    later : array of int64, shape (machines, resources)
        Capacity that is free at the shadow time, before the blocked job starts.
    head : Need
        Resource demand of the blocked job.
    """

    later: MachineLevel
    head: Need

    def sparing(self, need: Need) -> MachineLevel | None:
        """Return the capacity available to a job that runs beyond the shadow time, or None if there is none.

        If both requests are per node, the job may use all machines except the last ones that the head needs.
        If the head's request is pooled, the job may use any machines that leave sufficient totals. A job with
        a pooled request behind a head with a per-node request is confined to the resources that remain on the
        first machines where the head fits.
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
        """Return the machines on which the job would displace the head, and how many of them it may use."""
        enough = self.head.usable(self.later)
        taken = need.shape.capacity if need.exclusive else need.amounts
        needed = enough & ~self.head.usable(self.later - taken) & need.usable(self.free)
        return needed, int(np.count_nonzero(enough)) - self.head.nodes


def _but_for(free: MachineLevel, needed: Mask, spare: int) -> MachineLevel:
    """Return the free capacity without the needed machines, except for `spare` of them."""
    kept = np.flatnonzero(needed)[max(spare, 0) :]
    if not len(kept):
        return free
    free = free.copy("K")
    free[kept] = FORBIDDEN
    return free
