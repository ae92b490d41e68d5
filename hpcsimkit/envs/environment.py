"""One open seat of a pipeline as a Gymnasium environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from operator import index
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.episode_batch import EpisodeBatch
from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Reward, Valid, actions_of, sampled, shape_of
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.policy import Policy

__all__ = ["SchedulingEnv"]

KEPT = ("encoder", "mask", "reward")
"""Attributes on which spaces, arrays and sums depend."""

METRICS_AT_THE_END = ("mean_wait_time", "mean_bounded_slowdown", "utilisation", "makespan")


class SchedulingEnv(gymnasium.Env[Any, Any]):
    """Environment of an open seat, with observations, numbered actions and rewards.

    Each step answers one decision; the clock does not advance meanwhile. An invalid action (see
    :meth:`action_masks`) is replaced by the first valid one and reported in ``info["invalid"]``; agents with
    action masking never choose one. Encoder, mask and reward of an environment are fixed.

    An environment can be copied (``copy.deepcopy``) and pickled in the middle of an episode. The copy repeats
    the actions of the episode so far, which takes as long as they took before.

    Parameters
    ----------
    episodes : Episodes
        Distribution or sequence of scenarios.
    policy : Policy
        The policy, with the seat left open by :class:`~hpcsimkit.kernel.decision.External`.
    encoder : Encoder
        Encoder of the observations; its docstring describes their layout.
    mask : Mask
        Mapping between actions and options.
    reward : Reward
        Reward of the agent.
    stage : str
        The seat of the agent. Other open seats are answered by the heuristic behind them. Default:
        ``"order"``.
    skip : bool
        Whether decisions with a single option are answered automatically. Default: True.
    max_steps : int, optional
        Maximum number of steps, after which an episode is truncated; by default unlimited.
    attempts : int
        Maximum number of episodes to try until one has a decision, >= 1; episodes without decisions are
        skipped, since in quiet periods no two jobs wait at the same time. Default: 1.
    metrics : iterable of str
        Metrics in ``info["metrics"]`` at the end of an episode.
    render_mode : {"ansi", "rgb_array"}, optional
        Format of :meth:`render`: a line of text, or an image of queue and machine; by default none.
    simulator : {"auto", "simpy", "compiled"}
        The program that runs up to each decision; observations, rewards and schedules do not depend on it.
        ``"auto"`` takes the compiled one (extra ``[fast]``) where policy, encoder, mask and reward allow it,
        once a training has enough jobs. Default: ``"auto"``.

    Attributes
    ----------
    simulators : Counter of str
        Number of episodes begun on each simulator, ``"simpy"`` or ``"compiled"``.

    Examples
    --------
    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import Slots
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> from hpcsimkit import External, Pipeline, Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)
    >>> env = SchedulingEnv(
    ...     Fixed(w), Pipeline(order=External()), QueueWindow(4), Slots(4), MinusMeanWait(), stage="order")
    >>> observation, info = env.reset(seed=0)
    >>> env.action_masks().tolist()
    [True, True, False, False]
    >>> env.step(1)[1:3]  # the shorter job first: the other one waits for 4 s, 2 s on average
    (-2.0, True)
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's convention

    def __init__(  # noqa: PLR0913 - stored keywords
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
        simulator: Literal["auto", "simpy", "compiled"] = "auto",
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
        self.simulator = simulator
        shape, actions = self.sizes = shape_of(encoder), actions_of(mask)
        with guarded(f"the encoder {type(encoder).__name__}"):
            self.observation_space = gymnasium.spaces.Box(
                encoder.low, encoder.high, shape=shape, dtype=np.float32
            )
        self.action_space = gymnasium.spaces.Discrete(actions)
        self.simulators: Counter[str] = Counter()
        self._batch = EpisodeBatch(self, [reward])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in KEPT and name in self.__dict__:
            raise UsageError(f"the {name} of an environment stays as it is: make another environment")
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._batch.repeat()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin the next episode; equal seeds give equal sequences of episodes.

        Raises
        ------
        UsageError
            An episode has no decisions.
        """
        super().reset(seed=seed)
        info = self._batch.begin(0, self.np_random)
        return self._batch.observations[0].copy(), info

    def begin(self, rng: np.random.Generator, reward: Reward) -> Episode:
        """Begin an additional episode of this environment with a separate reward object.

        Raises
        ------
        UsageError
            All attempted episodes are without decisions.
        """
        self._check_sizes()
        for _ in range(self.attempts):
            scenario = sampled(self.episodes, rng)
            episode = self.episode_of(scenario, reward)
            if episode.decision is None:
                continue
            if scenario.learn_from is not None:
                episode.reward(self.stage)  # discard the reward of the warm-up
            return episode
        raise self._nothing_to_decide(scenario.workload.name)

    def episode_of(self, scenario: Scenario, reward: Reward) -> Episode:
        """Begin an episode of a given scenario, and count its simulator.

        Parameters
        ----------
        scenario : Scenario
            The jobs and the cluster.
        reward : Reward
            The reward of this episode, not shared with another one that is still running.

        Returns
        -------
        Episode
            The episode at its first decision, or at its end if it has none.
        """
        player = Player(self.encoder, self.mask, reward)
        episode = Episode(
            scenario, self.policy, {self.stage: player}, skip=self.skip, simulator=self.simulator
        )
        self.simulators[episode.simulation.program] += 1
        return episode

    def _check_sizes(self) -> None:
        """Check that the sizes of encoder and mask have not changed."""
        for part, name, was, now in (
            (self.encoder, "shape", self.sizes[0], shape_of(self.encoder)),
            (self.mask, "actions", self.sizes[1], actions_of(self.mask)),
        ):
            if was != now:
                raise UsageError(f"{part!r}: {name} must stay as it is, was {was}, is {now}")

    def _nothing_to_decide(self, name: str) -> UsageError:
        what = f"no decision for the {self.stage} seat"
        if self.attempts == 1:
            return UsageError(f"{name}: an episode has {what}")
        return UsageError(
            f"{name}: {self.attempts} episodes in a row have {what}; longer ones, or a higher load "
            "(load_factor), may have some"
        )

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Answer the pending decision; an action that is masked is replaced by the first valid one.

        Raises
        ------
        UsageError
            The action is no whole number of the action space.
        """
        batch = self._batch
        info = batch.step(0, self._number(action))
        over = batch.terminated[0], batch.truncated[0]
        return batch.observations[0].copy(), batch.earned[0], *over, info

    def _number(self, action: Any) -> int:
        """Return an action as a number, after checking that it is in the action space."""
        self._batch.episode(0)  # there is one
        count = len(self._batch.valid[0])
        with suppress(TypeError):
            if 0 <= (number := index(action)) < count:
                return number
        raise UsageError(f"step needs a whole number from 0 to {count - 1}, found {action!r}")

    def action_masks(self) -> Valid:
        """Return the mask of the valid actions, bool, shape (actions,)."""
        return self._batch.valid[0].copy()

    @property
    def episode(self) -> Episode | None:
        """The current episode; None before the first reset."""
        return self._batch.episodes[0]

    def render(self) -> Any:
        """Return the current state as a line of text or as an image, uint8, shape (height, width, 3)."""
        episode = self.episode
        if self.render_mode is None or episode is None:
            return None
        from hpcsimkit.envs import rendering

        system = episode.simulation.system
        return rendering.line(system) if self.render_mode == "ansi" else rendering.picture(system)
