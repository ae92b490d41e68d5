"""Heuristic inspectors."""

from __future__ import annotations

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Inspector
from hpcsimkit.kernel.system import System

__all__ = ["HoldUnfit"]


class HoldUnfit(Inspector):
    """Inspector that holds the selected job while it does not fit, without reservation or backfilling.

    This is the control baseline that papers on learned inspectors omit.
    """

    def accept(self, job: Job, system: System) -> bool:
        """Accept a job that fits."""
        return system.fits(job)  # with nothing running, every job does
