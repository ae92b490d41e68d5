"""Rewards that add up to a metric over an episode, and the rewards of published agents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.errors import UsageError, lacking
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.objectives import EQUAL_WEIGHTS, capability, capacity
from hpcsimkit.results.metrics import METRICS, measure
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

__all__ = [
    "Capability",
    "Capacity",
    "FinalScore",
    "Improvement",
    "MinusMeanBoundedSlowdown",
    "MinusMeanWait",
    "Utilisation",
]

KINDS = ("native", "percentage", "win-loss", "bounded")
"""Reward types of :class:`Improvement`."""


class MinusMeanWait(Reward):
    """Minus the time that jobs have waited since the last decision [s], divided by the number of jobs.

    The sum over an episode is exactly minus the mean wait time [s].

    Parameters
    ----------
    scale : float
        Unit of time [s].
    """

    reads_compiled = True

    def __init__(self, scale: Positive = 1.0) -> None:
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Reset the sums."""
        self._since = system.now
        self._waited = self._waiting = 0

    def on_submit(self, job: Job, system: System) -> None:
        """Count one more waiting job."""
        self._count(system.now)
        self._waiting += 1

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Count one waiting job fewer."""
        self._count(system.now)
        self._waiting -= 1

    def on_reject(self, job: Job, system: System) -> None:
        """Count one waiting job fewer."""
        self._count(system.now)
        self._waiting -= 1

    def _count(self, now: int) -> None:
        self._waited += self._waiting * (now - self._since)
        self._since = now

    def take(self, system: System) -> float:
        """Return minus the wait time since the last call."""
        self._count(system.now)
        waited, self._waited = self._waited, 0
        return -waited / (len(system.workload) * self.scale)


class MinusMeanBoundedSlowdown(Reward):
    """Minus the bounded slowdown of each job that ends, divided by the number of jobs.

    The sum over an episode is exactly minus the mean bounded slowdown. It reads run times, as rewards may.

    Parameters
    ----------
    threshold : float
        Lower bound of the run time in the denominator [s].
    """

    reads_compiled = True

    def __init__(self, threshold: Positive = 10.0) -> None:
        self.threshold = threshold

    def on_begin(self, system: System) -> None:
        """Reset the sum."""
        self._sum, self._jobs = 0.0, len(system.workload)

    def on_end(self, job: Job, system: System) -> None:
        """Add the slowdown of a job that has ended; its actual run time is known only now."""
        run_time = system.now - system.start_time(job)
        response = system.now - job.submit_time
        self._sum += max(1.0, response / max(run_time, self.threshold))

    def take(self, system: System) -> float:
        """Return minus the slowdowns since the last call."""
        total, self._sum = self._sum, 0.0
        return -total / self._jobs


class Utilisation(Reward):
    """Busy node time since the last decision, as a share of all node time within the span of submissions.

    The sum over an episode is the utilisation times the makespan, divided by the span of submissions; to
    maximise it means to finish work early.

    Parameters
    ----------
    scale : float
        Total reward of a fully busy machine.
    """

    reads_compiled = True

    def __init__(self, scale: Positive = 1.0) -> None:
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Reset the sums."""
        self._since = system.now
        self._busy = 0
        self._area = 0

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Add the nodes of a job that starts."""
        self._count(system.now)
        self._busy += system.cluster.main_amount(job, allocation)

    def on_end(self, job: Job, system: System) -> None:
        """Subtract the nodes of a job that has ended."""
        self._count(system.now)
        self._busy -= system.cluster.main_amount(job, system.given(job.index))

    def _count(self, now: int) -> None:
        self._area += self._busy * (now - self._since)
        self._since = now

    def take(self, system: System) -> float:
        """Return the busy share since the last call."""
        self._count(system.now)
        area, self._area = self._area, 0
        return self.scale * area / (system.cluster.size * max(system.workload.span, 1))


class OfChoices(Reward):
    """Base class of rewards per chosen job, at its start or, with `reserved`, at its reservation.

    Parameters
    ----------
    reserved : bool
        Whether the reward of a job with a reservation comes with the reservation instead of the start: for
        seats that choose the job to reserve for.
    """

    def __init__(self, *, reserved: bool = False) -> None:
        self.reserved = reserved

    def pay(self, job: Job, system: System) -> float:
        """Return the reward of choosing a job; a job that starts has already left the queue."""
        raise lacking(self, "a method pay(job, system)")

    def on_begin(self, system: System) -> None:
        """Reset the sum."""
        self._sum = 0.0
        self._paid = set[int]()

    def on_block(self, job: Job, system: System) -> None:
        """Add the reward of a reservation, once per job."""
        if self.reserved and job.index not in self._paid:
            self._paid.add(job.index)
            self._sum += self.pay(job, system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Add the reward of a start."""
        if job.index not in self._paid:
            self._sum += self.pay(job, system)

    def take(self, system: System) -> float:
        """Return the rewards of the choices since the last call."""
        earned, self._sum = self._sum, 0.0
        return earned


class Capability(OfChoices):
    """DRAS's equation 1, for capability computing (large jobs): a reward for age, size and utilisation.

    The reward of a start is ``w1 wait / longest wait + w2 nodes / all nodes + w3 nodes in use / all nodes``
    at that moment, in [0, 1] for weights that add up to 1. (Fan et al., TPDS 2022, section 3.3.)

    Parameters
    ----------
    weights : tuple of float
        Weights w1 of the wait as a share of the longest wait, w2 of the job's nodes as a share of all, and w3
        of the share of nodes in use; a third each by default.
    reserved : bool
        Whether the reward of a job with a reservation comes with the reservation, for the nodes then in
        use, instead of the start: for seats that choose the job to reserve for.
    """

    def __init__(
        self, weights: tuple[float, float, float] = EQUAL_WEIGHTS, *, reserved: bool = False
    ) -> None:
        self.weights = weights
        self.reserved = reserved

    def on_begin(self, system: System) -> None:
        """Reset the sums."""
        super().on_begin(system)
        self._used = 0

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Add the nodes of a job that starts, and its reward."""
        self._used += system.cluster.main_amount(job, allocation)
        super().on_start(job, allocation, system)

    def on_end(self, job: Job, system: System) -> None:
        """Subtract the nodes of a job that has ended."""
        self._used -= system.cluster.main_amount(job, system.given(job.index))

    def pay(self, job: Job, system: System) -> float:
        """Return equation 1 for a job, relative to the jobs that wait."""
        cluster, now = system.cluster, system.now
        waits = [now - job.submit_time]
        if len(system.queue):
            waits.append(now - min(system.queue.oldest(1)[0].submit_time, job.submit_time))
        nodes = [cluster.asked(job)] * len(waits)
        return capability(waits, nodes, [0], self._used, cluster.size, weights=self.weights)


class Capacity(OfChoices):
    """DRAS's equation 2, for capacity computing (many small jobs): minus the mean of 1 / t over the queue.

    t is the requested time [s] of each job that waits when one has started. (Fan et al., TPDS 2022,
    section 3.3.) Parameters are those of :class:`OfChoices`.
    """

    def pay(self, job: Job, system: System) -> float:
        """Return minus the mean of 1 / requested time of the waiting jobs."""
        return capacity([each.requested_time for each in system.queue])


class OfMetric(Reward):
    """Base class of rewards by a metric at the end of the episode, 0 before."""

    metric: str

    def on_begin(self, system: System) -> None:
        """Check the metric, and reset the reward."""
        if self.metric not in METRICS or METRICS[self.metric].direction == "none":
            raise UsageError(f"a metric with a direction is needed, found {self.metric!r}")
        self._earned = 0.0

    def on_finish(self, system: System) -> None:
        """Compute the metric."""
        self._earned = self.worth(self._value(_outcome(system)))

    @abstractmethod
    def worth(self, value: float) -> float:
        """Return the reward of a metric value in this episode."""

    def take(self, system: System) -> float:
        """Return the reward at the end, 0 before."""
        earned, self._earned = self._earned, 0.0
        return earned

    def _value(self, result: Result) -> float:
        value: Mapping[str, float] = measure(result, names=[self.metric])
        return value[self.metric]


class FinalScore(OfMetric):
    """A metric at the end of the episode, 0 before; negated if lower is better. (RLScheduler, SC 2020.)

    Parameters
    ----------
    metric : str
        Name of a metric in :data:`~hpcsimkit.results.metrics.METRICS` that has a direction.

    Raises
    ------
    UsageError
        When a run begins: the metric is unknown or has no direction.
    """

    reads_compiled = True

    def __init__(self, metric: str = "mean_bounded_slowdown") -> None:
        self.metric = metric

    def worth(self, value: float) -> float:
        """Return the metric, negated if lower is better."""
        return value if METRICS[self.metric].direction == "higher" else -value


class Improvement(OfMetric):
    """Improvement of a metric over a baseline at the end of the episode, 0 before.

    The baseline runs once per distinct episode, on the same jobs, with the same rules and the same seed.

    Parameters
    ----------
    baseline : Policy
        Baseline without open seats.
    metric : str
        Name of a metric in :data:`~hpcsimkit.results.metrics.METRICS` that has a direction.
    kind : {"native", "percentage", "win-loss", "bounded"}
        Reward type. ``native``: the difference; ``percentage``: the difference as a share of the baseline's
        value; ``win-loss``: 1, 0 or -1 for better, equal or worse (the three rewards of SchedInspector, HPDC
        2022, section 3.4). ``bounded``, as in its code: the difference as a share of the larger value, at
        least 1, hence in [-1, 1].

    Raises
    ------
    UsageError
        When a run begins: the metric or the reward type is unknown.
    """

    reads_compiled = True

    def __init__(
        self,
        baseline: Policy,
        metric: str = "mean_bounded_slowdown",
        kind: Literal["native", "percentage", "win-loss", "bounded"] = "percentage",
    ) -> None:
        self.baseline = baseline
        self.metric = metric
        self.kind = kind

    def on_begin(self, system: System) -> None:
        """Run the baseline, unless its result for these jobs is known."""
        if self.kind not in KINDS:
            raise UsageError(f"kind needs one of {', '.join(KINDS)}, found {self.kind!r}")
        super().on_begin(system)
        known: dict[Any, float] = self.__dict__.setdefault("_known", {})
        key = (
            system.workload.hash,
            repr(system.cluster),
            repr(system.service_time),
            system.seed,
            system.stands_still,
        )
        if key not in known:
            known[key] = self._value(system.another(self.baseline).run())
        self._base = known[key]

    def worth(self, value: float) -> float:
        """Return the reward of a metric value in this episode."""
        better = self._base - value
        if METRICS[self.metric].direction == "higher":
            better = -better
        if self.kind == "percentage":
            return better / abs(self._base) if self._base else float((better > 0) - (better < 0))
        if self.kind == "win-loss":
            return float((better > 0) - (better < 0))
        if self.kind == "bounded":
            return better / max(abs(self._base), abs(value), 1.0)
        return better


def _outcome(system: System) -> Result:
    """Return the result of a finished run, as far as metrics need it."""
    ledger = system.ledger
    return Result(
        workload=system.workload,
        policy="",
        size=system.cluster.size,
        submit_time=ledger.submit_time,
        start_time=ledger.start_time,
        end_time=ledger.end_time,
        mode=ledger.mode,
        killed=np.zeros(len(system.workload), dtype=np.bool_),
        placements=Placements.of(system.cluster, system.allocations, system.events),
    )
