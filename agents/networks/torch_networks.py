"""Networks for training in torch; the trained weights become networks for inference in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.networks.numpy_networks import Dense, Network, RowsThenWhole, SlotScores
from hpcsimkit.errors import UsageError

__all__ = ["ActorCritic", "device_named", "masked_log_probabilities"]

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}
ORTHOGONAL_GAIN = 2**0.5


def device_named(name: str) -> torch.device:
    """Return the device with a given name.

    Raises
    ------
    UsageError
        The device is not available.

    >>> device_named("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise UsageError(f"device: cpu or cuda is needed, found {name!r}")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device.type == "cuda" and (device.index or 0) >= there:
        raise UsageError(f"device: {name!r} is not there: torch {torch.__version__} sees {there or 'no'} GPU")
    return device


def masked_log_probabilities(scores: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return the log softmax over the valid actions, shape (batch, actions).

    Masked actions have very small log probabilities; minus infinity would make gradients NaN.
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
    """Actor and critic: two separate chains of dense layers, for the scores of actions and the state value.

    Parameters
    ----------
    shape : tuple of int
        Shape of an observation.
    actions : int
        Number of actions.
    kind : {"dense", "slots"}
        Network type: ``dense`` reads the whole observation at once; ``slots`` scores each row with the same
        network.
    hidden : sequence of int
        Sizes of the hidden layers, of both chains.
    activation : {"tanh", "relu"}
        Activation function between the layers.
    critic_hidden : sequence of int, optional
        Sizes of the hidden layers of a critic that scores each row with a network with `hidden` layers and
        reads all scores with these layers (as in RLScheduler); without any it reads the whole observation.

    Examples
    --------
    >>> import torch
    >>> network = ActorCritic((5, 3), 4, hidden=(8,))
    >>> seen = torch.zeros(2, 5, 3)
    >>> tuple(network.scores(seen).shape), tuple(network.values(seen).shape)
    ((2, 4), (2,))
    """

    def __init__(
        self,
        shape: Sequence[int],
        actions: int,
        *,
        kind: str = "dense",
        hidden: Sequence[int] = (64, 64),
        activation: str = "tanh",
        critic_hidden: Sequence[int] = (),
    ) -> None:
        super().__init__()
        if kind not in ("dense", "slots"):
            raise UsageError(f"a network of the kind dense or slots is needed, found {kind!r}")
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
        if critic_hidden:
            rows = _chain([shape[-1], *hidden, 1], activation, last_gain=1.0)
            whole = _chain([inputs // shape[-1], *critic_hidden, 1], activation, last_gain=1.0)
            self.critic = nn.Sequential(nn.Unflatten(1, (-1, shape[-1])), rows, nn.Flatten(1), whole)
        else:
            self.critic = _chain([inputs, *hidden, 1], activation, last_gain=1.0)

    def scores(self, observations: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        """Return one score for each action, shape (batch, actions).

        With `valid` (bool, of that shape) the scores of empty slots are not computed; they are 0.
        """
        if self.kind != "slots":
            return self.actor(observations.flatten(1))
        of_actions = observations[:, : self.actions]
        if valid is None:
            return self.actor(of_actions)[..., 0]
        scores = self.actor(of_actions[valid])[:, 0]
        return torch.zeros_like(valid, dtype=scores.dtype).masked_scatter(valid, scores)

    def values(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the value estimate of each state, shape (batch,)."""
        return self.critic(observations.flatten(1))[:, 0]

    def network(self) -> Network:
        """Return the current actor, in numpy."""
        kind = SlotScores if self.kind == "slots" else Dense
        return kind(_tensors(self.actor), self.activation)

    def value_network(self) -> Network:
        """Return the current critic, in numpy: a network with one output."""
        chains = [part for part in self.critic if isinstance(part, nn.Sequential)]
        if not chains:
            return Dense(_tensors(self.critic), self.activation)
        of_rows, whole = (_tensors(chain) for chain in chains)
        return RowsThenWhole(SlotScores(of_rows, self.activation), Dense(whole, self.activation))


def _tensors(chain: nn.Sequential) -> dict[str, NDArray[np.float32]]:
    """Return copies of the weights of a chain of layers, by their names in model files."""
    tensors = {}
    for number, layer in enumerate(layer for layer in chain if isinstance(layer, nn.Linear)):
        tensors[f"weight.{number}"] = layer.weight.detach().cpu().numpy().copy()
        tensors[f"bias.{number}"] = layer.bias.detach().cpu().numpy().copy()
    return tensors
