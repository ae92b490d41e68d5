"""Vector environment of many episodes in one process, with Gymnasium's interface."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode_batch import EpisodeBatch
from hpcsimkit.errors import UsageError

__all__ = ["SchedulingVectorEnv"]

Flags = NDArray[np.bool_]
Step = tuple[NDArray[np.float32], NDArray[np.float64], Flags, Flags, dict[str, Any]]


class SchedulingVectorEnv(VectorEnv[Any, Any, Any]):
    """A batch of simulations, stepped sequentially in one process; a Gymnasium ``VectorEnv``.

    The results equal those of Gymnasium's ``SyncVectorEnv``, but without separate environments: observations
    and masks are written directly into common arrays. (For Stable-Baselines3, use
    :class:`~hpcsimkit.envs.vector_environment.SchedulingVecEnv`.)

    Parameters
    ----------
    env : SchedulingEnv
        The template environment, which provides episodes, policy, encoder, mask and reward.
    count : int
        Number of episodes in the batch, >= 1.
    autoreset_mode : {"NextStep", "SameStep"} or AutoresetMode
        Reset time of a finished episode: the next step, in which its action is ignored, or the same step,
        with ``final_obs`` and ``final_info`` in ``infos``. It is also stored in ``metadata``. Default:
        ``"NextStep"``.

    Examples
    --------
    >>> from hpcsimkit.agents.standard import order
    >>> envs = SchedulingVectorEnv(order(slots=4), 3)
    >>> observations, infos = envs.reset(seed=7)
    >>> envs.action_masks().shape
    (3, 4)
    >>> observations, rewards, terminations, truncations, infos = envs.step(np.zeros(3, dtype=int))
    >>> observations.shape, rewards.shape, infos["time"].shape
    ((3, 5, 5), (3,), (3,))
    """

    def __init__(
        self,
        env: SchedulingEnv,
        count: int,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        if not isinstance(count, int) or count < 1:
            raise UsageError(f"a vector environment needs a count of at least 1, found {count!r}")
        modes = {mode.value: mode for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)}
        mode = modes.get(getattr(autoreset_mode, "value", autoreset_mode))
        if mode is None:
            raise UsageError(f"autoreset_mode needs one of {', '.join(modes)}, found {autoreset_mode!r}")
        super().__init__()
        self.env = env
        self.num_envs = count
        self.autoreset_mode = mode
        self.metadata = {**env.metadata, "autoreset_mode": mode}
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._batch = EpisodeBatch(env, [copy.deepcopy(env.reward) for _ in range(count)])
        self._streams: list[np.random.Generator | None] = [None] * count

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin all episodes, or those selected by ``options["reset_mask"]``, bool, shape (count,).

        Parameters
        ----------
        seed : int or sequence of int, optional
            Seeds of the episodes; with a single seed, episode *i* gets ``seed + i``. By default the random
            number generators are not reseeded.
        """
        seeds = [seed + place for place in range(self.num_envs)] if isinstance(seed, int) else seed
        if seeds is not None and len(seeds) != self.num_envs:
            raise UsageError(f"{self.num_envs} seeds are needed, found {len(seeds)}")
        chosen = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, dtype=np.bool_)))
        if chosen.shape != (self.num_envs,) or chosen.dtype != np.bool_ or not chosen.any():
            raise UsageError(f"reset_mask needs {self.num_envs} flags, some of them set, found {chosen!r}")
        infos: dict[str, Any] = {}
        for place in np.flatnonzero(chosen).tolist():
            known = self._streams[place]
            if known is None or (seeds is not None and seeds[place] is not None):
                known, _ = seeding.np_random(None if seeds is None else seeds[place])
                self._streams[place] = known
            infos = self._add_info(infos, self._batch.begin(place, known), place)
        return self._batch.observations.copy(), infos

    def step(self, actions: Any) -> Step:
        """Answer one decision of each episode; the actions have shape (count,)."""
        batch = self._batch
        infos: dict[str, Any] = {}
        earned = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), dtype=np.bool_)
        for place, action in enumerate(np.asarray(actions).tolist()):
            ended = batch.terminated[place] or batch.truncated[place]  # in the previous step
            info = self._begin(place) if ended else batch.step(place, action)
            earned[place] = batch.earned[place]
            terminated[place], truncated[place] = batch.terminated[place], batch.truncated[place]
            if self.autoreset_mode is AutoresetMode.SAME_STEP and (terminated[place] or truncated[place]):
                final = {"final_obs": batch.observations[place].copy(), "final_info": info}
                infos = self._add_info(infos, final, place)
                info = self._begin(place)
            infos = self._add_info(infos, info, place)
        return batch.observations.copy(), earned, terminated, truncated, infos

    def _begin(self, place: int) -> dict[str, Any]:
        stream = self._streams[place]
        assert stream is not None
        return self._batch.begin(place, stream)

    def action_masks(self) -> Flags:
        """Return the masks of the valid actions, bool, shape (count, actions); all False at episode ends."""
        return self._batch.valid.copy()

    def close_extras(self, **kwargs: Any) -> None:
        """Release the episodes."""
        self._batch.forget()
