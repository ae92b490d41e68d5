"""Where a job runs changes how long it takes: from (job, allocation) to the time it really needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hpcsimkit.cluster import Allocation, Cluster
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.job import Job
from hpcsimkit.policy import Parameters

__all__ = ["Penalty", "ServiceTime", "as_service_time"]

Penalty = Callable[[Job, int, Allocation, Cluster], float]
"""``penalty(job, seconds, allocation, cluster)``; see :meth:`ServiceTime.penalty`."""


_NUMBER = (int, float, np.number)  # a union of types would be made anew for each job


class ServiceTime(Parameters):
    """How much longer than at its best a job takes where it was placed: not at all, but for a subclass.

    A model of your own overrides :meth:`penalty`, or is just a function with these arguments.

    Examples
    --------
    >>> class FarApart(ServiceTime):
    ...     def penalty(self, job, seconds, allocation, cluster):
    ...         return 0.1 * seconds * (len(allocation.machines) - 1)
    >>> from hpcsimkit.allocation import Allocation
    >>> job = Job(index=0, id=1, submit_time=0, run_time=50, requested_time=60, nodes=2)
    >>> FarApart().actual(job, Allocation([0, 3], [[1], [1]]), None)
    55
    """

    def penalty(self, job: Job, seconds: int, allocation: Allocation, cluster: Cluster) -> float:
        """Return what an allocation adds to a job that takes `seconds` without [s].

        It is asked with the job's run time for what really happens, and with its requested time for what a
        policy may expect; it must not read ``job.run_time`` itself, and answers equal questions alike.
        """
        return 0.0

    def expected(self, job: Job, allocation: Allocation, cluster: Cluster) -> float:
        """Return the penalty to be expected by the requested time [s]: what policies may ask."""
        return self._checked(job, job.requested_time, allocation, cluster)

    def actual(self, job: Job, allocation: Allocation, cluster: Cluster) -> int:
        """Return how long the job really takes [s]: whole seconds, at least 1 s, but for a run time of 0."""
        if not job.run_time:
            return 0
        return max(1, round(job.run_time + self._checked(job, job.run_time, allocation, cluster)))

    def _checked(self, job: Job, seconds: int, allocation: Allocation, cluster: Cluster) -> float:
        penalty = self.penalty(job, seconds, allocation, cluster)
        if not (isinstance(penalty, _NUMBER) and 0 <= seconds + float(penalty) < float("inf")):
            raise ScheduleError(
                f"{self!r} for job {job.id}: a penalty needs to be a number of seconds, at least {-seconds} "
                f"where the job takes {seconds} s, found {penalty!r}"
            )
        return float(penalty)


class _Function(ServiceTime):
    """A model made of a function."""

    def __init__(self, function: Penalty) -> None:
        self.function = function

    def penalty(self, job: Job, seconds: int, allocation: Allocation, cluster: Cluster) -> float:
        return self.function(job, seconds, allocation, cluster)

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", repr(self.function))


def as_service_time(model: ServiceTime | Penalty | None) -> ServiceTime | None:
    """Return the model meant by a model or by a function; None stays None.

    Raises
    ------
    UsageError
        It is neither.
    """
    if model is None or isinstance(model, ServiceTime):
        return model
    if callable(model) and not isinstance(model, type):
        return _Function(model)
    raise UsageError(f"service_time needs a ServiceTime or a function, found {model!r}")
