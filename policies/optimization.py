"""Start the set of waiting jobs that is best by an objective: DRAS's "Optimization"."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import Allocation
from hpcsimkit.cluster import Nodes
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.machines import Machines
from hpcsimkit.need import Need
from hpcsimkit.policies.knapsack import assign, choose, choose_many
from hpcsimkit.policies.objectives import capability_values, capacity_values
from hpcsimkit.policies.packing import DominantShare
from hpcsimkit.policy import Policy
from hpcsimkit.system import System

__all__ = ["Optimization"]

Values = NDArray[np.float64]

Chosen = list[tuple[Job, Allocation | None]]
"""Jobs, and where each is to run; None for where the cluster places it."""

WORTHLESS = 1e-9
"""What a job of no value counts for, of the best job's value: it starts where that costs nothing."""


class Optimization(Policy):
    """Start the waiting jobs that together are worth most, as a 0-1 knapsack; no reservations.

    At each pass, of the jobs that have waited longest (`window` of them) the set of most value that fits
    starts, and so on until nothing more of the window fits. Nobody is protected: large jobs may starve.
    (Fan et al., IEEE TPDS 2022, section 5.1.)

    On machines, jobs need one machine each that they share, or are counted in totals only; the size of a
    job is its dominant share.

    Parameters
    ----------
    objective : {"capability", "capacity"}
        What is maximised: equation 1 of the paper in its additive form
        (:func:`~hpcsimkit.policies.objectives.capability_values`), or equation 2
        (:func:`~hpcsimkit.policies.objectives.capacity_values`).
    w1, w2, w3 : float
        Weights of waiting, size and utilisation in equation 1, >= 0. The last two always act together.
    time : {"request", "wait"}
        What t is in equation 2: the requested time, or the time waited so far [s].
    window : int, optional
        Jobs to choose from, >= 1; by default all that wait.
    node_limit : int or None
        On machines, the search ends after so many nodes of branch and bound, with the best set found until
        then; None for the best there is, which may take very long. On counted nodes it is always the best.

    Examples
    --------
    Four nodes: together the two later jobs are worth more than the first one.

    >>> from hpcsimkit.simulation import Simulation
    >>> from hpcsimkit.workload import Workload
    >>> columns = {"submit_time": [0, 0, 0], "run_time": [9, 5, 5], "nodes": [3, 2, 2]}
    >>> Simulation(Workload(columns, machine_size=4), Optimization()).run().start_time.tolist()
    [5, 0, 0]
    """

    def __init__(
        self,
        objective: str = "capability",
        *,
        w1: float = 1 / 3,
        w2: float = 1 / 3,
        w3: float = 1 / 3,
        time: str = "request",
        window: int | None = None,
        node_limit: int | None = 100,
    ) -> None:
        self.objective = objective
        self.w1 = w1
        self.w2 = w2
        self.w3 = w3
        self.time = time
        self.window = window
        self.node_limit = node_limit

    def check(self) -> None:
        """See that the names are known and the numbers in their ranges."""
        for name, known in (("objective", ("capability", "capacity")), ("time", ("request", "wait"))):
            if getattr(self, name) not in known:
                raise UsageError(
                    f"optimization: {name} needs {known[0]!r} or {known[1]!r}, found {getattr(self, name)!r}"
                )
        weights = (self.w1, self.w2, self.w3)
        sound = all(isinstance(w, int | float) and 0 <= w < float("inf") for w in weights)
        if not sound or not any(weights):
            raise UsageError(
                f"optimization: w1, w2 and w3 need numbers of at least 0, not all of them 0, found {weights}"
            )
        for name in ("window", "node_limit"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= 1):
                raise UsageError(f"optimization: {name} needs a whole number of at least 1, found {value!r}")

    def reset(self, system: System) -> None:
        """Get ready to tell how large jobs are."""
        self._share = DominantShare()
        self._share.reset(system)

    def schedule(self, system: System) -> None:
        """Start the best set, until nothing more fits."""
        while chosen := self._best(system):
            for job, allocation in chosen:
                system.start(job, allocation)

    def _best(self, system: System) -> Chosen:
        """Return the set of most value among the jobs of the window that fit now."""
        queue = system.queue
        if not len(system.cluster.fitting(queue, system.free)):
            return []
        values = self._values(system)[: self.window]
        jobs = [queue.job(row) for row in queue.table[0, : self.window].tolist()]  # by arrival
        if isinstance(system.cluster, Nodes):
            return _on_nodes(values, jobs, system)
        return _on_machines(values, jobs, system, self.node_limit)

    def _values(self, system: System) -> Values:
        """Return what each waiting job is worth now, more than 0."""
        jobs = system.queue.columns
        waits = system.now - jobs.submit_time
        if self.objective == "capability":
            weights = (self.w1, self.w2, self.w3)
            values = capability_values(waits, self._shares(system), 1, weights=weights)
        else:
            values = capacity_values(jobs.requested_time if self.time == "request" else waits)
        return np.where(values > 0, values, WORTHLESS * values.max() or 1.0)

    def _shares(self, system: System) -> Values:
        """Return what share of the cluster each waiting job asks for; jobs of one size have the same."""
        rows, sizes, _ = system.queue.table
        _, first, kinds = np.unique(sizes, return_index=True, return_inverse=True)
        shares = [self._share.key(system.queue.job(row)) for row in rows[first].tolist()]
        return np.array(shares)[kinds]


def _on_nodes(values: Values, jobs: list[Job], system: System) -> Chosen:
    """Return the best set on counted nodes."""
    return [(jobs[place], None) for place in choose(values, [job.nodes for job in jobs], system.free)]


def _on_machines(values: Values, jobs: list[Job], system: System, node_limit: int | None) -> Chosen:
    """Return the best set on machines: whole jobs on shared machines, or totals that all machines give."""
    cluster = system.cluster
    if not isinstance(cluster, Machines):
        raise UsageError(f"optimization needs nodes or machines, found {cluster!r}")
    needs = [cluster.need(job) for job in jobs]
    amounts = np.array([need.amounts for need in needs])
    if all(map(_is_total, needs)):
        places = _of_totals(values, amounts, system.free.sum(axis=0), node_limit)
        return [(jobs[place], None) for place in places]
    for job, need in zip(jobs, needs, strict=True):
        if need.spread or need.exclusive or need.nodes > 1:
            raise UsageError(
                "optimization needs jobs that share one machine each, or totals of any machines; "
                f"job {job.id} asks for {need.text()}"
            )
    allowed = cluster.needs.usable(np.array([cluster.size_of(job) for job in jobs]), system.free)
    pairs = assign(values, amounts, system.free, allowed=allowed, node_limit=node_limit)
    return [(jobs[job], Allocation([machine], amounts[job : job + 1])) for job, machine in pairs]


def _is_total(need: Need) -> bool:
    """Tell whether only totals count, whatever the machines."""
    return need.spread and not need.exclusive and need.allowed is None


def _of_totals(
    values: Values, amounts: NDArray[np.int64], free: NDArray[np.int64], node_limit: int | None
) -> list[int]:
    """Return the positions of the best set when only totals count; one resource alone is a simple matter."""
    asked = np.flatnonzero(amounts.any(axis=0))
    if len(asked) == 1 and amounts[:, asked[0]].all():
        return choose(values, amounts[:, asked[0]], int(free[asked[0]]))
    return choose_many(values, amounts, free, node_limit=node_limit)
