"""Tracking of the busy units of each node, for images of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.kernel.system import System

Start = tuple[int, int]
"""Start of a job: the index of its run and its row."""


class Units:
    """Busy units of parallel runs on homogeneous nodes; a job takes the first free units of its nodes.

    A unit is a CPU or a GPU, or any other resource with whole amounts. Schedulers do not choose units within
    a node, but an image needs a position for each job, fixed until the job ends.

    Parameters
    ----------
    systems : sequence of System
        Systems of the parallel runs, with machines.
    units : sequence of int
        Number of units per node of each resource.

    Attributes
    ----------
    first_job : list of int
        Number of the first job of each run; the run's other jobs follow. Number 0 is no job.
    """

    def __init__(self, systems: Sequence[System], units: Sequence[int]) -> None:
        self._systems = systems
        self._nodes = len(systems[0].cluster.capacity)
        self._jobs = [len(system.jobs) for system in systems]
        self.first_job = [1, *(1 + np.cumsum(self._jobs)).tolist()]
        self._until = np.zeros(self.first_job[-1], dtype=np.int64)
        self._running = np.zeros(self.first_job[-1], dtype=np.bool_)
        self._owner = [  # job of each unit of each resource; the unit is free if that job does not run
            np.zeros((count, len(systems) * self._nodes), dtype=np.int64) for count in units
        ]
        self._seen = [0] * len(systems)

    def remaining(self, runs: Sequence[int], most: int) -> NDArray[np.uint8]:
        """Return the expected remaining busy time of each unit [s], uint8, shape (runs, units).

        All CPUs come first, with those of a node side by side, then all GPUs. A free unit has 0, and the
        maximum is `most`. A job past its expected end is expected to end in a second.

        `runs` are indices; `most` is at most 255.
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
        """Process the starts and ends since the last call, one start per run at a time."""
        news: Iterable[int] = dict.fromkeys(runs)
        while news:
            started: list[Start] = []
            ended: list[int] = []
            for run in news:
                events, seen = self._systems[run].events, self._seen[run]
                while seen < len(events):
                    row = events[seen]
                    seen += 1
                    if row >= 0:
                        started.append((run, row))
                        break
                    ended.append(self.first_job[run] + ~row)
                self._seen[run] = seen
            self._running[ended] = False
            if started:
                self._take(started)
            news = [run for run, _ in started]

    def _take(self, started: Sequence[Start]) -> None:
        """Assign the first free units of their nodes to jobs, one job per run."""
        numbers = [self.first_job[run] + row for run, row in started]
        self._until[numbers] = [self._expected_end(run, row) for run, row in started]
        given = [self._systems[run].given(row) for run, row in started]
        nodes = np.concatenate(
            [
                allocation.machines if isinstance(allocation.numbers, slice) else allocation.numbers
                for allocation in given
            ]
        )
        amounts = np.concatenate([allocation.amounts for allocation in given])
        parts = [len(allocation.amounts) for allocation in given]
        nodes += np.repeat([run * self._nodes for run, _ in started], parts)  # numbered over all runs
        takers = np.repeat(numbers, parts)
        for owner, asked in zip(self._owner, amounts.T, strict=True):
            missing = asked.astype(np.min_scalar_type(len(owner)))  # calculated faster than wider numbers
            for unit in owner:
                holders = unit.take(nodes)
                taken = ~self._running.take(holders) & (missing > 0)
                missing -= taken
                np.putmask(holders, taken, takers)
                unit[nodes] = holders
        self._running[numbers] = True

    def _expected_end(self, run: int, row: int) -> int:
        """Return the expected end of a job: its start plus requested time plus the penalty of its placement.

        (Policies use the requested time alone: they do not know the penalties.)
        """
        system = self._systems[run]
        job = system.jobs[row]
        penalty = system.expected_penalty(job, system.given(row))
        return system.ledger.start_of(row) + max(1, round(job.requested_time + penalty))
