"""The networks of DRAS, in numpy: a filter over each row, then two wide layers over all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.networks import Floats, Network, Tensors, as_float32, check_named
from hpcsimkit.errors import UsageError

__all__ = ["SLOPE", "JobValues", "RowFilter"]

SLOPE = 0.01
"""Of the leaky rectifier, below 0. (The paper does not say.)"""

NAMES = ("filter.weight", "filter.bias", "weight.0", "weight.1", "weight.2", "bias.2")


class RowFilter(Network):
    """Five layers: each row becomes one number, all of these go through two wide layers to the outputs.

    The filter has two weights and a bias, the same for all rows; the wide layers have no biases, the last
    one has: so there are ``3 + rows x first + first x second + second x outputs + outputs`` parameters, as in
    table 3 of the paper. (Fan et al., TPDS 2022, section 3.2.)

    Parameters
    ----------
    tensors : mapping of str to array of float32
        ``filter.weight`` (1, 2), ``filter.bias`` (1,), ``weight.0`` (first, rows), ``weight.1``
        (second, first), ``weight.2`` (outputs, second), ``bias.2`` (outputs,).
    activation : {"leaky"}
        After the wide layers: a leaky rectifier.

    Raises
    ------
    UsageError
        A tensor is missing, is of another shape or not finite, or the activation is not known.

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
        self._layers = [  # what repr shows
            (self._first, np.zeros(self._first.shape[1], dtype=np.float32)),
            (self._second, np.zeros(self._second.shape[1], dtype=np.float32)),
            (self._last, self.tensors["bias.2"]),
        ]

    @property
    def rows(self) -> int:
        """Rows that are read."""
        return self._first.shape[0]

    @property
    def inputs(self) -> int:
        """Numbers that are read at a time, two a row."""
        return 2 * self.rows

    def filtered(self, rows: Floats) -> Floats:
        """Return one number for each row, shape (...) for rows of shape (..., 2)."""
        return rows @ self._filter + self._shift

    def forward(self, values: Floats) -> Floats:
        """Return the outputs for observations of shape (..., rows, 2), shape (..., outputs)."""
        return self._outputs(self.filtered(values) @ self._first)

    def _outputs(self, first: Floats) -> Floats:
        """Return the outputs, given what goes into the first wide layer's rectifier."""
        second = _leaky(_leaky(first) @ self._second)
        return second @ self._last + self.tensors["bias.2"]

    def scores(self, observation: Floats) -> Floats:
        """Return the outputs for an observation."""
        return self.forward(observation)

    def many(self, observations: Floats, valid: NDArray[np.bool_] | None = None) -> Floats:
        """Return the outputs for each observation."""
        return self.forward(observations)


class JobValues(RowFilter):
    """Reads one job and all nodes at a time, and says what the job is worth: the network of DRAS-DQL.

    An observation has two rows for each slot, then the nodes; the job of each slot is put before the nodes
    in turn. What the nodes alone contribute to the first layer is reckoned once for all jobs.

    Examples
    --------
    >>> ones = {name: np.ones(shape) for name, shape in shapes(rows=3, hidden=(2, 2), outputs=1).items()}
    >>> two_jobs_one_node = np.array([[0, 0], [0, 0], [1, 0], [0, 0], [1, 0]], dtype=np.float32)
    >>> JobValues(ones).scores(two_jobs_one_node).tolist()
    [17.0, 21.0]
    """

    kind = "job values"

    def at_a_time(self, shape: Sequence[int]) -> int:
        """Return how many numbers a job and all nodes have, if there are as many nodes as known."""
        of_jobs = shape[0] - (self.rows - 2)
        fits = len(shape) == 2 and shape[1] == 2 and of_jobs >= 2 and of_jobs % 2 == 0
        return self.inputs if fits else math.prod(shape)

    def scored(self, shape: Sequence[int]) -> int:
        """Return how many jobs are scored."""
        return (shape[0] - (self.rows - 2)) // 2

    def scores(self, observation: Floats) -> Floats:
        """Return what the job of each slot is worth."""
        return self.many(observation)

    def scores_of(self, observation: Floats, actions: NDArray[np.intp]) -> Floats:
        """Return what some jobs are worth: it takes as long as there are jobs."""
        return self.many(observation, chosen=actions)

    def many(
        self, observations: Floats, valid: NDArray[np.bool_] | None = None,
        chosen: NDArray[np.intp] | None = None,
    ) -> Floats:  # fmt: skip
        """Return what the job of each slot is worth, for each observation; or of some slots only."""
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
        "filter.weight": (1, 2), "filter.bias": (1,), "weight.0": (first, rows), "weight.1": (second, first),
        "weight.2": (outputs, second), "bias.2": (outputs,),
    }  # fmt: skip


def _shapes_beside(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """Return the shapes that all tensors should have beside the wide ones; none if those are no matrices."""
    wide = [tensors[f"weight.{layer}"] for layer in range(3)]
    if any(weight.ndim != 2 for weight in wide):
        return {}
    sizes = [weight.shape[0] for weight in wide]
    return shapes(wide[0].shape[1], (sizes[0], sizes[1]), sizes[2])


def _leaky(values: Floats) -> Floats:
    return np.maximum(values, SLOPE * values)
