"""Networks for inference in numpy: they score actions and have no training code."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError, lacking

__all__ = [
    "ACTIVATIONS",
    "Dense",
    "Floats",
    "Network",
    "RowsThenWhole",
    "SlotScores",
    "Tensors",
    "as_float32",
    "check_named",
]

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]

ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "relu": lambda values: np.maximum(values, 0),
    "tanh": np.tanh,
}
"""Activation functions between the layers."""


def as_float32(tensors: Tensors) -> dict[str, Floats]:
    """Return tensors as contiguous arrays of float32."""
    return {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in tensors.items()}


def check_named(
    what: str,
    tensors: Tensors,
    names: Sequence[str],
    shapes: Callable[[Tensors], Mapping[str, Sequence[int]]],
) -> None:
    """Check that a network has all of its tensors, each of the right shape and finite.

    Parameters
    ----------
    what : str
        Name of the network in error messages.
    tensors : mapping of str to array
        Tensors to check.
    names : sequence of str
        Names of the required tensors.
    shapes : callable
        Function that returns the expected shapes, as far as tensors of these names determine them.

    Raises
    ------
    UsageError
        A tensor is missing, has the wrong shape, or is not finite.

    Examples
    --------
    >>> check_named("a network", {"weight": np.ones(2)}, ["weight"], lambda tensors: {"weight": (3,)})
    Traceback (most recent call last):
    hpcsimkit.errors.UsageError: weight of a network has the wrong shape (2,)
    """
    if set(tensors) != set(names):
        raise UsageError(f"{what} needs {', '.join(names)}, found {', '.join(tensors) or 'none'}")
    wanted = shapes(tensors)
    for name, values in tensors.items():
        if values.shape != wanted.get(name):
            raise UsageError(f"{name} of {what} has the wrong shape {values.shape}")
        if not np.isfinite(values).all():
            raise UsageError(f"{name} holds what is no finite number")


class Network:
    """Base class of networks that score actions, with layers ``weight.0``, ``bias.0``, ``weight.1`` ...

    Parameters
    ----------
    tensors : mapping of str to array of float32
        Weights of shape (outputs, inputs) and biases of shape (outputs,), by name and layer number.
    activation : {"relu", "tanh"}
        Activation function between the layers.

    Raises
    ------
    UsageError
        A tensor is missing, has the wrong shape or is not finite, or the activation is unknown.

    Examples
    --------
    >>> class Linear(Network):
    ...     kind = "linear"
    ...     def scores(self, observation):
    ...         return self.tensors["weight.0"] @ observation.ravel() + self.tensors["bias.0"]
    >>> Linear({"weight.0": np.ones((2, 3)), "bias.0": np.array([0, 1])}).scores(np.ones(3)).tolist()
    [3.0, 4.0]
    """

    kind = ""
    """Network type in model files."""

    def __init__(self, tensors: Tensors, activation: str = "tanh") -> None:
        if activation not in ACTIVATIONS:
            raise UsageError(f"activation needs one of {', '.join(ACTIVATIONS)}, found {activation!r}")
        self.activation = activation
        self.tensors = as_float32(tensors)
        self._act = ACTIVATIONS[activation]
        self._layers = list(self._checked())

    def _checked(self) -> Sequence[tuple[Floats, Floats]]:
        layers: list[tuple[Floats, Floats]] = []
        names = {f"{part}.{layer}" for layer in range(len(self.tensors) // 2) for part in ("weight", "bias")}
        if not names or set(self.tensors) != names:
            found = ", ".join(self.tensors) or "none"
            raise UsageError(f"a network needs tensors weight.0, bias.0, ..., found {found}")
        for layer in range(len(self.tensors) // 2):
            weight, bias = self.tensors[f"weight.{layer}"], self.tensors[f"bias.{layer}"]
            inputs = layers[-1][0].shape[1] if layers else weight.shape[-1]
            if weight.ndim != 2 or weight.shape[1] != inputs or bias.shape != weight.shape[:1]:
                raise UsageError(
                    f"layer {layer} needs {inputs} inputs, found shapes {weight.shape} and {bias.shape}"
                )
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise UsageError(f"layer {layer} holds what is no finite number")
            layers.append((np.ascontiguousarray(weight.T), bias))  # (inputs, outputs), to multiply rows by
        return layers

    @property
    def inputs(self) -> int:
        """Number of inputs of the first layer."""
        return self._layers[0][0].shape[0]

    @property
    def outputs(self) -> int:
        """Number of outputs of the last layer."""
        return self._layers[-1][0].shape[1]

    def at_a_time(self, shape: Sequence[int]) -> int:
        """Return the number of inputs that the first layer needs for observations of a shape."""
        return math.prod(shape)

    def scored(self, shape: Sequence[int]) -> int:
        """Return the number of actions scored for observations of a shape."""
        return self.outputs

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum(values.size for values in self.tensors.values())

    def forward(self, values: Floats) -> Floats:
        """Return the outputs of the last layer for rows of inputs, shape (..., outputs)."""
        for weight, bias in self._layers[:-1]:
            values = self._act(values @ weight + bias)
        weight, bias = self._layers[-1]
        return values @ weight + bias

    def scores(self, observation: Floats) -> Floats:
        """Return one score for each action, float32, shape (actions,)."""
        raise lacking(self, "a method scores(observation)")

    def scores_of(self, observation: Floats, actions: NDArray[np.intp]) -> Floats:
        """Return the scores of the given actions, float32, in their shape."""
        return self.scores(observation)[actions]

    def many(self, observations: Floats, valid: NDArray[np.bool_] | None = None) -> Floats:
        """Return the scores of a batch of observations, float32, shape (observations, actions).

        With `valid` (of that shape) the scores of masked actions may be 0 instead.
        """
        return np.stack([self.scores(observation) for observation in observations])

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Network)
            and self.activation == other.activation
            and self.tensors.keys() == other.tensors.keys()
            and all(np.array_equal(values, other.tensors[name]) for name, values in self.tensors.items())
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.activation, self.digest))

    def __repr__(self) -> str:
        sizes = "-".join(str(size) for size in [self.inputs, *(bias.size for _, bias in self._layers)])
        return f"{type(self).__name__}({sizes} {self.activation}, {self.digest})"

    @cached_property
    def digest(self) -> str:
        """First digits of a hash of the weights, to identify the network."""
        digest = hashlib.sha256()
        for name in sorted(self.tensors):
            digest.update(name.encode() + self.tensors[name].tobytes())
        return digest.hexdigest()[:12]


class Dense(Network):
    """A dense network over the whole observation, with one output per action.

    Examples
    --------
    >>> weights = {"weight.0": np.array([[1, 0], [0, 2]]), "bias.0": np.array([0, 1])}
    >>> Dense(weights).scores(np.array([3, 4], dtype=np.float32)).tolist()
    [3.0, 9.0]
    """

    kind = "dense"

    def scores(self, observation: Floats) -> Floats:
        """Return the outputs for the whole observation."""
        return self.forward(observation.reshape(-1))

    def many(self, observations: Floats, valid: NDArray[np.bool_] | None = None) -> Floats:
        """Return the outputs for each whole observation."""
        return self.forward(observations.reshape(len(observations), -1))


class SlotScores(Network):
    """One small network applied to each row of the observation: one score, and one action, per row.

    The weights fit any number of slots. (The kernel network of RLScheduler and RLBackfilling.)

    Examples
    --------
    >>> weights = {"weight.0": np.array([[1, -1]]), "bias.0": np.array([0])}
    >>> SlotScores(weights).scores(np.array([[3, 1], [0, 5]], dtype=np.float32)).tolist()
    [2.0, -5.0]
    """

    kind = "slots"

    def at_a_time(self, shape: Sequence[int]) -> int:
        """Return the number of features of a row."""
        return shape[-1]

    def scored(self, shape: Sequence[int]) -> int:
        """Return the number of rows."""
        return shape[0]

    def scores(self, observation: Floats) -> Floats:
        """Return the score of each row."""
        return self.forward(observation)[:, 0]

    def scores_of(self, observation: Floats, actions: NDArray[np.intp]) -> Floats:
        """Return the scores of the given rows, in time proportional to their number."""
        return self.forward(observation[actions])[:, 0]

    def many(self, observations: Floats, valid: NDArray[np.bool_] | None = None) -> Floats:
        """Return the score of each row of each observation; with `valid`, 0 for rows that are masked."""
        if valid is None:
            return self.forward(observations)[..., 0]
        scores = np.zeros(valid.shape, dtype=np.float32)
        scores[valid] = self.forward(observations[:, : valid.shape[1]][valid])[:, 0]
        return scores


class RowsThenWhole(Network):
    """A critic that scores each row and reads all scores with a second network; never written to a file.

    Parameters
    ----------
    rows : SlotScores
        Network that scores a row.
    whole : Dense
        Network that reads the scores of all rows.
    """

    kind = "rows then whole"

    def __init__(self, rows: SlotScores, whole: Dense) -> None:
        self.rows = rows
        self.whole = whole
        self.activation = rows.activation
        self._layers = [*rows._layers, *whole._layers]
        self.tensors = {
            f"{name}.{key}": values
            for name, part in (("rows", rows), ("whole", whole))
            for key, values in part.tensors.items()
        }

    def scores(self, observation: Floats) -> Floats:
        """Return the outputs for the whole observation."""
        return self.whole.scores(self.rows.scores(observation))

    def many(self, observations: Floats, valid: NDArray[np.bool_] | None = None) -> Floats:
        """Return the outputs for each whole observation."""
        return self.whole.many(self.rows.many(observations))
