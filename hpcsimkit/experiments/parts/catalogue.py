"""Named parts: policies, parts of learners, readers, machines and metrics, of the kit and of plug-ins."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from hpcsimkit.agents.catalogue import ENCODERS, EPISODES, MASKS, NETWORKS, REWARDS
from hpcsimkit.agents.training.catalogue import TRAINERS
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.named_parts import MACHINES
from hpcsimkit.experiments.parts.registry import Entry, first_paragraph, plugged
from hpcsimkit.io.catalogue import Catalogue, plug_ins
from hpcsimkit.results.metrics import GROUP as METRICS_GROUP
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.workloads.readers.logs import READERS

__all__ = ["CATALOGUES", "parts"]

CATALOGUES: tuple[Catalogue[Any], ...] = (
    *(ENCODERS, MASKS, REWARDS, NETWORKS, EPISODES, TRAINERS),
    *(READERS, MACHINES),
)
"""Catalogues of parts, each of one kind."""


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
    others: dict[str, Callable[[], list[Entry]]] = {
        **{known.kind: partial(_listed, known) for known in CATALOGUES},
        METRICS.kind: _metrics,
    }
    if kind in others:
        return others[kind]()
    policies = registry.entries()
    if kind is None:
        return [*policies, *(part for listed in others.values() for part in listed())]
    kinds = dict.fromkeys([*(entry.kind for entry in policies), "plug-in", *others])
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


def _metrics() -> list[Entry]:
    """Return the metrics: those of the kit, then those of plug-ins."""
    own = [Entry(name, METRICS.kind, metric.summary) for name, metric in METRICS.known.items()]
    others = plug_ins(METRICS_GROUP)
    return own + [plugged(point, METRICS.kind) for name, point in others.items() if name not in METRICS.known]


def _docstring(place: str) -> str | None:
    """Return the docstring of an object of the kit, without importing its module."""
    module, _, name = place.partition(":")
    body = _parsed(module).body
    for node, after in pairwise([*body, ast.Pass()]):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(after.value) if isinstance(after, ast.Expr) else None
    raise LookupError(place)


@cache
def _parsed(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(module)
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))
