"""The logs, cut into jobs to learn from and sequences to be tested on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpcsimkit.campaigns.console import grouped
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.dirlab import published_starts, read_published

__all__ = ["FULL", "QUICK", "Scale", "Trace", "Traces"]

CODE = "schedinspector"
JOBS = 256
"""Of a sequence that is tested on."""

PUBLISHED_SEED = 1
PUBLISHED_SLICE = 10_000
"""The published code trains on the first so many jobs."""

TRAINED_SHARE = 0.2
"""Of a log's jobs, the first ones, in the paper."""

NAMES = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"lublin[-_]?(1|256)(\.|$)": "Lublin",
}
"""What the paper calls logs, by how the names of their files begin."""


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Parameters
    ----------
    sequences : int
        On which everybody meets, of each set; fewer where no more lie side by side.
    steps : int
        Decisions that a published agent of the tables learns from.
    prompt_steps : int
        And one that is paid promptly.
    study_steps : int
        And one of the paper's figures 5 to 12; 0 leaves them out.
    orders : tuple of str
        Base schedulers.
    whole : bool
        Train and test as the published code does too.
    """

    sequences: int = 50
    steps: int = 2_000_000
    prompt_steps: int = 1_500_000
    study_steps: int = 400_000
    orders: tuple[str, ...] = ("sjf", "f1")
    whole: bool = True


FULL = Scale()
QUICK = Scale(sequences=20, steps=500_000, prompt_steps=500_000, study_steps=0, orders=("sjf",), whole=False)


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
        Where the choice of sequences comes from.

    Examples
    --------
    >>> [Trace(Path(name), FULL, 0).name for name in ("HPC2N-2002-2.2-cln.swf.gz", "lublin-1.swf", "KTH.swf")]
    ['HPC2N', 'Lublin', 'KTH']
    """

    NAMES = NAMES

    scale: Scale
    seed: int

    @cached_property
    def log(self) -> Workload:
        """As the published code reads it: requested times are run times."""
        return self.long_enough(read_published(self.path, CODE), 5 * JOBS)

    @property
    def longest_time(self) -> int:
        """Longest run time of the log [s]: what the published code divides requested times by."""
        return int(self.log.run_time.max())

    def first_part(self, log: Workload) -> Workload:
        """Return the jobs that are learned from."""
        return log.first(int(TRAINED_SHARE * len(log)))

    @cached_property
    def rest(self) -> SequenceSet:
        """Sequences of jobs that nobody has learned from, no job in two of them."""
        log = self.log
        first, end = len(self.first_part(log)), len(log) - 1  # so that each sequence has a job that follows
        starts = starts_apart(first, end, jobs=JOBS, count=self.scale.sequences, seed=self.seed)
        return SequenceSet.of(f"{self.name}-rest", log, starts, JOBS)

    @cached_property
    def whole(self) -> SequenceSet:
        """Sequences of the published test: from all of the log, jobs that are learned from among them.

        As published, they overlap.
        """
        starts = published_starts(CODE, len(self.log), PUBLISHED_SEED, self.scale.sequences)
        return SequenceSet.of(f"{self.name}-whole", self.log, starts.tolist(), JOBS)


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
    def first(self) -> Trace:
        """SDSC-SP2, which the paper's figures are about, or else the first log given."""
        return next((trace for trace in self.all if trace.name == "SDSC-SP2"), self.all[0])

    def lines(self) -> Iterator[str]:
        """Say what there is."""
        for trace in self.all:
            count, learned = len(trace.log), len(trace.first_part(trace.log))
            yield (
                f"{trace.name}: {grouped(count)} jobs, the first {grouped(learned)} to learn from; "
                f"{trace.rest.words(self.scale.sequences)} of the rest to be tested on"
            )
