"""Parts of CuSH alone: job sets, agents on two seats, and the choice between their actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.measurements import NTAT
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.taught import TaughtSettings
from hpcsimkit.agents.cush.trainer import CushSettings
from hpcsimkit.agents.cush.training import AGENTS, GamesSettings, GamesTrainer
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.comparisons import Comparison
from hpcsimkit.reproductions.plans.logs import Logs, each_once, name_among
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.workloads import read_log
from hpcsimkit.workloads.models.cush import (
    CORES,
    CUSH_SYSTEMS,
    CushLogSets,
    nodes_for,
    read_job_sets,
    system_of,
)

PROBLEM, PAPER, TAUGHT = CushProblem(), CushSettings(), TaughtSettings()
"""Problem and settings as the reports state them."""

VALIDATION, UNSEEN = 101, 102
"""Keys of the random streams for validation and test sets; trainings use other streams."""

LOG_NAMES = {"openb": "openb", "philly": "Philly"}
"""Names of logs in tables, by the beginning of the file name."""

# --- job sets -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """Job sets of a problem: of a system with trained agents, of a file, of Sierra changed, or for CuSH+.

    Those for CuSH+ differ in the number of jobs; with a path, run times and requests are those of a log.
    """

    kind: Literal["system", "file", "swept", "plus"]
    problem: CushProblem
    scale: Any
    seed: int
    path: Path | None = None

    @property
    def name(self) -> str:
        problem = self.problem
        if self.kind != "plus":
            return problem.system.capitalize() if self.path is None else name_among(self.path, {})
        found = problem.system.capitalize() if self.path is None else name_among(self.path, LOG_NAMES)
        return f"{found}, {problem.jobs} jobs"

    @property
    def label(self) -> str:
        """Short name of the problem, valid as part of a folder name.

        >>> problems = CushProblem(), CushProblem(system="summit", nodes=16, horizon=2)
        >>> [Trial("swept", problem, None, 0).label for problem in problems]
        ['sierra', 'summit-16-nodes-horizon-2']
        """
        problem, usual = self.problem, CushProblem(system=self.problem.system)
        log = "" if self.kind != "plus" or self.path is None else f"{name_among(self.path, LOG_NAMES)}-"
        changes = [
            f"-{getattr(problem, name)}-{word}" if word != "horizon" else f"-horizon-{problem.horizon}"
            for name, word in {"nodes": "nodes", "jobs": "jobs", "horizon": "horizon"}.items()
            if getattr(problem, name) != getattr(usual, name)
        ]
        return f"{log}{problem.system}{''.join(changes)}"

    @property
    def trained(self) -> bool:
        """Whether there are agents for the system."""
        return self.problem.system in self.scale.systems

    @cached_property
    def validation(self) -> SequenceSet:
        return self._drawn("validation", VALIDATION, self.scale.validation)

    @cached_property
    def unseen(self) -> SequenceSet:
        """Test sets, on which no agent is trained; jobs request the same shares of any cluster."""
        if self.kind == "swept":
            return self._drawn("swept-unseen", UNSEEN, self.scale.sweep_unseen)
        if self.kind == "plus" and self.path is not None:
            return self._of_log(self.path)
        if self.kind == "plus" and self.problem.jobs != PROBLEM.jobs:
            return self._drawn("unseen", UNSEEN, self.scale.plus_unseen)
        return self._drawn("unseen", UNSEEN, self.scale.unseen)

    @cached_property
    def given(self) -> SequenceSet:
        """Job sets of the file, on the paper's cluster."""
        assert self.path is not None
        scenarios = tuple(map(self.problem.scenario, read_job_sets(self.path)))
        for scenario in scenarios:
            cluster, jobs = scenario.setup.cluster, scenario.workload
            assert isinstance(cluster, Machines)
            misfits = jobs.id[cluster.misfits(jobs)]
            if len(misfits):
                raise UsageError(
                    f"{self.path}: job {misfits[0]} of {jobs.name} asks for more than all "
                    f"{self.problem.nodes} nodes of {self.problem.system.capitalize()} have"
                )
        return SequenceSet(self.name, scenarios)

    def _drawn(self, part: str, purpose: int, count: int) -> SequenceSet:
        rng = np.random.default_rng([self.seed, purpose])
        return SequenceSet(f"{self.label}-{part}", tuple(self.problem.scenarios(rng, count)))

    def _of_log(self, path: Path) -> SequenceSet:
        """Return job sets with run times and requests of jobs drawn from a log."""
        problem, rng = self.problem, np.random.default_rng([self.seed, UNSEEN])
        sets = CushLogSets(read_log(path), problem.system, problem.nodes, problem.jobs)
        drawn = sets.generate(rng, self.label, self.scale.plus_unseen)
        return SequenceSet(f"{self.label}-unseen", tuple(map(problem.scenario, drawn)))

    @property
    def variables(self) -> dict[str, Any]:
        return {"log": self, "problem": self.problem}

    def line(self) -> str:
        if self.kind == "plus":
            words = "with run times and requests of the log's jobs, " * (self.path is not None)
            return f"{self.name}: {len(self.unseen.scenarios)} job sets, {words}on {self.problem.nodes} nodes"
        if self.path is not None:
            count = len(self.given.scenarios)
            return f"{self.name}: {count} job set{'s' * (count != 1)} for {self.problem.system.capitalize()}"
        node, scale = CUSH_SYSTEMS[self.problem.system], self.scale
        return (
            f"{self.name}: {self.problem.nodes} nodes of {node.cpus} CPUs and {node.gpus} GPUs; "
            f"{scale.job_sets} job sets to learn from with each seed, {scale.validation} to choose by, "
            f"{scale.unseen} to be tested on"
        )


@part
class Trials(Logs):
    """All job sets other than the training ones."""

    @cached_property
    def all(self) -> Sequence[Trial]:
        """Job sets of the paper, of files, and of Sierra with changes."""
        systems = [CushProblem(system=system) for system in self.scale.systems]
        sizes = [CushProblem(nodes=nodes) for nodes in self.scale.nodes]
        swept = dict.fromkeys([*sizes, *(CushProblem(horizon=horizon) for horizon in self.scale.horizons)])
        files = [
            Trial("file", CushProblem(system=system_of(path)), self.scale, self.seed, path)
            for path in self.paths
        ]
        return [
            *(Trial("system", problem, self.scale, self.seed) for problem in systems),
            *each_once(files),
            *(Trial("swept", problem, self.scale, self.seed) for problem in swept),
        ]

    def lines(self) -> Iterator[str]:
        for trial in self.all:
            if trial.kind != "swept":
                yield trial.line()


@part
class PlusTrials(Trials):
    """Job sets for CuSH+: those of both systems, others in number, and those of logs."""

    cores = CORES

    @cached_property
    def all(self) -> Sequence[Trial]:
        scale = self.scale
        problems = [
            *(CushProblem(system=system) for system in scale.systems),
            *(CushProblem(jobs=jobs) for jobs in scale.plus_jobs),
        ]
        logs = [
            Trial(
                "plus",
                CushProblem(nodes=nodes_for(read_log(path)), jobs=scale.log_jobs),
                scale,
                self.seed,
                path,
            )
            for path in self.paths
        ]
        return [*(Trial("plus", problem, scale, self.seed) for problem in problems), *each_once(logs)]


# --- agents ---------------------------------------------------------------------------------------------


@part
@dataclass(frozen=True)
class CushLearner:
    """A job selector and a policy selector that are trained together, in place of a :class:`Learner`."""

    name: str
    problem: CushProblem
    trainer: str
    settings: GamesSettings
    seed: int

    requires = ()

    @classmethod
    def of(cls, *parts: Any) -> Self:
        """Return the learner of a problem, from its parameters."""
        return cls(*parts)

    @property
    def policy(self) -> Pipeline:
        """Pipeline with the two open seats."""
        return self.problem.pipeline()

    @property
    def size(self) -> int:
        """Approximate number of training decisions, or of others that take as long; the expert's included."""
        return self.settings.decisions

    @property
    def _trainer(self) -> GamesTrainer:
        found: GamesTrainer = trainer_named(self.trainer)(self.problem, self.settings, seed=self.seed)
        return found

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train, or resume from the folder's checkpoint; return the job selector."""
        told = lambda report: tell(self.settings.decided(report))  # noqa: E731
        return self._trainer.train(folder, resume=True, tell=told)["order"]

    def job_sets(self) -> list[Scenario]:
        """Return the job sets of every epoch, or of the first epoch if each has its own."""
        return self._trainer.job_sets(0)

    def with_others(self, policy: Policy, store: Path, *, sample: bool) -> Policy:
        """Return the policy: there are no further agents."""
        return policy

    def agents(self, folder: Path, *, sample: bool) -> list[Agent]:
        return [Agent.load(folder / file, sample=sample) for file in AGENTS.values()]


@part
def learned_from(learner: CushLearner) -> SequenceSet:
    """Return the training job sets of a learner."""
    return SequenceSet(f"{learner.name}-learned", tuple(learner.job_sets()))


# --- reproduction -----------------------------------------------------------------------------------------


class OwnReproduction(PaperReproduction):
    """A job selector on images and a policy selector, against heuristics and the best allocation."""

    def kept(self, contest: Comparison, store: Store) -> Scores:
        """Return the measured values, of CuSH's agents by the way that is better on the validation sets."""
        ways = self.ways(store).get(contest.variables["problem"].system, {})
        chosen = [
            who
            for who in contest.contestants
            if (way := ways.get(contest.family_of(who))) is None or who.sample == (way[1] < way[0])
        ]
        return Scores.kept(contest._replace(contestants=chosen), store)

    def ways(self, store: Store) -> dict[str, dict[str, tuple[float, float]]]:
        """Return the mean validation NTAT of CuSH's agents, greedy and sampling, by system and family."""
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for contest in self.contests:
            if contest.protocol == "validation":
                scores, ways = Scores.kept(contest, store), {}
                for family, rows in contest.families("trained").items():
                    means = [(row.sample, scores.mean(row.name, NTAT)) for row in rows]
                    best, drawn = ([mean for sample, mean in means if sample is way] for way in (False, True))
                    ways[family] = float(np.mean(best)), float(np.mean(drawn))
                found[contest.variables["problem"].system] = ways
        return found
