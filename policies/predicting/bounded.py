"""Orders by products of powers of what is known or predicted at arrival, without and with a bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.system import System

__all__ = ["Bounded", "KeyColumn", "Weighted"]


class Weighted(Order):
    """Smallest product of powers first: of the predicted run time, the requested time and the size.

    The product is mean^a harmonic^b requested^c size^d. Its first two factors are E[r] and
    1 / E[1 / max(r, 10)] of the run time r [s], as the estimator predicts it when the job arrives. With
    ``requested=1`` the order is SJF; with ``size=1`` as well, it is SAF.

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
    >>> order, job = Weighted(requested=1, size=0.5), Job(0, 1, 7, run_time=5, requested_time=60, nodes=4)
    >>> order.key(job)
    120.0
    """

    def __init__(
        self, mean: float = 0.0, harmonic: float = 0.0, requested: float = 0.0, size: float = 0.0
    ) -> None:
        self.mean = mean
        self.harmonic = harmonic
        self.requested = requested
        self.size = size

    def reset(self, system: System) -> None:
        """Check the exponents, and set the estimator of the run.

        Raises
        ------
        UsageError
            An exponent is not a number from -5 to 5.
        """
        for name in ("mean", "harmonic", "requested", "size"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and -5 <= value <= 5):
                raise UsageError(f"{name} of {self!r} needs an exponent from -5 to 5, found {value!r}")
        self._prediction = system.estimator.prediction

    def key(self, job: Job) -> float:
        """Return the product."""
        product = float(job.requested_time) ** self.requested * float(max(job.size, 1)) ** self.size
        if self.mean or self.harmonic:
            predicted = self._prediction(job)
            product *= max(predicted.mean, 1.0) ** self.mean * predicted.harmonic**self.harmonic
        return product


class Bounded(Weighted):
    """First come, first served with a slack that is bounded: submission + min(scale x product, bound).

    The product is that of :class:`Weighted`. A job with a large product goes behind jobs submitted later, but
    never behind one submitted more than `bound` seconds later, so no job starves. With ``scale=0`` or
    ``bound=0`` this is FCFS.

    Parameters
    ----------
    scale : float
        Factor of the product, 0 or more. Default: 50.
    bound : float
        Maximum slack [s], 0 or more. Default: 3 days.
    mean, harmonic, requested, size : float
        Exponents, as in :class:`Weighted`. Default: ``requested`` is 1, the others are 0.

    Examples
    --------
    >>> order = Bounded(scale=2, bound=100)
    >>> [order.key(Job(0, 1, 7, run_time=5, requested_time=requested, nodes=4)) for requested in (30, 60)]
    [67.0, 107.0]
    """

    def __init__(
        self,
        scale: float = 50.0,
        bound: float = 259_200.0,
        mean: float = 0.0,
        harmonic: float = 0.0,
        requested: float = 1.0,
        size: float = 0.0,
    ) -> None:
        super().__init__(mean, harmonic, requested, size)
        self.scale = scale
        self.bound = bound

    def reset(self, system: System) -> None:
        """Check the parameters, and set the estimator of the run; see :meth:`Weighted.reset`."""
        for name in ("scale", "bound"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise UsageError(f"{name} of {self!r} needs a number of at least 0, found {value!r}")
        super().reset(system)

    def key(self, job: Job) -> float:
        """Return the submission time plus the slack [s]."""
        return job.submit_time + min(self.scale * super().key(job), float(self.bound))


class KeyColumn(Order):
    """Order by given keys, one for each job of a workload: for searches over many orders of the same jobs.

    Parameters
    ----------
    keys : array of float64, shape (jobs,)
        Sort key of each row of the workload.

    Examples
    --------
    >>> KeyColumn(np.array([3.0, 1.0])).key(Job(1, 2, submit_time=7, run_time=5, requested_time=9, nodes=4))
    1.0
    """

    def __init__(self, keys: np.ndarray[Any, Any]) -> None:
        self.keys = keys

    def key(self, job: Job) -> float:
        """Return the key of the job's row."""
        return float(self.keys[job.index])
