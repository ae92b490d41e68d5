"""DRAS-DQL: learns what each job of the window is worth, and takes the one that is worth most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dql import q_targets
from hpcsimkit.agents.dras.torch_network import JobValuesNetwork
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer, Floats, Scoring, Steps
from hpcsimkit.agents.trainer import State

__all__ = ["DrasDQL", "DrasDQLSettings"]


@dataclass(frozen=True)
class DrasDQLSettings(DrasSettings):
    """Settings of DRAS-DQL.

    Parameters
    ----------
    explore_first : float
        Share of actions that is drawn at random, at first: epsilon, in [0, 1].
    explore_decay : float
        It is multiplied by this at each update, in [0, 1]. (The paper does not say when.)
    explore_least : float
        It does not fall below this, in [0, 1].
    """

    explore_first: float = 1.0
    explore_decay: float = 0.995
    explore_least: float = 0.01


class DrasDQL(DrasTrainer):
    """Learns from rewards and the best that the next decision offers (eq. 3): no memory, no target network.

    After the last decision of an episode nothing comes.
    """

    algorithm = "dras-dql"
    settings: DrasDQLSettings
    networks: JobValuesNetwork

    def build(self, seed: int) -> None:
        """Make the network; at first it tries everything."""
        super().build(seed)
        self.exploration = self.settings.explore_first

    def begin(self, agent: Agent | None = None) -> None:
        """As that of all; who goes on from what an agent has learned explores as little as may be."""
        super().begin(agent)
        if agent is not None:
            self.exploration = self.settings.explore_least

    def make(self) -> JobValuesNetwork:
        """Return a network that reads one job and all nodes."""
        env = self.env
        return JobValuesNetwork(2 + env.encoder.shape[0] - 2 * env.mask.actions, self.hidden)

    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Return the job that is worth most, or draw one."""
        if len(actions) == 1:
            return int(actions[0])
        if self.rng.random() < self.exploration:
            return int(self.rng.choice(actions))
        return int(actions[network.scores_of(seen, actions).argmax()])

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take one step down the gradient, and explore a little less."""
        settings = self.settings
        loss = self.loss(steps)
        self.descend(loss)
        self.exploration = max(settings.explore_least, self.exploration * settings.explore_decay)
        return {"loss": loss.item(), "exploration": self.exploration}

    def loss(self, steps: Steps) -> torch.Tensor:
        """Return half the sum of squared differences from what actions turned out to be worth (eq. 3)."""
        rows = torch.arange(len(steps.actions), device=steps.actions.device)
        values = self.networks.of_jobs(steps.observations, rows, steps.actions)
        with torch.no_grad():
            following = self.networks.where(steps.following, steps.following_valid)
            targets = q_targets(
                steps.rewards, steps.following_valid.any(dim=1), following, steps.following_valid,
                self.settings.discount,
            )  # fmt: skip
        return 0.5 * (values - targets).square().sum()

    def state(self) -> State:
        """Return how much it explores."""
        return State({}, {"exploration": self.exploration})

    def restore(self, state: State) -> None:
        """Go on with it."""
        self.exploration = state.about["exploration"]
