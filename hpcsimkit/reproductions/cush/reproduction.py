"""CuSH's experiments, from job sets to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.cush.contest import Contest, contests
from hpcsimkit.reproductions.cush.data import FULL, QUICK, JobSets
from hpcsimkit.reproductions.cush.fields import fields
from hpcsimkit.reproductions.cush.learners import CushTraining, Learners, SelectorsLearner
from hpcsimkit.reproductions.cush.report import CuSHFindings
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rivals import RIVALS, Field

__all__ = ["CuSH"]


class CuSH(ContestReproduction[Contest]):
    """A job selector on images and a policy selector, against heuristics and the best allocation."""

    title = "CuSH: selection and placement of jobs by two networks"
    needs_logs = False
    logs_needed = "no logs; job sets of your own, as CSV files, may be given"
    rates = {  # noqa: RUF012
        "training": 3_000.0,
        "evolution": 5_000.0,
        "runs": 5_000.0,
        "runs of agents": 600.0,
    }

    @cached_property
    def job_sets(self) -> JobSets:
        """Job sets of the experiment."""
        return JobSets(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def contests(self) -> list[Contest]:
        """Policies under test and their job sets."""
        return list(contests(self.job_sets, Learners(self.job_sets.scale, self.seed)))

    def prepare(self) -> Iterator[str]:
        """Read the files and draw the job sets; yield lines on the planned work."""
        yield from self.job_sets.lines()
        yield self.words()

    @cached_property
    def trainings(self) -> list[CushTraining | Training]:
        """Trainings of all agents."""
        selectors: dict[str, SelectorsLearner] = {}
        for contest in self.contests:
            for each in contest.contestants:
                if each.selectors is not None:
                    selectors.setdefault(each.selectors.name, each.selectors)
        evolving = [Training(learner, "evolution") for learner in self.trained]
        return [*map(CushTraining, selectors.values()), *evolving]

    def words(self) -> str:
        """Return the numbers of trainings and comparisons as text."""
        if RIVALS in self.chosen:
            return f"heuristics only, on the job sets of {len(self.fields())} tables"
        return f"{len(self.trainings)} trainings, {len(self.contests)} contests"

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return trainings, the longest first, then runs."""
        longest = sorted(self.trainings, key=lambda task: task.size / self.rates[task.kind], reverse=True)
        return [longest, list(self.runs())]

    def fields(self) -> list[Field]:
        """Return the baselines that the paper leaves out, on the job sets of each table 1."""
        return fields(self.contests)

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables, significance tests and targets; draw figures."""
        return CuSHFindings(self, store).conclusion(pictures)
