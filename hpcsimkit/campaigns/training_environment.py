"""The environment of a training; loaded when something is trained, since it needs Gymnasium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.campaigns.training_data import Division
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.learning import Episodes
from hpcsimkit.scenario import Scenario

if TYPE_CHECKING:
    from hpcsimkit.campaigns.training import Training

__all__ = ["environment_of"]

ATTEMPTS = 1000
"""Windows that are drawn, one after the other, until one has a decision."""


def environment_of(training: Training, division: Division) -> SchedulingEnv:
    """Return the environment of a training, after a first step to see that its parts fit together.

    Raises
    ------
    UsageError
        The encoder, mask or reward cannot do with the decisions of the seat, or there are none.
    """
    env = SchedulingEnv(
        _episodes(training, division), training.open_policy(), *training.environment_parts,
        stage=training.stage, attempts=ATTEMPTS,
    )  # fmt: skip
    try:
        env.reset(seed=0)
        env.step(int(env.action_masks().argmax()))
    except HpcsimkitError:
        raise
    except Exception as error:  # of parts that were made for another seat, or that are the user's own
        parts = f"{env.encoder!r}, {env.mask!r} and {env.reward!r}"
        raise UsageError(
            f"{parts} cannot do with the {env.stage} seat: {type(error).__name__}: {error}"
        ) from None
    return env


def _episodes(training: Training, division: Division) -> Episodes:
    """Return what is trained on, after a first draw from what is the user's own."""
    name = training.episodes.name
    if name is None:
        return training.episodes_of(division)
    try:
        episodes = training.episodes_of(division)
        found = episodes.sample(np.random.default_rng(0))
    except HpcsimkitError:
        raise
    except Exception as error:
        raise UsageError(f"{name} cannot be sampled: {type(error).__name__}: {error}") from None
    if not isinstance(found, Scenario):
        raise UsageError(f"{name}: sample(rng) needs to return a Scenario, found {found!r}")
    return episodes
