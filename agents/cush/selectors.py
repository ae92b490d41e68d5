"""CuSH's two learners: a job selector that reads images, and a policy selector that reads job types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.cush.encoder import Sketch
from hpcsimkit.agents.cush.game import Placed, States, Valid
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.torch_network import ImageNetwork, Last
from hpcsimkit.agents.networks.numpy_networks import Dense

HIDDEN = 10
"""Number of units in the policy selector's hidden layer, as published."""

AT_ONCE = 16
"""Number of states in a batch, small enough for the processor's cache."""

MOMENTUM = 0.1
"""Momentum of the normalisation statistics, with the usual value."""

SLOW_MOMENTUM = 0.01
"""Momentum of the normalisation statistics for many steps per epoch."""

Floats = NDArray[np.float32]
Pull = Callable[[torch.Tensor, slice], torch.Tensor]
"""Function that returns the ascent direction for the scores of a slice of states, shape (some, actions)."""


class JobSelector:
    """Policy over the jobs to start, or no further one; learns by policy gradient or imitation.

    Parameters
    ----------
    problem : CushProblem
        Encoder and mask of the job selector.
    optimiser : callable
        Function ``optimiser(network)`` that returns an optimiser of the weights.
    generator : torch.Generator
        Random number generator for the initial weights.
    """

    def __init__(
        self,
        problem: CushProblem,
        optimiser: Callable[[nn.Module], torch.optim.Optimizer],
        generator: torch.Generator,
    ) -> None:
        image = problem.image
        self.network = ImageNetwork(image.nodes, image.units, image.steps, image.slots, generator=generator)
        self.optimiser = optimiser(self.network)

    def __call__(self, sketch: Sketch, valid: Valid) -> Floats:
        """Return the action probabilities of a batch of states, float32, shape (states, actions)."""
        network = self.network
        with torch.no_grad():
            last, parts = network.last(), []
            for first in range(0, len(valid), AT_ONCE):
                some = [torch.from_numpy(part[first : first + AT_ONCE]) for part in sketch]
                parts.append(network.scores(network.found(*some), last, len(some[0])))
            scores = torch.cat(parts).masked_fill_(~torch.from_numpy(valid), -torch.inf)
            return scores.softmax(dim=1).numpy()

    def learn(self, states: States, worth: Floats, visits: Floats) -> None:
        """Take a policy-gradient step, and update the normalisation statistics.

        The states have the probabilities of this network; `worth` is the sum of the advantages of each action
        over all its occurrences, shape (states, actions), and `visits` the number of occurrences of each
        state.
        """
        if not states.busy:  # no decision had an alternative
            return
        probabilities = np.array(states.probabilities)
        pull = torch.from_numpy(worth - worth.sum(axis=1, keepdims=True) * probabilities)
        self._step(states, visits, lambda scores, some: pull[some], MOMENTUM)

    def imitate(self, states: States, regrets: Floats, certainty: float) -> None:
        """Take an imitation step that reduces the expected regret on a batch of states.

        It descends the gradient of the mean regret of sampled actions and, with weight `certainty`, ascends
        that of the log probability of the best action; otherwise an improbable action would hardly have a
        gradient any more.

        Regrets have the shape (states, actions), and are 0 for the best one.
        """
        lost, valid = torch.from_numpy(regrets), torch.from_numpy(np.array(states.valid))
        best = torch.where(valid, lost, torch.inf).argmin(dim=1)
        wanted = nn.functional.one_hot(best, lost.shape[1])

        def pull(scores: torch.Tensor, some: slice) -> torch.Tensor:
            probabilities = scores.masked_fill(~valid[some], -torch.inf).softmax(dim=1)
            expected = (probabilities * lost[some]).sum(dim=1, keepdim=True)
            less = probabilities * (expected - lost[some])
            return (less + certainty * (wanted[some] - probabilities)) / len(lost)

        self._step(states, np.ones(len(lost), dtype=np.float32), pull, SLOW_MOMENTUM)

    def _step(self, states: States, visits: Floats, pull: Pull, momentum: float) -> None:
        """Take a step in the given direction of the scores, and update the normalisation statistics."""
        self.optimiser.zero_grad()
        moments = self._seen(states, visits, pull)
        self.optimiser.step()
        self.network.renew(moments, momentum)

    def look(self, states: States) -> None:
        """Initialise the normalisation statistics before training."""
        if not states.busy:
            return
        with torch.no_grad():
            self.network.renew(self._seen(states, np.ones(len(states.busy), dtype=np.float32)))

    def _seen(self, states: States, visits: Floats, pull: Pull | None = None) -> torch.Tensor:
        """Return the moments of the filter outputs; with `pull`, accumulate gradients."""
        network = self.network
        share = torch.from_numpy(visits / visits.sum())
        busy, jobs = (torch.from_numpy(np.array(part)) for part in (states.busy, states.jobs))
        moments = torch.zeros(2, len(network.mean))
        last = network.last()
        collected = Last(*(part.detach().requires_grad_() for part in last))  # once for all states
        for first in range(0, len(busy), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            found = network.found(busy[some], jobs[some])
            count = len(busy[some])
            moments += torch.einsum("b,bmf->mf", share[some], network.moments(found, count))
            if pull is not None:
                scores = network.scores(found, collected, count)
                torch.autograd.backward(scores, -pull(scores.detach(), some))
        if pull is not None:
            torch.autograd.backward(list(last), [part.grad for part in collected])
        return moments


class PolicySelector:
    """Policy over depth- and breadth-first placement for each job type; learns from penalties.

    Parameters
    ----------
    kinds : int
        Number of job types.
    learning_rate : float
        Learning rate of RMSprop.
    generator : torch.Generator
        Random number generator for the initial weights.
    """

    def __init__(self, kinds: int, learning_rate: float, generator: torch.Generator) -> None:
        self.kinds = torch.eye(kinds)
        first, last = self._layers = [nn.Linear(kinds, HIDDEN), nn.Linear(HIDDEN, 2)]
        nn.init.kaiming_uniform_(first.weight, nonlinearity="relu", generator=generator)
        # Hidden units are assigned to job types in turn: with random signs a type may get no unit of its own.
        with torch.no_grad():
            first.weight.abs_()
            first.weight[torch.arange(HIDDEN)[:, None] % kinds != torch.arange(kinds)] *= -1
        # Both placement modes are equally probable at first.
        for values in (first.bias, last.weight, last.bias):
            nn.init.zeros_(values)
        self.network = nn.Sequential(self._layers[0], nn.ReLU(), self._layers[1])
        self.optimiser = torch.optim.RMSprop(self.network.parameters(), learning_rate)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability of each placement mode for each job type, shape (kinds, 2)."""
        with torch.no_grad():
            probabilities: NDArray[np.float64] = self.network(self.kinds).double().softmax(dim=1).numpy()
        return probabilities

    def learn(self, placed: Sequence[Placed]) -> None:
        """Take a policy-gradient step, with minus the penalty of a placement as the reward.

        (In the paper's text the reward is the penalty itself, which would make placements worse and worse.)
        """
        worth = np.zeros((len(self.kinds), 2))
        for kind, style, penalty in placed:
            worth[kind, style] -= penalty
        pull = worth - worth.sum(axis=1, keepdims=True) * self.probabilities()
        self.optimiser.zero_grad()
        torch.autograd.backward(self.network(self.kinds), -torch.from_numpy(pull).float())
        self.optimiser.step()

    def acting(self) -> Dense:
        """Return the current network, in numpy."""
        tensors = {
            f"{name}.{number}": values.detach().numpy().copy()
            for number, layer in enumerate(self._layers)
            for name, values in layer.named_parameters()
        }
        return Dense(tensors, "relu")
