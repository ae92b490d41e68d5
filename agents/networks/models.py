"""Models of any kind as scores of actions: functions, modules, ONNX graphs, models of Stable-Baselines3."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.networks.onnx_graphs import OnnxGraph
from hpcsimkit.agents.networks.scorer import Scorer
from hpcsimkit.errors import UsageError

__all__ = ["scorer_of"]

Array = NDArray[Any]

PREDICT = "predict(observation) or predict(observation, mask)"


def scorer_of(model: Any) -> Scorer:
    """Return the scores of a model.

    Parameters
    ----------
    model : callable, torch.nn.Module, OnnxGraph or BaseAlgorithm
        Function of an observation, and of the mask of valid actions if it takes two arguments, that returns
        an action or a score for each; PyTorch module or ONNX graph that scores a batch; or a model of
        Stable-Baselines3.

    Raises
    ------
    UsageError
        It is none of these, or it has parts that cannot be repeated.

    Examples
    --------
    >>> import numpy as np
    >>> last = scorer_of(lambda observation, mask: int(np.flatnonzero(mask)[-1]))
    >>> last.scores(np.zeros((1, 3)), np.array([[True, True, False]]), None)[0].argmax()
    np.int64(1)
    """
    if isinstance(model, OnnxGraph):
        return model.scorer
    torch = sys.modules.get("torch")  # a module of it can only be here if it was loaded
    if torch is not None and isinstance(model, torch.nn.Module) and not hasattr(model, "predict"):
        from hpcsimkit.agents.networks.torch_models import module_scorer

        return module_scorer(model)
    if hasattr(model, "policy") and hasattr(model, "predict"):
        from hpcsimkit.agents.networks.torch_models import sb3_scorer

        return sb3_scorer(model)
    function = getattr(model, "predict", model)
    if isinstance(model, type) or not callable(function):
        raise UsageError(
            f"a model is needed: a function {PREDICT}, a PyTorch module or a model of Stable-Baselines3, "
            f"found {model!r}"
        )
    return _function_scorer(function, getattr(model, "__name__", type(model).__name__))


def _function_scorer(function: Callable[..., Any], name: str) -> Scorer:
    """Return the scores of a function of one observation."""
    with_mask = _takes_two(function)

    def scores(observations: Array, valid: Array, state: Any) -> tuple[Array, Any]:
        rows = zip(observations, valid, strict=True)
        found = [function(seen, mask) if with_mask else function(seen) for seen, mask in rows]
        return np.stack([_as_scores(each, valid.shape[1], name) for each in found]), state

    return Scorer(name, scores)


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    needed = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return len(needed) >= 2 and (needed[1].default is inspect.Parameter.empty or needed[1].name == "mask")


def _as_scores(found: Any, actions: int, name: str) -> Array:
    """Return the answer of a function as scores: an action has the score 1, the others 0."""
    values = np.asarray(found.detach().cpu() if hasattr(found, "detach") else found)
    if values.size == 1 and np.issubdtype(values.dtype, np.integer):
        action = int(values.reshape(()))
        if not 0 <= action < actions:
            raise UsageError(f"{name} answers {action}; an action from 0 to {actions - 1} is needed")
        return np.eye(actions)[action]
    if values.size == actions and values.dtype.kind in "iuf":
        return values.reshape(actions).astype(np.float64)
    raise UsageError(f"{name} answers {found!r}; an action or {actions} scores are needed")
