"""Scores of actions by a model of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

__all__ = ["Scorer"]

Array = NDArray[Any]


class Scorer(NamedTuple):
    """Scores of actions.

    Parameters
    ----------
    name : str
        Name of the model in messages.
    scores : callable
        Function ``scores(observations, valid, state)`` of batches, which returns scores of the shape of
        `valid` and the next state. The state is None at the beginning of a run.
    """

    name: str
    scores: Callable[[Array, Array, Any], tuple[Array, Any]]
