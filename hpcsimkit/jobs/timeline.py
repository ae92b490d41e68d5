"""Step functions over time: numbers of waiting jobs and busy nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Curve", "Steps", "Sweep"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Curve:
    """A step function: each value holds until the next time; before the first time it is 0.

    Attributes
    ----------
    time : array of int64, shape (changes,)
        Strictly increasing times [s of the log's clock].
    value : array of float64, shape (changes,)
        Values from each time on.
    """

    time: Integers
    value: NDArray[np.float64]

    @classmethod
    def of_changes(cls, time: ArrayLike, change: ArrayLike) -> Curve:
        """Return the cumulative sum of changes, given in any order; simultaneous changes are added.

        >>> curve = Curve.of_changes([4, 0, 4, 9], [-2, 3, 1, -2])
        >>> curve.time.tolist(), curve.value.tolist()
        ([0, 4, 9], [3.0, 2.0, 0.0])
        """
        instants, position = np.unique(np.asarray(time, dtype=np.int64), return_inverse=True)
        changes = np.bincount(position, weights=np.asarray(change, dtype=float), minlength=len(instants))
        return cls(instants, np.cumsum(changes))

    def mean(self, begin: int, end: int) -> float:
        """Return the exact mean from `begin` to a later `end` [s].

        >>> Curve.of_changes([0, 4, 9], [3, -1, -2]).mean(2, 12)
        1.6
        """
        length = np.diff(np.clip(np.append(self.time, end), begin, end))
        return float(np.dot(self.value, length.astype(float))) / (end - begin)


@dataclass(frozen=True, eq=False)
class Steps:
    """Waiting jobs and busy nodes as step functions: each value holds until the next time.

    Before the first time both are 0. Consecutive rows differ.

    Attributes
    ----------
    time : array of int64, shape (changes,)
        Strictly increasing times [s of the log's clock].
    waiting : array of int64, shape (changes,)
        Number of waiting jobs.
    busy : array of int64, shape (changes,)
        Number of busy nodes.
    """

    time: Integers
    waiting: Integers
    busy: Integers

    @classmethod
    def of(cls, time: ArrayLike, waiting: ArrayLike, busy: ArrayLike) -> Steps:
        """Return steps from values at strictly increasing times; rows without a change are omitted.

        >>> Steps.of([0, 4, 7], waiting=[1, 1, 0], busy=[2, 2, 2]).time.tolist()
        [0, 7]
        """
        columns = [np.asarray(column, dtype=np.int64) for column in (time, waiting, busy)]
        changed = (np.diff(columns[1], prepend=0) != 0) | (np.diff(columns[2], prepend=0) != 0)
        return cls(*(column[changed] for column in columns))

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The instants of a schedule, and the submission, start and end of each job as positions among them.

    Attributes
    ----------
    time : array of int64, shape (instants,)
        Strictly increasing times [s].
    submit, start, end : array of int64, shape (jobs,)
        Positions in `time`.
    nodes : array of int64, shape (jobs,)
        Sizes of the jobs.

    Examples
    --------
    >>> sweep = Sweep.of(submit=[0, 1], start=[0, 5], end=[5, 9], nodes=[3, 2])
    >>> sweep.time.tolist(), sweep.waiting.tolist(), sweep.busy.tolist()
    ([0, 1, 5, 9], [0, 1, 0, 0], [3, 3, 2, 0])
    """

    time: Integers
    submit: Integers
    start: Integers
    end: Integers
    nodes: Integers

    @classmethod
    def of(cls, submit: ArrayLike, start: ArrayLike, end: ArrayLike, nodes: ArrayLike) -> Sweep:
        """Return the sweep of jobs that all ran; each array has shape (jobs,), times in seconds."""
        columns = [np.asarray(column, dtype=np.int64) for column in (submit, start, end)]
        time, position = np.unique(np.concatenate(columns), return_inverse=True)
        of_submit, of_start, of_end = np.split(position, 3)
        return cls(time, of_submit, of_start, of_end, np.asarray(nodes, dtype=np.int64))

    @property
    def waiting(self) -> Integers:
        """Number of waiting jobs from each instant to the next, int64, shape (instants,)."""
        return self._level((self.submit, 1), (self.start, -1))

    @cached_property
    def busy(self) -> Integers:
        """Number of busy nodes from each instant to the next, int64, shape (instants,)."""
        return self._level((self.start, self.nodes), (self.end, -self.nodes))

    @property
    def steps(self) -> Steps:
        """Waiting jobs and busy nodes as step functions."""
        return Steps.of(self.time, self.waiting, self.busy)

    def _level(self, *changes: tuple[Integers, Any]) -> Integers:
        """Return the cumulative sum of changes (positions of instants, amounts)."""
        total = np.zeros(len(self.time), dtype=np.int64)
        for instants, amount in changes:
            np.add.at(total, instants, amount)
        return np.cumsum(total)
