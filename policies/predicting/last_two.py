"""The mean of the user's last two run times."""

from __future__ import annotations

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.predictor import Predictor

__all__ = ["LastTwoMean"]


class LastTwoMean(Predictor):
    """Mean run time of the user's last two completed jobs, capped at the requested time.

    The prediction is the requested time if the user is unknown or has fewer than two completed jobs.
    (Tsafrir, Etsion & Feitelson, TPDS 2007.)

    Examples
    --------
    >>> predictor, job = LastTwoMean(), Job(0, 1, 0, run_time=50, requested_time=60, nodes=1, user=7)
    >>> predictor.reset(None)  # it needs no system
    >>> for took in (20, 40):
    ...     predictor.observe(job, took)
    >>> predictor.predict(job).mean
    30
    """

    def reset(self, system: System) -> None:
        """Discard the history of all users."""
        self._history: dict[int, tuple[int, int]] = {}
        self._last: dict[int, int] = {}

    def predict(self, job: Job) -> Prediction:
        """Return the mean in whole seconds, at least 1, as if it were certain."""
        last_two = self._history.get(job.user)
        mean = sum(last_two) // 2 if last_two else job.requested_time
        return Prediction.certain(max(min(mean, job.requested_time), 1))

    def observe(self, job: Job, took: int) -> None:
        """Record the run time of the job for its user."""
        if job.user >= 0:
            if job.user in self._last:
                self._history[job.user] = (self._last[job.user], took)
            self._last[job.user] = took
