"""Many episodes side by side in one process, for learners that take a batch of decisions at a time."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.episode import Episode
from hpcsimkit.errors import UsageError
from hpcsimkit.metrics import evaluate

__all__ = ["SchedulingVecEnv"]


class SchedulingVecEnv(VecEnv):
    """As many simulations as you like, stepped one after the other; Stable-Baselines3's ``VecEnv``.

    Observations and masks are written straight into one array each. An episode that is over begins anew at
    once, as learners expect; its last observation, metrics and length stand in ``info``.

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
        self._rewards = [copy.deepcopy(env.reward) for _ in range(count)]
        self._episodes: list[Episode] = []
        self._observations = np.zeros((count, *env.encoder.shape), dtype=np.float32)
        self._valid = np.zeros((count, env.mask.actions), dtype=np.bool_)
        self._earned = np.zeros(count, dtype=np.float32)
        self._total = np.zeros(count)
        self._actions = np.zeros(count, dtype=np.int64)
        self._seed = seed
        self._streams = self._spawned(seed, count)
        self._began: list[Any] = [None] * count
        self._taken: list[list[int]] = [[] for _ in range(count)]
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
        self._episodes = [self._begun(place) for place in range(self.num_envs)]
        return self._observations.copy()

    # --- to be stopped and taken up again ------------------------------------------------------------

    def state(self) -> list[dict[str, Any]]:
        """Return what :meth:`restore` needs to go on from here, in what JSON can say."""
        return [
            {"stream": began, "actions": list(taken)}
            for began, taken in zip(self._began, self._taken, strict=True)
        ]

    def restore(self, state: Sequence[dict[str, Any]]) -> NDArray[np.float32]:
        """Bring every episode to where it was, by playing its actions again; returns what is seen there.

        Raises
        ------
        UsageError
            The state is of another number of episodes.
        """
        if len(state) != self.num_envs:
            raise UsageError(f"a state of {self.num_envs} episodes is needed, found {len(state)}")
        self._episodes = []
        for place, known in enumerate(state):
            self._streams[place].bit_generator.state = known["stream"]
            self._episodes.append(self._begun(place))
            for action in known["actions"]:
                self._answer(place, action)
            if known["actions"]:
                self._episodes[place].write(self._observations[place], self._valid[place])
        return self._observations.copy()

    def _begun(self, place: int) -> Episode:
        """Begin an episode, and write what it shows first."""
        self._began[place] = self._streams[place].bit_generator.state
        self._taken[place] = []
        episode = self.env.begin(self._streams[place], self._rewards[place])
        episode.write(self._observations[place], self._valid[place])
        self._total[place] = 0.0
        return episode

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Take the actions, shape (count,)."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> Any:
        """Answer one decision of each episode."""
        over = np.zeros(self.num_envs, dtype=np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        limit = self.env.max_steps
        for place, action in enumerate(self._actions.tolist()):
            episode, valid = self._episodes[place], self._valid[place]
            if not (0 <= action < len(valid) and valid[action]):
                infos[place]["invalid"] = True
                action = int(valid.argmax())
            self._answer(place, action)
            if episode.decision is None or (limit is not None and episode.decisions >= limit):
                over[place] = True
                infos[place] |= self._ended(place, episode)
                self._episodes[place] = self._begun(place)
            else:
                episode.write(self._observations[place], valid)
        return self._observations.copy(), self._earned.copy(), over, infos

    def _answer(self, place: int, action: int) -> None:
        """Answer a decision, and note what it earned."""
        episode = self._episodes[place]
        episode.answer(action)
        self._taken[place].append(action)
        self._earned[place] = earned = episode.reward(self.env.stage)
        self._total[place] += earned

    def _ended(self, place: int, episode: Episode) -> dict[str, Any]:
        """Return what is to be told of an episode that is over, or cut off."""
        info: dict[str, Any] = {
            "episode": {"r": float(self._total[place]), "l": episode.decisions, "t": 0.0},
            "TimeLimit.truncated": episode.decision is not None,
        }
        if episode.decision is None:
            info["terminal_observation"] = np.zeros_like(self._observations[place])
            info["metrics"] = evaluate(episode.result(), names=self.env.metrics)
        else:
            last = np.zeros_like(self._observations[place])
            episode.write(last, np.zeros_like(self._valid[place]))
            info["terminal_observation"] = last
        return info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are options now, bool, shape (count, actions)."""
        return self._valid.copy()

    # --- what Stable-Baselines3 asks of vector environments ------------------------------------------

    def close(self) -> None:
        """Forget the episodes."""
        self._episodes = []

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
        return list(self._valid[list(self._get_indices(indices))])

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
