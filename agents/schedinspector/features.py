"""SchedInspector's features: the selected job, the machine, and the cost of a rejection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from hpcsimkit.agents.spaces.shares import NEARLY_ONE, shares_of
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import DEEP
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.reservation import EASY, reserve
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.policies.dirlab.backfilling import reservation

__all__ = ["FEATURES", "InspectorFeatures", "inspected"]

INTERACTIVE = 10
"""Lower bound of the requested time [s], as in the bounded slowdown."""

TWO_DAYS = 2 * 86_400

FEATURES = ("waited", "requested time", "size", "free", "runnable", "rejected", "queue delay", "backfillable")
"""Names of the features in their order."""

PREDICTED = "predicted time"
"""Name of the last feature with predictions."""


class InspectorFeatures(Encoder):
    """SchedInspector's features, each from 0 to 1.

    ======== ================================================================================
    position meaning
    ======== ================================================================================
    0        wait time so far [`max_interval` x `max_rejections`, which is half a day]
    1        requested time [`longest_time`]
    2        size, share of the machine
    3        free share of the machine
    4        0.99999 if the job fits now, else 0.00001
    5        number of rejections so far [`max_rejections`]
    6        delay of all waiting jobs by a rejection (not with ``features="compact"``): the sum
             of `max_interval` over max(requested time, 10 s), or of `max_interval` for waits,
             relative to the same sum for `jobs` of the shortest jobs
    7        with `backfilling`: number of jobs to backfill if the job is accepted [`jobs`]
    last     with `predicted`: mean run time by the pipeline's predictor [`longest_time`]
    ======== ================================================================================

    All features but the rejections are at most 0.99999. (SchedInspector, HPDC 2022, section 3.3, as in its
    published code, which has neither position 7 nor predictions.)

    Parameters
    ----------
    longest_time : int
        Unit of requested times [s]. Published: the longest run time of the log.
    max_interval : int
        Maximum time until a rejected job is inspected again [s], as in the pipeline.
    max_rejections : int
        Maximum number of rejections per job, as in the pipeline.
    jobs : int
        Normalisation constant of numbers of jobs.
    metric : {"bounded_slowdown", "wait"}
        Metric for which the delay is computed.
    features : {"manual", "compact"}
        Feature set: all, or only the features of the job and the machine (figure 5 of the paper).
    backfilling : {"none", "easy", "published"}
        Backfilling rules of the last feature, :class:`~hpcsimkit.kernel.reservation.EASY` or
        :class:`~hpcsimkit.policies.dirlab.backfilling.PublishedEASY`; without the feature for ``none``.
    predicted : bool
        Whether there is a feature for the predicted run time. Default: False.

    Examples
    --------
    >>> InspectorFeatures().shape, InspectorFeatures(features="compact", backfilling="easy").shape
    ((7,), (7,))
    >>> InspectorFeatures(predicted=True).names[-1]
    'predicted time'
    """

    low, high = 0.0, 1.0
    reads_compiled = True

    def __init__(
        self,
        longest_time: int = TWO_DAYS,
        max_interval: int = MAX_INTERVAL,
        max_rejections: int = MAX_REJECTIONS,
        jobs: int = 128,
        metric: Literal["bounded_slowdown", "wait"] = "bounded_slowdown",
        features: Literal["manual", "compact"] = "manual",
        backfilling: Literal["none", "easy", "published"] = "none",
        predicted: bool = False,
    ) -> None:
        self.longest_time = longest_time
        self.max_interval = max_interval
        self.max_rejections = max_rejections
        self.jobs = jobs
        self.metric = metric
        self.features = features
        self.backfilling = backfilling
        self.predicted = predicted

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features by position.

        >>> InspectorFeatures(features="compact").names
        ('waited', 'requested time', 'size', 'free', 'runnable', 'rejected')
        """
        own = FEATURES[:6] if self.features == "compact" else FEATURES[:7]
        own = own if self.backfilling == "none" else (*own, FEATURES[7])
        return (*own, PREDICTED) if self.predicted else own

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (features,)."""
        return (len(self.names),)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run."""
        self._check()
        cluster, holds, limit = system.cluster, system.holds, self.max_rejections
        longest_wait = self.max_interval * limit
        shares = np.minimum(shares_of(system), NEARLY_ONE).tolist()
        times = np.minimum(system.workload.requested_time / self.longest_time, NEARLY_ONE).tolist()
        added = self._added(system)

        def encode(decision: Decision, out: Observation) -> None:
            job, free = inspected(decision), system.free
            row = job.index
            fits = system.fits(job)
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
        """Return the features that are not known when the run begins, nor read from the machine."""
        features: list[Callable[[Job], float]] = []
        if self.features == "manual":
            features.append(self._delay(system))
        if self.backfilling != "none":
            count = _backfillable_by_publication if self.backfilling == "published" else _backfillable
            features.append(lambda job: count(job, system) / self.jobs)
        if self.predicted:
            prediction = system.estimator.prediction
            features.append(lambda job: prediction(job).mean / self.longest_time)
        return features

    def _delay(self, system: System) -> Callable[[Job], float]:
        """Return a function for the cost of a rejection to all waiting jobs."""
        queue = system.queue
        if self.metric == "wait":
            return lambda job: len(queue) / self.jobs
        costs = INTERACTIVE / self.jobs / np.maximum(system.workload.requested_time, INTERACTIVE)
        cost_of = costs.tolist()

        def delay(job: Job) -> float:
            if len(queue) > DEEP:
                return float(costs.take(queue.table[0]).sum())
            return sum(map(cost_of.__getitem__, queue.rows))

        return delay


def inspected(decision: Decision) -> Job:
    """Return the job under inspection.

    Raises
    ------
    UsageError
        The decision belongs to another seat.
    """
    if decision.stage not in ("inspector", "gate") or decision.job is None:
        raise UsageError(f"a decision of the seat of an inspector or a gate is needed, found {decision!r}")
    return decision.job


def _backfillable(head: Job, system: System) -> int:
    """Return the number of waiting jobs that EASY could backfill, each alone, behind a blocked job."""
    others = [job for job in system.queue if job is not head and system.fits(job)]
    if not others or system.fits(head):
        return 0
    if system.calendar:
        easy = EASY()
        easy.reset(system)
        return sum(1 for _ in easy.fill(head, system))
    _, room = reserve(head, system)
    return sum(system.cluster.admits(job, system.estimate(job), room) for job in others)


def _backfillable_by_publication(head: Job, system: System) -> int:
    """Return the number of jobs to backfill by the published rules."""
    cluster, free, now = system.cluster, system.free, system.now
    others = [job for job in system.queue if job is not head and cluster.fits(job, free)]
    if not others or cluster.fits(head, free):
        return 0
    window = reservation(head, system) - now
    return sum(system.estimate(job) < window for job in others)
