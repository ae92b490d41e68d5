"""The job selector's network for training in torch; it reads sketches instead of full images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import embedding, relu

from hpcsimkit.agents.cush.columns import Columns, Runs
from hpcsimkit.agents.cush.network import FILTERS, NAMES, ImageScores, shapes

__all__ = ["Found", "ImageNetwork", "Last"]

EPSILON = 1e-5
"""Epsilon of the batch normalisation, with the usual value."""


class Found(NamedTuple):
    """Outputs of the filters on a batch of images.

    Parameters
    ----------
    values : tensor of float32, shape (runs, filters x (rows - 1))
        Rectified outputs for each run of equal pairs of columns.
    runs : Runs
        Positions of the runs.
    """

    values: torch.Tensor
    runs: Runs


class Last(NamedTuple):
    """Normalisation and dense layer in combined form.

    Parameters
    ----------
    weight : tensor of float32, shape (positions, actions, filters x (rows - 1))
        Weights, accumulated along the columns; see
        ``Columns.laid_out``.
    shift : tensor of float32, shape (actions,)
        Terms that do not depend on the image.
    """

    weight: torch.Tensor
    shift: torch.Tensor


class ImageNetwork(nn.Module):
    """A convolution with filters of 2 x 2, ReLU, batch normalisation, and a dense layer.

    The outputs equal those of ``Conv2d, ReLU, BatchNorm2d, Flatten, Linear`` on the full image. But there are
    few types of columns, and most neighbours are equal (:class:`~hpcsimkit.agents.cush.columns.Columns`):
    filters are evaluated once for each run of equal pairs, and multiplied by the sum of the dense layer's
    weights along the run.

    The normalisation uses means and variances of earlier images, both in simulations and in updates;
    :meth:`renew` sets new ones.

    Parameters
    ----------
    nodes : int
        Number of nodes in the cluster.
    units : sequence of int
        Number of units per node of each resource.
    steps : int
        Number of rows of an image, T.
    slots : int
        Number of visible jobs, Q.
    filters : int
        Number of filters.
    generator : torch.Generator
        Random number generator for the initial weights.

    Examples
    --------
    >>> network = ImageNetwork(128, [2, 4], steps=5, slots=5, generator=torch.Generator())
    >>> sum(weights.numel() for weights in network.parameters())
    294966
    """

    filter_weight: torch.Tensor
    filter_bias: torch.Tensor
    norm_scale: torch.Tensor
    norm_shift: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    mean: torch.Tensor
    variance: torch.Tensor

    def __init__(
        self,
        nodes: int,
        units: Sequence[int],
        steps: int,
        slots: int,
        *,
        filters: int = FILTERS,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.columns = Columns(nodes, units, steps, slots)
        self.steps = steps
        self.slots = slots
        for name, shape in shapes((slots + 1, steps, nodes * sum(units)), slots + 1, filters).items():
            values = torch.ones(shape) if name == "norm.scale" else torch.zeros(shape)
            if len(shape) > 1:
                reach = float(np.prod(shape[1:])) ** -0.5
                values.uniform_(-reach, reach, generator=generator)
            self.register_parameter(name.replace(".", "_"), nn.Parameter(values))
        self.register_buffer("mean", torch.zeros(filters))
        self.register_buffer("variance", torch.ones(filters))
        height, row = torch.arange(steps + 1)[:, None], torch.arange(steps - 1)
        self._upper, self._lower = (row < height).float(), (row + 1 < height).float()

    def forward(self, busy: torch.Tensor, jobs: torch.Tensor) -> torch.Tensor:
        """Return the score of each action, shape (batch, actions).

        Parameters
        ----------
        busy : tensor of uint8, shape (batch, columns)
            Busy times of :class:`~hpcsimkit.agents.cush.encoder.Sketch`.
        jobs : tensor of float32, shape (batch, slots, resources + 2)
            Jobs of the sketches.
        """
        return self.scores(self.found(busy, jobs), self.last(), len(busy))

    def found(self, busy: torch.Tensor, jobs: torch.Tensor) -> Found:
        """Return the outputs of the filters on a batch of images."""
        runs = self.columns.runs(busy, jobs)
        left, right = (side.flatten(0, 1) for side in self._sides(jobs))
        left = left + self.filter_bias.repeat_interleave(self.steps - 1)
        return Found(relu(embedding(runs.left, left) + embedding(runs.right, right)), runs)

    def last(self) -> Last:
        """Return the current normalisation and dense layer, which are the same for all images."""
        scale = self.norm_scale * torch.rsqrt(self.variance + EPSILON)
        weight = (self.weight * scale[:, None, None]).flatten(1, 2)
        shift = torch.einsum("afij,f->a", self.weight, self.norm_shift - self.mean * scale)
        return Last(self.columns.laid_out(weight), shift + self.bias)

    def scores(self, found: Found, last: Last, batch: int) -> torch.Tensor:
        """Return the score of each action, given the outputs of the filters on a batch of images."""
        runs = found.runs
        weight = embedding(runs.end, last.weight.flatten(1)) - embedding(runs.begin, last.weight.flatten(1))
        of_runs = torch.bmm(weight.view(-1, *last.weight.shape[1:]), found.values[:, :, None])[:, :, 0]
        return last.shift.expand(batch, -1).index_add(0, runs.picture, of_runs)

    def moments(self, found: Found, batch: int) -> torch.Tensor:
        """Return the mean of each filter's outputs, and of their squares, shape (batch, 2, filters)."""
        values, (picture, _, _, begin, end) = found.values.detach(), found.runs
        of_filters = values.view(len(values), -1, self.steps - 1)
        of_runs = torch.stack([of_filters.mean(dim=2), of_filters.square().mean(dim=2)], dim=1)
        share = (end - begin) / (self.columns.nodes * self.columns.blocks - 1)
        nothing = torch.zeros(batch, *of_runs.shape[1:])
        return nothing.index_add(0, picture, of_runs * share[:, None, None])

    def renew(self, moments: torch.Tensor, momentum: float = 1.0) -> None:
        """Update the means and variances of the normalisation.

        Parameters
        ----------
        moments : tensor of float32, shape (2, filters)
            Means of each filter's outputs, and of their squares.
        momentum : float
            Weight of the new values, in (0, 1].
        """
        mean, square = moments
        self.mean.lerp_(mean, momentum)
        self.variance.lerp_((square - mean.square()).clamp(min=0), momentum)

    def acting(self) -> ImageScores:
        """Return the current network, in numpy."""
        scale = self.norm_scale * torch.rsqrt(self.variance + EPSILON)
        normalised = {"norm.scale": scale, "norm.shift": self.norm_shift - self.mean * scale}
        learned = {name: self.get_parameter(name.replace(".", "_")) for name in NAMES}
        tensors = {name: values.detach().numpy().copy() for name, values in (learned | normalised).items()}
        return ImageScores(tensors)

    def _sides(self, jobs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the filters' contributions of each column type, as the left and as the right column.

        The shape is (batch, kinds, filters x (rows - 1)); a type is a resource, a number of jobs that do not
        reach the column, and a remaining busy time in steps.
        """
        upper, lower = (
            self.filter_weight[:, :, 0],
            self.filter_weight[:, :, 1],
        )  # (filters, channels, left/right)
        known = torch.einsum("fcd,hi->dchfi", upper, self._upper) + torch.einsum(
            "fcd,hi->dchfi", lower, self._lower
        )
        known = known.flatten(3)  # (left/right, channels, height, filters x rows)
        rows, value = jobs[..., -2].long(), jobs[..., -1]
        channel = torch.arange(1, self.slots + 1)
        of_jobs = known[:, channel, rows] * value[..., None]  # (left/right, batch, slots, ...)
        reach = jobs[..., :-2].transpose(1, 2)  # (batch, resources, slots)
        order = reach.argsort(dim=2)
        sides = []
        for side in (0, 1):
            spread = of_jobs[side][:, None].expand(-1, reach.shape[1], -1, -1)
            ranked = spread.gather(2, order[..., None].expand(-1, -1, -1, spread.shape[-1]))
            beyond = torch.cat([ranked.flip(2).cumsum(2).flip(2), torch.zeros_like(ranked[:, :, :1])], dim=2)
            sides.append((beyond[..., None, :] + known[side, 0]).flatten(1, 3))
        return sides[0], sides[1]
