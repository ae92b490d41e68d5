"""What trainers of the kit's own networks share: making them, and moving them down a gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hpcsimkit.agents.networks import Network
from hpcsimkit.agents.torch_networks import ActorCritic
from hpcsimkit.agents.trainer import RunSettings, Trainer
from hpcsimkit.errors import UsageError

__all__ = ["NetworkSettings", "NetworkTrainer"]


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
    kind, hidden, activation
        Of the networks; see :class:`~hpcsimkit.agents.torch_networks.ActorCritic`.
    """

    learning_rate: float = 3e-4
    discount: float = 0.99
    gradient_limit: float = 0.5
    kind: str = "dense"
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"


class NetworkTrainer(Trainer):
    """Trains the kit's own networks by gradient descent; its parameters are those of :class:`Trainer`."""

    settings: NetworkSettings
    networks: ActorCritic

    def build(self, seed: int) -> None:
        """Make networks and their optimiser."""
        settings, env = self.settings, self.env
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.networks = ActorCritic(
                env.encoder.shape, env.mask.actions, kind=settings.kind, hidden=settings.hidden,
                activation=settings.activation,
            )  # fmt: skip
        self.optimiser = torch.optim.Adam(self.networks.parameters(), lr=settings.learning_rate, eps=1e-5)

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
        if not torch.isfinite(loss):
            raise UsageError(f"{self.algorithm}: the loss is {float(loss)} after {self.steps} steps")
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.networks.parameters(), self.settings.gradient_limit)
        self.optimiser.step()
