"""Base class of the on-policy trainers (policy gradient, A2C, PPO): rollout, advantages, update."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.agents.ranges import Count, NonNegative, Positive, Share
from hpcsimkit.agents.training.network_trainer import NetworkSettings, NetworkTrainer
from hpcsimkit.agents.training.returns import advantages_and_targets, mean_returns
from hpcsimkit.agents.training.rollout import Column, Rollout
from hpcsimkit.agents.training.trainer import Round
from hpcsimkit.envs.interfaces import Encoder, Mask
from hpcsimkit.envs.vector_environment import SchedulingVecEnv
from hpcsimkit.errors import UsageError

Floats = NDArray[np.float32]


class Batch(NamedTuple):
    """Sampled steps as tensors, one row per step."""

    observations: torch.Tensor
    valid: torch.Tensor
    actions: torch.Tensor
    log_probabilities: torch.Tensor
    values: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def rows(self, rows: NDArray[np.int64]) -> Batch:
        """Return the given steps."""
        chosen = torch.from_numpy(rows).to(self.actions.device)
        return Batch(*(values[chosen] for values in self))

    def parts(self, size: int) -> list[Batch]:
        """Return all steps in order, split into chunks of a given size."""
        return [Batch(*part) for part in zip(*(torch.split(values, size) for values in self), strict=True)]


@dataclass(frozen=True)
class Settings(NetworkSettings):
    """Settings shared by the three on-policy algorithms.

    Parameters
    ----------
    n_steps : int
        Number of decisions of each episode between updates.
    whole_episodes : bool
        Whether each of the parallel episodes runs once to its end before an update, however many decisions
        it takes. (The last round may then exceed `total_timesteps`.)
    group : int
        Number of parallel episodes with the same scenario. With more than 1 the baseline of a decision is
        the mean return of its group from the same move on, in place of the critic's estimate: how the
        scenarios differ then is no noise. It needs `whole_episodes`.
    gae_lambda : float
        GAE parameter lambda, in [0, 1].
    value_gae_lambda : float, optional
        GAE parameter lambda of the value targets, if different; 1 gives returns without bootstrapping.
    ent_coef : float
        Coefficient of the policy's mean entropy [nats] in the loss; a larger one keeps exploration up
        longer.
    vf_coef : float
        Coefficient of the critic's mean squared error in the loss.
    value_learning_rate : float, optional
        Learning rate of the critic, if different.
    reward_scale : float
        Factor of the rewards in updates; reports and agents are unaffected.
    """

    n_steps: Count = 128
    whole_episodes: bool = False
    group: Count = 1
    gae_lambda: Share = 0.95
    value_gae_lambda: Share | None = None
    ent_coef: NonNegative = 0.0
    vf_coef: NonNegative = 0.5
    value_learning_rate: NonNegative | None = None
    reward_scale: Positive = 1.0


def normalised(values: torch.Tensor) -> torch.Tensor:
    """Return values with mean 0 and standard deviation 1.

    >>> normalised(torch.tensor([1.0, 2.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """
    return (values - values.mean()) / (values.std() + 1e-8)


def decision_columns(encoder: Encoder, mask: Mask) -> list[Column]:
    """Return the columns of a rollout: observations, masks, actions and their log probabilities."""
    return [
        (encoder.shape, np.float32),
        ((mask.actions,), np.bool_),
        ((), np.int64),
        ((), np.float32),
    ]


class OnPolicyTrainer(NetworkTrainer):
    """Base class of trainers that update the current policy from steps sampled with it.

    Subclasses implement :meth:`learn`. Parameters are those of
    :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.
    """

    settings: Settings

    @property
    def throws_away(self) -> bool:
        """Whether truncated episodes are discarded (with whole episodes; see :meth:`_play`)."""
        return False

    @abstractmethod
    def learn(self, batch: Batch) -> dict[str, float]:
        """Update from a round of steps; return the measures to report."""

    def learning_rates(self) -> Sequence[tuple[nn.Module, float]]:
        """Return actor and critic with their learning rates, if these differ."""
        rate, of_values = self.settings.learning_rate, self.settings.value_learning_rate
        if of_values is None:
            return super().learning_rates()
        return [(self.networks.actor, rate), (self.networks.critic, of_values)]

    def parallel(self, seed: int) -> SchedulingVecEnv:
        """Return the parallel episodes, in groups with the same scenario."""
        settings = self.settings
        if settings.group > 1 and (not settings.whole_episodes or self.throws_away):
            raise UsageError(f"{self.algorithm}: group needs whole_episodes, none of them discarded")
        return SchedulingVecEnv(self.env, settings.episodes, seed=seed, group=settings.group)

    def round(self) -> Round:
        """Run a rollout, and update from it."""
        batch, sums = self._play()
        return Round(sums, self.learn(batch))

    def _play(self) -> tuple[Batch, list[float]]:
        """Run a rollout; return its steps, and the returns of the episodes that ended.

        A new episode replaces a discarded one as long as steps remain.
        """
        settings, sums = self.settings, list[float]()
        actor, critic = self.networks.network(), self.networks.value_network()
        playing, moves = np.ones(settings.episodes, dtype=np.bool_), 0
        while playing.any() if settings.whole_episodes else moves < settings.n_steps:
            over, cut = self._move(actor, critic, playing, sums)
            moves += 1
            if settings.whole_episodes:
                steps_left = self.steps + len(self._rollouts[0]) < settings.total_timesteps
                playing &= ~over | (cut & self.throws_away & steps_left)
        return self._worth(critic), sums

    @cached_property
    def _rollouts(self) -> tuple[Rollout, Rollout]:
        """Buffers of the round: one with a row per step, one with a row per move of all environments."""
        places = (self.settings.episodes,)
        moves = Rollout([(places, np.bool_), (places, np.float32), (places, np.bool_), (places, np.bool_)])
        return Rollout(decision_columns(self.env.encoder, self.env.mask)), moves

    def _move(
        self, actor: Network, critic: Network, playing: NDArray[np.bool_], sums: list[float]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Take one decision in the active environments and record it; append the returns of ended episodes.

        Returns
        -------
        two arrays of bool, shape (episodes,)
            Flags of the episodes that ended with it, and of those that were truncated.
        """
        steps, moves = self._rollouts
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
            if cut[place]:  # truncated, not terminated: bootstrap from the value of the last state
                last = info["terminal_observation"][None]
                rewards[place] += self.settings.gamma * critic.many(last)[0, 0]
        moves.add(playing[None], rewards[None], over[None], cut[None])
        return over, cut

    def _worth(self, critic: Network) -> Batch:
        """Compute advantages and value targets; return the steps, without those of discarded episodes."""
        settings = self.settings
        seen, *done = self._rollouts[0].taken()
        played, rewards, over, cut = self._rollouts[1].taken()
        values = self.expected(critic, seen, played, rewards, over)
        after = critic.many(self.observations)[:, 0] * (not settings.whole_episodes)
        earned = rewards, values, over, after, settings.gamma
        advantages, targets = advantages_and_targets(earned, settings.gae_lambda, settings.value_gae_lambda)
        self.steps += len(seen)
        columns = [seen, *done, *(each[played] for each in (values, advantages, targets))]
        if self.throws_away:
            kept = ~_of_cut_off(over, cut)[played]
            columns = [column[kept] for column in columns]
        return Batch(*(torch.from_numpy(column).to(self.device) for column in columns))

    def expected(
        self,
        critic: Network,
        seen: Floats,
        played: NDArray[np.bool_],
        rewards: Floats,
        over: NDArray[np.bool_],
    ) -> Floats:
        """Return the expected return from each move of each episode on: the critic's, or the group's mean.

        Parameters
        ----------
        critic : Network
            Current critic.
        seen : array of float32
            Observations, one per step.
        played, rewards, over : array, shape (moves, episodes)
            Whether a decision was taken, its reward, and whether the episode ended with it.
        """
        if self.settings.group > 1:
            return mean_returns(rewards, played, over, self.settings.gamma, self.settings.group)
        values = np.zeros(played.shape, dtype=np.float32)
        values[played] = critic.many(seen)[:, 0]
        return values

    def act(
        self, actor: Network, observations: Floats, valid: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Floats]:
        """Sample an action for each episode; return the actions and their log probabilities."""
        scores = actor.many(observations, valid)[:, : valid.shape[1]]
        scores = np.where(valid, scores, -np.inf)
        scores -= scores.max(axis=1, keepdims=True)  # of the valid ones, not of larger others
        logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        actions = (logarithms + self.rng.gumbel(size=logarithms.shape)).argmax(axis=1)
        return actions, logarithms[np.arange(len(actions)), actions]


def _of_cut_off(over: NDArray[np.bool_], cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return, for each move and environment, whether the episode was truncated at its end.

    Parameters
    ----------
    over, cut : array of bool, shape (moves, episodes)
        Flags of the moves at which episodes ended, and at which they were truncated.

    Examples
    --------
    An episode of one move, one of two moves that is truncated, and one that continues:

    >>> over, cut = np.array([[1, 0, 1, 0], [0, 0, 1, 0]], dtype=bool)[:, :, None]
    >>> _of_cut_off(over, cut)[:, 0].tolist()
    [False, True, True, False]
    """
    found, now = np.zeros_like(over), np.zeros(over.shape[1], dtype=np.bool_)
    for move in reversed(range(len(over))):
        now = np.where(over[move], cut[move], now)
        found[move] = now
    return found
