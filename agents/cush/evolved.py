"""A seven-weight agent for the seat of CuSH's job selector, and an order that sees as far as CuSH."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.rows import StartOrHold
from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown
from hpcsimkit.agents.training.cross_entropy import CrossEntropySettings
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Order
from hpcsimkit.policies.placing.styles import SuitsKind

__all__ = ["EVOLVED", "JobSets", "ShortSighted", "evolved_environment"]

EVOLVED = CrossEntropySettings(
    total_timesteps=600_000, episodes=20, population=48, elite=12, spread=1.0, inertia=0.5
)
"""Settings of the cross-entropy method: about twenty rounds of 48 networks on the same twenty job sets.

Features and settings were tuned on separate job sets, which no result uses.
"""


class JobSets(Episodes):
    """A new job set of a problem in each episode.

    Parameters
    ----------
    problem : CushProblem
        Problem to draw job sets for.
    """

    def __init__(self, problem: CushProblem) -> None:
        self.problem = problem

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw a job set."""
        return self.problem.scenarios(rng, 1)[0]


def evolved_environment(
    problem: CushProblem, placement: Any = None, *, horizon: int | None = None
) -> SchedulingEnv:
    """Return the training environment: the job selector's seat, with other job sets in each round.

    Not from the paper: the observation is not an image, but the effect of a start on the other jobs; see
    :class:`~hpcsimkit.agents.cush.rows.StartOrHold`. The reward is minus the mean normalised turnaround.

    Parameters
    ----------
    problem : CushProblem
        Cluster, job sets, and number of visible jobs.
    placement : stage, optional
        Placement of the jobs; by default the best one for the job type.
    horizon : int, optional
        Time horizon of the agent [s]; by default unlimited, unlike the images of the problem.

    Examples
    --------
    >>> observation, info = evolved_environment(CushProblem(system="summit")).reset(seed=1)
    >>> observation.shape
    (6, 7)
    """
    return SchedulingEnv(
        JobSets(problem),
        problem.pipeline(placement=placement if placement is not None else SuitsKind()),
        StartOrHold(problem.slots, horizon=horizon),
        problem.mask,
        MinusMeanBoundedSlowdown(threshold=1.0),
    )


class ShortSighted(Order):
    """Shortest requested time first, up to a horizon.

    Parameters
    ----------
    horizon : int
        Maximum requested time that is distinguished [s]; all longer jobs are alike.

    Examples
    --------
    >>> jobs = [Job(0, 1, 0, run_time=9, requested_time=time, nodes=1) for time in (3, 6, 20)]
    >>> [ShortSighted(horizon=5).key(job) for job in jobs]
    [3, 5, 5]
    """

    def __init__(self, *, horizon: int) -> None:
        self.horizon = horizon

    def key(self, job: Job) -> int:
        """Return the requested time up to the horizon [s]."""
        return min(job.requested_time, self.horizon)
