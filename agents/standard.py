"""Environments by name, ready to be played with, on workloads that need no file.

``import hpcsimkit.environment`` makes the names known: ``gymnasium.make("hpcsimkit/Order-v0")``, or at once
``gymnasium.make("hpcsimkit.environment:hpcsimkit/Order-v0")``. Real experiments build a
:class:`~hpcsimkit.environment.SchedulingEnv` of their own logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.agents.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.episodes import Generated, Windows
from hpcsimkit.agents.masks import JobMachine, Slots
from hpcsimkit.agents.rewards import MinusMeanBoundedSlowdown, MinusMeanWait
from hpcsimkit.decision import External
from hpcsimkit.machines import Machines
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.dispatch import Dispatch
from hpcsimkit.reservation import EASY
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import default_workload

if TYPE_CHECKING:
    from hpcsimkit.environment import SchedulingEnv

__all__ = ["backfill", "dispatch", "order"]

GIGABYTE = 10**9


def order(slots: int = 16, jobs: int = 256, render_mode: str | None = None) -> SchedulingEnv:
    """Choose which of the jobs that have waited longest is next; minus the mean bounded slowdown.

    Parameters
    ----------
    slots : int
        Jobs to choose from.
    jobs : int
        Jobs of an episode: a window of the built-in workload of 5 000 jobs on 256 nodes.
    render_mode : str, optional
        See :class:`~hpcsimkit.environment.SchedulingEnv`.
    """
    from hpcsimkit.environment import SchedulingEnv

    log = default_workload(np.random.default_rng(0))
    policy = Pipeline(order=External(), backfiller=EASY(), window=slots)
    return SchedulingEnv(
        Windows(log, jobs), policy, QueueWindow(slots), Slots(slots), MinusMeanBoundedSlowdown(),
        stage="order", render_mode=render_mode,
    )  # fmt: skip


def backfill(slots: int = 16, jobs: int = 256, render_mode: str | None = None) -> SchedulingEnv:
    """Choose which job to backfill behind the first that is blocked, or none; minus the mean wait [h].

    Parameters are those of :func:`order`; one more action declines.
    """
    from hpcsimkit.environment import SchedulingEnv

    log = default_workload(np.random.default_rng(0))
    policy = Pipeline(backfiller=External(EASY(), decline=True), window=slots)
    return SchedulingEnv(
        Windows(log, jobs), policy, QueueWindow(slots), Slots(slots, decline=True), MinusMeanWait(scale=3600),
        stage="backfiller", render_mode=render_mode,
    )  # fmt: skip


def dispatch(slots: int = 10, jobs: int = 200, render_mode: str | None = None) -> SchedulingEnv:
    """Choose a job and its machine, of five with CPUs and two with GPUs; minus the mean wait [h].

    Parameters are those of :func:`order`; the jobs of an episode are made anew each time.
    """
    from hpcsimkit.environment import SchedulingEnv

    cluster = Machines.of(5, cpus=64, memory="256 GB") + Machines.of(
        2, "gpu", cpus=64, gpus=8, memory="512 GB"
    )
    return SchedulingEnv(
        Generated(lambda rng: _requests(jobs, rng), cluster), Dispatch(External(), slots=slots),
        RequestsAndMachines(slots, len(cluster)), JobMachine(slots, len(cluster)), MinusMeanWait(scale=3600),
        stage="dispatch", render_mode=render_mode,
    )  # fmt: skip


def _requests(jobs: int, rng: np.random.Generator) -> Workload:
    """Return jobs that come at random and ask for CPUs, memory and, one in ten, GPUs."""
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
