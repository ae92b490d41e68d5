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
import io
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any

from hpcsimkit.errors import UsageError
from hpcsimkit.files import read_bytes, write_bytes
from hpcsimkit.machines import RESOURCES, Machines
from hpcsimkit.units import MEMORY_UNITS, memory_bytes

__all__ = ["machines_of", "machines_text", "read_machines", "write_machines"]

NAME, TOTAL, FEATURES = "MachineName", "Total", "Features"

SPELLED = {"cpus": "CPUs", "gpus": "GPUs", "memory": "Memory"}
"""How the usual resources stand in the names of columns."""


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
    try:
        lines = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise UsageError(f"{path}: a table of machines is needed, found no CSV: {error}") from None
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
    try:
        return Machines(names, list(resources.values()), amounts, features)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _resources(path: str | os.PathLike[str], header: Sequence[str]) -> dict[str, str]:
    """Return which column holds which resource, in the usual order."""
    found = {column: column.removeprefix(TOTAL).lower() for column in header if column.startswith(TOTAL)}
    unknown = [column for column in header if column not in (NAME, FEATURES) and not found.get(column)]
    once = len(set(header)) == len(header) and len(set(found.values())) == len(found)
    if NAME not in header or not found or unknown or not once:
        raise UsageError(
            f"{path}:1: a header of {NAME}, TotalMemory, TotalCPUs, TotalGPUs (and {FEATURES}), each once, "
            f"is needed, found {', '.join(header) or 'nothing'}"
        )
    _check_spelling(f"{path}:1", found.values())
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


def _check_spelling(where: str, names: Iterable[str]) -> None:
    """See that what looks like a usual name is that; any other is a resource of its own."""
    usual = (*RESOURCES, "count", "name", "features")
    for name in names:
        close = get_close_matches(name.lower(), usual, n=1, cutoff=0.8)
        if close and name not in usual:
            raise UsageError(f"{where}: unknown name {name!r}; did you mean {close[0]!r}?")


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
    """Make the machines of one table; what goes wrong is said to be there."""
    _check_spelling(where, table)
    try:
        return machines_of(table)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def machines_of(table: Mapping[str, Any]) -> Machines:
    """Return the machines of one table ``[[machines]]``.

    Raises
    ------
    UsageError
        Something in it is not understood.

    Examples
    --------
    >>> machines_of({"count": 4, "name": "gpu", "cpus": 64, "gpus": 4, "memory": "512 GB"})
    Machines(4: 256 cpus, 16 gpus, 2.048 TB memory)
    """
    values = dict(table)
    count, name = values.pop("count", 1), values.pop("name", "node")
    features = values.pop("features", [])
    words = isinstance(features, list) and all(isinstance(word, str) for word in features)
    if not isinstance(name, str) or not words:
        raise UsageError(f"name needs text and features a list of text, found {name!r} and {features!r}")
    if "cls" in values:  # which Python takes for the class
        raise UsageError("'cls' cannot be the name of a resource")
    return Machines.of(count, name, features=features, **values)


# --- writing ---------------------------------------------------------------------------------------------


def write_machines(machines: Machines, path: str | os.PathLike[str]) -> None:
    """Write machines as a CSV table; :meth:`Machines.read` gives equal machines back.

    Raises
    ------
    WorkloadError
        The file cannot be written.
    """
    write_bytes(path, machines_text(machines).encode())


def machines_text(machines: Machines) -> str:
    r"""Return the CSV table of machines, memory with its unit.

    >>> print(machines_text(Machines.of(2, cpus=32, memory="1.5 TB", features=["a100", "big"])), end="")
    MachineName,TotalCPUs,TotalMemory,Features
    node1,32,1500 GB,a100;big
    node2,32,1500 GB,a100;big
    """
    features = any(machines.features)
    columns = [f"{TOTAL}{SPELLED.get(name, name)}" for name in machines.resources]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([NAME, *columns, *[FEATURES] * features])
    for name, amounts, words in zip(
        machines.names, machines.capacity.tolist(), machines.features, strict=True
    ):
        cells = [
            _exact_memory(amount) if resource == "memory" else amount
            for resource, amount in zip(machines.resources, amounts, strict=True)
        ]
        writer.writerow([name, *cells, *[";".join(sorted(words))] * features])
    return text.getvalue()


def _exact_memory(amount: int) -> str:
    """Return an amount of memory in the largest unit of which it is a whole number."""
    sizes = {unit: size for unit, size in MEMORY_UNITS.items() if amount % size == 0} if amount else {"B": 1}
    unit = max(sizes, key=lambda unit: sizes[unit])
    return f"{amount // sizes[unit]} {unit}"
