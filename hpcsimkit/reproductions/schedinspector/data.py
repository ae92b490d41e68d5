"""Logs, split into training jobs and test sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workloads.dirlab import published_starts, read_published

__all__ = ["FULL", "QUICK", "Scale", "Trace", "Traces"]

CODE = "schedinspector"
JOBS = 256
"""Number of jobs of a test sequence."""

PUBLISHED_SEED = 1
PUBLISHED_SLICE = 10_000
"""Number of training jobs in the published code, from the start of the log."""

TRAINED_SHARE = 0.2
"""Share of a log's jobs, from its start, used for training in the paper."""

NAMES = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"lublin[-_]?(1|256)(\.|$)": "Lublin",
}
"""Names of logs in the paper, by patterns that match the beginning of the file name."""


@dataclass(frozen=True)
class Scale:
    """Size preset of the experiment.

    Parameters
    ----------
    sequences : int
        Number of test sequences of each set; fewer if the log has no more non-overlapping ones.
    steps : int
        Number of decisions used to train a published agent of the tables.
    prompt_steps : int
        Number of decisions used to train an agent with the dense reward.
    study_steps : int
        Number of decisions used to train an agent of the paper's figures 5 to 12; 0 omits these figures.
    orders : tuple of str
        Base schedulers.
    whole : bool
        Whether to include the training and test of the published code.
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
        File of the log.
    scale : Scale
        Size preset of the experiment.
    seed : int
        Random seed for the choice of sequences.

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
        """Log as read by the published code: requested times are run times."""
        return self.long_enough(read_published(self.path, CODE), 5 * JOBS)

    @property
    def longest_time(self) -> int:
        """Longest run time of the log [s], by which the published code scales requested times."""
        return int(self.log.run_time.max())

    def first_part(self, log: Workload) -> Workload:
        """Return the training jobs."""
        return log.first(int(TRAINED_SHARE * len(log)))

    @cached_property
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part."""
        log = self.log
        first, end = len(self.first_part(log)), len(log) - 1  # each sequence is followed by a job
        starts = starts_apart(first, end, jobs=JOBS, count=self.scale.sequences, seed=self.seed)
        return SequenceSet.of(f"{self.name}-rest", log, starts, JOBS)

    @cached_property
    def whole(self) -> SequenceSet:
        """Sequences of the published test, drawn from the whole log, training jobs included.

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
        """Logs in the given order, each once."""
        return each_once([Trace(path, self.scale, self.seed) for path in self.paths])

    @property
    def first(self) -> Trace:
        """SDSC-SP2, the log of the paper's figures, or else the first log given."""
        return next((trace for trace in self.all if trace.name == "SDSC-SP2"), self.all[0])

    def lines(self) -> Iterator[str]:
        """Yield a line on each log: its jobs, and its train/test split."""
        for trace in self.all:
            count, learned = len(trace.log), len(trace.first_part(trace.log))
            yield (
                f"{trace.name}: {grouped(count)} jobs, the first {grouped(learned)} to learn from; "
                f"{trace.rest.words(self.scale.sequences)} of the rest to be tested on"
            )
