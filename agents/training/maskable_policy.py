"""The policy of MaskablePPO, with fewer function calls a step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

MASKED_LOGIT = torch.tensor(-1e8)
"""Logit of an action that is not valid, as in sb3-contrib."""

NOTHING = torch.tensor(0.0)

Outputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class DensePolicy(MaskableActorCriticPolicy):
    """``MlpPolicy`` of MaskablePPO that applies its layers without modules' hooks and distribution objects.

    For networks of a few thousand weights, those cost more than the arithmetic. Every operation on tensors is
    the one that sb3-contrib applies, in the same order, so that actions, gradients and weights are equal bit
    for bit. Observations are arrays of numbers and actions are discrete, as in all environments of the kit.
    """

    def forward(
        self,
        obs: torch.Tensor,
        deterministic: bool = False,
        action_masks: NDArray[np.bool_] | None = None,
    ) -> Outputs:
        """Return sampled actions, values of the observations, and log probabilities of the actions."""
        if deterministic or action_masks is None:
            return super().forward(obs, deterministic, action_masks)
        logits, values = self._outputs(obs, torch.as_tensor(action_masks))
        actions = torch.multinomial(torch.softmax(logits, -1), 1, True)
        return actions.squeeze(-1), values, logits.gather(-1, actions).squeeze(-1)

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return values of the observations, log probabilities of the actions, and entropies."""
        if action_masks is None:
            return super().evaluate_actions(obs, actions, action_masks)
        valid = action_masks.bool()
        logits, values = self._outputs(obs, valid)
        of_actions = logits.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        entropies = -torch.where(valid, logits * torch.softmax(logits, -1), NOTHING).sum(-1)
        return values, of_actions, entropies

    def _outputs(self, observations: torch.Tensor, valid: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logarithms of the actions' probabilities, shape (batch, actions), and values, (batch, 1)."""
        inputs = observations.float().flatten(1)
        logits = _normalised(_through((*self.mlp_extractor.policy_net, self.action_net), inputs))
        values = _through((*self.mlp_extractor.value_net, self.value_net), inputs)
        # Normalised before as well, as sb3-contrib does: without it, weights differ in their last bits.
        return _normalised(torch.where(valid, logits, MASKED_LOGIT)), values


def _through(layers: Iterable[torch.nn.Module], inputs: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        inputs = layer.forward(inputs)
    return inputs


def _normalised(logits: torch.Tensor) -> torch.Tensor:
    return logits - logits.logsumexp(-1, keepdim=True)
