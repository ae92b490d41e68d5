"""Base class of the trainers of an agent for one seat of an environment."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.agents.ranges import Count
from hpcsimkit.agents.training.trainer import Learned, Trainer, Validated
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.vector_environment import SchedulingVecEnv

__all__ = ["RunSettings", "SeatTrainer"]


@dataclass(frozen=True)
class RunSettings:
    """Settings shared by all trainers of one seat.

    Parameters
    ----------
    total_timesteps : int
        Total number of decisions to learn from.
    episodes : int
        Number of parallel episodes.
    """

    total_timesteps: int = 100_000
    episodes: Count = 16


class SeatTrainer(Trainer[Agent]):
    """Base class of trainers of an agent for the seat of an environment.

    Subclasses implement :meth:`build`, :meth:`round` and :meth:`network`; :meth:`state` and :meth:`restore`
    are for any state besides ``networks`` and ``optimiser``. The states of the random number generators are
    saved too; episodes are restored by replaying their actions.

    Parameters
    ----------
    env : SchedulingEnv
        Training environment.
    settings : RunSettings
        Training settings.
    seed : int
        Random seed of the run: initial weights, episodes, actions, order of updates.
    validate : callable, optional
        Function ``validate(agent)`` that returns a score, larger is better, or a
        :class:`~hpcsimkit.agents.training.trainer.Validated`; the best agent is kept.
    validate_every : int
        Number of rounds between validations.

    Attributes
    ----------
    vector : SchedulingVecEnv
        Parallel episodes.
    observations : array of float32, shape (episodes, ...)
        Current observations.
    rng : numpy.random.Generator
        Random number generator, for everything but the episodes.
    networks : torch.nn.Module
        Networks in training.
    optimiser : torch.optim.Optimizer
        Optimiser of their weights.

    Examples
    --------
    >>> from hpcsimkit.rl import A2C, DQL, PPO, SB3PPO
    >>> [trainer.algorithm for trainer in (A2C, DQL, PPO, SB3PPO) if issubclass(trainer, SeatTrainer)]
    ['a2c', 'dql', 'ppo', 'sb3-ppo']
    """

    networks: torch.nn.Module
    optimiser: torch.optim.Optimizer

    def __init__(
        self,
        env: SchedulingEnv,
        settings: RunSettings,
        *,
        seed: int = 0,
        validate: Callable[[Agent], float | Validated] | None = None,
        validate_every: int = 10,
    ) -> None:
        super().__init__(settings, seed=seed, validate=validate, validate_every=validate_every)
        self.env = env

    # --- hooks for subclasses ------------------------------------------------------------------------

    @abstractmethod
    def build(self, seed: int) -> None:
        """Create networks and optimiser, with initial weights from the seed."""

    @abstractmethod
    def network(self) -> Network:
        """Return a copy of the current network, for inference."""

    def parallel(self, seed: int) -> SchedulingVecEnv:
        """Return the parallel episodes."""
        return SchedulingVecEnv(self.env, self.settings.episodes, seed=seed)

    # --- implementation of a trainer -----------------------------------------------------------------

    @property
    def total(self) -> int:
        """Number of decisions in the whole run."""
        return int(self.settings.total_timesteps)

    @property
    def simulators(self) -> Counter[str]:
        """Number of episodes begun on each simulator, since the process began or resumed the training."""
        return self.env.simulators

    def begin_run(self) -> None:
        """Create episodes, networks and optimiser from the seed."""
        streams = np.random.SeedSequence(self.seed).spawn(3)
        weights, actions, episodes = (int(stream.generate_state(1)[0]) for stream in streams)
        self.rng = np.random.default_rng(actions)
        self.vector = self.parallel(episodes)
        self.observations = self.vector.reset()
        self.build(weights)

    def agent(self) -> Agent:
        """Return the current agent."""
        about = {
            "algorithm": self.algorithm,
            "settings": self.plain_settings(),
            "seed": self.seed,
            "steps": self.steps,
            "episodes": self._ended,
        }
        return Agent(self.env.encoder, self.env.mask, self.network(), self.env.stage, about=about)

    def agents(self) -> dict[str, Agent]:
        """Return the current agent, by its seat."""
        return {self.env.stage: self.agent()}

    def outcome(self, agents: dict[str, Agent]) -> Agent:
        """Return the agent."""
        return agents[self.env.stage]

    def learned(self) -> Learned:
        """Return networks and optimiser."""
        return {self.env.stage: (self.networks, self.optimiser)}

    def surroundings(self) -> dict[str, Any]:
        """Return the state of the random number generator and of the episodes."""
        rng = json.dumps(self.rng.bit_generator.state)  # its integers are too large for other JSON readers
        return {"rng": rng, "episodes": json.dumps(self.vector.state())}

    def restore_surroundings(self, about: Mapping[str, Any]) -> None:
        """Restore the state from :meth:`surroundings`."""
        self.rng.bit_generator.state = json.loads(about["rng"])
        self.observations = self.vector.restore(json.loads(about["episodes"]))

    def file_of(self, seat: str, name: str) -> str:
        """Return the file name of an agent, which is the only one of its kind."""
        return name

    def loaded(self, seat: str, file: Path) -> Agent:
        """Return the agent from its file, with the encoder and mask of the environment."""
        return Agent.load(file, encoder=self.env.encoder, mask=self.env.mask)

    def identity(self) -> dict[str, Any]:
        """Return the parameters that a checkpoint must match to be resumed from."""
        env, settings = self.env, self.plain_settings()
        settings.pop("device", None)  # a checkpoint can be resumed on another device
        parts = [repr(part) for part in (env.policy, env.encoder, env.mask, env.reward)]
        return {"settings": settings, "environment": parts}
