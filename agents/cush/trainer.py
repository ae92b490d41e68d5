"""CuSH's published trainer: Monte-Carlo policy gradient, with weights averaged over workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpcsimkit.agents.cush.game import Game, States
from hpcsimkit.agents.cush.returns import job_selector_returns
from hpcsimkit.agents.cush.training import Floats, GamesSettings, GamesTrainer
from hpcsimkit.agents.ranges import Share

__all__ = ["CushSettings", "CushTrainer"]


@dataclass(frozen=True)
class CushSettings(GamesSettings):
    """Settings of CuSH's trainer; by default as published.

    Parameters
    ----------
    epochs, job_sets, simulations, fresh, learning_rate, style_learning_rate, average_every
        Parameters of :class:`~hpcsimkit.agents.cush.training.GamesSettings`. (The paper does not say
        whether each epoch has new job sets.)
    equal_sets : bool
        Whether all job sets have equal weight: advantages are divided by their root mean square in the job
        set. Otherwise the job sets with the longest waits dominate. (Not from the paper.)
    gamma : float
        Discount factor gamma, in [0, 1].
    """

    equal_sets: bool = False
    gamma: Share = 0.9


class CushTrainer(GamesTrainer):
    """Trainer of the job selector and the policy selector, each with its own reward.

    Each epoch simulates the same job sets many times. The advantage of a job selector's decision is its
    return (see :func:`~hpcsimkit.agents.cush.returns.job_selector_returns`) minus the mean return of all
    simulations of the job set at the same step, with 0 for those that have ended; the reward of a placement
    is minus its penalty. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.4 and algorithm 1, which averages
    over the steps of one simulation instead; the text and the purpose support this reading.) Parameters are
    those of :class:`~hpcsimkit.agents.cush.training.GamesTrainer`.

    Examples
    --------
    >>> from hpcsimkit.agents.cush.problem import CushProblem
    >>> problem = CushProblem(nodes=4, jobs=4)
    >>> trainer = CushTrainer(problem, CushSettings(epochs=2, job_sets=2, simulations=3), seed=1)
    >>> agents = trainer.train()
    >>> {seat: type(agent.network).__name__ for seat, agent in agents.items()}
    {'order': 'ImageScores', 'placement': 'Dense'}
    """

    algorithm = "cush"
    settings: CushSettings

    def learn(self, games: Sequence[Game], states: States) -> list[float]:
        """Update the job selector from the advantages of its decisions.

        Returns the mean return of the decisions of each simulation.
        """
        turnarounds = np.array([game.fared().normalised_turnaround for game in games])
        returns = job_selector_returns([game.rewards() for game in games], turnarounds, self.settings.gamma)
        self._learn(games, states, returns)
        return [float(returns[: game.step, number].mean()) for number, game in enumerate(games)]

    def _learn(self, games: Sequence[Game], states: States, returns: Floats) -> None:
        """Take a policy-gradient step with the advantages over the baseline."""
        above = self._above_expected(games, returns)
        worth = np.zeros((len(states.busy), self.problem.mask.actions), dtype=np.float32)
        visits = np.zeros(len(states.busy), dtype=np.float32)
        for number, game in enumerate(games):
            for step, state, action in game.taken:
                worth[state, action] += above[step, number]
                visits[state] += 1
        self.job_selector.learn(states, worth, visits)

    def _above_expected(self, games: Sequence[Game], returns: Floats) -> Floats:
        """Return the advantages of the decisions, shape (steps, games)."""
        job_sets = self.settings.job_sets
        each = len(games) // job_sets
        above = returns - self._expected(returns)[: len(returns)].repeat(each, axis=1)
        if not self.settings.equal_sets:
            return above
        steps = np.array([game.step for game in games])
        squares = (np.square(above, dtype=np.float64) * (np.arange(len(above))[:, None] < steps)).sum(axis=0)
        of_sets = np.stack([squares, steps]).reshape(2, job_sets, each).sum(axis=2)
        square, count = self.workers.total(of_sets)
        size = np.sqrt(square / count)
        return above / np.where(size > 0, size, 1).astype(np.float32).repeat(each)

    def _expected(self, returns: Floats) -> Floats:
        """Return the baseline, the mean return over all workers, shape (steps, job sets)."""
        workers, settings = self.workers, self.settings
        longest = -workers.least(-len(returns))
        sums = np.zeros((longest, settings.job_sets))
        sums[: len(returns)] = returns.reshape(len(returns), settings.job_sets, -1).sum(axis=2)
        return (workers.total(sums) / settings.simulations).astype(np.float32)
