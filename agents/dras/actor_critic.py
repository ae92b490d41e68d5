"""DRAS-A2C: policy gradients with a critic as the baseline; actor and critic share all but the last layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.dras.policy_gradient import policy_gradient_loss
from hpcsimkit.agents.dras.torch_network import RowFilterNetwork
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer, Floats, Scoring, Steps
from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.ranges import NonNegative

__all__ = ["DrasA2C", "DrasA2CSettings", "entropy_of"]


@dataclass(frozen=True)
class DrasA2CSettings(DrasSettings):
    """Settings of DRAS-A2C.

    Parameters
    ----------
    ent_coef : float
        Coefficient beta of the policy's summed entropies [nats] in the loss. (The paper gives no value.)
    vf_coef : float
        Coefficient of the critic's summed squared errors in the loss.
    bootstrap : bool
        Whether returns include the critic's value after the last decision. (In the paper they do not.)
    """

    ent_coef: NonNegative = 0.01
    vf_coef: NonNegative = 0.5
    bootstrap: bool = False


def entropy_of(scores: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return the entropy of the policy over the valid actions [nats], shape (steps,).

    >>> entropy_of(torch.zeros(1, 3), torch.tensor([[True, True, False]])).exp().round(decimals=4).tolist()
    [2.0]
    """
    logarithms = masked_log_probabilities(scores, valid)
    return -(logarithms.exp() * logarithms).sum(dim=1)


class DrasA2C(DrasTrainer):
    """Policy gradient with advantages over the critic's values, and an entropy bonus.

    In training, actions are sampled from the softmax over the jobs of the window; agents take the best
    action.
    """

    algorithm = "dras-a2c"
    settings: DrasA2CSettings

    def make(self) -> RowFilterNetwork:
        """Return a network with a score per slot, and a value."""
        env = self.env
        return RowFilterNetwork(env.encoder.shape[0], self.hidden, env.mask.actions, values=True)

    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Sample an action."""
        return self.drawn(network, seen, actions)

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take one gradient step."""
        settings, returns = self.settings, self.returns(steps)
        scores, values = self.scores_and_values(steps.observations)
        policy = policy_gradient_loss(scores, steps, returns - values.detach())
        errors = (values - returns).square().sum()
        entropy = entropy_of(scores, steps.valid).sum()
        self.descend(policy + settings.vf_coef * errors - settings.ent_coef * entropy)
        return {"loss": policy.item(), "value_loss": errors.item(), "entropy": entropy.item() / len(returns)}

    def scores_and_values(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores, shape (steps, actions), and values, shape (steps,)."""
        outputs = self.networks.outputs(observations)
        return outputs[:, :-1], outputs[:, -1]

    def returns(self, steps: Steps) -> torch.Tensor:
        """Return the discounted returns, with `bootstrap` including the critic's last value."""
        settings = self.settings
        if settings.bootstrap and bool(steps.following_valid[-1].any()):
            with torch.no_grad():
                expected = self.scores_and_values(steps.following[-1:])[1]
            rewards = steps.rewards.clone()
            rewards[-1] += settings.gamma * expected[0]
            steps = steps._replace(rewards=rewards)
        return steps.returns(settings.gamma)
