"""Free amounts of each machine over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["MachineLevels"]

Integers = NDArray[np.int64]


class MachineLevels(NamedTuple):
    """Free amounts of machines from a time to the machine's next row, by machine and time.

    Parameters
    ----------
    machine, time : array of int64, shape (rows,)
        Numbers of the machines, ascending, and times [s], ascending for each machine.
    free : array of int64, shape (rows, resources)
        Free amounts from the time on.
    """

    machine: Integers
    time: Integers
    free: Integers

    @classmethod
    def of(
        cls, capacity: Integers, begin: int, machines: ArrayLike, parts: tuple[Integers, ...]
    ) -> MachineLevels:
        """Return the free amounts of machines that are empty before and after all jobs.

        Parameters
        ----------
        capacity : array of int64, shape (machines, resources)
            Amounts of the empty machines of the whole cluster.
        begin, machines : int and array of int
            Time of the first row of each machine [s], before any start, and numbers of the machines.
        parts : tuple of four arrays of int64
            Machine, start [s], end [s] and amounts, shape (parts, resources), of each part of a job.

        Examples
        --------
        >>> parts = np.array([1, 1]), np.array([3, 5]), np.array([9, 7]), np.array([[1], [2]])
        >>> levels = MachineLevels.of(np.array([[4], [4]]), 0, [1], parts)
        >>> levels.time.tolist(), levels.free.ravel().tolist()
        ([0, 3, 5, 7, 9], [4, 3, 1, 3, 4])
        """
        used, start, end, amounts = parts
        first = np.asarray(machines, dtype=np.int64)
        machine = np.concatenate([first, used, used])
        time = np.concatenate([np.full(len(first), begin), start, end])
        change = np.concatenate([np.zeros_like(capacity[first]), -amounts, amounts])
        order = np.lexsort((time, machine))
        machine, time = machine[order], time[order]
        free = capacity[machine] + np.cumsum(change[order], axis=0)  # a machine's changes add up to 0
        last = np.append((np.diff(machine) != 0) | (np.diff(time) != 0), True)  # of an instant
        return cls(machine[last], time[last], free[last])
