"""Catalogues of parts: those of the kit and of plug-ins by name, each imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from hpcsimkit.errors import HpcsimkitError, UsageError, close_words
from hpcsimkit.io.printable import message_text

__all__ = ["Catalogue", "loaded", "plug_ins"]

T = TypeVar("T")


class Catalogue(Mapping[str, T], Generic[T]):
    """Parts of one kind by name: those of the kit, then those of plug-ins, each imported on first use.

    General code thus finds the parts of every published system without importing any of them. Other
    distributions add parts under an entry-point group; a name of the kit comes before theirs.

    Parameters
    ----------
    kind : str
        Kind of the parts, for messages.
    group : str
        Group of the entry points.
    places : mapping of str to str
        Module and attribute of each part of the kit, as ``module:Name``.

    Examples
    --------
    >>> shapes = Catalogue("shape", "hpcsimkit.shapes", {"Fraction": "fractions:Fraction"})
    >>> shapes["Fraction"].__name__, "Missing" in shapes
    ('Fraction', False)
    >>> shapes.named("Fractoin")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: unknown shape 'Fractoin'; nearest: Fraction; your own: module:Name
    """

    def __init__(self, kind: str, group: str, places: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.places = places

    def __getitem__(self, name: str) -> T:
        if name not in self.places:
            return loaded(plug_ins(self.group)[name])
        module, _, attribute = self.places[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self.places or name in plug_ins(self.group)

    def __iter__(self) -> Iterator[str]:
        return iter({**self.places, **plug_ins(self.group)})

    def __len__(self) -> int:
        return len({**self.places, **plug_ins(self.group)})

    def named(self, name: Any) -> T:
        """Return the part of a name.

        Raises
        ------
        UsageError
            The name is unknown (the message lists similar ones), or the plug-in cannot be imported.
        """
        if name in self:
            return self[name]
        near = close_words(str(name), self) or list(self)
        hint = f"nearest: {', '.join(near)}; " if near else ""
        raise UsageError(f"unknown {self.kind} {name!r}; {hint}your own: module:Name")

    def name_of(self, part: type[Any]) -> str | None:
        """Return the name of a class; None if it is not in the catalogue."""
        place = f"{part.__module__}:{part.__name__}"
        known = next((name for name, at in self.places.items() if at == place), None)
        if known is not None:  # without a search of all distributions, for each file of an agent
            return known
        others = plug_ins(self.group)
        return next((name for name in others.keys() - self.places if others[name].value == place), None)


def plug_ins(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    return {point.name: point for point in entry_points(group=group)}


def loaded(plug_in: EntryPoint) -> Any:
    """Import the object of an entry point.

    Raises
    ------
    UsageError
        The import fails; the message names the plug-in.
    """
    try:
        return plug_in.load()
    except (HpcsimkitError, KeyboardInterrupt):
        raise
    except BaseException as error:  # such as SystemExit
        text = f"{type(error).__name__}: {message_text(str(error))}"
        raise UsageError(f"{plug_in.name!r} cannot be imported: {text} ({plug_in.value})") from error
