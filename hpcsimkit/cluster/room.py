"""Backfilling on machines: the blocked job must still fit at its shadow time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.cluster.base import Room
from hpcsimkit.cluster.request import Mask, Need, Places

__all__ = ["FORBIDDEN", "MachineRoom"]

FORBIDDEN = -1
"""Amount that marks an unusable machine in a level."""


class Spare(NamedTuple):
    """What the blocked job leaves at its shadow time.

    Attributes
    ----------
    enough : array of bool, shape (machines,)
        Machines that are enough for a node of the blocked job.
    machines : int
        Number of those that it leaves.
    quotas : list of (array of bool, int)
        For each count of its constraint, the machines that count, and how many of them it leaves.
    """

    enough: Mask
    machines: int
    quotas: list[tuple[Mask, int]]


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
    _beyond: tuple[Need, MachineLevel | None] | None = field(default=None, init=False, repr=False)
    _spare: Spare | None = field(default=None, init=False, repr=False)

    def beyond(self, need: Need) -> MachineLevel | None:
        """Return the capacity in which a job fits that runs beyond the shadow time, or None.

        The last answer is kept until a job takes some capacity: it is needed once more to place the job.
        """
        if self._beyond is None or self._beyond[0] is not need:
            level = self.sparing(need)
            self._beyond = need, level if level is not None and need.fits(level) else None
        return self._beyond[1]

    def take(self, allocation: Allocation, *, beyond: bool) -> None:
        """Deduct a job that has just been started, and that runs beyond the shadow time or not."""
        self.free = self.free - allocation
        self._beyond = None
        if beyond:
            self.later, self._spare = self.later - allocation, None

    def sparing(self, need: Need) -> MachineLevel | None:
        """Return the capacity available to a job that runs beyond the shadow time, or None if there is none.

        If both requests are per node, the job may use all machines except the last ones that the head needs;
        if the job has counts, it may use those that count before the others.
        If the head's request is pooled, for any machines, the job may use any machines that leave sufficient
        totals. In all other cases, it is confined to the resources that remain on the first machines where
        the head fits.
        """
        head, later = self.head, self.later
        if not head.spread and not need.spread:
            return self._beside_head(need)
        if head.by_totals and not need.exclusive:
            left = later.sum(axis=0) - need.totals()
            return self.free if head.within(left.tolist()) else None
        if head.by_totals and not need.spread:
            level = self._beside_totals(need)
            if need.fits(level):
                return level
        kept = head.take(later, np.flatnonzero(head.usable(later)))
        return None if kept is None else np.minimum(self.free, later - kept)

    def _beside_totals(self, need: Need) -> MachineLevel:
        """Return the free capacity without the machines that are too large for a job that takes whole ones.

        Any machines that remain leave the totals of the head: n of them take at most n times the largest.
        """
        head, capacity = self.head, need.shape.capacity
        spare = (self.later.sum(axis=0) - head.totals()) // need.nodes
        free = self.free.copy("K")
        for k, _ in head.asked:
            free[capacity[:, k] > spare[k]] = FORBIDDEN
        return free

    def _beside_head(self, need: Need) -> MachineLevel:
        """Return the free capacity without the machines that the head needs."""
        head, later = self.head, self.later
        if self._spare is None:
            self._spare = _left_by(head, later)
        enough, spare, quotas = self._spare
        if need.nodes <= min([spare, *(most for _, most in quotas)]):
            return self.free
        taken = need.shape.capacity if need.exclusive else need.amounts
        critical = np.flatnonzero(enough & ~head.usable(later - taken) & need.usable(self.free))
        if need.counts:  # those that count first
            counts = np.sum([each.machines[critical] for each in need.counts], axis=0)
            critical = critical[np.argsort(-counts, kind="stable")]
        kept = _beyond(critical, spare, quotas)
        if not len(kept):
            return self.free
        free = self.free.copy("K")
        free[kept] = FORBIDDEN
        return free


def _left_by(head: Need, later: MachineLevel) -> Spare:
    """Return what a blocked job with a demand per node leaves of the capacity at its shadow time."""
    enough = head.usable(later)
    quotas = [(each, int(np.count_nonzero(enough & each)) - number) for each, number in head.quotas]
    return Spare(enough, int(np.count_nonzero(enough)) - head.nodes, quotas)


def _beyond(critical: Places, spare: int, quotas: list[tuple[Mask, int]]) -> Places:
    """Return the critical machines, best first, beyond the number that can be spared, in all and by quota."""
    if not quotas:
        return critical[max(spare, 0) :]
    left = [spare, *(most for _, most in quotas)]
    beyond = []
    for machine in critical.tolist():
        inside = [0, *(place for place, (machines, _) in enumerate(quotas, 1) if machines[machine])]
        if all(left[place] > 0 for place in inside):
            for place in inside:
                left[place] -= 1
        else:
            beyond.append(machine)
    return np.array(beyond, dtype=np.intp)
