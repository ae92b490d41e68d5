"""The orders of RLScheduler, SchedInspector and RLBackfilling, as their code computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.job import Job
from hpcsimkit.policies import orders
from hpcsimkit.policy import FCFS, Order

if TYPE_CHECKING:
    from hpcsimkit.jobqueue import JobColumns
    from hpcsimkit.system import System

__all__ = [
    "LRF", "ORDERS", "CorrectedUNICEF", "InvertedUNICEF", "InvertedWFP3", "LongestExpansion", "PublishedF1",
    "PublishedF2", "PublishedF3", "PublishedF4", "RecordedMultifactor", "ShortestExpansion", "SmallestSJF",
]  # fmt: skip

ALMOST_NOTHING = 1e-15
"""What UNICEF adds to the processors, so that it may divide by their logarithm."""

HALF_A_DAY = 12 * 3600
"""What the multifactor order divides waiting times by [s]."""


class SmallestSJF(Order):
    """Shortest requested time first; of those, the fewest processors (SchedInspector)."""

    def key(self, job: Job) -> tuple[int, int]:
        """Return requested time [s] and processors."""
        return job.requested_time, job.size


class LRF(Order):
    """Largest ratio of requested time to processors first."""

    def key(self, job: Job) -> float:
        """Return minus requested time over processors [s]."""
        return -(job.requested_time / job.size)


class InvertedWFP3(Order):
    """WFP3 as published code computes it: the waiting time is minus the submission time, less a second.

    So it favours what the original (:class:`~hpcsimkit.policies.orders.WFP3`) does not: long jobs, small
    ones, early in the log.
    """

    def key(self, job: Job) -> float:
        """Return the score."""
        return ((1 + job.submit_time) / job.requested_time) ** 3 * job.size


class InvertedUNICEF(Order):
    """UNICEF as published code computes it; see :class:`InvertedWFP3`. Jobs of one processor come last."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return (1 + job.submit_time) / (math.log2(job.size + ALMOST_NOTHING) * job.requested_time)


class CorrectedUNICEF(Order):
    """The published UNICEF with the right waiting time: jobs of one processor come first."""

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        """Return the scores now."""
        wait = now - jobs.submit_time + ALMOST_NOTHING
        return -wait / (np.log2(jobs.size + ALMOST_NOTHING) * jobs.requested_time)


class ShortestExpansion(Order):
    """SEXP: (wait + requested time) over processors, smallest first, wait as in :class:`InvertedWFP3`."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return (job.requested_time - 1 - job.submit_time) / job.size


class LongestExpansion(ShortestExpansion):
    """LEXP: the reverse of SEXP."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return -super().key(job)


class PublishedF1(orders.F1):
    """F1; the logarithm of a submission at 0 s counts -1."""

    def key(self, job: Job) -> float:
        """Return the score."""
        return super().key(job) - 870 * (job.submit_time == 0)


class _ZeroFirst(Order):
    """An order in which a submission at 0 s comes before everything: its logarithm is minus infinity."""

    def key(self, job: Job) -> Any:
        """Return the score of the order that this is mixed into."""
        return super().key(job) if job.submit_time else -math.inf


class PublishedF2(_ZeroFirst, orders.F2):
    """F2; jobs submitted at 0 s come first."""


class PublishedF3(_ZeroFirst, orders.F3):
    """F3; jobs submitted at 0 s come first."""


class PublishedF4(_ZeroFirst, orders.F4):
    """F4; jobs submitted at 0 s come first."""


class RecordedMultifactor(Order):
    """SchedInspector's multifactor priority: small jobs, and those that waited long *in the log*.

    The age is field 3 of the log, which does not change while a job waits; on logs without it this is
    :class:`~hpcsimkit.policies.orders.SQF`.
    """

    def reset(self, system: System) -> None:
        """Look up the recorded waiting times, and the size of the machine."""
        self._waits = system.workload.recorded_wait_time
        self._processors = int(system.workload.header.get("MaxProcs", system.cluster.size))

    def key(self, job: Job) -> float:
        """Return minus the priority."""
        age = float(self._waits[job.index]) / HALF_A_DAY
        return -(1000 * age + 1000 * (1 - job.size / self._processors))


_COMMON: dict[str, Callable[[], Order]] = {
    "fcfs": FCFS, "sjf": orders.SJF, "sqf": orders.SQF, "f1": PublishedF1, "wfp3": InvertedWFP3,
    "unicef": InvertedUNICEF,
}  # fmt: skip

ORDERS: Mapping[str, Mapping[str, Callable[[], Order]]] = {
    "rlscheduler": {**_COMMON, "f2": PublishedF2, "f3": PublishedF3, "f4": PublishedF4},
    "schedinspector": {
        **_COMMON, "sjf": SmallestSJF, "lcfs": orders.LCFS, "largest": orders.LargestFirst,
        "ljf": orders.LJF, "saf": orders.SAF, "laf": orders.LAF, "sexp": ShortestExpansion,
        "lexp": LongestExpansion, "srf": orders.SRF, "lrf": LRF, "multifactor": RecordedMultifactor,
    },
    "rlbackfilling": {
        **_COMMON, "largest": orders.LargestFirst, "saf": orders.SAF, "srf": orders.SRF,
    },
}  # fmt: skip
"""The orders of each code base by the kit's names; ties that these leave go to who was submitted first."""
