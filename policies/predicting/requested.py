"""The requested time as a prediction."""

from __future__ import annotations

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.policies.predicting.predictor import Predictor

__all__ = ["RequestedTime"]


class RequestedTime(Predictor):
    """Requested time, as if it were certain: the reference for other predictors.

    >>> RequestedTime().predict(Job(0, 1, 0, run_time=50, requested_time=60, nodes=1)).mean
    60
    """

    def predict(self, job: Job) -> Prediction:
        """Return the requested time."""
        return Prediction.certain(job.requested_time)
