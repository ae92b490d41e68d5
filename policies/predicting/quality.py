"""The quality of predictions: errors, calibration, and who is predicted well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.prediction import LEVELS, Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.predictor import Predictor

if TYPE_CHECKING:
    import pandas

__all__ = ["CLASSES", "Forecasts", "Quality", "quality_table", "user_classes"]

FIRST_JOBS = 10
"""Number of first jobs of a user that count as those of a new user."""

CLASSES = ("heavy", "light", "new", "unknown")
"""Classes of users, see :func:`user_classes`."""

Floats = NDArray[np.float64]


class Forecasts(Observer):
    """Recorder of the predictions for each job on arrival, by any number of predictors in one run.

    The predictors learn from each job at its end in the run; they do not influence the schedule.

    Parameters
    ----------
    predictors : mapping of str to Predictor
        Predictors by name.
    begin : int, optional
        Time of the first recorded submission [s of the log's clock]; predictors learn from earlier jobs, too.
        By default all are recorded.

    Attributes
    ----------
    predictions : dict of str to dict of int to Prediction
        Predictions by name of the predictor and row of the job.
    took : dict of int to int
        Run time of each ended job in the run [s], by row.

    Examples
    --------
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> from hpcsimkit.policies.predicting.history import History
    >>> columns = {"submit_time": [0, 90], "run_time": [30, 60], "requested_time": [60, 60], "nodes": [1, 1]}
    >>> forecasts = Forecasts({"history": History()})
    >>> _ = Simulation(Workload(columns, machine_size=1), Pipeline(), observers=[forecasts]).run()
    >>> [round(forecasts.predictions["history"][row].mean, 6) for row in (0, 1)]
    [60.0, 30.0]
    """

    def __init__(self, predictors: Mapping[str, Predictor], begin: int | None = None) -> None:
        self._predictors = predictors
        self._begin = begin
        self._forget()

    def on_begin(self, system: System) -> None:
        """Reset the predictors and clear the record of an earlier run."""
        self._forget()
        for predictor in self._predictors.values():
            predictor.reset(system)

    def on_submit(self, job: Job, system: System) -> None:
        """Record what each predictor expects."""
        for name, predictor in self._predictors.items():
            self.predictions[name][job.index] = predictor.predict(job)

    def on_end(self, job: Job, system: System) -> None:
        """Record the run time, and let the predictors learn from it."""
        took = system.now - system.start_time(job)
        if self._begin is None or job.submit_time >= self._begin:
            self.took[job.index] = took
        for predictor in self._predictors.values():
            predictor.observe(job, took)

    def _forget(self) -> None:
        self.predictions: dict[str, dict[int, Prediction]] = {name: {} for name in self._predictors}
        self.took: dict[int, int] = {}


@dataclass(frozen=True, eq=False)
class Quality:
    """Quality of the predictions of one predictor for the ended jobs of a run.

    Parameters
    ----------
    mean : array of float64, shape (jobs,)
        Predicted means [s].
    quantiles : array of float64, shape (jobs, 7)
        Predicted quantiles at :data:`~hpcsimkit.kernel.prediction.LEVELS` [s].
    took : array of float64, shape (jobs,)
        Run times [s].

    Examples
    --------
    >>> q = Quality(np.array([20.0, 40.0]), np.full((2, 7), 30.0), np.array([10.0, 50.0]))
    >>> q.measures["mean absolute error [s]"], q.measures["under-predicted (share)"]
    (10.0, 0.5)
    >>> q.coverage.tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """

    mean: Floats
    quantiles: Floats
    took: Floats

    @classmethod
    def of(cls, forecasts: Forecasts, name: str) -> Quality:
        """Return the quality of a predictor of a run, for the ended jobs by row."""
        rows = sorted(forecasts.took)
        found = [forecasts.predictions[name][row] for row in rows]
        return cls(
            np.array([each.mean for each in found], dtype=np.float64),
            np.array([each.quantiles for each in found], dtype=np.float64).reshape(-1, len(LEVELS)),
            np.array([forecasts.took[row] for row in rows], dtype=np.float64),
        )

    def among(self, chosen: NDArray[np.bool_]) -> Quality:
        """Return the quality for some of the jobs."""
        return Quality(self.mean[chosen], self.quantiles[chosen], self.took[chosen])

    @cached_property
    def coverage(self) -> Floats:
        """Share of jobs that do not exceed each quantile, shape (7,); perfectly calibrated: the levels."""
        found: Floats = np.mean(self.took[:, None] <= self.quantiles, axis=0)
        return found

    @cached_property
    def measures(self) -> dict[str, float]:
        """The numbers by name; NaN without jobs.

        The pinball loss is the mean over all quantiles: one of level p costs p per second by which it is
        exceeded, and 1 - p per second by which it is not reached. The calibration error is the mean distance
        of the coverage from the levels. The predicted work is the sum of the means over that of the run
        times; the median ratio takes run times of 0 as 1 s.
        """
        error = self.mean - self.took
        below = self.took[:, None] - self.quantiles
        levels = np.array(LEVELS)
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "jobs": float(len(error)),
                "mean absolute error [s]": _mean(np.abs(error)),
                "under-predicted (share)": _mean(error < 0),
                "pinball loss [s]": _mean(np.maximum(levels * below, (levels - 1) * below)),
                "calibration error": _mean(np.abs(self.coverage - levels)) if len(error) else np.nan,
                "predicted / actual work": float(np.divide(self.mean.sum(), self.took.sum())),
                "predicted / actual, median": _median(self.mean / np.maximum(self.took, 1)),
            }


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if values.size else np.nan


def _median(values: Floats) -> float:
    return float(np.median(values)) if values.size else np.nan


def user_classes(workload: Workload) -> NDArray[np.str_]:
    """Return the class of each job's user, shape (jobs,): one of :data:`CLASSES`.

    The first ten jobs of each user are those of a new user. Of all others, heavy users are the fewest users
    that submitted at least half of the jobs of known users; the rest is light.

    >>> w = Workload({"submit_time": range(36), "run_time": [9] * 36, "nodes": [1] * 36,
    ...               "user": [1] * 20 + [2] * 15 + [-1]})
    >>> [str(name) for name in user_classes(w)[[9, 10, 30, 35]]]
    ['new', 'heavy', 'light', 'unknown']
    """
    user = workload.user
    found = np.full(len(user), "unknown", dtype="<U7")
    names, counts = np.unique(user[user >= 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    heavy = names[order][before < counts.sum() / 2]
    found[user >= 0] = "light"
    found[np.isin(user, heavy) & (user >= 0)] = "heavy"
    for name in names:
        rows = np.flatnonzero(user == name)
        first = rows[np.argsort(workload.submit_time[rows], kind="stable")[:FIRST_JOBS]]
        found[first] = "new"
    return found


def quality_table(forecasts: Forecasts, workload: Workload) -> pandas.DataFrame:
    """Return the measures of each predictor: a row for all jobs, and one for each class of users.

    Columns: ``predictor, users``, then those of :attr:`Quality.measures`, then the coverage of each level.
    """
    import pandas

    classes = user_classes(workload)[sorted(forecasts.took)]
    columns = [f"within the quantile of {level:.0%} (share)" for level in LEVELS]
    rows = []
    for name in forecasts.predictions:
        quality = Quality.of(forecasts, name)
        for users in ("all", *(each for each in CLASSES if (classes == each).any())):
            part = quality if users == "all" else quality.among(classes == users)
            covered = dict(zip(columns, part.coverage, strict=True))
            rows.append({"predictor": name, "users": users, **part.measures, **covered})
    return pandas.DataFrame(rows)
