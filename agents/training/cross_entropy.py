"""The cross-entropy method: sample networks, run episodes with each, move towards the elite."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.networks.numpy_networks import Network, SlotScores
from hpcsimkit.agents.ranges import Count, Positive, Share
from hpcsimkit.agents.training.seat_trainer import RunSettings, SeatTrainer
from hpcsimkit.agents.training.trainer import Round, State
from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError

__all__ = ["CrossEntropy", "CrossEntropySettings"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CrossEntropySettings(RunSettings):
    """Settings of the cross-entropy method.

    Parameters
    ----------
    episodes : int
        Number of episodes per network in a round; all networks of a round run the same ones.
    population : int
        Number of networks in a round.
    elite : int
        Number of best networks that determine the new mean and standard deviation.
    spread : float
        Initial standard deviation of each weight (sigma); a fortieth of it is the lower bound.
    inertia : float
        Share of the old mean and standard deviation in the new ones, in [0, 1].
    hidden : tuple of int
        Sizes of the hidden layers. Without any the score is a weighted sum; the method works best with few
        weights.
    activation : {"relu", "tanh"}
        Activation function between the layers.
    first : tuple of float
        Initial mean of the weights, layer by layer, each before its bias; zeros by default.
    """

    episodes: Count = 10
    population: Count = 32
    elite: Count = 8
    spread: Positive = 2.0
    inertia: Share = 0.3
    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    first: tuple[float, ...] = ()


class CrossEntropy(SeatTrainer):
    """Trainer of a small network that scores rows, without gradients.

    Each round samples networks around the current mean, runs the same episodes with each of them, taking the
    best action, and moves mean and standard deviation towards the elite. The agent has the mean weights. Only
    the return of an episode counts: neither the timing of rewards nor the length of the episode matters.
    (Szita and Lorincz, Neural Computation 18, 2006.) Parameters are those of :class:`SeatTrainer`.

    Examples
    --------
    A long job and a short one on one node: the agent learns to start the short one first.

    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> from hpcsimkit.kernel.decision import External
    >>> from hpcsimkit.envs.environment import SchedulingEnv
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [90, 10], "nodes": [1, 1]}, machine_size=1)
    >>> env = SchedulingEnv(Fixed(w), Pipeline(order=External(), window=2), QueueWindow(2, time_scale=100.0),
    ...     Slots(2), MinusMeanWait())
    >>> settings = CrossEntropySettings(total_timesteps=40, episodes=1, population=8, elite=2)
    >>> agent = CrossEntropy(env, settings, seed=0).train()
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> Simulation(w, Pipeline(order=agent, window=2)).run().wait_time.tolist()
    [10.0, 0.0]
    """

    algorithm = "cem"
    settings: CrossEntropySettings

    def build(self, seed: int) -> None:
        """Set the initial mean: the given one, or zeros, with which all actions score the same."""
        settings, encoder = self.settings, self.env.encoder
        shape, actions = encoder.shape, self.env.mask.actions
        if len(shape) != 2 or shape[0] < actions:
            raise UsageError(f"cem: a network of slots needs rows for {actions} actions, found shape {shape}")
        if settings.elite > settings.population:
            raise UsageError(f"cem: elite needs 1 to {settings.population} networks, found {settings.elite}")
        self._sizes = [encoder.shape[-1], *settings.hidden, 1]
        count = sum(inputs * outputs + outputs for inputs, outputs in pairwise(self._sizes))
        if settings.first and len(settings.first) != count:
            raise UsageError(f"cem: first needs {count} weights, found {len(settings.first)}")
        self._mean = np.array(settings.first or np.zeros(count), dtype=np.float64)
        self._spread = np.full(count, settings.spread, dtype=np.float64)
        self.networks, self.optimiser = nn.Module(), torch.optim.SGD([nn.Parameter(torch.zeros(1))])

    def round(self) -> Round:
        """Sample networks, run the episodes, and move towards the elite."""
        settings = self.settings
        scenarios = [self.env.episodes.sample(self.rng) for _ in range(settings.episodes)]
        drawn = self._mean + self._spread * self.rng.normal(size=(settings.population, len(self._mean)))
        drawn[0] = self._mean
        sums = np.array([[self._play(self._network(each), one) for one in scenarios] for each in drawn])
        best = drawn[np.argsort(-sums.mean(axis=1), kind="stable")[: settings.elite]]
        self._mean += (1 - settings.inertia) * (best.mean(axis=0) - self._mean)
        self._spread += (1 - settings.inertia) * (best.std(axis=0) - self._spread)
        self._spread = np.maximum(self._spread, settings.spread / 40)
        means = sums.mean(axis=1)
        measures = {
            "best": float(means.max()),
            "all": float(means.mean()),
            "spread": float(self._spread.mean()),
        }
        return Round(sums[0].tolist(), measures)

    def network(self) -> Network:
        """Return the network with the mean weights."""
        return self._network(self._mean)

    def state(self) -> State:
        """Return mean and standard deviation."""
        return State({}, {"mean": self._mean.tolist(), "spread": self._spread.tolist()})

    def restore(self, state: State) -> None:
        """Restore mean and standard deviation."""
        self._mean, self._spread = (np.array(state.about[name]) for name in ("mean", "spread"))

    def _network(self, weights: Floats) -> Network:
        """Return the network with a given vector of weights."""
        tensors, first = {}, 0
        for number, (inputs, outputs) in enumerate(pairwise(self._sizes)):
            for name, shape in (("weight", (outputs, inputs)), ("bias", (outputs,))):
                last = first + int(np.prod(shape))
                tensors[f"{name}.{number}"] = weights[first:last].reshape(shape).astype(np.float32)
                first = last
        return SlotScores(tensors, self.settings.activation)

    def _play(self, network: Network, scenario: Scenario) -> float:
        """Return the return of a network in an episode, with the best action at each decision."""
        env = self.env
        player = Player(env.encoder, env.mask, env.reward)
        episode = Episode(scenario, env.policy, {env.stage: player}, skip=env.skip)
        observation = np.zeros(env.encoder.shape, dtype=np.float32)
        valid = np.zeros(env.mask.actions, dtype=np.bool_)
        while episode.decision is not None:
            episode.write(observation, valid)
            actions = valid.nonzero()[0]
            episode.answer(int(actions[network.scores_of(observation, actions).argmax()]))
        self.steps += episode.decisions
        return episode.reward(env.stage)
