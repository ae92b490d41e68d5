"""The compiled simulator as the Python that it is."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcsimkit.compiled import loading


def interpret(patch: pytest.MonkeyPatch, *, checked: bool = False) -> None:
    """Replace all functions that numba compiles by the Python that they are, until the patch is undone.

    If `checked`, no index may be negative: that takes twice as long.
    """
    from numba.core.dispatcher import Dispatcher

    from hpcsimkit import compiled
    from hpcsimkit.compiled import compilation

    found = pkgutil.iter_modules(compiled.__path__, "hpcsimkit.compiled.")
    # All are imported first: who imports a function that is replaced would keep it.
    for module in [importlib.import_module(each.name) for each in found]:
        for name, value in list(vars(module).items()):
            if isinstance(value, Dispatcher):
                patch.setattr(module, name, value.py_func)
    patch.setattr(
        compilation, "entry", lambda function, folder, **options: _checking(function) if checked else function
    )
    patch.setattr(compilation, "direct", lambda function: function)
    patch.setattr(loading, "KINDS", {})
    patch.setattr(loading, "DIRECT", {})


class Checked(np.ndarray[Any, Any]):
    """An array without negative indices, which compiled code takes for memory before the array."""

    def __getitem__(self, index: Any) -> Any:
        _check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check(index)
        super().__setitem__(index, value)


def _check(index: Any) -> None:
    for each in index if type(index) is tuple else (index,):
        if isinstance(each, int | np.integer) and each < 0:
            raise IndexError(f"no index of compiled code may be negative, found {index!r}")


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose arrays are checked."""
    return lambda *arguments: function(*map(_checked, arguments))


def _checked(value: Any) -> Any:
    """Return an argument of a run, a named tuple of arrays as a rule, with checked arrays."""
    if isinstance(value, np.ndarray):
        return value.view(Checked)
    if isinstance(value, tuple):
        return type(value)(*map(_checked, value))
    return value
