"""DRAS+: one small network shared over jobs, which sees predicted run times and the nodes that become free.

It begins as the order :class:`~hpcsimkit.policies.Aged` on predictions, and is paid by what is measured: the
mean bounded slowdown. A job that has waited for too long goes first.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.ahead import COLUMNS, TEST, JobsAhead
from hpcsimkit.agents.seats import Watched
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.agents.spaces.masks import GuardedSlots
from hpcsimkit.agents.spaces.prompt_improvement import PromptRatio
from hpcsimkit.agents.training.behaviour import Behaviour
from hpcsimkit.agents.training.taught_ppo import TaughtPPOSettings
from hpcsimkit.agents.training.trainer import Validated
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies import EASY, UNICEF, Aged, GuardedWait, HoleTests, Live
from hpcsimkit.policies.one_seat.order_and_tests import OrderAndTests
from hpcsimkit.policies.predicting.bounded import Weighted
from hpcsimkit.results.metrics import measure

__all__ = ["PLUS", "PLUS_CHOOSING", "PlusValidation", "plus_environment", "plus_policy"]

SLOTS = 64
"""Number of visible waiting jobs: those that have waited longest. The weights fit any other number."""

TIMES = 30.0
"""Multiple of the running mean wait from which a job goes first: that of the recipe `predicted-aging`."""

MEASURED = ("mean_bounded_slowdown", "max_wait_time")

BASELINE = Pipeline(order=UNICEF(), backfiller=EASY())
"""The strongest heuristic on requested times at bounded waits, to which rewards are relative."""

JOBS = 384
"""Number of jobs in a training window, and of those before it; users need a history for predictions."""

FIRST = (1.0, *[0.0] * COLUMNS)
"""First weights of the teacher: the order `Aged`, largest wait over predicted run time first; no bias."""

PLUS = TaughtPPOSettings(
    total_timesteps=120_000,
    episodes=16,
    n_steps=64,
    n_epochs=4,
    batch_size=256,
    hidden=(32, 32),
    critic_hidden=(32,),
    target_kl=0.01,
    ent_coef=0.0,
    learning_rate=3e-4,
    teacher_timesteps=1,  # the teacher stays as it is: one round, of hardly any spread
    teacher_episodes=1,
    teacher_population=2,
    teacher_elite=1,
    teacher_first=FIRST,
    teacher_spread=1e-3,
    watched=0.1,
)
"""Settings of the training."""

TESTED_FIRST = (1.0, *[0.0] * (TEST - 1), 0.4, 0.0, 0.0, 0.0)
"""First weights with tests among the actions: a test beside a row of zeros, which most draws let start."""

PLUS_CHOOSING = replace(PLUS, teacher_first=TESTED_FIRST)
"""Settings of the training with tests among the actions."""


def plus_policy(
    order: Any = None, *, tests: int = 0, slots: int = SLOTS, times: float = TIMES, chosen: bool = False
) -> Pipeline:
    """Return the scheduler of DRAS+: an order among the jobs that have waited longest, with EASY behind it.

    Predictions come from the live history of each user; EASY backfills the shortest predicted job first. A
    job that has waited for too long goes first, by the guard behind the seat.

    Parameters
    ----------
    order : stage, optional
        Stage of the seat; by default an open one. An agent and an open seat get the heuristic behind them.
    tests : int
        Longest time of test runs in holes [s]; 0 means that there are none.
    slots : int
        Number of visible waiting jobs.
    times : float
        Multiple of the running mean wait from which a job goes first.
    chosen : bool
        Whether the seat decides on each test. By default all jobs that fit a hole are tested.

    Examples
    --------
    >>> plus_policy(tests=300).order.base
    GuardedWait(base=Aged(mean=1))
    """
    seated = copy(External() if order is None else order)
    if isinstance(seated, External):
        seated.base = GuardedWait(Aged(mean=1), times)
    return (OrderAndTests if chosen else Pipeline)(
        order=seated,
        backfiller=EASY(Weighted(mean=1)),
        estimates=Live(),
        tester=HoleTests(tests) if tests else None,
        window=slots,
    )


def plus_environment(
    past: Workload, *, tests: int = 0, slots: int = SLOTS, jobs: int = JOBS, chosen: bool = False
) -> SchedulingEnv:
    """Return the training environment of DRAS+.

    Parameters
    ----------
    past : Workload
        Earlier part of a log, of which windows are drawn.
    tests, slots, chosen
        Parameters of :func:`plus_policy`.
    jobs : int
        Number of jobs in a window, and of those before it, which the heuristic behind the seat schedules.

    Examples
    --------
    >>> import numpy as np
    >>> from hpcsimkit.workloads import default_workload
    >>> env = plus_environment(default_workload(np.random.default_rng(1), jobs=800), slots=8)
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape
    (8, 13)
    """
    return SchedulingEnv(
        Windows(past, jobs, warmup=jobs),
        plus_policy(tests=tests, slots=slots, chosen=chosen),
        JobsAhead(slots, tests=chosen),
        GuardedSlots(slots),
        PromptRatio(BASELINE),
        attempts=100,
    )


@dataclass(frozen=True)
class PlusValidation:
    """Validation of DRAS+: minus the mean bounded slowdown on jobs that no training window has.

    If a job waits longer than any does under UNICEF with the same tests, the slowdown is multiplied by the
    ratio of the longest waits.

    Parameters
    ----------
    jobs : Workload
        Jobs, scheduled in one run.
    tests, slots, chosen
        Parameters of :func:`plus_policy`.
    """

    jobs: Workload
    tests: int = 0
    slots: int = SLOTS
    chosen: bool = False

    @cached_property
    def _longest(self) -> float:
        """Longest wait under UNICEF with EASY [s]."""
        rival = copy(BASELINE)
        rival.tester = HoleTests(self.tests) if self.tests else None
        return self._measured(rival)["max_wait_time"]

    def __call__(self, agent: Agent) -> Validated:
        """Return the score of an agent, and what it does in choices."""
        behaviour = Behaviour(agent)
        seated = Watched(agent, behaviour)
        policy = plus_policy(seated, tests=self.tests, slots=self.slots, chosen=self.chosen)
        found = self._measured(policy)
        longer = max(found["max_wait_time"] / max(self._longest, 1.0), 1.0)
        return Validated(-longer * found["mean_bounded_slowdown"], behaviour.measures())

    def _measured(self, policy: Policy) -> dict[str, float]:
        return measure(Scenario(self.jobs).simulation(policy).run(), names=MEASURED)
