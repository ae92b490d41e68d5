"""The logs, cut into jobs to learn from and sequences to be tested on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from hpcsimkit.agents.rlbackfilling.seat import Mode
from hpcsimkit.campaigns.console import grouped
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.rlbackfilling.published_numbers import SEEDS
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.dirlab import published_starts, read_published

__all__ = ["AS_PUBLISHED", "CODE", "FULL", "JOBS", "QUICK", "Scale", "Trace", "Traces", "Way"]

CODE = "rlbackfilling"
JOBS = 1024
"""Of a sequence that is tested on."""

LEAST_JOBS = 3 * JOBS
"""Of a log: two sequences to be tested on, and a few to learn from."""

PUBLISHED_SLICE = 10_000
"""The paper uses the first so many jobs of each log."""

TRAINED_SHARE = 0.2
"""Of a log's jobs, the first ones, where nobody is tested on what was learned from."""

NAMES = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"lublin[-_]?(1|256)$": "Lublin-1",
    r"lublin[-_]?(2|256[-_]?new2)$": "Lublin-2",
}
"""What tables call logs, by how the names of their files begin."""


class Way(NamedTuple):
    """A way to train an agent.

    Parameters
    ----------
    mode : {"unguarded", "guarded", "penalty"}
        What keeps it from delaying the blocked job.
    evolved : bool
        It has seven weights and evolves by the cross-entropy method, from *shortest first*.
    """

    mode: Mode
    evolved: bool = False

    @property
    def greedy(self) -> tuple[bool, ...]:
        """Whether its agents take the best action: others draw theirs, and are shown both ways."""
        return (True,) if self.evolved else (False, True)

    def __str__(self) -> str:
        return f"{self.mode}{', evolved' * self.evolved}"


AS_PUBLISHED, EVOLVED = Way("unguarded"), Way("unguarded", evolved=True)

WAYS_AS_PUBLISHED = (AS_PUBLISHED, EVOLVED)
"""Agents of the published test."""


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Parameters
    ----------
    sequences : int
        Of jobs that nobody has learned from; fewer where no more lie side by side.
    published_sequences : int
        Of the published test.
    draws : int
        Runs on each sequence of who draws.
    steps : int
        Decisions that each agent learns from that is trained as the published ones.
    evolved_steps : int
        Decisions that each other one takes while it evolves: many more in the same time.
    orders : tuple of str
        Base schedulers that agents backfill for.
    ways : tuple of Way
        Agents that are trained on the first fifth of each log; the first is the one of all tables.
    published : bool
        Train and test as published too, on the logs of the paper.
    noises : tuple of float
        Errors of estimates in figure 1: 0.05 is "+5 %".
    noise_jobs : int or None
        Of a log, in figure 1; None for all.
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
    sequences=10, draws=2, steps=50_000, evolved_steps=200_000, orders=("fcfs",),
    ways=(AS_PUBLISHED, EVOLVED), noise_jobs=10_000,
)  # fmt: skip


@dataclass(frozen=True)
class Trace(Log):
    """A log.

    Parameters
    ----------
    path : Path
        Its file.
    scale : Scale
        How much is done.
    seed : int
        Where the choice of sequences comes from; of the published test, if its seed is not known.

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
        """As the published code reads it."""
        return self.long_enough(read_published(self.path, CODE), LEAST_JOBS)

    @property
    def longest_time(self) -> int:
        """Longest run time of the log [s]: what the published code divides requested times by."""
        return int(self.log.run_time.max())

    @property
    def estimates_are_actual(self) -> bool:
        """Users have requested just what jobs took: the log does not know requested times."""
        return bool((self.log.requested_time == self.log.run_time).all())

    @cached_property
    def part(self) -> Workload:
        """The jobs that agents learn from if they are tested on the rest."""
        return self.log.first(int(TRAINED_SHARE * len(self.log)))

    @cached_property
    def slice(self) -> Workload:
        """The jobs that agents learn from as published."""
        return self.log.first(PUBLISHED_SLICE)

    @cached_property
    def rest(self) -> SequenceSet:
        """Sequences of jobs that nobody has learned from, no job in two of them."""
        first, end = len(self.part), len(self.log) - 1  # so that each sequence has a job that follows
        starts = starts_apart(first, end, jobs=JOBS, count=self.scale.sequences, seed=self.seed)
        return SequenceSet.of(f"{self.name}-rest", self.log, starts, JOBS)

    @cached_property
    def published(self) -> SequenceSet:
        """Sequences of the published test, from all of the log: overlapping, and learned from in part."""
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
        """The logs in the order given."""
        return each_once([Trace(path, self.scale, self.seed) for path in self.paths])

    @property
    def of_the_paper(self) -> list[Trace]:
        """The logs that table 4 is about."""
        return [trace for trace in self.all if trace.name in SEEDS]

    @property
    def first(self) -> Trace:
        """SDSC-SP2, which figure 1 is about, or else the first log given."""
        return next((trace for trace in self.all if trace.name == "SDSC-SP2"), self.all[0])

    def lines(self) -> Iterator[str]:
        """Say what there is."""
        for trace in self.all:
            yield (
                f"{trace.name}: {grouped(len(trace.log))} jobs, the first {grouped(len(trace.part))} to "
                f"learn from; {trace.rest.words(self.scale.sequences)} of the rest to be tested on"
            )
