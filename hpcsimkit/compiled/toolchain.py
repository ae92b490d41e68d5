"""The toolchain on which compiled functions depend besides their source: Python, numba and the processor."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata
from itertools import takewhile
from pathlib import Path

STOCK = "HPCSIMKIT_STOCK_NUMBA"
"""Environment variable that leaves numba's compiler as it is, unless it is empty or 0."""

TESTED = ("0.68",)
"""Minor versions of numba with which :mod:`~hpcsimkit.compiled.lowering` has been tested."""

OF_A_PROCESSOR = ("model name", "flags", "Features", "CPU")
"""Beginnings of the lines of ``/proc/cpuinfo`` that tell apart processors with other instructions."""


@cache
def numba_version() -> str:
    """Return the version of numba without importing it; an empty text if it is not installed."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return ""


def is_tested() -> bool:
    """Return whether the private interfaces of numba are known, and may be used."""
    forced = os.environ.get(STOCK, "0") not in ("", "0")
    return not forced and ".".join(numba_version().split(".")[:2]) in TESTED


def signs() -> tuple[str, ...]:
    """Return texts that differ where functions compiled in one place cannot be loaded in the other."""
    return (
        platform.python_implementation(),
        platform.python_version(),
        numba_version(),
        "tested" if is_tested() else "stock",
        platform.machine(),
        *_processor(),
    )


def _processor() -> list[str]:
    """Return the instruction set of the first processor: the nodes of a cluster may differ in it."""
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return [line for line in takewhile(str.strip, lines) if line.startswith(OF_A_PROCESSOR)]
    except OSError:  # other systems
        return []
