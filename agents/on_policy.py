"""What policy gradients, A2C and PPO have in common: play, reckon what actions were worth, learn, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.network_trainer import NetworkSettings, NetworkTrainer
from hpcsimkit.agents.networks import Network
from hpcsimkit.agents.returns import advantages_and_targets
from hpcsimkit.agents.tape import Tape
from hpcsimkit.agents.trainer import Round

__all__ = ["Batch", "OnPolicyTrainer", "Settings"]

Floats = NDArray[np.float32]


class Batch(NamedTuple):
    """Steps that were played, as tensors of one row a step."""

    observations: torch.Tensor
    valid: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    values: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def rows(self, rows: NDArray[np.int64]) -> Batch:
        """Return some of the steps."""
        chosen = torch.from_numpy(rows).to(self.actions.device)
        return Batch(*(values[chosen] for values in self))

    def parts(self, size: int) -> list[Batch]:
        """Return all steps in their order, so many at a time."""
        return [Batch(*part) for part in zip(*(torch.split(values, size) for values in self), strict=True)]


@dataclass(frozen=True)
class Settings(NetworkSettings):
    """What all three learners are set by, beside :class:`~hpcsimkit.agents.network_trainer.NetworkSettings`.

    Parameters
    ----------
    rollout : int
        Decisions of each episode before something is learned.
    whole_episodes : bool
        Each of the episodes side by side is played once, to its end, before something is learned, however
        many decisions that takes. (Then `steps` may be exceeded by those of the last round.)
    trace : float
        lambda of generalised advantages, in [0, 1].
    value_trace : float, optional
        lambda of what the critic learns, if it is another: with 1 what was really earned, nothing believed.
    entropy_weight : float
        Multiplies the mean entropy of the policy [nats], which is taken off the loss: the larger, the longer
        it goes on trying.
    value_weight : float
        Multiplies the mean squared error of the critic, which is added to the loss of the policy.
    value_learning_rate : float, optional
        Of the critic, if it is to learn at another rate.
    reward_scale : float
        What is learned from are the rewards times this; what is told of them, and agents, are as ever.
    """

    rollout: int = 128
    whole_episodes: bool = False
    trace: float = 0.95
    value_trace: float | None = None
    entropy_weight: float = 0.0
    value_weight: float = 0.5
    value_learning_rate: float | None = None
    reward_scale: float = 1.0


class OnPolicyTrainer(NetworkTrainer):
    """Plays with the policy as it is, and learns from that.

    Subclasses say how: :meth:`learn`. Parameters are those of :class:`~hpcsimkit.agents.trainer.Trainer`.
    """

    settings: Settings

    @property
    def throws_away(self) -> bool:
        """Nothing is learned from episodes that are cut off (of whole ones; see :meth:`_play`)."""
        return False

    def learn(self, batch: Batch) -> dict[str, float]:
        """Learn from a round of steps; returns what is to be told of it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method learn(batch)")

    def learning_rates(self) -> Sequence[tuple[nn.Module, float]]:
        """Return actor and critic with a rate each, if they differ."""
        rate, of_values = self.settings.learning_rate, self.settings.value_learning_rate
        if of_values is None:
            return super().learning_rates()
        return [(self.networks.actor, rate), (self.networks.critic, of_values)]

    def round(self) -> Round:
        """Play for a while, and learn from it."""
        batch, sums = self._play()
        return Round(sums, self.learn(batch))

    def _play(self) -> tuple[Batch, list[float]]:
        """Play a round; returns its steps, and the sums of rewards of the episodes that ended.

        Where an episode is thrown away, another one is played in its place, as long as there are steps left.
        """
        settings, sums = self.settings, list[float]()
        actor, critic = self.networks.network(), self.networks.value_network()
        playing, moves = np.ones(settings.episodes, dtype=np.bool_), 0
        while playing.any() if settings.whole_episodes else moves < settings.rollout:
            over, cut = self._move(actor, critic, playing, sums)
            moves += 1
            if settings.whole_episodes:
                steps_left = self.steps + len(self._tapes[0]) < settings.steps
                playing &= ~over | (cut & self.throws_away & steps_left)
        return self._worth(critic), sums

    @cached_property
    def _tapes(self) -> tuple[Tape, Tape]:
        """What was seen and done, a row a step; and who played and what came of it, a row a move."""
        encoder, actions, places = self.env.encoder, self.env.mask.actions, (self.settings.episodes,)
        steps = Tape([(encoder.shape, np.float32), ((actions,), np.bool_), ((), np.int64), ((), np.float32)])
        moves = Tape([(places, np.bool_), (places, np.float32), (places, np.bool_), (places, np.bool_)])
        return steps, moves

    def _move(
        self, actor: Network, critic: Network, playing: NDArray[np.bool_], sums: list[float]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Take a decision in the places that play, and write it down; sums of rewards of what ends are noted.

        Returns
        -------
        two arrays of bool, shape (episodes,)
            Which episodes have ended with it, and which of these were cut off.
        """
        steps, moves = self._tapes
        at = np.flatnonzero(playing)
        seen, valid = self.observations[at], self.vector.action_masks()[at]
        actions, log_probabilities = self.act(actor, seen, valid)
        steps.add(seen, valid, actions, log_probabilities)
        rewards = np.zeros(len(playing), dtype=np.float32)
        over, cut = np.zeros((2, len(playing)), dtype=np.bool_)
        self.observations[at], earned, over[at], infos = self.vector.step_places(at, actions)
        rewards[at] = earned * self.settings.reward_scale
        for place, info in zip(at.tolist(), infos, strict=True):
            if not over[place]:
                continue
            cut[place] = info["TimeLimit.truncated"]
            if not (cut[place] and self.throws_away):
                sums.append(info["episode"]["r"])
            if cut[place]:  # not over: what would have come counts
                last = info["terminal_observation"][None]
                rewards[place] += self.settings.discount * critic.many(last)[0, 0]
        moves.add(playing[None], rewards[None], over[None], cut[None])
        return over, cut

    def _worth(self, critic: Network) -> Batch:
        """Reckon what actions were worth; returns the steps that were played and are not thrown away."""
        settings = self.settings
        seen, *done = self._tapes[0].taken()
        played, rewards, over, cut = self._tapes[1].taken()
        values = np.zeros(played.shape, dtype=np.float32)
        values[played] = critic.many(seen)[:, 0]
        after = critic.many(self.observations)[:, 0] * (not settings.whole_episodes)
        earned = rewards, values, over, after, settings.discount
        advantages, targets = advantages_and_targets(earned, settings.trace, settings.value_trace)
        self.steps += len(seen)
        columns = [seen, *done, *(each[played] for each in (values, advantages, targets))]
        if self.throws_away:
            kept = ~_of_cut_off(over, cut)[played]
            columns = [column[kept] for column in columns]
        return Batch(*(torch.from_numpy(column).to(self.device) for column in columns))

    def act(
        self, actor: Network, observations: Floats, valid: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Floats]:  # fmt: skip
        """Draw an action for each episode; returns them, and their log probabilities."""
        scores = actor.many(observations, valid)[:, : valid.shape[1]]
        scores = np.where(valid, scores - scores.max(axis=1, keepdims=True), -np.inf)
        logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        actions = (logarithms + self.rng.gumbel(size=logarithms.shape)).argmax(axis=1)
        return actions, logarithms[np.arange(len(actions)), actions]


def _of_cut_off(over: NDArray[np.bool_], cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell of each move and place whether the episode was cut off when it ended.

    Parameters
    ----------
    over, cut : array of bool, shape (moves, episodes)
        Where episodes have ended, and where they were cut off.

    Examples
    --------
    An episode of one move, one of two that is cut off, and one that goes on:

    >>> over, cut = np.array([[1, 0, 1, 0], [0, 0, 1, 0]], dtype=bool)[:, :, None]
    >>> _of_cut_off(over, cut)[:, 0].tolist()
    [False, True, True, False]
    """
    found, now = np.zeros_like(over), np.zeros(over.shape[1], dtype=np.bool_)
    for move in reversed(range(len(over))):
        now = np.where(over[move], cut[move], now)
        found[move] = now
    return found
