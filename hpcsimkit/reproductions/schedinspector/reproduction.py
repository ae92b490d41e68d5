"""SchedInspector's experiments, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.schedinspector.conclusions import Findings
from hpcsimkit.reproductions.schedinspector.contest import Contest, contests
from hpcsimkit.reproductions.schedinspector.data import FULL, QUICK, Traces
from hpcsimkit.reproductions.schedinspector.explaining import Explaining
from hpcsimkit.reproductions.schedinspector.learners import Learners
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["SchedInspector"]


class SchedInspector(ContestReproduction[Contest]):
    """Inspectors trained on each log and tested on what they have not seen, and as published."""

    title = "SchedInspector: an agent that may say no"
    logs_needed = (
        "logs in the Standard Workload Format: the paper's SDSC-SP2, CTC-SP2 and HPC2N are in the Parallel "
        "Workloads Archive, its lublin_256 in https://github.com/DIR-LAB/SchedInspector; any others do too"
    )
    rates = {"training": 15_000.0, "runs": 20_000.0, "runs of agents": 8_000.0}  # noqa: RUF012

    @cached_property
    def traces(self) -> Traces:
        """The logs."""
        return Traces(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def learning(self) -> Learners:
        """All agents to be trained."""
        return Learners(self.traces)

    @cached_property
    def contests(self) -> list[Contest]:
        """Who meets on which sequences."""
        return list(contests(self.learning))

    @cached_property
    def explaining(self) -> Explaining:
        """What the inspector of SJF on the first log rejects."""
        first = self.traces.first
        return Explaining(self.learning.own(first, self.traces.scale.orders[0]), first.log)

    def prepare(self) -> Iterator[str]:
        """Read the logs, cut sequences; say what will be done."""
        yield from self.traces.lines()
        yield self.words()

    def further_learners(self) -> Iterator[Learner]:
        """Yield those of the paper's figures of trainings."""
        for study in self.learning.studies:
            yield from study.learners.values()

    def further_runs(self) -> Iterator[Task]:
        """Yield what figure 13 is about."""
        yield self.explaining

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return tables, tests and targets; draw curves, boxes and distributions."""
        scores = self.scores(shelf)
        findings = Findings(self.traces, self.learning, scores, self.explaining, self.quick)
        return findings.conclusion(self.title, shelf, pictures)
