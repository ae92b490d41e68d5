"""Deep Q-learning with masked actions (Mnih et al., Nature 2015; double: van Hasselt et al., AAAI 2016)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.networks.torch_networks import ActorCritic
from hpcsimkit.agents.ranges import Count, NonNegative, Share
from hpcsimkit.agents.training.checkpoints import arrays_of, below, put_arrays
from hpcsimkit.agents.training.network_trainer import NetworkSettings, NetworkTrainer
from hpcsimkit.agents.training.rollout import Rollout
from hpcsimkit.agents.training.trainer import Round, State
from hpcsimkit.errors import UsageError

__all__ = ["DQL", "DQLSettings", "Transitions", "exploration", "q_targets"]


class Transitions(NamedTuple):
    """Transitions, one row each: observation, action, reward and next observation.

    ``goes_on`` is False where the episode is over; ``following`` has no meaning there.
    """

    observations: Any
    actions: Any
    rewards: Any
    goes_on: Any
    following: Any
    following_valid: Any


def exploration(steps: int, first: float, last: float, over: float) -> float:
    """Return the exploration rate: a linear decrease from `first` to `last` over a number of steps.

    >>> [exploration(steps, 1.0, 0.1, 100) for steps in (0, 50, 100, 900)]
    [1.0, 0.55, 0.1, 0.1]
    """
    done = min(1.0, steps / over) if over > 0 else 1.0
    return (1 - done) * first + done * last


def q_targets(
    rewards: torch.Tensor,
    goes_on: torch.Tensor,
    values: torch.Tensor,
    valid: torch.Tensor,
    gamma: float,
    chooser: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the Q-targets: the reward plus the discounted value of the best next action.

    Parameters
    ----------
    rewards, goes_on : tensors of shape (batch,)
        Rewards, and whether the episodes continued.
    values : tensor of shape (batch, actions)
        Values of the next state's actions, by the target network.
    valid : tensor of bool, shape (batch, actions)
        Mask of the next state's actions.
    gamma : float
        Discount factor gamma, in [0, 1].
    chooser : tensor of shape (batch, actions), optional
        Values that select the best action: those of the online network, for double Q-learning. By default
        `values`.

    Examples
    --------
    >>> values, valid = torch.tensor([[1.0, 8.0, 4.0]]), torch.tensor([[True, False, True]])
    >>> q_targets(torch.tensor([-1.0]), torch.tensor([True]), values, valid, 0.5).tolist()
    [1.0]
    >>> chooser = torch.tensor([[2.0, 0.0, 1.0]])
    >>> q_targets(torch.tensor([-1.0]), torch.tensor([True]), values, valid, 0.5, chooser).tolist()
    [-0.5]
    """
    by = values if chooser is None else chooser
    best = by.masked_fill(~valid, -torch.inf).argmax(dim=1, keepdim=True)
    return rewards + gamma * goes_on * values.gather(1, best)[:, 0]


@dataclass(frozen=True)
class DQLSettings(NetworkSettings):
    """Settings of deep Q-learning.

    Parameters
    ----------
    memory : int
        Maximum number of transitions in the replay memory. Each takes up two observations and two masks,
        in the checkpoint too.
    begin : int
        Number of transitions before the first update.
    batch_size : int
        Number of transitions in an update (minibatch size).
    every : int
        Number of decisions of each episode between updates.
    target_every : int
        Number of updates between copies of the online network to the target network.
    double : bool
        Whether the online network selects the next action and the target network evaluates it (double
        Q-learning).
    explore_first, explore_last : float
        Initial and final exploration rate, in [0, 1].
    explore_for : float
        Share of all steps over which the exploration rate falls, in [0, 1].
    round : int
        Number of decisions of each episode between reports.

    Examples
    --------
    >>> settings = DQLSettings(total_timesteps=20_000, explore_for=0.25)
    >>> settings.explore_first, settings.explore_last, settings.double
    (1.0, 0.05, True)
    """

    learning_rate: NonNegative = 1e-3
    max_grad_norm: NonNegative = 10.0
    memory: Count = 50_000
    begin: Count = 1_000
    batch_size: Count = 64
    every: Count = 1
    target_every: Count = 250
    double: bool = True
    explore_first: Share = 1.0
    explore_last: Share = 0.05
    explore_for: Share = 0.5
    round: Count = 64


class DQL(NetworkTrainer):
    """Deep Q-learning from a replay memory, with masked actions; its agents take the action of highest value.

    The scores of an agent are the Q-values. Masked actions are never taken, sampled or used in targets. The
    last step of an episode truncated by a time limit is not stored, since its next state is unknown.

    Q-learning looks one decision ahead, so the cost of an action should appear in the reward, or in the
    observation, at the next decision. The order of a blocking pipeline has to choose the next job before the
    last one has started; with ``fitting=True`` it chooses among jobs that can start.

    Parameters are those of :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

    Examples
    --------
    >>> from hpcsimkit.agents.standard import order
    >>> settings = DQLSettings(total_timesteps=64, episodes=2, begin=16, hidden=(8,))
    >>> agent = DQL(order(slots=4), settings).train()
    >>> agent.stage, agent.network.outputs
    ('order', 4)
    """

    algorithm = "dql"
    learns_policy = False
    settings: DQLSettings

    def build(self, seed: int) -> None:
        """Create the online network, the target network, and an empty memory."""
        super().build(seed)
        settings = self.settings
        if not max(settings.batch_size, settings.begin, settings.episodes) <= settings.memory:
            raise UsageError(
                f"dql: a memory of at least {max(settings.batch_size, settings.begin, settings.episodes)} "
                f"transitions is needed (batch_size, begin, episodes), found {settings.memory}"
            )
        self.target: ActorCritic = copy.deepcopy(self.networks)
        seen, valid = (self.env.encoder.shape, np.float32), ((self.env.mask.actions,), np.bool_)
        columns = (seen, ((), np.int64), ((), np.float32), ((), np.bool_), seen, valid)
        self.memory = Rollout(columns, capacity=settings.memory)
        self._turns = self._updates = 0

    def round(self) -> Round:
        """Run episodes, with updates in between."""
        sums: list[float] = []
        learned: list[tuple[float, float]] = []
        for _ in range(self.settings.round):
            sums += self._play()
            if len(self.memory) >= self.settings.begin and self._turns % self.settings.every == 0:
                drawn = self.memory.sample(self.rng, self.settings.batch_size)
                learned.append(self._learn(Transitions(*map(torch.from_numpy, drawn))))
        loss, value = np.mean(learned, axis=0).tolist() if learned else (float("nan"), float("nan"))
        return Round(sums, {"loss": loss, "value": value, "exploration": self.exploration})

    @property
    def exploration(self) -> float:
        """Current exploration rate."""
        settings = self.settings
        over = settings.explore_for * settings.total_timesteps
        return exploration(self.steps, settings.explore_first, settings.explore_last, over)

    def _play(self) -> list[float]:
        """Take and store one decision of each episode; return the returns of those that ended."""
        seen, valid = self.observations, self.vector.action_masks()
        actions = self._act(seen, valid)
        told, rewards, over, infos = self.vector.step(actions)
        after = np.asarray(told)
        kept = np.array([not info.get("TimeLimit.truncated", False) for info in infos])
        columns = (seen, actions, rewards, ~over, after, self.vector.action_masks())
        self.memory.add(*(column[kept] for column in columns))
        self.observations = after
        self.steps += len(actions)
        self._turns += 1
        return [infos[place]["episode"]["r"] for place in np.flatnonzero(over).tolist()]

    def _act(self, observations: NDArray[np.float32], valid: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Choose the best action of each episode, or a random one."""
        with torch.no_grad():
            scores = self.networks.scores(torch.from_numpy(observations)).numpy()
        best = np.where(valid, scores, -np.inf).argmax(axis=1)
        drawn = np.where(valid, self.rng.random(valid.shape), -1.0).argmax(axis=1)
        explores = self.rng.random(len(valid)) < self.exploration
        return np.where(explores, drawn, best)

    def loss(self, batch: Transitions) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the Huber loss between values and targets, and the values."""
        values = self.networks.scores(batch.observations).gather(1, batch.actions[:, None])[:, 0]
        with torch.no_grad():
            following = self.target.scores(batch.following)
            chooser = self.networks.scores(batch.following) if self.settings.double else None
            targets = q_targets(
                batch.rewards,
                batch.goes_on,
                following,
                batch.following_valid,
                self.settings.gamma,
                chooser,
            )
        return torch.nn.functional.smooth_l1_loss(values, targets), values

    def _learn(self, batch: Transitions) -> tuple[float, float]:
        """Take one gradient step; return the loss and the mean value."""
        loss, values = self.loss(batch)
        self.descend(loss)
        self._updates += 1
        if self._updates % self.settings.target_every == 0:
            self.target.load_state_dict(self.networks.state_dict())
        return loss.item(), values.mean().item()

    def state(self) -> State:
        """Return target network, replay memory and counters."""
        tensors = {f"target.{name}": values for name, values in arrays_of(self.target).items()}
        tensors |= {f"memory.{name}": values for name, values in self.memory.arrays().items()}
        return State(tensors, {"added": self.memory.added, "turns": self._turns, "updates": self._updates})

    def restore(self, state: State) -> None:
        """Restore target network, replay memory and counters."""
        put_arrays(below("target", state.tensors), self.target)
        self.memory.restore(below("memory", state.tensors), state.about["added"])
        self._turns, self._updates = state.about["turns"], state.about["updates"]
