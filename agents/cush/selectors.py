"""The two that learn: a job selector that sees pictures, and a policy selector that sees the kind of work."""

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
from hpcsimkit.agents.networks import Dense

__all__ = ["HIDDEN", "JobSelector", "PolicySelector"]

HIDDEN = 10
"""Units of the policy selector's hidden layer, as published."""

AT_ONCE = 16
"""States that are thought about at a time: what they take just fits into the processor's cache."""

MOMENTUM = 0.1
"""How far normalisation goes to what an epoch has shown, as everywhere."""

SLOW_MOMENTUM = 0.01
"""The same where there are many steps in an epoch."""

Floats = NDArray[np.float32]
Pull = Callable[[torch.Tensor, slice], torch.Tensor]
"""Returns where scores of some of the states, shape (some, actions), are to go."""


class JobSelector:
    """Says how probable it is to start each job, or nothing more; learns what was worth more than expected.

    Parameters
    ----------
    problem : CushProblem
        What it sees and may do.
    optimiser : callable
        ``optimiser(network)``: who moves the weights.
    generator : torch.Generator
        Where first weights come from.
    """

    def __init__(
        self, problem: CushProblem, optimiser: Callable[[nn.Module], torch.optim.Optimizer],
        generator: torch.Generator,
    ) -> None:  # fmt: skip
        image = problem.image
        self.network = ImageNetwork(image.nodes, image.units, image.steps, image.slots, generator=generator)
        self.optimiser = optimiser(self.network)

    def __call__(self, sketch: Sketch, valid: Valid) -> Floats:
        """Return probabilities of the actions in many states, float32, shape (states, actions)."""
        network = self.network
        with torch.no_grad():
            last, parts = network.last(), []
            for first in range(0, len(valid), AT_ONCE):
                some = [torch.from_numpy(part[first : first + AT_ONCE]) for part in sketch]
                parts.append(network.scores(network.found(*some), last, len(some[0])))
            scores = torch.cat(parts).masked_fill_(~torch.from_numpy(valid), -torch.inf)
            return scores.softmax(dim=1).numpy()

    def learn(self, states: States, worth: Floats, visits: Floats) -> None:
        """Let actions become more probable the more they were worth, and normalise by what was seen.

        Parameters
        ----------
        states : States
            With the probabilities of this network.
        worth : array of float32, shape (states, actions)
            By how much each action, as often as it was taken, was worth more than expected, summed up.
        visits : array of float32, shape (states,)
            How often each state was met.
        """
        if not states.busy:  # nobody had a choice
            return
        probabilities = np.array(states.probabilities)
        pull = torch.from_numpy(worth - worth.sum(axis=1, keepdims=True) * probabilities)
        self._step(states, visits, lambda scores, some: pull[some], MOMENTUM)

    def imitate(self, states: States, regrets: Floats, certainty: float) -> None:
        """Let actions become less probable the more is lost by them; one step, by so many states.

        It goes down the gradient of what is lost on average if actions are drawn, and, `certainty` times as
        fast, up that of the logarithm of the probability of the best one: without it an action that has
        become improbable is hardly heard of any more.

        Parameters
        ----------
        states : States
            At least one, with the valid actions.
        regrets : array of float32, shape (states, actions)
            How much is lost by each action; 0 for the best one.
        certainty : float
            How much it counts that the best one is the most probable.
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
        """Go a step the way that scores are pulled, and normalise by what was seen."""
        self.optimiser.zero_grad()
        moments = self._seen(states, visits, pull)
        self.optimiser.step()
        self.network.renew(moments, momentum)

    def look(self, states: States) -> None:
        """Normalise by what was seen, before anything is learned."""
        if not states.busy:
            return
        with torch.no_grad():
            self.network.renew(self._seen(states, np.ones(len(states.busy), dtype=np.float32)))

    def _seen(self, states: States, visits: Floats, pull: Pull | None = None) -> torch.Tensor:
        """Return the moments of what filters find; with a pull, add up gradients that way."""
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
    """Says for each kind of work how probable depth- and breadth-first are; learns what costs less.

    Parameters
    ----------
    kinds : int
        Of work.
    learning_rate : float
        Of RMSprop.
    generator : torch.Generator
        Where first weights come from.
    """

    def __init__(self, kinds: int, learning_rate: float, generator: torch.Generator) -> None:
        self.kinds = torch.eye(kinds)
        first, last = self._layers = [nn.Linear(kinds, HIDDEN), nn.Linear(HIDDEN, 2)]
        nn.init.kaiming_uniform_(first.weight, nonlinearity="relu", generator=generator)
        # Hidden units belong to kinds in turn: if chance decides, a kind may have none of its own.
        with torch.no_grad():
            first.weight.abs_()
            first.weight[torch.arange(HIDDEN)[:, None] % kinds != torch.arange(kinds)] *= -1
        # Both styles are equally probable at first.
        for values in (first.bias, last.weight, last.bias):
            nn.init.zeros_(values)
        self.network = nn.Sequential(self._layers[0], nn.ReLU(), self._layers[1])
        self.optimiser = torch.optim.RMSprop(self.network.parameters(), learning_rate)

    def probabilities(self) -> NDArray[np.float64]:
        """Return how probable each style is for each kind, shape (kinds, 2)."""
        with torch.no_grad():
            probabilities: NDArray[np.float64] = self.network(self.kinds).double().softmax(dim=1).numpy()
        return probabilities

    def learn(self, placed: Sequence[Placed]) -> None:
        """Let styles become more probable the less they cost: what a job is worth is minus its penalty.

        (The paper's text pays the penalty itself, which would make placements worse and worse.)
        """
        worth = np.zeros((len(self.kinds), 2))
        for kind, style, penalty in placed:
            worth[kind, style] -= penalty
        pull = worth - worth.sum(axis=1, keepdims=True) * self.probabilities()
        self.optimiser.zero_grad()
        torch.autograd.backward(self.network(self.kinds), -torch.from_numpy(pull).float())
        self.optimiser.step()

    def acting(self) -> Dense:
        """Return the network as it is now, in numpy."""
        tensors = {
            f"{name}.{number}": values.detach().numpy().copy()
            for number, layer in enumerate(self._layers)
            for name, values in layer.named_parameters()
        }
        return Dense(tensors, "relu")
