"""The base class of predictors of run times."""

from __future__ import annotations

from collections.abc import Sequence

from hpcsimkit.errors import lacking
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.system import System

__all__ = ["Predictor"]


class Predictor(Parameters):
    """A predictor of run times that learns online, from jobs that have ended only.

    Each run works on its own copy, so any state that :meth:`reset` stores belongs to that run alone.

    Examples
    --------
    >>> class AsRequested(Predictor):
    ...     def predict(self, job):
    ...         return Prediction.certain(job.requested_time)
    >>> AsRequested().predict(Job(0, 1, 0, run_time=50, requested_time=60, nodes=1)).mean
    60
    """

    def reset(self, system: System) -> None:
        """Discard all that was learned; randomness comes from ``system.random()``."""

    def observe(self, job: Job, took: int) -> None:
        """Learn from a job that has just ended after `took` seconds."""

    def predict(self, job: Job) -> Prediction:
        """Return the predicted run time of a job that has just arrived; ``job.run_time`` must not be read."""
        raise lacking(self, "a method predict(job)")

    def predict_beside(self, job: Job, running: Sequence[tuple[Job, int]]) -> Prediction:
        """Return the prediction of a waiting job while others of its user run, each for some time [s] now.

        By default this is :meth:`predict`: what runs is not considered.
        """
        return self.predict(job)

    def predict_each(self, jobs: Sequence[Job], running: Sequence[tuple[Job, int]]) -> list[Prediction]:
        """Return the predictions of waiting jobs of one user, each as by :meth:`predict_beside`."""
        return [self.predict_beside(job, running) for job in jobs]
