"""The compiled simulator as the Python that it is."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from hpcsimkit.compiled import loading


def interpret(patch: pytest.MonkeyPatch) -> None:
    """Replace all functions that numba compiles by the Python that they are, until the patch is undone."""
    from numba.core.dispatcher import Dispatcher

    from hpcsimkit import compiled
    from hpcsimkit.compiled import compilation

    found = pkgutil.iter_modules(compiled.__path__, "hpcsimkit.compiled.")
    # All are imported first: who imports a function that is replaced would keep it.
    for module in [importlib.import_module(each.name) for each in found]:
        for name, value in list(vars(module).items()):
            if isinstance(value, Dispatcher):
                patch.setattr(module, name, value.py_func)
    patch.setattr(compilation, "entry", lambda function, folder, **options: function)
    patch.setattr(compilation, "direct", lambda function: function)
    patch.setattr(loading, "KINDS", {})
    patch.setattr(loading, "DIRECT", {})
