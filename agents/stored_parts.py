"""Encoders, masks and modules in model files: their names and literal parameters, and back."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from typing import TYPE_CHECKING, Any

from hpcsimkit.errors import UsageError
from hpcsimkit.io.catalogue import Catalogue

if TYPE_CHECKING:
    from hpcsimkit.agents.networks.model_metadata import NamedPart

__all__ = ["described", "known_class", "own_class", "restored", "tell_needs"]

NOTEBOOK = "__main__"
"""Module of classes that were defined in a notebook, or in the script that runs."""


def tell_needs(path: str | os.PathLike[str], *parts: Any) -> None:
    """Warn that a file names classes of a notebook, and tell how it is loaded elsewhere."""
    names = [type(part).__name__ for part in parts if type(part).__module__ == NOTEBOOK]
    if names:
        them = "it" if len(names) == 1 else "them"
        warnings.warn(
            f"{path} names {' and '.join(names)} of this notebook or script: to load it elsewhere, put "
            f"{them} into a file, such as mine.py; then Agent.load({str(path)!r}, parts=mine), or "
            f"-p 'agent:{path}(parts=mine.py)' on the command line",
            UserWarning,
            stacklevel=3,
        )


def described(part: Any, known: Catalogue[type[Any]]) -> dict[str, Any]:
    """Return the name and the parameters of an encoder, a mask or a module, as JSON data."""
    kind = type(part)
    wanted = inspect.signature(kind).parameters
    lacking = [key for key in wanted if not hasattr(part, key)]
    if lacking:
        raise UsageError(
            f"{kind.__name__} cannot be written into a model file: its parameter {lacking[0]!r} must be an "
            f"attribute, self.{lacking[0]} = {lacking[0]}"
        )
    parameters = {key: getattr(part, key) for key in wanted}
    module = kind.__module__.partition("@")[0]  # for a file only its name, wherever it is
    try:
        plain = json.loads(json.dumps(parameters, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{part!r} cannot be written into a model file: {error}") from None
    return {"name": known.name_of(kind) or f"{module}:{kind.__name__}", "parameters": plain}


def restored(stored: NamedPart, base: type[Any], given: Any, known: Catalogue[type[Any]], parts: Any) -> Any:
    """Create an encoder or mask from its description, or check a given one against it."""
    if given is not None:
        if described(given, known) != stored.model_dump():
            raise UsageError(f"made for {stored.name}({stored.parameters}), given {given!r}")
        return given
    if stored.name not in known:
        return own_class(stored.name, base, parts)(**stored.parameters)
    kind = known_class(stored.name, base, known)
    stored.check_parameters(kind)
    return kind(**stored.parameters)


def known_class(name: str, base: type[Any], known: Catalogue[type[Any]]) -> type[Any]:
    """Return a registered class, which may be that of another distribution."""
    kind = known[name]
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise UsageError(f"{name!r} needs a subclass of {base.__name__}, found {kind!r}")
    return kind


def own_class(name: str, base: type[Any], parts: Any) -> type[Any]:
    """Return a class from the user's module, and from no other place."""
    module, _, attribute = name.rpartition(":")
    if parts is None:
        raise UsageError(
            f"made for {name}, which is not the kit's own: hand it to Agent.load, or say where it is: "
            f"parts={module}, for evaluate --parts {module}"
        )
    found = getattr(parts, attribute, None)
    if not (isinstance(found, type) and issubclass(found, base)):
        where = getattr(parts, "__name__", repr(parts)).partition("@")[0]
        raise UsageError(f"made for {name}; {where} has no {base.__name__} {attribute!r}")
    return found
