"""Workers that train side by side and agree now and then: alone, or several that torchrun has started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

from hpcsimkit.agents.stopping import Stopping
from hpcsimkit.errors import UsageError

__all__ = ["Distributed", "Workers", "joined_workers"]

PATIENCE = timedelta(minutes=10)
"""A worker of which nothing is heard for so long has died."""


class Workers:
    """A worker who is alone: what all would agree upon is what he says.

    Attributes
    ----------
    rank, count : int
        Which worker this is, counted from 0, and how many there are.

    Examples
    --------
    >>> Workers().total(np.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    rank, count = 0, 1

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over all workers, element by element."""
        return values

    def least(self, number: int) -> int:
        """Return the least of a number over all workers."""
        return number

    def average(self, module: torch.nn.Module) -> None:
        """Let all workers go on with the mean of their weights."""

    def share(self, games: int) -> int:
        """Return how many of so many games this worker plays; all together play all of them.

        >>> Workers().share(24)
        24
        """
        return games // self.count + (self.rank < games % self.count)


class Distributed(Workers):
    """One of several workers, in processes of one host or many that speak by torch.distributed (gloo)."""

    def __init__(self) -> None:
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over all workers, element by element."""
        tensor = torch.from_numpy(values.copy())
        with self._all_alive():
            distributed.all_reduce(tensor)
        return tensor.numpy()

    def least(self, number: int) -> int:
        """Return the least of a number over all workers."""
        tensor = torch.tensor([number])
        with self._all_alive():
            distributed.all_reduce(tensor, op=distributed.ReduceOp.MIN)
        return int(tensor.item())

    def average(self, module: torch.nn.Module) -> None:
        """Let all workers go on with the mean of their weights, and of what normalisation goes by."""
        for values in module.state_dict().values():
            with self._all_alive():
                distributed.all_reduce(values)
            values /= self.count

    @contextmanager
    def _all_alive(self) -> Iterator[None]:
        """Say it plainly if another worker is not there any more."""
        try:
            yield
        except RuntimeError as error:
            raise UsageError(
                f"worker {self.rank} of {self.count}: another worker has died or cannot be reached "
                f"({str(error).splitlines()[0]}); start all of them again to go on from their checkpoints"
            ) from None


@contextmanager
def joined_workers() -> Iterator[Workers]:
    """Join those that torchrun has started together with this process; without it, work alone.

    Raises
    ------
    UsageError
        They do not come together.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield Workers()
        return
    try:
        distributed.init_process_group("gloo", timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"workers do not come together: {str(error).splitlines()[0]}") from None
    with Stopping():  # torchrun stops those that live when one has died: they shall have said why they end
        try:
            yield Distributed()
        finally:
            distributed.destroy_process_group()
