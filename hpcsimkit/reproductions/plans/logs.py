"""Logs of a plan, split into jobs for training and sequences for tests."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.papers import PAPERS
from hpcsimkit.reproductions.plans.parts import KIT, Code, attribute_of
from hpcsimkit.reproductions.plans.plan import LogsPlan, paper_files
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workloads import read_swf
from hpcsimkit.workloads.dirlab import REPLACED, published_starts, read_published

TRAINED_SHARE = 0.2
"""Share of a log's jobs, from its start, used for training."""


def name_among(path: Path, names: Mapping[str, str]) -> str:
    """Return the name of a log in tables, by default the name of its file.

    Parameters
    ----------
    path : Path
        Path of the file.
    names : mapping of str to str
        Names by regular expressions for the beginnings of file names, without suffixes and case-insensitive.

    Examples
    --------
    >>> name_among(Path("HPC2N-2002-2.2-cln.swf.gz"), {"hpc2n": "HPC2N"}), name_among(Path("KTH.swf"), {})
    ('HPC2N', 'KTH')
    """
    stem = path.name.removesuffix(".gz").removesuffix(".swf")
    return next((name for known, name in names.items() if re.match(known, stem, re.IGNORECASE)), stem)


def each_once(logs: Sequence[Any]) -> Sequence[Any]:
    """Return logs, after a check that their names are unique.

    Raises
    ------
    UsageError
        Two logs have the same name.
    """
    names = [log.name for log in logs]
    for log in logs:
        if names.count(log.name) > 1:
            raise UsageError(f"{log.path}: a log {log.name!r} is given twice")
    return logs


@dataclass(frozen=True)
class Logs(ABC):
    """All logs of a reproduction.

    Parameters
    ----------
    paths : sequence of Path
        Files of the logs.
    scale : SimpleNamespace
        Size preset.
    seed : int
        Random seed.
    """

    paths: Sequence[Path]
    scale: Any
    seed: int

    @property
    @abstractmethod
    def all(self) -> Sequence[Any]:
        """Logs, or other test data, each with a unique name."""

    @property
    def first(self) -> Any:
        """SDSC-SP2, the log of several papers' figures, or else the first log given."""
        return next((log for log in self.all if log.name == "SDSC-SP2"), self.all[0])

    def lines(self) -> Iterator[str]:
        """Yield a line on each log."""
        for log in self.all:
            yield log.line()


@dataclass(frozen=True)
class PaperLog:
    """Log as read by published code, with the first fifth for training and the rest for tests.

    Parameters
    ----------
    path : Path
        Path of the file.
    plan : LogsPlan
        Table ``[logs]`` of the plan.
    scale : SimpleNamespace
        Size preset, with the number of test sequences, `sequences`.
    seed : int
        Random seed for the choice of sequences.
    """

    path: Path
    plan: LogsPlan
    scale: Any
    seed: int

    @property
    def name(self) -> str:
        """Name in tables."""
        return name_among(self.path, self.plan.names)

    @cached_property
    def log(self) -> Workload:
        """Log as simulated."""
        log, least = self._read(), self.plan.least_jobs
        if len(log) < least:
            raise UsageError(f"{self.path}: {least} jobs or more are needed, found {len(log)}")
        return log

    def _read(self) -> Workload:
        return read_published(self.path, self.plan.code)

    @property
    def times_are_known(self) -> bool:
        """Whether every requested time equals the run time: the log has no estimates of its own."""
        times = np.maximum(self.log.run_time, 1)
        return REPLACED not in self.log.notes and bool((self.log.requested_time == times).all())

    @property
    def longest_time(self) -> int:
        """Longest run time of the log [s], by which the published code scales requested times."""
        return int(self.log.run_time.max())

    @cached_property
    def part(self) -> Workload:
        """Training jobs."""
        return self.log.first(int(TRAINED_SHARE * len(self.log)))

    @cached_property
    def slice(self) -> Workload:
        """Training jobs of the published code, from the start of the log."""
        return self.log.first(self.plan.slice)

    @cached_property
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part."""
        starts = self._starts(len(self.log) - 1)  # each sequence is followed by a job
        return SequenceSet.of(f"{self.name}-rest", self.log, starts, self.plan.jobs)

    def _starts(self, end: int) -> list[int]:
        """Return the first rows of non-overlapping test sequences outside the training part."""
        count, jobs = self.scale.sequences, self.plan.jobs
        return starts_apart(len(self.part), end, jobs=jobs, count=count, seed=self.seed)

    @property
    def is_known(self) -> bool:
        """Whether the seed of the published test on this log is known."""
        return self.name in self.plan.seeds

    @cached_property
    def drawn(self) -> SequenceSet:
        """Sequences of the published test, from the whole log; as published, they overlap.

        By default they are drawn with the seed of the reproduction.
        """
        return self.sequences_of(self.log, self.starts(self.test_seed))

    @property
    def test_seed(self) -> int:
        """Seed of the published test."""
        plan = self.plan
        return plan.seeds.get(self.name, self.seed if plan.seed is None else plan.seed)

    def starts(self, seed: int) -> list[int]:
        """Return the first rows of the sequences of the published test with a seed."""
        jobs = min(len(self.log), self.plan.test_slice or len(self.log))
        count = attribute_of(self.scale, self.plan.sequences)
        return published_starts(self.plan.code, jobs, seed, count).tolist()

    def sequences_of(self, log: Workload, starts: Sequence[int]) -> SequenceSet:
        """Return sequences of the published length, by the name of the published test."""
        return SequenceSet.of(f"{self.name}-{self.plan.drawn}", log, starts, self.plan.jobs)

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of a plan that depend on the log."""
        return {"log": self, "longest_time": self.longest_time, "training": self.part, "slice": self.slice}

    def __format__(self, format_spec: str) -> str:
        return format(self.name, format_spec)

    def line(self) -> str:
        """Return a line on the jobs and their split."""
        if not self.plan.split:
            jobs, nodes = grouped(len(self.log)), grouped(self.log.machine_size or 0)
            known = "without" if self.times_are_known else "with"
            return f"{self.name}: {jobs} jobs, {nodes} nodes, {known} requested times of their own"
        return (
            f"{self.name}: {grouped(len(self.log))} jobs, {self._skipped}the first "
            f"{grouped(len(self.part))} to learn from; {self.rest.words(self.scale.sequences)} of the rest "
            "to be tested on"
        )

    @property
    def _skipped(self) -> str:
        """Number of skipped jobs for each reason, without the line numbers of the file."""
        return ""


class UnmodifiedLog(PaperLog):
    """Log in the Standard Workload Format, without jobs that need more than the whole machine."""

    def _read(self) -> Workload:
        log = read_swf(self.path)
        return log if log.machine_size is None else log.fitting(log.machine_size)

    @property
    def longest_time(self) -> int:
        """Longest requested time of the training jobs [s]."""
        return int(self.part.requested_time.max())

    @cached_property
    def rest(self) -> SequenceSet:
        """Non-overlapping test sequences of jobs outside the training part, by textbook rules."""
        starts = self._starts(len(self.log))
        scenarios = (Scenario(self.log.first(self.plan.jobs, start)) for start in starts)
        return SequenceSet(f"{self.name}-rest", tuple(scenarios))

    def line(self) -> str:
        """Return a line on the jobs and their split."""
        return super().line() + "; requested times are run times" * self.times_are_known

    @property
    def _skipped(self) -> str:
        skipped = ((reason.partition(" (first")[0], count) for reason, count in self.log.skipped.items())
        return "".join(f"{grouped(count)} skipped ({reason}), " for reason, count in skipped)


@dataclass(frozen=True)
class PaperLogs(Logs):
    """All logs of a paper.

    Parameters
    ----------
    plan : LogsPlan
        Table ``[logs]`` of the plan.
    code : Code
        Code that names in the plan may refer to. Default: that of hpcsimkit.
    """

    plan: LogsPlan
    code: Code = KIT

    @cached_property
    def _tests(self) -> dict[str, PaperLogs]:
        return {}

    def test_of(self, paper: str) -> PaperLogs:
        """Return the same logs in the published test of another paper, by the names of this one.

        Where that paper states no seed, it is that of this plan.
        """
        if paper not in PAPERS:
            raise UsageError(f"unknown paper {paper!r}{nearest(paper, list(PAPERS))}")
        if paper not in self._tests:
            other, _ = paper_files(PAPERS[paper])
            seed = self.plan.seed if other.logs.seed is None else other.logs.seed
            changes = {"names": self.plan.names, "seed": seed}
            scale = SimpleNamespace(**other.size(quick=False))
            self._tests[paper] = replace(self, scale=scale, plan=other.logs.model_copy(update=changes))
        return self._tests[paper]

    @cached_property
    def all(self) -> Sequence[PaperLog]:
        """Logs in the given order, each once."""
        kind = UnmodifiedLog if self.plan.code == "swf" else PaperLog
        if self.plan.kind:
            kind = self.code.kind(self.plan.kind, PaperLog)
        return each_once([kind(path, self.plan, self.scale, self.seed) for path in self.paths])
