"""How CuSH's two selectors are trained as published: Monte-Carlo policy gradient, by averaged workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpcsimkit.agents.cush.game import Game, States
from hpcsimkit.agents.cush.returns import job_selector_returns
from hpcsimkit.agents.cush.training import Floats, GamesSettings, GamesTrainer
from hpcsimkit.errors import UsageError

__all__ = ["CushSettings", "CushTrainer"]


@dataclass(frozen=True)
class CushSettings(GamesSettings):
    """How CuSH is trained; by default as published.

    Parameters
    ----------
    epochs, job_sets, simulations, fresh, learning_rate, style_learning_rate, average_every
        As in :class:`~hpcsimkit.agents.cush.training.GamesSettings`. (The paper does not say whether job sets
        are fresh ones.)
    equal_sets : bool
        All job sets count alike: by how much a decision was worth more than expected is divided by the root
        mean square of that in the job set. Otherwise those count most where jobs wait longest. (Not the
        paper's.)
    discount : float
        gamma, in [0, 1].
    """

    equal_sets: bool = False
    discount: float = 0.9


class CushTrainer(GamesTrainer):
    """Trains the job selector and the policy selector together, each for what it is paid.

    In each epoch the same job sets are simulated many times over. A decision of the job selector counts by
    how much its return (see :func:`~hpcsimkit.agents.cush.returns.job_selector_returns`) is above the mean of
    all simulations of the job set at the same step, those that have ended counting 0; a placement by minus
    its penalty. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.4 and algorithm 1, which takes the mean
    over the steps of one simulation instead: the text and the purpose speak for this one.)
    Parameters are those of :class:`~hpcsimkit.agents.cush.training.GamesTrainer`.

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

    def check(self) -> None:
        """See that all settings are in their ranges; else a UsageError."""
        super().check()
        if not 0 <= self.settings.discount <= 1:
            raise UsageError(f"CuSH: discount needs a number from 0 to 1, found {self.settings.discount!r}")

    def learn(self, games: Sequence[Game], states: States) -> list[float]:
        """Let the job selector learn by how much each decision was worth more than expected.

        Returns the mean return of the decisions of each game.
        """
        turnarounds = np.array([game.fared().normalised_turnaround for game in games])
        returns = job_selector_returns(
            [game.rewards() for game in games], turnarounds, self.settings.discount
        )
        self._learn(games, states, returns)
        return [float(returns[: game.step, number].mean()) for number, game in enumerate(games)]

    def _learn(self, games: Sequence[Game], states: States, returns: Floats) -> None:
        """Let actions become the more probable the more they were worth beyond what was expected."""
        above = self._above_expected(games, returns)
        worth = np.zeros((len(states.busy), self.problem.mask.actions), dtype=np.float32)
        visits = np.zeros(len(states.busy), dtype=np.float32)
        for number, game in enumerate(games):
            for step, state, action in game.taken:
                worth[state, action] += above[step, number]
                visits[state] += 1
        self.job_selector.learn(states, worth, visits)

    def _above_expected(self, games: Sequence[Game], returns: Floats) -> Floats:
        """Return by how much each decision was worth more than expected, shape (steps, games)."""
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
        """Return the mean return of each job set at each step, over all workers, shape (steps, job sets)."""
        workers, settings = self.workers, self.settings
        longest = -workers.least(-len(returns))
        sums = np.zeros((longest, settings.job_sets))
        sums[: len(returns)] = returns.reshape(len(returns), settings.job_sets, -1).sum(axis=2)
        return (workers.total(sums) / settings.simulations).astype(np.float32)
