"""Named parts: policies, parts of learners, readers, machines and metrics, of the kit and of plug-ins."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from hpcsimkit.agents.catalogue import ENCODERS, EPISODES, MASKS, NETWORKS, REWARDS
from hpcsimkit.agents.training.catalogue import TRAINERS
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.parts.named_parts import MACHINES
from hpcsimkit.experiments.parts.registry import ENTRY_POINT_GROUP
from hpcsimkit.io.catalogue import Catalogue, loaded, plug_ins
from hpcsimkit.results.metrics import GROUP as METRICS_GROUP
from hpcsimkit.results.metrics import METRICS, Metric
from hpcsimkit.workloads.readers.logs import READERS

__all__ = ["CATALOGUES", "Entry", "entries", "parts"]

CATALOGUES: tuple[Catalogue[Any], ...] = (
    *(ENCODERS, MASKS, REWARDS, NETWORKS, EPISODES, TRAINERS),
    *(READERS, MACHINES),
)
"""Catalogues of parts, each of one kind."""


@dataclass(frozen=True)
class Entry:
    """A name that parts may have, alone or joined with ``+``, and its description."""

    name: str
    kind: str
    """Order, inspector, placement, backfilling, estimates, pipeline, policy, option, plug-in, encoder ..."""
    summary: str
    aliases: tuple[str, ...] = ()
    origin: str = "hpcsimkit"
    """Distribution that provides it."""


def entries() -> list[Entry]:
    """Return all names of policies: built-in names, then plug-ins."""
    from hpcsimkit.policies.catalogue import ALIASES, CATALOGUE

    aliases: dict[str, list[str]] = {}
    for alias, target in ALIASES.items():
        aliases.setdefault(target, []).append(alias)
    built_in = [
        Entry(name, kind, first_paragraph(inspect.getdoc(factory)), tuple(aliases.get(name, ())))
        for kind, factories in CATALOGUE.items()
        for name, factory in factories.items()
    ]
    return built_in + [_plugged(point, "plug-in") for point in plug_ins(ENTRY_POINT_GROUP).values()]


def parts(kind: str | None = None) -> list[Entry]:
    """Return all parts of a kind, or of all kinds; ``"policies"`` are the parts of policies of all kinds.

    Plug-ins of that kind are imported for their descriptions; modules of the kit are only parsed, since some
    need PyTorch.

    >>> [part.name for part in parts("mask") if part.origin == "hpcsimkit"]
    ['AcceptReject', 'GuardedSlots', 'JobMachine', 'QueueSlots', 'Slots']
    """
    others: dict[str, Callable[[], list[Entry]]] = {
        **{known.kind: partial(_listed, known) for known in CATALOGUES},
        METRICS.kind: _metrics,
    }
    if kind in others:
        return others[kind]()
    policies = entries()
    if kind == "policies":
        return policies
    if kind is None:
        return [*policies, *(part for listed in others.values() for part in listed())]
    kinds = dict.fromkeys([*(entry.kind for entry in policies), "plug-in", "policies", *others])
    if kind not in kinds:
        raise UsageError(f"unknown kind of parts {kind!r}{nearest(kind, kinds)}")
    return [entry for entry in policies if entry.kind == kind]


def _listed(known: Catalogue[Any]) -> list[Entry]:
    """Return the parts of a catalogue: those of the kit, then those of plug-ins."""
    places = known.places.items()
    own = [Entry(name, known.kind, first_paragraph(_docstring(place))) for name, place in places]
    return own + _others(known.group, known.kind, known.places)


def _metrics() -> list[Entry]:
    """Return the metrics: those of the kit, then those of plug-ins."""
    own = [Entry(name, METRICS.kind, metric.summary) for name, metric in METRICS.known.items()]
    return own + _others(METRICS_GROUP, METRICS.kind, METRICS.known)


def _others(group: str, kind: str, own: Collection[str]) -> list[Entry]:
    return [_plugged(point, kind) for name, point in plug_ins(group).items() if name not in own]


def _plugged(plug_in: EntryPoint, kind: str) -> Entry:
    """Return the description of a plug-in, which is imported; the error if it cannot be."""
    try:
        found = loaded(plug_in)
        about = found.summary if isinstance(found, Metric) else first_paragraph(inspect.getdoc(found))
        summary = about or plug_in.value
    except UsageError as error:
        summary = str(error)
    origin = plug_in.dist.name if plug_in.dist is not None else plug_in.module.partition(".")[0]
    return Entry(plug_in.name, kind, summary, origin=origin)


def first_paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring as one line; empty without one.

    >>> first_paragraph("Fewest nodes\\nfirst.\\n\\nMore.")
    'Fewest nodes first.'
    """
    return (docstring or "").split("\n\n")[0].replace("\n", " ")


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
