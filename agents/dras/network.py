"""The networks of DRAS for inference in numpy: a filter over each row, then two wide layers over all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.networks.numpy_networks import Floats, Network, Tensors, as_float32, check_named
from hpcsimkit.errors import UsageError

__all__ = ["SLOPE", "JobValues", "RowFilter"]

SLOPE = 0.01
"""Negative slope of the leaky ReLU. (The paper gives no value.)"""

NAMES = ("filter.weight", "filter.bias", "weight.0", "weight.1", "weight.2", "bias.2")


class RowFilter(Network):
    """Five layers: a filter maps each row to a number, and two wide layers map these to the outputs.

    The filter has two weights and a bias, shared by all rows; the wide layers have no biases, unlike the last
    layer. This gives ``3 + rows x first + first x second + second x outputs + outputs`` parameters, as in
    table 3 of the paper. (Fan et al., TPDS 2022, section 3.2.)

    Parameters
    ----------
    tensors : mapping of str to array of float32
        Tensors ``filter.weight`` (1, 2), ``filter.bias`` (1,), ``weight.0`` (first, rows), ``weight.1``
        (second, first), ``weight.2`` (outputs, second), ``bias.2`` (outputs,).
    activation : {"leaky"}
        Activation function after the wide layers: a leaky ReLU.

    Raises
    ------
    UsageError
        A tensor is missing, has the wrong shape or is not finite, or the activation is unknown.

    Examples
    --------
    >>> ones = {name: np.ones(shape) for name, shape in shapes(rows=3, hidden=(2, 2), outputs=1).items()}
    >>> network = RowFilter(ones)
    >>> network.parameters, network.scores(np.array([[1, 2], [0, 0], [0, 1]], dtype=np.float32)).tolist()
    (16, [29.0])
    """

    kind = "row filter"

    def __init__(self, tensors: Tensors, activation: str = "leaky") -> None:
        if activation != "leaky":
            raise UsageError(f"a network of rows has the activation 'leaky', found {activation!r}")
        self.activation = activation
        self.tensors = as_float32(tensors)
        check_named("a network of rows", self.tensors, NAMES, _shapes_beside)
        self._filter, self._shift = self.tensors["filter.weight"][0], self.tensors["filter.bias"]
        self._first, self._second, self._last = (self.tensors[f"weight.{layer}"].T for layer in range(3))
        self._layers = [  # for the repr
            (self._first, np.zeros(self._first.shape[1], dtype=np.float32)),
            (self._second, np.zeros(self._second.shape[1], dtype=np.float32)),
            (self._last, self.tensors["bias.2"]),
        ]

    @property
    def rows(self) -> int:
        """Number of rows in an observation."""
        return self._first.shape[0]

    @property
    def inputs(self) -> int:
        """Number of inputs, two per row."""
        return 2 * self.rows

    def filtered(self, rows: Floats) -> Floats:
        """Return the filter's output for each row, shape (...) for rows of shape (..., 2)."""
        return rows @ self._filter + self._shift

    def forward(self, values: Floats) -> Floats:
        """Return the outputs for observations of shape (..., rows, 2), shape (..., outputs)."""
        return self._outputs(self.filtered(values) @ self._first)

    def _outputs(self, first: Floats) -> Floats:
        """Return the outputs, given the pre-activations of the first wide layer."""
        second = _leaky(_leaky(first) @ self._second)
        return second @ self._last + self.tensors["bias.2"]

    def scores(self, observation: Floats) -> Floats:
        """Return the outputs for an observation."""
        return self.forward(observation)

    def many(self, observations: Floats, valid: NDArray[np.bool_] | None = None) -> Floats:
        """Return the outputs for each observation."""
        return self.forward(observations)


class JobValues(RowFilter):
    """The network of DRAS-DQL: it reads one job and all nodes at a time, and returns the job's Q-value.

    An observation has two rows per slot, then the nodes; each slot's rows are placed before the nodes in
    turn. The contribution of the nodes to the first layer is computed once for all jobs.

    Examples
    --------
    >>> ones = {name: np.ones(shape) for name, shape in shapes(rows=3, hidden=(2, 2), outputs=1).items()}
    >>> two_jobs_one_node = np.array([[0, 0], [0, 0], [1, 0], [0, 0], [1, 0]], dtype=np.float32)
    >>> JobValues(ones).scores(two_jobs_one_node).tolist()
    [17.0, 21.0]
    """

    kind = "job values"

    def at_a_time(self, shape: Sequence[int]) -> int:
        """Return the number of inputs for a job and all nodes, if the observation has that many nodes."""
        of_jobs = shape[0] - (self.rows - 2)
        fits = len(shape) == 2 and shape[1] == 2 and of_jobs >= 2 and of_jobs % 2 == 0
        return self.inputs if fits else math.prod(shape)

    def scored(self, shape: Sequence[int]) -> int:
        """Return the number of job slots."""
        return (shape[0] - (self.rows - 2)) // 2

    def scores(self, observation: Floats) -> Floats:
        """Return the Q-value of the job in each slot."""
        return self.many(observation)

    def scores_of(self, observation: Floats, actions: NDArray[np.intp]) -> Floats:
        """Return the Q-values of the given slots, in time proportional to their number."""
        return self.many(observation, chosen=actions)

    def many(
        self,
        observations: Floats,
        valid: NDArray[np.bool_] | None = None,
        chosen: NDArray[np.intp] | None = None,
    ) -> Floats:
        """Return the Q-value of the job in each slot, for each observation; or of some slots only."""
        slots = self.scored(observations.shape[-2:])
        rows = self.filtered(observations)
        of_jobs = rows[..., : 2 * slots].reshape(*rows.shape[:-1], slots, 2)
        if chosen is not None:
            of_jobs = of_jobs[..., chosen, :]
        of_nodes = rows[..., 2 * slots :] @ self._first[2:]
        return self._outputs(of_jobs @ self._first[:2] + of_nodes[..., None, :])[..., 0]


def shapes(rows: int, hidden: tuple[int, int], outputs: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors of a :class:`RowFilter`.

    >>> sum(math.prod(shape) for shape in shapes(4460, (4000, 1000), 51).values())
    21891054
    """
    first, second = hidden
    return {
        "filter.weight": (1, 2),
        "filter.bias": (1,),
        "weight.0": (first, rows),
        "weight.1": (second, first),
        "weight.2": (outputs, second),
        "bias.2": (outputs,),
    }


def _shapes_beside(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors as the wide ones determine them; none if those are not matrices."""
    wide = [tensors[f"weight.{layer}"] for layer in range(3)]
    if any(weight.ndim != 2 for weight in wide):
        return {}
    sizes = [weight.shape[0] for weight in wide]
    return shapes(wide[0].shape[1], (sizes[0], sizes[1]), sizes[2])


def _leaky(values: Floats) -> Floats:
    return np.maximum(values, SLOPE * values)
