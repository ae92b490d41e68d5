"""Papers as data: the folders of this package with a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PAPERS: Mapping[str, Path] = {
    plan.parent.name.replace("_", "-"): plan.parent
    for plan in sorted(Path(__file__).parent.glob("*/plan.toml"))
}
"""Folders by name of the system.

:meta hide-value:
"""

SYSTEMS = tuple(PAPERS)
"""Names of all reproductions."""
