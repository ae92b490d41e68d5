"""Inspectors that need no learning."""

from __future__ import annotations

from hpcsimkit.job import Job
from hpcsimkit.policy import Inspector
from hpcsimkit.system import System

__all__ = ["HoldUnfit"]


class HoldUnfit(Inspector):
    """Hold the selected job as long as it does not fit: nothing is reserved for it and nothing backfilled.

    The control row that papers on learned inspectors lack.
    """

    def accept(self, job: Job, system: System) -> bool:
        """Accept a job that fits."""
        return system.fits(job)  # with nothing running, every job does
