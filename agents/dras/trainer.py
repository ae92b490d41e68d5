"""Base class of the four DRAS trainers: one episode per round, an update every ten scheduling instances."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.network import RowFilter
from hpcsimkit.agents.dras.settings import hidden_of
from hpcsimkit.agents.dras.torch_network import RowFilterNetwork
from hpcsimkit.agents.networks.torch_networks import device_named
from hpcsimkit.agents.ranges import Count, NonNegative, Positive, Range, Share
from hpcsimkit.agents.training.network_trainer import flattened
from hpcsimkit.agents.training.rollout import Rollout
from hpcsimkit.agents.training.seat_trainer import RunSettings, SeatTrainer
from hpcsimkit.agents.training.trainer import Round
from hpcsimkit.envs.episode import Episode
from hpcsimkit.envs.interfaces import sampled
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.io.files import make_folder

Floats = NDArray[np.float32]

SNAPSHOTS = "snapshots"
"""Folder, inside that of a training run, with the agent after each episode."""


class Scoring(Protocol):
    """Interface of a network that scores actions."""

    def scores_of(self, observation: Floats, actions: NDArray[np.intp]) -> Floats:
        """Return the scores of the given actions, float32, in their shape."""


class OnDevice:
    """A network that scores actions on the device on which it is trained.

    Parameters
    ----------
    networks : RowFilterNetwork
        Network on a GPU.
    """

    def __init__(self, networks: RowFilterNetwork) -> None:
        self.networks = networks

    def scores_of(self, observation: Floats, actions: NDArray[np.intp]) -> Floats:
        """Return the scores of the given actions."""
        with torch.no_grad():
            seen = torch.from_numpy(observation[None]).to(next(self.networks.parameters()).device)
            return np.asarray(self.networks.outputs(seen)[0].cpu().numpy()[actions])


@dataclass(frozen=True)
class DrasSettings(RunSettings):
    """Settings shared by the four DRAS trainers.

    Parameters
    ----------
    episodes : int
        Number of parallel episodes, always 1: job sets run one after the other.
    hidden : tuple of int
        Sizes of the two wide layers; by default the paper's for Theta, in proportion to the nodes: see
        :func:`~hpcsimkit.agents.dras.settings.hidden_of`.
    learning_rate : float
        Learning rate of Adam.
    annealed : bool
        Whether the learning rate falls linearly to 0 over the training, job set by job set, so that the last
        updates settle. (In the paper it is constant.)
    gamma : float
        Discount factor gamma, in [0, 1].
    instances : int
        Number of scheduling instances with a decision between updates.
    reward_scale : float
        Factor of the rewards in updates; reports show the unscaled rewards.
    max_grad_norm : float
        Maximum norm of the gradient.
    device : str
        Device for training and, if it is a GPU, for inference in training.
    """

    episodes: Annotated[int, Range(1, 1)] = 1
    hidden: tuple[int, ...] = ()
    learning_rate: NonNegative = 1e-3
    annealed: bool = False
    gamma: Share = 1.0
    instances: Count = 10
    reward_scale: Positive = 1.0
    max_grad_norm: NonNegative = 10.0
    device: str = "cpu"


class Steps(NamedTuple):
    """Decisions since the last update as tensors, one row per decision.

    Parameters
    ----------
    observations : tensor of shape (steps, rows, 2)
        Observations.
    valid : tensor of bool, shape (steps, actions)
        Masks of the valid actions.
    actions : tensor of int64, shape (steps,)
        Actions taken.
    rewards : tensor of shape (steps,)
        Rewards of the actions.
    following : tensor of shape (steps, rows, 2)
        Next observations; zeros after the last decision of an episode.
    following_valid : tensor of bool, shape (steps, actions)
        Masks of the next decisions; all False after the last decision of an episode.
    """

    observations: torch.Tensor
    valid: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    following: torch.Tensor
    following_valid: torch.Tensor

    def returns(self, gamma: float) -> torch.Tensor:
        """Return the discounted return of each decision, up to the last one here, shape (steps,).

        >>> nothing = torch.zeros(0)
        >>> Steps(*[nothing] * 3, torch.tensor([1.0, 2.0, 4.0]), *[nothing] * 2).returns(0.5).tolist()
        [3.0, 4.0, 4.0]
        """
        returns, following = [], 0.0
        for reward in reversed(self.rewards.tolist()):
            following = reward + gamma * following
            returns.append(following)
        return torch.tensor(returns[::-1], dtype=self.rewards.dtype, device=self.rewards.device)


class DrasTrainer(SeatTrainer):
    """Base class of the DRAS trainers, with an update every ten scheduling instances.

    Job sets run one after the other. A round is an episode: one job set, from an idle machine until all its
    jobs are scheduled. The steps are discarded after each update. Subclasses implement :meth:`make`,
    :meth:`choose` and :meth:`learn` for the network, the choice of an action and the update. (Fan et al.,
    TPDS 2022, section 3.3.) Parameters are those of
    :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.
    """

    settings: DrasSettings
    networks: RowFilterNetwork

    @abstractmethod
    def make(self) -> RowFilterNetwork:
        """Return the network with initial weights."""

    @abstractmethod
    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Return one of the given actions."""

    @abstractmethod
    def learn(self, steps: Steps) -> dict[str, float]:
        """Update from the decisions since the last update; return the measures, or none without an update."""

    def build(self, seed: int) -> None:
        """Create the network and its optimiser."""
        settings = self.settings
        if len(settings.hidden) not in (0, 2):
            raise UsageError(f"{self.algorithm}: two hidden layers are needed, found {settings.hidden}")
        shape = self.env.encoder.shape
        if len(shape) != 2 or shape[1] != 2 or shape[0] <= 2 * self.env.mask.actions:
            raise UsageError(
                f"{self.algorithm}: two rows of two numbers for each of {self.env.mask.actions} jobs are "
                f"needed, and rows of nodes, found shape {shape}"
            )
        self.device = device_named(settings.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.networks = self.make().to(self.device)
        self.vector_of_weights = flattened(self.networks)
        self.optimiser = torch.optim.Adam([self.vector_of_weights], lr=settings.learning_rate, fused=True)
        self._acting: Scoring = (
            self.networks.shared() if self.device.type == "cpu" else OnDevice(self.networks)
        )
        self._rollout = Rollout([(shape, np.float32), ((self.env.mask.actions,), np.bool_)])

    @property
    def hidden(self) -> tuple[int, ...]:
        """Sizes of the two wide layers."""
        nodes = self.env.encoder.shape[0] - 2 * self.env.mask.actions
        return self.settings.hidden or hidden_of(nodes)

    def network(self) -> RowFilter:
        """Return a copy of the current network that scores the actions."""
        return self.networks.network()

    def keep(self, folder: Path) -> None:
        """Write a snapshot of the agent after each episode."""
        place = folder / SNAPSHOTS
        make_folder(place)
        self.agent().save(place / f"episode-{self.rounds:03d}.hpcsim")

    # --- an episode ----------------------------------------------------------------------------------

    def round(self) -> Round:
        """Run the next job set, with updates on the way."""
        if self.settings.annealed:
            self._anneal()
        scenario = sampled(self.env.episodes, self.rng, self.rounds)
        _, told = self.play(scenario, self.settings.instances)
        means = {name: float(np.mean([each[name] for each in told])) for name in told[0]} if told else {}
        return Round([self.earned], means)

    def _anneal(self) -> None:
        """Set the learning rate for the share of the training that is left."""
        settings = self.settings
        left = max(1 - self.steps / settings.total_timesteps, 0.0)
        for group in self.optimiser.param_groups:
            group["lr"] = settings.learning_rate * left

    def play(self, scenario: Scenario, instances: int) -> tuple[Episode, list[dict[str, float]]]:
        """Run a scenario to its end, with an update after each given number of scheduling instances.

        Return the finished episode, with the return in `earned`, and the measures of each update.
        """
        episode = self.env.episode_of(scenario, self.env.reward)
        self.earned, told = 0.0, []
        for observations, valid, actions, rewards in self._parts(episode, instances):
            if measures := self.learn(self._steps(observations, valid, actions, rewards)):
                told.append(measures)
            self.earned += float(sum(rewards))
        return episode, told

    def _parts(
        self, episode: Episode, instances: int
    ) -> Iterator[tuple[Floats, NDArray[np.bool_], list[int], list[float]]]:
        """Run an episode; yield the steps of every few instances, with one more row for the next state."""
        stage, system = self.env.stage, episode.simulation.system
        while episode.decision is not None:
            passes, actions, rewards = set[int](), list[int](), list[float]()
            observation, valid = self._see(episode)
            while episode.decision is not None and (system.passes in passes or len(passes) < instances):
                passes.add(system.passes)
                actions.append(self.choose(self._acting, observation, valid.nonzero()[0]))
                episode.answer(actions[-1])
                rewards.append(episode.reward(stage))
                observation, valid = self._see(episode)
            self.steps += len(actions)
            seen, might = self._rollout.taken()
            yield seen, might, actions, rewards

    def _see(self, episode: Episode) -> tuple[Floats, NDArray[np.bool_]]:
        """Record observation and mask; zeros if the episode is over."""
        observation, valid = self._rollout.row()
        observation[:] = valid[:] = 0
        if episode.decision is not None:
            episode.write(observation, valid)
        return observation, valid

    def _steps(
        self,
        observations: Floats,
        valid: NDArray[np.bool_],
        actions: Sequence[int],
        rewards: Sequence[float],
    ) -> Steps:
        """Return decisions as tensors on the training device."""
        seen = torch.from_numpy(observations).to(self.device)
        might = torch.from_numpy(valid).to(self.device)
        scale = self.settings.reward_scale
        return Steps(
            seen[:-1],
            might[:-1],
            torch.tensor(actions, device=self.device),
            torch.tensor(rewards, dtype=torch.float32, device=self.device) * scale,
            seen[1:],
            might[1:],
        )

    # --- acting and learning -------------------------------------------------------------------------

    def drawn(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Sample one of the given actions from the softmax of their scores."""
        if len(actions) == 1:
            return int(actions[0])
        scores = network.scores_of(seen, actions)
        return int(actions[(scores + self.rng.gumbel(size=len(scores))).argmax()])

    def descend(self, loss: torch.Tensor) -> None:
        """Take one gradient step on a loss.

        A loss that is not finite is an error.
        """
        if not torch.isfinite(loss):
            raise UsageError(f"{self.algorithm}: the loss is {float(loss)} after {self.steps} steps")
        assert self.vector_of_weights.grad is not None
        self.vector_of_weights.grad.zero_()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_([self.vector_of_weights], self.settings.max_grad_norm)
        self.optimiser.step()

    def begin(self, agent: Agent | None = None) -> None:
        """Prepare for :meth:`play` outside of a training run, such as in operation.

        The initial weights are those of the agent, by default random ones; the optimiser is restarted.
        """
        torch.set_num_threads(1)
        self.rng, self.steps = np.random.default_rng(self.seed), 0
        self.build(self.seed)
        if agent is None:
            return
        mine, theirs = self.network(), agent.network
        shapes = [{name: values.shape for name, values in each.tensors.items()} for each in (mine, theirs)]
        if shapes[0] != shapes[1]:
            raise UsageError(
                f"{self.algorithm} needs a network like {mine!r} to go on from, found {theirs!r}"
            )
        self.networks.take_over(theirs.tensors)
