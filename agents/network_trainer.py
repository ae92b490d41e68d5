"""What trainers of the kit's own networks share: making them, and moving them down a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from hpcsimkit.agents.networks import Network
from hpcsimkit.agents.torch_networks import ActorCritic, device_named
from hpcsimkit.agents.trainer import RunSettings, Trainer
from hpcsimkit.errors import UsageError

__all__ = ["NetworkSettings", "NetworkTrainer", "flattened"]


@dataclass(frozen=True)
class NetworkSettings(RunSettings):
    """What trainers of the kit's own networks are set by.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    discount : float
        gamma, in [0, 1].
    gradient_limit : float
        Largest norm of a gradient.
    kind : {"dense", "slots"}
        ``dense`` reads the whole observation at once; ``slots`` scores each of its rows, such as a waiting
        job, by one and the same smaller network.
    hidden : tuple of int
        Sizes of the hidden layers, of the network that chooses and of the one that values states, each.
    activation : {"tanh", "relu"}
        Between the layers.
    critic_hidden : tuple of int
        The network that values states scores each row by itself first, and has these hidden layers over all
        scores; with none it reads the whole observation.
    device : {"cpu", "cuda"}
        Where networks learn: on the processor or on a GPU. A checkpoint may be gone on with on the other;
        bit for bit only on the same.
    """

    learning_rate: float = 3e-4
    discount: float = 0.99
    gradient_limit: float = 0.5
    kind: str = "dense"
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    critic_hidden: tuple[int, ...] = ()
    device: Literal["cpu", "cuda"] = "cpu"


class NetworkTrainer(Trainer):
    """Trains the kit's own networks by gradient descent; its parameters are those of :class:`Trainer`."""

    settings: NetworkSettings
    networks: ActorCritic

    def build(self, seed: int) -> None:
        """Make networks and their optimiser.

        Raises
        ------
        UsageError
            The device is not there.
        """
        settings, env = self.settings, self.env
        self.device = device_named(settings.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            networks = ActorCritic(
                env.encoder.shape, env.mask.actions, kind=settings.kind, hidden=settings.hidden,
                activation=settings.activation, critic_hidden=settings.critic_hidden,
            )  # fmt: skip
        self.networks = networks.to(self.device)
        groups = [{"params": [flattened(part)], "lr": rate} for part, rate in self.learning_rates()]
        self.optimiser = torch.optim.Adam(groups, eps=1e-5, fused=True)

    def learning_rates(self) -> Sequence[tuple[nn.Module, float]]:
        """Return the parts of the networks, and how fast each learns."""
        return [(self.networks, self.settings.learning_rate)]

    def network(self) -> Network:
        """Return what scores the actions, as it is now."""
        return self.networks.network()

    def descend(self, loss: torch.Tensor) -> None:
        """Take a step down the gradient of a loss.

        Raises
        ------
        UsageError
            The loss is no finite number.
        """
        self.check_finite(loss.detach())
        self.step([loss], [torch.ones_like(loss)])

    def step(self, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> None:
        """Move all weights, given the gradient of a loss in what networks have put out."""
        weights = [vector for group in self.optimiser.param_groups for vector in group["params"]]
        moves: list[torch.Tensor] = [vector.grad for vector in weights]
        for move in moves:
            move.zero_()
        torch.autograd.backward(outputs, gradients)
        length = torch.stack([torch.linalg.vector_norm(move) for move in moves]).norm()
        share = (self.settings.gradient_limit / (length + 1e-6)).clamp(max=1.0)
        for move in moves:
            move.mul_(share)
        self.optimiser.step()

    def check_finite(self, losses: torch.Tensor) -> None:
        """See that losses are finite numbers.

        Raises
        ------
        UsageError
            They are not.
        """
        wrong = losses[~torch.isfinite(losses)]
        if len(wrong.flatten()):
            raise UsageError(f"{self.algorithm}: the loss is {float(wrong[0])} after {self.steps} steps")


def flattened(module: nn.Module) -> nn.Parameter:
    """Lay all weights of a module, and their gradients, into one vector each, and return that of the weights.

    Most of what an update of a small network takes is a fixed price for each tensor: here there is one.
    The module goes on working; what is done to the vector is done to its weights.

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
