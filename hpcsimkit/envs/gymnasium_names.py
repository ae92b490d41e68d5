"""Registration of the environments with Gymnasium, so that ``gymnasium.make("hpcsimkit/Order-v0")`` works.

Code that takes nothing but a name is given ``"hpcsimkit:hpcsimkit/OrderFlat-v0"``: the part before the colon
is the module that Gymnasium imports first.

Gymnasium takes long to load, and hpcsimkit is mostly used without it. The names are therefore registered at
once if Gymnasium is loaded already, and otherwise as soon as it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # slow to load

__all__ = ["NAMES", "register"]

NAMES = (
    *("order", "backfill", "backfiller", "inspector", "gate", "placement", "preemptor", "tester", "dispatch"),
)
"""Functions of :mod:`hpcsimkit.agents.standard`, each of which makes an environment."""

REGISTRY = "gymnasium.envs.registration"
"""Module of Gymnasium that holds its environments."""


def register() -> None:
    """Register the environments now, or once Gymnasium is loaded."""
    if (registry := sys.modules.get(REGISTRY)) is not None:
        _register_with(registry)
    elif not any(isinstance(finder, _RegistryFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RegistryFinder())


def _register_with(registry: ModuleType) -> None:
    for name in NAMES:
        made = f"hpcsimkit.agents.standard:{name}"
        for suffix, options in (("", {}), ("Flat", {"flat": True})):
            identifier = f"hpcsimkit/{name.capitalize()}{suffix}-v0"
            if identifier not in registry.registry:
                registry.register(
                    identifier, entry_point=made, vector_entry_point=f"{made}_vector", kwargs=options
                )


class _RegistryFinder:
    """Finder of one module, Gymnasium's registry; it adds a step after the module has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual specification of the module with a loader that also registers."""
        if name != REGISTRY:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _RegisteringLoader(spec.loader))
        return spec


class _RegisteringLoader:
    """The module's own loader with one more step."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _register_with(module)
