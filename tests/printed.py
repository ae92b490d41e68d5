"""What the documentation says about the age of the figures that it prints, and which code decides them.

A comment stands before a printed table, or at the end of a page whose examples take minutes or hours::

    % printed by python -m tests.tables headroom, code 0123456789ab

It has the command that prints the figures, and a digest of the code that decided them when they were printed:
``unknown`` where they are older than this record. A change of comments and docstrings changes no digest.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["UNKNOWN", "Stamp", "code_of", "stamps", "table_after", "without_words"]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

UNKNOWN = "unknown"
STAMP = re.compile(r"^% printed by (.+), code (unknown|[0-9a-f]{12})$", re.MULTILINE)
TABLE = re.compile(r"\n*((?:^\|.*\n)+)", re.MULTILINE)

SIMULATION = ("cluster", "jobs", "kernel", "policies", "results", "workloads")
"""Packages that decide schedules and metrics; the compiled simulator equals the kernel."""

TRAINING = (*SIMULATION, "agents", "envs")
"""Packages that decide what agents learn, too."""

OF_TRAINING = ("tutorials", "results", "agents")
"""Folders of the documentation with figures of agents."""


class Stamp(NamedTuple):
    """A comment on printed figures: its page and place in the text, the command, and the digest of the code."""

    page: Path
    place: int
    end: int
    command: str
    code: str

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages of hpcsimkit that decide the figures."""
        return TRAINING if self.page.parent.name in OF_TRAINING else SIMULATION

    @property
    def is_older(self) -> bool:
        """Whether the figures are older than the code that decides them."""
        return self.code != code_of(self.packages)

    @property
    def renewed(self) -> str:
        """The comment for figures that the present code has printed."""
        return f"% printed by {self.command}, code {code_of(self.packages)}"


def stamps(page: Path) -> Iterator[Stamp]:
    """Yield the comments of a page in their order."""
    for found in STAMP.finditer(page.read_text(encoding="utf-8")):
        yield Stamp(page, found.start(), found.end(), found[1], found[2])


def table_after(text: str, place: int) -> tuple[int, int]:
    """Return the limits of the table that follows a place of a text after blank lines; equal if there is none."""
    found = TABLE.match(text, place)
    return found.span(1) if found else (place, place)


@cache
def code_of(packages: tuple[str, ...], root: Path = ROOT / "hpcsimkit") -> str:
    """Return the digest of the code of packages."""
    total = hashlib.sha256()
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            total.update(file.relative_to(root).as_posix().encode())
            total.update(without_words(file.read_text(encoding="utf-8")).encode())
    return total.hexdigest()[:12]


def without_words(source: str) -> str:
    """Return what a module does: its code without comments, docstrings and layout.

    >>> without_words('def f():\\n    "Words."\\n    return 1  # more') == without_words("def f(): return (1)")
    True
    >>> without_words("def f(): return 1") == without_words("def f(): return 2")
    False
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [each for each in body if not _is_text(each)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
