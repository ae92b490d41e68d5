"""Base class of the trainers of the kit's own networks: construction and gradient steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.agents.networks.torch_networks import ActorCritic, device_named
from hpcsimkit.agents.ranges import NonNegative, Share
from hpcsimkit.agents.training.seat_trainer import RunSettings, SeatTrainer
from hpcsimkit.errors import UsageError


@dataclass(frozen=True)
class NetworkSettings(RunSettings):
    """Settings shared by the trainers of the kit's own networks.

    Parameters
    ----------
    learning_rate : float
        Learning rate of Adam.
    gamma : float
        Discount factor gamma, in [0, 1].
    max_grad_norm : float
        Maximum norm of the gradient.
    kind : {"dense", "slots"}
        Network type: ``dense`` reads the whole observation at once; ``slots`` scores each row, such as a
        waiting job, with one shared smaller network.
    hidden : tuple of int
        Sizes of the hidden layers, of the actor and of the critic each.
    activation : {"tanh", "relu"}
        Activation function between the layers.
    critic_hidden : tuple of int
        Sizes of the hidden layers of a critic that scores each row first and reads all scores with these
        layers; without any the critic reads the whole observation.
    device : str
        Device of the networks, CPU or GPU. A checkpoint can be resumed on the other device, but is
        reproducible bit for bit only on the same one.
    """

    learning_rate: NonNegative = 3e-4
    gamma: Share = 0.99
    max_grad_norm: NonNegative = 0.5
    kind: str = "dense"
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    critic_hidden: tuple[int, ...] = ()
    device: str = "cpu"


class NetworkTrainer(SeatTrainer):
    """Base class of gradient-based trainers; its parameters are those of :class:`SeatTrainer`."""

    settings: NetworkSettings
    networks: ActorCritic

    def build(self, seed: int) -> None:
        """Create the networks and their optimiser."""
        settings, env = self.settings, self.env
        self.device = device_named(settings.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            networks = ActorCritic(
                env.encoder.shape,
                env.mask.actions,
                kind=settings.kind,
                hidden=settings.hidden,
                activation=settings.activation,
                critic_hidden=settings.critic_hidden,
            )
        self.networks = networks.to(self.device)
        groups = [{"params": [flattened(part)], "lr": rate} for part, rate in self.learning_rates()]
        self.optimiser = torch.optim.Adam(groups, eps=1e-5, fused=True)

    def learning_rates(self) -> Sequence[tuple[nn.Module, float]]:
        """Return the parts of the networks and their learning rates."""
        return [(self.networks, self.settings.learning_rate)]

    def network(self) -> Network:
        """Return the current network that scores the actions."""
        return self.networks.network()

    def descend(self, loss: torch.Tensor) -> None:
        """Take one gradient step on a loss.

        A loss that is not finite is an error.
        """
        self.check_finite(loss.detach())
        self.step([loss], [torch.ones_like(loss)])

    def step(self, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> None:
        """Update all weights, given the gradient of a loss with respect to the networks' outputs."""
        weights = [vector for group in self.optimiser.param_groups for vector in group["params"]]
        moves: list[torch.Tensor] = [vector.grad for vector in weights]
        for move in moves:
            move.zero_()
        torch.autograd.backward(outputs, gradients)
        length = torch.stack([torch.linalg.vector_norm(move) for move in moves]).norm()
        share = (self.settings.max_grad_norm / (length + 1e-6)).clamp(max=1.0)
        for move in moves:
            move.mul_(share)
        self.optimiser.step()

    def check_finite(self, losses: torch.Tensor) -> None:
        """Check that losses are finite."""
        wrong = losses[~torch.isfinite(losses)]
        if len(wrong.flatten()):
            raise UsageError(f"{self.algorithm}: the loss is {float(wrong[0])} after {self.steps} steps")


def flattened(module: nn.Module) -> nn.Parameter:
    """Move all weights of a module, and their gradients, into one vector each; return that of the weights.

    The time of an update of a small network is mostly a fixed cost per tensor; this leaves one tensor. The
    module stays usable: its weights are views of the vector.

    >>> layer = nn.Linear(1, 2)
    >>> vector = flattened(layer)
    >>> vector.data[:] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[1.0], [2.0]], [3.0, 4.0])
    """
    weights = list(module.parameters())
    vector = nn.Parameter(torch.cat([each.detach().flatten() for each in weights]))
    vector.grad = torch.zeros_like(vector)
    first = 0
    for each in weights:
        last = first + each.numel()
        each.data = vector.data[first:last].view_as(each)
        each.grad = vector.grad[first:last].view_as(each)
        first = last
    return vector
