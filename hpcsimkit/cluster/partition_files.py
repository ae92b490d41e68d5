"""Partition files: a TOML file with one table for each partition, or the output of Slurm.

The output is that of ``scontrol show partition``, see :mod:`~hpcsimkit.cluster.scontrol`. In a TOML file, the
keys are the parameters of :class:`~hpcsimkit.cluster.partitions.Partition`. With machines, ``machines`` lists
their names; ``*`` and ``?`` in a name match any characters.

.. code-block:: toml

    [[partitions]]
    name = "cpu"
    machines = ["node*"]
    max_time = 172800

    [[partitions]]
    name = "gpu"
    machines = ["gpu*"]
    priority = 1
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from typing import Any

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.cluster.scontrol import is_scontrol, tables_of_scontrol
from hpcsimkit.errors import UsageError
from hpcsimkit.io.documents import toml_tables
from hpcsimkit.io.files import read_utf_8
from hpcsimkit.io.formats import Format

__all__ = ["partitions_of_tables", "read_partitions"]

KEYS = tuple(field.name for field in fields(Partition))


def read_partitions(
    path: str | os.PathLike[str], machines: Machines | None = None, column: str = "partition"
) -> Partitions:
    """Read partitions from a TOML file, or from the output of ``scontrol show partition``.

    Parameters
    ----------
    path : path
        Path of the file.
    machines : Machines, optional
        Machines of the cluster; by default the partitions have homogeneous nodes.
    column : str
        Column of the log with the partitions of the jobs. Default: ``"partition"``.

    Raises
    ------
    UsageError
        The file is invalid; the message names the line of the partition.
    WorkloadError
        The file cannot be read.
    """
    text = read_utf_8(path, Format.PARTITIONS, "tables of partitions are needed")
    if is_scontrol(text):
        found = tables_of_scontrol(text, path, machines=None if machines is None else machines.names)
        read = _partitions(found.tables, found.places, machines, column, f"{path}: ")
        return replace(read, notes=found.notes, closed=found.closed)
    return _partitions(*toml_tables(text, path, "partitions"), machines, column, f"{path}: ")


def partitions_of_tables(
    tables: Sequence[Mapping[str, Any]], machines: Machines | None = None, column: str = "partition"
) -> Partitions:
    """Return the partitions of tables ``[[partitions]]``.

    Raises
    ------
    UsageError
        A table is invalid.

    Examples
    --------
    >>> partitions_of_tables([{"name": "cpu", "nodes": 4}, {"name": "gpu", "nodes": 2, "priority": 1}])
    Partitions(cpu: Nodes(count=4), gpu: Nodes(count=2))
    """
    return _partitions(tables, [""] * len(tables), machines, column, "")


def _partitions(
    tables: Sequence[Mapping[str, Any]],
    where: Sequence[str],
    machines: Machines | None,
    column: str,
    source: str,
) -> Partitions:
    parts: list[Partition] = []
    defined: dict[str, str] = {}
    for table, place in zip(tables, where, strict=True):
        try:
            part = _partition(table, machines)
            Partitions([part], machines)  # its nodes or machines exist
            if part.name in defined and place != source:
                first = defined[part.name].removesuffix(": ")
                raise UsageError(f"partition {part.name!r} is defined twice, first in {first}")
        except UsageError as error:
            raise UsageError(f"{place}{error}") from None
        defined.setdefault(part.name, place)
        parts.append(part)
    try:
        return Partitions(parts, machines, column)
    except UsageError as error:
        raise UsageError(f"{source}{error}") from None


def _partition(table: Mapping[str, Any], machines: Machines | None) -> Partition:
    """Return the partition of one table, with all machines that its names match."""
    unknown = [key for key in table if key not in KEYS]
    if unknown:
        raise UsageError(f"unknown key {unknown[0]!r} of a partition; known are {', '.join(KEYS)}")
    if "name" not in table:
        raise UsageError("a partition needs a name, found none")
    part = Partition(**table)
    if machines is None or part.machines is None:
        return part
    known = set(machines.names)
    names: list[str] = []
    for name in part.machines:
        matching = [name] if name in known else [each for each in machines.names if fnmatchcase(each, name)]
        names += matching or [name]
    return Partition(**{**table, "machines": names})
