"""The networks that learn, in torch; what they have learned becomes a network that acts, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from hpcsimkit.agents.networks import Network, network_of
from hpcsimkit.errors import UsageError

__all__ = ["ActorCritic", "masked_log_probabilities"]

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}
ORTHOGONAL_GAIN = 2**0.5


def masked_log_probabilities(scores: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return the logarithms of the softmax over the actions that are options, shape (batch, actions).

    Those of the others are very small numbers, not minus infinity, which would spoil gradients.
    """
    return torch.log_softmax(scores.masked_fill(~valid, -1e8), dim=-1)


def _chain(sizes: Sequence[int], activation: str, last_gain: float) -> nn.Sequential:
    """Return dense layers with orthogonal weights and zero biases."""
    layers: list[nn.Module] = []
    for place, (inputs, outputs) in enumerate(pairwise(sizes)):
        linear = nn.Linear(inputs, outputs)
        is_last = place == len(sizes) - 2
        nn.init.orthogonal_(linear.weight, last_gain if is_last else ORTHOGONAL_GAIN)
        nn.init.zeros_(linear.bias)
        layers += [linear] if is_last else [linear, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers)


class ActorCritic(nn.Module):
    """Scores of actions, and a value of the state, from two separate chains of dense layers.

    Parameters
    ----------
    shape : tuple of int
        Of an observation.
    actions : int
        How many there are.
    kind : {"dense", "slots"}
        ``dense`` reads the whole observation at once; ``slots`` scores each row by the same network.
    hidden : sequence of int
        Sizes of the hidden layers, of both chains.
    activation : {"tanh", "relu"}
        Between the layers.
    """

    def __init__(
        self, shape: Sequence[int], actions: int, *, kind: str = "dense", hidden: Sequence[int] = (64, 64),
        activation: str = "tanh",
    ) -> None:  # fmt: skip
        super().__init__()
        if kind == "slots" and (len(shape) != 2 or shape[0] < actions):
            raise UsageError(
                f"a network of slots needs rows for {actions} actions, found shape {tuple(shape)}"
            )
        if activation not in ACTIVATIONS:
            raise UsageError(f"activation needs one of {', '.join(ACTIVATIONS)}, found {activation!r}")
        self.kind = kind
        self.actions = actions
        self.activation = activation
        inputs = int(np.prod(shape))
        sizes = [shape[-1], *hidden, 1] if kind == "slots" else [inputs, *hidden, actions]
        self.actor = _chain(sizes, activation, last_gain=0.01)
        self.critic = _chain([inputs, *hidden, 1], activation, last_gain=1.0)

    def scores(self, observations: torch.Tensor) -> torch.Tensor:
        """Return one score for each action, shape (batch, actions)."""
        if self.kind == "slots":
            return self.actor(observations)[:, : self.actions, 0]
        return self.actor(observations.flatten(1))

    def values(self, observations: torch.Tensor) -> torch.Tensor:
        """Return what each state is believed to be worth, shape (batch,)."""
        return self.critic(observations.flatten(1))[:, 0]

    def network(self) -> Network:
        """Return the actor as it is now, in numpy."""
        linear = [layer for layer in self.actor if isinstance(layer, nn.Linear)]
        tensors = {}
        for number, layer in enumerate(linear):
            tensors[f"weight.{number}"] = layer.weight.detach().numpy().copy()
            tensors[f"bias.{number}"] = layer.bias.detach().numpy().copy()
        return network_of(self.kind, tensors, activation=self.activation)
