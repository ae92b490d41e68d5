"""Construction of the environment of a training; imported only when needed, since it needs Gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training.trainer import Validated
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode import Player
from hpcsimkit.envs.interfaces import Episodes, sampled
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.experiments.training.data import Division
from hpcsimkit.kernel.guard import guarded

if TYPE_CHECKING:
    from hpcsimkit.experiments.training.training import Training

ATTEMPTS = 1000
"""Maximum number of windows sampled until one has a decision."""


def environment_of(training: Training, division: Division) -> SchedulingEnv:
    """Return the environment of a training, after a first step to check that its components match."""
    env = SchedulingEnv(
        _episodes(training, division),
        training.open_policy(),
        *training.environment_parts,
        stage=training.stage,
        attempts=ATTEMPTS,
    )
    try:
        env.reset(seed=0)
        env.step(int(env.action_masks().argmax()))
        env.simulators.clear()
    except PolicyError as error:  # from user-defined components, or from those of another seat
        parts = ", ".join(type(part).__name__ for part in (env.encoder, env.mask, env.reward))
        raise UsageError(f"{parts} cannot do with the {env.stage} seat: {error}") from error
    return env


def trainer_of(
    training: Training, division: Division, validate: Callable[[dict[str, Agent]], Validated]
) -> Any:
    """Return the trainer of a training.

    `validate` is a function of the agents by stage that returns a score, larger is better, and measures.
    """
    (make, settings), stage = training.trainer_part, training.stage
    how: dict[str, Any] = {"seed": training.seed, "validate_every": training.validation.every}
    if len(training.of_seats) == 1:
        env = environment_of(training, division)
        return make(env, settings, validate=lambda agent: validate({stage: agent}), **how)
    each = {name: seat.trainer_part.settings for name, seat in training.of_seats.items() if name != stage}
    players = {name: Player(*seat.environment_parts) for name, seat in training.of_seats.items()}
    return make(
        _episodes(training, division),
        training.open_policy(),
        players,
        {stage: settings, **each},
        rounds=settings.rounds,
        attempts=ATTEMPTS,
        validate=validate,
        **how,
    )


def _episodes(training: Training, division: Division) -> Episodes:
    """Return the episodes of a training; user-defined ones are sampled once as a check."""
    name = training.episodes.name
    if name is None:
        return training.episodes_of(division)
    with guarded(f"[episodes] {name}"):
        episodes = training.episodes_of(division)
        sampled(episodes, np.random.default_rng(0))
        return episodes
