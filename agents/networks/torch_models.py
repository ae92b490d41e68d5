"""Scores of PyTorch modules and of Stable-Baselines3 models as they are: shared, never copied, in batches.

A model is used by its own code, so that no part of it is lost: features extractors of any kind, recurrent
states, quantiles, normalised and stacked observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.networks.scorer import Scorer
from hpcsimkit.errors import UsageError

__all__ = ["module_scorer", "problems_of", "put_tensors", "sb3_scorer", "tensors_of"]

Array = NDArray[Any]

WITHOUT_EFFECT = ("VecMonitor", "VecCheckNan", "VecTransposeImage", "VecVideoRecorder")
"""Wrappers of vector environments that change no observation of ours."""


@contextmanager
def _inference(module: torch.nn.Module) -> Iterator[None]:
    """Evaluate a module without gradients and without dropout, and leave it in the mode that it had."""
    training = module.training
    if training:
        module.train(mode=False)
    try:
        with torch.no_grad():
            yield
    finally:
        if training:
            module.train()


def _device_of(module: torch.nn.Module) -> torch.device:
    first = next(iter(module.parameters()), None)
    return torch.device("cpu") if first is None else first.device


def module_scorer(module: torch.nn.Module) -> Scorer:
    """Return the scores of a module: its output for a batch of observations, or the first one of several."""
    name = type(module).__name__

    def scores(observations: Array, valid: Array, state: Any) -> tuple[Array, Any]:
        batch = torch.as_tensor(observations, device=_device_of(module))
        try:
            with _inference(module):
                found = module(batch)
        except RuntimeError as error:  # of shapes
            shape = tuple(observations.shape)
            hint = "" if len(shape) == 2 else "; flat=True gives it rows of numbers"
            raise UsageError(f"{name} fails on observations of shape {shape}: {error}{hint}") from None
        output = found[0] if isinstance(found, tuple | list) else found
        values = output.detach().cpu().numpy().astype(np.float64)
        if values.size != valid.size:
            raise UsageError(
                f"{name} gives {tuple(values.shape)} for {tuple(observations.shape)}; a score is needed for "
                f"each of {valid.shape[1]} actions"
            )
        return values.reshape(valid.shape), state

    return Scorer(name, scores)


def tensors_of(module: torch.nn.Module) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of a module.

    Raises
    ------
    UsageError
        One of them is of another type than float32.
    """
    state = module.state_dict()
    other = [name for name, values in state.items() if values.dtype is not torch.float32]
    if other:
        raise UsageError(f"{type(module).__name__}: {other[0]} is {state[other[0]].dtype}, float32 is needed")
    return {name: values.detach().cpu().numpy() for name, values in state.items()}


def put_tensors(module: torch.nn.Module, tensors: Mapping[str, Array]) -> None:
    """Set the tensors of a module.

    Raises
    ------
    UsageError
        The module has other ones.
    """
    state = {name: torch.as_tensor(values) for name, values in tensors.items()}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{type(module).__name__} is not the module of this file: {reason}") from None


# --- Stable-Baselines3 -------------------------------------------------------------------------------------


def problems_of(model: Any) -> Iterator[str]:
    """Yield what is between a model and its environment that cannot be repeated."""
    for wrapper in _wrappers(model):
        name = type(wrapper).__name__
        if hasattr(wrapper, "observation"):
            continue
        if name not in (*WITHOUT_EFFECT, "VecNormalize", "VecFrameStack"):
            yield f"its environment is wrapped in {name}, which may change observations"
    actions = getattr(model, "action_space", None)
    if not hasattr(actions, "n"):
        yield f"its actions are {actions}"
    vector = _innermost(model)
    if vector is not None and any(vector.env_is_wrapped(gymnasium.ActionWrapper)):
        yield "its environment is wrapped in ActionWrapper"
    if (
        vector is not None
        and not hasattr(vector, "envs")
        and any(vector.env_is_wrapped(gymnasium.ObservationWrapper))
    ):
        yield "its environment is wrapped in ObservationWrapper in another process"


def sb3_scorer(model: Any) -> Scorer:
    """Return the scores of a model of Stable-Baselines3, with the wrappers of its environment.

    Raises
    ------
    UsageError
        Something between the model and its environment cannot be repeated; see :func:`problems_of`.
    """
    name = type(model).__name__
    problem = next(problems_of(model), None)
    if problem is not None:
        raise UsageError(f"{name} cannot take decisions: {problem}")
    steps, score = [_step_of(each) for each in _wrappers(model)], _score_of(model)
    policy = model.policy
    shape = tuple(model.observation_space.shape or ())

    def scores(observations: Array, valid: Array, state: Any) -> tuple[Array, Any]:
        seen, (stacks, memory) = observations, state or ([None] * len(steps), None)
        stacks = list(stacks)
        for place, step in enumerate(steps):
            seen, stacks[place] = step(seen, stacks[place])
        if isinstance(seen, np.ndarray) and seen.shape[1:] != shape:
            raise UsageError(f"{name} sees observations of shape {shape}, the encoder gives {seen.shape[1:]}")
        with _inference(policy):
            values, memory = score(seen, valid, memory)
        if values.shape != valid.shape:
            raise UsageError(f"{name} has {values.shape[1]} actions, the mask {valid.shape[1]}")
        return values.astype(np.float64), (stacks, memory)

    return Scorer(name, scores)


def _wrappers(model: Any) -> list[Any]:
    """Return the wrappers of the model's environment, from the inside outwards."""
    found, vector = [], getattr(model, "env", None)
    while vector is not None and hasattr(vector, "venv"):
        found.append(vector)
        vector = vector.venv
    env = next(iter(getattr(vector, "envs", ())), None)
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.ObservationWrapper):
            found.append(env)
        env = env.env
    return found[::-1]


def _innermost(model: Any) -> Any:
    """Return the vector environment within all wrappers; None if the model has none."""
    vector = getattr(model, "env", None)
    while vector is not None and hasattr(vector, "venv"):
        vector = vector.venv
    return vector


def _batch_of(observations: list[Any]) -> Any:
    """Return observations as a batch: an array, or one for each key."""
    if isinstance(observations[0], dict):
        return {key: np.stack([each[key] for each in observations]) for key in observations[0]}
    return np.stack(observations)


def _step_of(wrapper: Any) -> Callable[[Array, Any], tuple[Array, Any]]:
    """Return what a wrapper does to a batch of observations, with its state."""
    name = type(wrapper).__name__
    if isinstance(wrapper, gymnasium.ObservationWrapper):
        return lambda seen, state: (_batch_of([wrapper.observation(each) for each in seen]), state)
    if name == "VecNormalize" and wrapper.norm_obs:
        return lambda seen, state: (wrapper.normalize_obs(seen), state)
    if name == "VecFrameStack":
        return _stacking(wrapper)
    return lambda seen, state: (seen, state)


def _stacking(wrapper: Any) -> Callable[[Array, Any], tuple[Array, Any]]:
    from stable_baselines3.common.vec_env.stacked_observations import StackedObservations

    stacked = wrapper.stacked_obs
    space, order = wrapper.venv.observation_space, None
    if stacked.channels_first:
        order = "first"
    elif stacked.stack_dimension == -1:
        order = "last"

    def step(seen: Array, state: Any) -> tuple[Array, Any]:
        if state is None:
            state = StackedObservations(len(seen), stacked.n_stack, space, order)
            return state.reset(seen).copy(), state
        found, _ = state.update(seen, np.zeros(len(seen), dtype=np.bool_), [{}] * len(seen))
        return found.copy(), state

    return step


def _score_of(model: Any) -> Callable[[Array, Array, Any], tuple[Array, Any]]:
    """Return the function that scores the actions of a batch, by the kind of the policy."""
    policy = model.policy

    def tensor(seen: Array) -> Any:
        return policy.obs_to_tensor(seen)[0]

    def plain(values: Any) -> Array:
        return np.asarray(values.detach().cpu().numpy())

    if hasattr(policy, "lstm_hidden_state_shape"):
        return _recurrent(policy, tensor, plain)
    if hasattr(policy, "quantile_net"):
        return lambda seen, valid, state: (plain(policy.quantile_net(tensor(seen)).mean(dim=1)), state)
    if hasattr(policy, "q_net"):
        return lambda seen, valid, state: (plain(policy.q_net(tensor(seen))), state)
    if hasattr(policy, "get_distribution"):
        return lambda seen, valid, state: (
            plain(policy.get_distribution(tensor(seen)).distribution.logits),
            state,
        )
    return _by_predict(model)


def _recurrent(
    policy: Any, tensor: Callable[[Array], Any], plain: Callable[[Any], Array]
) -> Callable[[Array, Array, Any], tuple[Array, Any]]:
    def score(seen: Array, valid: Array, state: Any) -> tuple[Array, Any]:
        begins = torch.zeros(len(seen))
        if state is None:
            layers, _, width = policy.lstm_hidden_state_shape
            state = (torch.zeros(layers, len(seen), width), torch.zeros(layers, len(seen), width))
            begins = torch.ones(len(seen))
        distribution, state = policy.get_distribution(tensor(seen), state, begins)
        return plain(distribution.distribution.logits), state

    return score


def _by_predict(model: Any) -> Callable[[Array, Array, Any], tuple[Array, Any]]:
    """Return the choice of a model as scores; of an action that is no option, all options are equal."""

    def score(seen: Array, valid: Array, state: Any) -> tuple[Array, Any]:
        actions, state = model.predict(seen, state=state, deterministic=True)
        values = np.zeros(valid.shape)
        values[np.arange(len(seen)), np.asarray(actions).reshape(-1)] = 1
        return values, state

    return score
