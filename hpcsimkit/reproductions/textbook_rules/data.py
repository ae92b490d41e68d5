"""Logs with the users' requested times, split into training jobs and test sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workloads import read_swf

__all__ = ["FULL", "JOBS", "QUICK", "Scale", "Trace", "Traces"]

JOBS = 256
"""Number of jobs of a sequence, in training and in tests."""

LEAST_JOBS = 5 * JOBS + 1
"""Minimum number of jobs of a log, such that the training part holds at least one sequence."""

TRAINED_SHARE = 0.2
"""Share of a log's jobs, from its start, used for training."""

NAMES = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"kth-sp2": "KTH-SP2",
    r"lublin[-_]?(1|256)(\.|$)": "Lublin-1",
    r"lublin[-_]?(2|256_new2)(\.|$)": "Lublin-2",
}
"""Names of logs in papers, by patterns that match the beginning of the file name."""


@dataclass(frozen=True)
class Scale:
    """Size preset of the experiment.

    Parameters
    ----------
    sequences : int
        Number of test sequences of each log; fewer if the log has no more non-overlapping ones.
    inspector_steps : int
        Number of decisions used to train an inspector.
    backfiller_steps : mapping of str to int
        Number of decisions used to train a backfiller with the cross-entropy method, by order. F1 has no
        entry: behind F1 a backfiller has a choice only a few times in a sequence.
    together_sequences : int
        Number of training sequences of two agents that are trained together.
    orders : tuple of str
        Orders of the queue for which agents are trained; pairs are trained for the first one only.
    """

    sequences: int = 100
    inspector_steps: int = 1_000_000
    backfiller_steps: Mapping[str, int] = field(default_factory=lambda: {"sjf": 300_000})
    together_sequences: int = 1_000
    orders: tuple[str, ...] = ("sjf", "f1")


FULL = Scale()
QUICK = Scale(
    sequences=20,
    inspector_steps=150_000,
    backfiller_steps={"sjf": 30_000},
    together_sequences=300,
    orders=("sjf",),
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
        Random seed for the choice of sequences.

    Examples
    --------
    >>> files = "CTC-SP2-1996-3.1-cln.swf.gz", "lublin-2.swf", "mine.swf"
    >>> [Trace(Path(name), FULL, 0).name for name in files]
    ['CTC-SP2', 'Lublin-2', 'mine']
    """

    NAMES = NAMES

    scale: Scale
    seed: int

    @cached_property
    def log(self) -> Workload:
        """Unmodified log, without jobs that need more than the whole machine."""
        log = read_swf(self.path)
        if log.machine_size is not None:
            log = log.fitting(log.machine_size)
        return self.long_enough(log, LEAST_JOBS)

    @property
    def times_are_known(self) -> bool:
        """Whether every requested time equals the run time: the log has no estimates of its own."""
        return bool((self.log.requested_time == self.log.run_time).all())

    @cached_property
    def part(self) -> Workload:
        """Training jobs."""
        return self.log.first(int(TRAINED_SHARE * len(self.log)))

    @property
    def longest_time(self) -> int:
        """Longest requested time of the training jobs [s]."""
        return int(self.part.requested_time.max())

    @cached_property
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part."""
        log, first = self.log, len(self.part)
        starts = starts_apart(first, len(log), jobs=JOBS, count=self.scale.sequences, seed=self.seed)
        return SequenceSet(self.name, tuple(Scenario(log.first(JOBS, start)) for start in starts))


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

    def lines(self) -> Iterator[str]:
        """Yield a line on each log: its jobs, and its train/test split."""
        for trace in self.all:
            yield (
                f"{trace.name}: {grouped(len(trace.log))} jobs, {_skipped(trace.log)}"
                f"the first {grouped(len(trace.part))} to learn from; "
                f"{trace.rest.words(self.scale.sequences)} of the rest to be tested on"
                f"{'; requested times are run times' * trace.times_are_known}"
            )


def _skipped(log: Workload) -> str:
    """Return the number of skipped jobs for each reason, without the line numbers of the file."""
    return "".join(
        f"{grouped(count)} skipped ({reason.partition(' (first')[0]}), "
        for reason, count in log.skipped.items()
    )
