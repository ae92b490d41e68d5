"""The network of CuSH's job selector in numpy: a convolution over the image, then one dense layer."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.networks.numpy_networks import Floats, Network, Tensors, as_float32, check_named
from hpcsimkit.errors import UsageError

FILTERS = 16
"""Number of filters of 2 x 2, as published."""

NAMES = ("filter.weight", "filter.bias", "norm.scale", "norm.shift", "weight", "bias")


class ImageScores(Network):
    """Convolution with 2 x 2 filters over all channels, ReLU, normalisation, and a dense output layer.

    There is no padding, and the stride is 1. The normalisation is batch normalisation after training: a scale
    and a shift per filter. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.2.)

    Parameters
    ----------
    tensors : mapping of str to array of float32
        Tensors ``filter.weight`` (filters, channels, 2, 2), ``filter.bias``, ``norm.scale`` and
        ``norm.shift`` (filters,), ``weight`` (actions, filters, rows - 1, columns - 1), ``bias`` (actions,).
    activation : {"relu"}
        Activation function after the filters.

    Raises
    ------
    UsageError
        A tensor is missing, has the wrong shape or is not finite, or the activation is unknown.

    Examples
    --------
    >>> ones = {name: np.ones(shape) for name, shape in shapes((1, 2, 3), actions=2, filters=1).items()}
    >>> network = ImageScores(ones)
    >>> network.parameters, network.scores(np.array([[[1, 0, 0], [0, 1, 2]]], dtype=np.float32)).tolist()
    (13, [10.0, 10.0])
    """

    kind = "image"

    def __init__(self, tensors: Tensors, activation: str = "relu") -> None:
        if activation != "relu":
            raise UsageError(f"a network of images has the activation 'relu', found {activation!r}")
        self.activation = activation
        self.tensors = as_float32(tensors)
        check_named("a network of images", self.tensors, NAMES, _shapes_beside)
        weight = self.tensors["weight"]
        scaled = weight * self.tensors["norm.scale"][:, None, None]
        shifted = np.einsum("afij,f->a", weight, self.tensors["norm.shift"]) + self.tensors["bias"]
        filters = self.tensors["filter.weight"]
        self._corners = [(i, j, np.ascontiguousarray(filters[:, :, i, j])) for i in (0, 1) for j in (0, 1)]
        self._dense = scaled.reshape(len(weight), -1).T, shifted
        self._layers = [
            (filters.reshape(len(filters), -1).T, self.tensors["filter.bias"]),
            self._dense,
        ]  # what repr shows

    @property
    def image(self) -> tuple[int, int, int]:
        """Number of channels, rows and columns of an image."""
        rows, columns = self.tensors["weight"].shape[2:]
        return (self.tensors["filter.weight"].shape[1], rows + 1, columns + 1)

    @property
    def inputs(self) -> int:
        """Number of pixels of an image, over all channels."""
        return math.prod(self.image)

    def scores(self, observation: Floats) -> Floats:
        """Return the score of each action."""
        channels, rows, columns = self.image
        picture = observation.reshape(channels, rows, columns)
        found = self.tensors["filter.bias"][:, None] + sum(
            corner @ picture[:, i : i + rows - 1, j : j + columns - 1].reshape(channels, -1)
            for i, j, corner in self._corners
        )
        weight, bias = self._dense
        scores: NDArray[np.float32] = np.maximum(found, 0).reshape(-1) @ weight + bias
        return scores


def shapes(image: tuple[int, int, int], actions: int, filters: int = FILTERS) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors of an :class:`ImageScores`.

    The image has channels, rows and columns, and the filters are 2 x 2.

    For Sierra's 128 nodes with 2 CPUs and 4 GPUs, five steps and five jobs:

    >>> {name: math.prod(shape) for name, shape in shapes((6, 5, 768), actions=6).items()}["weight"]
    294528
    """
    channels, rows, columns = image
    return {
        "filter.weight": (filters, channels, 2, 2),
        "filter.bias": (filters,),
        "norm.scale": (filters,),
        "norm.shift": (filters,),
        "weight": (actions, filters, rows - 1, columns - 1),
        "bias": (actions,),
    }


def _shapes_beside(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes that filters and dense layer determine; none if these are invalid."""
    filters, weight = tensors["filter.weight"], tensors["weight"]
    if filters.ndim != 4 or weight.ndim != 4:
        return {}
    image = (filters.shape[1], weight.shape[2] + 1, weight.shape[3] + 1)
    return shapes(image, len(weight), len(filters))
