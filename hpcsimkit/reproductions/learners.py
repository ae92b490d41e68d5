"""Agents, and all that decides what they become: described, trained, and taken from the shelf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.trainer import BEST, CURVE, LAST, RunSettings
from hpcsimkit.agents.trainers_catalogue import trainer_named
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.learning import Encoder, Episodes, Mask, Reward
from hpcsimkit.pictures.learning_curve import Curve, read_curve
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.tasks import Task, Tell

__all__ = ["Learner", "Training", "learning_curve_of", "trained_agent"]


@dataclass(frozen=True)
class Learner:
    """An agent to be trained.

    Parameters
    ----------
    name : str
        Unique, and fit to be the name of a folder.
    episodes : Episodes
        What it learns from.
    policy : Policy
        With the seat left open.
    encoder, mask, reward
        As for :class:`~hpcsimkit.environment.SchedulingEnv`.
    trainer : str
        One of :data:`~hpcsimkit.agents.trainers_catalogue.TRAINERS`.
    settings : RunSettings
        How; of the trainer's own class.
    seed : int
        Where all chance of the training comes from.
    stage : str
        The seat.
    skip : bool
        Decisions with one option are nothing to learn from.
    validate : callable, optional
        ``validate(agent)``, larger is better: the best agent is kept, else the last. Its name and, of a
        `functools.partial`, its arguments tell it from others.
    validate_every : int
        Rounds between validations.
    attempts : int
        Sequences that are drawn at most until there is something to decide in one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.agents.encoders import QueueWindow
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> from hpcsimkit.agents.masks import Slots
    >>> from hpcsimkit.agents.ppo import PPOSettings
    >>> from hpcsimkit.agents.rewards import MinusMeanWait
    >>> w = Workload({"submit_time": [0] * 3, "run_time": [90, 10, 50], "nodes": [1] * 3}, machine_size=1)
    >>> learner = Learner("shortest", Fixed(w), Pipeline(order=External(), window=3), QueueWindow(3),
    ...     Slots(3), MinusMeanWait(), "ppo", PPOSettings(steps=8, episodes=1, rollout=8), seed=1,
    ...     stage="order")
    >>> with TemporaryDirectory() as place:
    ...     folder = Path(place) / learner.name
    ...     agent = learner.train(folder, print)
    ...     trained_agent(learner, folder, sample=False).stage
    8
    'order'
    """

    name: str
    episodes: Episodes
    policy: Policy
    encoder: Encoder
    mask: Mask
    reward: Reward
    trainer: str
    settings: RunSettings
    seed: int
    stage: str = "dispatch"
    skip: bool = True
    validate: Callable[[Agent], float] | None = None
    validate_every: int = 10
    attempts: int = 1

    def scheduler(self, shelf: Path) -> Policy:
        """Return the policy whose open seat is learned; `shelf` has the folders of all tasks."""
        return self.policy

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train the agent, or go on with it from the folder's checkpoint."""
        env = SchedulingEnv(
            self.episodes, self.scheduler(folder.parent), self.encoder, self.mask, self.reward,
            stage=self.stage, skip=self.skip, attempts=self.attempts,
        )  # fmt: skip
        trainer = trainer_named(self.trainer)(
            env, self.settings, seed=self.seed, validate=self.validate, validate_every=self.validate_every
        )
        return trainer.train(folder, resume=True, tell=lambda report: tell(report.steps))


@dataclass(frozen=True)
class Training(Task):
    """The training of a learner.

    Parameters
    ----------
    learner : Learner
        Who learns.
    kind : str
        Of the task: trainings of one kind go at one pace.
    """

    learner: Learner
    kind: str = "training"

    @property
    def name(self) -> str:
        """That of the learner."""
        return self.learner.name

    @property
    def size(self) -> int:
        """Decisions to learn from."""
        return self.learner.settings.steps

    def inputs(self) -> Any:
        """Return all about the learner."""
        return {"learner": self.learner}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Train; the agents and the learning curve stay in the folder."""
        agent = self.learner.train(folder, tell)
        return {"steps": (agent.about or {}).get("steps"), "best": (agent.about or {}).get("validation")}


def trained_agent(learner: Learner, folder: Path, *, sample: bool) -> Agent:
    """Return the agent that a training has left in a folder: the best by its validation, or the last.

    Parameters
    ----------
    learner : Learner
        Who was trained.
    folder : Path
        That of the training.
    sample : bool
        Draw actions, or take the best.
    """
    file = folder / (LAST if learner.validate is None else BEST)
    return Agent.load(file, encoder=learner.encoder, mask=learner.mask, sample=sample)


def learning_curve_of(folder: Path) -> Curve:
    """Return the learning curve that a training has left in a folder."""
    return read_curve(folder / CURVE)
