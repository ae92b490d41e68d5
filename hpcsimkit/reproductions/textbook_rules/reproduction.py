"""The experiment, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rivals import Field, field_of
from hpcsimkit.reproductions.textbook_rules.contest import Contest, contests
from hpcsimkit.reproductions.textbook_rules.data import FULL, QUICK, Traces
from hpcsimkit.reproductions.textbook_rules.learners import Learners, SeatLearner, TogetherLearner
from hpcsimkit.reproductions.textbook_rules.report import TextbookFindings

__all__ = ["TextbookRules"]


class TextbookRules(ContestReproduction[Contest]):
    """Inspectors and backfillers, alone and in pairs, against the best heuristics."""

    title = "Learned stages and the best heuristics under textbook rules"
    logs_needed = (
        "logs in the Standard Workload Format, three or more, with requested times: SDSC-SP2, CTC-SP2, HPC2N "
        "and KTH-SP2 are in the Parallel Workloads Archive; any others do too"
    )
    rates = {  # noqa: RUF012
        "training of inspectors": 6_000.0,
        "training of backfillers": 600.0,
        "training of both": 1_500.0,
        "runs": 15_000.0,
        "runs of agents": 5_000.0,
    }

    @cached_property
    def traces(self) -> Traces:
        """Logs of the experiment."""
        return Traces(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def contests(self) -> list[Contest]:
        """Policies under test and their sequences, one comparison per log."""
        return list(contests(Learners(self.traces)))

    def prepare(self) -> Iterator[str]:
        """Read the logs and draw the sequences; yield lines on the planned work."""
        yield from self.traces.lines()
        yield self.words()

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return independent trainings, then trainings beside a trained agent, then runs."""
        trainings = [training_of(learner) for learner in self.trained]
        later = [task for task in trainings if _comes_later(task)]
        first = [task for task in trainings if task not in later]
        first.sort(key=lambda task: task.size / self.rates[task.kind], reverse=True)
        return [first, later, list(self.runs())]

    def fields(self) -> list[Field]:
        """Return the heuristics of the kit on the sequences of each log."""
        return [
            field_of(each.trace.name, each.sequences, each.trace.seed, each.meetings)
            for each in self.contests
        ]

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables, significance tests and targets; draw curves and ratios."""
        return TextbookFindings(self, store).conclusion(pictures)


def training_of(learner: object) -> Training:
    """Return the training task of a learner; trainings of the same seat share an expected rate."""
    assert isinstance(learner, SeatLearner)
    both = isinstance(learner, TogetherLearner)
    return Training(learner, f"training of {'both' if both else f'{learner.stage}s'}")


def _comes_later(task: Training) -> bool:
    learner = task.learner
    assert isinstance(learner, SeatLearner)
    return learner.partner is not None and not isinstance(learner, TogetherLearner)
