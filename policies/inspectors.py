"""Inspectors and gates of a pipeline: heuristics that hold jobs."""

from __future__ import annotations

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Admission, Inspector
from hpcsimkit.kernel.system import System

__all__ = ["AdmitFitting", "HoldUnfit", "RandomAdmission"]


class HoldUnfit(Inspector):
    """Inspector that holds the selected job while it does not fit, without reservation or backfilling.

    This is the control baseline that papers on learned inspectors omit.
    """

    def accept(self, job: Job, system: System) -> bool:
        """Accept a job that fits."""
        return system.fits(job)  # with nothing running, every job does


class AdmitFitting(Admission):
    """Gate that skips the jobs that do not fit now, so that none blocks others or has a reservation.

    With any order, this is greedy list scheduling. Like an inspector that holds jobs, it is a control for
    trained agents at the seat.
    """

    def admits(self, job: Job, system: System) -> bool:
        """Return whether the job fits."""
        return system.fits(job)  # with nothing running, every job does


class RandomAdmission(Admission):
    """Gate that skips jobs at random, as long as another pass is certain to follow.

    Parameters
    ----------
    share : float
        Probability that a job is skipped, in [0, 1]. Default: 0.5.
    """

    draws = True

    def __init__(self, share: float = 0.5) -> None:
        self.share = share

    def reset(self, system: System) -> None:
        """Check the probability, and draw from a generator of the run's own."""
        if not (isinstance(self.share, int | float) and 0 <= self.share <= 1):
            raise UsageError(f"random-admission: share needs a number from 0 to 1, found {self.share!r}")
        self._random = system.random()

    def admits(self, job: Job, system: System) -> bool:
        """Return whether a coin lets the job start."""
        return not system.anything_ahead or self._random.random() >= self.share
