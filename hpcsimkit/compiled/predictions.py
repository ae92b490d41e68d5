"""Predictions from the user's last two jobs, see :class:`hpcsimkit.policies.predictions.LastTwo`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import pasted
from hpcsimkit.compiled.machines import Machines, expect_anew, expected_first, overrun
from hpcsimkit.compiled.running import expect, forget
from hpcsimkit.compiled.state import RUNNING, Integers, Jobs, Run


class Histories(NamedTuple):
    """What the estimator knows about users and jobs.

    Attributes
    ----------
    last : array of int64, shape (2, users)
        Run times of each user's last job but one and last job [s], -1 if unknown.
    prediction : array of int64, shape (jobs,)
        Predictions made on arrival [s].
    corrections : array of int64
        Increments of a prediction that is exceeded [s], one after the other.
    """

    last: Integers
    prediction: Integers
    corrections: Integers


def new_histories(users: int, jobs: int, corrections: list[int]) -> Histories:
    """Return the state before the first job."""
    return Histories(
        np.full((2, users), -1, dtype=np.int64),
        np.zeros(jobs, dtype=np.int64),
        np.array(corrections, dtype=np.int64),
    )


@pasted
def predict(jobs: Jobs, histories: Histories, row: int) -> int:
    """Return the prediction for a job that arrives [s]; mirrors ``LastTwo.estimate``."""
    user, requested = jobs.user[row], jobs.requested_time[row]
    mean = requested
    if user >= 0 and histories.last[0, user] >= 0:
        mean = (histories.last[0, user] + histories.last[1, user]) // 2
    histories.prediction[row] = max(min(mean, requested), 1)
    return histories.prediction[row]


@pasted
def observe(jobs: Jobs, histories: Histories, row: int, took: int) -> None:
    """Record the run time of a job that has ended; mirrors ``LastTwo.observe``."""
    user = jobs.user[row]
    if user >= 0:
        histories.last[0, user] = histories.last[1, user]
        histories.last[1, user] = took


@pasted
def _corrected(jobs: Jobs, histories: Histories, row: int, elapsed: int) -> int:
    """Return the prediction with as many corrections as needed; mirrors ``LastTwo.correct``."""
    prediction, requested = histories.prediction[row], jobs.requested_time[row]
    for correction in histories.corrections:
        if prediction > elapsed or prediction >= requested:
            break
        prediction = min(prediction + correction, requested)
    return max(prediction, elapsed + 1)


@pasted
def correct(jobs: Jobs, run: Run, machines: Machines | None, histories: Histories, now: int) -> bool:
    """Correct the estimates that running jobs have exceeded, and return whether there are any.

    Mirrors ``System.correct_estimates``.
    """
    corrected = False
    if machines is not None:
        while overrun(machines, now):
            row = expected_first(machines)
            run.estimate[row] = _corrected(jobs, histories, row, now - run.start_time[row])
            expect_anew(jobs, run, machines, row)
            corrected = True
        return corrected
    count = run.counters[RUNNING]
    while count and run.expected[0, 0] <= now:
        end, row = run.expected[0, 0], run.expected[1, 0]
        forget(run.expected, count, end, row)
        run.estimate[row] = _corrected(jobs, histories, row, now - run.start_time[row])
        expect(run.expected, count - 1, run.start_time[row] + run.estimate[row], row)
        corrected = True
    return corrected
