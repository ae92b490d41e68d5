"""The threads of a training run: one, so that equal trainings add up in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread of PyTorch, and inside ``with`` of NumPy's matrix products.

    Two are slower for networks of this size. The number of threads decides in which order products are
    summed, and so the last digits of weights: a training in Python would differ from one that the command
    line starts.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    torch.set_num_threads(1)
    with threadpool_limits(1, user_api="blas"):
        yield
