"""Logs with the users' requested times, split into training jobs and test sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import BY_FILE, Logs
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.reproductions.split_logs import SplitLog
from hpcsimkit.workloads import read_swf

__all__ = ["FULL", "JOBS", "QUICK", "Scale", "Trace", "Traces"]

JOBS = 256
"""Number of jobs of a sequence, in training and in tests."""

LEAST_JOBS = 5 * JOBS + 1
"""Minimum number of jobs of a log, such that the training part holds at least one sequence."""


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


class Trace(SplitLog):
    """A log.

    Examples
    --------
    >>> files = "CTC-SP2-1996-3.1-cln.swf.gz", "lublin-2.swf", "mine.swf"
    >>> [Trace(Path(name), FULL, 0).name for name in files]
    ['CTC-SP2', 'Lublin-2', 'mine']
    """

    NAMES, JOBS = BY_FILE, JOBS
    scale: Scale

    @cached_property
    def log(self) -> Workload:
        """Unmodified log, without jobs that need more than the whole machine."""
        log = read_swf(self.path)
        if log.machine_size is not None:
            log = log.fitting(log.machine_size)
        return self.long_enough(log, LEAST_JOBS)

    @property
    def longest_time(self) -> int:
        """Longest requested time of the training jobs [s]."""
        return int(self.part.requested_time.max())

    @cached_property
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part."""
        starts = self.starts(len(self.log))
        return SequenceSet(self.name, tuple(Scenario(self.log.first(JOBS, start)) for start in starts))

    def line(self) -> str:
        """Return a line on the jobs and their split."""
        return super().line() + "; requested times are run times" * self.times_are_known

    @property
    def _skipped(self) -> str:
        skipped = ((reason.partition(" (first")[0], count) for reason, count in self.log.skipped.items())
        return "".join(f"{grouped(count)} skipped ({reason}), " for reason, count in skipped)


class Traces(Logs[Trace]):
    """All logs."""

    scale: Scale

    def log_of(self, path: Path) -> Trace:
        """Return the log of a file."""
        return Trace(path, self.scale, self.seed)
