"""Named parts: policies and their components, and the parts of learners, of the kit and of plug-ins."""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hpcsimkit.agents.catalogue import ENCODERS, EPISODES, MASKS, NETWORKS, REWARDS
from hpcsimkit.agents.training.catalogue import TRAINERS
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments import registry
from hpcsimkit.experiments.registry import Entry, first_paragraph, plugged
from hpcsimkit.io.catalogue import Catalogue, plug_ins

__all__ = ["CATALOGUES", "parts"]

CATALOGUES: tuple[Catalogue[Any], ...] = (ENCODERS, MASKS, REWARDS, NETWORKS, EPISODES, TRAINERS)
"""Catalogues of the parts of learners, each of one kind."""


def parts(kind: str | None = None) -> list[Entry]:
    """Return all parts of a kind, or of all kinds.

    Plug-ins of that kind are imported for their descriptions; modules of the kit are only parsed, since some
    need PyTorch.

    Parameters
    ----------
    kind : str, optional
        Kind, such as ``"encoder"``, ``"algorithm"`` or ``"order"``.

    Raises
    ------
    UsageError
        The kind is unknown; the message names the nearest.

    Examples
    --------
    >>> [part.name for part in parts("mask") if part.origin == "hpcsimkit"]
    ['AcceptReject', 'JobMachine', 'QueueSlots', 'Slots']
    """
    of_learners = {known.kind: known for known in CATALOGUES}
    if kind in of_learners:
        return _listed(of_learners[kind])
    policies = registry.entries()
    if kind is None:
        return [*policies, *(part for known in CATALOGUES for part in _listed(known))]
    kinds = dict.fromkeys([*(entry.kind for entry in policies), "plug-in", *of_learners])
    if kind not in kinds:
        raise UsageError(f"unknown kind of parts {kind!r}{nearest(kind, kinds)}")
    return [entry for entry in policies if entry.kind == kind]


def _listed(known: Catalogue[Any]) -> list[Entry]:
    """Return the parts of a catalogue: those of the kit, then those of plug-ins."""
    own = [
        Entry(name, known.kind, first_paragraph(_docstring(place))) for name, place in known.places.items()
    ]
    others = plug_ins(known.group)
    return own + [plugged(point, known.kind) for name, point in others.items() if name not in known.places]


def _docstring(place: str) -> str | None:
    """Return the docstring of a class of the kit, without importing its module."""
    module, _, name = place.partition(":")
    classes = (node for node in _parsed(module).body if isinstance(node, ast.ClassDef))
    return ast.get_docstring(next(node for node in classes if node.name == name))


@cache
def _parsed(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(module)
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))
