"""Trials of orders: simulations from a given state, the means of their waits, and scores of any order."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.prediction import SHORTEST
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System

__all__ = [
    "OBJECTIVES",
    "Trial",
    "check_objective",
    "mean_of",
    "present_state",
    "renumbered",
    "scores_of",
    "with_columns",
]

OBJECTIVES = ("bounded_slowdown", "wait")

Integers = NDArray[np.int64]


class Trial(NamedTuple):
    """Jobs and the state of a cluster, from which orders are simulated and compared.

    Parameters
    ----------
    workload : Workload
        The jobs.
    begun : Begun
        The state in which the simulations begin.
    cluster : Cluster
        The cluster.
    judged : array of int64, shape (judged,)
        Rows of the jobs that are compared, at least one.
    policy : Pipeline
        Pipeline of the simulations, whose order is replaced.
    until : int, optional
        Time until which waits count [s]; by default all of them count.
    """

    workload: Workload
    begun: Begun
    cluster: AnyCluster
    judged: Integers
    policy: Pipeline
    until: int | None = None

    def mean(self, order: Order, objective: str) -> float:
        """Return the mean wait [s] or bounded slowdown under an order, of which the simulation has a copy."""
        policy = copy.copy(self.policy)
        policy.order = order
        name = type(order).__name__
        simulation = Simulation(self.workload, policy, self.cluster, begun=self.begun, name=name)
        starts = simulation.run().start_time[self.judged]
        if self.until is not None:
            starts = np.where(starts < 0, self.until, np.minimum(starts, self.until))
        waits = starts - self.workload.submit_time[self.judged]
        return mean_of(objective, waits, self.workload.run_time[self.judged])


def present_state(system: System, who: str) -> Begun:
    """Return the present state of a run, with the rows of the log.

    Raises
    ------
    UsageError
        A job of another partition runs on some machines of this one and on others; `who` is the policy that
        cannot simulate that.
    """
    jobs, running, cluster = list(system.running_jobs()), system.running, system.cluster
    for job in jobs:
        if not cluster.holds(job, running.allocation(job), cluster.capacity):
            raise UsageError(
                f"{who}: job {job.id} of another partition runs on shared machines and on others, which "
                "simulations of one partition do not know"
            )
    return Begun(
        system.now,
        {job.index: system.start_time(job) for job in jobs},
        {job.index: running.allocation(job) for job in jobs},
    )


def renumbered(begun: Begun, rows: Integers) -> Begun:
    """Return a state with the positions of its rows among some rows.

    >>> renumbered(Begun(9, {4: 2, 7: 5}), np.array([7, 8, 4])).started
    {2: 2, 0: 5}
    """
    place = {row: position for position, row in enumerate(rows.tolist())}
    return Begun(
        begun.at,
        {place[row]: start for row, start in begun.started.items()},
        {place[row]: allocation for row, allocation in begun.allocations.items()},
    )


def with_columns(workload: Workload, columns: Mapping[str, Integers]) -> Workload:
    """Return a workload with some columns replaced."""
    return Workload(
        {**workload.columns, **columns},
        machine_size=workload.machine_size,
        resources=workload.resources,
        labels=workload.labels,
    )


def check_objective(name: str, objective: str) -> None:
    """Raise a UsageError if an objective of the policy `name` is unknown."""
    if objective not in OBJECTIVES:
        known = " or ".join(map(repr, OBJECTIVES))
        raise UsageError(f"{name}: objective needs {known}, found {objective!r}")


def mean_of(objective: str, waits: Integers, run_times: Integers) -> float:
    """Return the mean wait [s] or bounded slowdown of some jobs.

    >>> mean_of("wait", np.array([10, 30]), np.array([5, 20]))
    20.0
    >>> mean_of("bounded_slowdown", np.array([10, 30]), np.array([5, 20]))
    2.0
    """
    if objective == "wait":
        return float(waits.mean())
    return float(np.maximum((waits + run_times) / np.maximum(run_times, SHORTEST), 1).mean())


def scores_of(order: Order, jobs: JobColumns, system: System, now: int) -> NDArray[np.float64]:
    """Return scores that sort jobs as an order does, which may have keys of any type."""
    if order.dynamic:
        return np.asarray(order.scores(jobs, now), dtype=np.float64)
    keys = [order.key(system.jobs[row]) for row in jobs.index]
    rank = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([rank[key] for key in keys], dtype=np.float64)
