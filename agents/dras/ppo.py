"""DRAS-PPO: several clipped updates from the same decisions."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hpcsimkit.agents.dras.actor_critic import DrasA2C, DrasA2CSettings
from hpcsimkit.agents.dras.trainer import Steps
from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.ranges import Count, NonNegative

__all__ = ["DrasPPO", "DrasPPOSettings", "clipped_loss"]


@dataclass(frozen=True)
class DrasPPOSettings(DrasA2CSettings):
    """Settings of DRAS-PPO.

    Parameters
    ----------
    clip_range : float
        Clipping range epsilon of the probability ratio. (The paper gives no value.)
    n_epochs : int
        Number of gradient steps on the same decisions.
    """

    clip_range: NonNegative = 0.2
    n_epochs: Count = 4


def clipped_loss(
    logarithms: torch.Tensor, before: torch.Tensor, advantages: torch.Tensor, clip_range: float
) -> torch.Tensor:
    """Return minus the sum of the clipped surrogate objective over the decisions.

    Parameters
    ----------
    logarithms, before : tensors of shape (steps,)
        Log probabilities of the actions, now and at sampling time. (The ratio is new over old; the paper
        prints its inverse.)
    advantages : tensor of shape (steps,)
        Advantages of the actions.
    clip_range : float
        Clipping range epsilon.

    Examples
    --------
    An action with a positive advantage is twice as likely as before; the ratio is clipped to 1.2.

    >>> round(float(clipped_loss(torch.tensor([0.6931]), torch.tensor([0.0]), torch.tensor([3.0]), 0.2)), 4)
    -3.6
    """
    ratios = (logarithms - before).exp()
    return -torch.minimum(
        ratios * advantages, ratios.clamp(1 - clip_range, 1 + clip_range) * advantages
    ).sum()


class DrasPPO(DrasA2C):
    """DRAS-A2C with several clipped gradient steps per update."""

    algorithm = "dras-ppo"
    settings: DrasPPOSettings

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take several gradient steps; without a choice among the decisions, none."""
        steps, returns = self.targets(steps)
        told: dict[str, float] = {}
        if not len(returns):
            return told
        with torch.no_grad():
            scores, values = self.scores_and_values(steps.observations)
            before, advantages = self._chosen(scores, steps), returns - values
        for _ in range(self.settings.n_epochs):
            scores, values = self.scores_and_values(steps.observations)
            policy = clipped_loss(self._chosen(scores, steps), before, advantages, self.settings.clip_range)
            told = self.improve(policy, scores, values, steps, returns)
        return told

    def _chosen(self, scores: torch.Tensor, steps: Steps) -> torch.Tensor:
        """Return the log probabilities of the actions taken."""
        return masked_log_probabilities(scores, steps.valid).gather(1, steps.actions[:, None])[:, 0]
