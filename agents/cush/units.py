"""Which units of each node are busy, and until when: where jobs lie in a picture of the cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.system import System

__all__ = ["Units"]


class Units:
    """Follows a run on equal nodes; a job takes the first free units of the nodes it was given.

    A unit is a CPU, a GPU: whatever a node has whole numbers of. Which of its own units a node gives to which
    job is of no importance to anybody; in a picture it must be said, and stay so until the job ends.

    Parameters
    ----------
    system : System
        Of the run, with machines.
    units : sequence of int
        Of each resource, how many a node has.
    """

    def __init__(self, system: System, units: Sequence[int]) -> None:
        nodes = len(system.cluster.capacity)
        self._system = system
        self._until = np.zeros(nodes * sum(units), dtype=np.int64)  # when it is expected to be free, 0: it is
        ends = np.cumsum([nodes * count for count in units]).tolist()
        self._kinds = [  # the units of each resource, shape (nodes, units of a node)
            self._until[end - nodes * count : end].reshape(nodes, count)
            for end, count in zip(ends, units, strict=True)
        ]
        self._held: dict[int, list[NDArray[np.bool_]]] = {}
        self._seen = 0

    def remaining(self, most: int) -> NDArray[np.uint8]:
        """Return for how many seconds each unit is still expected to be busy, uint8, shape (units,).

        First all CPUs, those of a node side by side, then all GPUs; 0 where it is free, `most` at most. Who
        is expected to have ended is expected to end in a second.
        """
        self._follow()
        left = self._until - self._system.now
        np.maximum(left, 1, out=left)
        np.minimum(left, most, out=left)
        left *= self._until > 0
        return left.astype(np.uint8)

    def _follow(self) -> None:
        """Take in what has started and ended since it was asked last."""
        events = self._system.events
        for event in events[self._seen :]:
            if event >= 0:
                self._take(event)
            else:
                self._give_back(~event)
        self._seen = len(events)

    def _take(self, row: int) -> None:
        """Let a job have the first free units of its nodes."""
        allocation = self._system.given(row)
        until, held = self._expected_end(row), []
        for units, amounts in zip(self._kinds, allocation.amounts.T, strict=True):
            there = units[allocation.numbers]
            free = there == 0
            taken = free & (free.cumsum(axis=1) <= amounts[:, None])
            there[taken] = until
            units[allocation.numbers] = there
            held.append(taken)
        self._held[row] = held

    def _give_back(self, row: int) -> None:
        """Let the units of a job be free."""
        numbers = self._system.given(row).numbers
        for units, taken in zip(self._kinds, self._held.pop(row), strict=True):
            there = units[numbers]
            there[taken] = 0
            units[numbers] = there

    def _expected_end(self, row: int) -> int:
        """Return when a job is expected to end: after what it requested and what its placement costs."""
        system = self._system
        job = system.jobs[row]
        penalty = system.expected_penalty(job, system.given(row))
        return system.starts[row] + max(1, round(job.requested_time + penalty))
