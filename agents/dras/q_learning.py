"""DRAS-DQL: Q-learning for the jobs of the window; the agent takes the job of highest value."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.torch_network import JobValuesNetwork
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer, Floats, Scoring, Steps
from hpcsimkit.agents.ranges import Count, Natural, Share
from hpcsimkit.agents.training.checkpoints import arrays_of, below, put_arrays
from hpcsimkit.agents.training.dql import q_targets
from hpcsimkit.agents.training.rollout import Rollout
from hpcsimkit.agents.training.trainer import State

__all__ = ["DrasDQL", "DrasDQLSettings"]


@dataclass(frozen=True)
class DrasDQLSettings(DrasSettings):
    """Settings of DRAS-DQL.

    Parameters
    ----------
    explore_first : float
        Initial exploration rate epsilon, in [0, 1].
    explore_decay : float
        Factor of the exploration rate at each update, in [0, 1]. (The paper does not say when it decays.)
    explore_least : float
        Minimum exploration rate, in [0, 1].
    memory : int
        Number of past decisions from which each update draws; with 0, as in the paper, it learns from the
        decisions since the last update only. (Each takes up two observations.)
    batch_size : int
        Number of decisions drawn from the memory.
    target_every : int
        Number of updates between copies of the network to a second one, which evaluates the next decision's
        best action (double Q-learning); with 0, as in the paper, there is only one network.
    """

    explore_first: Share = 1.0
    explore_decay: Share = 0.995
    explore_least: Share = 0.01
    memory: Natural = 0
    batch_size: Count = 64
    target_every: Natural = 0


class DrasDQL(DrasTrainer):
    """Q-learning from the reward and the best value of the next decision (eq. 3).

    By default there is no replay memory and no target network. There is no next value after the last decision
    of an episode.
    """

    algorithm = "dras-dql"
    learns_policy = False
    settings: DrasDQLSettings
    networks: JobValuesNetwork

    def build(self, seed: int) -> None:
        """Create the network, with the initial exploration rate, and an empty memory."""
        super().build(seed)
        settings, env = self.settings, self.env
        self.exploration = settings.explore_first
        self.target = copy.deepcopy(self.networks) if settings.target_every else None
        seen, valid = (env.encoder.shape, np.float32), ((env.mask.actions,), np.bool_)
        columns = (seen, valid, ((), np.int64), ((), np.float32), seen, valid)  # those of steps
        self.memory = Rollout(columns, capacity=settings.memory) if settings.memory else None
        self._updates = 0

    def begin(self, agent: Agent | None = None) -> None:
        """Prepare for :meth:`play`; with an agent, exploration begins at its minimum."""
        super().begin(agent)
        if agent is not None:
            self.exploration = self.settings.explore_least
        if self.target is not None:
            self.target.load_state_dict(self.networks.state_dict())

    def make(self) -> JobValuesNetwork:
        """Return a network that reads one job and all nodes."""
        env = self.env
        return JobValuesNetwork(2 + env.encoder.shape[0] - 2 * env.mask.actions, self.hidden)

    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Return the job of highest value, or a random one."""
        if len(actions) == 1:
            return int(actions[0])
        if self.rng.random() < self.exploration:
            return int(self.rng.choice(actions))
        return int(actions[network.scores_of(seen, actions).argmax()])

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take one gradient step, and reduce exploration."""
        settings = self.settings
        loss = self.loss(self._drawn_with(steps))
        self.descend(loss)
        self._updates += 1
        if self.target is not None and self._updates % settings.target_every == 0:
            self.target.load_state_dict(self.networks.state_dict())
        self.exploration = max(settings.explore_least, self.exploration * settings.explore_decay)
        return {"loss": loss.item(), "exploration": self.exploration}

    def _drawn_with(self, steps: Steps) -> Steps:
        """Return the decisions to learn from: the given ones, or some of the memory, which they enter."""
        if self.memory is None:
            return steps
        self.memory.add(*(column.cpu().numpy() for column in steps))
        drawn = self.memory.sample(self.rng, self.settings.batch_size)
        return Steps(*(torch.from_numpy(column).to(self.device) for column in drawn))

    def loss(self, steps: Steps) -> torch.Tensor:
        """Return half the sum of squared differences between values and targets (eq. 3)."""
        rows = torch.arange(len(steps.actions), device=steps.actions.device)
        values = self.networks.of_jobs(steps.observations, rows, steps.actions)
        with torch.no_grad():
            chooser = self.networks.where(steps.following, steps.following_valid)
            second = self.target
            values_then = chooser if second is None else second.where(steps.following, steps.following_valid)
            targets = q_targets(
                steps.rewards,
                steps.following_valid.any(dim=1),
                values_then,
                steps.following_valid,
                self.settings.gamma,
                chooser,
            )
        return 0.5 * (values - targets).square().sum()

    def state(self) -> State:
        """Return exploration rate, number of updates, target network and memory."""
        about: dict[str, Any] = {"exploration": self.exploration, "updates": self._updates}
        tensors: dict[str, Any] = {}
        if self.target is not None:
            tensors |= {f"target.{name}": values for name, values in arrays_of(self.target).items()}
        if self.memory is not None:
            tensors |= {f"memory.{name}": values for name, values in self.memory.arrays().items()}
            about["added"] = self.memory.added
        return State(tensors, about)

    def restore(self, state: State) -> None:
        """Restore exploration rate, number of updates, target network and memory."""
        self.exploration, self._updates = state.about["exploration"], state.about.get("updates", 0)
        if self.target is not None:
            put_arrays(below("target", state.tensors), self.target)
        if self.memory is not None:
            self.memory.restore(below("memory", state.tensors), state.about["added"])
