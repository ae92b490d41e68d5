"""One open seat of a pipeline as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcsimkit.episode import Episode, Player
from hpcsimkit.episode_batch import EpisodeBatch
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encoder, Episodes, Mask, Reward, Valid
from hpcsimkit.policy import Policy

__all__ = ["SchedulingEnv"]

KEPT = ("encoder", "mask", "reward")
"""What spaces, arrays and sums are made for."""

METRICS_AT_THE_END = ("mean_wait_time", "mean_bounded_slowdown", "utilisation", "makespan")


class SchedulingEnv(gymnasium.Env[Any, Any]):
    """An open seat: who sits on it sees observations, chooses among numbered actions, and is paid.

    Each step answers one decision; the clock stands still meanwhile. An action that is no option now (see
    :meth:`action_masks`) counts as the first one that is, and is told in ``info["invalid"]``; learners that
    know masks never choose one. Encoder, mask and reward stay what they are: for others, make another
    environment.

    Parameters
    ----------
    episodes : Episodes
        Which scenario each episode is about.
    policy : Policy
        With the seat left open, by :class:`~hpcsimkit.decision.External`.
    encoder : Encoder
        What is seen; its docstring has the table of what stands where.
    mask : Mask
        How actions and options belong together.
    reward : Reward
        What is paid.
    stage : str
        Which seat. Other open seats are answered by the heuristic behind them.
    skip : bool
        Menus with one option are answered without asking.
    max_steps : int, optional
        Episodes are truncated after so many steps.
    attempts : int
        Episodes without any decision are passed over, until so many in a row had none. (In quiet times no
        two jobs wait at once, and there is nothing to learn from such a window.)
    metrics : iterable of str
        What ``info["metrics"]`` has at the end of an episode.
    render_mode : {"ansi", "rgb_array"}, optional
        What :meth:`render` returns: a line of text, or a picture of queue and machine.

    Examples
    --------
    >>> from hpcsimkit.agents.encoders import QueueWindow
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> from hpcsimkit.agents.masks import Slots
    >>> from hpcsimkit.agents.rewards import MinusMeanWait
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> env = SchedulingEnv(
    ...     Fixed(w), Pipeline(order=External()), QueueWindow(4), Slots(4), MinusMeanWait(), stage="order")
    >>> observation, info = env.reset(seed=0)
    >>> env.action_masks().tolist()
    [True, True, False, False]
    >>> env.step(1)[1:3]  # the shorter job first: the other one waits 4 s, that is 2 s on average
    (-2.0, True)
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's own way

    def __init__(
        self,
        episodes: Episodes,
        policy: Policy,
        encoder: Encoder,
        mask: Mask,
        reward: Reward,
        *,
        stage: str = "order",
        skip: bool = True,
        max_steps: int | None = None,
        attempts: int = 1,
        metrics: Iterable[str] = METRICS_AT_THE_END,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UsageError(f"render_mode needs 'ansi' or 'rgb_array', found {render_mode!r}")
        if not isinstance(attempts, int) or attempts < 1:
            raise UsageError(f"attempts needs a whole number of at least 1, found {attempts!r}")
        self.episodes = episodes
        self.policy = policy
        self.encoder = encoder
        self.mask = mask
        self.reward = reward
        self.stage = stage
        self.skip = skip
        self.max_steps = max_steps
        self.attempts = attempts
        self.metrics = tuple(metrics)
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(
            encoder.low, encoder.high, shape=encoder.shape, dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(mask.actions)
        self._batch = EpisodeBatch(self, [reward])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in KEPT and name in self.__dict__:
            raise UsageError(f"the {name} of an environment stays as it is: make another environment")
        super().__setattr__(name, value)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin the next episode; the same seed gives the same ones again.

        Raises
        ------
        UsageError
            An episode has no decision to take.
        """
        super().reset(seed=seed)
        info = self._batch.begin(0, self.np_random)
        return self._batch.observations[0].copy(), info

    def begin(self, rng: np.random.Generator, reward: Reward) -> Episode:
        """Begin an episode of this kind beside the environment's own, with a reward of its own.

        Raises
        ------
        UsageError
            It has no decision to take, nor have the next, as often as may be attempted.
        """
        player = Player(self.encoder, self.mask, reward)
        for _ in range(self.attempts):
            scenario = self.episodes.sample(rng)
            episode = Episode(scenario, self.policy, {self.stage: player}, skip=self.skip)
            if episode.decision is None:
                continue
            if scenario.learn_from is not None:
                episode.reward(self.stage)  # what the warm-up cost is nobody's merit
            return episode
        raise self._nothing_to_decide(scenario.workload.name)

    def _nothing_to_decide(self, name: str) -> UsageError:
        what = f"no decision for the {self.stage} seat"
        if self.attempts == 1:
            return UsageError(f"{name}: an episode has {what}")
        return UsageError(
            f"{name}: {self.attempts} episodes in a row have {what}; longer ones, or a higher load "
            "(load_factor), may have some"
        )

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Answer the decision at hand."""
        batch = self._batch
        info = batch.step(0, int(action))
        over = batch.terminated[0], batch.truncated[0]
        return batch.observations[0].copy(), batch.earned[0], *over, info

    def action_masks(self) -> Valid:
        """Return which actions are options now, bool, shape (actions,)."""
        return self._batch.valid[0].copy()

    @property
    def episode(self) -> Episode | None:
        """The episode that is played; None before the first."""
        return self._batch.episodes[0]

    def render(self) -> Any:
        """Return the state now, as a line of text or as a picture, uint8, shape (height, width, 3)."""
        episode = self.episode
        if self.render_mode is None or episode is None:
            return None
        from hpcsimkit import rendering

        system = episode.simulation.system
        return rendering.line(system) if self.render_mode == "ansi" else rendering.picture(system)


for _name in ("order", "backfill", "dispatch"):
    gymnasium.register(
        id=f"hpcsimkit/{_name.capitalize()}-v0", entry_point=f"hpcsimkit.agents.standard:{_name}"
    )
