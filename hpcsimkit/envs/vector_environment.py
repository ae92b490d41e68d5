"""Vector environment of many episodes in one process, for algorithms that process decisions in batches."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode_batch import EpisodeBatch
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision

__all__ = ["SchedulingVecEnv"]


class SchedulingVecEnv(VecEnv):
    """A batch of simulations, stepped sequentially in one process; a Stable-Baselines3 ``VecEnv``.

    :class:`~hpcsimkit.envs.gymnasium_vector.SchedulingVectorEnv` is the equivalent with Gymnasium's
    ``VectorEnv`` interface. Observations and masks are written directly into common arrays. A finished
    episode is followed by the next one at once, as the interface requires; its last observation, metrics and
    length are in ``info``.

    Parameters
    ----------
    env : SchedulingEnv
        The template environment, which provides episodes, policy, encoder, mask and reward.
    count : int
        Number of episodes in the batch, >= 1.
    seed : int
        Random seed of the episodes. Default: 0.
    group : int
        Number of neighbouring places with the same sequence of scenarios. Default: 1.
    """

    def __init__(self, env: SchedulingEnv, count: int, seed: int = 0, group: int = 1) -> None:
        if not isinstance(count, int) or count < 1:
            raise UsageError(f"a vector environment needs a count of at least 1, found {count!r}")
        if group < 1 or count % group:
            raise UsageError(f"{count} episodes cannot be divided into groups of {group}")
        self.env = env
        self._batch = EpisodeBatch(env, [copy.deepcopy(env.reward) for _ in range(count)])
        self._actions = np.zeros(count, dtype=np.int64)
        self._group = group
        self._seed = seed
        self._streams = self._spawned(seed, count)
        self.render_mode = None
        super().__init__(count, env.observation_space, env.action_space)

    def _spawned(self, seed: int, count: int) -> list[np.random.Generator]:
        """Return a random number generator for each episode, equal ones within a group."""
        streams = np.random.SeedSequence(seed).spawn(count // self._group)
        return [np.random.default_rng(stream) for stream in streams for _ in range(self._group)]

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Reseed the episodes, with effect from the next reset."""
        self._seed = self._seed if seed is None else seed
        self._streams = self._spawned(self._seed, self.num_envs)
        return [self._seed] * self.num_envs

    def reset(self) -> NDArray[np.float32]:
        """Begin new episodes and return their observations."""
        for place, stream in enumerate(self._streams):
            self._batch.begin(place, stream)
        return self._batch.observations.copy()

    def state(self) -> list[dict[str, Any]]:
        """Return the state for :meth:`restore`, as JSON-compatible values."""
        return self._batch.state()

    def restore(self, state: Sequence[dict[str, Any]]) -> NDArray[np.float32]:
        """Restore every episode to a saved state by replaying its actions; return the observations.

        Raises
        ------
        UsageError
            The number of episodes differs from that of the state.
        """
        self._batch.restore(state, self._streams)
        return self._batch.observations.copy()

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Store the actions, shape (count,), of the next step."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> Any:
        """Answer one decision of each episode."""
        return self.step_places(np.arange(self.num_envs), self._actions)

    def step_places(self, places: NDArray[np.int64], actions: NDArray[np.int64]) -> Any:
        """Answer one decision each of some episodes; the others are unchanged.

        Parameters
        ----------
        places : array of int, shape (some,)
            Indices of the episodes.
        actions : array of int, shape (some,)
            Actions of these episodes.

        Returns
        -------
        tuple
            The return values of ``step``, for these episodes only.
        """
        batch = self._batch
        chosen = list(zip(places.tolist(), actions.tolist(), strict=True))
        infos = [batch.step(place, action) for place, action in chosen]
        earned = np.array([batch.earned[place] for place, _ in chosen], dtype=np.float32)
        over = np.array([batch.terminated[place] or batch.truncated[place] for place, _ in chosen])
        for number in np.flatnonzero(over).tolist():
            place = chosen[number][0]
            infos[number] |= {
                "episode": {"r": batch.totals[place], "l": batch.episode(place).decisions, "t": 0.0},
                "TimeLimit.truncated": batch.truncated[place],
                "terminal_observation": batch.observations[place].copy(),
            }
            batch.begin(place, self._streams[place])
        return batch.observations[places], earned, over, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the masks of the valid actions, bool, shape (count, actions)."""
        return self._batch.valid.copy()

    @property
    def decisions(self) -> list[Decision]:
        """The pending decision of each episode."""
        episodes = map(self._batch.episode, range(self.num_envs))
        return [episode.decision for episode in episodes if episode.decision is not None]

    # --- remaining methods of the VecEnv interface ---------------------------------------------------

    def close(self) -> None:
        """Release the episodes."""
        self._batch.forget()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the template environment, once for each selected episode."""
        return [getattr(self.env, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise an error, since all episodes share the template environment."""
        raise UsageError(f"{attr_name}: the episodes of a vector environment cannot be changed one by one")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call ``action_masks``, the only supported method, of the selected episodes."""
        if method_name != "action_masks":
            raise UsageError(f"a vector environment has action_masks only, found {method_name!r}")
        return list(self._batch.valid[list(self._get_indices(indices))])

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return True for ``Monitor``, since returns are reported in ``info``, and False otherwise."""
        recorded = wrapper_class.__name__ == "Monitor"
        return [recorded for _ in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Return whether the template environment has an attribute."""
        return hasattr(self.env, attr_name)

    def get_images(self) -> Sequence[Any]:
        """Return an empty list, since batches are not rendered."""
        return []
