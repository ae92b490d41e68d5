"""Parallel workers that synchronise from time to time: a single one, or several started by torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

from hpcsimkit.agents.training.stopping import Stopping
from hpcsimkit.errors import UsageError

PATIENCE = timedelta(minutes=10)
"""Timeout after which a silent worker is considered dead."""


class Workers:
    """A single worker, for which every collective operation is the identity.

    Attributes
    ----------
    rank, count : int
        Rank of this worker, from 0, and number of workers.

    Examples
    --------
    >>> Workers().total(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    rank, count = 0, 1

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the elementwise sum over all workers."""
        return values

    def least(self, number: int) -> int:
        """Return the minimum of a number over all workers."""
        return number

    def average(self, module: torch.nn.Module) -> None:
        """Replace the weights of all workers by their mean."""

    def share(self, games: int) -> int:
        """Return this worker's share of a number of simulations; the shares of all workers add up to it.

        >>> Workers().share(24)
        24
        """
        return games // self.count + (self.rank < games % self.count)


class Distributed(Workers):
    """One of several workers, in processes on one or more hosts connected by torch.distributed (gloo)."""

    def __init__(self) -> None:
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the elementwise sum over all workers."""
        tensor = torch.from_numpy(values.copy())
        with self._all_alive():
            distributed.all_reduce(tensor)
        return tensor.numpy()

    def least(self, number: int) -> int:
        """Return the minimum of a number over all workers."""
        tensor = torch.tensor([number])
        with self._all_alive():
            distributed.all_reduce(tensor, op=distributed.ReduceOp.MIN)
        return int(tensor.item())

    def average(self, module: torch.nn.Module) -> None:
        """Replace the weights and normalisation statistics of all workers by their means."""
        for values in module.state_dict().values():
            with self._all_alive():
                distributed.all_reduce(values)
            values /= self.count

    @contextmanager
    def _all_alive(self) -> Iterator[None]:
        """Raise a clear error if another worker has died."""
        try:
            yield
        except RuntimeError as error:
            raise UsageError(
                f"worker {self.rank} of {self.count}: another worker has died or cannot be reached "
                f"({str(error).splitlines()[0]}); start all of them again to go on from their checkpoints"
            ) from None


@contextmanager
def joined_workers() -> Iterator[Workers]:
    """Join the workers that torchrun has started together with this process; a single worker otherwise."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield Workers()
        return
    try:
        distributed.init_process_group("gloo", timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"workers do not come together: {str(error).splitlines()[0]}") from None
    with Stopping():  # when a worker dies, torchrun stops the others, which must report it first
        try:
            yield Distributed()
        finally:
            distributed.destroy_process_group()
