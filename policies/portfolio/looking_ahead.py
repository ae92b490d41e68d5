"""An order that simulates the hours to come under several orders, and follows the best of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Backfiller, Order
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import orders

__all__ = ["LookingAhead"]

OBJECTIVES = ("bounded slowdown", "wait")

SHORTEST = 10
"""Run time from which on slowdowns are not bounded [s]."""


def portfolio() -> list[Order]:
    """Return the orders that are compared by default; the first is followed before the first review."""
    return [FCFS(), orders.SJF(), orders.SAF(), orders.WFP3(), orders.UNICEF(), orders.XFactor(), orders.F1()]


class LookingAhead(Order):
    """Order of the portfolio under which the present state, simulated to its end, has the best mean.

    At a review, the running and the waiting jobs are simulated until all have started, once for each order,
    with the estimates of the run as run times; no other jobs are submitted meanwhile. The order with the
    lowest mean over the waiting jobs is followed until the next review; ties go to the earlier one of the
    portfolio. (Portfolio scheduling: Deng, Song, Ren & Iosup, SC 2013.)

    Parameters
    ----------
    orders : sequence of Order, optional
        Orders to compare; by default FCFS, SJF, SAF, WFP3, UNICEF, XFactor and F1.
    every : int
        Minimum time between reviews [s], at least 1. Default: 1800.
    objective : {"bounded slowdown", "wait"}
        Mean to minimise; slowdowns are bounded at 10 s. Default: ``"bounded slowdown"``.
    deepest : int
        Maximum number of waiting jobs, the longest waiting, that are simulated. Default: 200.
    backfiller : Backfiller, optional
        Backfilling of the simulated future; by default EASY.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload, make
    >>> w = Workload(
    ...     {"submit_time": [0, 1, 2], "run_time": [50, 90, 10], "nodes": [4, 4, 4]}, machine_size=4
    ... )
    >>> Simulation(w, make("looking-ahead+easy")).run().start_time.tolist()
    [0, 60, 50]
    """

    def __init__(
        self,
        orders: Sequence[Order] | None = None,
        *,
        every: int = 1800,
        objective: str = OBJECTIVES[0],
        deepest: int = 200,
        backfiller: Backfiller | None = None,
    ) -> None:
        self.orders = orders
        self.every = every
        self.objective = objective
        self.deepest = deepest
        self.backfiller = backfiller

    def reset(self, system: System) -> None:
        """Check the parameters, and reset the orders of the portfolio.

        Raises
        ------
        UsageError
            A parameter is out of its range.
        """
        for name in ("every", "deepest"):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= 1):
                raise UsageError(f"looking-ahead: {name} needs a whole number of at least 1, found {value!r}")
        if self.objective not in OBJECTIVES:
            known = " or ".join(map(repr, OBJECTIVES))
            raise UsageError(f"looking-ahead: objective needs {known}, found {self.objective!r}")
        self._portfolio = list(portfolio() if self.orders is None else self.orders)
        if not self._portfolio or not all(isinstance(order, Order) for order in self._portfolio):
            raise UsageError(f"looking-ahead: a sequence of orders is needed, found {self.orders!r}")
        for order in self._portfolio:
            order.reset(system)
        self._system = system
        self._followed = self._portfolio[0]
        self._next_review = system.now
        self.followed: list[tuple[int, str]] = []

    def scores(self, jobs: JobColumns, now: int) -> NDArray[np.float64]:
        """Return the scores of the waiting jobs under the order that is followed, shape (jobs,)."""
        if len(jobs) > 1 and now >= self._next_review:
            self._next_review = now + self.every
            self._review(jobs)
        return _scores(self._followed, jobs, self._system, now)

    def _review(self, jobs: JobColumns) -> None:
        """Simulate the present state under each order, and follow the best."""
        oldest = np.argsort(jobs.submit_time, kind="stable")[: self.deepest]
        future = _Future(self._system, jobs.index[oldest], self.backfiller)
        means = [future.mean(order, self.objective) for order in self._portfolio]
        self._followed = self._portfolio[int(np.argmin(means))]
        name = type(self._followed).__name__
        if not self.followed or self.followed[-1][1] != name:
            self.followed.append((self._system.now, name))


def _scores(order: Order, jobs: JobColumns, system: System, now: int) -> NDArray[np.float64]:
    """Return scores that sort jobs as an order does, which may have keys of any type."""
    if order.dynamic:
        return np.asarray(order.scores(jobs, now), dtype=np.float64)
    keys = [order.key(system.jobs[row]) for row in jobs.index]
    rank = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([rank[key] for key in keys], dtype=np.float64)


class _Future:
    """The running and some waiting jobs of a run, with the estimates as run times, as a begun run.

    Parameters
    ----------
    system : System
        State of the run.
    waiting : array of int64, shape (jobs,)
        Rows of the waiting jobs.
    backfiller : Backfiller, optional
        Backfilling; by default EASY.
    """

    def __init__(self, system: System, waiting: NDArray[np.int64], backfiller: Backfiller | None) -> None:
        now, running = system.now, system.running
        rows = np.array([*running.rows, *waiting.tolist()], dtype=np.int64)
        jobs = [system.jobs[row] for row in running.rows]
        lasting = [max(running.expected_end(job), now + 1) - system.start_time(job) for job in jobs]
        expected = [system.estimate(system.jobs[row]) for row in waiting.tolist()]
        chosen = system.workload.select(rows)
        self.workload = Workload(
            {**chosen.columns, "run_time": lasting + expected},
            machine_size=chosen.machine_size,
            resources=chosen.resources,
            labels=chosen.labels,
        )
        self.begun = Begun(
            now,
            {place: system.start_time(job) for place, job in enumerate(jobs)},
            {place: running.allocation(job) for place, job in enumerate(jobs)},
        )
        self.cluster = system.cluster
        self.backfiller = EASY() if backfiller is None else backfiller
        self.waiting = slice(len(jobs), None)

    def mean(self, order: Order, objective: str) -> float:
        """Return the mean of the waiting jobs under an order."""
        policy = Pipeline(order, backfiller=self.backfiller)
        result = Simulation(self.workload, policy, self.cluster, begun=self.begun, simulator="simpy").run()
        waits = result.wait_time[self.waiting]
        if objective == "wait":
            return float(waits.mean())
        run_times = np.maximum(self.workload.run_time[self.waiting], SHORTEST)
        return float(np.maximum((waits + self.workload.run_time[self.waiting]) / run_times, 1).mean())
