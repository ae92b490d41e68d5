"""Conversion of trained Stable-Baselines3 models to agents of the kit, which choose as the models do.

An :class:`Agent` is the chain of dense layers from observations to actions and nothing else: it needs no
Stable-Baselines3, and has a file. A model with anything before or around that chain (a features extractor,
normalised observations, a custom policy class) becomes a :class:`ModelAgent`, which calls the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecCheckNan,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
)
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.model_agent import ModelAgent
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.spaces.seat_encoders import Flat
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.errors import UsageError

__all__ = ["agent_of", "dense_of"]

SUPPORTED = (
    "MlpPolicy of PPO, A2C, DQN, TRPO and MaskablePPO, with FlattenExtractor, dense layers and Tanh or ReLU"
)
"""Models that can be converted."""

ACTIVATIONS: dict[type[torch.nn.Module], str] = {torch.nn.Tanh: "tanh", torch.nn.ReLU: "relu"}


def agent_of(
    model: Any, env: SchedulingEnv, *, sample: bool = False, about: dict[str, Any] | None = None
) -> Agent | ModelAgent:
    """Return an agent that makes the same choices as a trained Stable-Baselines3 model.

    The policy ``MlpPolicy`` of PPO, A2C, DQN, TRPO and MaskablePPO, with any ``net_arch`` and the activations
    Tanh and ReLU, becomes an :class:`~hpcsimkit.agents.agent.Agent`, which has a file; rewards may have been
    normalised. Everything else becomes a :class:`~hpcsimkit.agents.model_agent.ModelAgent`: custom features
    extractors and policies, recurrent and quantile policies, ``VecNormalize`` and ``VecFrameStack``,
    observation wrappers. Actions that are no option are never taken.

    A model loaded without its environment does not know whether observations were normalised or wrapped. Load
    it with that environment, ``PPO.load(file, env=...)``.

    Parameters
    ----------
    model : BaseAlgorithm
        Trained model.
    env : SchedulingEnv
        Environment with the encoder, mask and stage that it was trained with.
    sample : bool
        Whether to sample actions (as in training) instead of taking the best.
    about : dict, optional
        Origin of the agent: training, data, measured results.

    Raises
    ------
    UsageError
        The model is none, has other observations or actions than the environment, or its environment is
        wrapped in a way that cannot be repeated; the message names it.
    """
    flat = isinstance(env.encoder, Flat)
    encoder = env.encoder.encoder if isinstance(env.encoder, Flat) else env.encoder
    lost = [*_in_model(model), *_in_wrappers(model)]
    if not lost:
        _must_be_none(model, _of_another(model, env))
        return Agent(encoder, env.mask, dense_of(model), env.stage, sample=sample, about=about)
    if not hasattr(model, "predict"):
        _must_be_none(model, iter(lost))
    if not [*_in_wrappers(model)]:
        _must_be_none(model, _of_another(model, env))
    return ModelAgent(model, encoder, env.mask, stage=env.stage, flat=flat, sample=sample, about=about)


def _in_model(model: Any) -> Iterator[str]:
    """Yield the parts of a model besides dense layers from observations to actions."""
    policy = getattr(model, "policy", None)
    found = list(_in_policy(policy))
    yield from found
    if not found:
        yield from _in_layers(*_layers_of(policy))


def dense_of(model: Any) -> Dense:
    """Return a copy of the layers from observations to actions.

    Raises
    ------
    UsageError
        The policy has other than dense layers, or different activations between them.
    """
    policy = getattr(model, "policy", None)
    _must_be_none(model, _in_policy(policy))
    linear, between = _layers_of(policy)
    _must_be_none(model, _in_layers(linear, between))
    tensors: dict[str, NDArray[np.float32]] = {}
    for number, layer in enumerate(linear):
        weight = layer.weight.detach().cpu().numpy().copy()
        bias = None if layer.bias is None else layer.bias.detach().cpu().numpy().copy()
        tensors[f"weight.{number}"] = weight
        tensors[f"bias.{number}"] = np.zeros(len(weight), dtype=np.float32) if bias is None else bias
    return Dense(tensors, activation=ACTIVATIONS[type(between[0])] if between else "tanh")


def _layers_of(policy: Any) -> tuple[list[Any], list[Any]]:
    """Return the layers of a supported policy, and what is between them."""
    if isinstance(policy, DQNPolicy):
        layers = list(policy.q_net.q_net)
    else:
        layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    return layers[::2], layers[1::2]


def _must_be_none(model: Any, found: Iterator[str]) -> None:
    """Refuse the model for the first problem found."""
    problem = next(found, None)
    if problem is not None:
        raise UsageError(
            f"{type(model).__name__} cannot be made an agent: {problem}; supported are {SUPPORTED}"
        )


# --- parts that a conversion would lose -----------------------------------------------------------------


def _in_policy(policy: Any) -> Iterator[str]:
    """Yield the parts of a policy besides dense layers from observations to actions."""
    if type(policy) not in _policies():
        yield f"its policy is {type(policy).__name__}"
        return
    if not isinstance(policy.action_space, spaces.Discrete):
        yield f"its actions are {policy.action_space}"
    space = policy.observation_space
    if not isinstance(space, spaces.Box) or space.dtype != np.float32:
        yield f"its observations are {space}"
    if getattr(policy, "use_sde", False):
        yield "it explores state-dependently (use_sde)"
    if policy.squash_output:
        yield "its output is squashed (squash_output)"
    of_dqn = isinstance(policy, DQNPolicy)
    if of_dqn and type(policy.q_net) is not QNetwork:
        yield f"its network is {type(policy.q_net).__name__}"
    if not of_dqn and type(policy.mlp_extractor) is not MlpExtractor:
        yield f"its network is {type(policy.mlp_extractor).__name__}"
    extractor = policy.q_net.features_extractor if of_dqn else policy.pi_features_extractor
    if type(extractor) is not FlattenExtractor:
        yield f"its features extractor is {type(extractor).__name__}"


def _policies() -> list[type[Any]]:
    """Return the supported policy classes."""
    known: list[type[Any]] = [ActorCriticPolicy, DQNPolicy]
    try:
        from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

        from hpcsimkit.agents.training.maskable_policy import DensePolicy
    except ImportError:
        return known
    return [*known, MaskableActorCriticPolicy, DensePolicy]


def _in_layers(linear: Sequence[Any], between: Sequence[Any]) -> Iterator[str]:
    """Yield layers that are not dense, and unknown or differing activations."""
    for layer in linear:
        if type(layer) is not torch.nn.Linear:
            yield f"one of its layers is {type(layer).__name__}"
    for layer in between:
        if type(layer) not in ACTIVATIONS:
            yield f"one of its layers is {type(layer).__name__}"
    if len({type(layer) for layer in between}) > 1:
        yield "its activations differ from layer to layer"
    if len(linear) != len(between) + 1:
        yield "it ends with an activation"


def _in_wrappers(model: Any) -> Iterator[str]:
    """Yield the wrappers that change observations or actions between the environment and the model."""
    vector = getattr(model, "env", None)
    while isinstance(vector, VecEnvWrapper):
        if isinstance(vector, VecNormalize):
            if vector.norm_obs:
                yield "its observations are normalised (VecNormalize)"
        elif type(vector) not in (VecMonitor, VecCheckNan):
            yield f"its environment is wrapped in {type(vector).__name__}"
        vector = vector.venv
    if isinstance(vector, DummyVecEnv | SubprocVecEnv):
        for wrapper in (gymnasium.ObservationWrapper, gymnasium.ActionWrapper):
            if any(vector.env_is_wrapped(wrapper)):
                yield f"its environment is wrapped in {wrapper.__name__}"


def _of_another(model: Any, env: SchedulingEnv) -> Iterator[str]:
    """Yield observations and actions that are not those of the environment."""
    shape = getattr(getattr(model, "observation_space", None), "shape", None)
    if shape != env.observation_space.shape:
        yield f"it sees observations of shape {shape}, the environment gives {env.observation_space.shape}"
    actions, known = (getattr(each.action_space, "n", None) for each in (model, env))
    if actions != known:
        yield f"it has {actions} actions, the environment {known}"
