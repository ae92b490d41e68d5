"""What a learner is paid: rewards that add up to metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.learning import Reward
from hpcsimkit.metrics import METRICS, evaluate
from hpcsimkit.placements import Placements
from hpcsimkit.policies.objectives import EQUAL_WEIGHTS, capability, capacity
from hpcsimkit.policy import Policy
from hpcsimkit.result import Result
from hpcsimkit.system import System

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
"""How an improvement may be paid."""


class MinusMeanWait(Reward):
    """Minus the seconds that jobs have waited since the last decision, over the number of jobs.

    The sum over an episode is exactly minus the mean wait time [s].

    Parameters
    ----------
    scale : float
        Seconds that count as one.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Nobody waits yet."""
        self._since = system.now
        self._waited = self._waiting = 0

    def on_submit(self, job: Job, system: System) -> None:
        """One more waits."""
        self._count(system.now)
        self._waiting += 1

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """One fewer waits."""
        self._count(system.now)
        self._waiting -= 1

    def on_reject(self, job: Job, system: System) -> None:
        """One fewer waits."""
        self._count(system.now)
        self._waiting -= 1

    def _count(self, now: int) -> None:
        self._waited += self._waiting * (now - self._since)
        self._since = now

    def take(self, system: System) -> float:
        """Return minus the waiting since it was last asked."""
        self._count(system.now)
        waited, self._waited = self._waited, 0
        return -waited / (len(system.workload) * self.scale)


class MinusMeanBoundedSlowdown(Reward):
    """Minus the bounded slowdown of each job, when it ends, over the number of jobs.

    The sum over an episode is exactly minus the mean bounded slowdown. It reads run times, as rewards may.

    Parameters
    ----------
    threshold : float
        Run times below it count as it [s].
    """

    def __init__(self, threshold: float = 10.0) -> None:
        self.threshold = threshold

    def on_begin(self, system: System) -> None:
        """Nobody has ended yet."""
        self._sum = 0.0

    def on_end(self, job: Job, system: System) -> None:
        """Count a job when it has ended: only then its run time is what it really was."""
        run_time = system.now - system.start_time(job)
        response = system.now - job.submit_time
        self._sum += max(1.0, response / max(run_time, self.threshold))

    def take(self, system: System) -> float:
        """Return minus the slowdowns since it was last asked."""
        total, self._sum = self._sum, 0.0
        return -total / len(system.workload)


class Utilisation(Reward):
    """What was busy since the last decision, as a share of all there is from first to last.

    The sum over an episode is the utilisation times the makespan over the span of submissions; maximising
    it means finishing work early.

    Parameters
    ----------
    scale : float
        What a wholly busy machine is paid in all.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def on_begin(self, system: System) -> None:
        """Nothing is busy yet."""
        self._since = system.now
        self._busy = 0
        self._area = 0

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """More is busy."""
        self._count(system.now)
        self._busy += system.cluster.main_amount(job, allocation)

    def on_end(self, job: Job, system: System) -> None:
        """Less is busy."""
        self._count(system.now)
        self._busy -= system.cluster.main_amount(job, system.given(job.index))

    def _count(self, now: int) -> None:
        self._area += self._busy * (now - self._since)
        self._since = now

    def take(self, system: System) -> float:
        """Return the busy share since it was last asked."""
        self._count(system.now)
        area, self._area = self._area, 0
        return self.scale * area / (system.cluster.size * max(system.workload.span, 1))


class OfChoices(Reward):
    """Pays for each job that is chosen: when it starts or, if `reserved`, when it gets a reservation.

    Parameters
    ----------
    reserved : bool
        A job that gets a reservation is paid for then, and not when it starts: for seats that are asked who
        gets it.
    """

    def __init__(self, *, reserved: bool = False) -> None:
        self.reserved = reserved

    def pay(self, job: Job, system: System) -> float:
        """Return what the choice of a job is worth now; who starts has left the queue already."""
        raise NotImplementedError(f"{type(self).__name__} needs a method pay(job, system)")

    def on_begin(self, system: System) -> None:
        """Nobody was chosen yet."""
        self._sum = 0.0
        self._paid = set[int]()

    def on_block(self, job: Job, system: System) -> None:
        """Pay a reservation, once."""
        if self.reserved and job.index not in self._paid:
            self._paid.add(job.index)
            self._sum += self.pay(job, system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Pay a start."""
        if job.index not in self._paid:
            self._sum += self.pay(job, system)

    def take(self, system: System) -> float:
        """Return what choices have earned since it was last asked."""
        earned, self._sum = self._sum, 0.0
        return earned


class Capability(OfChoices):
    """DRAS's equation 1, for machines that run large jobs: each start is paid by age, size and use.

    For every job that starts, ``w1 its wait / the longest wait + w2 its nodes / all + w3 nodes in use / all``
    at that moment, in [0, 1] for weights that add up to 1. (Fan et al., TPDS 2022, section 3.3.)

    Parameters
    ----------
    weights : tuple of float
        w1 multiplies the job's wait as a share of the longest wait, w2 its nodes as a share of all, w3 the
        share of nodes in use; a third each by default.
    reserved : bool
        A job that gets a reservation is paid for then, with the nodes that are in use, and not when it
        starts: for seats that are asked who gets it.
    """

    def __init__(
        self, weights: tuple[float, float, float] = EQUAL_WEIGHTS, *, reserved: bool = False
    ) -> None:  # fmt: skip
        self.weights = weights
        self.reserved = reserved

    def on_begin(self, system: System) -> None:
        """Nothing runs yet."""
        super().on_begin(system)
        self._used = 0

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """More is in use, and a start is paid."""
        self._used += system.cluster.main_amount(job, allocation)
        super().on_start(job, allocation, system)

    def on_end(self, job: Job, system: System) -> None:
        """Less is in use."""
        self._used -= system.cluster.main_amount(job, system.given(job.index))

    def pay(self, job: Job, system: System) -> float:
        """Return what equation 1 gives a job, compared with those that wait."""
        cluster, now = system.cluster, system.now
        waits = [now - job.submit_time]
        if len(system.queue):
            waits.append(now - min(system.queue.oldest(1)[0].submit_time, job.submit_time))
        nodes = [cluster.asked(job)] * len(waits)
        return capability(waits, nodes, [0], self._used, cluster.size, weights=self.weights)


class Capacity(OfChoices):
    """DRAS's equation 2, for machines that run many small jobs: minus the mean of 1 / t over who waits.

    t is the requested time [s], of the jobs that wait when one has started. (Fan et al., TPDS 2022,
    section 3.3.) Parameters are those of :class:`OfChoices`.
    """

    def pay(self, job: Job, system: System) -> float:
        """Return minus the mean of 1 / requested time of the jobs that wait now."""
        return capacity([each.requested_time for each in system.queue])


class FinalScore(Reward):
    """Nothing until the end, and then a metric: minus it, if lower is better. (RLScheduler, SC 2020.)

    Parameters
    ----------
    metric : str
        One of :data:`~hpcsimkit.metrics.METRICS`, with a direction.

    Raises
    ------
    UsageError
        When a run begins: there is no such metric.
    """

    def __init__(self, metric: str = "mean_bounded_slowdown") -> None:
        self.metric = metric

    def on_begin(self, system: System) -> None:
        """Nothing is earned yet."""
        _check_metric(self.metric)
        self._earned = 0.0

    def on_finish(self, system: System) -> None:
        """Measure."""
        value = evaluate(_outcome(system), names=[self.metric])[self.metric]
        self._earned = value if METRICS[self.metric].direction == "higher" else -value

    def take(self, system: System) -> float:
        """Return the score at the end, 0 before."""
        earned, self._earned = self._earned, 0.0
        return earned


class Improvement(Reward):
    """Nothing until the end, and then how much better a metric is than under a baseline.

    The baseline runs once for each episode met, on the same jobs by the same rules with the same seed.

    Parameters
    ----------
    baseline : Policy
        Without open seats.
    metric : str
        One of :data:`~hpcsimkit.metrics.METRICS`, with a direction.
    kind : {"native", "percentage", "win-loss", "bounded"}
        The difference, the difference as a share of the baseline's, or 1, 0 and -1 for better, equal and
        worse. (The three rewards of SchedInspector, HPDC 2022, section 3.4.) ``bounded`` is what its code
        has: the difference as a share of the larger one, of 1 at least, so that it lies between -1 and 1.

    Raises
    ------
    UsageError
        When a run begins: a parameter is not understood.
    """

    def __init__(
        self, baseline: Policy, metric: str = "mean_bounded_slowdown",
        kind: Literal["native", "percentage", "win-loss", "bounded"] = "percentage",
    ) -> None:  # fmt: skip
        self.baseline = baseline
        self.metric = metric
        self.kind = kind

    def on_begin(self, system: System) -> None:
        """Let the baseline run, unless it has run on these jobs before."""
        if self.kind not in KINDS:
            raise UsageError(f"kind needs one of {', '.join(KINDS)}, found {self.kind!r}")
        _check_metric(self.metric)
        known: dict[Any, float] = self.__dict__.setdefault("_known", {})
        key = (system.workload.hash, repr(system.cluster), repr(system.service_time), system.seed,
               system.stands_still)  # fmt: skip
        if key not in known:
            known[key] = self._value(system.another(self.baseline).run())
        self._base, self._earned = known[key], 0.0

    def on_finish(self, system: System) -> None:
        """Compare."""
        self._earned = self.worth(self._value(_outcome(system)))

    def worth(self, value: float) -> float:
        """Return what is paid for a value of the metric in this episode."""
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

    def take(self, system: System) -> float:
        """Return the improvement at the end, 0 before."""
        earned, self._earned = self._earned, 0.0
        return earned

    def _value(self, result: Result) -> float:
        value: Mapping[str, float] = evaluate(result, names=[self.metric])
        return value[self.metric]


def _check_metric(name: str) -> None:
    if name not in METRICS or METRICS[name].direction == "none":
        raise UsageError(f"a metric with a direction is needed, found {name!r}")


def _outcome(system: System) -> Result:
    """Return the outcome of a run that is over, as far as metrics need it."""
    return Result(
        workload=system.workload,
        policy="",
        size=system.cluster.size,
        submit_time=system.column("submit_time"),
        start_time=np.array(system.starts, dtype=np.int64),
        end_time=np.array(system.finishes, dtype=np.int64),
        mode=np.frombuffer(bytes(system.modes), dtype=np.uint8),
        killed=np.zeros(len(system.workload), dtype=np.bool_),
        placements=Placements.of(system.cluster, system.allocations, system.events),
    )
