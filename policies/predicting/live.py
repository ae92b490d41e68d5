"""Predictions that are updated while a job waits and while others run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.history import owner
from hpcsimkit.policies.predicting.predicted import Predicted
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.results.attempts import Outcome

__all__ = ["Live"]

OFTEN = 60
"""Least time between two predictions while jobs of the user run [s]."""

SHARE = 0.1
"""Time between two predictions as a share of the time for which the user's oldest job has run."""


class Live(Predicted):
    """Run times predicted while jobs wait: from what has ended, what runs, and how long a job ran in tests.

    The prediction of a waiting job is made anew when a job of the same user ends or is stopped. While jobs of
    the user run, it is also made anew from time to time: each of them that has run for longer than predicted
    counts like one that takes as long. A job that was stopped after t seconds, as in a test, is known to take
    longer than t. Orders read these predictions; estimates remain the requested times.

    Parameters
    ----------
    predictor : Predictor, optional
        Predictor of run times; by default :class:`~hpcsimkit.policies.predicting.history.History`.

    Examples
    --------
    >>> Live().live, Live().corrects
    (True, False)
    """

    live = True

    def __init__(self, predictor: Predictor | None = None) -> None:
        super().__init__(predictor)

    def reset(self, system: System) -> None:
        """Discard all that was learned."""
        if self.reservations:
            raise UsageError(f"live predictions serve orders, not reservations, found {self!r}")
        super().reset(system)
        self._system = system
        self._due = np.zeros(len(system.jobs))  # when to predict anew [s]
        self._revision = np.zeros(len(system.jobs), dtype=np.int64)
        self._waiting: dict[Hashable, set[int]] = {}
        self._running: dict[Hashable, dict[int, int]] = {}
        self._ran: dict[int, int] = {}

    # --- what happens ----------------------------------------------------------------------------------

    def on_submit(self, job: Job, system: System) -> None:
        """Let a job that waits have predictions."""
        self._due[job.index] = 0
        self._waiting.setdefault(owner(job), set()).add(job.index)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Remember since when a job runs."""
        who = owner(job)
        self._waiting.get(who, set()).discard(job.index)
        self._running.setdefault(who, {})[job.index] = system.now

    def on_stop(self, job: Job, why: Outcome, system: System) -> None:
        """Remember for how long a job ran."""
        started = self._running.get(owner(job), {}).pop(job.index, system.now)
        self._ran[job.index] = max(self._ran.get(job.index, 0), system.now - started)
        self._predict_anew(job)

    def on_end(self, job: Job, system: System) -> None:
        """Predict the user's waiting jobs anew."""
        self._running.get(owner(job), {}).pop(job.index, None)
        self._predict_anew(job)

    def _predict_anew(self, job: Job) -> None:
        rows = self._waiting.get(owner(job))
        if rows:
            self._due[list(rows)] = 0

    # --- predictions -----------------------------------------------------------------------------------

    def prediction(self, job: Job) -> Prediction:
        """Return the prediction by the runs until now."""
        if self._due[job.index] <= self._system.now:
            self._predict([job])
        return self._predictions[job.index]

    def revisions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of times that the run times of jobs were predicted, by now, shape (jobs,)."""
        by_user: dict[Hashable, list[Job]] = {}
        for row in rows[self._due[rows] <= self._system.now].tolist():
            job = self._system.jobs[row]
            by_user.setdefault(owner(job), []).append(job)
        for due in by_user.values():
            self._predict(due)
        return self._revision[rows]

    def _predict(self, due: Sequence[Job]) -> None:
        """Predict the run times of waiting jobs of one user."""
        now, jobs = self._system.now, self._system.jobs
        beside = self._running.get(owner(due[0]), {})
        running = [(jobs[row], now - start) for row, start in beside.items()]
        longest = max((elapsed for _, elapsed in running), default=None)
        next_time = np.inf if longest is None else now + max(OFTEN, SHARE * longest)
        for job, found in zip(due, self._predictor.predict_each(due, running), strict=True):
            ran = self._ran.get(job.index)
            known = found if ran is None else found.beyond(ran).within(job.requested_time)
            self._predictions[job.index] = known
            self._revision[job.index] += 1
            self._due[job.index] = next_time
