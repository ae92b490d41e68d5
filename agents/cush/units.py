"""Which units of each node are busy, and until when: where jobs lie in a picture of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.system import System

__all__ = ["Units"]


class _Start(NamedTuple):
    """A job of a run starts."""

    run: int
    row: int


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

    Attributes
    ----------
    first_job : list of int
        The number by which the first job of each run is known here; the others follow. Number 0 is nobody.
    """

    def __init__(self, systems: Sequence[System], units: Sequence[int]) -> None:
        self._systems = systems
        self._nodes = len(systems[0].cluster.capacity)
        self._jobs = [len(system.jobs) for system in systems]
        self.first_job = [1, *(1 + np.cumsum(self._jobs)).tolist()]
        self._until = np.zeros(self.first_job[-1], dtype=np.int64)
        self._running = np.zeros(self.first_job[-1], dtype=np.bool_)
        self._owner = [  # of each unit of each resource, by number; it is free if that job does not run
            np.zeros((count, len(systems) * self._nodes), dtype=np.int32) for count in units
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
        left = self._running.astype(np.uint8)
        left[1:] *= (self._until[1:] - now).clip(1, most).astype(np.uint8)
        parts = [np.empty((len(runs), self._nodes, len(owner)), dtype=np.uint8) for owner in self._owner]
        for part, owner in zip(parts, self._owner, strict=True):
            for column, unit in enumerate(owner):
                part[..., column] = left.take(unit.reshape(-1, self._nodes)[runs])
        return np.hstack([part.reshape(len(runs), self._nodes * part.shape[2]) for part in parts])

    def _follow(self, runs: Sequence[int]) -> None:
        """Take in what has started and ended since it was asked last, one start of each run at a time."""
        news = {run: self._news(run) for run in dict.fromkeys(runs)}
        while news:
            started: list[_Start] = []
            ended: list[int] = []
            for run, rows in news.items():
                for row in rows:
                    if row >= 0:
                        started.append(_Start(run, row))
                        break
                    ended.append(self.first_job[run] + ~row)
            self._running[ended] = False
            if started:
                self._take(started)
            news = {run: news[run] for run, _ in started}

    def _news(self, run: int) -> Iterator[int]:
        events, seen = self._systems[run].events, self._seen[run]
        self._seen[run] = len(events)
        return iter(events[seen:])

    def _take(self, started: Sequence[_Start]) -> None:
        """Let jobs, one a run, have the first free units of their nodes."""
        numbers = [self.first_job[run] + row for run, row in started]
        self._until[numbers] = [self._expected_end(start) for start in started]
        given = [self._systems[run].given(row) for run, row in started]
        nodes = np.concatenate([
            allocation.machines if isinstance(allocation.numbers, slice) else allocation.numbers
            for allocation in given
        ])  # fmt: skip
        amounts = np.concatenate([allocation.amounts for allocation in given])
        parts = [len(allocation.amounts) for allocation in given]
        nodes += np.repeat([run * self._nodes for run, _ in started], parts)  # those of all runs counted on
        takers = np.repeat(np.array(numbers, dtype=np.int32), parts)
        for owner, missing in zip(self._owner, amounts.T, strict=True):
            for unit in owner:
                there = unit.take(nodes)
                taken = ~self._running.take(there) & (missing > 0)
                missing = missing - taken
                unit[nodes] = np.where(taken, takers, there)
        self._running[numbers] = True

    def _expected_end(self, start: _Start) -> int:
        """Return when a job is expected to end: after what it requested and what its placement costs.

        (Policies expect it to end after what it requested: they know nothing of penalties.)
        """
        system, row = self._systems[start.run], start.row
        job = system.jobs[row]
        penalty = system.expected_penalty(job, system.given(row))
        return system.starts[row] + max(1, round(job.requested_time + penalty))
