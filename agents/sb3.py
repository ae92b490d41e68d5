"""Training with Stable-Baselines3 and sb3-contrib, and what they have learned as an agent of the kit.

Their zip files hold pickles; the kit never loads one. A trained policy becomes an :class:`Agent` by its
arrays alone, and a run that was stopped goes on from arrays and JSON.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from torch.distributions import Distribution

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.global_chance import GlobalChance
from hpcsimkit.agents.networks import Dense
from hpcsimkit.agents.torch_networks import ACTIVATIONS
from hpcsimkit.agents.trainer import Round, RunSettings, State, Trainer
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.errors import UsageError

__all__ = ["ALGORITHMS", "SB3A2C", "SB3DQN", "SB3PPO", "SB3Settings", "SB3Trainer", "agent_of", "dense_of"]

ALGORITHMS: Mapping[str, tuple[str, str]] = {
    "maskable-ppo": ("sb3_contrib", "MaskablePPO"),
    "sb3-ppo": ("stable_baselines3", "PPO"),
    "sb3-a2c": ("stable_baselines3", "A2C"),
    "sb3-dqn": ("stable_baselines3", "DQN"),
}
"""Where each algorithm is found."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "maskable-ppo": {"n_steps": 128, "batch_size": 512},
    "sb3-ppo": {"n_steps": 128, "batch_size": 512},
    "sb3-a2c": {},
    "sb3-dqn": {"buffer_size": 100_000},
}
"""Options that differ from those of Stable-Baselines3, which are for one environment and slow with many."""

MEMORY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
"""Arrays of a replay buffer."""

ROUND_OF_DQN = 1024
"""Decisions, at least, between two reports of DQN, which learns every few."""


@dataclass(frozen=True)
class SB3Settings(RunSettings):
    """What trainers of Stable-Baselines3 are set by.

    Parameters
    ----------
    hidden : tuple of int
        Sizes of the hidden layers, of policy and value network each (``MlpPolicy``).
    activation : {"tanh", "relu"}
        Between the layers.
    options : mapping
        Parameters of the algorithm under the names that Stable-Baselines3 has for them (``learning_rate``,
        ``n_steps``, ``batch_size`` ...): numbers, words, booleans. What is not given is as in ``DEFAULTS``,
        or else as there.
    keep_memory : bool
        Checkpoints of DQN hold its replay buffer, which may be large. Without it a run that is taken up
        again begins with an empty one: it learns on, but not bit for bit what it would have learned.
    """

    episodes: int = 32
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    options: Mapping[str, Any] = field(default_factory=dict)
    keep_memory: bool = True


class SB3Trainer(Trainer):
    """Trains by an algorithm of Stable-Baselines3, as the kit's own trainers do.

    MaskablePPO knows which actions are options. The others do not: an action that is none counts as the
    first one that is, in training; the agent takes the best that is.

    Other parameters are those of :class:`~hpcsimkit.agents.trainer.Trainer`.

    Parameters
    ----------
    settings : SB3Settings
        How.
    algorithm : {"maskable-ppo", "sb3-ppo", "sb3-a2c", "sb3-dqn"}
        Which; by default MaskablePPO, or that of the subclass.

    Raises
    ------
    UsageError
        When training begins: the algorithm, its package, or an option is not known.
    """

    algorithm = "maskable-ppo"
    settings: SB3Settings
    model: Any

    def __init__(
        self, env: SchedulingEnv, settings: SB3Settings | None = None, *, algorithm: str | None = None,
        seed: int = 0, validate: Callable[[Agent], float] | None = None, validate_every: int = 10,
    ) -> None:  # fmt: skip
        super().__init__(
            env, settings or SB3Settings(), seed=seed, validate=validate, validate_every=validate_every
        )
        self.algorithm = algorithm or self.algorithm

    @property
    def options(self) -> dict[str, Any]:
        """All options that are not those of Stable-Baselines3."""
        return {**DEFAULTS.get(self.algorithm, {}), **self.settings.options}

    # --- what a trainer says -------------------------------------------------------------------------

    def build(self, seed: int) -> None:
        """Make the model, all of whose chance comes from the seed."""
        settings, kind = self.settings, _class(self.algorithm)
        options = _checked(self.options, self.algorithm, kind)
        if settings.activation not in ACTIVATIONS:
            raise UsageError(
                f"activation needs one of {', '.join(ACTIVATIONS)}, found {settings.activation!r}"
            )
        of_policy = {"net_arch": list(settings.hidden), "activation_fn": ACTIVATIONS[settings.activation]}
        self._chance = GlobalChance(seed)
        self.vector.action_space = copy.deepcopy(self.env.action_space)  # DQN draws from it
        self.vector.action_space.seed(seed)
        try:
            with self._chance:
                model = kind("MlpPolicy", self.vector, policy_kwargs=of_policy, device="cpu", **options)
        except (AssertionError, TypeError, ValueError) as error:
            raise UsageError(f"{self.algorithm}: {error}") from None
        self.model, self.networks, self.optimiser = model, model.policy, model.policy.optimizer
        self._ended_sums = _EndedSums()
        model.set_logger(Logger(None, []))
        model._last_obs = self.observations
        model._last_episode_starts = np.ones(settings.episodes, dtype=np.bool_)  # of step 0 nobody asks
        model._setup_learn(settings.steps, self._ended_sums, reset_num_timesteps=False)
        self._forgot_at = 0

    def round(self) -> Round:
        """Let the model play and learn: one rollout, or of DQN, which learns every few decisions, many."""
        self._ended_sums.sums.clear()
        learned: list[dict[str, float]] = []
        with self._chance, _unchecked():
            if self._memory is None:
                learned += self._on_policy()
            else:
                until = min(self.steps + ROUND_OF_DQN, self.settings.steps)
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
        """Return chance, counts, and the memory of DQN."""
        model, memory = self.model, self._memory
        about = {
            "chance": self._chance.state(), "draws": model.action_space.np_random.bit_generator.state,
            "counts": {name: getattr(model, name) for name in _COUNTS if hasattr(model, name)},
        }  # fmt: skip
        if memory is None or not self.settings.keep_memory:
            return State({}, about)
        rows = memory.size()
        about["memory"] = {"pos": memory.pos, "full": memory.full}
        return State({name: getattr(memory, name)[:rows] for name in MEMORY}, about)

    def restore(self, state: State) -> None:
        """Go on with all that."""
        model, memory, about = self.model, self._memory, state.about
        self._chance.restore(about["chance"])
        model.action_space.np_random.bit_generator.state = about["draws"]
        for name, value in about["counts"].items():
            setattr(model, name, value)
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
        """The replay buffer of DQN; the others have none."""
        return getattr(self.model, "replay_buffer", None)

    # --- playing and learning, as the methods learn() of Stable-Baselines3 do ------------------------

    def _on_policy(self) -> list[dict[str, float]]:
        model = self.model
        model.collect_rollouts(
            self.vector, self._ended_sums, model.rollout_buffer, n_rollout_steps=model.n_steps
        )
        model._update_current_progress_remaining(model.num_timesteps, self.settings.steps)
        model.train()
        return [self._measures()]

    def _off_policy(self) -> list[dict[str, float]]:
        model = self.model
        rollout = model.collect_rollouts(
            self.vector, train_freq=model.train_freq, callback=self._ended_sums,
            learning_starts=model.learning_starts, replay_buffer=model.replay_buffer,
        )  # fmt: skip
        if model.num_timesteps <= self._forgot_at + model.learning_starts:
            return []
        updates = model.gradient_steps if model.gradient_steps >= 0 else rollout.episode_timesteps
        model.train(batch_size=model.batch_size, gradient_steps=updates)
        return [self._measures()]

    def _measures(self) -> dict[str, float]:
        """Return what the model has noted of learning."""
        noted = self.model.logger.name_to_value
        return {name.split("/")[1]: float(noted[name]) for name in noted if name not in _NOT_TOLD}

    def _look_at_weights(self) -> None:
        if not all(bool(torch.isfinite(weights).all()) for weights in self.networks.parameters()):
            raise UsageError(f"{self.algorithm}: weights are no finite numbers after {self.steps} steps")


_COUNTS = ("num_timesteps", "_n_updates", "_n_calls", "exploration_rate")
_NOT_TOLD = {"train/n_updates", "train/learning_rate", "train/clip_range", "train/clip_range_vf"}


@contextmanager
def _unchecked() -> Iterator[None]:
    """Let distributions not check their arguments: a fifth of the time. Weights are looked at instead."""
    checked = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(checked)


class _EndedSums(BaseCallback):
    """Notes the sums of rewards of episodes that end."""

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


def _checked(options: dict[str, Any], algorithm: str, kind: Any) -> dict[str, Any]:
    """Return the options, if the algorithm has them and JSON can say them."""
    ours = {"self", "policy", "env", "seed", "device", "policy_kwargs", "tensorboard_log", "verbose"}
    known = [name for name in inspect.signature(kind).parameters if name not in ours | {"_init_setup_model"}]
    for name, value in options.items():
        if name not in known:
            raise UsageError(f"{algorithm} has the options {', '.join(known)}; found {name!r}")
        if not isinstance(value, int | float | str | None):
            raise UsageError(f"{algorithm}: {name} needs a number, a word or a boolean, found {value!r}")
    return options


class SB3PPO(SB3Trainer):
    """PPO of Stable-Baselines3; see :class:`SB3Trainer`."""

    algorithm = "sb3-ppo"


class SB3A2C(SB3Trainer):
    """A2C of Stable-Baselines3; see :class:`SB3Trainer`."""

    algorithm = "sb3-a2c"


class SB3DQN(SB3Trainer):
    """DQN of Stable-Baselines3; see :class:`SB3Trainer`."""

    algorithm = "sb3-dqn"


# --- from models to agents ---------------------------------------------------------------------------


def agent_of(
    model: Any, env: SchedulingEnv, *, sample: bool = False, about: dict[str, Any] | None = None
) -> Agent:
    """Return the agent that a trained model of Stable-Baselines3 is.

    Parameters
    ----------
    model : BaseAlgorithm
        PPO, A2C, DQN or MaskablePPO with the policy ``MlpPolicy``.
    env : SchedulingEnv
        With the encoder, mask and stage that it was trained with.
    sample : bool
        Draw actions (as in training) or take the best.
    about : dict, optional
        Where it comes from.
    """
    return Agent(env.encoder, env.mask, dense_of(model), env.stage, sample=sample, about=about)


def dense_of(model: Any) -> Dense:
    """Return the layers that lead from observations to actions, a copy of them.

    Raises
    ------
    UsageError
        The policy is made of anything but dense layers with one kind of activation between them.
    """
    policy = model.policy
    layers: Sequence[torch.nn.Module] = []
    if hasattr(policy, "q_net"):
        layers = list(policy.q_net.q_net)
    elif hasattr(policy, "mlp_extractor"):
        layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
    between = {type(layer).__name__.lower() for layer in layers if not isinstance(layer, torch.nn.Linear)}
    if not linear or len(between) > 1 or len(layers) != 2 * len(linear) - 1:
        raise UsageError(
            f"{type(policy).__name__} of {type(model).__name__} is no plain chain of dense layers"
        )
    tensors: dict[str, NDArray[np.float32]] = {}
    for number, layer in enumerate(linear):
        tensors[f"weight.{number}"] = layer.weight.detach().cpu().numpy().copy()
        tensors[f"bias.{number}"] = layer.bias.detach().cpu().numpy().copy()
    return Dense(tensors, activation=between.pop() if between else "tanh")
