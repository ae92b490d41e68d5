"""What commands print, unless they are quiet."""

from __future__ import annotations

from contextvars import ContextVar
from os.path import relpath
from pathlib import Path

from hpcsimkit.io.printable import show

RESULTS = Path("results")
"""Folder of the results folders that nobody names."""

QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)
"""Whether the command prints only errors."""


def say(*parts: object) -> None:
    """Print what a command has to say, unless it is quiet."""
    if not QUIET.get():
        show(*parts)


def say_results(place: str | Path) -> None:
    """Print where results are."""
    say(f"results: {relpath(place)}")
