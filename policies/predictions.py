"""Estimators: run-time predictions used by the scheduler."""

from __future__ import annotations

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Estimator, Order
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.last_two import LastTwoMean
from hpcsimkit.policies.predicting.predicted import Predicted

__all__ = ["LastTwo", "Noisy", "ShortestPredicted"]


class Noisy(Estimator):
    """Actual run times overestimated by a random share: run x (1 + U(0, noise)) (reads run times).

    (RLBackfilling, PMBS 2023, figure 1: noise of 5 to 100 %.)

    Parameters
    ----------
    noise : float
        Maximum overestimation as a share of the run time, >= 0; 0.2 is 20 %.
    """

    draws = True

    def __init__(self, noise: float = 0.2) -> None:
        self.noise = noise

    def reset(self, system: System) -> None:
        """Prepare the noise, which is sampled when a job arrives."""
        if not (isinstance(self.noise, int | float) and 0 <= self.noise < float("inf")):
            raise UsageError(f"noisy estimates need a noise of at least 0, found {self.noise!r}")
        self._random = system.random()
        self._factors: dict[int, float] = {}

    def estimate(self, job: Job) -> int:
        """Return the noisy run time, rounded [s], at least 1."""
        factor = self._factors.get(job.index)
        if factor is None:
            factor = self._factors[job.index] = 1 + self.noise * self._random.random()
        return max(round(job.run_time * factor), 1)


class LastTwo(Predicted):
    """Mean run time of the user's last two completed jobs, capped at the requested time.

    The prediction is the requested time if the user is unknown or has fewer than two completed jobs. It is
    made on arrival, and corrected when the job exceeds it, see
    :class:`~hpcsimkit.policies.predicting.predicted.Predicted`. (Tsafrir, Etsion & Feitelson, TPDS 2007.)
    """

    def __init__(self) -> None:
        super().__init__(LastTwoMean(), reservations=True)


class ShortestPredicted(Order):
    """Shortest predicted mean first, by the estimator of the pipeline."""

    def reset(self, system: System) -> None:
        """Set the estimator of the run."""
        self._prediction = system.estimator.prediction

    def key(self, job: Job) -> float:
        """Return the predicted mean [s]."""
        return self._prediction(job).mean
