"""Logs, split into training jobs and test sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from hpcsimkit.agents.rlbackfilling.seat import Mode
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.rlbackfilling.published_numbers import SEEDS
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workloads.dirlab import published_starts, read_published

__all__ = ["AS_PUBLISHED", "CODE", "FULL", "JOBS", "QUICK", "Scale", "Trace", "Traces", "Way"]

CODE = "rlbackfilling"
JOBS = 1024
"""Number of jobs of a test sequence."""

LEAST_JOBS = 3 * JOBS
"""Minimum number of jobs of a log: two test sequences, and some training jobs."""

PUBLISHED_SLICE = 10_000
"""Number of jobs, from the start of each log, that the paper uses for training."""

TRAINED_SHARE = 0.2
"""Share of a log's jobs, from its start, used for training if the test is on unseen jobs."""

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


@dataclass(frozen=True)
class Trace(Log):
    """A log.

    Parameters
    ----------
    path : Path
        File of the log.
    scale : Scale
        Size preset of the experiment.
    seed : int
        Random seed for the choice of sequences, and for the published test if its seed is unknown.

    Examples
    --------
    >>> files = "HPC2N-2002-2.2-cln.swf.gz", "lublin_256.swf", "KTH.swf"
    >>> [Trace(Path(name), FULL, 0).name for name in files]
    ['HPC2N', 'Lublin-1', 'KTH']
    """

    NAMES = NAMES

    scale: Scale
    seed: int

    @cached_property
    def log(self) -> Workload:
        """Log as read by the published code."""
        return self.long_enough(read_published(self.path, CODE), LEAST_JOBS)

    @property
    def longest_time(self) -> int:
        """Longest run time of the log [s], by which the published code scales requested times."""
        return int(self.log.run_time.max())

    @property
    def estimates_are_actual(self) -> bool:
        """Whether every requested time equals the run time: the log has no estimates of its own."""
        return bool((self.log.requested_time == self.log.run_time).all())

    @cached_property
    def part(self) -> Workload:
        """Training jobs for tests on the rest of the log."""
        return self.log.first(int(TRAINED_SHARE * len(self.log)))

    @cached_property
    def slice(self) -> Workload:
        """Training jobs of the published protocol."""
        return self.log.first(PUBLISHED_SLICE)

    @cached_property
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part."""
        first, end = len(self.part), len(self.log) - 1  # each sequence is followed by a job
        starts = starts_apart(first, end, jobs=JOBS, count=self.scale.sequences, seed=self.seed)
        return SequenceSet.of(f"{self.name}-rest", self.log, starts, JOBS)

    @cached_property
    def published(self) -> SequenceSet:
        """Sequences of the published test, drawn from the whole log: overlapping, with some training jobs."""
        seed = SEEDS.get(self.name, self.seed)
        starts = published_starts(CODE, len(self.log), seed, self.scale.published_sequences)
        return SequenceSet.of(f"{self.name}-published", self.log, starts.tolist(), JOBS)


@dataclass(frozen=True)
class Traces:
    """All logs; see :class:`Trace`."""

    paths: Sequence[Path]
    scale: Scale
    seed: int

    @cached_property
    def all(self) -> Sequence[Trace]:
        """Logs in the given order, each once."""
        return each_once([Trace(path, self.scale, self.seed) for path in self.paths])

    @property
    def of_the_paper(self) -> list[Trace]:
        """Logs of table 4."""
        return [trace for trace in self.all if trace.name in SEEDS]

    @property
    def first(self) -> Trace:
        """SDSC-SP2, the log of figure 1, or else the first log given."""
        return next((trace for trace in self.all if trace.name == "SDSC-SP2"), self.all[0])

    def lines(self) -> Iterator[str]:
        """Yield a line on each log: its jobs, and its train/test split."""
        for trace in self.all:
            yield (
                f"{trace.name}: {grouped(len(trace.log))} jobs, the first {grouped(len(trace.part))} to "
                f"learn from; {trace.rest.words(self.scale.sequences)} of the rest to be tested on"
            )
