"""CuSH's experiments, from job sets to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.cush.conclusions import Findings
from hpcsimkit.reproductions.cush.contest import Contest, contests
from hpcsimkit.reproductions.cush.data import FULL, QUICK, JobSets
from hpcsimkit.reproductions.cush.learners import CushTraining, Learners, SelectorsLearner
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["CuSH"]


class CuSH(ContestReproduction[Contest]):
    """A job selector that sees pictures and a policy selector, against heuristics and the best allocation."""

    title = "CuSH: who starts, and spread over how many nodes, learned by two networks"
    needs_logs = False
    logs_needed = "no logs; job sets of your own, as CSV files, may be given"
    rates = {  # noqa: RUF012
        "training": 3_000.0, "evolution": 5_000.0, "runs": 5_000.0, "runs of agents": 600.0,
    }  # fmt: skip

    @cached_property
    def job_sets(self) -> JobSets:
        """The job sets."""
        return JobSets(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def contests(self) -> list[Contest]:
        """Who meets on which job sets."""
        return list(contests(self.job_sets, Learners(self.job_sets.scale, self.seed)))

    def prepare(self) -> Iterator[str]:
        """Read the files, draw job sets; say what will be done."""
        yield from self.job_sets.lines()
        yield self.words()

    @cached_property
    def trainings(self) -> list[CushTraining | Training]:
        """Of all agents."""
        selectors: dict[str, SelectorsLearner] = {}
        for contest in self.contests:
            for each in contest.contestants:
                if each.selectors is not None:
                    selectors.setdefault(each.selectors.name, each.selectors)
        evolving = [Training(learner, "evolution") for learner in self.trained]
        return [*map(CushTraining, selectors.values()), *evolving]

    def words(self) -> str:
        """Say how many agents and contests there are."""
        return f"{len(self.trainings)} trainings, {len(self.contests)} contests"

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return trainings, the longest first, then runs."""
        longest = sorted(self.trainings, key=lambda task: task.size / self.rates[task.kind], reverse=True)
        return [longest, list(self.runs())]

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return tables, tests and targets; draw pictures."""
        findings = Findings(self.job_sets, self.trainings, self.scores(shelf), self.quick, shelf)
        return findings.conclusion(self.title, pictures)
