"""Features of a job and of its user's past and running jobs, for regressions."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.predicting.history import owner

__all__ = ["FEATURES", "Features"]

DAY, WEEK = 86_400, 604_800

FEATURES = (
    "requested time [s]",
    "last run time [s]",
    "last run time but one [s]",
    "last run time but two [s]",
    "mean of the last two [s]",
    "mean of the last three [s]",
    "mean run time [s]",
    "nodes",
    "mean nodes",
    "nodes / mean nodes",
    "mean nodes of running jobs",
    "running jobs",
    "longest time running [s]",
    "total time running [s]",
    "nodes of running jobs",
    "time since the last end [s]",
    "cosine of the time of day",
    "sine of the time of day",
    "cosine of the time of week",
    "sine of the time of week",
)
"""Names of the features; all but those of the job and the clock are those of the user's jobs."""


class Features:
    """Features of jobs on arrival, computed from the past of a run.

    Where the user has no past, the requested time stands for run times, and the job's own nodes for mean
    nodes. (Gaussier, Glesser, Reis & Trystram, SC 2015, table 2.)

    Parameters
    ----------
    system : System
        The run.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._past: defaultdict[Hashable, _Past] = defaultdict(_Past)

    def observe(self, job: Job, took: int) -> None:
        """Add a job that has just ended after `took` seconds to the past of its user."""
        past = self._past[owner(job)]
        past.last.appendleft(took)
        past.jobs += 1
        past.total += took
        past.nodes += job.nodes
        past.ended_at = self._system.now

    def of(self, job: Job) -> NDArray[np.float64]:
        """Return the :data:`FEATURES` of a job that arrives now, float64, shape (20,)."""
        who, now = owner(job), self._system.now
        past = self._past.get(who, NOTHING)
        last = [*past.last, *[job.requested_time] * (3 - len(past.last))]
        mean = past.total / past.jobs if past.jobs else job.requested_time
        mean_nodes = past.nodes / past.jobs if past.jobs else job.nodes
        return np.array(
            [
                job.requested_time,
                *last,
                sum(last[:2]) / 2,
                sum(last) / 3,
                mean,
                job.nodes,
                mean_nodes,
                job.nodes / mean_nodes,
                *self._running(who, now),
                now - past.ended_at if past.jobs else WEEK,
                *_circle(now / DAY),
                *_circle(now / WEEK),
            ]
        )

    def _running(self, who: Hashable, now: int) -> tuple[float, ...]:
        """Return the features of a user's running jobs."""
        jobs = [job for job in self._system.running_jobs() if owner(job) == who]
        running = [now - self._system.start_time(job) for job in jobs]
        nodes = sum(job.nodes for job in jobs)
        return nodes / max(len(jobs), 1), len(jobs), max(running, default=0), sum(running), nodes


class _Past:
    """The ended jobs of a user."""

    def __init__(self) -> None:
        self.last: deque[int] = deque(maxlen=3)
        self.jobs = self.total = self.nodes = self.ended_at = 0


NOTHING = _Past()


def _circle(turns: float) -> tuple[float, float]:
    return math.cos(2 * math.pi * turns), math.sin(2 * math.pi * turns)
