"""Amounts with units: memory in bytes, whatever way it is written."""

from __future__ import annotations

import re
from decimal import Decimal

from hpcsimkit.errors import UsageError

__all__ = ["MEMORY_UNITS", "memory_bytes", "memory_text"]

MEMORY_UNITS = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T", "P"), start=1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T", "P"), start=1)},
}
"""Bytes of each unit: kB, MB, GB ... count in thousands, KiB, MiB, GiB ... in 1024s."""

_BY_LOWER_CASE = {unit.lower(): size for unit, size in MEMORY_UNITS.items()}


def memory_bytes(text: str) -> int:
    """Return how many bytes an amount of memory with a unit is.

    Raises
    ------
    UsageError
        The unit is missing or unknown, or it is no whole number of bytes.

    Examples
    --------
    >>> memory_bytes("128 GB"), memory_bytes("1.5 KiB")
    (128000000000, 1536)
    >>> memory_bytes("128")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found '128'
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    if match is None:
        raise UsageError(f"memory needs a number and a unit, such as '128 GB', found {str(text)!r}")
    number, unit = match.groups()
    if unit.lower() not in _BY_LOWER_CASE:
        what = f"unknown unit {unit!r}" if unit else f"{str(text)!r}"
        raise UsageError(f"memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found {what}")
    size = Decimal(number) * _BY_LOWER_CASE[unit.lower()]
    if size != int(size):
        raise UsageError(f"memory needs a whole number of bytes, found {str(text)!r}")
    return int(size)


def memory_text(amount: float) -> str:
    """Return an amount of memory [bytes] for people.

    >>> memory_text(128_000_000_000), memory_text(1536), memory_text(0)
    ('128 GB', '1.54 kB', '0 B')
    """
    for unit in ("PB", "TB", "GB", "MB", "kB"):
        if amount >= MEMORY_UNITS[unit]:
            return f"{amount / MEMORY_UNITS[unit]:.3g} {unit}"
    return f"{amount:g} B"
