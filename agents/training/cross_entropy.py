"""The cross-entropy method: sample networks, run episodes with each, move towards the elite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcsimkit.agents.ranges import Count, Share
from hpcsimkit.agents.training.population import PopulationSettings, PopulationTrainer
from hpcsimkit.agents.training.trainer import Round, State
from hpcsimkit.errors import UsageError

__all__ = ["CrossEntropy", "CrossEntropySettings"]


@dataclass(frozen=True)
class CrossEntropySettings(PopulationSettings):
    """Settings of the cross-entropy method; a fortieth of `spread` is the lower bound of the deviations.

    Parameters
    ----------
    elite : int
        Number of best networks that determine the new mean and standard deviation.
    inertia : float
        Share of the old mean and standard deviation in the new ones, in [0, 1].
    """

    elite: Count = 8
    inertia: Share = 0.3


class CrossEntropy(PopulationTrainer):
    """Trainer of a small network that scores rows, without gradients, from the elite of a population.

    Mean and standard deviation of each weight move towards those of the best networks of a round. (Szita and
    Lorincz, Neural Computation 18, 2006.) Parameters are those of
    :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

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
        """Set the initial mean and standard deviation."""
        super().build(seed)
        settings = self.settings
        if settings.elite > settings.population:
            raise UsageError(f"cem: elite needs 1 to {settings.population} networks, found {settings.elite}")
        self._spread = np.full(len(self._mean), settings.spread, dtype=np.float64)

    def round(self) -> Round:
        """Sample networks, run the episodes, and move towards the elite."""
        settings = self.settings
        scenarios = [self.env.episodes.sample(self.rng) for _ in range(settings.episodes)]
        drawn = self._mean + self._spread * self.rng.normal(size=(settings.population, len(self._mean)))
        drawn[0] = self._mean
        sums = self.returns(drawn, scenarios)
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

    def state(self) -> State:
        """Return mean and standard deviation."""
        return State({}, {"mean": self._mean.tolist(), "spread": self._spread.tolist()})

    def restore(self, state: State) -> None:
        """Restore mean and standard deviation."""
        self._mean, self._spread = (np.array(state.about[name]) for name in ("mean", "spread"))
