"""Construction of the environment of a training; imported only when needed, since it needs Gymnasium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Episodes, sampled
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.experiments.training_data import Division
from hpcsimkit.kernel.guard import guarded

if TYPE_CHECKING:
    from hpcsimkit.experiments.training import Training

__all__ = ["environment_of"]

ATTEMPTS = 1000
"""Maximum number of windows sampled until one has a decision."""


def environment_of(training: Training, division: Division) -> SchedulingEnv:
    """Return the environment of a training, after a first step to check that its components match.

    Raises
    ------
    UsageError
        The encoder, mask or reward does not support the decisions of the seat, or there are none.
    """
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
    except PolicyError as error:  # from user-defined components, or from those of another seat
        parts = ", ".join(type(part).__name__ for part in (env.encoder, env.mask, env.reward))
        raise UsageError(f"{parts} cannot do with the {env.stage} seat: {error}") from error
    return env


def _episodes(training: Training, division: Division) -> Episodes:
    """Return the episodes of a training; user-defined ones are sampled once as a check."""
    name = training.episodes.name
    if name is None:
        return training.episodes_of(division)
    with guarded(f"[episodes] {name}"):
        episodes = training.episodes_of(division)
        sampled(episodes, np.random.default_rng(0))
        return episodes
