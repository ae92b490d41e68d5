"""Parts of RLBackfilling alone: its training environment, EASY-AR, and inaccurate estimates (figure 1)."""

from __future__ import annotations

from dataclasses import replace
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
    return SequenceSet.of(f"{log.name}-estimates-{name}", noisy(jobs, share, log.seed), [0], len(jobs))


def noisy(log: Workload, noise: float, seed: int) -> Workload:
    """Return a log with new requested times: run times plus a share of them, uniform between 0 and `noise`.

    With the same seed, errors grow in proportion to `noise`.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 1], "run_time": [100, 0], "nodes": [1, 1]}, machine_size=1)
    >>> noisy(w, 0.2, seed=1).requested_time.tolist()  # the first draw is 0.51
    [110, 1]
    """
    shares = np.random.default_rng(seed).random(len(log))
    times = np.rint(log.run_time * (1 + noise * shares)).astype(np.int64)
    return replace(log, columns={**log.columns, "requested_time": np.maximum(times, 1)})
