"""SchedInspector's alternative to manual features: the whole state, job by job."""

from __future__ import annotations

from itertools import islice

import numpy as np

from hpcsimkit.agents.schedinspector.features import TWO_DAYS, inspected
from hpcsimkit.agents.spaces.shares import shares_of
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS

__all__ = ["WholeState"]


class WholeState(Encoder):
    """SchedInspector's *native features*: one row per waiting job, the selected one first.

    ====== ====== ===================================================================
    row    column meaning
    ====== ====== ===================================================================
    job    0      wait time so far [`max_interval` x `max_rejections`]
    job    1      requested time [`longest_time`]
    job    2      size, share of the machine
    last   0      free share of the machine
    last   1      number of rejections of the selected job [`max_rejections`]
    last   2      number of running jobs [`jobs`]
    ====== ====== ===================================================================

    All values are at most 1. (The paper says only that the whole state is the input, section 4.3.1; its code
    has an unused array with these three columns and 128 rows.)

    Parameters
    ----------
    jobs : int
        Number of job rows, for the first jobs by the order.
    longest_time, max_interval, max_rejections
        Parameters of :class:`~hpcsimkit.agents.schedinspector.features.InspectorFeatures`.

    Examples
    --------
    >>> WholeState().shape
    (129, 3)
    """

    low, high = 0.0, 1.0

    def __init__(
        self,
        jobs: int = 128,
        longest_time: int = TWO_DAYS,
        max_interval: int = MAX_INTERVAL,
        max_rejections: int = MAX_REJECTIONS,
    ) -> None:
        self.jobs = jobs
        self.longest_time = longest_time
        self.max_interval = max_interval
        self.max_rejections = max_rejections

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (jobs + 1, 3)."""
        return (self.jobs + 1, 3)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run."""
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
