"""Objects defined by their parameters: equality, hash and representation based on constructor arguments."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

import numpy as np

__all__ = ["Parameters", "defaults", "given", "parts"]


class Parameters:
    """Base class with equality and representation based on the constructor arguments, as in scikit-learn.

    Arguments with default values are not shown; large arrays and lists are shown by size and hash.
    """

    def __repr__(self) -> str:
        values = (f"{name}={shown}" for name, shown in given(self).items())
        return f"{type(self).__name__}({', '.join(values)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __setstate__(self, state: Any) -> None:
        # One by one: Python reads the attributes of a copy more slowly if they are set by its dictionary.
        own, of_slots = state if isinstance(state, tuple) else (state, {})
        for name, value in {**(own or {}), **of_slots}.items():
            object.__setattr__(self, name, value)


def given(part: Parameters, known: Collection[str] = ()) -> dict[str, str]:
    """Return the representations of parameters with other values than by default, besides known ones."""
    kind: type = type(part)
    values = {
        name: (_shown(getattr(part, name)), default)
        for name, default in defaults(kind).items()
        if name not in known and hasattr(part, name)
    }
    return {name: shown for name, (shown, default) in values.items() if shown != default}


@cache
def defaults(kind: type) -> dict[str, str]:
    """Return the parameters of a class and the representations of their default values."""
    return {name: _shown(each.default) for name, each in inspect.signature(kind).parameters.items()}


def _shown(value: Any) -> str:
    """Return a distinctive representation of a parameter value."""
    if isinstance(value, np.ndarray) and value.size > 10:
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"<{value.dtype} array {value.shape} {digest[:16]}>"
    if isinstance(value, list) and len(value) > 20:
        return f"<list of {len(value)} {hashlib.sha256(repr(value).encode()).hexdigest()[:16]}>"
    return repr(value)


def parts(policy: Parameters, copied: Parameters | None = None) -> Iterator[Parameters]:
    """Yield a policy or stage and, recursively, all stages it contains; with a copy of it, those of the copy.

    Python reads the attributes of the copy faster than after :func:`vars`, which this function avoids.

    >>> from hpcsimkit.policies import EASY, FCFS, Pipeline
    >>> [type(part).__name__ for part in parts(Pipeline(FCFS(), backfiller=EASY()))]
    ['Pipeline', 'FCFS', 'EASY']
    """
    yield policy if copied is None else copied
    for name, value in vars(policy).items():
        of_copy = None if copied is None else getattr(copied, name, None)
        if isinstance(value, Parameters) and (copied is None or isinstance(of_copy, Parameters)):
            yield from parts(value, of_copy)
