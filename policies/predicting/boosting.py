"""Gradient-boosted quantiles of run times, fitted anew as jobs end."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import LEVELS, SHORTEST, Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.features import Features
from hpcsimkit.policies.predicting.history import History
from hpcsimkit.policies.predicting.predictor import Predictor

__all__ = ["Boosting"]

Floats = NDArray[np.float64]


class Boosting(Predictor):
    """Gradient-boosted trees for the mean, the harmonic mean and each quantile of the run time.

    Their inputs are the features of the job and of its user's jobs, its group, executable and queue, and the
    prediction of :class:`~hpcsimkit.policies.predicting.history.History`, which is also the prediction until
    the first fit.
    The trees are fitted anew after a number of ended jobs, to the last ones. Needs scikit-learn
    (``pip install 'hpcsimkit[learn]'``). (Ke et al., NeurIPS 2017, as implemented in scikit-learn.)

    Parameters
    ----------
    refit : int
        Number of ended jobs between two fits, >= 100.
    window : int
        Maximum number of last jobs to fit, >= `refit`.
    iterations : int
        Number of trees of each model, >= 1.

    Examples
    --------
    >>> Boosting(refit=500)
    Boosting(refit=500)
    """

    def __init__(self, refit: int = 2000, window: int = 10_000, iterations: int = 30) -> None:
        self.refit = refit
        self.window = window
        self.iterations = iterations

    def reset(self, system: System) -> None:
        """Check the parameters and discard all models."""
        for name, least in (("refit", 100), ("window", self.refit), ("iterations", 1)):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= least):
                raise UsageError(
                    f"boosting needs a whole number of at least {least} for {name}, found {value!r}"
                )
        try:
            import sklearn.ensemble  # noqa: F401
        except ModuleNotFoundError:
            raise UsageError(
                "boosting needs scikit-learn, which is not installed (pip install 'hpcsimkit[learn]')"
            ) from None
        self._features, self._history = Features(system), History()
        self._history.reset(system)
        self._inputs: dict[int, Floats] = {}
        self._rows: deque[tuple[Floats, int]] = deque(maxlen=self.window)
        self._models: list[Any] = []
        self._ended = 0

    def predict(self, job: Job) -> Prediction:
        """Return the outputs of the trees, capped at the requested time."""
        from sklearn import config_context

        past = self._history.predict(job)
        more = [job.group, job.executable, job.queue, past.mean, past.harmonic, *past.quantiles]
        inputs = self._inputs[job.index] = np.concatenate((self._features.of(job), more))
        if not self._models:
            return past
        with config_context(assume_finite=True, skip_parameter_validation=True):
            mean, inverse, *logarithms = (float(model.predict(inputs[None])[0]) for model in self._models)
        harmonic = 1 / min(max(inverse, 1 / TIME_LIMIT), 1 / SHORTEST)
        quantiles = np.expm1(np.sort(logarithms)).clip(0).tolist()
        return Prediction(max(mean, 1.0), harmonic, tuple(quantiles)).within(job.requested_time)

    def observe(self, job: Job, took: int) -> None:
        """Keep the job, if it was predicted, for the next fit, and fit the trees if it is time."""
        self._features.observe(job, took)
        self._history.observe(job, took)
        inputs = self._inputs.pop(job.index, None)
        if inputs is not None:
            self._rows.append((inputs, took))
            self._ended += 1
            if self._ended % self.refit == 0:
                self._fit()

    def _fit(self) -> None:
        """Fit all models to the last jobs."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        inputs = np.array([row for row, _ in self._rows])
        took = np.array([time for _, time in self._rows], dtype=np.float64)
        options = {
            "max_iter": self.iterations,
            "max_leaf_nodes": 15,
            "learning_rate": 0.2,
            "early_stopping": False,
        }
        wanted: list[tuple[str, float | None, Floats]]
        wanted = [("squared_error", None, took), ("squared_error", None, 1 / np.maximum(took, SHORTEST))]
        wanted += [("quantile", level, np.log1p(took)) for level in LEVELS]
        self._models = [
            HistGradientBoostingRegressor(loss=loss, quantile=level, random_state=0, **options).fit(
                inputs, target
            )
            for loss, level, target in wanted
        ]
