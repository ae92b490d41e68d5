"""Advantage actor-critic (A2C: synchronous form of Mnih et al., 2016), and policy gradient (REINFORCE)."""

from __future__ import annotations

import torch

from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.training.on_policy import Batch, OnPolicyTrainer, normalised

__all__ = ["A2C", "PolicyGradient", "policy_gradient_loss"]


def policy_gradient_loss(chosen: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """Return minus the mean of log probability times advantage.

    >>> float(policy_gradient_loss(torch.tensor([-1.0, -2.0]), torch.tensor([3.0, 0.5])))
    2.0
    """
    return -(chosen * advantages).mean()


class A2C(OnPolicyTrainer):
    """A2C: one gradient step per round, with a critic as the baseline."""

    algorithm = "a2c"

    def learn(self, batch: Batch) -> dict[str, float]:
        """Take one gradient step over all steps."""
        logarithms = masked_log_probabilities(
            self.networks.scores(batch.observations, batch.valid), batch.valid
        )
        chosen = logarithms.gather(1, batch.actions[:, None])[:, 0]
        policy = policy_gradient_loss(chosen, self.weights(batch))
        value = torch.nn.functional.mse_loss(self.networks.values(batch.observations), batch.returns)
        entropy = -(logarithms.exp() * logarithms).sum(dim=1).mean()
        self.descend(policy + self.settings.vf_coef * value - self.settings.ent_coef * entropy)
        return {"policy_loss": policy.item(), "value_loss": value.item(), "entropy": entropy.item()}

    def weights(self, batch: Batch) -> torch.Tensor:
        """Return the weights of the log probabilities: the advantages, normalised over the round."""
        return normalised(batch.advantages)


class PolicyGradient(A2C):
    """Policy gradient (REINFORCE: Williams, 1992) with the mean return of the round as the baseline.

    There is no bootstrapping from a critic: use ``gae_lambda=1`` and rounds longer than episodes.
    """

    algorithm = "pg"

    def weights(self, batch: Batch) -> torch.Tensor:
        """Return the returns, normalised over the round."""
        return normalised(batch.returns)
