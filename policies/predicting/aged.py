"""Orders in which priority grows with the wait, at a rate known or predicted at arrival."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.bounded import Weighted

__all__ = ["Aged"]

Scores = np.ndarray[Any, Any]


class Aged(Weighted):
    """Largest wait / product first, with the product of :class:`~hpcsimkit.policies.Weighted`.

    With ``requested=1`` the order is that of XFactor; UNICEF has log2(nodes) in place of a power of the size.

    Parameters
    ----------
    mean : float
        Exponent of the predicted mean run time. Default: 0.
    harmonic : float
        Exponent of the predicted harmonic mean run time. Default: 0.
    requested : float
        Exponent of the requested time. Default: 0.
    size : float
        Exponent of the number of nodes. Default: 0.

    Examples
    --------
    >>> Aged(requested=1).dynamic
    True
    """

    def reset(self, system: System) -> None:
        """Check the exponents, and set the estimator of the run."""
        super().reset(system)
        self._jobs = system.jobs
        self._revisions = system.estimator.revisions
        self._products = np.full(len(system.jobs), np.nan)
        self._seen = np.full(len(system.jobs), -1, dtype=np.int64)

    def scores(self, jobs: JobColumns, now: int) -> Scores:
        """Return the current scores; products are computed as jobs arrive, and when predictions change."""
        rows = jobs.index
        revisions = self._revisions(rows)
        for row in rows[revisions != self._seen[rows]].tolist():
            self._products[row] = self.key(self._jobs[row])
        self._seen[rows] = revisions
        return -(now - jobs.submit_time) / self._products[rows]
