"""The cross-entropy method: draw networks, let them play, go towards those that did best."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.networks import Network, network_of
from hpcsimkit.agents.trainer import Round, RunSettings, State, Trainer
from hpcsimkit.episode import Episode, Player
from hpcsimkit.errors import UsageError
from hpcsimkit.scenario import Scenario

__all__ = ["CrossEntropy", "CrossEntropySettings"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CrossEntropySettings(RunSettings):
    """How networks are drawn.

    Parameters
    ----------
    episodes : int
        That each network of a round plays: the same ones for all.
    population : int
        Networks of a round.
    elite : int
        The best so many of them say where to go on.
    spread : float
        Standard deviation of each weight at first; no weight's falls below a fortieth of it.
    inertia : float
        Share of mean and spread that stays as it was, in [0, 1].
    hidden : tuple of int
        Sizes of hidden layers. Without any the score is a weighted sum: the fewer weights, the better the
        method works.
    activation : {"relu", "tanh"}
        Between the layers.
    first : tuple of float
        Mean of the weights at first, layer by layer, each before its bias; zeros by default.
    """

    episodes: int = 10
    population: int = 32
    elite: int = 8
    spread: float = 2.0
    inertia: float = 0.3
    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    first: tuple[float, ...] = ()


class CrossEntropy(Trainer):
    """Learns the weights of a small network that scores rows, without gradients.

    Each round draws networks around the mean so far, lets each of them play the same episodes, taking the
    best action, and moves mean and spread towards the best of them. The mean is the agent. It does not
    matter when something is paid, only the sum over an episode is; nor how long an episode is. (Szita and
    Lorincz, Neural Computation 18, 2006.) Parameters are those of :class:`Trainer`.

    Examples
    --------
    A long job and a short one on one node: the agent learns to begin with the short one.

    >>> from hpcsimkit.agents.encoders import QueueWindow
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> from hpcsimkit.agents.masks import Slots
    >>> from hpcsimkit.agents.rewards import MinusMeanWait
    >>> from hpcsimkit.decision import External
    >>> from hpcsimkit.environment import SchedulingEnv
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.workload import Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [90, 10], "nodes": [1, 1]}, machine_size=1)
    >>> env = SchedulingEnv(Fixed(w), Pipeline(order=External(), window=2), QueueWindow(2, time_scale=100.0),
    ...     Slots(2), MinusMeanWait())
    >>> settings = CrossEntropySettings(steps=40, episodes=1, population=8, elite=2)
    >>> agent = CrossEntropy(env, settings, seed=0).train()
    >>> from hpcsimkit.simulation import Simulation
    >>> Simulation(w, Pipeline(order=agent, window=2)).run().wait_time.tolist()
    [10.0, 0.0]
    """

    algorithm = "cem"
    settings: CrossEntropySettings

    def build(self, seed: int) -> None:
        """Begin at the mean that is given, or where all actions score the same."""
        settings, encoder = self.settings, self.env.encoder
        shape, actions = encoder.shape, self.env.mask.actions
        if len(shape) != 2 or shape[0] < actions:
            raise UsageError(f"cem: a network of slots needs rows for {actions} actions, found shape {shape}")
        if settings.episodes < 1 or settings.spread <= 0 or not 0 <= settings.inertia <= 1:
            raise UsageError("cem: episodes >= 1, a spread above 0, and an inertia from 0 to 1 are needed")
        if not 1 <= settings.elite <= settings.population:
            raise UsageError(f"cem: elite needs 1 to {settings.population} networks, found {settings.elite}")
        self._sizes = [encoder.shape[-1], *settings.hidden, 1]
        count = sum(inputs * outputs + outputs for inputs, outputs in pairwise(self._sizes))
        if settings.first and len(settings.first) != count:
            raise UsageError(f"cem: first needs {count} weights, found {len(settings.first)}")
        self._mean = np.array(settings.first or np.zeros(count), dtype=np.float64)
        self._spread = np.full(count, settings.spread, dtype=np.float64)
        self.networks, self.optimiser = nn.Module(), torch.optim.SGD([nn.Parameter(torch.zeros(1))])

    def round(self) -> Round:
        """Draw networks, let them play, and move towards the best."""
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
        """Return the network of the mean."""
        return self._network(self._mean)

    def state(self) -> State:
        """Return mean and spread."""
        return State({}, {"mean": self._mean.tolist(), "spread": self._spread.tolist()})

    def restore(self, state: State) -> None:
        """Go on with these."""
        self._mean, self._spread = (np.array(state.about[name]) for name in ("mean", "spread"))

    def _network(self, weights: Floats) -> Network:
        """Return the network of a vector of weights."""
        tensors, first = {}, 0
        for number, (inputs, outputs) in enumerate(pairwise(self._sizes)):
            for name, shape in (("weight", (outputs, inputs)), ("bias", (outputs,))):
                last = first + int(np.prod(shape))
                tensors[f"{name}.{number}"] = weights[first:last].reshape(shape).astype(np.float32)
                first = last
        return network_of("slots", tensors, activation=self.settings.activation)

    def _play(self, network: Network, scenario: Scenario) -> float:
        """Return what a network earns in an episode when it takes the best action each time."""
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
