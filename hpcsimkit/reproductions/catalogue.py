"""Catalogue of the reproductions, which are imported on demand."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpcsimkit.errors import UsageError, nearest

if TYPE_CHECKING:
    from hpcsimkit.reproductions.reproduction import Reproduction

__all__ = ["PAPERS", "SYSTEMS", "reproduction_named"]

PAPERS: Mapping[str, Path] = {
    plan.parent.name.replace("_", "-"): plan.parent
    for plan in sorted(Path(__file__).parent.glob("*/plan.toml"))
}
"""Folders of this package with a plan, by name of the system."""

WRITTEN: Mapping[str, str] = {
    "published-rules": "hpcsimkit.reproductions.published_rules.reproduction:PublishedRules",
    "dras": "hpcsimkit.reproductions.dras.reproduction:DRAS",
}
"""Module and class of reproductions without a plan, by name."""

SYSTEMS = (*WRITTEN, *PAPERS)
"""Names of all reproductions."""


def reproduction_named(name: str) -> type[Reproduction]:
    """Return the reproduction of a system.

    Raises
    ------
    UsageError
        No reproduction has that name.

    Examples
    --------
    >>> reproduction_named("masked-pppo")
    Traceback (most recent call last):
    hpcsimkit.errors.UsageError: unknown system 'masked-pppo'; nearest: masked-ppo
    """
    if name not in SYSTEMS:
        raise UsageError(f"unknown system {name!r}{nearest(name, SYSTEMS)}")
    if name not in WRITTEN:
        from hpcsimkit.reproductions.plans.planned import reproduction_of

        return reproduction_of(PAPERS[name])
    module, _, attribute = WRITTEN[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
