"""Many episodes side by side in one process, for learners that take a batch of decisions at a time."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.episode_batch import EpisodeBatch
from hpcsimkit.errors import UsageError

__all__ = ["SchedulingVecEnv"]


class SchedulingVecEnv(VecEnv):
    """As many simulations as you like, stepped one after the other; Stable-Baselines3's ``VecEnv``.

    :class:`~hpcsimkit.gymnasium_vector.SchedulingVectorEnv` is the same for learners that know Gymnasium's
    ``VectorEnv``. Observations and masks are written straight into one array each. An episode that is over
    begins anew at once, as learners expect; its last observation, metrics and length stand in ``info``.

    Parameters
    ----------
    env : SchedulingEnv
        The pattern: its episodes, policy, encoder, mask and reward.
    count : int
        How many episodes run side by side, >= 1.
    seed : int
        Where the choice of episodes comes from.
    """

    def __init__(self, env: SchedulingEnv, count: int, seed: int = 0) -> None:
        if not isinstance(count, int) or count < 1:
            raise UsageError(f"a vector environment needs a count of at least 1, found {count!r}")
        self.env = env
        self._batch = EpisodeBatch(env, [copy.deepcopy(env.reward) for _ in range(count)])
        self._actions = np.zeros(count, dtype=np.int64)
        self._seed = seed
        self._streams = self._spawned(seed, count)
        self.render_mode = None
        super().__init__(count, env.observation_space, env.action_space)

    @staticmethod
    def _spawned(seed: int, count: int) -> list[np.random.Generator]:
        return [np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(count)]

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Choose the episodes anew, from the next reset on."""
        self._seed = self._seed if seed is None else seed
        self._streams = self._spawned(self._seed, self.num_envs)
        return [self._seed] * self.num_envs

    def reset(self) -> NDArray[np.float32]:
        """Begin all episodes."""
        for place, stream in enumerate(self._streams):
            self._batch.begin(place, stream)
        return self._batch.observations.copy()

    def state(self) -> list[dict[str, Any]]:
        """Return what :meth:`restore` needs to go on from here, in what JSON can say."""
        return self._batch.state()

    def restore(self, state: Sequence[dict[str, Any]]) -> NDArray[np.float32]:
        """Bring every episode to where it was, by playing its actions again; returns what is seen there.

        Raises
        ------
        UsageError
            The state is of another number of episodes.
        """
        self._batch.restore(state, self._streams)
        return self._batch.observations.copy()

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Take the actions, shape (count,)."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> Any:
        """Answer one decision of each episode."""
        return self.step_places(np.arange(self.num_envs), self._actions)

    def step_places(self, places: NDArray[np.int64], actions: NDArray[np.int64]) -> Any:
        """Answer one decision of some episodes only; the others stay where they are.

        Parameters
        ----------
        places : array of int, shape (some,)
            Which episodes.
        actions : array of int, shape (some,)
            What is answered.

        Returns
        -------
        tuple
            What ``step`` returns, of these places only.
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
        """Return which actions are options now, bool, shape (count, actions)."""
        return self._batch.valid.copy()

    # --- what Stable-Baselines3 asks of vector environments ------------------------------------------

    def close(self) -> None:
        """Forget the episodes."""
        self._batch.forget()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the pattern, once for each episode asked for."""
        return [getattr(self.env, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the episodes share their pattern."""
        raise UsageError(f"{attr_name}: the episodes of a vector environment cannot be changed one by one")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call ``action_masks`` of episodes, the one method that learners ask of them."""
        if method_name != "action_masks":
            raise UsageError(f"a vector environment has action_masks only, found {method_name!r}")
        return list(self._batch.valid[list(self._get_indices(indices))])

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Say that episodes are recorded (their returns stand in ``info``), and not wrapped otherwise."""
        recorded = wrapper_class.__name__ == "Monitor"
        return [recorded for _ in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Tell whether the pattern has an attribute."""
        return hasattr(self.env, attr_name)

    def get_images(self) -> Sequence[Any]:
        """Return nothing: many episodes are not drawn."""
        return []
