"""Trained agents: CuSH as published and with variations, and agents of the cross-entropy method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.evolved import EVOLVED, evolved_environment
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.taught import TaughtSettings, TaughtTrainer, teacher_of
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
from hpcsimkit.agents.cush.training import AGENTS, GamesSettings, GamesTrainer
from hpcsimkit.agents.training.cross_entropy import CrossEntropySettings
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.reproductions.cush.data import Scale, label_of
from hpcsimkit.reproductions.learners import Learner

__all__ = [
    "DECISIONS",
    "FARTHER",
    "CushLearner",
    "CushTraining",
    "Learners",
    "SelectorsLearner",
    "TaughtLearner",
    "farther",
]

DECISIONS = 30
"""Approximate number of decisions with a choice of the job selector in a simulation."""

EVOLVES_FASTER = 2
"""Ratio of decisions per second in cross-entropy training to those in CuSH's training."""

TAUGHT_SLOWER = 6
"""Ratio of the time of a decision in imitation learning to one in CuSH's: hardly any states recur."""

FASTER = 2
"""Ratio of the policy selector's learning rate to the paper's, for a small part of the paper's epochs."""

FARTHER = 10
"""Horizon [s] of agents trained for unseen job sets; the paper tries it too."""


def farther(problem: CushProblem) -> CushProblem:
    """Return a problem with a longer horizon.

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
        Unique name, valid as a folder name.
    problem : CushProblem
        Scheduling problem to learn.
    settings : GamesSettings
        Settings of the training.
    seed : int
        Random seed of the training.
    """

    name: str
    problem: CushProblem
    settings: GamesSettings
    seed: int

    @property
    def played(self) -> int:
        """Number of simulations of an epoch."""
        return self.settings.job_sets * self.settings.simulations

    @property
    def size(self) -> int:
        """Approximate number of training decisions."""
        return self.settings.epochs * self.played * DECISIONS

    @abstractmethod
    def train(self, folder: Path, tell: Tell) -> None:
        """Train, or resume from the folder's checkpoint."""

    def _train(self, trainer: GamesTrainer, folder: Path, tell: Tell) -> None:
        decisions = self.played * DECISIONS
        trainer.train(folder, resume=True, tell=lambda report: tell(report.steps * decisions))

    def agents(self, folder: Path, *, sample: bool) -> dict[str, Agent]:
        """Return the trained agents from a folder, by seat, either sampling or greedy."""
        return {seat: Agent.load(folder / file, sample=sample) for seat, file in AGENTS.items()}


@dataclass(frozen=True)
class CushLearner(SelectorsLearner):
    """A learner trained by policy gradient."""

    settings: CushSettings

    @property
    def _trainer(self) -> CushTrainer:
        return CushTrainer(self.problem, self.settings, seed=self.seed)

    def train(self, folder: Path, tell: Tell) -> None:
        """Train, or resume from the folder's checkpoint."""
        self._train(self._trainer, folder, tell)

    def job_sets(self) -> list[Scenario]:
        """Return the job sets of every epoch, or of the first epoch if each has its own."""
        return self._trainer.job_sets(0)


@dataclass(frozen=True)
class TaughtLearner(SelectorsLearner):
    """A learner with a job selector trained to imitate an expert, a cross-entropy agent trained first.

    Parameters
    ----------
    evolving : CrossEntropySettings
        Settings of the expert's training.
    """

    settings: TaughtSettings
    evolving: CrossEntropySettings

    @property
    def _evolution(self) -> int:
        """Number of training decisions that take as long as the expert's training, approximately."""
        return self.evolving.total_timesteps // EVOLVES_FASTER

    @property
    def size(self) -> int:
        """Number of decisions of other trainings that take as long, the expert's training included."""
        return super().size * TAUGHT_SLOWER + self._evolution

    def train(self, folder: Path, tell: Tell) -> None:
        """Train the expert in a folder of its own, then the selectors, or resume either."""
        teacher = teacher_of(
            self.problem,
            self.evolving,
            seed=self.seed,
            folder=folder / "teacher",
            resume=True,
            tell=lambda report: tell(report.steps // EVOLVES_FASTER),
        )
        trainer = TaughtTrainer(self.problem, self.settings, teacher=teacher, seed=self.seed)
        self._train(trainer, folder, lambda done: tell(self._evolution + done * TAUGHT_SLOWER))


@dataclass(frozen=True)
class CushTraining(Task):
    """The training of a learner; the agents and the learning curve are saved in the task's folder."""

    learner: SelectorsLearner

    kind = "training"

    @property
    def name(self) -> str:
        """Name of the task: that of the learner."""
        return self.learner.name

    @property
    def size(self) -> int:
        """Approximate number of training decisions."""
        return self.learner.size

    def inputs(self) -> Any:
        """Return the inputs of the task: the learner."""
        return {"learner": self.learner}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Train the learner."""
        self.learner.train(folder, tell)
        return {"epochs": self.learner.settings.epochs}


class Learners:
    """Factory of the agents to be trained.

    Parameters
    ----------
    scale : Scale
        Size preset of the experiment.
    seed : int
        Random seed of the first agent of each type; the others have consecutive seeds.
    """

    def __init__(self, scale: Scale, seed: int) -> None:
        self.scale = scale
        self.seed = seed

    @property
    def published(self) -> CushSettings:
        """Settings of CuSH: as published, except for the size preset and a faster policy selector."""
        scale = self.scale
        return CushSettings(
            epochs=scale.epochs,
            job_sets=scale.job_sets,
            simulations=scale.simulations,
            style_learning_rate=FASTER * CushSettings.style_learning_rate,
        )

    @property
    def general(self) -> CushSettings:
        """Settings of CuSH for unseen job sets."""
        return replace(self.published, fresh=True, equal_sets=True)

    def cush(self, problem: CushProblem) -> Sequence[CushLearner]:
        """Return CuSH, trained on the same job sets in every epoch, with several seeds."""
        return self._several("cush", problem, self.published, self.scale.seeds)

    def fresh(self, problem: CushProblem) -> Sequence[CushLearner]:
        """Return CuSH with a longer horizon, trained on new job sets in each epoch, with several seeds."""
        return self._several("fresh", farther(problem), self.general, self.scale.fresh_seeds)

    def taught(self, problem: CushProblem) -> Sequence[TaughtLearner]:
        """Return CuSH with a longer horizon, trained by imitation of a cross-entropy agent, several seeds."""
        settings = TaughtSettings(epochs=self.scale.taught_epochs)
        return [
            TaughtLearner(
                f"{label_of(farther(problem))}-taught-{number + 1}",
                farther(problem),
                settings,
                self.seed + number,
                self._evolving_settings,
            )
            for number in range(self.scale.taught_seeds)
        ]

    def evolved(self, problem: CushProblem) -> Sequence[Learner]:
        """Return cross-entropy agents of few weights on the job selector's seat, with several seeds."""
        return self._evolving("evolved", problem, self.scale.evolved_seeds)

    def evolved_in_sight(self, problem: CushProblem) -> Sequence[Learner]:
        """Return the same agents with CuSH's horizon."""
        return self._evolving("in-sight", problem, self.scale.evolved_seeds, horizon=problem.horizon)

    def evolved_on_all(self, problem: CushProblem) -> Sequence[Learner]:
        """Return the same agents, but selecting among all waiting jobs instead of the five oldest."""
        settings = replace(EVOLVED, total_timesteps=self.scale.whole_queue_steps)
        everyone = replace(problem, slots=problem.jobs)
        return self._evolving("whole-queue", everyone, self.scale.whole_queue_seeds, settings=settings)

    def swept(self, problem: CushProblem) -> CushLearner:
        """Return CuSH with a shorter training, for comparisons of clusters and horizons."""
        settings = replace(self.published, epochs=self.scale.sweep_epochs)
        return self._several("swept", problem, settings, 1)[0]

    @property
    def _evolving_settings(self) -> CrossEntropySettings:
        steps = self.scale.evolved_steps
        return EVOLVED if steps is None else replace(EVOLVED, total_timesteps=steps)

    def _evolving(
        self,
        kind: str,
        problem: CushProblem,
        count: int,
        *,
        horizon: int | None = None,
        settings: CrossEntropySettings | None = None,
    ) -> Sequence[Learner]:
        env, settings = evolved_environment(problem, horizon=horizon), settings or self._evolving_settings
        return [
            Learner.of(f"{label_of(problem)}-{kind}-{number + 1}", env, "cem", settings, self.seed + number)
            for number in range(count)
        ]

    def _several(
        self, kind: str, problem: CushProblem, settings: CushSettings, count: int
    ) -> Sequence[CushLearner]:
        return [
            CushLearner(f"{label_of(problem)}-{kind}-{number + 1}", problem, settings, self.seed + number)
            for number in range(count)
        ]
