"""All needs that the machines of a cluster have met, and which of them fit, judged all at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import MachineLevel
from hpcsimkit.need import Mask, Need

__all__ = ["NeedTable"]


class NeedTable:
    """Needs by number; it only grows.

    Parameters
    ----------
    machines, resources : int
        Of the cluster.
    """

    def __init__(self, machines: int, resources: int) -> None:
        self.needs: list[Need] = []
        self._machines = machines
        self._resources = resources

    def __len__(self) -> int:
        return len(self.needs)

    def add(self, need: Need) -> int:
        """Take in a need; returns its number."""
        self.needs.append(need)
        for name in ("amounts", "_nodes", "_simple", "_allowed"):
            self.__dict__.pop(name, None)
        return len(self.needs) - 1

    @cached_property
    def amounts(self) -> NDArray[np.int64]:
        """Amounts of each need, int64, shape (needs, resources)."""
        return np.array([need.amounts for need in self.needs], dtype=np.int64).reshape(-1, self._resources)

    @cached_property
    def _nodes(self) -> NDArray[np.int64]:
        return np.array([need.nodes for need in self.needs], dtype=np.int64)

    @cached_property
    def _simple(self) -> Mask:
        """Which needs are judged by amounts alone: machines of their own, shared with others."""
        return np.array([not (need.spread or need.exclusive) for need in self.needs], dtype=np.bool_)

    @cached_property
    def _allowed(self) -> Mask | None:
        """Which machines each need allows, shape (needs, machines); None if no need has a constraint."""
        if all(need.allowed is None for need in self.needs):
            return None
        anywhere = np.ones(self._machines, dtype=np.bool_)
        return np.array([anywhere if need.allowed is None else need.allowed for need in self.needs])

    def usable(self, numbers: NDArray[np.int64], level: MachineLevel) -> Mask:
        """Tell which machines have enough for needs that are judged by amounts alone.

        Returns
        -------
        array of bool, shape (len(numbers), machines)
        """
        amounts = self.amounts[numbers]
        enough = level[:, 0] >= amounts[:, :1]
        for k in range(1, self._resources):
            if amounts[:, k].any():
                enough &= level[:, k] >= amounts[:, k : k + 1]
        return enough if self._allowed is None else enough & self._allowed[numbers]

    def fit(self, numbers: NDArray[np.int64], level: MachineLevel) -> Mask:
        """Tell which needs fit a level, bool, shape (len(numbers),)."""
        fits = np.zeros(len(numbers), dtype=np.bool_)
        simple = self._simple[numbers]
        some = numbers[simple]
        if len(some):
            fits[simple] = np.count_nonzero(self.usable(some, level), axis=1) >= self._nodes[some]
        for place in np.flatnonzero(~simple).tolist():
            fits[place] = self.needs[numbers[place]].fits(level)
        return fits
