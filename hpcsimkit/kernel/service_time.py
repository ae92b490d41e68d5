"""Locality models: the run time of a job as a function of its allocation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hpcsimkit.cluster.opaque import Allocation, AnyCluster
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.parameters import Parameters

__all__ = ["Penalty", "ServiceTime", "as_service_time"]

Penalty = Callable[[Job, int, Allocation, AnyCluster], float]
"""``penalty(job, seconds, allocation, cluster)``; see :meth:`ServiceTime.penalty`."""


_NUMBER = (int, float, np.integer, np.floating)  # a tuple: a union of types would be rebuilt for each job


class ServiceTime(Parameters):
    """Locality model: increase of a job's run time due to its allocation; zero in this base class.

    To define a model, override :meth:`penalty`, or pass a function with the same arguments.

    Examples
    --------
    >>> class FarApart(ServiceTime):
    ...     def penalty(self, job, seconds, allocation, cluster):
    ...         return 0.1 * seconds * (len(allocation.machines) - 1)
    >>> from hpcsimkit.cluster.allocation import Allocation
    >>> job = Job(index=0, id=1, submit_time=0, run_time=50, requested_time=60, nodes=2)
    >>> FarApart().actual(job, Allocation([0, 3], [[1], [1]]), None)
    55
    """

    def penalty(self, job: Job, seconds: int, allocation: Allocation, cluster: AnyCluster) -> float:
        """Return the increase [s] in the run time of a job that takes `seconds` without penalty.

        It is called with the job's run time for the actual penalty, once at the job's start, and with the
        requested time for the penalty that a policy may expect. It must not read ``job.run_time`` itself and
        must be deterministic: a model with random numbers creates its generator from the job,
        ``default_rng([seed, job.id])``, so that runs are reproducible. The penalty may be negative, but the
        resulting time must be positive.
        """
        return 0.0

    def expected(self, job: Job, allocation: Allocation, cluster: AnyCluster) -> float:
        """Return the expected penalty based on the requested time [s], for use by policies."""
        return self._checked(job, job.requested_time, allocation, cluster)

    def actual(self, job: Job, allocation: Allocation, cluster: AnyCluster) -> int:
        """Return the actual run time [s]: whole seconds, at least 1 s, except for a run time of 0."""
        if not job.run_time:
            return 0
        return max(1, round(job.run_time + self._checked(job, job.run_time, allocation, cluster)))

    def _checked(self, job: Job, seconds: int, allocation: Allocation, cluster: AnyCluster) -> float:
        penalty = self.penalty(job, seconds, allocation, cluster)
        if not (isinstance(penalty, _NUMBER) and 0 < seconds + penalty <= TIME_LIMIT):
            raise ScheduleError(
                f"{self!r} for job {job.id}: a penalty needs to be a number of seconds, more than {-seconds} "
                f"where the job takes {seconds} s and up to 10^11 s with it, found {penalty!r}"
            )
        return float(penalty)


class _Function(ServiceTime):
    """A model defined by a function."""

    def __init__(self, function: Penalty) -> None:
        self.function = function

    def penalty(self, job: Job, seconds: int, allocation: Allocation, cluster: AnyCluster) -> float:
        return self.function(job, seconds, allocation, cluster)

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", repr(self.function))


def as_service_time(model: ServiceTime | Penalty | None) -> ServiceTime | None:
    """Return a model for a model or a function; None stays None.

    Raises
    ------
    UsageError
        The argument is neither a model nor a function.
    """
    if model is None or isinstance(model, ServiceTime):
        return model
    if callable(model) and not isinstance(model, type):
        return _Function(model)
    raise UsageError(f"service_time needs a ServiceTime or a function, found {model!r}")
