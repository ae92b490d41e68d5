"""Advantage actor-critic (A2C: Mnih et al., 2016, in step), and policy gradients without bootstrapping."""

from __future__ import annotations

import torch

from hpcsimkit.agents.on_policy import Batch, OnPolicyTrainer
from hpcsimkit.agents.torch_networks import masked_log_probabilities

__all__ = ["A2C", "PolicyGradient", "policy_gradient_loss"]


def policy_gradient_loss(chosen: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """Return minus the mean of log probability times advantage.

    >>> float(policy_gradient_loss(torch.tensor([-1.0, -2.0]), torch.tensor([3.0, 0.5])))
    2.0
    """
    return -(chosen * advantages).mean()


class A2C(OnPolicyTrainer):
    """Learns once from each round; the critic says what was to be expected."""

    algorithm = "a2c"

    def learn(self, batch: Batch) -> dict[str, float]:
        """Take one step down the gradient, from all steps at once."""
        logarithms = masked_log_probabilities(
            self.networks.scores(batch.observations, batch.valid), batch.valid
        )
        chosen = logarithms.gather(1, batch.actions[:, None])[:, 0]
        policy = policy_gradient_loss(chosen, self.weights(batch))
        value = torch.nn.functional.mse_loss(self.networks.values(batch.observations), batch.returns)
        entropy = -(logarithms.exp() * logarithms).sum(dim=1).mean()
        self.descend(policy + self.settings.value_weight * value - self.settings.entropy_weight * entropy)
        return {"policy_loss": policy.item(), "value_loss": value.item(), "entropy": entropy.item()}

    def weights(self, batch: Batch) -> torch.Tensor:
        """Return by what each step's log probability is weighted, normalised over the round."""
        return _normalised(batch.advantages)


class PolicyGradient(A2C):
    """Learns from what was really earned (REINFORCE: Williams, 1992), against the mean of the round.

    Nothing is expected by a critic: use ``trace=1`` and rounds longer than episodes.
    """

    algorithm = "pg"

    def weights(self, batch: Batch) -> torch.Tensor:
        """Return the returns, normalised over the round."""
        return _normalised(batch.returns)


def _normalised(values: torch.Tensor) -> torch.Tensor:
    return (values - values.mean()) / (values.std() + 1e-8)
