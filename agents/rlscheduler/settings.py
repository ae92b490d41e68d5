"""How RLScheduler was trained, and on what: by its published code."""

from __future__ import annotations

from hpcsimkit.agents.masks import Slots
from hpcsimkit.agents.rewards import FinalScore
from hpcsimkit.agents.rlscheduler.encoder import WaitingJobs
from hpcsimkit.agents.rlscheduler.seat import scheduling_seat
from hpcsimkit.agents.sequences import Sequences
from hpcsimkit.agents.spinning_up import SpinningUpSettings
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.workload import Workload

__all__ = ["JOBS", "PUBLISHED", "scheduling_environment"]

JOBS = 256
"""Of a sequence that is learned from."""

SLOTS = 128
"""Waiting jobs that its agent sees."""

PUBLISHED = SpinningUpSettings(
    episodes=100, whole_episodes=True, epochs=80, learning_rate=3e-4, value_learning_rate=1e-3,
    discount=1.0, trace=0.97, clip=0.2, target_divergence=0.015, kind="slots", hidden=(32, 16, 8),
    activation="relu", critic_hidden=(64, 32, 8),
)  # fmt: skip
"""100 sequences a round; the networks have 961 and 11 570 weights."""


def scheduling_environment(
    log: Workload, *, backfilling: bool = False, metric: str = "mean_bounded_slowdown", slots: int = SLOTS,
    jobs: int = JOBS, first: int = JOBS, last: int | None = None,
) -> SchedulingEnv:  # fmt: skip
    """Return what RLScheduler learns from, by the published rules.

    Parameters
    ----------
    log : Workload
        As :func:`~hpcsimkit.workloads.dirlab.read_published` returns it for ``"rlscheduler"``.
    backfilling, slots
        See :func:`~hpcsimkit.agents.rlscheduler.seat.scheduling_seat`.
    metric : str
        What is to be made better.
    jobs : int
        Of a sequence.
    first, last : int
        Sequences begin at one of these rows; by default as published.

    Examples
    --------
    >>> import numpy as np
    >>> from hpcsimkit.workloads import default_workload
    >>> log = default_workload(np.random.default_rng(1), jobs=600)
    >>> observation, info = scheduling_environment(log).reset(seed=1)
    >>> observation.shape
    (128, 8)
    """
    last = len(log) - jobs - 1 if last is None else last
    return SchedulingEnv(
        Sequences(log, jobs, first=first, last=last),
        scheduling_seat(backfilling=backfilling, semantics="dirlab", slots=slots),
        WaitingJobs.of(log, slots), Slots(slots), FinalScore(metric), stage="order", attempts=100,
    )  # fmt: skip
