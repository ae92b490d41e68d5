"""State of libraries that a training isolates: random number generators, and the number of threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits


class GlobalRandomState:
    """A separate state of the three global random number generators, active inside ``with``.

    For libraries that draw from global generators: code outside does not affect the numbers drawn inside, nor
    the other way round.

    Parameters
    ----------
    seed : int
        Random seed of all three, below 2**32.

    Examples
    --------
    >>> isolated, drawn = GlobalRandomState(7), []
    >>> for outside in range(2):
    ...     with isolated:
    ...         drawn.append(random.random())
    ...     random.seed(outside)
    >>> random.seed(7)
    >>> drawn == [random.random(), random.random()]
    True
    """

    def __init__(self, seed: int) -> None:
        self._inside = self._outside = _taken()
        with self:
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002 - the global generator is what this is about
            torch.manual_seed(seed)

    def __enter__(self) -> GlobalRandomState:
        self._outside = _taken()
        _put(self._inside)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = _taken()
        _put(self._outside)

    def state(self) -> dict[str, Any]:
        """Return the state inside, as JSON data."""
        (version, numbers, gauss), numpys, torchs = self._inside
        return {
            "python": [version, list(numbers), gauss],
            "numpy": {**numpys, "state": {**numpys["state"], "key": list(map(int, numpys["state"]["key"]))}},
            "torch": torchs.numpy().tobytes().hex(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state` returned."""
        version, numbers, gauss = state["python"]
        torchs = torch.frombuffer(bytearray.fromhex(state["torch"]), dtype=torch.uint8)
        self._inside = ((version, tuple(numbers), gauss), state["numpy"], torchs)


def _taken() -> tuple[Any, Any, torch.Tensor]:
    numpys = np.random.get_state(legacy=False)  # noqa: NPY002
    return random.getstate(), numpys, torch.get_rng_state()


def _put(states: tuple[Any, Any, torch.Tensor]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])


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
