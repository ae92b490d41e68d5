"""Run times drawn from those of the past jobs of the same users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload

__all__ = ["PastRunTimes"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LENGTH = 20
"""Number of last jobs of the user, and of those of them with the same request, that are drawn from."""

DECAY = 0.9
"""Weight of a job relative to the next younger one."""

SAME_REQUEST, SAME_SIZE = 4.0, 8.0
"""Weights of jobs with the requested time of the job, and with its number of nodes as well."""

EVERYONE = 2000
"""Number of last jobs of all users, which together weigh as much as one of the user's."""

LEAST = 1e-9
"""Sum of weights by which is divided at least."""

TOGETHER = 0.9
"""Share of the draws in which equal jobs of a user draw the same: their run times are not independent."""


class PastRunTimes:
    """Run times of the jobs that had ended by a time, from which those of other jobs are drawn.

    A job draws from the last jobs of its user, the youngest and those with nearly the same request with the
    largest weights, and with a small weight from the last jobs of all users. Run times of jobs with another
    request count as shares of their request. If a job has already run for some time, only longer run times
    are drawn.

    Parameters
    ----------
    workload : Workload
        The jobs of a log.
    end_time : array of int64, shape (jobs,)
        Their ends [s]; -1 for those that never ran.
    """

    def __init__(self, workload: Workload, end_time: Integers) -> None:
        self._requested = np.maximum(workload.requested_time, 1)
        self._run, self._end = workload.run_time, end_time
        rows = np.argsort(end_time, kind="stable")
        self._by_end = rows[end_time[rows] >= 0]
        self._owner = _numbers(*_owners(workload))
        self._kind = _numbers(
            self._owner, self._requested, *(workload.column(each) for each in _sizes(workload))
        )
        self._request = _numbers(self._owner, self._requested)
        self._at, self._known_tables = UNKNOWN, dict[tuple[int, int], tuple[Integers, Floats]]()
        self._of_owner, self._of_request = (
            _groups(self._owner, self._by_end),
            _groups(self._request, self._by_end),
        )

    def draw(
        self, rows: Integers, elapsed: Integers, at: int, futures: int, rng: np.random.Generator
    ) -> Integers:
        """Draw run times of jobs that run or wait.

        Parameters
        ----------
        rows, elapsed : array of int64, shape (jobs,)
            Their rows in the log, and how long they have run by `at` [s].
        at : int
            Time up to which ends are known [s].
        futures : int
            Number of draws.

        Returns
        -------
        array of int64, shape (futures, jobs)
            Run times [s], longer than the elapsed times; not above the requested ones, unless these are over.
        """
        if at != self._at:
            self._at, self._known_tables = at, {}
        drawn = np.empty((futures, len(rows)), dtype=np.int64)
        shared: dict[int, Floats] = {}
        everyone = self._known(self._by_end, at)[-EVERYONE:]
        for place, (row, ran) in enumerate(zip(rows.tolist(), elapsed.tolist(), strict=True)):
            kind = int(self._kind[row])
            if kind not in shared:
                shared[kind] = rng.random(futures)
            level = np.where(rng.random(futures) < TOGETHER, shared[kind], rng.random(futures))
            if (kind, ran) not in self._known_tables:
                self._known_tables[kind, ran] = self._table(row, ran, everyone, at)
            seconds, total = self._known_tables[kind, ran]
            drawn[:, place] = seconds[np.minimum(np.searchsorted(total, level * total[-1]), len(seconds) - 1)]
        return drawn

    def _table(self, row: int, ran: int, everyone: Integers, at: int) -> tuple[Integers, Floats]:
        """Return the run times of jobs of a kind, sorted, and the sums of their weights."""
        requested, request = int(self._requested[row]), int(self._request[row])
        own = self._last(self._of_owner[int(self._owner[row])], at)
        own = np.union1d(own, self._last(self._of_request[request], at))
        own = own[np.argsort(self._end[own], kind="stable")]
        alike = np.where(self._request[own] == request, SAME_REQUEST, self._nearness(own, requested))
        alike[self._kind[own] == self._kind[row]] = SAME_SIZE
        others = self._nearness(everyone, requested) ** 2
        weight = np.concatenate(
            [alike * DECAY ** np.arange(len(own))[::-1], others / max(others.sum(), LEAST)]
        )
        jobs = np.concatenate([own, everyone])
        seconds = self._run[jobs] * np.where(
            self._request[jobs] == request, 1.0, requested / self._requested[jobs]
        )
        seconds = np.clip(np.rint(seconds).astype(np.int64), 1, requested)
        longer = seconds > ran
        if not longer.any():
            return np.array([max(requested, ran + 1)]), np.ones(1)
        seconds, weight = seconds[longer], weight[longer]
        order = np.argsort(seconds, kind="stable")
        return seconds[order], np.cumsum(weight[order])

    def _nearness(self, rows: Integers, requested: int) -> Floats:
        """Return 1 for jobs with a requested time, 1/2 for those with twice or half of it, and so on."""
        return np.minimum(self._requested[rows] / requested, requested / self._requested[rows])

    def _known(self, rows: Integers, at: int) -> Integers:
        """Return those of some rows, sorted by their ends, that had ended by a time."""
        return rows[: np.searchsorted(self._end[rows], at, side="right")]

    def _last(self, rows: Integers, at: int) -> Integers:
        return self._known(rows, at)[-LENGTH:]


def _owners(workload: Workload) -> list[Integers]:
    """Return the columns that identify the owners of jobs: users or, if unknown, what stands in."""
    if (workload.user >= 0).any():
        return [workload.user]
    return [workload.column(name) for name in ("group", "executable", "queue")]


def _sizes(workload: Workload) -> tuple[str, ...]:
    return ("nodes", *workload.resources)


def _numbers(*columns: Integers) -> Integers:
    """Return numbers from 0 that are equal where all columns are."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, each = np.unique(column, return_inverse=True)
        _, number = np.unique(number * (int(each.max(initial=0)) + 1) + each, return_inverse=True)
    return number


def _groups(number: Integers, rows: Integers) -> list[Integers]:
    """Return those of some rows that have each number, in their order."""
    order = np.argsort(number[rows], kind="stable")
    cuts = np.searchsorted(number[rows][order], np.arange(1, int(number.max(initial=-1)) + 1))
    return np.split(rows[order], cuts)
