"""Episodes by the rules of the published simulators: successive jobs of a log, on an empty machine."""

from __future__ import annotations

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Episodes
from hpcsimkit.scenario import Scenario
from hpcsimkit.workload import Workload

__all__ = ["Sequences"]


class Sequences(Episodes):
    """Successive jobs of a log; see :meth:`Scenario.sequence <hpcsimkit.scenario.Scenario.sequence>`.

    SchedInspector trains on ``Sequences(log, 128, first=128, last=len(log) - 129)`` of a log's first 10 000
    jobs, RLBackfilling on ``Sequences(log, 256, first=256, last=len(log) - 257)``.

    Parameters
    ----------
    log : Workload
        As :func:`~hpcsimkit.workloads.dirlab.read_published` returns it.
    jobs : int
        Jobs of a sequence.
    first, last : int
        A sequence begins at one of the rows from `first` to before `last`, all equally likely; by default
        anywhere.

    Raises
    ------
    UsageError
        When sampled: the log has no such sequences.
    """

    def __init__(self, log: Workload, jobs: int, *, first: int = 0, last: int | None = None) -> None:
        self.log = log
        self.jobs = jobs
        self.first = first
        self.last = last

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw where the sequence begins."""
        ends = len(self.log) - self.jobs + 1
        last = ends if self.last is None else self.last
        if not 0 <= self.first < last <= ends:
            raise UsageError(
                f"{self.log.name}: sequences of {self.jobs} jobs that begin at rows {self.first} to {last} "
                f"are needed, found {len(self.log)} rows"
            )
        return Scenario.sequence(self.log, int(rng.integers(self.first, last)), self.jobs)
