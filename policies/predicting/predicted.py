"""The estimator that asks a predictor when a job arrives."""

from __future__ import annotations

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Estimator
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.history import History
from hpcsimkit.policies.predicting.predictor import Predictor

__all__ = ["CORRECTIONS", "Predicted"]

CORRECTIONS = [60 * m for m in (1, 5, 15, 30)] + [3600 * h for h in (1, 2, 5, 10, 20, 50, 100)]
"""Increments added one by one to a prediction that a job exceeds [s]."""


class Predicted(Estimator):
    """Run times predicted on arrival, for orders alone or for reservations, too.

    By default the estimates remain the requested times, so reservations are as safe as with requested times;
    orders read :meth:`prediction`. With `reservations`, the estimate is the predicted mean, capped at the
    requested time. When the job exceeds it, the estimate grows by 1, 5, 15, 30 minutes, 1, 2, 5, 10, 20, 50,
    100 hours, one after the other, up to the requested time, and by one second at a time beyond it. (Tsafrir,
    Etsion & Feitelson, TPDS 2007.)

    Parameters
    ----------
    predictor : Predictor, optional
        Predictor of run times; by default :class:`~hpcsimkit.policies.predicting.history.History`.
    reservations : bool
        Whether reservations and backfilling use the predictions. Default: False.

    Examples
    --------
    >>> Predicted(reservations=True).corrects, Predicted().corrects
    (True, False)
    """

    def __init__(self, predictor: Predictor | None = None, reservations: bool = False) -> None:
        self.predictor = predictor
        self.reservations = reservations

    @property
    def corrects(self) -> bool:
        """Whether :meth:`correct` is called: only if reservations use the predictions."""
        return self.reservations

    def reset(self, system: System) -> None:
        """Discard all that the predictor learned."""
        predictor = History() if self.predictor is None else self.predictor
        if not isinstance(predictor, Predictor):
            raise UsageError(f"predicted run times need a Predictor, found {predictor!r}")
        predictor.reset(system)
        self._predictor = predictor
        self._predictions: dict[int, Prediction] = {}

    def prediction(self, job: Job) -> Prediction:
        """Return the prediction made on arrival of the job."""
        prediction = self._predictions.get(job.index)
        if prediction is None:
            prediction = self._predictions[job.index] = self._predictor.predict(job)
        return prediction

    def estimate(self, job: Job) -> int:
        """Return the requested time or, for `reservations`, the predicted mean [s], >= 1."""
        prediction = self.prediction(job)
        if not self.reservations:
            return job.requested_time
        return max(min(int(prediction.mean), job.requested_time), 1)

    def correct(self, job: Job, elapsed: int) -> int:
        """Return the estimate with as many corrections as needed to exceed `elapsed` [s]."""
        estimate = self.estimate(job)
        for correction in CORRECTIONS:
            if estimate > elapsed or estimate >= job.requested_time:
                break
            estimate = min(estimate + correction, job.requested_time)
        return max(estimate, elapsed + 1)

    def observe(self, job: Job, system: System) -> None:
        """Train on the run time of this simulation, which may differ from the log's (kills, locality)."""
        self._predictions.pop(job.index, None)
        self._predictor.observe(job, system.now - system.start_time(job))
