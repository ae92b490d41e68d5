"""CMA-ES: sample networks, and adapt mean, step size and covariance of their weights to the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from hpcsimkit.agents.ranges import Range
from hpcsimkit.agents.training.population import PopulationSettings, PopulationTrainer
from hpcsimkit.agents.training.trainer import Round, State
from hpcsimkit.errors import UsageError

__all__ = ["CMAES", "CMAESSettings"]


@dataclass(frozen=True)
class CMAESSettings(PopulationSettings):
    """Settings of CMA-ES. All others have the defaults of the package cma.

    Parameters
    ----------
    population : int
        Number of networks in a round, at least 2.
    """

    population: Annotated[int, Range(2)] = 16


class CMAES(PopulationTrainer):
    """Trainer of a small network that scores rows, by the package cma (the extra ``[learn]``).

    Covariance matrix adaptation evolution strategy: unlike
    :class:`~hpcsimkit.agents.training.cross_entropy.CrossEntropy` it also learns how good weights depend on
    each other. (Hansen and Ostermeier, Evolutionary Computation 9, 2001; Hansen, "The CMA evolution strategy:
    a tutorial", arXiv:1604.00772.) The return of a round is the mean over its networks. No criterion ends the
    run early. Parameters are those of :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

    A checkpoint consists of the returns that the strategy was told so far; a resumed run tells them again.
    """

    algorithm = "cma-es"
    settings: CMAESSettings

    def build(self, seed: int) -> None:
        """Create the strategy.

        Raises
        ------
        UsageError
            The package cma is not installed.
        """
        super().build(seed)
        normal = np.random.default_rng(seed)  # of its own, so that a resumed run can draw the same again
        self._strategy = _strategy(self._mean, self.settings, normal)
        self._told: list[list[float]] = []

    def round(self) -> Round:
        """Sample networks, run the episodes, and tell the strategy their returns."""
        scenarios = [self.env.episodes.sample(self.rng) for _ in range(self.settings.episodes)]
        drawn = self._strategy.ask()
        sums = self.returns(drawn, scenarios)
        means = sums.mean(axis=1)
        self._tell(drawn, means.tolist())
        measures = {"best": float(means.max()), "spread": float(self._strategy.sigma)}
        return Round(sums.mean(axis=0).tolist(), measures)

    def _tell(self, drawn: list[Any], means: list[float]) -> None:
        """Update the strategy, which minimises, from the mean returns of networks."""
        self._told.append(means)
        self._strategy.tell(drawn, [-mean for mean in means])
        self._mean = np.array(self._strategy.mean, dtype=np.float64)

    def state(self) -> State:
        """Return the mean returns of all networks so far."""
        return State({}, {"told": self._told})

    def restore(self, state: State) -> None:
        """Repeat all rounds of the strategy."""
        for means in state.about["told"]:
            self._tell(self._strategy.ask(), means)


def _strategy(first: Any, settings: CMAESSettings, normal: np.random.Generator) -> Any:
    """Return the strategy of the package cma, which draws from a given generator only, and writes nothing."""
    try:
        from cma import CMAEvolutionStrategy
    except ImportError:
        raise UsageError("cma-es needs the package cma: pip install 'hpcsimkit[learn]'") from None
    options = {
        "popsize": settings.population,
        "randn": lambda *shape: normal.standard_normal(shape),
        "seed": float("nan"),  # numpy's global generator is left alone
        "verbose": -9,
    }
    return CMAEvolutionStrategy(first, settings.spread, options)
