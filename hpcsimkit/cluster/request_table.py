"""Table of all resource demands on the machines of a cluster, for vectorised checks of which ones fit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import MachineLevel, giving
from hpcsimkit.cluster.request import Mask, Need, Places

__all__ = ["GROWING", "NeedTable"]

BY_MACHINES, BY_TOTALS, BY_ITSELF = range(3)
"""Type of check of a need: number of sufficient machines, totals over all machines, or its own method."""

GROWING = RLock()
"""Lock of a thread that adds what all runs on the same machines have in common; several may run at once."""

FEW = 4
"""So many machines at most are looked at one by one."""


class NeedTable:
    """Needs by number; entries are never removed.

    Parameters
    ----------
    machines : int
        Number of machines of the cluster.
    resources : int
        Number of resources of the cluster.
    """

    def __init__(self, machines: int, resources: int) -> None:
        self.needs: list[Need] = []
        self._resources = resources
        self._rows = np.zeros((16, resources + 3), dtype=np.int64)  # amounts, nodes, type of check, mask
        self._masks = np.ones((1, machines), dtype=np.bool_)  # allowed machines: all, or by constraint
        self._mask_of: dict[bytes, int] = {self._masks.tobytes(): 0}
        # Needs, and a level that they do not fit: one value, which threads read and write at once.
        nothing = np.zeros((machines, resources), dtype=np.int64)
        self._refused: tuple[Collection[int], MachineLevel] = (), nothing

    def __len__(self) -> int:
        return len(self.needs)

    def add(self, need: Need) -> int:
        """Add a need; return its number."""
        number = len(self.needs)
        self.needs.append(need)
        if number == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        mask = 0 if need.allowed is None else self._mask(need.allowed)
        self._rows[number] = (*need.amounts, need.nodes, _judged(need), mask)
        return number

    def _mask(self, allowed: Mask) -> int:
        number = self._mask_of.setdefault(allowed.tobytes(), len(self._masks))
        if number == len(self._masks):
            self._masks = np.vstack([self._masks, allowed])
        return number

    @property
    def amounts(self) -> NDArray[np.int64]:
        """Amounts of each need, int64, shape (needs, resources)."""
        return self._rows[: len(self), : self._resources]

    def usable(
        self, numbers: NDArray[np.int64], level: MachineLevel, machines: Places | slice = slice(None)
    ) -> Mask:
        """Return which machines (by default all) have enough for needs that are checked by machine.

        Returns
        -------
        array of bool, shape (len(numbers), number of machines)
        """
        rows, level = self._rows[numbers], level[machines]
        enough = level[:, 0] >= rows[:, :1]
        for k in range(1, self._resources):
            if rows[:, k].any():
                enough &= level[:, k] >= rows[:, k : k + 1]
        return enough if len(self._masks) == 1 else enough & self._masks[rows[:, -1]][:, machines]

    def fit(self, numbers: NDArray[np.int64], level: MachineLevel) -> Mask:
        """Return which needs fit a level, bool, shape (len(numbers),)."""
        fits = np.zeros(len(numbers), dtype=np.bool_)
        rows = self._rows[numbers]
        judged = rows[:, -2]
        some = judged == BY_MACHINES
        if some.any():
            fits[some] = np.count_nonzero(self.usable(numbers[some], level), axis=1) >= rows[some, -3]
        some = judged == BY_TOTALS
        if some.any():
            fits[some] = (level.sum(axis=0) >= rows[some, : self._resources]).all(axis=1)
        for place in np.flatnonzero(judged == BY_ITSELF).tolist():
            fits[place] = self.needs[numbers[place]].fits(level)
        return fits

    def fitting(self, numbers: Collection[int], level: MachineLevel) -> set[int]:
        """Return the numbers of the needs that fit a level, among some."""
        known, refused_at = self._refused
        before = set(numbers).intersection(known)
        risen = giving(level > refused_at).tolist() if before else []
        refused = {number for number in before if not self._may_fit(number, level, risen)}
        asked = sorted(set(numbers) - refused)
        fits = self.fit(np.array(asked, dtype=np.int64), level).tolist() if asked else ()
        found = {number for number, enough in zip(asked, fits, strict=True) if enough}
        self._refused = refused.union(asked) - found, level
        return found

    def _may_fit(self, number: int, level: MachineLevel, risen: Sequence[int]) -> bool:
        """Return whether a need that has not fitted may fit, as capacity has risen on some machines since.

        It can only fit thanks to these, such as that of a job that has ended.
        """
        need = self.needs[number]
        if len(risen) > FEW or _judged(need) != BY_MACHINES:
            return bool(risen)
        return any(need.usable_on(machine, level[machine].tolist()) for machine in risen)


def _judged(need: Need) -> int:
    if need.by_totals:
        return BY_TOTALS
    return BY_ITSELF if need.spread or need.exclusive or need.quotas else BY_MACHINES
