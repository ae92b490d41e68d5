"""Base class of trainers that compare whole networks by the returns of their episodes, without gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.networks.numpy_networks import Network, SlotScores
from hpcsimkit.agents.ranges import Count, Positive
from hpcsimkit.agents.training.seat_trainer import RunSettings, SeatTrainer
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PopulationSettings(RunSettings):
    """Settings shared by the trainers of populations of networks.

    Parameters
    ----------
    episodes : int
        Number of episodes per network in a round; all networks of a round run the same ones.
    population : int
        Number of networks in a round.
    spread : float
        Initial standard deviation of each weight (sigma).
    hidden : tuple of int
        Sizes of the hidden layers. Without any the score is a weighted sum; these methods work best with few
        weights.
    activation : {"relu", "tanh"}
        Activation function between the layers.
    first : tuple of float
        Initial mean of the weights, layer by layer, each before its bias; zeros by default.
    """

    episodes: Count = 10
    population: Count = 32
    spread: Positive = 2.0
    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    first: tuple[float, ...] = ()


class PopulationTrainer(SeatTrainer):
    """Base class of trainers of a small network that scores rows, from samples of its weights.

    Each round samples networks from a normal distribution, runs the same episodes with each of them, taking
    the best action, and moves the distribution. The agent has the mean weights. Only the return of an episode
    counts: neither the timing of rewards nor the length of the episode matters. Parameters are those of
    :class:`SeatTrainer`.
    """

    settings: PopulationSettings
    learns_policy = False

    def build(self, seed: int) -> None:
        """Set the initial mean: the given one, or zeros, with which all actions score the same."""
        settings, encoder = self.settings, self.env.encoder
        shape, actions = encoder.shape, self.env.mask.actions
        if len(shape) != 2 or shape[0] < actions:
            raise UsageError(
                f"{self.algorithm}: a network of slots needs rows for {actions} actions, found shape {shape}"
            )
        self._sizes = [encoder.shape[-1], *settings.hidden, 1]
        count = sum(inputs * outputs + outputs for inputs, outputs in pairwise(self._sizes))
        if settings.first and len(settings.first) != count:
            raise UsageError(f"{self.algorithm}: first needs {count} weights, found {len(settings.first)}")
        self._mean = np.array(settings.first or np.zeros(count), dtype=np.float64)
        self.networks, self.optimiser = nn.Module(), torch.optim.SGD([nn.Parameter(torch.zeros(1))])

    def network(self) -> Network:
        """Return the network with the mean weights."""
        return self._network(self._mean)

    def returns(self, drawn: Iterable[Floats], scenarios: Sequence[Scenario]) -> Floats:
        """Run episodes with each vector of weights; return their returns, shape (networks, episodes)."""
        return np.array([[self._play(self._network(each), one) for one in scenarios] for each in drawn])

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
        episode = env.episode_of(scenario, env.reward)
        observation = np.zeros(env.encoder.shape, dtype=np.float32)
        valid = np.zeros(env.mask.actions, dtype=np.bool_)
        while episode.decision is not None:
            episode.write(observation, valid)
            actions = valid.nonzero()[0]
            episode.answer(int(actions[network.scores_of(observation, actions).argmax()]))
        self.steps += episode.decisions
        return episode.reward(env.stage)
