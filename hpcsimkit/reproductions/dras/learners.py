"""Trained agents: the four learners, Decima-PG, DRAS-PG in other orders, and two that the paper lacks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.settings import (
    EVOLVED,
    TRAINED,
    decima_environment,
    dras_environment,
    evolved_environment,
    hidden_of,
)
from hpcsimkit.agents.spaces.episodes import Fixed, InTurn
from hpcsimkit.agents.training.catalogue import settings_of, trainer_named
from hpcsimkit.agents.training.seat_trainer import RunSettings
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reproductions.dras.data import ORDERS, Trace
from hpcsimkit.reproductions.dras.runs import earned, seated
from hpcsimkit.reproductions.learners import Learner

__all__ = ["Learners", "Validation", "reward_scale", "settings"]

PG, DQL, EVOLVING = "dras-pg", "dras-dql", "cem"

WAITING_SCALE = 10.0
"""Scale factor of rewards for short waits."""
USUAL = next(iter(ORDERS))

ATTEMPTS = 100
"""Maximum number of job sets drawn until one has a choice."""


@dataclass(frozen=True)
class Validation:
    """Validation of an agent: its return on the validation month with greedy actions.

    Parameters
    ----------
    scenario : Scenario
        Jobs of the validation month.
    policy : Policy
        Policy with the open seat.
    reward : Reward
        Reward of the agent.
    reserves : bool
        Whether a job with a reservation is rewarded when it gets the reservation.
    """

    scenario: Scenario
    policy: Policy
    reward: Reward
    reserves: bool

    def __call__(self, agent: Agent) -> float:
        """Return the agent's return; larger is better."""
        policy = seated(self.policy, agent)
        return earned(self.scenario, policy, self.reward, reserves=self.reserves)[0]


class Learners:
    """All agents to be trained; each is created once.

    Parameters
    ----------
    seed : int
        Random seed of the first agent of each type; the others have consecutive seeds.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._made: dict[str, Learner] = {}

    def dras(self, trace: Trace, algorithm: str, number: int = 0, order: str = USUAL) -> Learner:
        """Return an agent of one of the four learners.

        Parameters
        ----------
        trace : Trace
            Log with the training jobs.
        algorithm : str
            One of :data:`~hpcsimkit.agents.dras.settings.LEARNERS`.
        number : int
            Index of the seed, from 0.
        order : str
            Order of the job sets: one of :data:`~hpcsimkit.reproductions.dras.data.ORDERS`.
        """
        env = dras_environment(_episodes(trace, order), *_machine(trace), objective=trace.objective)
        how = settings(trace, algorithm, reward_scale(trace))
        usual = order == USUAL
        words = f"{algorithm.removeprefix('dras-')}{'' if usual else '-' + '-'.join(ORDERS[order])}"
        return self._learner(f"{trace.name}-{words}", trace, env, algorithm, how, number)

    def decima(self, trace: Trace, number: int = 0) -> Learner:
        """Return Decima-PG: DRAS-PG on one level, without reservations."""
        env = decima_environment(_episodes(trace, USUAL), *_machine(trace), objective=trace.objective)
        how = settings(trace, PG, reward_scale(trace))
        return self._learner(f"{trace.name}-decima", trace, env, PG, how, number, reserves=False)

    def waiting(self, trace: Trace, number: int = 0) -> Learner:
        """Return DRAS-DQL with a reward for short waits instead of the paper's equations."""
        env = dras_environment(_episodes(trace, USUAL), *_machine(trace), objective="waiting")
        how = settings(trace, DQL, WAITING_SCALE)
        return self._learner(f"{trace.name}-dql-waiting", trace, env, DQL, how, number, judged=trace.known)

    def evolved(self, trace: Trace, number: int = 0) -> Learner:
        """Return an agent of six weights on the same seat, trained by CEM on both months in one run."""
        env = evolved_environment(Fixed(trace.learned))
        how = replace(EVOLVED, total_timesteps=trace.scale.evolved_steps)
        return self._learner(f"{trace.name}-evolved", trace, env, EVOLVING, how, number, judged=trace.known)

    def in_orders(self, trace: Trace) -> dict[str, Learner]:
        """Return DRAS-PG on job sets in several orders."""
        return {order: self.dras(trace, PG, order=order) for order in trace.scale.orders}

    def _learner(
        self,
        kind: str,
        trace: Trace,
        env: SchedulingEnv,
        trainer: str,
        how: RunSettings,
        number: int,
        *,
        reserves: bool = True,
        judged: Scenario | None = None,
    ) -> Learner:
        name = f"{kind}-{number}"
        if name not in self._made:
            scenario = judged or trace.validation.scenarios[0]
            validate = Validation(scenario, env.policy, env.reward, reserves)
            how_often = {"validate": validate, "validate_every": 1, "attempts": ATTEMPTS}
            self._made[name] = Learner.of(name, env, trainer, how, self.seed + number, **how_often)
        return self._made[name]


def settings(trace: Trace, algorithm: str, scale: float) -> RunSettings:
    """Return the training settings of an agent of a log, with a scale factor for rewards."""
    plain: Any = replace(settings_of(trainer_named(algorithm))(), **TRAINED[algorithm])
    found: RunSettings = replace(
        plain, total_timesteps=trace.decisions, hidden=hidden_of(trace.nodes), reward_scale=scale
    )
    return found


def reward_scale(trace: Trace) -> float:
    """Return the scale factor that makes rewards about 1; in equation 2 they are 1 / requested times."""
    if trace.objective == "capability":
        return 1.0
    return 1.0 / float(np.mean(1.0 / np.maximum(trace.learned.requested_time, 1)))


def _episodes(trace: Trace, order: str) -> InTurn:
    return InTurn([jobs for phase in ORDERS[order] for jobs in trace.job_sets[phase]])


def _machine(trace: Trace) -> tuple[int, int]:
    return trace.nodes, trace.longest_time
