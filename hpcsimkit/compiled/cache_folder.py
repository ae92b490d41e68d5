"""The folder that keeps compiled functions."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["CACHE"]


def _digest() -> str:
    """Return the first digits of the SHA-256 of all files of this package."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "hpcsimkit" / _digest()
"""Folder of the compiled functions, named by the content of all files of this package."""
