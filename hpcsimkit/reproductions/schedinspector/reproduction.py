"""SchedInspector's experiments, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.reproduction import Conclusion, Reproduction
from hpcsimkit.reproductions.schedinspector.conclusions import Findings
from hpcsimkit.reproductions.schedinspector.contest import Contest, contests
from hpcsimkit.reproductions.schedinspector.data import FULL, QUICK, Traces
from hpcsimkit.reproductions.schedinspector.explaining import Explaining
from hpcsimkit.reproductions.schedinspector.learners import Learners
from hpcsimkit.reproductions.schedinspector.tables import Scores
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["SchedInspector"]


class SchedInspector(Reproduction):
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
    def learners(self) -> Learners:
        """Agents to be trained."""
        return Learners(self.traces)

    @cached_property
    def contests(self) -> list[Contest]:
        """Who meets on which sequences."""
        return list(contests(self.learners))

    @cached_property
    def explaining(self) -> Explaining:
        """What the inspector of SJF on the first log rejects."""
        first = self.traces.first
        return Explaining(self.learners.own(first, self.traces.scale.orders[0]), first.log)

    def prepare(self) -> Iterator[str]:
        """Read the logs, cut sequences; say what will be done."""
        yield from self.traces.lines()
        yield f"{len(self._trained)} agents, {len(self.contests)} sets of sequences with all their rivals"

    @cached_property
    def _trained(self) -> list[Learner]:
        """All agents, those of the tables first."""
        of_tables = [
            contestant.learner
            for contest in self.contests
            for contestant in contest.contestants
            if contestant.learner is not None
        ]
        of_studies = [learner for study in self.learners.studies for learner in study.learners.values()]
        return list({learner.name: learner for learner in (*of_tables, *of_studies)}.values())

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return trainings, then runs."""
        runs: list[Task] = [task for contest in self.contests for task in contest.meetings.values()]
        return [[Training(learner) for learner in self._trained], [self.explaining, *runs]]

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return tables, tests and targets; draw curves, boxes and distributions."""
        scores = []
        for contest in self.contests:
            outcomes = {row: shelf.outcome(task) for row, task in contest.meetings.items()}
            scores.append(Scores(contest, {row: _arrays(outcome) for row, outcome in outcomes.items()}))
        findings = Findings(self.traces, self.learners, scores, self.explaining, self.quick)
        return findings.conclusion(self.title, shelf, pictures)


def _arrays(outcome: dict[str, list[float]]) -> dict[str, np.ndarray]:
    return {measure: np.array(values, dtype=np.float64) for measure, values in outcome.items()}
