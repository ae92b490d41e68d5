"""Machine files: a CSV table with one row per machine, or a TOML file with one table per machine type.

The output of Slurm's ``scontrol show node`` is read, too; see :mod:`~hpcsimkit.cluster.scontrol`.

The columns of the CSV table are ``MachineName`` and, for each resource, ``Total`` followed by its name:
``TotalCPUs``, ``TotalGPUs``, ``TotalMemory``, or any other, also of a model, ``TotalGPUs:a100``, beside the
total of all models. An optional column ``Features`` lists words
separated by ``;``. Memory is in the unit of the logs, kB of 1000 bytes, or has an explicit unit (``128 GB``),
in either all rows or none.

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
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any, Protocol, Self, TypeVar

from numpy.typing import ArrayLike, NDArray

from hpcsimkit.cluster.scontrol import NODE, is_scontrol, nodes_of_scontrol
from hpcsimkit.errors import UsageError, close_words
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.documents import csv_text, toml_values
from hpcsimkit.io.files import read_utf_8, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.known_formats import named_format
from hpcsimkit.io.units import MEMORY_UNITS, RESOURCES, memory_bytes, ranked_resources, total_of

__all__ = [
    "MachineTable",
    "machines_of",
    "machines_of_scontrol",
    "machines_of_tables",
    "machines_text",
    "read_machines",
    "write_machines",
]

START = 1 << 16
"""Number of characters from which a foreign format is recognised."""

NAME, TOTAL, FEATURES = "MachineName", "Total", "Features"

SPELLED = {"cpus": "CPUs", "gpus": "GPUs", "memory": "Memory"}
"""Spelling of the usual resources in column names."""


class MachineTable(Protocol):
    """The part of the `Machines` interface that readers and writers use."""

    def __init__(
        self,
        names: Sequence[str],
        resources: Sequence[str],
        amounts: ArrayLike,
        features: Sequence[Collection[str]] = (),
        *,
        notes: Mapping[str, int] = ...,
    ) -> None: ...

    @property
    def names(self) -> Sequence[str]:
        """Names of the machines."""
        ...

    @property
    def resources(self) -> Sequence[str]:
        """Names of the resources."""
        ...

    @property
    def features(self) -> Sequence[Collection[str]]:
        """Features of each machine."""
        ...

    @property
    def capacity(self) -> NDArray[Any]:
        """Amounts of all resources, int64, shape (machines, resources)."""
        ...

    @classmethod
    def of(cls, count: int, name: str = ..., *, features: Collection[str] = ..., **amounts: Any) -> Self:
        """Return identical machines."""
        ...

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return all machines of several clusters."""
        ...


MachinesT = TypeVar("MachinesT", bound=MachineTable)


def read_machines(path: str | os.PathLike[str], kind: type[MachinesT]) -> MachinesT:
    """Read machines from a CSV table, a TOML file (``.toml``), or the output of ``scontrol show node``.

    Parameters
    ----------
    path : path
        Path of the file.
    kind : type
        Class of the machines.

    Raises
    ------
    UsageError
        The file is invalid; the message names the line.
    WorkloadError
        The file cannot be read.
    """
    text = read_utf_8(path, Format.MACHINES, "a table of machines is needed")
    if Path(path).suffix == ".toml":
        return _from_toml(path, text, kind)
    return machines_of_scontrol(path, text, kind) if is_scontrol(text, NODE) else _from_csv(path, text, kind)


def machines_of_scontrol(path: str | os.PathLike[str], text: str, kind: type[MachinesT]) -> MachinesT:
    """Return the machines in the output of ``scontrol show node``.

    Raises
    ------
    UsageError
        No node can be used; the message names the line of the first.
    """
    refuse_beyond("machines", text.count(f"{NODE}="), path)
    nodes, notes = nodes_of_scontrol(text, path)
    devices = sorted({name for node in nodes for name in node.devices})
    resources = ranked_resources([*RESOURCES, *devices])
    amounts = [[node.amount(name) for name in resources] for node in nodes]
    try:
        return kind(
            [node.name for node in nodes], resources, amounts, [node.features for node in nodes], notes=notes
        )
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


# --- CSV -------------------------------------------------------------------------------------------------


def _from_csv(path: str | os.PathLike[str], text: str, kind: type[MachinesT]) -> MachinesT:
    refuse_beyond("machines", text.count("\n") - 1, path)
    refuse_beyond("cells", text.count(","), path)
    try:
        lines = list(csv.reader(text.splitlines()))
    except csv.Error as error:
        raise UsageError(f"{path}: a table of machines is needed, found no CSV: {error}") from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    resources = _resources(path, header, text)
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
        return kind(names, list(resources.values()), amounts, features)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _resources(path: str | os.PathLike[str], header: Sequence[str], text: str) -> dict[str, str]:
    """Return the resource of each column, in the usual order of resources."""
    found = {column: column.removeprefix(TOTAL).lower() for column in header if column.startswith(TOTAL)}
    unknown = [column for column in header if column not in (NAME, FEATURES) and not found.get(column)]
    once = len(set(header)) == len(header) and len(set(found.values())) == len(found)
    if NAME not in header and (named := named_format(str(path), text[:START].encode())):
        raise UsageError(f"{path}: {named.refusal}")
    if NAME not in header or not found or unknown or not once:
        raise UsageError(
            f"{path}:1: a header of {NAME}, TotalMemory, TotalCPUs, TotalGPUs (and {FEATURES}), each once, "
            f"is needed, found {', '.join(header) or 'nothing'}"
        )
    _check_spelling(f"{path}:1", found.values())
    column_of = {resource: column for column, resource in found.items()}
    return {column_of[resource]: resource for resource in ranked_resources(column_of)}


def _cell(text: str, resource: str, where: str, units: dict[bool, int]) -> int:
    """Return an amount; `units` stores the first lines in which memory had a unit and had none."""
    refuse_beyond("digits", len(text), where)
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
    """Raise an error for a probable misspelling of a usual name; other names are custom resources."""
    usual = (*RESOURCES, "count", "name", "features")
    for name in names:
        close = close_words(name.lower(), usual, cutoff=0.8)
        if close and name not in usual and not total_of(name):
            raise UsageError(f"{where}: unknown name {name!r}; did you mean {close[0]!r}?")


def _located(where: str, text: str) -> int:
    try:
        return memory_bytes(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


# --- TOML ------------------------------------------------------------------------------------------------


def _from_toml(path: str | os.PathLike[str], text: str, kind: type[MachinesT]) -> MachinesT:
    try:
        content = toml_values(text, path)
    except TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    tables = content.get("machines")
    if set(content) != {"machines"} or not isinstance(tables, list) or not tables:
        raise UsageError(f"{path}: tables [[machines]] are needed, found {', '.join(content) or 'nothing'}")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "[[machines]]"]
    where = [f"{path}:{line}" for line in lines] if len(lines) == len(tables) else [str(path)] * len(tables)
    _check_count(tables, path)
    return kind.joined([_of_table(table, place, kind) for table, place in zip(tables, where, strict=True)])


def _of_table(table: Mapping[str, Any], where: str, kind: type[MachinesT]) -> MachinesT:
    """Return the machines of one table; error messages begin with its location."""
    _check_spelling(where, table)
    try:
        return machines_of(table, kind)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def machines_of_tables(tables: Sequence[Mapping[str, Any]], kind: type[MachinesT]) -> MachinesT:
    """Return the machines of all tables ``[[machines]]``.

    Raises
    ------
    UsageError
        A table is invalid.
    WorkloadError
        There are more machines than :mod:`hpcsimkit.io.budget` allows.
    """
    _check_count(tables, "machines")
    return kind.joined([machines_of(table, kind) for table in tables])


def _check_count(tables: Sequence[Mapping[str, Any]], where: object) -> None:
    """Raise an error for too many machines before any is created."""
    counts = (table.get("count", 1) for table in tables)
    refuse_beyond("machines", sum(count for count in counts if isinstance(count, int)), where)


def machines_of(table: Mapping[str, Any], kind: type[MachinesT]) -> MachinesT:
    """Return the machines of one table ``[[machines]]``.

    Raises
    ------
    UsageError
        The table is invalid.
    """
    _check_count([table], "machines")
    values = dict(table)
    count, name = values.pop("count", 1), values.pop("name", "node")
    features = values.pop("features", [])
    words = isinstance(features, list) and all(isinstance(word, str) for word in features)
    if not isinstance(name, str) or not words:
        raise UsageError(f"name needs text and features a list of text, found {name!r} and {features!r}")
    if "cls" in values:  # it would collide with the class argument
        raise UsageError("'cls' cannot be the name of a resource")
    return kind.of(count, name, features=features, **values)


# --- writing ---------------------------------------------------------------------------------------------


def write_machines(machines: MachineTable, path: str | os.PathLike[str]) -> None:
    """Write machines as a CSV table; :meth:`Machines.read` restores equal machines.

    Raises
    ------
    WorkloadError
        The file cannot be written.
    """
    write_bytes(path, machines_text(machines).encode())


def machines_text(machines: MachineTable) -> str:
    r"""Return the CSV table of machines, memory with its unit.

    >>> from hpcsimkit import Machines
    >>> print(machines_text(Machines.of(2, cpus=32, memory="1.5 TB", features=["a100", "big"])), end="")
    MachineName,TotalCPUs,TotalMemory,Features
    node1,32,1500 GB,a100;big
    node2,32,1500 GB,a100;big
    """
    features = any(machines.features)
    columns = [f"{TOTAL}{_spelled(name)}" for name in machines.resources]
    rows = []
    for name, amounts, words in zip(
        machines.names, machines.capacity.tolist(), machines.features, strict=True
    ):
        cells = [
            _exact_memory(amount) if resource == "memory" else amount
            for resource, amount in zip(machines.resources, amounts, strict=True)
        ]
        rows.append([name, *cells, *[";".join(sorted(words))] * features])
    return csv_text([NAME, *columns, *[FEATURES] * features], rows)


def _spelled(resource: str) -> str:
    total, colon, model = resource.partition(":")
    return f"{SPELLED.get(total, total)}{colon}{model}"


def _exact_memory(amount: int) -> str:
    """Return an amount of memory in the largest unit that gives a whole number."""
    sizes = {unit: size for unit, size in MEMORY_UNITS.items() if amount % size == 0} if amount else {"B": 1}
    unit = max(sizes, key=lambda unit: sizes[unit])
    return f"{amount // sizes[unit]} {unit}"
