"""What an inspector could see instead of features: everything, job by job."""

from __future__ import annotations

from itertools import islice

import numpy as np

from hpcsimkit.agents.schedinspector.features import TWO_DAYS, inspected, shares_of
from hpcsimkit.decision import Decision
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.system import System

__all__ = ["WholeState"]


class WholeState(Encoder):
    """Rows of the waiting jobs, the selected one first: SchedInspector's *native features*.

    ====== ====== ===================================================================
    row    column what
    ====== ====== ===================================================================
    job    0      waited so far [`max_interval` x `max_rejections`]
    job    1      requested time [`longest_time`]
    job    2      size, share of the machine
    last   0      share of the machine that is free
    last   1      how often the selected job was rejected [`max_rejections`]
    last   2      jobs that run [`jobs`]
    ====== ====== ===================================================================

    All are 1 at most. (The paper says only that the whole state goes in, section 4.3.1; its code has an array
    of these three columns and 128 rows that nobody reads.)

    Parameters
    ----------
    jobs : int
        Rows for waiting jobs: the first so many of the order.
    longest_time, max_interval, max_rejections
        As in :class:`~hpcsimkit.agents.schedinspector.features.InspectorFeatures`.

    Examples
    --------
    >>> WholeState().shape
    (129, 3)
    """

    low, high = 0.0, 1.0

    def __init__(
        self, jobs: int = 128, longest_time: int = TWO_DAYS, max_interval: int = MAX_INTERVAL,
        max_rejections: int = MAX_REJECTIONS,
    ) -> None:  # fmt: skip
        self.jobs = jobs
        self.longest_time = longest_time
        self.max_interval = max_interval
        self.max_rejections = max_rejections

    @property
    def shape(self) -> tuple[int, ...]:
        """(jobs + 1, 3)."""
        return (self.jobs + 1, 3)

    def bind(self, system: System) -> Encode:
        """Lay out what never changes of all jobs, once for the run."""
        longest_wait = self.max_interval * self.max_rejections
        known = np.stack([system.workload.requested_time / self.longest_time, shares_of(system)], axis=1)
        submitted, cluster = system.column("submit_time"), system.cluster

        def encode(decision: Decision, out: Observation) -> None:
            selected = inspected(decision).index
            others = (job.index for job in system.queue if job.index != selected)
            rows = np.array([selected, *islice(others, self.jobs - 1)], dtype=np.intp)
            of_jobs = out[: len(rows)]
            of_jobs[:, 0] = (system.now - submitted[rows]) / longest_wait
            of_jobs[:, 1:] = known[rows]
            rejected = system.holds.get(selected, 0) / self.max_rejections
            out[self.jobs] = cluster.share(system.free), rejected, len(system.running) / self.jobs
            np.minimum(out, 1.0, out=out)

        return encode
