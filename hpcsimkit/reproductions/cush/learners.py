"""Who is trained: CuSH as published, on fresh job sets, by a teacher, on other clusters; and who evolves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.cush.evolved import EVOLVED, evolved_environment
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.taught import TaughtSettings, TaughtTrainer, teacher_of
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
from hpcsimkit.agents.cush.training import AGENTS, GamesSettings, GamesTrainer
from hpcsimkit.reproductions.cush.data import Scale, label_of
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.tasks import Task, Tell
from hpcsimkit.scenario import Scenario

__all__ = [
    "DECISIONS", "FARTHER", "CushLearner", "CushTraining", "Learners", "SelectorsLearner", "TaughtLearner",
    "farther",
]  # fmt: skip

DECISIONS = 30
"""In a simulation, about: those that the job selector has a choice about."""

EVOLVES_FASTER = 2
"""How many times as many decisions who evolves takes in a second, as CuSH learns from."""

TAUGHT_SLOWER = 6
"""How many times as long as CuSH's a decision takes that a teacher looks at: hardly any are alike."""

FASTER = 2
"""How many times the paper's rate the policy selector learns with, in a small part of the paper's epochs."""

FARTHER = 10
"""Seconds that are seen by who is trained for job sets that it has not played; the paper tries as many."""


def farther(problem: CushProblem) -> CushProblem:
    """Return a problem of which more is seen.

    >>> farther(CushProblem(system="summit")).horizon
    10
    """
    return replace(problem, horizon=FARTHER)


@dataclass(frozen=True)
class SelectorsLearner(ABC):
    """A job selector and a policy selector that are trained together.

    Parameters
    ----------
    name : str
        Unique, and fit to be the name of a folder.
    problem : CushProblem
        What is learned.
    settings : GamesSettings
        How.
    seed : int
        Where all chance of the training comes from.
    """

    name: str
    problem: CushProblem
    settings: GamesSettings
    seed: int

    @property
    def played(self) -> int:
        """Simulations of an epoch."""
        return self.settings.job_sets * self.settings.simulations

    @property
    def size(self) -> int:
        """Decisions to learn from, about."""
        return self.settings.epochs * self.played * DECISIONS

    @abstractmethod
    def train(self, folder: Path, tell: Tell) -> None:
        """Train, or go on with it from the folder's checkpoint."""

    def _train(self, trainer: GamesTrainer, folder: Path, tell: Tell) -> None:
        decisions = self.played * DECISIONS
        trainer.train(folder, resume=True, tell=lambda report: tell(report.steps * decisions))

    def agents(self, folder: Path, *, sample: bool) -> dict[str, Agent]:
        """Return what a training has left in its folder, by seat; the job selector draws, or takes the best.

        The policy selector does likewise.
        """
        return {seat: Agent.load(folder / file, sample=sample) for seat, file in AGENTS.items()}


@dataclass(frozen=True)
class CushLearner(SelectorsLearner):
    """One who is trained by policy gradient."""

    settings: CushSettings

    @property
    def _trainer(self) -> CushTrainer:
        return CushTrainer(self.problem, self.settings, seed=self.seed)

    def train(self, folder: Path, tell: Tell) -> None:
        """Train, or go on with it from the folder's checkpoint."""
        self._train(self._trainer, folder, tell)

    def job_sets(self) -> list[Scenario]:
        """Return the job sets that are played in every epoch; if each has its own, those of the first."""
        return self._trainer.job_sets(0)


@dataclass(frozen=True)
class TaughtLearner(SelectorsLearner):
    """One whose job selector is taught by an agent that evolves first.

    Parameters
    ----------
    evolving : CrossEntropySettings
        How the teacher does.
    """

    settings: TaughtSettings
    evolving: CrossEntropySettings

    @property
    def _evolution(self) -> int:
        """How many decisions to learn from take as long as the teacher's evolution, about."""
        return self.evolving.steps // EVOLVES_FASTER

    @property
    def size(self) -> int:
        """How many decisions of others to learn from take as long, the teacher's evolution included."""
        return super().size * TAUGHT_SLOWER + self._evolution

    def train(self, folder: Path, tell: Tell) -> None:
        """Let the teacher evolve in a folder of its own, and train, or go on with either."""
        teacher = teacher_of(
            self.problem, self.evolving, seed=self.seed, folder=folder / "teacher", resume=True,
            tell=lambda report: tell(report.steps // EVOLVES_FASTER),
        )  # fmt: skip
        trainer = TaughtTrainer(self.problem, self.settings, teacher=teacher, seed=self.seed)
        self._train(trainer, folder, lambda done: tell(self._evolution + done * TAUGHT_SLOWER))


@dataclass(frozen=True)
class CushTraining(Task):
    """The training of a learner; the agents and the learning curve stay in the folder."""

    learner: SelectorsLearner

    kind = "training"

    @property
    def name(self) -> str:
        """That of the learner."""
        return self.learner.name

    @property
    def size(self) -> int:
        """Decisions to learn from, about."""
        return self.learner.size

    def inputs(self) -> Any:
        """Return all about the learner."""
        return {"learner": self.learner}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Train."""
        self.learner.train(folder, tell)
        return {"epochs": self.learner.settings.epochs}


class Learners:
    """Makes the agents to be trained.

    Parameters
    ----------
    scale : Scale
        How long they learn, and from how much.
    seed : int
        Of the first agent of each kind; the others follow.
    """

    def __init__(self, scale: Scale, seed: int) -> None:
        self.scale = scale
        self.seed = seed

    @property
    def published(self) -> CushSettings:
        """How CuSH is trained: as published, but for what the scale says, and a faster policy selector."""
        scale = self.scale
        return CushSettings(
            epochs=scale.epochs, job_sets=scale.job_sets, simulations=scale.simulations,
            style_learning_rate=FASTER * CushSettings.style_learning_rate,
        )  # fmt: skip

    @property
    def general(self) -> CushSettings:
        """How CuSH is trained for job sets that it has not seen."""
        return replace(self.published, fresh=True, equal_sets=True)

    def cush(self, problem: CushProblem) -> Sequence[CushLearner]:
        """Return CuSH, trained on the same job sets in every epoch, with several seeds."""
        return self._several("cush", problem, self.published, self.scale.seeds)

    def fresh(self, problem: CushProblem) -> Sequence[CushLearner]:
        """Return CuSH that sees farther, trained on other job sets in each epoch, with several seeds."""
        return self._several("fresh", farther(problem), self.general, self.scale.fresh_seeds)

    def taught(self, problem: CushProblem) -> Sequence[TaughtLearner]:
        """Return CuSH's networks that see farther, taught by who evolved and sees as far, several seeds."""
        settings = TaughtSettings(epochs=self.scale.taught_epochs)
        return [
            TaughtLearner(
                f"{label_of(farther(problem))}-taught-{number + 1}", farther(problem), settings,
                self.seed + number, self._evolving_settings,
            )
            for number in range(self.scale.taught_seeds)
        ]  # fmt: skip

    def evolved(self, problem: CushProblem) -> Sequence[Learner]:
        """Return agents of few weights that evolve on the job selector's seat, with several seeds."""
        return self._evolving("evolved", problem, None, self.scale.evolved_seeds)

    def evolved_in_sight(self, problem: CushProblem) -> Sequence[Learner]:
        """Return the same that see no further than CuSH."""
        return self._evolving("in-sight", problem, problem.horizon, self.scale.evolved_seeds)

    def swept(self, problem: CushProblem) -> CushLearner:
        """Return CuSH that is trained for less long, for comparisons of clusters and horizons."""
        settings = replace(self.published, epochs=self.scale.sweep_epochs)
        return self._several("swept", problem, settings, 1)[0]

    @property
    def _evolving_settings(self) -> CrossEntropySettings:
        steps = self.scale.evolved_steps
        return EVOLVED if steps is None else replace(EVOLVED, steps=steps)

    def _evolving(
        self, kind: str, problem: CushProblem, horizon: int | None, count: int
    ) -> Sequence[Learner]:
        env, settings = evolved_environment(problem, horizon=horizon), self._evolving_settings
        return [
            Learner(
                f"{label_of(problem)}-{kind}-{number + 1}", env.episodes, env.policy, env.encoder, env.mask,
                env.reward, "cem", settings, seed=self.seed + number, stage=env.stage, skip=env.skip,
            )
            for number in range(count)
        ]  # fmt: skip

    def _several(
        self, kind: str, problem: CushProblem, settings: CushSettings, count: int
    ) -> Sequence[CushLearner]:
        return [
            CushLearner(f"{label_of(problem)}-{kind}-{number + 1}", problem, settings, self.seed + number)
            for number in range(count)
        ]
