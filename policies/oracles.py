"""Oracles: policies that read actual run times, which no real scheduler knows; for reference only."""

from __future__ import annotations

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Estimator, Order

__all__ = ["Actual", "OracleSAF", "OracleSJF"]


class OracleSJF(Order):
    """Shortest actual run time first (reads run times)."""

    def key(self, job: Job) -> int:
        """Return the actual run time [s]."""
        return job.run_time


class OracleSAF(Order):
    """Smallest actual area first (reads run times)."""

    def key(self, job: Job) -> int:
        """Return the actual node-seconds."""
        return job.run_time * job.size


class Actual(Estimator):
    """Actual run times as estimates (reads run times); EASY with these estimates is EASY-AR.

    (RLBackfilling, PMBS 2023, figure 1.)
    """

    def estimate(self, job: Job) -> int:
        """Return the actual run time [s], at least 1."""
        return max(job.run_time, 1)
