"""The environment of a training; loaded when something is trained, since it needs Gymnasium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.campaigns.training_data import Division
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.episode import Episode, Player
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.learning import Reward

if TYPE_CHECKING:
    from hpcsimkit.campaigns.training import Training

__all__ = ["WindowedEnv", "environment_of"]

ATTEMPTS = 1000
"""Windows that are drawn, one after the other, until one has a decision."""


class WindowedEnv(SchedulingEnv):
    """An environment whose episodes are windows of logs: those without any decision are passed over.

    In quiet times no two jobs wait at once, and there is nothing to learn.
    """

    def begin(self, rng: np.random.Generator, reward: Reward) -> Episode:
        """Begin an episode that has a decision.

        Raises
        ------
        UsageError
            There seems to be none.
        """
        player = Player(self.encoder, self.mask, reward)
        for _ in range(ATTEMPTS):
            scenario = self.episodes.sample(rng)
            episode = Episode(scenario, self.policy, {self.stage: player}, skip=self.skip)
            if episode.decision is None:
                continue
            if scenario.learn_from is not None:
                episode.reward(self.stage)  # what the warm-up cost is nobody's merit
            return episode
        raise UsageError(
            f"{ATTEMPTS} windows in a row have no decision for the {self.stage} seat; longer windows or a "
            "higher load (load_factor) may have some"
        )


def environment_of(training: Training, division: Division) -> SchedulingEnv:
    """Return the environment of a training, after a first step to see that its parts fit together.

    Raises
    ------
    UsageError
        The encoder, mask or reward cannot do with the decisions of the seat, or there are none.
    """
    env = WindowedEnv(
        training.windows(division), training.open_policy(), *training.environment_parts, stage=training.stage
    )
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
