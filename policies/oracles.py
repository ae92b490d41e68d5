"""Oracles: policies that read actual run times, which no real scheduler knows; for reference only."""

from __future__ import annotations

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Estimator, Order
from hpcsimkit.kernel.prediction import Prediction

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

    Parameters
    ----------
    reservations : bool
        Whether reservations and backfilling use the actual run times; if not, they use the requested times,
        and only orders that predict know the actual ones. Default: True.

    Examples
    --------
    >>> job = Job(0, 1, submit_time=0, run_time=50, requested_time=60, nodes=1)
    >>> known = Actual(reservations=False)
    >>> known.estimate(job), known.prediction(job).mean
    (60, 50)
    """

    def __init__(self, reservations: bool = True) -> None:
        self.reservations = reservations

    def estimate(self, job: Job) -> int:
        """Return the actual run time or, without `reservations`, the requested time [s], at least 1."""
        return max(job.run_time, 1) if self.reservations else job.requested_time

    def prediction(self, job: Job) -> Prediction:
        """Return the actual run time [s], at least 1, which is certain."""
        return Prediction.certain(max(job.run_time, 1))
