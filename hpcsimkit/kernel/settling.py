"""Backfillers whose passes can be skipped while nothing relevant has changed."""

from __future__ import annotations

from hpcsimkit.kernel.policy import Backfiller
from hpcsimkit.kernel.system import System

__all__ = ["SettlingBackfiller"]


class SettlingBackfiller(Backfiller):
    """A backfiller for which the passage of time alone cannot make a job startable.

    Once every job that it yielded has been started, another pass on the same state of the cluster would start
    nothing. The pipeline then skips passes until a job starts or ends, or a new arrival fits. This saves time
    and changes no schedule.

    Attributes
    ----------
    settled : int
        The ``system.version`` for which nothing more can be started; -1 if there is none.
    seen_pass : int
        Number of the last pass in which :meth:`fill` was called, or which was skipped.
    """

    settled = -1
    seen_pass = -1

    def skip(self, system: System) -> bool:
        """Return whether no job can be started now, given a settled state and the same blocked head.

        No job has started or ended since the last pass. A job can therefore start only if a new arrival fits,
        or if a job has exceeded its estimate, so that its expected end moves with the clock.
        """
        fits, free = system.cluster.fits, system.free
        for job in system.newcomers:
            if fits(job, free):
                return False
        # The head's shadow time comes nearer, so that fewer of the old candidates end by it; but if it is the
        # end of a job beyond its estimate, it moves with the clock.
        if system.running.overrun(system.now):
            return False
        self.seen_pass = system.passes
        return True
