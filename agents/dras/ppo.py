"""DRAS-PPO: several small steps from the same decisions, none of them far."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hpcsimkit.agents.dras.actor_critic import DrasA2C, DrasA2CSettings, entropy_of
from hpcsimkit.agents.dras.trainer import Steps
from hpcsimkit.agents.torch_networks import masked_log_probabilities

__all__ = ["DrasPPO", "DrasPPOSettings", "clipped_loss"]


@dataclass(frozen=True)
class DrasPPOSettings(DrasA2CSettings):
    """Settings of DRAS-PPO.

    Parameters
    ----------
    clip : float
        epsilon: by how much more or less likely an action may become in one update, as a share. (The paper
        does not say.)
    epochs : int
        Steps from the same decisions.
    """

    clip: float = 0.2
    epochs: int = 4


def clipped_loss(
    logarithms: torch.Tensor, before: torch.Tensor, advantages: torch.Tensor, clip: float
) -> torch.Tensor:
    """Return minus the sum of the clipped objective over the decisions.

    Parameters
    ----------
    logarithms, before : tensors of shape (steps,)
        Log probabilities of the actions that were taken: now, and when they were. (The ratio is new over
        old: the paper prints it upside down.)
    advantages : tensor of shape (steps,)
        By how much more was earned than expected.
    clip : float
        epsilon.

    Examples
    --------
    A good action is twice as likely as it was: no more than 1.2 times counts.

    >>> round(float(clipped_loss(torch.tensor([0.6931]), torch.tensor([0.0]), torch.tensor([3.0]), 0.2)), 4)
    -3.6
    """
    ratios = (logarithms - before).exp()
    return -torch.minimum(ratios * advantages, ratios.clamp(1 - clip, 1 + clip) * advantages).sum()


class DrasPPO(DrasA2C):
    """As DRAS-A2C, but several steps down the gradient, which ends where the policy has moved far enough."""

    algorithm = "dras-ppo"
    settings: DrasPPOSettings

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take several steps down the gradient."""
        settings, returns = self.settings, self.returns(steps)
        with torch.no_grad():
            scores, values = self.scores_and_values(steps.observations)
            before, advantages = self._chosen(scores, steps), returns - values
        for _ in range(settings.epochs):
            scores, values = self.scores_and_values(steps.observations)
            policy = clipped_loss(self._chosen(scores, steps), before, advantages, settings.clip)
            errors = (values - returns).square().sum()
            entropy = entropy_of(scores, steps.valid).sum()
            self.descend(policy + settings.value_weight * errors - settings.entropy_weight * entropy)
        return {"loss": policy.item(), "value_loss": errors.item(), "entropy": entropy.item() / len(returns)}

    def _chosen(self, scores: torch.Tensor, steps: Steps) -> torch.Tensor:
        """Return the log probabilities of the actions that were taken."""
        return masked_log_probabilities(scores, steps.valid).gather(1, steps.actions[:, None])[:, 0]
