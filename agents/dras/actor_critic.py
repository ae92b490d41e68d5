"""DRAS-A2C: policy gradients with a critic as the baseline; actor and critic share all but the last layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.dras.policy_gradient import (
    PastScale,
    choices_among,
    entropy_of,
    policy_gradient_loss,
)
from hpcsimkit.agents.dras.torch_network import RowFilterNetwork
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer, Floats, Scoring, Steps
from hpcsimkit.agents.ranges import NonNegative
from hpcsimkit.agents.training.trainer import State

__all__ = ["DrasA2C", "DrasA2CSettings"]


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
    scaled: bool
        Whether returns are standardised by all past ones, losses are means, and decisions with a single valid
        action are left out. Without it, the squared errors of returns in the hundreds push the policy out of
        the gradient that both share. (The paper says nothing of it.) Default: True.
    """

    ent_coef: NonNegative = 0.01
    vf_coef: NonNegative = 0.5
    bootstrap: bool = False
    scaled: bool = True


class DrasA2C(DrasTrainer):
    """Policy gradient with advantages over the critic's values, and an entropy bonus.

    In training, actions are sampled from the softmax over the jobs of the window; agents take the best
    action.
    """

    algorithm = "dras-a2c"
    settings: DrasA2CSettings

    def build(self, seed: int) -> None:
        """Create the network, and no past returns."""
        super().build(seed)
        self.past = PastScale()

    def make(self) -> RowFilterNetwork:
        """Return a network with a score per slot, and a value."""
        env = self.env
        return RowFilterNetwork(env.encoder.shape[0], self.hidden, env.mask.actions, values=True)

    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Sample an action."""
        return self.drawn(network, seen, actions)

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take one gradient step; without a choice among the decisions, none."""
        steps, returns = self.targets(steps)
        if not len(returns):
            return {}
        scores, values = self.scores_and_values(steps.observations)
        policy = policy_gradient_loss(scores, steps, returns - values.detach())
        return self.improve(policy, scores, values, steps, returns)

    def improve(
        self,
        policy: torch.Tensor,
        scores: torch.Tensor,
        values: torch.Tensor,
        steps: Steps,
        returns: torch.Tensor,
    ) -> dict[str, float]:
        """Take a gradient step on the losses of policy and critic and the entropy; return the measures."""
        settings, count = self.settings, len(returns)
        errors, entropy = (values - returns).square().sum(), entropy_of(scores, steps.valid).sum()
        loss = policy + settings.vf_coef * errors - settings.ent_coef * entropy
        self.descend(loss / count if settings.scaled else loss)
        return {"loss": policy.item(), "value_loss": errors.item(), "entropy": entropy.item() / count}

    def targets(self, steps: Steps) -> tuple[Steps, torch.Tensor]:
        """Return the decisions to learn from, and what the critic should say of them."""
        returns = self.returns(steps)
        if not self.settings.scaled:
            return steps, returns
        self.past.add(returns.tolist())
        kept, choices = choices_among(steps)
        return kept, (returns[choices] - self.past.mean) / self.past.deviation

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
            value = expected[0] * self.past.deviation + self.past.mean if settings.scaled else expected[0]
            rewards[-1] += settings.gamma * value
            steps = steps._replace(rewards=rewards)
        return steps.returns(settings.gamma)

    def state(self) -> State:
        """Return the scale of the returns."""
        return State({}, dict(vars(self.past)))

    def restore(self, state: State) -> None:
        """Restore the scale of the returns."""
        self.past = PastScale(**state.about)
