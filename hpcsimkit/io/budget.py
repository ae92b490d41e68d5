"""Limits of input: maximum sizes of files, logs, numbers, clusters and samples.

A small file or number can expand to gigabytes (a compressed file of zeros, a machine file with a count of
10^9, a billion sampled sequences). Readers check these limits while they read, tables of settings when they
are made, and reject larger input with a one-line message that says how to
raise the limit: ``--limit NAME=NUMBER`` on the command line, or the environment variable ``HPCSIMKIT_LIMITS``
(``"jobs=50000000, bytes=8 GiB"``), which worker processes inherit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.units import memory_bytes

__all__ = [
    "LIMITS",
    "VARIABLE",
    "Limit",
    "beyond",
    "limit_of",
    "raise_limits",
    "refuse_beyond",
    "restored_limits",
]

VARIABLE = "HPCSIMKIT_LIMITS"
"""Environment variable that changes limits."""


class Limit(NamedTuple):
    """A limit of input."""

    default: int
    counted: str


LIMITS = MappingProxyType(
    {
        "bytes": Limit(2**30, "uncompressed bytes in a file"),
        "line": Limit(2**20, "bytes in a line"),
        "jobs": Limit(10**7, "jobs or lines"),
        "cells": Limit(5 * 10**7, "cells in a table"),
        "digits": Limit(1000, "digits in a whole number"),
        "nesting": Limit(50, "levels of nested values"),
        "toml": Limit(2**20, "bytes in a TOML file"),
        "machines": Limit(10**6, "machines"),
        "sequences": Limit(10**4, "sampled sequences"),
    }
)
"""Limits by name."""


def limit_of(name: str) -> int:
    """Return a limit: its default, or its value in ``HPCSIMKIT_LIMITS``.

    Raises
    ------
    UsageError
        ``HPCSIMKIT_LIMITS`` is invalid.

    Examples
    --------
    >>> limit_of("machines")
    1000000
    """
    return _changed(os.environ.get(VARIABLE, "")).get(name, LIMITS[name].default)


def refuse_beyond(name: str, found: int, where: object) -> None:
    """Raise an error if a number exceeds its limit.

    Parameters
    ----------
    name : str
        Name of the limit, one of `LIMITS`.
    found : int
        Number to check.
    where : object
        Location of the number, with which the message begins: a file, a file with a line, a key.

    Raises
    ------
    WorkloadError
        The number exceeds the limit.

    Examples
    --------
    >>> refuse_beyond("machines", 10**9, "cluster.toml:2")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.WorkloadError: cluster.toml:2: at most 1000000 machines are accepted, found 1000000000; \
if they are meant: --limit machines=1000000000
    """
    if found > limit_of(name):
        raise beyond(name, where, found)


def beyond(name: str, where: object, found: int | None = None) -> WorkloadError:
    """Return the error of an exceeded limit; `found` is None if reading stopped before it was known."""
    limit = limit_of(name)
    seen = "more" if found is None or found.bit_length() > 200 else str(found)
    wanted = str(4 * limit) if seen == "more" else seen
    return WorkloadError(
        f"{where}: at most {limit} {LIMITS[name].counted} are accepted, found {seen}; "
        f"if they are meant: --limit {name}={wanted}"
    )


# --- changes of limits -----------------------------------------------------------------------------------


def raise_limits(texts: Iterable[str]) -> None:
    """Change limits for this process and its child processes.

    Parameters
    ----------
    texts : iterable of str
        Assignments ``NAME=NUMBER``; numbers of bytes may have a unit, ``bytes=8GiB``.

    Raises
    ------
    UsageError
        An assignment is invalid.
    """
    former = os.environ.get(VARIABLE, "")
    text = ", ".join(filter(None, (former, *texts)))
    _changed(text)
    if text:
        os.environ[VARIABLE] = text


@contextmanager
def restored_limits() -> Iterator[None]:
    """Restore all limits at the end of a block."""
    former = os.environ.get(VARIABLE)
    try:
        yield
    finally:
        if former is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = former


@lru_cache(maxsize=16)
def _changed(text: str) -> dict[str, int]:
    """Return the limits set by a text; for repeated names the last number counts."""
    entries = (entry.partition("=") for entry in text.split(",") if entry.strip())
    return {_known(name.strip()): _number(name.strip(), number.strip()) for name, _, number in entries}


def _known(name: str) -> str:
    if name not in LIMITS:
        raise UsageError(f"--limit needs NAME=NUMBER with a name of {', '.join(LIMITS)}, found {name!r}")
    return name


def _number(name: str, text: str) -> int:
    if re.fullmatch(r"[0-9][0-9_]{0,17}", text) and text.strip("0_"):
        return int(text.replace("_", ""))
    if name in ("bytes", "line", "toml"):
        return memory_bytes(text)
    raise UsageError(f"--limit {name} needs a whole number of at least 1, found {text!r}")
