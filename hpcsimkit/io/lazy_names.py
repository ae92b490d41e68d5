"""Names of a module that are imported from other modules when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

__all__ = ["LazyNames"]


class LazyNames:
    """Names of a module by the modules of hpcsimkit that define them.

    Parameters
    ----------
    module : str
        Name of the module.
    homes : mapping of str to tuple of str
        Names by the module below ``hpcsimkit`` that defines them.

    Examples
    --------
    >>> LazyNames("doors", {"errors": ("UsageError",)}).load("UsageError").__name__
    'UsageError'
    """

    def __init__(self, module: str, homes: Mapping[str, tuple[str, ...]]) -> None:
        self.module = module
        self.home_of = {name: home for home, names in homes.items() for name in names}

    def load(self, name: str) -> Any:
        """Return what a name stands for.

        Raises
        ------
        AttributeError
            The module has no such name.
        """
        if name not in self.home_of:
            raise AttributeError(f"module {self.module!r} has no attribute {name!r}")
        return getattr(import_module(f"hpcsimkit.{self.home_of[name]}"), name)
