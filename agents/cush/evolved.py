"""An agent of seven weights for CuSH's job selector seat, evolved in minutes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.agents.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.rows import StartOrHold
from hpcsimkit.agents.rewards import MinusMeanBoundedSlowdown
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.learning import Episodes
from hpcsimkit.policies.styles import SuitsKind
from hpcsimkit.scenario import Scenario

__all__ = ["EVOLVED", "JobSets", "evolved_environment"]

EVOLVED = CrossEntropySettings(
    steps=600_000, episodes=20, population=48, elite=12, spread=1.0, inertia=0.5
)  # fmt: skip
"""How it evolves: about twenty rounds, in each of which 48 networks play the same twenty job sets.

Columns and settings were found on job sets drawn for the purpose, which no result is about.
"""


class JobSets(Episodes):
    """A new job set of a problem each time.

    Parameters
    ----------
    problem : CushProblem
        What it is drawn for.
    """

    def __init__(self, problem: CushProblem) -> None:
        self.problem = problem

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw a job set."""
        return self.problem.scenarios(rng, 1)[0]


def evolved_environment(
    problem: CushProblem, placement: Any = None, *, horizon: int | None = None
) -> SchedulingEnv:
    """Return what an agent evolves on: the job selector's seat, other job sets in each round.

    Not the paper's: it is not shown a picture, but what a start does to the other jobs; see
    :class:`~hpcsimkit.agents.cush.rows.StartOrHold`. What is paid is minus the mean normalised turnaround.

    Parameters
    ----------
    problem : CushProblem
        The cluster, its job sets, and how many jobs are seen.
    placement : stage, optional
        Who places the jobs; by default each is placed as suits its kind.
    horizon : int, optional
        How far the agent sees [s]; by default it sees all, and not only as far as pictures of the problem go.

    Examples
    --------
    >>> observation, info = evolved_environment(CushProblem(system="summit")).reset(seed=1)
    >>> observation.shape
    (6, 7)
    """
    return SchedulingEnv(
        JobSets(problem), problem.pipeline(placement=placement if placement is not None else SuitsKind()),
        StartOrHold(problem.slots, horizon=horizon), problem.mask, MinusMeanBoundedSlowdown(threshold=1.0),
    )  # fmt: skip
