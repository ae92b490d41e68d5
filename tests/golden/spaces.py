"""Golden cases of the space that the compiled simulator takes: the shapes of the arrays with which runs begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from hpcsimkit.compiled import loading
from tests.golden.cases import runs_compiled

EVERY = 3
"""One of so many runs is looked at."""


class Begun(Exception):  # noqa: N818 - it is no error
    """A run has begun, and is not wanted any longer."""


def spaces(compiled: list[str]) -> dict[str, Callable[[], str]]:
    """Return what makes the text of the space of some runs on the compiled simulator, by their names."""
    runs = runs_compiled()
    return {name: partial(_space_of, runs[name]) for name in compiled[::EVERY]}


def _space_of(run: Callable[[], str]) -> str:
    shapes: list[str] = []

    def begin(*state: Any) -> None:
        shapes.extend(_shapes("", state))
        raise Begun

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "KINDS", {})
        patch.setattr(loading, "DIRECT", {})
        patch.setattr(loading, "_entry", lambda kind: begin)
        with suppress(Begun):
            run()  # with an open seat, it returns what it was told
    return "\n".join(shapes)


def _shapes(name: str, found: Any) -> Iterator[str]:
    """Yield the shape of each array, with its name in the tuples that have it."""
    if isinstance(found, np.ndarray):
        yield f"{name} {found.dtype} {found.shape}"
    elif isinstance(found, tuple):
        names = getattr(found, "_fields", range(len(found)))
        for each, value in zip(names, found, strict=True):
            yield from _shapes(f"{name}.{each}", value)
