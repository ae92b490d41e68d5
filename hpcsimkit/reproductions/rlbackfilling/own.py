"""Parts of RLBackfilling alone: its training environment, EASY-AR, and inaccurate estimates (figure 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.agents.rlbackfilling.seat import Mode
from hpcsimkit.agents.rlbackfilling.settings import JOBS, backfilling_environment
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.dirlab import published
from hpcsimkit.policies.oracles import Actual, OracleSJF
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.logs import PaperLog
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.workloads.models.estimates import with_noise

TESTED = 1024
"""Number of jobs of a test sequence."""


@part
def environment(
    log: Workload,
    order: str,
    longest_time: int,
    mode: Mode = "unguarded",
    *,
    evolved: bool = False,
    published: bool = False,
) -> SchedulingEnv:
    """Return the training environment; the cross-entropy method has sequences as long as in tests."""
    jobs = min(TESTED, len(log) // 2) if evolved else JOBS
    bounds: Any = {"first": jobs} if published else {"first": 0, "last": len(log) - jobs}
    return backfilling_environment(log, order, mode, jobs=jobs, longest_time=longest_time, **bounds)


@part
def actual_run_times(order: str) -> Pipeline:
    """Return EASY-AR as published: actual run times are known, to the order too.

    (With the run times known to backfilling alone, SJF has 5.47 on HPC2N and not the paper's 3.73.)
    """
    pipeline = published("rlbackfilling", order, backfilling=True)
    pipeline.estimates = Actual()
    if order == "sjf":
        pipeline.order = OracleSJF()
    return pipeline


@part
def estimated(log: PaperLog, share: float | None) -> SequenceSet:
    """Return the whole log, or its first jobs, as one sequence with other requested times.

    They are run times plus a random share of them, at most `share`; None leaves them as they are.
    """
    jobs = log.log.first(log.scale.noise_jobs) if log.scale.noise_jobs else log.log
    if share is None:
        return SequenceSet.of(f"{log.name}-estimates-as-requested", jobs, [0], len(jobs))
    name = f"{100 * share:g}".replace(".", "-") if share else "actual"
    noisy = with_noise(jobs, np.random.default_rng(log.seed), share)
    return SequenceSet.of(f"{log.name}-estimates-{name}", noisy, [0], len(jobs))
