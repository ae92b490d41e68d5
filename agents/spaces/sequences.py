"""Episodes by the rules of the published simulators: consecutive jobs of a log, on an empty cluster."""

from __future__ import annotations

import numpy as np

from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

__all__ = ["Sequences"]


class Sequences(Episodes):
    """Consecutive jobs of a log; see :meth:`Scenario.sequence <hpcsimkit.envs.scenario.Scenario.sequence>`.

    SchedInspector trains on ``Sequences(log, 128, first=128, last=len(log) - 129)`` of a log's first 10 000
    jobs, RLBackfilling on ``Sequences(log, 256, first=256, last=len(log) - 257)``.

    Parameters
    ----------
    log : Workload
        Log, as :func:`~hpcsimkit.workloads.dirlab.read_published` returns it.
    jobs : int
        Number of jobs in a sequence.
    first, last : int
        Range of the start indices, from `first` to before `last`, drawn uniformly at random; by default
        all.

    Raises
    ------
    UsageError
        When sampled: the range of start indices does not fit the log.
    """

    def __init__(self, log: Workload, jobs: int, *, first: int = 0, last: int | None = None) -> None:
        self.log = log
        self.jobs = jobs
        self.first = first
        self.last = last

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw the start index of a sequence."""
        ends = len(self.log) - self.jobs + 1
        last = ends if self.last is None else self.last
        if not 0 <= self.first < last <= ends:
            raise UsageError(
                f"{self.log.name}: sequences of {self.jobs} jobs that begin at rows {self.first} to {last} "
                f"are needed, found {len(self.log)} rows"
            )
        return Scenario.sequence(self.log, int(rng.integers(self.first, last)), self.jobs)
