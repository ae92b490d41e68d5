"""A guard around any order: jobs that have waited much longer than the average are promoted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.policy import FCFS, Order, OrderOfAnother
from hpcsimkit.kernel.system import System

__all__ = ["GuardedWait"]

LEAST = 60
"""Least mean wait [s]: before jobs have waited, a multiple of the mean would mean nothing."""


class GuardedWait(OrderOfAnother):
    """The order of another, except that jobs that have waited for too long go first, longest wait first.

    Too long is more than `times` the running mean wait: the mean over all jobs that have started so far, or
    one minute if that is more. The start of a test counts if the job ends in it.

    Parameters
    ----------
    base : Order, optional
        The order to guard; in names of policies, the one it is joined with (``unicef+guarded-wait``). By
        default :class:`~hpcsimkit.kernel.policy.FCFS`.
    times : float
        Multiple of the running mean wait from which a job goes first, > 0. Default: 30.

    Examples
    --------
    >>> from hpcsimkit.policies import SJF
    >>> GuardedWait(SJF(), times=10).dynamic
    True
    """

    def __init__(self, base: Order | None = None, times: float = 30.0) -> None:
        self.base = base
        self.times = times

    def reset(self, system: System) -> None:
        """Check the parameters; begin without any wait."""
        if not (isinstance(self.times, int | float) and 0 < self.times < float("inf")):
            raise UsageError(f"guarded-wait: times needs a number above 0, found {self.times!r}")
        if self.base is not None and not isinstance(self.base, Order):
            raise UsageError(f"guarded-wait: base needs an Order, found {self.base!r}")
        self._order = FCFS() if self.base is None else self.base
        self._order.reset(system)
        self._keys: dict[int, Any] = {}
        self._waited, self._counted = 0, set[int]()

    # --- the mean wait ---------------------------------------------------------------------------------

    @property
    def mean_wait(self) -> float:
        """The running mean wait [s], at least one minute."""
        return max(self._waited / max(len(self._counted), 1), LEAST)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Count the wait of a job that starts for the first time, and not for a test."""
        if system.ledger.modes[job.index] != Mode.TESTED:
            self._count(job, system.now)

    def on_end(self, job: Job, system: System) -> None:
        """Count the wait of a job that has ended in its test."""
        if system.ledger.modes[job.index] == Mode.TESTED:
            self._count(job, system.ledger.starts[job.index])

    def _count(self, job: Job, start: int) -> None:
        if job.index not in self._counted:
            self._counted.add(job.index)
            self._waited += start - job.submit_time

    def is_late(self, submit_time: NDArray[np.int64], now: int) -> NDArray[np.bool_]:
        """Return which of the jobs submitted at some times [s] have waited for too long."""
        return now - submit_time > self.times * self.mean_wait

    # --- the order -------------------------------------------------------------------------------------

    def arrive(self, job: Job) -> None:
        """Let the other order know of a job that waits."""
        if self._order.dynamic:
            self._order.arrive(job)
        else:
            self._keys[job.index] = self._order.key(job)

    def scores(self, jobs: JobColumns, now: int) -> NDArray[np.float64]:
        """Return the places of the jobs; the scores of the other order if no job has waited for too long."""
        scores = self._of_order(jobs, now)
        late = self.is_late(jobs.submit_time, now)
        if not late.any():
            return scores
        first = np.where(late, jobs.submit_time, scores)
        places = np.empty(len(jobs))
        places[np.lexsort((first, ~late))] = np.arange(len(jobs))
        return places

    def _of_order(self, jobs: JobColumns, now: int) -> NDArray[np.float64]:
        """Return the scores of the other order, or the places that its keys give."""
        if self._order.dynamic:
            return np.asarray(self._order.scores(jobs, now), dtype=float)
        keys = [self._keys[row] for row in jobs.index.tolist()]
        places = np.empty(len(keys))
        places[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return places
