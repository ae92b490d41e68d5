"""Facts that the owner of the project fills in; see .release/project.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

FACTS = Path(__file__).resolve().parents[2] / ".release" / "project.toml"
PLACEHOLDER = "OWNER"


@cache
def repository() -> str:
    """Return the address of the repository; empty until the owner has filled it in."""
    address = tomllib.loads(FACTS.read_text(encoding="utf-8"))["repository"]
    return "" if PLACEHOLDER in address else str(address)
