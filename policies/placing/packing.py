"""Packing: joint selection of jobs and machines."""

from __future__ import annotations

import numpy as np

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.request import Places
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.placements import Scores, margins

__all__ = ["BestFitBinPacking", "DominantShare"]


class DominantShare(Order):
    """Smallest dominant share first: the largest share of any resource of the cluster that a job requests.

    (Ghodsi et al., Dominant Resource Fairness, NSDI 2011; as used in CuSH.)
    """

    def reset(self, system: System) -> None:
        """Set the cluster to which shares refer."""
        self._cluster = system.cluster

    def key(self, job: Job) -> float:
        """Return the dominant share, in [0, 1]."""
        cluster = self._cluster
        if not isinstance(cluster, Machines):
            return job.nodes / cluster.size
        return cluster.need(job).dominant_share


class BestFitBinPacking(Policy):
    """Best-fit bin packing: repeatedly starts the pair of a job and a machine that leaves it fullest.

    The score of a pair is the mean free share of the machine's resources after the start. Ties go to the job
    that arrived first, then to the machine listed first. Scheduling is greedy, without head-of-line blocking.
    (BFBP of the masked-PPO scheduler's paper, section II.) Jobs that span several machines are an error.

    Examples
    --------
    >>> BestFitBinPacking()
    BestFitBinPacking()
    """

    selects_machines = True
    heeds_calendar = False

    def schedule(self, system: System) -> None:
        """Start pairs until none fits."""
        cluster = system.cluster
        if not isinstance(cluster, Machines):  # one machine of many nodes: the largest job leaves it fullest
            for job in sorted(system.queue, key=lambda job: -job.nodes):
                if system.ledger.waits(job.index) and system.fits(job):
                    system.start(job)
            return
        pairs = _Pairs(system, cluster)
        while (pair := pairs.best()) is not None:
            job, allocation = pair
            if system.ledger.waits(job.index):  # no start has closed a gate for it
                system.start(job, allocation)
                pairs.started(allocation.machines[0])


class _Pairs:
    """Free shares of each machine after the start of each job; jobs with equal demands share a row."""

    def __init__(self, system: System, cluster: Machines) -> None:
        self._system = system
        self._cluster = cluster
        waiting: dict[int, list[Job]] = {}
        for job in system.queue:
            waiting.setdefault(cluster.size_of(job), []).append(job)
        self._needs = [cluster.needs.needs[number] for number in waiting]
        for need, jobs in zip(self._needs, waiting.values(), strict=True):
            if need.spread or need.exclusive or need.nodes > 1:
                raise UsageError(
                    f"best-fit bin packing needs jobs that share one machine each; "
                    f"job {jobs[0].id} asks for {need.text()}"
                )
        self._jobs = [jobs[::-1] for jobs in waiting.values()]
        self._numbers = np.array(list(waiting), dtype=np.int64)
        self._amounts = cluster.needs.amounts[self._numbers]
        self._rank = {job.index: place for place, job in enumerate(system.queue)}
        self._left = self._after(np.arange(len(cluster)))

    def best(self) -> tuple[Job, Allocation] | None:
        """Return the best pair; among jobs with equal resource demands, the first."""
        least = self._left.min(initial=np.inf)
        if least == np.inf:
            return None
        rows = np.flatnonzero((self._left == least).any(axis=1)).tolist()
        row = min(rows, key=lambda each: self._rank[self._jobs[each][-1].index])
        machine = int(np.argmax(self._left[row] == least))
        job = self._jobs[row].pop()
        if not self._jobs[row]:
            self._left[row] = np.inf
        return job, Allocation([machine], self._amounts[row : row + 1])

    def started(self, machine: int) -> None:
        """Update the scores of a machine on which a job has just started."""
        gone = np.isinf(self._left[:, machine])
        self._left[:, machine] = np.where(gone, np.inf, self._after(np.array([machine]))[:, 0])

    def _after(self, machines: Places) -> Scores:
        """Return the free shares of machines after each distinct demand; infinity where it does not fit."""
        free, capacity = self._system.free, self._cluster.capacity
        left = margins(free[machines] - self._amounts[:, None, :], capacity[machines])
        return np.where(self._cluster.needs.usable(self._numbers, free)[:, machines], left, np.inf)
