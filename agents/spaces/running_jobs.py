"""Encoder of the preemptor's seat: the running jobs that may be stopped, and the job that does not fit."""

from __future__ import annotations

import numpy as np

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System

__all__ = ["RunningJobs"]


class RunningJobs(Encoder):
    """Features of the running jobs that may be stopped, one row each, and of the blocked job in a last row.

    ====== =========== ================= ======================================
    row    column      range             meaning
    ====== =========== ================= ======================================
    job    0           0 or 1            1 if the row holds a job
    job    1           >= 0              requested time [`time_scale`]
    job    2           0 to 1            nodes (or CPUs), share of the machine
    job    3           >= 0              time since the start of its attempt [`time_scale`]
    job    4           >= 0              time since its submission [`time_scale`]
    last   0           0 to 1            free share of the machine
    last   1           >= 0              requested time of the blocked job [`time_scale`]
    last   2           0 to 1            its nodes (or CPUs), share of the machine
    last   3           >= 0              its wait time so far [`time_scale`]
    last   4           >= 0              waiting jobs, divided by `slots`
    ====== =========== ================= ======================================

    Run times, and what remains of them, are not shown.

    Parameters
    ----------
    slots : int
        Number of job rows; the first `slots` jobs that may be stopped are encoded.
    time_scale : float
        Unit of time [s].

    Examples
    --------
    >>> RunningJobs(8).shape
    (9, 5)
    """

    low, high = 0.0, np.inf

    def __init__(self, slots: int, time_scale: Positive = 86_400.0) -> None:
        self.slots = slots
        self.time_scale = time_scale

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots + 1, 5)."""
        return (self.slots + 1, 5)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run."""
        cluster, slots, scale = system.cluster, self.slots, self.time_scale
        requested = system.workload.requested_time / scale
        share = np.array([cluster.asked(job) / cluster.size for job in system.jobs])
        submitted = system.column("submit_time")

        def encode(decision: Decision, out: Observation) -> None:
            head, now = decision.job, system.now
            if decision.stage != "preemptor" or head is None:
                raise UsageError(f"RunningJobs encodes decisions of the preemptor, found {decision!r}")
            rows = decision.rows[:slots]
            started = [system.ledger.start_of(row) for row in rows.tolist()]
            of_jobs = out[: len(rows)]
            of_jobs[:, 0] = 1
            of_jobs[:, 1] = requested[rows]
            of_jobs[:, 2] = share[rows]
            of_jobs[:, 3] = (now - np.array(started)) / scale
            of_jobs[:, 4] = (now - submitted[rows]) / scale
            waited = (now - submitted[head.index]) / scale
            free = cluster.share(system.free)
            out[slots] = free, requested[head.index], share[head.index], waited, len(system.queue) / slots

        return encode
