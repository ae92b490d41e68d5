"""Episodes of an environment, one or many, and what they show: the core that all environments stand on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.episode import Episode
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Reward
from hpcsimkit.metrics import evaluate

if TYPE_CHECKING:
    from hpcsimkit.environment import SchedulingEnv

__all__ = ["EpisodeBatch"]


class EpisodeBatch:
    """Episodes side by side, each in its place; what they show is written into one array each.

    Parameters
    ----------
    env : SchedulingEnv
        The pattern: its episodes, policy, encoder, mask.
    rewards : sequence of Reward
        One for each place.

    Attributes
    ----------
    episodes : list of Episode or None
        Those that are played; None where none has begun.
    observations : array of float32, shape (places, ...)
        What is seen now; zeros when an episode is over.
    valid : array of bool, shape (places, actions)
        Which actions are options now.
    earned, totals : list of float
        By the last step, and so far in the episode; of each place.
    terminated, truncated : list of bool
        Whether the last step was the end, or the last one that may be.
    """

    def __init__(self, env: SchedulingEnv, rewards: Sequence[Reward]) -> None:
        self.env = env
        self.rewards = rewards
        count = len(rewards)
        self.observations = np.zeros((count, *env.encoder.shape), dtype=np.float32)
        self.valid = np.zeros((count, env.mask.actions), dtype=np.bool_)
        self.earned, self.totals = [0.0] * count, [0.0] * count
        self.terminated, self.truncated = [False] * count, [False] * count
        self.episodes: list[Episode | None] = [None] * count
        self._began: list[Any] = [None] * count
        self._taken: list[list[int]] = [[] for _ in range(count)]

    def episode(self, place: int) -> Episode:
        """Return the episode of a place.

        Raises
        ------
        UsageError
            None has begun.
        """
        episode = self.episodes[place]
        if episode is None:
            raise UsageError("reset the environment before the first step")
        return episode

    def begin(self, place: int, rng: np.random.Generator) -> dict[str, Any]:
        """Begin the next episode of a place; returns what is to be told of it."""
        return self._show(place, self._begin(place, rng))

    def step(self, place: int, action: int) -> dict[str, Any]:
        """Answer the decision at hand; an action that is no option counts as the first one that is."""
        episode, valid, limit = self.episode(place), self.valid[place], self.env.max_steps
        invalid = not (0 <= action < len(valid) and valid[action])
        self._answer(place, episode, int(valid.argmax()) if invalid else action)
        self.terminated[place] = terminated = episode.decision is None
        self.truncated[place] = not terminated and limit is not None and episode.decisions >= limit
        info = self._show(place, episode)
        if invalid:
            info["invalid"] = True
        if terminated:
            info["metrics"] = evaluate(episode.result(), names=self.env.metrics)
        return info

    def forget(self) -> None:
        """Let go of all episodes."""
        self.episodes = [None] * len(self.rewards)

    def _begin(self, place: int, rng: np.random.Generator) -> Episode:
        self._began[place], self._taken[place] = rng.bit_generator.state, []
        self.terminated[place] = self.truncated[place] = False
        self.earned[place] = self.totals[place] = 0.0
        self.episodes[place] = episode = self.env.begin(rng, self.rewards[place])
        return episode

    def _answer(self, place: int, episode: Episode, action: int) -> None:
        """Answer a decision, and note what it earned."""
        episode.answer(action)
        self._taken[place].append(action)
        self.earned[place] = earned = episode.reward(self.env.stage)
        self.totals[place] += earned

    def _show(self, place: int, episode: Episode) -> dict[str, Any]:
        """Write what is seen and may be done now; returns what else is to be told."""
        decision = episode.decision
        if decision is None:
            self.observations[place] = 0.0
            self.valid[place] = False
        else:
            episode.write(self.observations[place], self.valid[place])
        job = None if decision is None else decision.job
        return {"time": episode.simulation.system.now, "job": -1 if job is None else job.id}

    # --- to be stopped and taken up again ------------------------------------------------------------

    def state(self) -> list[dict[str, Any]]:
        """Return what :meth:`restore` needs to go on from here, in what JSON can say."""
        return [
            {"stream": began, "actions": list(taken)}
            for began, taken in zip(self._began, self._taken, strict=True)
        ]

    def restore(self, state: Sequence[dict[str, Any]], streams: Sequence[np.random.Generator]) -> None:
        """Bring every episode to where it was, by playing its actions again.

        Raises
        ------
        UsageError
            The state is of another number of episodes.
        """
        if len(state) != len(self.rewards):
            raise UsageError(f"a state of {len(self.rewards)} episodes is needed, found {len(state)}")
        for place, known in enumerate(state):
            streams[place].bit_generator.state = known["stream"]
            episode = self._begin(place, streams[place])
            for action in known["actions"]:
                self._answer(place, episode, action)
            self._show(place, episode)
