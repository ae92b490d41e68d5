"""What an inspector sees: the selected job, the machine, and what holding the job would cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster import Nodes
from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.jobqueue import DEEP
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.policies.dirlab.backfilling import reservation
from hpcsimkit.reservation import reserve
from hpcsimkit.system import System

__all__ = ["FEATURES", "InspectorFeatures", "inspected", "shares_of"]

NEARLY_ONE = 1 - 1e-5
"""Largest value of all features but the rejections."""

INTERACTIVE = 10
"""Requested times below it count as it [s], as in the bounded slowdown."""

TWO_DAYS = 2 * 86_400

FEATURES = ("waited", "requested time", "size", "free", "runnable", "rejected", "queue delay", "backfillable")
"""Names of the features in their order."""


class InspectorFeatures(Encoder):
    """SchedInspector's features, each from 0 to 1.

    ======== ================================================================================
    position what
    ======== ================================================================================
    0        waited so far [`max_interval` x `max_rejections`, which is half a day]
    1        requested time [`longest_time`]
    2        size, share of the machine
    3        share of the machine that is free
    4        fits now
    5        how often it was rejected [`max_rejections`]
    6        how much a rejection delays all that wait (not with ``features="compact"``): the sum
             of `max_interval` over max(requested time, 10 s), or for the wait of `max_interval`;
             as a share of what it is for `jobs` of the shortest ones
    7        with `backfilling`: how many could be backfilled if the job is accepted [`jobs`]
    ======== ================================================================================

    All but the rejections are 0.99999 at most; *fits now* is that or 0.00001. (SchedInspector, HPDC 2022,
    section 3.3, as its published code has them; that has no position 7.)

    Parameters
    ----------
    longest_time : int
        Requested time that counts as one [s]. Published: the longest run time of the log.
    max_interval : int
        After so many seconds at the latest a rejected job is asked about again [s], as in the pipeline.
    max_rejections : int
        How often a job is rejected at most, as in the pipeline.
    jobs : int
        Waiting jobs that count as one.
    metric : {"bounded_slowdown", "wait"}
        What the delay is reckoned for.
    features : {"manual", "compact"}
        All, or only those of the job and the machine (figure 5 of the paper).
    backfilling : {"none", "easy", "published"}
        Whether the last feature is there, and by whose rules: :class:`~hpcsimkit.reservation.EASY` or
        :class:`~hpcsimkit.policies.dirlab.backfilling.PublishedEASY`.

    Examples
    --------
    >>> InspectorFeatures().shape, InspectorFeatures(features="compact", backfilling="easy").shape
    ((7,), (7,))
    """

    low, high = 0.0, 1.0

    def __init__(
        self, longest_time: int = TWO_DAYS, max_interval: int = MAX_INTERVAL,
        max_rejections: int = MAX_REJECTIONS, jobs: int = 128,
        metric: Literal["bounded_slowdown", "wait"] = "bounded_slowdown",
        features: Literal["manual", "compact"] = "manual",
        backfilling: Literal["none", "easy", "published"] = "none",
    ) -> None:  # fmt: skip
        self.longest_time = longest_time
        self.max_interval = max_interval
        self.max_rejections = max_rejections
        self.jobs = jobs
        self.metric = metric
        self.features = features
        self.backfilling = backfilling

    @property
    def names(self) -> tuple[str, ...]:
        """What stands at each position.

        >>> InspectorFeatures(features="compact").names
        ('waited', 'requested time', 'size', 'free', 'runnable', 'rejected')
        """
        own = FEATURES[:6] if self.features == "compact" else FEATURES[:7]
        return own if self.backfilling == "none" else (*own, FEATURES[7])

    @property
    def shape(self) -> tuple[int, ...]:
        """(features,)."""
        return (len(self.names),)

    def bind(self, system: System) -> Encode:
        """Lay out what never changes of all jobs, once for the run."""
        self._check()
        cluster, holds, limit = system.cluster, system.holds, self.max_rejections
        longest_wait = self.max_interval * limit
        shares = np.minimum(shares_of(system), NEARLY_ONE).tolist()
        times = np.minimum(system.workload.requested_time / self.longest_time, NEARLY_ONE).tolist()
        added = self._added(system)

        def encode(decision: Decision, out: Observation) -> None:
            job, free = inspected(decision), system.free
            row = job.index
            fits = cluster.fits(job, free)
            out[:] = (
                min((system.now - job.submit_time) / longest_wait, NEARLY_ONE),
                times[row],
                shares[row],
                min(cluster.share(free), NEARLY_ONE),
                NEARLY_ONE if fits else 1 - NEARLY_ONE,
                min(holds.get(row, 0) / limit, 1.0),
                *[min(of_queue(job), NEARLY_ONE) for of_queue in added],
            )

        return encode

    def _check(self) -> None:
        for name in ("longest_time", "max_interval", "max_rejections", "jobs"):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= 1):
                raise UsageError(f"{name} needs a whole number of at least 1, found {value!r}")

    def _added(self, system: System) -> list[Callable[[Job], float]]:
        """Return what is reckoned over the whole queue."""
        features: list[Callable[[Job], float]] = []
        if self.features == "manual":
            features.append(self._delay(system))
        if self.backfilling != "none":
            count = _backfillable_by_publication if self.backfilling == "published" else _backfillable
            features.append(lambda job: count(job, system) / self.jobs)
        return features

    def _delay(self, system: System) -> Callable[[Job], float]:
        """Return what a rejection costs all that wait."""
        queue = system.queue
        if self.metric == "wait":
            return lambda job: len(queue) / self.jobs
        costs = INTERACTIVE / self.jobs / np.maximum(system.workload.requested_time, INTERACTIVE)
        cost_of = costs.tolist()

        def delay(job: Job) -> float:
            if len(queue) > DEEP:
                return float(costs.take(queue.table[0]).sum())
            return sum([cost_of[each.index] for each in queue])

        return delay


def inspected(decision: Decision) -> Job:
    """Return the job that an inspector is asked about.

    Raises
    ------
    UsageError
        It is another seat that is asked.
    """
    if decision.stage != "inspector" or decision.job is None:
        raise UsageError(f"a decision of the inspector's seat is needed, found {decision!r}")
    return decision.job


def shares_of(system: System) -> NDArray[np.float64]:
    """Return the size of each job as a share of the machine, float64, shape (jobs,).

    Where jobs take whole nodes of several processors, it is their processors that count.
    """
    workload, cluster = system.workload, system.cluster
    processors = workload.header.get("MaxProcs")
    if isinstance(cluster, Nodes) and "cpus" in workload.resources and processors:
        return workload.size / int(processors)
    asked: Sequence[int] = [cluster.asked(job) for job in system.jobs]
    return np.array(asked, dtype=np.float64) / cluster.size


def _backfillable(head: Job, system: System) -> int:
    """Return how many waiting jobs EASY could start behind a job that does not fit, each for itself."""
    cluster, free = system.cluster, system.free
    others = [job for job in system.queue if job is not head and cluster.fits(job, free)]
    if not others or cluster.fits(head, free):
        return 0
    _, room = reserve(head, system)
    return sum(cluster.admits(job, system.estimate(job), room) for job in others)


def _backfillable_by_publication(head: Job, system: System) -> int:
    """Return the same by the published rules."""
    cluster, free, now = system.cluster, system.free, system.now
    others = [job for job in system.queue if job is not head and cluster.fits(job, free)]
    if not others or cluster.fits(head, free):
        return 0
    window = reservation(head, system) - now
    return sum(system.estimate(job) < window for job in others)
