"""Logs, split into training jobs and test sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from hpcsimkit.agents.rlbackfilling.seat import Mode
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import Logs
from hpcsimkit.reproductions.rlbackfilling.published_numbers import SEEDS
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.reproductions.split_logs import PublishedLog

__all__ = ["AS_PUBLISHED", "CODE", "FULL", "JOBS", "QUICK", "Scale", "Trace", "Traces", "Way"]

CODE = "rlbackfilling"
JOBS = 1024
"""Number of jobs of a test sequence."""

LEAST_JOBS = 3 * JOBS
"""Minimum number of jobs of a log: two test sequences, and some training jobs."""

PUBLISHED_SLICE = 10_000
"""Number of jobs, from the start of each log, that the paper uses for training."""

NAMES = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"lublin[-_]?(1|256)$": "Lublin-1",
    r"lublin[-_]?(2|256[-_]?new2)$": "Lublin-2",
}
"""Names of logs in tables, by patterns that match the beginning of the file name."""


class Way(NamedTuple):
    """Training protocol of an agent.

    Parameters
    ----------
    mode : {"unguarded", "guarded", "penalty"}
        Protection of the blocked job against delays.
    evolved : bool
        Whether the agent has seven weights, trained by the cross-entropy method from *shortest first*.
    """

    mode: Mode
    evolved: bool = False

    @property
    def greedy(self) -> tuple[bool, ...]:
        """Greedy settings under test: cross-entropy agents are only greedy, others are also sampled."""
        return (True,) if self.evolved else (False, True)

    def __str__(self) -> str:
        return f"{self.mode}{', evolved' * self.evolved}"


AS_PUBLISHED, EVOLVED = Way("unguarded"), Way("unguarded", evolved=True)

WAYS_AS_PUBLISHED = (AS_PUBLISHED, EVOLVED)
"""Training protocols of agents in the published test."""


@dataclass(frozen=True)
class Scale:
    """Size preset of the experiment.

    Parameters
    ----------
    sequences : int
        Number of test sequences of unseen jobs; fewer if the log has no more non-overlapping ones.
    published_sequences : int
        Number of sequences of the published test.
    draws : int
        Number of runs of a stochastic policy on each sequence.
    steps : int
        Number of decisions used to train an agent with the published algorithm.
    evolved_steps : int
        Number of decisions used to train an agent with the cross-entropy method: many more in the same time.
    orders : tuple of str
        Base schedulers for which agents backfill.
    ways : tuple of Way
        Training protocols of agents trained on the first fifth of each log; the first is the one of all
        tables.
    published : bool
        Whether to include training and test as published, on the paper's logs.
    noises : tuple of float
        Errors of estimates in figure 1: 0.05 is "+5 %".
    noise_jobs : int or None
        Number of jobs of the log in figure 1; None for all.
    """

    sequences: int = 30
    published_sequences: int = 10
    draws: int = 2
    steps: int = 100_000
    evolved_steps: int = 600_000
    orders: tuple[str, ...] = ("fcfs", "sjf")
    ways: tuple[Way, ...] = (AS_PUBLISHED, EVOLVED)
    published: bool = True
    noises: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 1.0)
    noise_jobs: int | None = None


FULL = Scale()
QUICK = Scale(
    sequences=10,
    draws=2,
    steps=50_000,
    evolved_steps=200_000,
    orders=("fcfs",),
    ways=(AS_PUBLISHED, EVOLVED),
    noise_jobs=10_000,
)


class Trace(PublishedLog):
    """A log.

    Examples
    --------
    >>> files = "HPC2N-2002-2.2-cln.swf.gz", "lublin_256.swf", "KTH.swf"
    >>> [Trace(Path(name), FULL, 0).name for name in files]
    ['HPC2N', 'Lublin-1', 'KTH']
    """

    NAMES, CODE, JOBS, LEAST_JOBS = NAMES, CODE, JOBS, LEAST_JOBS
    scale: Scale

    @cached_property
    def slice(self) -> Workload:
        """Training jobs of the published protocol."""
        return self.log.first(PUBLISHED_SLICE)

    @cached_property
    def published(self) -> SequenceSet:
        """Sequences of the published test; the seed is that of the experiment if the paper's is unknown."""
        return self.drawn("published", SEEDS.get(self.name, self.seed), self.scale.published_sequences)


class Traces(Logs[Trace]):
    """All logs."""

    scale: Scale

    def log_of(self, path: Path) -> Trace:
        """Return the log of a file."""
        return Trace(path, self.scale, self.seed)

    @property
    def of_the_paper(self) -> list[Trace]:
        """Logs of table 4."""
        return [trace for trace in self.all if trace.name in SEEDS]
