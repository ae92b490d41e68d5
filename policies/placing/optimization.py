"""DRAS's "Optimization": start the set of waiting jobs that maximises an objective."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.request import Need
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.knapsack import assign, choose, choose_many
from hpcsimkit.policies.placing.objectives import capability_values, capacity_values
from hpcsimkit.policies.placing.packing import DominantShare

__all__ = ["Optimization"]

Values = NDArray[np.float64]

Chosen = list[tuple[Job, Allocation | None]]
"""Jobs with their allocations; None if the cluster places the job."""

WORTHLESS = 1e-9
"""Value of jobs of value 0, as a share of the largest value, so that they start if they displace no job."""


class Optimization(Policy):
    """Knapsack policy that starts the waiting jobs with the largest total value, without reservations.

    At each scheduling pass, a 0-1 knapsack over the `window` jobs that have waited longest is solved and its
    jobs are started; this repeats until no job of the window fits. Without reservations, large jobs may
    starve. (Fan et al., IEEE TPDS 2022, section 5.1.)

    On machines, each job must either run on one shared machine or have a pooled request; the size of a job is
    its dominant share.

    Parameters
    ----------
    objective : {"capability", "capacity"}
        Objective to maximise: equation 1 of the paper in its additive form
        (:func:`~hpcsimkit.policies.placing.objectives.capability_values`), or equation 2
        (:func:`~hpcsimkit.policies.placing.objectives.capacity_values`).
    w1, w2, w3 : float
        Weights of waiting time, size and utilisation in equation 1, >= 0. Only the sum of the last two has an
        effect.
    time : {"request", "wait"}
        Definition of t in equation 2: the requested time, or the waiting time so far [s].
    window : int, optional
        Maximum number of candidate jobs, >= 1; by default all waiting jobs are candidates.
    node_limit : int or None
        Maximum number of branch-and-bound nodes on machines; the best set found within the limit is used.
        None for the optimal set, which may take very long. On homogeneous nodes the set is always optimal.

    Examples
    --------
    Four nodes: together the two later jobs are worth more than the first one.

    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> from hpcsimkit.jobs.workload import Workload
    >>> columns = {"submit_time": [0, 0, 0], "run_time": [9, 5, 5], "nodes": [3, 2, 2]}
    >>> Simulation(Workload(columns, machine_size=4), Optimization()).run().start_time.tolist()
    [5, 0, 0]
    """

    selects_machines = True
    heeds_calendar = False

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
        """Check the names and the ranges of the parameters."""
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
        """Prepare the computation of dominant shares."""
        self._share = DominantShare()
        self._share.reset(system)

    def schedule(self, system: System) -> None:
        """Start the best set repeatedly until no job of the window fits."""
        while chosen := self._best(system):
            for job, allocation in chosen:
                if system.ledger.waits(job.index):  # no start has closed a gate for it
                    system.start(job, allocation)

    def _best(self, system: System) -> Chosen:
        """Return the set with the largest total value among the jobs of the window that fit now."""
        queue = system.queue
        if not len(system.cluster.fitting(queue, system.free)):
            return []
        values = self._values(system)[: self.window]
        jobs = [queue.job(row) for row in queue.table[0, : self.window].tolist()]  # by arrival
        if isinstance(system.cluster, Nodes):
            return _on_nodes(values, jobs, system)
        return _on_machines(values, jobs, system, self.node_limit)

    def _values(self, system: System) -> Values:
        """Return the current value of each waiting job, > 0."""
        jobs = system.queue.columns
        waits = system.now - jobs.submit_time
        if self.objective == "capability":
            weights = (self.w1, self.w2, self.w3)
            values = capability_values(waits, self._shares(system), 1, weights=weights)
        else:
            values = capacity_values(jobs.requested_time if self.time == "request" else waits)
        return np.where(values > 0, values, WORTHLESS * values.max() or 1.0)

    def _shares(self, system: System) -> Values:
        """Return the dominant share of each waiting job, computed once for each distinct demand."""
        rows, sizes, _ = system.queue.table
        _, first, kinds = np.unique(sizes, return_index=True, return_inverse=True)
        shares = [self._share.key(system.queue.job(row)) for row in rows[first].tolist()]
        return np.array(shares)[kinds]


def _on_nodes(values: Values, jobs: list[Job], system: System) -> Chosen:
    """Return the best set on homogeneous nodes."""
    return [(jobs[place], None) for place in choose(values, [job.nodes for job in jobs], system.free)]


def _on_machines(values: Values, jobs: list[Job], system: System, node_limit: int | None) -> Chosen:
    """Return the best set on machines, for jobs on one shared machine each or for pooled requests."""
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
    """Return whether a request is pooled over all machines."""
    return need.spread and not need.exclusive and need.allowed is None


def _of_totals(
    values: Values, amounts: NDArray[np.int64], free: NDArray[np.int64], node_limit: int | None
) -> list[int]:
    """Return the positions of the best set for pooled requests; one resource needs no integer program."""
    asked = np.flatnonzero(amounts.any(axis=0))
    if len(asked) == 1 and amounts[:, asked[0]].all():
        return choose(values, amounts[:, asked[0]], int(free[asked[0]]))
    return choose_many(values, amounts, free, node_limit=node_limit)
