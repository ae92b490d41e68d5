"""Training settings and environment of RLScheduler, from its published code."""

from __future__ import annotations

from hpcsimkit.agents.rlscheduler.encoder import WaitingJobs
from hpcsimkit.agents.rlscheduler.seat import scheduling_seat
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import FinalScore
from hpcsimkit.agents.spaces.sequences import Sequences
from hpcsimkit.agents.training.spinning_up import SpinningUpSettings
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.jobs.workload import Workload

__all__ = ["JOBS", "PUBLISHED", "scheduling_environment"]

JOBS = 256
"""Number of jobs in a training sequence."""

SLOTS = 128
"""Maximum number of waiting jobs that the agent sees."""

PUBLISHED = SpinningUpSettings(
    episodes=100,
    whole_episodes=True,
    n_epochs=80,
    learning_rate=3e-4,
    value_learning_rate=1e-3,
    gamma=1.0,
    gae_lambda=0.97,
    clip_range=0.2,
    target_kl=0.015,
    kind="slots",
    hidden=(32, 16, 8),
    activation="relu",
    critic_hidden=(64, 32, 8),
)
"""100 sequences per round; networks of 961 and 11 570 weights."""


def scheduling_environment(
    log: Workload,
    *,
    backfilling: bool = False,
    metric: str = "mean_bounded_slowdown",
    slots: int = SLOTS,
    jobs: int = JOBS,
    first: int = JOBS,
    last: int | None = None,
) -> SchedulingEnv:
    """Return the training environment of RLScheduler, by the published rules.

    Parameters
    ----------
    log : Workload
        Log, as :func:`~hpcsimkit.workloads.dirlab.read_published` returns it for ``"rlscheduler"``.
    backfilling, slots
        Parameters of :func:`~hpcsimkit.agents.rlscheduler.seat.scheduling_seat`.
    metric : str
        Metric to optimise.
    jobs : int
        Number of jobs in a sequence.
    first, last : int
        Range of the start indices of sequences; by default as published.

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
        WaitingJobs.of(log, slots),
        Slots(slots),
        FinalScore(metric),
        stage="order",
        attempts=100,
    )
