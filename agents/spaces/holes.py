"""Encoder of the tester's seat: the job in question, its hole, and how long the jobs of its user ran."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict

import numpy as np

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.agents.spaces.shares import shares_of
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.holes import longest
from hpcsimkit.kernel.system import System

__all__ = ["JobAndHole"]

MANY = 16
"""Number of ended jobs from which a user counts as known."""


class JobAndHole(Encoder):
    """A job that may be tested, the hole that reservations leave for it, and the state of the cluster.

    ======== =========== ==========================================================
    position range       meaning
    ======== =========== ==========================================================
    0        >= 0        requested time, divided by `time_scale`
    1        0 to 1      share of the cluster that the job requests
    2        >= 0        wait so far, divided by `time_scale`
    3        0 to 1      longest time of the test, divided by the requested time
    4        0 to 1      longest time that the hole allows, divided by the requested time
    5        0 to 1      longest time of the test, divided by the one that the hole allows
    6        >= 0        free share of the cluster
    7        >= 0        waiting jobs, divided by 64
    8        >= 0        work that waiting jobs request, divided by that of the cluster in `time_scale`
    9        >= 0        running jobs, divided by 64
    10       >= 0        attempts of the job that were stopped, divided by 4
    11       0 to 1      share of the user's ended jobs that ran for no longer than the test; 0 without any
    12       0 to 1      ended jobs of the user, at most 16, divided by 16
    ======== =========== ==========================================================

    Run times are those of jobs that have ended.

    Parameters
    ----------
    time_scale : float
        Unit of time [s].

    Examples
    --------
    One node of four is free until 100 s; a job that requests 500 s may be tested for 10 s:

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> from hpcsimkit.policies import EASY, HoleTests
    >>> columns = {"submit_time": [0, 1, 2], "run_time": [100, 50, 5], "nodes": [3, 4, 1]}
    >>> jobs = Workload({**columns, "requested_time": [100, 50, 500]}, machine_size=4)
    >>> policy = Pipeline(backfiller=EASY(), tester=External(HoleTests(10)))
    >>> decision, out = Simulation(jobs, policy).next_decision(), np.zeros(13, dtype=np.float32)
    >>> JobAndHole(time_scale=100.0).bind(decision.system)(decision, out)
    >>> [round(float(each), 3) for each in out[:7]]
    [5.0, 0.25, 0.0, 0.02, 0.196, 0.102, 0.25]
    """

    low, high = 0.0, np.inf

    def __init__(self, time_scale: Positive = 86_400.0) -> None:
        self.time_scale = time_scale

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (13,)."""
        return (13,)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run, and follow the ended jobs."""
        cluster, scale = system.cluster, self.time_scale
        shares, requested = shares_of(system), np.maximum(system.workload.requested_time, 1)
        work, user = shares * requested / scale, system.workload.user.tolist()
        ended = Ended(system, user)

        def encode(decision: Decision, out: Observation) -> None:
            job, state, seconds = decision.job, decision.system, decision.seconds
            if job is None or seconds is None:
                raise UsageError(f"JobAndHole encodes decisions of the tester, found {decision!r}")
            row = job.index
            asked = int(requested[row])
            hole = max(longest(decision.hole, job, asked), 1)
            short, count = ended.of(user[row], seconds)
            out[:] = (
                asked / scale,
                shares[row],
                (state.now - job.submit_time) / scale,
                seconds / asked,
                hole / asked,
                seconds / hole,
                cluster.share(state.free),
                len(state.queue) / 64,
                work[[each.index for each in state.queue]].sum(),
                len(state.running) / 64,
                state.ledger.attempts[row] / 4,
                short / max(count, 1),
                min(count, MANY) / MANY,
            )

        return encode


class Ended:
    """Run times of the jobs that have ended so far, by user.

    Parameters
    ----------
    system : System
        The state of the run.
    user : list of int
        User of each job.
    """

    def __init__(self, system: System, user: list[int]) -> None:
        self._system, self._user = system, user
        self._run_times: defaultdict[int, list[int]] = defaultdict(list)
        self._seen = 0

    def of(self, user: int, seconds: int) -> tuple[int, int]:
        """Return how many ended jobs of a user ran for at most some seconds, and how many there are."""
        ledger, ended = self._system.ledger, self._system.ended
        for row in ended[self._seen :]:
            insort(self._run_times[self._user[row]], ledger.end_of(row) - ledger.start_of(row))
        self._seen = len(ended)
        found = self._run_times[user]
        return bisect_right(found, seconds), len(found)
