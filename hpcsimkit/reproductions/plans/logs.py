"""Logs of a plan, split into jobs for training and sequences for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import Log, Logs, name_among
from hpcsimkit.reproductions.plans.parts import kit_part
from hpcsimkit.reproductions.plans.plan import LogsPlan, Plan
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.workloads import read_swf
from hpcsimkit.workloads.dirlab import published_starts, read_published

__all__ = ["PaperLog", "PaperLogs", "UnmodifiedLog"]

TRAINED_SHARE = 0.2
"""Share of a log's jobs, from its start, used for training."""


@dataclass(frozen=True)
class PaperLog(Log):
    """Log as read by published code, with the first fifth for training and the rest for tests.

    Parameters
    ----------
    plan : LogsPlan
        Table ``[logs]`` of the plan.
    scale : SimpleNamespace
        Size preset, with the number of test sequences, `sequences`.
    seed : int
        Random seed for the choice of sequences.
    """

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
        return self.long_enough(self._read(), self.plan.least_jobs)

    def _read(self) -> Workload:
        return read_published(self.path, self.plan.code)

    @property
    def times_are_known(self) -> bool:
        """Whether every requested time equals the run time: the log has no estimates of its own."""
        return bool((self.log.requested_time == self.log.run_time).all())

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
        plan = self.plan
        seed = plan.seeds.get(self.name, self.seed if plan.seed is None else plan.seed)
        count = getattr(self.scale, plan.sequences)
        starts = published_starts(plan.code, len(self.log), seed, count)
        return SequenceSet.of(f"{self.name}-{plan.drawn}", self.log, starts.tolist(), plan.jobs)

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of a plan that depend on the log."""
        return {"log": self, "longest_time": self.longest_time, "training": self.part, "slice": self.slice}

    def __format__(self, format_spec: str) -> str:
        return format(self.name, format_spec)

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
class PaperLogs(Logs[PaperLog]):
    """All logs of a paper.

    Parameters
    ----------
    paths : sequence of Path
        Files of the logs.
    scale : SimpleNamespace
        Size preset.
    seed : int
        Random seed.
    plan : LogsPlan, optional
        Table ``[logs]`` of the plan.
    """

    plan: LogsPlan | None = None

    @classmethod
    def of(cls, plan: Plan, paths: Sequence[Path], scale: SimpleNamespace, seed: int) -> PaperLogs:
        """Return the logs, split as a plan says."""
        return cls(paths, scale, seed, plan.logs)

    def log_of(self, path: Path) -> PaperLog:
        """Return the log of a file."""
        assert self.plan is not None
        kind = UnmodifiedLog if self.plan.code == "swf" else PaperLog
        if self.plan.kind:
            kind = kit_part(self.plan.kind)
        return kind(path, self.plan, self.scale, self.seed)
