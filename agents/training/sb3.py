"""Training with Stable-Baselines3 and sb3-contrib, for agents of the kit.

Their zip files contain pickles; the kit never loads one. A trained policy becomes an :class:`Agent` from its
arrays alone (:mod:`~hpcsimkit.agents.training.sb3_models`), and a run is resumed from arrays and JSON.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from torch.distributions import Distribution

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.networks.torch_networks import ACTIVATIONS
from hpcsimkit.agents.ranges import Count
from hpcsimkit.agents.training.global_random_state import GlobalRandomState
from hpcsimkit.agents.training.sb3_models import agent_of, dense_of
from hpcsimkit.agents.training.seat_trainer import RunSettings, SeatTrainer
from hpcsimkit.agents.training.trainer import Round, State, Validated
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.errors import UsageError

__all__ = ["ALGORITHMS", "SB3A2C", "SB3DQN", "SB3PPO", "SB3Settings", "SB3Trainer", "agent_of", "dense_of"]

ALGORITHMS: Mapping[str, tuple[str, str]] = {
    "maskable-ppo": ("sb3_contrib", "MaskablePPO"),
    "sb3-ppo": ("stable_baselines3", "PPO"),
    "sb3-a2c": ("stable_baselines3", "A2C"),
    "sb3-dqn": ("stable_baselines3", "DQN"),
}
"""Package and class of each algorithm."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "maskable-ppo": {"n_steps": 128, "batch_size": 512},
    "sb3-ppo": {"n_steps": 128, "batch_size": 512},
    "sb3-a2c": {},
    "sb3-dqn": {"buffer_size": 100_000},
}
"""Options that replace defaults of Stable-Baselines3, which suit one environment and are slow with many."""

MEMORY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
"""Arrays of a replay buffer."""

ROUND_OF_DQN = 1024
"""Minimum number of decisions between two reports of DQN, which updates every few decisions."""


@dataclass(frozen=True)
class SB3Settings(RunSettings):
    """Settings of the trainers based on Stable-Baselines3.

    Parameters
    ----------
    hidden : tuple of int
        Sizes of the hidden layers, of policy and value network each (``MlpPolicy``).
    activation : {"tanh", "relu"}
        Activation function between the layers.
    options : mapping
        Parameters of the algorithm by their names in Stable-Baselines3 (``learning_rate``, ``n_steps``,
        ``batch_size`` ...): numbers, strings, booleans. Others have the values in ``DEFAULTS``, or else the
        defaults of Stable-Baselines3.
    keep_memory : bool
        Whether checkpoints of DQN contain its replay buffer, which may be large. Without it a resumed run
        begins with an empty buffer, and is not reproducible bit for bit.

    Examples
    --------
    >>> SB3Settings(options={"learning_rate": 1e-4}).hidden
    (64, 64)
    """

    episodes: Count = 32
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    options: Mapping[str, Any] = field(default_factory=dict)
    keep_memory: bool = True


class SB3Trainer(SeatTrainer):
    """Trainer with an algorithm of Stable-Baselines3, used like the kit's own trainers.

    MaskablePPO supports action masks. The other algorithms do not: in training, a masked action counts as the
    first valid one; the agent takes the best valid action.

    Other parameters are those of :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

    Parameters
    ----------
    settings : SB3Settings
        Training settings.
    algorithm : {"maskable-ppo", "sb3-ppo", "sb3-a2c", "sb3-dqn"}
        Algorithm; by default MaskablePPO, or that of the subclass.

    Raises
    ------
    UsageError
        When training begins: the algorithm, its package, or an option is unknown.

    Examples
    --------
    >>> from hpcsimkit.agents.standard import order
    >>> options = {"n_steps": 16, "batch_size": 16}
    >>> settings = SB3Settings(total_timesteps=64, episodes=2, hidden=(8,), options=options)
    >>> agent = SB3Trainer(order(slots=4), settings).train()
    >>> agent.stage, agent.network.outputs
    ('order', 4)
    """

    algorithm = "maskable-ppo"
    settings: SB3Settings
    model: Any

    def __init__(
        self,
        env: SchedulingEnv,
        settings: SB3Settings | None = None,
        *,
        algorithm: str | None = None,
        seed: int = 0,
        validate: Callable[[Agent], float | Validated] | None = None,
        validate_every: int = 10,
    ) -> None:
        super().__init__(
            env, settings or SB3Settings(), seed=seed, validate=validate, validate_every=validate_every
        )
        self.algorithm = algorithm or self.algorithm

    @property
    def options(self) -> dict[str, Any]:
        """All options that differ from the defaults of Stable-Baselines3."""
        return {**DEFAULTS.get(self.algorithm, {}), **self.settings.options}

    # --- implementation of a trainer -----------------------------------------------------------------

    def build(self, seed: int) -> None:
        """Create the model, with all random numbers from the seed."""
        settings, kind = self.settings, _class(self.algorithm)
        options = _checked(self.options, self.algorithm, kind)
        if settings.activation not in ACTIVATIONS:
            raise UsageError(
                f"activation needs one of {', '.join(ACTIVATIONS)}, found {settings.activation!r}"
            )
        policy, faster = _policy(self.algorithm)
        layers = {"net_arch": list(settings.hidden), "activation_fn": ACTIVATIONS[settings.activation]}
        self._random_state = GlobalRandomState(seed)
        self.vector.action_space = copy.deepcopy(self.env.action_space)  # DQN samples from it
        self.vector.action_space.seed(seed)
        try:
            with self._random_state:
                model = kind(policy, self.vector, policy_kwargs={**layers, **faster}, device="cpu", **options)
        except (AssertionError, TypeError, ValueError) as error:
            raise UsageError(f"{self.algorithm}: {error}") from None
        self.model, self.networks, self.optimiser = model, model.policy, model.policy.optimizer
        self._ended_sums = _EndedSums()
        model.set_logger(Logger(None, []))
        model._last_obs = self.observations
        model._last_episode_starts = np.ones(settings.episodes, dtype=np.bool_)  # step 0: unused
        model._setup_learn(settings.total_timesteps, self._ended_sums, reset_num_timesteps=False)
        self._forgot_at = 0

    def round(self) -> Round:
        """Run one rollout with an update; for DQN, which updates every few decisions, many of them."""
        self._ended_sums.sums.clear()
        learned: list[dict[str, float]] = []
        with self._random_state, _unchecked():
            if self._memory is None:
                learned += self._on_policy()
            else:
                until = min(self.steps + ROUND_OF_DQN, self.settings.total_timesteps)
                while self.model.num_timesteps < until:
                    learned += self._off_policy()
        self.steps, self.observations = self.model.num_timesteps, self.model._last_obs
        self._look_at_weights()
        names = dict.fromkeys(name for measures in learned for name in measures)
        means = {name: float(np.mean([measures[name] for measures in learned])) for name in names}
        return Round(list(self._ended_sums.sums), means)

    def network(self) -> Dense:
        """Return the layers from observations to actions."""
        return dense_of(self.model)

    def state(self) -> State:
        """Return random states, counters, and the replay buffer of DQN."""
        model, memory = self.model, self._memory
        about = {
            "chance": self._random_state.state(),
            "draws": model.action_space.np_random.bit_generator.state,
            "counts": {name: getattr(model, name) for name in _COUNTS if hasattr(model, name)},
        }
        if memory is None or not self.settings.keep_memory:
            return State({}, about)
        rows = memory.size()
        about["memory"] = {"pos": memory.pos, "full": memory.full}
        return State({name: getattr(memory, name)[:rows] for name in MEMORY}, about)

    def restore(self, state: State) -> None:
        """Restore random states, counters, and the replay buffer."""
        model, memory, about = self.model, self._memory, state.about
        self._random_state.restore(about["chance"])
        model.action_space.np_random.bit_generator.state = about["draws"]
        for name in about["counts"].keys() & set(_COUNTS):
            setattr(model, name, about["counts"][name])
        model._last_obs = self.observations
        if memory is not None and "memory" in about:
            memory.pos, memory.full = about["memory"]["pos"], about["memory"]["full"]
            for name in MEMORY:
                getattr(memory, name)[: memory.size()] = state.tensors[name]
        elif memory is not None:
            self._forgot_at = model.num_timesteps

    def plain_settings(self) -> dict[str, Any]:
        """Return the settings with all options."""
        return {**super().plain_settings(), "options": self.options}

    @property
    def _memory(self) -> Any:
        """Replay buffer of DQN; None for the other algorithms."""
        return getattr(self.model, "replay_buffer", None)

    # --- rollouts and updates, as in the methods learn() of Stable-Baselines3 ------------------------

    def _on_policy(self) -> list[dict[str, float]]:
        model = self.model
        model.collect_rollouts(
            self.vector, self._ended_sums, model.rollout_buffer, n_rollout_steps=model.n_steps
        )
        model._update_current_progress_remaining(model.num_timesteps, self.settings.total_timesteps)
        model.train()
        return [self._measures()]

    def _off_policy(self) -> list[dict[str, float]]:
        model = self.model
        rollout = model.collect_rollouts(
            self.vector,
            train_freq=model.train_freq,
            callback=self._ended_sums,
            learning_starts=model.learning_starts,
            replay_buffer=model.replay_buffer,
        )
        if model.num_timesteps <= self._forgot_at + model.learning_starts:
            return []
        updates = model.gradient_steps if model.gradient_steps >= 0 else rollout.episode_timesteps
        model.train(batch_size=model.batch_size, gradient_steps=updates)
        return [self._measures()]

    def _measures(self) -> dict[str, float]:
        """Return the measures that the model has logged."""
        noted = self.model.logger.name_to_value
        return {name.split("/")[1]: float(noted[name]) for name in noted if name not in _NOT_TOLD}

    def _look_at_weights(self) -> None:
        if not all(bool(torch.isfinite(weights).all()) for weights in self.networks.parameters()):
            raise UsageError(f"{self.algorithm}: weights are no finite numbers after {self.steps} steps")


_COUNTS = ("num_timesteps", "_n_updates", "_n_calls", "exploration_rate")
_NOT_TOLD = {"train/n_updates", "train/learning_rate", "train/clip_range", "train/clip_range_vf"}


@contextmanager
def _unchecked() -> Iterator[None]:
    """Skip distributions' argument checks, a fifth of the run time; weights are checked instead."""
    checked = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(checked)


class _EndedSums(BaseCallback):
    """Callback that records the returns of ended episodes."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: list[float] = []

    def _on_step(self) -> bool:
        self.sums += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        return True


def _class(algorithm: str) -> Any:
    """Return the class of an algorithm."""
    if algorithm not in ALGORITHMS:
        raise UsageError(f"an algorithm of {', '.join(ALGORITHMS)} is needed, found {algorithm!r}")
    package, name = ALGORITHMS[algorithm]
    try:
        return getattr(importlib.import_module(package), name)
    except ImportError:
        raise UsageError(f"{algorithm} needs the package {package}: pip install 'hpcsimkit[rl]'") from None


def _policy(algorithm: str) -> tuple[Any, dict[str, Any]]:
    """Return the policy class, or its name in Stable-Baselines3, and options that change no weight."""
    if algorithm != "maskable-ppo":
        return "MlpPolicy", {}
    from hpcsimkit.agents.training.maskable_policy import DensePolicy

    # All tensors at once; with any options, the default of Stable-Baselines3 must be among them.
    return DensePolicy, {"optimizer_kwargs": {"eps": 1e-5, "foreach": True}}


def _checked(options: dict[str, Any], algorithm: str, kind: Any) -> dict[str, Any]:
    """Return the options, after checking their names and types."""
    ours = {"self", "policy", "env", "seed", "device", "policy_kwargs", "tensorboard_log", "verbose"}
    known = [name for name in inspect.signature(kind).parameters if name not in ours | {"_init_setup_model"}]
    for name, value in options.items():
        if name not in known:
            raise UsageError(f"{algorithm} has the options {', '.join(known)}; found {name!r}")
        if not isinstance(value, int | float | str | None):
            raise UsageError(f"{algorithm}: {name} needs a number, a word or a boolean, found {value!r}")
    return options


class SB3PPO(SB3Trainer):
    """PPO of Stable-Baselines3; see :class:`SB3Trainer`.

    Examples
    --------
    >>> from hpcsimkit.agents.standard import order
    >>> trainer = SB3PPO(order(slots=4), SB3Settings(options={"n_steps": 32}))
    >>> trainer.algorithm, trainer.options["n_steps"]
    ('sb3-ppo', 32)
    """

    algorithm = "sb3-ppo"


class SB3A2C(SB3Trainer):
    """A2C of Stable-Baselines3; see :class:`SB3Trainer`.

    Examples
    --------
    >>> from hpcsimkit.agents.standard import order
    >>> trainer = SB3A2C(order(slots=4), SB3Settings(hidden=(32,)))
    >>> trainer.algorithm, trainer.settings.hidden
    ('sb3-a2c', (32,))
    """

    algorithm = "sb3-a2c"


class SB3DQN(SB3Trainer):
    """DQN of Stable-Baselines3; see :class:`SB3Trainer`.

    Examples
    --------
    >>> from hpcsimkit.agents.standard import order
    >>> trainer = SB3DQN(order(slots=4), SB3Settings(keep_memory=False))
    >>> trainer.algorithm, trainer.learns_policy
    ('sb3-dqn', False)
    """

    algorithm = "sb3-dqn"
    learns_policy = False
