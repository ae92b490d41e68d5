"""Which units of each node are busy, and until when: where jobs lie in a picture of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.system import System

__all__ = ["Units"]


class _Change(NamedTuple):
    """A job of a run starts, or ends."""

    run: int
    row: int
    starts: bool


class Units:
    """Follows runs on equal nodes, side by side; a job takes the first free units of the nodes it was given.

    A unit is a CPU, a GPU: whatever a node has whole numbers of. Which of its own units a node gives to which
    job is of no importance to anybody; in a picture it must be said, and stay so until the job ends.

    Parameters
    ----------
    systems : sequence of System
        Of the runs, with machines.
    units : sequence of int
        Of each resource, how many a node has.
    """

    def __init__(self, systems: Sequence[System], units: Sequence[int]) -> None:
        self._systems = systems
        self._nodes = len(systems[0].cluster.capacity)
        self._jobs = [len(system.jobs) for system in systems]
        self._first_job = [1, *(1 + np.cumsum(self._jobs)).tolist()]  # number 0 is nobody's
        self._until = np.zeros(self._first_job[-1], dtype=np.int64)
        self._owner = [  # of each unit of each resource, by number; 0 if it is free
            np.zeros((len(systems) * self._nodes, count), dtype=np.int32) for count in units
        ]
        self._seen = [0] * len(systems)

    def remaining(self, runs: Sequence[int], most: int) -> NDArray[np.uint8]:
        """Return for how many seconds each unit is still expected to be busy, uint8, shape (runs, units).

        First all CPUs, those of a node side by side, then all GPUs; 0 where it is free, `most` at most. Who
        is expected to have ended is expected to end in a second.

        Parameters
        ----------
        runs : sequence of int
            Which of the runs.
        most : int
            Up to 255.
        """
        self._follow(runs)
        now = np.repeat([system.now for system in self._systems], self._jobs)
        left = np.zeros(len(self._until), dtype=np.uint8)
        left[1:] = (self._until[1:] - now).clip(1, most)
        of_runs = (owner.reshape(len(self._systems), -1)[runs] for owner in self._owner)
        return np.hstack([left[owner] for owner in of_runs])

    def _follow(self, runs: Sequence[int]) -> None:
        """Take in what has started and ended since it was asked last, all runs at a time."""
        for changes in zip_longest(*map(self._news, runs)):
            started = [change for change in changes if change is not None and change.starts]
            ended = [change for change in changes if change is not None and not change.starts]
            if started:
                self._take(started)
            if ended:
                self._give_back(ended)

    def _news(self, run: int) -> list[_Change]:
        events, seen = self._systems[run].events, self._seen[run]
        self._seen[run] = len(events)
        return [_Change(run, row if row >= 0 else ~row, row >= 0) for row in events[seen:]]

    def _take(self, started: Sequence[_Change]) -> None:
        """Let jobs, one a run, have the first free units of their nodes."""
        numbers = [self._number(change) for change in started]
        self._until[numbers] = [self._expected_end(change) for change in started]
        amounts = np.concatenate([self._systems[run].given(row).amounts for run, row, _ in started])
        node, number = self._places(started, numbers)
        for owner, amount in zip(self._owner, amounts.T, strict=True):
            there = owner[node]
            free = there == 0
            taken = free & (free.cumsum(axis=1) <= amount[:, None])
            owner[node] = np.where(taken, number, there)

    def _give_back(self, ended: Sequence[_Change]) -> None:
        """Let the units of jobs, one a run, be free."""
        node, number = self._places(ended, [self._number(change) for change in ended])
        for owner in self._owner:
            there = owner[node]
            owner[node] = np.where(there == number, 0, there)

    def _places(
        self, changes: Sequence[_Change], numbers: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the nodes of jobs, those of all runs counted on; and to whom each belongs, as a column."""
        given = [self._systems[run].given(row) for run, row, _ in changes]
        nodes = [each.machines if isinstance(each.numbers, slice) else each.numbers for each in given]
        before = [run * self._nodes for run, _, _ in changes]
        counts = list(map(len, nodes))
        owner = np.array(numbers, dtype=np.int32).repeat(counts)
        return np.concatenate(nodes) + np.repeat(before, counts), owner[:, None]

    def _number(self, change: _Change) -> int:
        """Return the number by which the job is known here."""
        return self._first_job[change.run] + change.row

    def _expected_end(self, change: _Change) -> int:
        """Return when a job is expected to end: after what it requested and what its placement costs.

        (Policies expect it to end after what it requested: they know nothing of penalties.)
        """
        system, row = self._systems[change.run], change.row
        job = system.jobs[row]
        penalty = system.expected_penalty(job, system.given(row))
        return system.starts[row] + max(1, round(job.requested_time + penalty))
