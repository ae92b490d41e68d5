"""DRAS-DQL: Q-learning for the jobs of the window; the agent takes the job of highest value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.torch_network import JobValuesNetwork
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer, Floats, Scoring, Steps
from hpcsimkit.agents.ranges import Share
from hpcsimkit.agents.training.dql import q_targets
from hpcsimkit.agents.training.trainer import State

__all__ = ["DrasDQL", "DrasDQLSettings"]


@dataclass(frozen=True)
class DrasDQLSettings(DrasSettings):
    """Settings of DRAS-DQL.

    Parameters
    ----------
    explore_first : float
        Initial exploration rate epsilon, in [0, 1].
    explore_decay : float
        Factor of the exploration rate at each update, in [0, 1]. (The paper does not say when it decays.)
    explore_least : float
        Minimum exploration rate, in [0, 1].
    """

    explore_first: Share = 1.0
    explore_decay: Share = 0.995
    explore_least: Share = 0.01


class DrasDQL(DrasTrainer):
    """Q-learning from the reward and the best value of the next decision (eq. 3).

    There is no replay memory and no target network, and there is no next value after the last decision of an
    episode.
    """

    algorithm = "dras-dql"
    learns_policy = False
    settings: DrasDQLSettings
    networks: JobValuesNetwork

    def build(self, seed: int) -> None:
        """Create the network, with the initial exploration rate."""
        super().build(seed)
        self.exploration = self.settings.explore_first

    def begin(self, agent: Agent | None = None) -> None:
        """Prepare for :meth:`play`; with an agent, exploration begins at its minimum."""
        super().begin(agent)
        if agent is not None:
            self.exploration = self.settings.explore_least

    def make(self) -> JobValuesNetwork:
        """Return a network that reads one job and all nodes."""
        env = self.env
        return JobValuesNetwork(2 + env.encoder.shape[0] - 2 * env.mask.actions, self.hidden)

    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Return the job of highest value, or a random one."""
        if len(actions) == 1:
            return int(actions[0])
        if self.rng.random() < self.exploration:
            return int(self.rng.choice(actions))
        return int(actions[network.scores_of(seen, actions).argmax()])

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take one gradient step, and reduce exploration."""
        settings = self.settings
        loss = self.loss(steps)
        self.descend(loss)
        self.exploration = max(settings.explore_least, self.exploration * settings.explore_decay)
        return {"loss": loss.item(), "exploration": self.exploration}

    def loss(self, steps: Steps) -> torch.Tensor:
        """Return half the sum of squared differences between values and targets (eq. 3)."""
        rows = torch.arange(len(steps.actions), device=steps.actions.device)
        values = self.networks.of_jobs(steps.observations, rows, steps.actions)
        with torch.no_grad():
            following = self.networks.where(steps.following, steps.following_valid)
            targets = q_targets(
                steps.rewards,
                steps.following_valid.any(dim=1),
                following,
                steps.following_valid,
                self.settings.gamma,
            )
        return 0.5 * (values - targets).square().sum()

    def state(self) -> State:
        """Return the exploration rate."""
        return State({}, {"exploration": self.exploration})

    def restore(self, state: State) -> None:
        """Restore the exploration rate."""
        self.exploration = state.about["exploration"]
