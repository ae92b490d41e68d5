"""Hash of the code of the kit."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from hpcsimkit import _version

__all__ = ["hash_of_kit"]

ROOT = Path(_version.__file__).parent
"""Folder of the kit."""


@cache
def hash_of_kit() -> str:
    """Return the hash of the code and the templates of hpcsimkit, the same if editable or installed."""
    total = hashlib.sha256()
    for pattern in ("*.py", "*.jinja", "*.toml", "*.js"):
        for folder in (ROOT, *(path for path in ROOT.iterdir() if path.is_dir())):  # some are links
            files = folder.rglob(pattern) if folder != ROOT else folder.glob(pattern)
            for file in sorted(files):
                total.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return total.hexdigest()[:16]
