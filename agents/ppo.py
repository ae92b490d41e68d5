"""Proximal policy optimisation with masked actions (Schulman et al., 2017), in one file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from hpcsimkit.agents.on_policy import Batch, OnPolicyTrainer, Settings
from hpcsimkit.agents.torch_networks import masked_log_probabilities

__all__ = ["PPO", "PPOSettings", "clipped_loss"]


@dataclass(frozen=True)
class PPOSettings(Settings):
    """Settings of PPO.

    Parameters
    ----------
    epochs : int
        How often each step is learned from.
    batch : int
        Steps of one update.
    clip : float
        epsilon: how far the probability of an action may move in one round.
    """

    epochs: int = 10
    batch: int = 512
    clip: float = 0.2


def clipped_loss(ratios: torch.Tensor, advantages: torch.Tensor, clip: float) -> torch.Tensor:
    """Return minus the clipped surrogate objective (eq. 7 of the paper).

    >>> ratios, advantages = torch.tensor([0.5, 1.0, 2.0]), torch.tensor([1.0, 1.0, 1.0])
    >>> round(float(clipped_loss(ratios, advantages, 0.2)), 6)  # minus the mean of 0.5, 1.0 and 1.2
    -0.9
    """
    clipped = torch.clamp(ratios, 1 - clip, 1 + clip)
    return -torch.min(ratios * advantages, clipped * advantages).mean()


class PPO(OnPolicyTrainer):
    """Learns several times from each round, without moving far from the policy that played it."""

    algorithm = "ppo"
    settings: PPOSettings

    def learn(self, batch: Batch) -> tuple[float, float, float]:
        """Learn from all steps, in batches of random order, several times."""
        settings = self.settings
        advantages = (batch.advantages - batch.advantages.mean()) / (batch.advantages.std() + 1e-8)
        batch = batch._replace(advantages=advantages)
        losses = []
        for _ in range(settings.epochs):
            order = self.rng.permutation(len(batch.actions))
            for first in range(0, len(order), settings.batch):
                losses.append(self._update(batch.rows(order[first : first + settings.batch])))
        policy, value, entropy = np.mean(losses, axis=0).tolist()
        return policy, value, entropy

    def _update(self, batch: Batch) -> tuple[float, float, float]:
        logarithms = masked_log_probabilities(self.networks.scores(batch.observations), batch.valid)
        chosen = logarithms.gather(1, batch.actions[:, None])[:, 0]
        ratios = torch.exp(chosen - batch.log_probabilities)
        policy = clipped_loss(ratios, batch.advantages, self.settings.clip)
        value = torch.nn.functional.mse_loss(self.networks.values(batch.observations), batch.returns)
        entropy = -(logarithms.exp() * logarithms).sum(dim=1).mean()
        self.descend(policy + self.settings.value_weight * value - self.settings.entropy_weight * entropy)
        return policy.item(), value.item(), entropy.item()
