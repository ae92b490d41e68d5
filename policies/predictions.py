"""Estimators: run-time predictions used by the scheduler."""

from __future__ import annotations

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Estimator, Order
from hpcsimkit.kernel.system import System

__all__ = ["LastTwo", "Noisy", "ShortestPredicted"]

CORRECTIONS = [60 * m for m in (1, 5, 15, 30)] + [3600 * h for h in (1, 2, 5, 10, 20, 50, 100)]
"""Increments added one by one to a prediction that a job exceeds [s]."""


class Noisy(Estimator):
    """Actual run times overestimated by a random share: run x (1 + U(0, noise)) (reads run times).

    (RLBackfilling, PMBS 2023, figure 1: noise of 5 to 100 %.)

    Parameters
    ----------
    noise : float
        Maximum overestimation as a share of the run time, >= 0; 0.2 is 20 %.
    """

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


class LastTwo(Estimator):
    """Mean run time of the user's last two completed jobs, capped at the requested time.

    The prediction is the requested time if the user is unknown or has fewer than two completed jobs. It is
    made on arrival. When the job exceeds it, the prediction grows by 1, 5, 15, 30 minutes, 1, 2, 5, 10, 20,
    50, 100 hours, one after the other, up to the requested time, and by one second at a time beyond it.
    (Tsafrir, Etsion & Feitelson, TPDS 2007.)
    """

    corrects = True

    def reset(self, system: System) -> None:
        """Discard the history of all users."""
        self._history: dict[int, tuple[int, int]] = {}
        self._last: dict[int, int] = {}
        self._predictions: dict[int, int] = {}

    def estimate(self, job: Job) -> int:
        """Return the prediction made on arrival of the job [s], >= 1."""
        prediction = self._predictions.get(job.index)
        if prediction is None:
            last_two = self._history.get(job.user)
            mean = sum(last_two) // 2 if last_two else job.requested_time
            prediction = self._predictions[job.index] = max(min(mean, job.requested_time), 1)
        return prediction

    def correct(self, job: Job, elapsed: int) -> int:
        """Return the prediction with as many corrections as needed to exceed `elapsed` [s]."""
        prediction = self.estimate(job)
        for correction in CORRECTIONS:
            if prediction > elapsed or prediction >= job.requested_time:
                break
            prediction = min(prediction + correction, job.requested_time)
        return max(prediction, elapsed + 1)

    def observe(self, job: Job, system: System) -> None:
        """Record the run time of the job for its user."""
        took = system.now - system.start_time(job)
        self._predictions.pop(job.index, None)
        if job.user >= 0:
            if job.user in self._last:
                self._history[job.user] = (self._last[job.user], took)
            self._last[job.user] = took


class ShortestPredicted(Order):
    """Shortest estimate first, by the estimator of the pipeline."""

    def reset(self, system: System) -> None:
        """Set the estimator of the run."""
        self._estimate = system.estimate

    def key(self, job: Job) -> int:
        """Return the estimate [s]."""
        return self._estimate(job)
