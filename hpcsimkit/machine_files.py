"""Machines from files: a CSV table with a row for each, or a TOML file with a table for each kind.

The columns of the table are ``MachineName`` and ``Total`` followed by a resource: ``TotalCPUs``,
``TotalGPUs``, ``TotalMemory``, or any other; ``Features``, if there is one, lists words separated by ``;``.
Memory stands in the unit of the logs, kB of 1000 bytes, or is written with its unit (``128 GB``), in all
rows or in none.

.. code-block:: toml

    [[machines]]
    count = 64
    name = "node"
    cpus = 32
    memory = "128 GB"

    [[machines]]
    count = 4
    name = "gpu"
    cpus = 64
    gpus = 4
    memory = "512 GB"
    features = ["a100"]
"""

from __future__ import annotations

import csv
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from hpcsimkit.errors import UsageError
from hpcsimkit.files import read_bytes
from hpcsimkit.machines import RESOURCES, Machines
from hpcsimkit.units import MEMORY_UNITS, memory_bytes

__all__ = ["read_machines"]

NAME, TOTAL, FEATURES = "MachineName", "Total", "Features"


def read_machines(path: str | os.PathLike[str]) -> Machines:
    """Read machines from a CSV table (``.csv``, ``.csv.gz``) or a TOML file (``.toml``).

    Raises
    ------
    UsageError
        Something in the file is not understood; the message names the line.
    WorkloadError
        The file cannot be read.
    """
    text = _text(path)
    return _from_toml(path, text) if Path(path).suffix == ".toml" else _from_csv(path, text)


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: a table of machines is needed, found no UTF-8 text") from None


# --- CSV -------------------------------------------------------------------------------------------------


def _from_csv(path: str | os.PathLike[str], text: str) -> Machines:
    lines = list(csv.reader(text.splitlines()))
    header = [cell.strip() for cell in lines[0]] if lines else []
    resources = _resources(path, header)
    names, amounts, features = [], [], []
    seen: dict[str, int] = {}
    units: dict[bool, int] = {}
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        where = f"{path}:{number}"
        if len(cells) != len(header):
            raise UsageError(f"{where}: {len(header)} values are needed, found {len(cells)}")
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        name = row[NAME]
        if not name or name in seen:
            found = f"it is listed already in line {seen[name]}" if name else "none is given"
            raise UsageError(f"{where}: machine {name!r} needs a name of its own; {found}")
        seen[name] = number
        names.append(name)
        amounts.append([_cell(row[column], key, where, units) for column, key in resources.items()])
        features.append([word.strip() for word in row.get(FEATURES, "").split(";") if word.strip()])
    if not names:
        raise UsageError(f"{path}: at least one machine is needed, found none")
    return Machines(names, list(resources.values()), amounts, features)


def _resources(path: str | os.PathLike[str], header: Sequence[str]) -> dict[str, str]:
    """Return which column holds which resource, in the usual order."""
    found = {column: column.removeprefix(TOTAL).lower() for column in header if column.startswith(TOTAL)}
    unknown = [column for column in header if column not in (NAME, FEATURES) and not found.get(column)]
    if NAME not in header or not found or unknown or len(set(header)) < len(header):
        raise UsageError(
            f"{path}:1: a header of {NAME}, TotalMemory, TotalCPUs, TotalGPUs (and {FEATURES}), each once, "
            f"is needed, found {', '.join(header) or 'nothing'}"
        )
    column_of = {resource: column for column, resource in found.items()}
    ranked = [resource for resource in dict.fromkeys((*RESOURCES, *column_of)) if resource in column_of]
    return {column_of[resource]: resource for resource in ranked}


def _cell(text: str, resource: str, where: str, units: dict[bool, int]) -> int:
    """Return an amount; `units` remembers in which line memory first had a unit, and had none."""
    if resource == "memory":
        with_unit = re.search("[A-Za-z]", text) is not None
        units.setdefault(with_unit, int(where.rpartition(":")[2]))
        if len(units) == 2:
            line = units[not with_unit]
            raise UsageError(
                f"{where}: mixed units: memory needs a unit in every line or in none; "
                f"{text!r} has {'one' if with_unit else 'none'}, line {line} {'none' if with_unit else 'one'}"
            )
        if with_unit:
            return _located(where, text)
    if not re.fullmatch(r"\d+", text):
        raise UsageError(f"{where}: {resource} need a whole number of at least 0, found {text!r}")
    return int(text) * (MEMORY_UNITS["kB"] if resource == "memory" else 1)


def _located(where: str, text: str) -> int:
    try:
        return memory_bytes(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


# --- TOML ------------------------------------------------------------------------------------------------


def _from_toml(path: str | os.PathLike[str], text: str) -> Machines:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    tables = content.get("machines")
    if set(content) != {"machines"} or not isinstance(tables, list) or not tables:
        raise UsageError(f"{path}: tables [[machines]] are needed, found {', '.join(content) or 'nothing'}")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "[[machines]]"]
    where = [f"{path}:{line}" for line in lines] if len(lines) == len(tables) else [str(path)] * len(tables)
    return reduce(Machines.__add__, map(_kind, tables, where))


def _kind(table: Mapping[str, Any], where: str) -> Machines:
    """Make the machines of one table."""
    values = dict(table)
    count, name = values.pop("count", 1), values.pop("name", "node")
    features = values.pop("features", [])
    words = isinstance(features, list) and all(isinstance(word, str) for word in features)
    if not isinstance(name, str) or not words:
        raise UsageError(
            f"{where}: name needs text and features a list of text, found {name!r} and {features!r}"
        )
    try:
        return Machines.of(count, name, features=features, **values)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
