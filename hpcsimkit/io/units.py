"""Amounts with units: memory in bytes, from any common notation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from operator import index
from typing import Any

from hpcsimkit.errors import UsageError

__all__ = [
    "MEMORY_UNITS",
    "MIG",
    "RESOURCES",
    "is_whole_number",
    "memory_bytes",
    "memory_text",
    "ranked_resources",
    "resource_amount",
    "resource_of",
    "total_of",
]

RESOURCES = ("cpus", "gpus", "memory")
"""The usual resources in the usual order; others follow in the order of their appearance."""

MIG = "mig:"
"""Beginning of the names of slices of GPUs (Multi-Instance GPU), which are no whole GPUs."""

SLICE = re.compile(r"(?:.*[^0-9a-z])?\d+g\.\d+gb.*")
"""Names of slices, such as ``1g.5gb`` and ``nvidia_a100_3g.20gb``."""

MEMORY_UNITS = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T", "P"), start=1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T", "P"), start=1)},
}
"""Bytes per unit: kB, MB, GB ... are powers of 1000, KiB, MiB, GiB ... powers of 1024."""

_BY_LOWER_CASE = {unit.lower(): size for unit, size in MEMORY_UNITS.items()}


def memory_bytes(text: str) -> int:
    """Return an amount of memory with a unit in bytes.

    Raises
    ------
    UsageError
        The unit is missing or unknown, or the amount is not a whole number of bytes.

    Examples
    --------
    >>> memory_bytes("128 GB"), memory_bytes("1.5 KiB")
    (128000000000, 1536)
    >>> memory_bytes("128")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found '128'
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)(?:\s*([A-Za-z]+))?\s*", str(text))
    if match is None:
        raise UsageError(f"memory needs a number and a unit, such as '128 GB', found {str(text)!r}")
    number, unit = match.groups(default="")
    if unit.lower() not in _BY_LOWER_CASE:
        what = f"unknown unit {unit!r}" if unit else f"{str(text)!r}"
        raise UsageError(f"memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found {what}")
    size = Decimal(number) * _BY_LOWER_CASE[unit.lower()]
    if size != int(size):
        raise UsageError(f"memory needs a whole number of bytes, found {str(text)!r}")
    return int(size)


def is_whole_number(text: str, most: int = 18) -> bool:
    """Return whether a text is a whole number without a sign, of at most some digits.

    Files are made by others: of thousands of digits, ``int`` raises an error, as of other digits than 0 to 9.

    >>> [is_whole_number(text) for text in ("007", "-7", "", "\u00b2", "9" * 5000)]
    [True, False, False, False, False]
    """
    return text.isdigit() and text.isascii() and len(text) <= most


def resource_of(kind: str, model: str = "") -> str:
    """Return the name of a generic resource of Slurm, with that of its model.

    GPUs of a model are a resource beside all GPUs; slices and shares of GPUs are not counted as GPUs.

    Parameters
    ----------
    kind : str
        Kind of the resource: ``gpu``, ``shard``, ``mps``.
    model : str
        Type of the resource, such as ``a100``. Default: none.

    Examples
    --------
    >>> resource_of("gpu"), resource_of("gpu", "A100"), resource_of("gpu", "nvidia_a100_1g.5gb")
    ('gpus', 'gpus:a100', 'mig:nvidia_a100_1g.5gb')
    >>> resource_of("shard")
    'shards'
    """
    model = model.lower()
    if kind != "gpu":
        return {"shard": "shards"}.get(kind, kind)
    if SLICE.fullmatch(model):
        return f"{MIG}{model}"
    return f"gpus:{model}" if model else "gpus"


def total_of(resource: str) -> str:
    """Return the resource that counts all models of a resource; an empty text for any other resource.

    >>> total_of("gpus:a100"), total_of("gpus"), total_of("mig:1g.5gb")
    ('gpus', '', '')
    """
    total, colon, _ = resource.partition(":")
    return total if colon and not resource.startswith(MIG) else ""


def ranked_resources(names: Iterable[str]) -> list[str]:
    """Return resources in the usual order; others follow in their order.

    >>> ranked_resources(["gpus:a100", "memory", "disk", "cpus", "gpus"])
    ['cpus', 'gpus', 'memory', 'gpus:a100', 'disk']
    """
    given = dict.fromkeys(names)
    return [
        *(name for name in RESOURCES if name in given),
        *(name for name in given if name not in RESOURCES),
    ]


def resource_amount(resource: str, value: Any) -> int:
    """Return the amount of a resource: memory is given with its unit, all else as a number.

    Raises
    ------
    UsageError
        The value is not a whole number of at least 0.

    Examples
    --------
    >>> resource_amount("memory", "1.5 TB"), resource_amount("gpus", 4)
    (1500000000000, 4)
    """
    if resource == "memory":
        return memory_bytes(str(value))
    with suppress(TypeError):
        if not isinstance(value, bool) and index(value) >= 0:
            return index(value)
    raise UsageError(f"{resource} need a whole number of at least 0, found {value!r}")


def memory_text(amount: float) -> str:
    """Return an amount of memory [bytes] in a human-readable unit.

    >>> memory_text(128_000_000_000), memory_text(1536), memory_text(0)
    ('128 GB', '1.536 kB', '0 B')
    """
    unit = next((unit for unit in ("PB", "TB", "GB", "MB", "kB") if amount >= MEMORY_UNITS[unit]), "B")
    return f"{amount / MEMORY_UNITS[unit]:.6g} {unit}"
