"""Compilation of functions with numba, kept on disk for later processes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.core.config

__all__ = ["machine_code"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def machine_code(function: FunctionT) -> FunctionT:
    """Return a function that is compiled when it is first called, or read from the cache on disk.

    Numba renews a function's entry when its own file changes, but not when a function that it calls changes
    in another file. The cache is therefore a folder named by the content of all files of this package. If it
    cannot be written, each process compiles anew.
    """
    config: Any = numba.core.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(CACHE)
    try:
        compiled: Any = numba.njit(cache=True)(function)
    except (OSError, RuntimeError):
        compiled = numba.njit(function)
    finally:
        config.CACHE_DIR = before
    return cast(FunctionT, compiled)


def _digest() -> str:
    """Return the first digits of the SHA-256 of all files of this package."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "hpcsimkit" / _digest()
"""Folder of the compiled functions."""
