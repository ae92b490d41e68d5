"""Batches of episodes with shared observation arrays: the core of all environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hpcsimkit.envs.episode import Episode
from hpcsimkit.envs.interfaces import Encoder, Mask, Reward, actions_of, shape_of
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.results.metrics import measure

__all__ = ["EpisodeBatch", "EpisodeFactory"]


class EpisodeFactory(Protocol):
    """The part of the :class:`~hpcsimkit.envs.environment.SchedulingEnv` interface that a batch uses."""

    encoder: Encoder
    mask: Mask
    stage: str
    max_steps: int | None
    metrics: tuple[str, ...]

    def begin(self, rng: np.random.Generator, reward: Reward) -> Episode:
        """Begin an episode with a separate reward object."""
        ...

    def episode_of(self, scenario: Scenario, reward: Reward) -> Episode:
        """Begin an episode of a given scenario."""
        ...


class EpisodeBatch:
    """A batch of episodes, with observations and masks as rows of common arrays.

    A batch can be copied and pickled in the middle of episodes. As the pass of a run that waits for an answer
    cannot, episodes are kept as their scenarios and actions, which the copy repeats.

    Parameters
    ----------
    env : EpisodeFactory
        Factory of the episodes, usually an environment.
    rewards : sequence of Reward
        Reward objects, one per episode.

    Attributes
    ----------
    episodes : list of Episode or None
        Current episodes; None before the first reset.
    observations : array of float32, shape (places, ...)
        Current observations; zeros when an episode is over.
    valid : array of bool, shape (places, actions)
        Masks of the valid actions.
    earned : list of float
        Rewards of the last step.
    totals : list of float
        Returns of the episodes so far.
    terminated : list of bool
        Whether the last step ended the episode.
    truncated : list of bool
        Whether the last step reached the maximum number of steps.
    """

    def __init__(self, env: EpisodeFactory, rewards: Sequence[Reward]) -> None:
        self.env = env
        self.rewards = rewards
        count = len(rewards)
        shape, actions = shape_of(env.encoder), actions_of(env.mask)
        self.observations = np.zeros((count, *shape), dtype=np.float32)
        self.valid = np.zeros((count, actions), dtype=np.bool_)
        self.earned, self.totals = [0.0] * count, [0.0] * count
        self.terminated, self.truncated = [False] * count, [False] * count
        self.episodes: list[Episode | None] = [None] * count
        self._began: list[Any] = [None] * count
        self._taken: list[list[int]] = [[] for _ in range(count)]

    def episode(self, place: int) -> Episode:
        """Return the episode with an index.

        Raises
        ------
        UsageError
            The episode has not begun.
        """
        episode = self.episodes[place]
        if episode is None:
            raise UsageError("reset the environment before the first step")
        return episode

    def begin(self, place: int, rng: np.random.Generator) -> dict[str, Any]:
        """Begin the next episode at an index; return its info."""
        return self._show(place, self._begin(place, rng))

    def step(self, place: int, action: int) -> dict[str, Any]:
        """Answer the pending decision; an invalid action is replaced by the first valid one."""
        episode, valid, limit = self.episode(place), self.valid[place], self.env.max_steps
        invalid = not (0 <= action < len(valid) and valid[action])
        self._answer(place, episode, int(valid.argmax()) if invalid else action)
        self.terminated[place] = terminated = episode.decision is None
        self.truncated[place] = not terminated and limit is not None and episode.decisions >= limit
        info = self._show(place, episode)
        if invalid:
            info["invalid"] = True
        if terminated:
            info["metrics"] = measure(episode.result(), names=self.env.metrics)
        return info

    def forget(self) -> None:
        """Release all episodes."""
        self.episodes = [None] * len(self.rewards)

    def _begin(self, place: int, rng: np.random.Generator) -> Episode:
        self._began[place], self._taken[place] = rng.bit_generator.state, []
        self.terminated[place] = self.truncated[place] = False
        self.earned[place] = self.totals[place] = 0.0
        self.episodes[place] = episode = self.env.begin(rng, self.rewards[place])
        return episode

    def _answer(self, place: int, episode: Episode, action: int) -> None:
        """Answer a decision and record its reward."""
        episode.answer(action)
        self._taken[place].append(action)
        self.earned[place] = earned = episode.reward(self.env.stage)
        self.totals[place] += earned

    def _show(self, place: int, episode: Episode) -> dict[str, Any]:
        """Write the current observation and mask; return the info."""
        decision = episode.decision
        if decision is None:
            self.observations[place] = 0.0
            self.valid[place] = False
        else:
            episode.write(self.observations[place], self.valid[place])
        job = None if decision is None else decision.job
        return {"time": episode.simulation.system.now, "job": -1 if job is None else job.id}

    # --- copies --------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        kept = [
            None if episode is None else (episode.scenario, list(taken))
            for episode, taken in zip(self.episodes, self._taken, strict=True)
        ]
        return {**self.__dict__, "episodes": [None] * len(kept), "_kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if vars(self.env):  # an environment that holds this batch is not complete yet
            self.repeat()

    def repeat(self) -> None:
        """Repeat the episodes of the batch of which this one is a copy, up to where they were."""
        for place, kept in enumerate(self.__dict__.pop("_kept", ())):
            if kept is not None:
                self._repeat(place, *kept)

    def _repeat(self, place: int, scenario: Scenario, actions: Sequence[int]) -> None:
        shown = self.earned[place], self.totals[place]
        self._taken[place] = []
        self.episodes[place] = episode = self.env.episode_of(scenario, self.rewards[place])
        if scenario.learn_from is not None:
            episode.reward(self.env.stage)  # discard the reward of the warm-up
        self._show(place, episode)
        for action in actions:
            self._answer(place, episode, action)
            self._show(place, episode)
        self.earned[place], self.totals[place] = shown

    # --- checkpoints ---------------------------------------------------------------------------------

    def state(self) -> list[dict[str, Any]]:
        """Return the state for :meth:`restore`, as JSON-compatible values."""
        return [
            {"stream": began, "actions": list(taken)}
            for began, taken in zip(self._began, self._taken, strict=True)
        ]

    def restore(self, state: Sequence[dict[str, Any]], streams: Sequence[np.random.Generator]) -> None:
        """Restore every episode to a saved state by replaying its actions.

        Raises
        ------
        UsageError
            The number of episodes differs from that of the state.
        """
        if len(state) != len(self.rewards):
            raise UsageError(f"a state of {len(self.rewards)} episodes is needed, found {len(state)}")
        for place, known in enumerate(state):
            streams[place].bit_generator.state = known["stream"]
            episode = self._begin(place, streams[place])
            for action in known["actions"]:
                self._answer(place, episode, action)
            self._show(place, episode)
