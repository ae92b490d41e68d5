"""Cost of loading the compiled simulator, and the folder that keeps it compiled."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

__all__ = ["CACHE", "announce", "least_jobs"]

WHEN_LOADED, WHEN_COMPILED, WHEN_NEW = 5_000, 50_000, 1_000_000
"""Numbers of jobs from which ``simulator="auto"`` considers the compiled simulator.

Its first run in a process takes 0.5 s more, and 9 s more if it has not been compiled before; the kernel
simulates 100 000 jobs per second.
"""


def _digest() -> str:
    """Return the first digits of the SHA-256 of all files of this package."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "hpcsimkit" / _digest()
"""Folder of the compiled functions, named by the content of all files of this package."""


def _is_compiled() -> bool:
    return any(CACHE.rglob("*.nbi"))


def least_jobs() -> int:
    """Return the number of jobs from which ``simulator="auto"`` considers the compiled simulator."""
    if "hpcsimkit.compiled.loop" in sys.modules:
        return WHEN_LOADED
    return WHEN_COMPILED if _is_compiled() else WHEN_NEW


def announce() -> None:
    """Print a line on a terminal if the next run compiles the simulator."""
    if sys.stderr.isatty() and not _is_compiled():
        print("compiling the simulator, once for this version ...", file=sys.stderr)
