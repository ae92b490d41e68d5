"""An order that is followed as long as it would have been no worse than another one in recent weeks."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Estimator, Order
from hpcsimkit.kernel.prediction import LEVELS, Prediction
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.portfolio.trial import (
    OBJECTIVES,
    Trial,
    check_objective,
    present_state,
    renumbered,
    scores_of,
    with_columns,
)
from hpcsimkit.policies.predicting.bounded import Bounded

__all__ = ["Guarded", "Remembered"]

DAY, WEEK = 86_400, 604_800

Floats = NDArray[np.float64]


class Guarded(Order):
    """An order with a fallback: at each review, the better one in simulations of the last weeks is followed.

    A review takes the state of the cluster at the beginning of the last weeks, and simulates from it the jobs
    that were waiting or came since, once under each order, with the rest of the pipeline. Jobs that have
    ended have their run times; the others run for their mean predicted on arrival, or a second longer than
    so far. The mean is that over all these jobs, until now: who has not started in a simulation has waited
    until now. If the order that is not followed has a mean lower by more than `margin`, it is followed from
    now on. Estimates in simulations are those made on arrival, without corrections; there are no scheduling
    interval and no dependencies.

    Parameters
    ----------
    order : Order, optional
        Order to follow at first; by default :class:`~hpcsimkit.policies.Bounded`.
    fallback : Order, optional
        Order to follow while it is better; by default FCFS.
    weeks : float
        Minimum length of the simulated time, above 0. Default: 2.
    every : int
        Minimum time between reviews [s], at least 1. Default: 1 day.
    margin : float
        Share by which the mean of the other order needs to be lower, from 0 to below 1. Default: 0.1.
    objective : {"bounded_slowdown", "wait"}
        Mean to compare; slowdowns are bounded at 10 s. Default: ``"bounded_slowdown"``.

    Attributes
    ----------
    followed : list of (int, str)
        Time [s] of each change, in a run, and the parameter that is followed since.

    Examples
    --------
    >>> from hpcsimkit import make
    >>> make("guarded(bounded(scale=20), fallback=xfactor)+easy").order.fallback
    XFactor()
    """

    def __init__(
        self,
        order: Order | None = None,
        fallback: Order | None = None,
        *,
        weeks: float = 2.0,
        every: int = DAY,
        margin: float = 0.1,
        objective: str = OBJECTIVES[0],
    ) -> None:
        self.order = order
        self.fallback = fallback
        self.weeks = weeks
        self.every = every
        self.margin = margin
        self.objective = objective

    def reset(self, system: System) -> None:
        """Check the parameters, and reset copies of both orders.

        Raises
        ------
        UsageError
            A parameter is out of its range, or this is not the order of the queue.
        """
        self._check()
        if system.order is not self:
            raise UsageError("guarded: it needs to be the order of the queue")
        self._pair: list[Order] = [self.order or Bounded(), self.fallback or FCFS()]
        self._own = copy.deepcopy(self._pair)  # simulations need orders without a state
        for order in self._own:
            order.reset(system)
        self._system = system
        self._memory = _Memory(system)
        self._states: deque[_Known] = deque()
        self._place = 0
        self._next_review = system.now
        self.followed: list[tuple[int, str]] = []

    def _check(self) -> None:
        for name, found in (("order", self.order), ("fallback", self.fallback)):
            if not (found is None or isinstance(found, Order)):
                raise UsageError(f"guarded: {name} needs an order, found {found!r}")
        number = (int, float)
        for name, needed, right in (
            ("weeks", "a number above 0", isinstance(self.weeks, number) and 0 < self.weeks < float("inf")),
            ("every", "a whole number of at least 1", isinstance(self.every, int) and self.every >= 1),
            (
                "margin",
                "a number of at least 0 and below 1",
                isinstance(self.margin, number) and 0 <= self.margin < 1,
            ),
        ):
            if not right:
                raise UsageError(f"guarded: {name} needs {needed}, found {getattr(self, name)!r}")
        check_objective("guarded", self.objective)

    def arrive(self, job: Job) -> None:
        """Remember what is predicted for a job, and let the orders learn of it."""
        self._memory.add(job)
        for order in self._own:
            order.arrive(job)

    def scores(self, jobs: JobColumns, now: int) -> Floats:
        """Return the scores of the waiting jobs under the order that is followed, shape (jobs,)."""
        if len(jobs) and now >= self._next_review:
            self._next_review = now + self.every
            self._review(now)
        return scores_of(self._own[self._place], jobs, self._system, now)

    def _review(self, now: int) -> None:
        """Compare both orders on the last weeks, if they are known, and keep the present state."""
        states, begin = self._states, now - self.weeks * WEEK
        while len(states) > 1 and states[1].begun.at <= begin:
            states.popleft()
        if states and states[0].begun.at <= begin:
            self._compare(self._memory.trial(states[0], self._pipeline()))
        states.append(self._memory.state())

    def _compare(self, trial: Trial) -> None:
        followed, other = (
            trial.mean(self._pair[place], self.objective) for place in (self._place, 1 - self._place)
        )
        if other < followed * (1 - self.margin):
            self._place = 1 - self._place
            self.followed.append((self._system.now, ("order", "fallback")[self._place]))

    def _pipeline(self) -> Pipeline:
        """Return the pipeline of the run; one with EASY if it is none, or has open seats."""
        policy = self._system.listener.policy
        if not isinstance(policy, Pipeline) or any(
            isinstance(stage, External) for stage in vars(policy).values()
        ):
            return Pipeline(backfiller=EASY())
        return policy


class _Known(NamedTuple):
    """A state of a run, by rows of the log, the waiting jobs, and the number of jobs that had arrived."""

    begun: Begun
    waiting: list[int]
    arrived: int


class _Memory:
    """What was known of the jobs of a run when they arrived.

    Parameters
    ----------
    system : System
        State of the run.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._arrived: list[int] = []
        self._estimates = np.zeros(len(system.jobs), dtype=np.int64)
        self._predictions = np.zeros((len(system.jobs), 2 + len(LEVELS)))

    def add(self, job: Job) -> None:
        """Remember a job that arrives."""
        self._arrived.append(job.index)
        self._know(job)

    def _know(self, job: Job) -> None:
        mean, harmonic, quantiles = self._system.estimator.prediction(job)
        self._estimates[job.index] = self._system.estimate(job)
        self._predictions[job.index] = mean, harmonic, *quantiles

    def state(self) -> _Known:
        """Return the present state."""
        system = self._system
        for job in system.running_jobs():
            if not self._estimates[job.index]:  # it ran when the run began, or was never in this queue
                self._know(job)
        begun = present_state(system, "guarded")
        return _Known(begun, system.queue.table[0].tolist(), len(self._arrived))

    def trial(self, state: _Known, pipeline: Pipeline) -> Trial:
        """Return all jobs that were waiting in a state, or came since, to be simulated from there."""
        system, begun = self._system, state.begun
        judged = {*state.waiting, *self._arrived[state.arrived :]}
        judged = judged.difference(row for row in system.rejected if not system.ledger.waits(row))
        rows = np.array(sorted({*judged, *begun.started}), dtype=np.int64)
        run_time = np.fromiter(self._run_times(rows.tolist(), begun), dtype=np.int64)
        columns = {"run_time": run_time, "submit_time": system.column("submit_time")[rows]}
        policy = copy.copy(pipeline)
        policy.estimates = Remembered(self._estimates[rows], self._predictions[rows])
        return Trial(
            with_columns(system.workload.select(rows), columns),
            renumbered(begun, rows),
            system.cluster,
            np.flatnonzero(np.isin(rows, list(judged))),
            policy,
            until=system.now,
        )

    def _run_times(self, rows: list[int], begun: Begun) -> Iterator[int]:
        """Yield the run times of jobs [s], as far as they are known now."""
        system = self._system
        for row in rows:
            start, finish = system.ledger.start_of(row), system.ledger.end_of(row)
            if finish >= 0:
                run_time = finish - start
            else:
                elapsed = system.now - start if start >= 0 else 0
                run_time = max(int(self._predictions[row, 0]), elapsed + 1)
            yield max(run_time, begun.at - start + 1) if row in begun.started else run_time


class Remembered(Estimator):
    """Estimates and predictions as they were made.

    Parameters
    ----------
    estimates : array of int64, shape (jobs,)
        Estimates [s].
    predictions : array of float64, shape (jobs, 9)
        Means, harmonic means and quantiles [s].

    Examples
    --------
    >>> estimator = Remembered(np.array([30, 60]), np.zeros((2, 9)))
    >>> estimator.estimate(Job(1, 2, 7, run_time=5, requested_time=90, nodes=4))
    60
    """

    def __init__(self, estimates: NDArray[np.int64], predictions: Floats) -> None:
        self.estimates = estimates
        self.predictions = predictions

    def estimate(self, job: Job) -> int:
        """Return the estimate [s]."""
        return int(self.estimates[job.index])

    def prediction(self, job: Job) -> Prediction:
        """Return the prediction."""
        mean, harmonic, *quantiles = self.predictions[job.index].tolist()
        return Prediction(mean, harmonic, tuple(quantiles))
