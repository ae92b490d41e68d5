"""Logs that are split into jobs for training and sequences for tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import Log
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workloads.dirlab import published_starts, read_published

__all__ = ["PublishedLog", "SplitLog"]

TRAINED_SHARE = 0.2
"""Share of a log's jobs, from its start, used for training."""


@dataclass(frozen=True)
class SplitLog(Log, ABC):
    """Log with the first fifth for training and the rest for tests.

    Parameters
    ----------
    scale : Scale
        Size preset of the experiment, with the number of test sequences, `sequences`.
    seed : int
        Random seed for the choice of sequences.

    Attributes
    ----------
    JOBS : int
        Number of jobs of a test sequence.
    """

    JOBS: ClassVar[int]

    scale: Any
    seed: int

    @property
    @abstractmethod
    def log(self) -> Workload:
        """Log as simulated."""

    @property
    def times_are_known(self) -> bool:
        """Whether every requested time equals the run time: the log has no estimates of its own."""
        return bool((self.log.requested_time == self.log.run_time).all())

    @cached_property
    def part(self) -> Workload:
        """Training jobs."""
        return self.log.first(int(TRAINED_SHARE * len(self.log)))

    def starts(self, end: int) -> list[int]:
        """Return the first rows of non-overlapping test sequences outside the training part."""
        count, jobs = self.scale.sequences, self.JOBS
        return starts_apart(len(self.part), end, jobs=jobs, count=count, seed=self.seed)

    @property
    @abstractmethod
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part."""

    def line(self) -> str:
        """Return a line on the jobs and their split."""
        return (
            f"{self.name}: {grouped(len(self.log))} jobs, {self._skipped}the first "
            f"{grouped(len(self.part))} to learn from; {self.rest.words(self.scale.sequences)} of the rest "
            "to be tested on"
        )

    @property
    def _skipped(self) -> str:
        """Number of skipped jobs for each reason, without the line numbers of the file."""
        return ""


class PublishedLog(SplitLog):
    """Log as read by a published simulator.

    Attributes
    ----------
    CODE : str
        Name of the simulator.
    LEAST_JOBS : int
        Minimum number of jobs.
    """

    CODE: ClassVar[str]
    LEAST_JOBS: ClassVar[int]

    @cached_property
    def log(self) -> Workload:
        """Log as read by the published code."""
        return self.long_enough(read_published(self.path, self.CODE), self.LEAST_JOBS)

    @property
    def longest_time(self) -> int:
        """Longest run time of the log [s], by which the published code scales requested times."""
        return int(self.log.run_time.max())

    @cached_property
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part."""
        starts = self.starts(len(self.log) - 1)  # each sequence is followed by a job
        return SequenceSet.of(f"{self.name}-rest", self.log, starts, self.JOBS)

    def drawn(self, name: str, seed: int, count: int) -> SequenceSet:
        """Return the sequences of the published test: from the whole log, training jobs included.

        As published, they overlap.
        """
        starts = published_starts(self.CODE, len(self.log), seed, count)
        return SequenceSet.of(f"{self.name}-{name}", self.log, starts.tolist(), self.JOBS)
