"""Agents of reproductions: their settings, their training, and loading trained ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.agents.training.seat_trainer import RunSettings
from hpcsimkit.agents.training.trainer import BEST, CURVE, LAST
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Reward
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reports.learning_curve import Curve, read_curve


@dataclass(frozen=True)
class Learner:
    """Agent to train, with all settings of its training.

    Parameters
    ----------
    name : str
        Unique name, which is also the name of a folder.
    episodes : Episodes
        Training episodes.
    policy : Policy
        Policy with an open seat.
    encoder, mask, reward
        Parameters of :class:`~hpcsimkit.envs.environment.SchedulingEnv`.
    trainer : str or type
        Name in :data:`~hpcsimkit.agents.training.catalogue.TRAINERS`, or class of a trainer.
    settings : RunSettings
        Settings of the trainer, of its class of settings.
    seed : int
        Random seed of the training.
    stage : str
        Name of the seat. Default: ``dispatch``.
    skip : bool
        Whether forced decisions are left out of the training. Default: True.
    validate : callable, optional
        Function ``validate(agent)`` that returns a score, larger is better: the best agent is kept. By
        default the last one is. Its name and, for a `functools.partial`, its arguments are part of its
        identity.
    validate_every : int
        Number of rounds between validations. Default: 10.
    attempts : int
        Maximum number of sequences sampled until one has a decision. Default: 1.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.training.ppo import PPOSettings
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> w = Workload({"submit_time": [0] * 3, "run_time": [90, 10, 50], "nodes": [1] * 3}, machine_size=1)
    >>> learner = Learner("shortest", Fixed(w), Pipeline(order=External(), window=3), QueueWindow(3),
    ...     Slots(3), MinusMeanWait(), "ppo", PPOSettings(total_timesteps=8, episodes=1, n_steps=8), seed=1,
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
    trainer: str | type[Any]
    settings: RunSettings
    seed: int
    stage: str = "dispatch"
    skip: bool = True
    validate: Callable[[Agent], float] | None = None
    validate_every: int = 10
    attempts: int = 1

    @classmethod
    def of(
        cls,
        name: str,
        env: SchedulingEnv,
        trainer: str | type[Any],
        settings: RunSettings,
        seed: int,
        **others: Any,
    ) -> Self:
        """Return the learner of the agent in an environment; `others` are further parameters."""
        parts = (env.episodes, env.policy, env.encoder, env.mask, env.reward)
        seat = {"stage": env.stage, "skip": env.skip, "attempts": env.attempts}
        return cls(name, *parts, trainer, settings, seed, **{**seat, **others})

    @property
    def trainer_class(self) -> type[Any]:
        """Class of the trainer."""
        return trainer_named(self.trainer) if isinstance(self.trainer, str) else self.trainer

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return ()

    def with_others(self, policy: Policy, store: Path, *, sample: bool) -> Policy:
        """Return a policy with further agents at its seats, from the folder of all tasks; by default none."""
        return policy

    @property
    def size(self) -> int:
        """Number of training steps (decisions)."""
        return self.settings.total_timesteps

    def agents(self, folder: Path, *, sample: bool) -> list[Agent]:
        """Return the trained agents, one for each seat, from the folder of the training; by default one."""
        return [trained_agent(self, folder, sample=sample)]

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train the agent, or resume its training from the checkpoint in the folder."""
        env = SchedulingEnv(
            self.episodes,
            self.with_others(self.policy, folder.parent, sample=True),
            self.encoder,
            self.mask,
            self.reward,
            stage=self.stage,
            skip=self.skip,
            attempts=self.attempts,
        )
        trainer = self.trainer_class(
            env, self.settings, seed=self.seed, validate=self.validate, validate_every=self.validate_every
        )
        return trainer.train(folder, resume=True, tell=lambda report: tell(report.steps))


@dataclass(frozen=True)
class Training(Task):
    """Training of a learner as a task.

    Parameters
    ----------
    learner : Learner
        Agent to train.
    kind : str
        Name of the group of trainings with the same rate. Default: ``training``.
    """

    learner: Learner
    kind: str = "training"

    @property
    def name(self) -> str:
        """Name of the learner."""
        return self.learner.name

    @property
    def size(self) -> int:
        """Number of training steps (decisions)."""
        return self.learner.size

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return self.learner.requires

    def inputs(self) -> Any:
        """Return the learner with all its settings."""
        return {"learner": self.learner}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Train the agent; write its files and the learning curve to the folder."""
        agent = self.learner.train(folder, tell)
        return {"steps": (agent.about or {}).get("steps"), "best": (agent.about or {}).get("validation")}


def trained_agent(learner: Learner, folder: Path, *, sample: bool) -> Agent:
    """Return the agent of a training from its folder: the best one in validation, or the last one.

    Parameters
    ----------
    learner : Learner
        Settings of the trained agent.
    folder : Path
        Folder of the training.
    sample : bool
        Whether actions are sampled; otherwise the best one is taken.
    """
    file = folder / (LAST if learner.validate is None else BEST)
    return Agent.load(file, encoder=learner.encoder, mask=learner.mask, sample=sample)


def learning_curve_of(folder: Path) -> Curve:
    """Return the learning curve of a training from its folder."""
    return read_curve(folder / CURVE)
