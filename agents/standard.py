"""Ready-made Gymnasium environments by name, on workloads that need no file.

``import hpcsimkit`` registers the names: ``gymnasium.make("hpcsimkit/Order-v0")``. Real experiments build a
:class:`~hpcsimkit.envs.environment.SchedulingEnv` of their own logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import Generated, Windows
from hpcsimkit.agents.spaces.masks import JobMachine, Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown, MinusMeanWait
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.workloads import default_workload

if TYPE_CHECKING:
    from hpcsimkit.envs.environment import SchedulingEnv

__all__ = ["backfill", "dispatch", "order"]

GIGABYTE = 10**9
ATTEMPTS = 100
"""Maximum number of windows to try until one has a decision; short windows may have none."""


def order(slots: int = 16, jobs: int = 256, render_mode: str | None = None) -> SchedulingEnv:
    """Choose the next job among those that have waited longest; reward: minus the mean bounded slowdown.

    Parameters
    ----------
    slots : int
        Number of jobs to choose from.
    jobs : int
        Number of jobs in an episode: a window of the built-in workload of 5 000 jobs on 256 nodes.
    render_mode : str, optional
        Render mode of :class:`~hpcsimkit.envs.environment.SchedulingEnv`.
    """
    from hpcsimkit.envs.environment import SchedulingEnv

    log = default_workload(np.random.default_rng(0))
    policy = Pipeline(order=External(), backfiller=EASY(), window=slots)
    return SchedulingEnv(
        Windows(log, jobs),
        policy,
        QueueWindow(slots),
        Slots(slots),
        MinusMeanBoundedSlowdown(),
        stage="order",
        attempts=ATTEMPTS,
        render_mode=render_mode,
    )


def backfill(slots: int = 16, jobs: int = 256, render_mode: str | None = None) -> SchedulingEnv:
    """Choose a job to backfill behind the first blocked one, or none; reward: minus the mean wait [h].

    Parameters are those of :func:`order`; one more action declines.
    """
    from hpcsimkit.envs.environment import SchedulingEnv

    log = default_workload(np.random.default_rng(0))
    policy = Pipeline(backfiller=External(EASY(), decline=True), max_candidates=slots)
    return SchedulingEnv(
        Windows(log, jobs),
        policy,
        QueueWindow(slots),
        Slots(slots, decline=True),
        MinusMeanWait(scale=3600),
        stage="backfiller",
        attempts=ATTEMPTS,
        render_mode=render_mode,
    )


def dispatch(slots: int = 10, jobs: int = 200, render_mode: str | None = None) -> SchedulingEnv:
    """Choose a job and its machine, of five with CPUs and two with GPUs; reward: minus the mean wait [h].

    Parameters are those of :func:`order`; each episode generates new jobs.
    """
    from hpcsimkit.envs.environment import SchedulingEnv

    cluster = Machines.of(5, cpus=64, memory="256 GB") + Machines.of(
        2, "gpu", cpus=64, gpus=8, memory="512 GB"
    )
    return SchedulingEnv(
        Generated(lambda rng: _requests(jobs, rng), cluster),
        Dispatch(External(), slots=slots),
        RequestsAndMachines(slots, len(cluster)),
        JobMachine(slots, len(cluster)),
        MinusMeanWait(scale=3600),
        stage="dispatch",
        render_mode=render_mode,
    )


def _requests(jobs: int, rng: np.random.Generator) -> Workload:
    """Return jobs with random arrivals that request CPUs, memory and, one in ten, GPUs."""
    run_time = np.rint(np.exp(rng.normal(8, 1.5, jobs))).astype(np.int64) + 1
    columns: dict[str, Any] = {
        "submit_time": np.cumsum(rng.exponential(300, jobs)).astype(np.int64),
        "run_time": run_time,
        "requested_time": np.rint(run_time * rng.uniform(1, 5, jobs)).astype(np.int64),
        "nodes": np.ones(jobs),
        "cpus": rng.integers(1, 33, jobs),
        "gpus": np.where(rng.random(jobs) < 0.1, rng.integers(1, 5, jobs), 0),
        "memory": rng.integers(1, 129, jobs) * GIGABYTE,
    }
    return Workload(columns, name="requests", resources=("cpus", "gpus", "memory"))
