"""Advantage actor-critic (A2C: synchronous form of Mnih et al., 2016), and policy gradient (REINFORCE)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.ranges import Count, NonNegative, Share
from hpcsimkit.agents.training.on_policy import Batch, Floats, OnPolicyTrainer, Settings, normalised
from hpcsimkit.agents.training.returns import mean_returns

__all__ = ["A2C", "A2CSettings", "PolicyGradient", "PolicyGradientSettings", "policy_gradient_loss"]


@dataclass(frozen=True)
class A2CSettings(Settings):
    """Settings of A2C: rounds are short and steps are large, since each round is a single gradient step.

    Entropy is rewarded a little: without it, some seeds are certain of a choice too early.
    """

    learning_rate: NonNegative = 3e-3
    n_steps: Count = 16
    ent_coef: NonNegative = 0.01


@dataclass(frozen=True)
class PolicyGradientSettings(A2CSettings):
    """Settings of the policy gradient: each round is a gradient step on whole episodes, without a critic."""

    learning_rate: NonNegative = 1e-3
    whole_episodes: bool = True
    gae_lambda: Share = 1.0
    ent_coef: NonNegative = 0.1
    vf_coef: NonNegative = 0.0


def policy_gradient_loss(chosen: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """Return minus the mean of log probability times advantage.

    >>> float(policy_gradient_loss(torch.tensor([-1.0, -2.0]), torch.tensor([3.0, 0.5])))
    2.0
    """
    return -(chosen * advantages).mean()


class A2C(OnPolicyTrainer):
    """A2C: one gradient step per round, with a critic as the baseline."""

    algorithm = "a2c"
    settings: A2CSettings

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
    """Policy gradient (REINFORCE: Williams, 1992).

    The baseline of a decision is the mean return from the same move on, over the parallel episodes of the
    round: returns differ more by the place in an episode than by what was done there.
    """

    algorithm = "pg"
    settings: PolicyGradientSettings

    def expected(
        self,
        critic: Network,
        seen: Floats,
        played: NDArray[np.bool_],
        rewards: Floats,
        over: NDArray[np.bool_],
    ) -> Floats:
        """Return the mean return from each move on, over the episodes, or over those of a group."""
        group = self.settings.group if self.settings.group > 1 else None
        return mean_returns(rewards, played, over, self.settings.gamma, group)
