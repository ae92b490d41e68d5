"""The orders of RLScheduler, SchedInspector and RLBackfilling, as implemented in their code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import FCFS, Order
from hpcsimkit.policies import orders
from hpcsimkit.workloads.readers.swf_header import header_number

if TYPE_CHECKING:
    from hpcsimkit.jobs.queue import JobColumns
    from hpcsimkit.kernel.system import System

__all__ = [
    "LRF",
    "MEANT",
    "ORDERS",
    "CorrectedUNICEF",
    "InvertedUNICEF",
    "InvertedWFP3",
    "LongestExpansion",
    "PublishedF1",
    "PublishedF2",
    "PublishedF3",
    "PublishedF4",
    "RecordedMultifactor",
    "ShortestExpansion",
    "SmallestSJF",
]

ALMOST_NOTHING = 1e-15
"""Offset added to the number of processors in UNICEF to avoid division by log2(1) = 0."""

HALF_A_DAY = 12 * 3600
"""Divisor of waiting times in the multifactor order [s]."""


class SmallestSJF(Order):
    """Shortest requested time first; ties go to the job with the fewest processors (SchedInspector)."""

    def key(self, job: Job) -> tuple[int, int]:
        """Return the requested time [s] and the number of processors."""
        return job.requested_time, job.size


class LRF(Order):
    """Largest ratio of requested time to processors first."""

    def key(self, job: Job) -> float:
        """Return minus the requested time divided by the number of processors [s]."""
        return -(job.requested_time / max(job.size, 1))


class InvertedWFP3(Order):
    """WFP3 as in the published code, where the waiting time is minus the submission time, less one second.

    This inverts the preferences of the original (:class:`~hpcsimkit.policies.orders.WFP3`): it favours long
    jobs, small jobs and jobs early in the log.
    """

    def key(self, job: Job) -> float:
        """Return the score."""
        return ((1 + job.submit_time) / job.requested_time) ** 3 * job.size


class InvertedUNICEF(Order):
    """UNICEF as in the published code, with jobs on one processor last; see :class:`InvertedWFP3`."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return (1 + job.submit_time) / (math.log2(job.size + ALMOST_NOTHING) * job.requested_time)


class CorrectedUNICEF(Order):
    """The published UNICEF with the correct waiting time; jobs on one processor come first."""

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return the current scores."""
        wait = now - jobs.submit_time + ALMOST_NOTHING
        return -wait / (np.log2(jobs.size + ALMOST_NOTHING) * jobs.requested_time)


class ShortestExpansion(Order):
    """SEXP: smallest (wait + requested time) / processors first, with the wait of :class:`InvertedWFP3`."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return (job.requested_time - 1 - job.submit_time) / max(job.size, 1)


class LongestExpansion(ShortestExpansion):
    """LEXP: the reverse of SEXP."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return -super().key(job)


class PublishedF1(orders.F1):
    """F1, with a logarithm of -1 for submission at 0 s."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return super().key(job) - 870 * (job.submit_time == 0)


class _ZeroFirst(Order):
    """Mixin that puts jobs submitted at 0 s first: the logarithm of their submission time is -infinity."""

    def key(self, job: Job) -> Any:
        """Return the score of the base order, or -infinity for submission at 0 s."""
        return super().key(job) if job.submit_time else -math.inf


class PublishedF2(_ZeroFirst, orders.F2):
    """F2, with jobs submitted at 0 s first."""


class PublishedF3(_ZeroFirst, orders.F3):
    """F3, with jobs submitted at 0 s first."""


class PublishedF4(_ZeroFirst, orders.F4):
    """F4, with jobs submitted at 0 s first."""


class RecordedMultifactor(Order):
    """SchedInspector's multifactor priority: favours small jobs and jobs with long waits *in the log*.

    The age is field 3 of the log (the recorded waiting time), which does not change while a job waits. For
    logs without this field, the order is :class:`~hpcsimkit.policies.orders.SQF`.
    """

    def reset(self, system: System) -> None:
        """Look up the recorded waiting times and the size of the cluster."""
        self._waits = system.workload.recorded_wait_time
        self._processors = header_number(system.workload.header, "MaxProcs") or system.cluster.size

    def key(self, job: Job) -> float:
        """Return minus the priority."""
        age = float(self._waits[job.index]) / HALF_A_DAY
        return -(1000 * age + 1000 * (1 - job.size / self._processors))


_COMMON: dict[str, Callable[[], Order]] = {
    "fcfs": FCFS,
    "sjf": orders.SJF,
    "sqf": orders.SQF,
    "f1": PublishedF1,
    "wfp3": InvertedWFP3,
    "unicef": InvertedUNICEF,
}

ORDERS: Mapping[str, Mapping[str, Callable[[], Order]]] = {
    "rlscheduler": {**_COMMON, "f2": PublishedF2, "f3": PublishedF3, "f4": PublishedF4},
    "schedinspector": {
        **_COMMON,
        "sjf": SmallestSJF,
        "lcfs": orders.LCFS,
        "largest": orders.LargestFirst,
        "ljf": orders.LJF,
        "saf": orders.SAF,
        "laf": orders.LAF,
        "sexp": ShortestExpansion,
        "lexp": LongestExpansion,
        "srf": orders.SRF,
        "lrf": LRF,
        "multifactor": RecordedMultifactor,
    },
    "rlbackfilling": {
        **_COMMON,
        "largest": orders.LargestFirst,
        "saf": orders.SAF,
        "srf": orders.SRF,
    },
}
"""The orders of each code base, by hpcsimkit's names; ties go to the job submitted first."""

MEANT: Mapping[str, Callable[[], Order]] = {"wfp3": orders.WFP3, "unicef": CorrectedUNICEF}
"""The orders whose published code differs from the formula, as meant."""
