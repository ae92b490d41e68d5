"""The job selector's network in torch: it learns from sketches of pictures, without drawing them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn, relu_
from torch.nn.functional import embedding

from hpcsimkit.agents.cush.network import FILTERS, NAMES, ImageScores, shapes

__all__ = ["ImageNetwork"]

EPSILON = 1e-5
"""Of batch normalisation, as everywhere."""


class ImageNetwork(nn.Module):
    """A convolution with filters of 2 x 2, a rectifier, batch normalisation, and a dense layer.

    What it computes is what ``Conv2d, ReLU, BatchNorm2d, Flatten, Linear`` would of the picture, but a column
    of the picture is known by two small numbers: for how many steps its unit is busy, and which of the jobs
    reach so far. What a filter makes of each such column, to the left and to the right, is worked out once;
    the picture is then put together from that. It takes a tenth of the time.

    The normalisation uses means and variances of an epoch that is over, the same while playing and while
    learning; :meth:`renew` takes new ones.

    Parameters
    ----------
    units : sequence of int
        Columns of each resource.
    steps : int
        Rows of the picture, T.
    slots : int
        Jobs that are seen, Q.
    filters : int
        How many.
    generator : torch.Generator
        Where first weights come from.

    Examples
    --------
    >>> network = ImageNetwork([256, 512], steps=5, slots=5, generator=torch.Generator())
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
        self, units: list[int], steps: int, slots: int, *, filters: int = FILTERS, generator: torch.Generator
    ) -> None:  # fmt: skip
        super().__init__()
        self.units = units
        self.steps = steps
        self.slots = slots
        image = (slots + 1, steps, sum(units))
        wanted = shapes(image, slots + 1, filters)
        for name, shape in wanted.items():
            inputs = int(np.prod(shape[1:]))
            values = torch.ones(shape) if name == "norm.scale" else torch.zeros(shape)
            if len(shape) > 1:
                values.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
            self.register_parameter(name.replace(".", "_"), nn.Parameter(values))
        self.register_buffer("mean", torch.zeros(filters))
        self.register_buffer("variance", torch.ones(filters))
        self._tables()

    def _tables(self) -> None:
        """Lay out what never changes: which rows of a column of each height a filter meets, and where."""
        height = torch.arange(self.steps + 1)[:, None]
        row = torch.arange(self.steps - 1)
        self._upper, self._lower = (row < height).float(), (row + 1 < height).float()
        self._places = [torch.arange(count, dtype=torch.float32) for count in self.units]
        resource = torch.repeat_interleave(torch.arange(len(self.units)), torch.tensor(self.units))
        self._first_kind = resource * (self.slots + 1)

    def forward(self, busy: torch.Tensor, jobs: torch.Tensor) -> torch.Tensor:
        """Return the score of each action.

        Parameters
        ----------
        busy : tensor of uint8, shape (batch, units)
            Of :class:`~hpcsimkit.agents.cush.encoder.Sketch`.
        jobs : tensor of float32, shape (batch, slots, resources + 2)
            Likewise.
        """
        return self.dense(self.filtered(busy, jobs))

    def dense(self, found: torch.Tensor) -> torch.Tensor:
        """Return the score of each action, given what the filters found."""
        scale = self.norm_scale * torch.rsqrt(self.variance + EPSILON)
        weight = (self.weight * scale[:, None, None]).permute(3, 1, 2, 0).flatten(0, 2)
        shift = torch.einsum("afij,f->a", self.weight, self.norm_shift - self.mean * scale)
        return found.flatten(1) @ weight + shift + self.bias

    def moments(self, found: torch.Tensor) -> torch.Tensor:
        """Return means of what each filter found, and of its square, shape (batch, 2, filters)."""
        of_filters = found.detach().reshape(*found.shape[:2], -1, self.steps - 1)
        return torch.stack([of_filters.mean(dim=(1, 3)), of_filters.square().mean(dim=(1, 3))], dim=1)

    def renew(self, moments: torch.Tensor, momentum: float = 1.0) -> None:
        """Normalise by other means and variances from now on, or go some of the way to them.

        Parameters
        ----------
        moments : tensor of float32, shape (2, filters)
            Means of what each filter found, and of its square.
        momentum : float
            How far to go, in (0, 1].
        """
        mean, square = moments
        self.mean.lerp_(mean, momentum)
        self.variance.lerp_((square - mean.square()).clamp(min=0), momentum)

    def acting(self) -> ImageScores:
        """Return the network as it is now, in numpy."""
        scale = self.norm_scale * torch.rsqrt(self.variance + EPSILON)
        normalised = {"norm.scale": scale, "norm.shift": self.norm_shift - self.mean * scale}
        learned = {name: self.get_parameter(name.replace(".", "_")) for name in NAMES}
        tensors = {name: values.detach().numpy().copy() for name, values in (learned | normalised).items()}
        return ImageScores(tensors)

    def filtered(self, busy: torch.Tensor, jobs: torch.Tensor) -> torch.Tensor:
        """Return what the rectified filters find, shape (batch, columns - 1, filters x (rows - 1))."""
        left, right = self._columns(jobs)
        kinds = self._kinds(busy, jobs)
        left = left + self.filter_bias.repeat_interleave(self.steps - 1)
        found = embedding(kinds[:, :-1], left.flatten(0, 1))
        found += embedding(kinds[:, 1:], right.flatten(0, 1))  # in place: new memory costs more than the sum
        return relu_(found)

    def _columns(self, jobs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what filters make of each kind of column, to their left and to their right.

        Of shape (batch, kinds, filters x (rows - 1)); a kind is a resource, how many jobs do not reach so
        far, and for how many steps the unit is busy.
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

    def _kinds(self, busy: torch.Tensor, jobs: torch.Tensor) -> torch.Tensor:
        """Return the kind of each column, counted over the whole batch, shape (batch, units)."""
        reach = jobs[..., :-2].transpose(1, 2).sort(dim=2).values
        batch, resources = reach.shape[:2]
        places = (place.expand(batch, -1).contiguous() for place in self._places)
        short = [  # of each column, how many jobs do not reach it
            torch.searchsorted(reach[:, k].contiguous(), place, right=True) for k, place in enumerate(places)
        ]
        kind = torch.cat(short, dim=1) + self._first_kind
        in_batch = torch.arange(batch)[:, None] * (resources * (self.slots + 1))
        return (in_batch + kind) * (self.steps + 1) + busy
