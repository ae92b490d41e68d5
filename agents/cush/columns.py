"""Compressed images: columns by type, and runs of equal neighbouring columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch


class Runs(NamedTuple):
    """Runs of equal pairs of neighbouring columns in a batch of images.

    All are tensors of int64, shape (runs,).

    Parameters
    ----------
    picture : tensor
        Index of the image, ascending.
    left, right : tensor
        Types of the two columns, numbered over all images.
    begin, end : tensor
        Begin and end of the run: rows of the cumulative sums of :meth:`Columns.laid_out`.
    """

    picture: torch.Tensor
    left: torch.Tensor
    right: torch.Tensor
    begin: torch.Tensor
    end: torch.Tensor


class Columns:
    """Column types of a :class:`~hpcsimkit.agents.cush.encoder.ClusterImage`.

    The type of a column is its resource, the number of jobs that do not reach it, and the remaining busy time
    of its unit [s]. A filter of two columns has the same output for the same pair of types, and neighbouring
    nodes mostly have the same type. Columns are therefore ordered by unit: all first CPUs, then all second
    ones, and so on.

    Parameters
    ----------
    nodes : int
        Number of nodes in the cluster.
    units : sequence of int
        Number of units per node of each resource.
    steps : int
        Number of rows of an image.
    slots : int
        Number of visible jobs.

    Examples
    --------
    Three nodes with one CPU each, the last of them busy; the only job requests one. The three columns have
    three types, which gives two runs of one pair each:

    >>> columns = Columns(3, [1], steps=2, slots=1)
    >>> runs = columns.runs(torch.tensor([[0, 0, 2]], dtype=torch.uint8), torch.tensor([[[1.0, 2.0, 1.0]]]))
    >>> runs.left.tolist(), runs.right.tolist(), runs.begin.tolist(), runs.end.tolist()
    ([0, 3], [3, 5], [0, 1], [1, 2])
    """

    def __init__(self, nodes: int, units: Sequence[int], steps: int, slots: int) -> None:
        self.nodes = nodes
        self.blocks = sum(units)
        self.kinds = len(units) * (slots + 1) * (steps + 1)
        widths = [nodes * count for count in units]
        self._parts = list(pairwise([0, *np.cumsum(widths).tolist()]))
        self._places = [torch.arange(width, dtype=torch.float32) for width in widths]
        self._heights = steps + 1
        first = [torch.full((width,), k * (slots + 1) * (steps + 1)) for k, width in enumerate(widths)]
        self._first_kind = torch.cat(first).int()
        columns = [
            begin + unit + count * np.arange(nodes)
            for (begin, _), count in zip(self._parts, units, strict=True)
            for unit in range(count)
        ]
        self.order = torch.from_numpy(np.concatenate(columns))  # of all columns, by unit
        self._block = torch.arange(self.blocks).repeat_interleave(nodes)
        self._block_begins = torch.arange(nodes * self.blocks) % nodes == 0

    def runs(self, busy: torch.Tensor, jobs: torch.Tensor) -> Runs:
        """Return the runs of a batch of images.

        Busy times are those of :class:`~hpcsimkit.agents.cush.encoder.Sketch`, uint8, shape (pictures,
        columns); jobs have the shape (pictures, slots, resources + 2).
        """
        kind = self._kinds(busy, jobs)
        pairs = (kind[:, :-1] * self.kinds + kind[:, 1:])[:, self.order[:-1]]
        differs = torch.ones(pairs.shape, dtype=torch.bool)
        torch.ne(pairs[:, 1:], pairs[:, :-1], out=differs[:, 1:])
        differs |= self._block_begins[:-1]
        picture, first = differs.nonzero(as_tuple=True)
        before = picture * pairs.shape[1]
        last = torch.cat([(before + first)[1:], torch.tensor([pairs.numel()])]) - before
        block, column = self._block[first], self.order[first]
        of_picture = picture * self.kinds
        left, right = (of_picture + kind[picture, column + side] for side in (0, 1))
        return Runs(picture, left, right, first + block, last + block)

    def laid_out(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the cumulative sums of position weights, shape (..., columns - 1), within each unit.

        The shape is (blocks x (nodes + 1), ...); the weight of a run is the row at its end minus the row at
        its begin.
        """
        with_last = torch.nn.functional.pad(weight, (0, 1)).movedim(-1, 0)[self.order]
        of_blocks = with_last.unflatten(0, (self.blocks, self.nodes))  # type: ignore[no-untyped-call]
        sums = of_blocks.cumsum(dim=1)
        return torch.cat([torch.zeros_like(sums[:, :1]), sums], dim=1).flatten(0, 1)

    def _kinds(self, busy: torch.Tensor, jobs: torch.Tensor) -> torch.Tensor:
        """Return the type of each column, int32, shape (pictures, columns)."""
        reach = jobs[..., :-2].transpose(1, 2).sort(dim=2).values
        kind = torch.empty(busy.shape, dtype=torch.int32)
        for k, ((begin, end), place) in enumerate(zip(self._parts, self._places, strict=True)):
            places = place.expand(len(busy), -1).contiguous()
            kind[:, begin:end] = torch.searchsorted(
                reach[:, k].contiguous(), places, right=True, out_int32=True
            )
        return kind.mul_(self._heights).add_(busy).add_(self._first_kind)
