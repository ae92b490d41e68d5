"""SchedInspector's experiments, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rivals import Field, field_of
from hpcsimkit.reproductions.schedinspector.contest import Contest, contests
from hpcsimkit.reproductions.schedinspector.data import FULL, QUICK, Traces
from hpcsimkit.reproductions.schedinspector.explaining import Explaining
from hpcsimkit.reproductions.schedinspector.learners import Learners
from hpcsimkit.reproductions.schedinspector.report import SchedInspectorFindings

__all__ = ["SchedInspector"]


PROTOCOLS = {"rest": "unseen jobs", "whole": "as published"}
"""Descriptions of the test protocols."""


class SchedInspector(ContestReproduction[Contest]):
    """Inspectors trained on each log and tested on unseen jobs, and as published."""

    title = "SchedInspector: an agent that accepts or rejects the selected job"
    logs_needed = (
        "logs in the Standard Workload Format: the paper's SDSC-SP2, CTC-SP2 and HPC2N are in the Parallel "
        "Workloads Archive, its lublin_256 in https://github.com/DIR-LAB/SchedInspector; any others do too"
    )
    rates = {"training": 15_000.0, "runs": 20_000.0, "runs of agents": 8_000.0}  # noqa: RUF012

    @cached_property
    def traces(self) -> Traces:
        """Logs of the experiment."""
        return Traces(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def learning(self) -> Learners:
        """All agents to be trained."""
        return Learners(self.traces)

    @cached_property
    def contests(self) -> list[Contest]:
        """Policies under test and their sequences, one comparison per set."""
        return list(contests(self.learning))

    @cached_property
    def explaining(self) -> Explaining:
        """Task of figure 13, for the SJF inspector of the first log."""
        first = self.traces.first
        return Explaining(self.learning.own(first, self.traces.scale.orders[0]), first.log)

    def prepare(self) -> Iterator[str]:
        """Read the logs and draw the sequences; yield lines on the planned work."""
        yield from self.traces.lines()
        yield self.words()

    def further_learners(self) -> Iterator[Learner]:
        """Yield the learners of the paper's figures of trainings."""
        for study in self.learning.studies:
            yield from study.learners.values()

    def further_runs(self) -> Iterator[Task]:
        """Yield the task of figure 13."""
        yield self.explaining

    def fields(self) -> list[Field]:
        """Return the kit's heuristics on each set of sequences, beside all base schedulers."""
        found = []
        for trace in self.traces.all:
            for protocol, words in PROTOCOLS.items():
                met = [each for each in self.contests if each.trace is trace and each.protocol == protocol]
                rows = {f"{each.base}: {row}": task for each in met for row, task in each.meetings.items()}
                if rows:
                    name = f"{trace.name}, {words}"
                    found.append(field_of(name, met[0].sequences, trace.seed, rows))
        return found

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables, significance tests and targets; draw curves, boxes and distributions."""
        return SchedInspectorFindings(self, store).conclusion(pictures)
