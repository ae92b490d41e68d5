"""A predictor with predictions that can be computed by hand."""

from __future__ import annotations

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.policies.predicting.predictor import Predictor


class HalfOfRequest(Predictor):
    """Predicts half of the requested time."""

    def predict(self, job: Job) -> Prediction:
        return Prediction.certain(job.requested_time / 2)
