"""What policy gradients, A2C and PPO have in common: play, reckon what actions were worth, learn, repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.network_trainer import NetworkSettings, NetworkTrainer
from hpcsimkit.agents.returns import generalised_advantages
from hpcsimkit.agents.torch_networks import masked_log_probabilities
from hpcsimkit.agents.trainer import Round

__all__ = ["Batch", "OnPolicyTrainer", "Settings"]


class Batch(NamedTuple):
    """Steps that were played, as tensors of one row a step."""

    observations: torch.Tensor
    valid: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def rows(self, rows: NDArray[np.int64]) -> Batch:
        """Return some of the steps."""
        chosen = torch.from_numpy(rows)
        return Batch(*(values[chosen] for values in self))


@dataclass(frozen=True)
class Settings(NetworkSettings):
    """What all three learners are set by, beside :class:`~hpcsimkit.agents.network_trainer.NetworkSettings`.

    Parameters
    ----------
    rollout : int
        Decisions of each episode before something is learned.
    trace : float
        lambda of generalised advantages, in [0, 1].
    entropy_weight, value_weight : float
        Of the two other parts of the loss.
    """

    rollout: int = 128
    trace: float = 0.95
    entropy_weight: float = 0.0
    value_weight: float = 0.5


class OnPolicyTrainer(NetworkTrainer):
    """Plays with the policy as it is, and learns from that.

    Subclasses say how: :meth:`learn`. Parameters are those of :class:`~hpcsimkit.agents.trainer.Trainer`.
    """

    settings: Settings

    def learn(self, batch: Batch) -> tuple[float, float, float]:
        """Learn from a round of steps; returns the mean policy loss, value loss and entropy."""
        raise NotImplementedError(f"{type(self).__name__} needs a method learn(batch)")

    def round(self) -> Round:
        """Play so many decisions of each episode, and learn from them."""
        batch, sums = self._play()
        policy, value, entropy = self.learn(batch)
        return Round(sums, {"policy_loss": policy, "value_loss": value, "entropy": entropy})

    def _play(self) -> tuple[Batch, list[float]]:
        """Play a round; returns its steps, and the sums of rewards of the episodes that ended."""
        settings, vector = self.settings, self.vector
        size = (settings.rollout, settings.episodes)
        observations = np.zeros((*size, *self.env.encoder.shape), dtype=np.float32)
        valid = np.zeros((*size, self.env.mask.actions), dtype=np.bool_)
        actions, over = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
        values, rewards, chosen = (np.zeros(size, dtype=np.float32) for _ in range(3))
        sums: list[float] = []
        for step in range(settings.rollout):
            observations[step], valid[step] = self.observations, vector.action_masks()
            actions[step], chosen[step], values[step] = self._act(observations[step], valid[step])
            after_it, rewards[step], over[step], infos = vector.step(actions[step])
            self.observations = np.asarray(after_it)
            for place in np.flatnonzero(over[step]).tolist():
                sums.append(infos[place]["episode"]["r"])
                if infos[place]["TimeLimit.truncated"]:  # cut off, not over: what would have come counts
                    last = torch.from_numpy(infos[place]["terminal_observation"][None])
                    with torch.no_grad():
                        rewards[step, place] += settings.discount * float(self.networks.values(last))
        with torch.no_grad():
            after = self.networks.values(torch.from_numpy(self.observations)).numpy()
        advantages = generalised_advantages(
            rewards, values, over, after, settings.discount, settings.trace
        )  # fmt: skip
        self.steps += actions.size
        columns = (observations, valid, actions, chosen, advantages, advantages + values)
        return Batch(*(torch.from_numpy(column.reshape(-1, *column.shape[2:])) for column in columns)), sums

    def _act(
        self, observations: NDArray[np.float32], valid: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Draw an action for each episode; returns them, their log probabilities, and the states' values."""
        seen = torch.from_numpy(observations)
        with torch.no_grad():
            logarithms = masked_log_probabilities(self.networks.scores(seen), torch.from_numpy(valid)).numpy()
            values = self.networks.values(seen).numpy()
        noise = self.rng.gumbel(size=logarithms.shape)
        actions = np.where(valid, logarithms + noise, -np.inf).argmax(axis=1)
        return actions, logarithms[np.arange(len(actions)), actions], values
