"""Job tables: workloads with resource requests as CSV files.

``JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit`` are the columns of the logs of Kansas
State University's cluster Beocat, as published at github.com/shutchison/HPC_Scheduling_with_RL. The further
columns of :func:`read_job_table` are an extension of hpcsimkit, so that workloads from other sources can also
be written as job tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.documents import csv_text
from hpcsimkit.io.files import write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.units import MEMORY_UNITS, memory_bytes
from hpcsimkit.jobs.columns import AMOUNT_LIMIT, LOG_COLUMNS, Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import duration, whole
from hpcsimkit.workloads.readers.records import read_records
from hpcsimkit.workloads.readers.sacct_cells import condition
from hpcsimkit.workloads.readers.sieve import Sieve
from hpcsimkit.workloads.readers.tables import Table, labelled, shown

__all__ = ["JOB_TABLE_COLUMNS", "read_job_table", "write_job_table"]

JOB_TABLE_COLUMNS = ("JobName", "ReqMem", "ReqCPUs", "ReqGPUs", "ReqDuration", "ActualDuration", "Submit")
"""Columns that every written job table has."""

NEEDED = ("ReqCPUs", "ActualDuration", "Submit")
RESOURCES = ("cpus", "gpus", "memory")
FURTHER_COLUMNS = {
    "".join(word.capitalize() for word in name.split("_")): name
    for name in ("nodes", "spread", "exclusive", "constraint", "kind", *LOG_COLUMNS, "qos")
    if name not in ("preceding", "think_time")  # job numbers may change when names take their place
}
"""Optional columns and the corresponding columns of the workload."""

PREFIX = "JobName"
"""Header key of the prefix of job numbers in job names."""


# --- reading -------------------------------------------------------------------------------------------


def read_job_table(
    path: str | os.PathLike[str], *, strict: bool = False, memory_unit: str = "kB"
) -> Workload:
    """Read a job table, plain or gzip.

    The columns may be in any order; ``ReqCPUs, ActualDuration, Submit`` are required.

    ==================  =============================================================================
    ``JobName``         any text; ``<word><number>`` gives the job number, see below
    ``ReqCPUs``         number of CPUs, an integer
    ``ReqGPUs``         number of GPUs, an integer; 0 without this column
    ``ReqMem``          memory, all cells with a unit (``128 GB``, ``1.5 GiB``) or none (`memory_unit`)
    ``ReqDuration``     requested time, a duration; if empty or 0, the run time is used
    ``ActualDuration``  run time, a duration
    ``Submit``          seconds of the log's clock; Unix time in real logs
    ``Nodes``           number of different machines, each with these amounts; 1 without this column
    ``Spread``          1 for a pooled request, with the amounts as totals; else 0
    ``Exclusive``       1 for whole machines; else 0
    ``Constraint``      required features of the machines, joined by ``&`` or ``|``; may be empty; with
                        counts (``a*2&b*4``), features of some of the machines
    ``Kind``            job type: an integer, with or without a name (``0=dgemm``); may be empty
    ``User`` ...        other fields of SWF, names or integers, may be empty: ``User``, ``Group``,
                        ``Executable``, ``Queue``, ``Partition``, ``Status``,
                        ``RecordedWaitTime``, ``RequestedMemory``, ``UsedMemory``, ``Qos``
    ==================  =============================================================================

    - A duration is a number of seconds, ``MM:SS``, ``HH:MM:SS`` or ``D-HH:MM:SS``, see
      :func:`hpcsimkit.workloads.readers.cells.duration`.
    - If all job names consist of the same word and a different number (``job261221``), these numbers are the
      job numbers; otherwise jobs are numbered from 0 and ``labels["id"]`` holds their names.
    - Names are numbered in order of first appearance.
    - Jobs that ran longer than requested and rows out of order are kept and counted in ``notes``.
    - A file that is not well-formed is an error: a wrong number of cells or a cell that cannot be parsed.

    Parameters
    ----------
    path : str or path
        Path of the table. Its name without ``.csv`` and ``.gz`` becomes the name of the workload.
    strict : bool
        Whether jobs that would be skipped are an error: jobs without a run time or submit time (< 0), without
        or with negative requests, without nodes, or with implausibly large numbers; also repeated job names.
    memory_unit : str
        Unit of ``ReqMem`` without a unit; in Beocat's logs it is kB, which is 1000 bytes.

    Returns
    -------
    Workload
        The usable jobs, in the order of the file, with the resources ``cpus, gpus, memory``.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no well-formed job table, mixes memory with and without units, or has
        no usable job; or, if `strict`, any job is unusable.
    UsageError
        If `memory_unit` is no unit of memory.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = pathlib.Path(folder.name) / "day.csv"
    >>> _ = table.write_text("JobName,Submit,ActualDuration,ReqCPUs,ReqMem\\njob7,0,1-00:00:00,4,2 GB\\n")
    >>> w = read_job_table(table)
    >>> w.id.tolist(), w.run_time.tolist(), w.jobs[0].request.amounts
    ([7], [86400], (4, 0, 2000000000))
    >>> folder.cleanup()
    """
    if memory_unit not in MEMORY_UNITS:
        raise UsageError(f"memory_unit must be one of {', '.join(MEMORY_UNITS)}, found {memory_unit!r}")
    table = read_records(path, Format.JOB_TABLE)
    _check_form(table)
    sieve = Sieve(table, strict)
    rows = len(table)
    amounts = {
        "cpus": table.numbers("ReqCPUs", whole),
        "gpus": _optional(table, "ReqGPUs", whole, np.zeros(rows, dtype=np.int64)),
        "memory": _memory(table, memory_unit),
    }
    sieve.amounts(amounts)
    run = table.numbers("ActualDuration", duration)
    limit = _optional(table, "ReqDuration", _unless_empty(duration), np.full(rows, UNKNOWN))
    columns = sieve.times(table.numbers("Submit", whole), run, limit)
    sieve.note_rounding(name for name in ("ActualDuration", "ReqDuration") if name in table.columns)
    further, labels = _further(table, sieve)
    header = {"UnixStartTime": "0"}
    if "JobName" in table.columns:
        sieve.used_before(table.columns["JobName"])
        columns["id"], header[PREFIX], labels["id"] = sieve.ids("JobName")
    return sieve.workload(
        {**columns, **further, **amounts}, resources=RESOURCES, labels=labels, header=header
    )


def _check_form(table: Table) -> None:
    known = (*JOB_TABLE_COLUMNS, *FURTHER_COLUMNS)
    for name in table.columns:
        if name not in known:
            raise WorkloadError(
                f"{table.path}:1: unknown column {shown(name)} in a job table; known are {', '.join(known)}"
            )
    table.needs(NEEDED, "a job table")
    table.check_well_formed()


def _optional(table: Table, name: str, parser: Callable[[str], int], absent: Column) -> Column:
    return table.numbers(name, parser) if name in table.columns else absent


def _unless_empty(parser: Callable[[str], int]) -> Callable[[str], int]:
    return lambda text: parser(text) if text else UNKNOWN


def _memory(table: Table, unit: str) -> Column:
    """Return the memory [bytes]; either all cells or none must have a unit."""
    if "ReqMem" not in table.columns:
        return np.zeros(len(table), dtype=np.int64)
    cells = table.columns["ReqMem"]
    with_unit = {cell: any(map(str.isalpha, cell)) for cell in dict.fromkeys(cells)}
    if len(set(with_unit.values())) > 1:
        row = next(row for row, cell in enumerate(cells) if with_unit[cell] != with_unit[cells[0]])
        raise table.refuse(
            row,
            f"ReqMem: mixed units: a unit in every cell or in none needed, "
            f"found {shown(cells[row])} after {shown(cells[0])}",
        )
    default = "" if with_unit[cells[0]] else f" {unit}"
    return table.numbers("ReqMem", lambda text: min(memory_bytes(text and text + default), AMOUNT_LIMIT + 1))


def _further(table: Table, sieve: Sieve) -> tuple[dict[str, ArrayLike], dict[str, tuple[str, ...]]]:
    """Return the optional columns and the names that belong to their numbers."""
    columns: dict[str, ArrayLike] = {"nodes": np.ones(len(table), dtype=np.int64)}
    labels: dict[str, tuple[str, ...]] = {}
    for title, name in FURTHER_COLUMNS.items():
        if title not in table.columns:
            continue
        if name == "nodes":
            nodes = columns[name] = table.numbers(title, whole)
            sieve.leave_out((nodes < 1) | (nodes > 2**31), "no nodes", "1 to 2^31 nodes", nodes)
        elif name in ("spread", "exclusive"):
            columns[name] = table.numbers(title, _flag)
        elif name == "kind":
            columns[name], labels[name] = _kinds(table)
        elif name == "constraint":
            nodes = np.broadcast_to(columns["nodes"], len(table)).tolist()
            cells = [_features(table, row, cell, nodes[row]) for row, cell in enumerate(table.columns[title])]
            columns[name], labels[name] = labelled(cells, numbers=False)
        else:
            columns[name], labels[name] = labelled(table.columns[title])
    return columns, labels


def _flag(text: str) -> int:
    if text not in ("0", "1", ""):
        raise UsageError(f"0 or 1 needed, found {text!r}")
    return int(text == "1")


def _features(table: Table, row: int, cell: str, nodes: int) -> str:
    found = condition(cell, nodes)
    if found and "*" in found and "Spread" in table.columns and table.columns["Spread"][row] == "1":
        raise table.refuse(row, f"Constraint: no counts needed in a pooled request, found {shown(cell)}")
    if found is None:
        needed = "features joined by & or |, or by & with counts of at most all nodes,"
        raise table.refuse(row, f"Constraint: {needed} needed, found {shown(cell)}")
    return found


def _kinds(table: Table) -> tuple[Column, tuple[str, ...]]:
    """Return the job types and their names; the numbers have a meaning, so cells hold both."""
    names: dict[int, str] = {}

    def kind(text: str) -> int:
        number, _, name = text.partition("=")
        if not text:
            return UNKNOWN
        if not (number.isascii() and number.isdigit() and len(number) < 5):
            raise UsageError(
                f"a whole number below 10000, with or without a name (0=dgemm) needed, found {text!r}"
            )
        if name and names.setdefault(int(number), name) != name:
            raise UsageError(
                f"one name for kind {number} needed, found {name!r} after {names[int(number)]!r}"
            )
        return int(number)

    kinds = table.numbers("Kind", kind)
    return kinds, tuple(names.get(number, str(number)) for number in range(max(names, default=-1) + 1))


# --- writing -------------------------------------------------------------------------------------------


def write_job_table(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Write a workload as a job table from which the same jobs can be read.

    Memory is written in kB, or in bytes (``1536 B``) for all jobs if any amount is not a multiple of 1 kB.
    Durations are written in seconds. The optional columns of :func:`read_job_table` are written if the
    workload has them. Jobs of a log that only counts processors become pooled requests for CPUs. The file is
    written atomically, and compressed if its name ends in ``.gz``.

    Raises
    ------
    WorkloadError
        If the file cannot be written, or the workload has columns that a job table lacks, or a name is not
        printable.
    """
    if not workload.resources:
        workload = _counted_as_cpus(workload)
    known = ("id", "submit_time", "run_time", "requested_time", *RESOURCES, *FURTHER_COLUMNS.values())
    foreign = [name for name in workload.columns if name not in known]
    if foreign:
        raise WorkloadError(f"{path}: a job table has no column for {', '.join(foreign)}")
    columns = dict(_cells(workload))
    for title, cells in columns.items():
        odd = next((cell for cell in cells if isinstance(cell, str) and not cell.isprintable()), None)
        if odd is not None:
            raise WorkloadError(f"{path}: {title}: a printable name needed, found {shown(odd)}")
    write_bytes(path, csv_text(columns, zip(*columns.values(), strict=True)).encode())


def _counted_as_cpus(workload: Workload) -> Workload:
    ones = np.ones(len(workload), dtype=np.int64)
    columns = {**workload.columns, "nodes": ones, "spread": ones, "cpus": workload.nodes}
    return Workload(columns, header=workload.header, labels=workload.labels, resources=("cpus",))


def _cells(workload: Workload) -> Iterator[tuple[str, list[int] | list[str]]]:
    """Yield the columns of the table, as title and cells."""
    if "id" in workload.labels:
        yield "JobName", [workload.label("id", number) for number in workload.id.tolist()]
    else:
        word = workload.header.get(PREFIX, "job")
        yield "JobName", [f"{word}{number}" for number in workload.id.tolist()]
    memory = _amounts(workload, "memory")
    in_kilobytes = not any(amount % 1000 for amount in memory)
    yield "ReqMem", [f"{amount // 1000}" if in_kilobytes else f"{amount} B" for amount in memory]
    yield "ReqCPUs", _amounts(workload, "cpus")
    yield "ReqGPUs", _amounts(workload, "gpus")
    yield "ReqDuration", workload.requested_time.tolist()
    yield "ActualDuration", workload.run_time.tolist()
    yield "Submit", workload.submit_time.tolist()
    for title, name in FURTHER_COLUMNS.items():
        column = workload.column(name)
        if (column != (1 if name == "nodes" else UNKNOWN)).any():
            texts = {number: _text(workload, name, number) for number in np.unique(column).tolist()}
            yield title, [texts[number] for number in column.tolist()]


def _amounts(workload: Workload, resource: str) -> list[int]:
    there = resource in workload.resources
    return workload.column(resource).tolist() if there else [0] * len(workload)


def _text(workload: Workload, column: str, number: int) -> str:
    if number == UNKNOWN:
        return ""
    named = number < len(workload.labels.get(column, ()))
    label = workload.label(column, number)
    return f"{number}={label}" if column == "kind" and named else label
