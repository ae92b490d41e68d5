"""Orders by information known at submission: first come first served, shortest, smallest, WFP3, F1 to F4 ...

In logs with resources, "nodes" stands for a job's total request of the first resource, usually CPUs: see
:attr:`Job.size <hpcsimkit.jobs.job.Job.size>`.
"""

from __future__ import annotations

from math import log10, sqrt
from typing import Any

import numpy as np

from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.kernel.policy import FCFS, Order
from hpcsimkit.kernel.system import System

__all__ = [
    "F1",
    "F2",
    "F3",
    "F4",
    "FCFS",
    "LAF",
    "LCFS",
    "LJF",
    "SAF",
    "SJF",
    "SQF",
    "SRF",
    "UNICEF",
    "WFP3",
    "FCFSShortest",
    "LargestFirst",
    "RandomOrder",
    "XFactor",
]

Scores = np.ndarray[Any, Any]


class LCFS(Order):
    """Last come, first served."""

    def key(self, job: Job) -> int:
        """Return minus the submission time [s]."""
        return -job.submit_time


class FCFSShortest(Order):
    """First come, first served; ties in submission time go to the shortest requested time."""

    def key(self, job: Job) -> tuple[int, int]:
        """Return submission and requested time [s]."""
        return job.submit_time, job.requested_time


class SJF(Order):
    """Shortest requested time first.

    >>> SJF().key(Job(index=0, id=1, submit_time=0, run_time=5, requested_time=60, nodes=2))
    60
    """

    def key(self, job: Job) -> int:
        """Return the requested time [s]."""
        return job.requested_time


class LJF(Order):
    """Longest requested time first."""

    def key(self, job: Job) -> int:
        """Return minus the requested time [s]."""
        return -job.requested_time


class SAF(Order):
    """Smallest requested area (time x nodes) first."""

    def key(self, job: Job) -> int:
        """Return the requested node-seconds."""
        return job.area


class LAF(Order):
    """Largest requested area (time x nodes) first."""

    def key(self, job: Job) -> int:
        """Return minus the requested node-seconds."""
        return -job.area


class SQF(Order):
    """Smallest job (fewest nodes) first."""

    def key(self, job: Job) -> int:
        """Return the number of nodes."""
        return job.size


class LargestFirst(Order):
    """Largest job (most nodes) first."""

    def key(self, job: Job) -> int:
        """Return minus the number of nodes."""
        return -job.size


class SRF(Order):
    """Smallest ratio of requested time to nodes first."""

    def key(self, job: Job) -> float:
        """Return the requested time divided by the number of nodes [s]."""
        return job.requested_time / max(job.size, 1)


class WFP3(Order):
    """Largest (wait / requested)^3 x nodes first: favours large jobs, and long waits of short jobs.

    (Tang, Lan, Desai & Buettner, CLUSTER 2009.)
    """

    def formula(self, job: Any, now: int) -> Any:
        """Return the current score."""
        ratio = (now - job.submit_time) / job.requested_time
        cube = ratio * ratio * ratio  # numpy's power depends on the processor in the last digit
        return -cube * job.size


class UNICEF(Order):
    """Largest wait / (log2(nodes) x requested) first, nodes at least 2: favours small, short jobs.

    (Tang, Lan, Desai & Buettner, CLUSTER 2009.)
    """

    def scores(self, jobs: JobColumns, now: int) -> Scores:
        """Return the current scores."""
        return -(now - jobs.submit_time) / (np.log2(np.maximum(jobs.size, 2)) * jobs.requested_time)


class XFactor(Order):
    """Largest expansion factor first: (wait + requested) / requested."""

    def formula(self, job: Any, now: int) -> Any:
        """Return the current score."""
        return -(now - job.submit_time + job.requested_time) / job.requested_time


def _age(job: Job) -> float:
    """Return log10 of the submission time in the log's own seconds, which F1 to F4 use."""
    return log10(max(job.submit_time, 1))


class F1(Order):
    """Smallest log10(requested) x nodes + 870 log10(submit) first.

    (Carastan-Santos & de Camargo, SC 2017, Table 3.)

    >>> F1().key(Job(index=0, id=1, submit_time=10, run_time=5, requested_time=100, nodes=2))
    874.0
    """

    def key(self, job: Job) -> float:
        """Return the score."""
        return log10(job.requested_time) * job.size + 870 * _age(job)


class F2(Order):
    """Smallest sqrt(requested) x nodes + 25600 log10(submit) first.

    (Carastan-Santos & de Camargo, SC 2017, Table 3.)
    """

    def key(self, job: Job) -> float:
        """Return the score."""
        return sqrt(job.requested_time) * job.size + 25_600 * _age(job)


class F3(Order):
    """Smallest requested x nodes + 6860000 log10(submit) first.

    (Carastan-Santos & de Camargo, SC 2017, Table 3.)
    """

    def key(self, job: Job) -> float:
        """Return the score."""
        return job.requested_time * job.size + 6_860_000 * _age(job)


class F4(Order):
    """Smallest requested x sqrt(nodes) + 530000 log10(submit) first.

    (Carastan-Santos & de Camargo, SC 2017, Table 3.)
    """

    def key(self, job: Job) -> float:
        """Return the score."""
        return job.requested_time * sqrt(job.size) + 530_000 * _age(job)


class RandomOrder(Order):
    """Random order: each job gets a random key on arrival, reproducible with the seed."""

    draws = True

    def reset(self, system: System) -> None:
        """Create a random number generator of the run."""
        self._random = system.random()

    def key(self, job: Job) -> float:
        """Return a random number in [0, 1)."""
        return float(self._random.random())
