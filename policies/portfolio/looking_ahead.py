"""An order that simulates the hours to come under several orders, and follows the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Backfiller, Order
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import orders
from hpcsimkit.policies.portfolio.trial import (
    OBJECTIVES,
    Trial,
    check_objective,
    present_state,
    renumbered,
    scores_of,
    with_columns,
)

__all__ = ["LookingAhead"]


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
    objective : {"bounded_slowdown", "wait"}
        Mean to minimise; slowdowns are bounded at 10 s. Default: ``"bounded_slowdown"``.
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
        check_objective("looking-ahead", self.objective)
        given = portfolio() if self.orders is None else self.orders
        self._portfolio = list(given) if isinstance(given, Iterable) else []
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
        return scores_of(self._followed, jobs, self._system, now)

    def _review(self, jobs: JobColumns) -> None:
        """Simulate the present state under each order, and follow the best."""
        oldest = np.argsort(jobs.submit_time, kind="stable")[: self.deepest]
        policy = Pipeline(backfiller=EASY() if self.backfiller is None else self.backfiller)
        trial = _future(self._system, jobs.index[oldest], policy)
        means = [trial.mean(order, self.objective) for order in self._portfolio]
        self._followed = self._portfolio[int(np.argmin(means))]
        name = type(self._followed).__name__
        if not self.followed or self.followed[-1][1] != name:
            self.followed.append((self._system.now, name))


def _future(system: System, waiting: NDArray[np.int64], policy: Pipeline) -> Trial:
    """Return the running jobs and then some waiting ones of a run, with the estimates as run times."""
    now, running = system.now, system.running
    rows = np.array([*running.rows, *waiting.tolist()], dtype=np.int64)
    jobs = [system.jobs[row] for row in running.rows]
    lasting = [max(running.expected_end(job), now + 1) - system.start_time(job) for job in jobs]
    expected = [system.estimate(system.jobs[row]) for row in waiting.tolist()]
    run_time = np.array(lasting + expected, dtype=np.int64)
    # With dependencies, jobs may be submitted at other times than in the log.
    changed = {"run_time": run_time, "submit_time": system.column("submit_time")[rows]}
    workload = with_columns(system.workload.select(rows), changed)
    begun = renumbered(present_state(system, "looking-ahead"), rows)
    return Trial(workload, begun, system.cluster, np.arange(len(jobs), len(rows)), policy)
