"""Job tables: workloads as CSV files, with what each job asks of machines.

``JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit`` are the columns of the logs of Kansas
State University's cluster Beocat, as published at github.com/shutchison/HPC_Scheduling_with_RL; the further
columns of :func:`read_job_table` are the kit's own, so that what it reads from elsewhere can be written too.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.columns import AMOUNT_LIMIT, LOG_COLUMNS, Column
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.files import write_bytes
from hpcsimkit.job import UNKNOWN
from hpcsimkit.units import MEMORY_UNITS, memory_bytes
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.cells import duration, whole
from hpcsimkit.workloads.sieve import Sieve
from hpcsimkit.workloads.tables import Table, labelled, read_csv, shown

__all__ = ["JOB_TABLE_COLUMNS", "read_job_table", "write_job_table"]

JOB_TABLE_COLUMNS = ("JobName", "ReqMem", "ReqCPUs", "ReqGPUs", "ReqDuration", "ActualDuration", "Submit")
"""The columns of every job table written."""

NEEDED = ("ReqCPUs", "ActualDuration", "Submit")
RESOURCES = ("cpus", "gpus", "memory")
FURTHER_COLUMNS = {
    "".join(word.capitalize() for word in name.split("_")): name
    for name in ("nodes", "spread", "exclusive", "constraint", "kind", *LOG_COLUMNS)
    if name not in ("preceding", "think_time")  # job numbers may change when names take their place
}
"""Columns that may follow, and which of the workload's they are."""

PREFIX = "JobName"
"""Header line with what stands before the job numbers in the names."""


# --- reading -------------------------------------------------------------------------------------------


def read_job_table(
    path: str | os.PathLike[str], *, strict: bool = False, memory_unit: str = "kB"
) -> Workload:
    """Read a job table, plain or gzip.

    The columns may stand in any order; needed are ``ReqCPUs, ActualDuration, Submit``.

    ==================  =============================================================================
    ``JobName``         any text; ``<word><number>`` gives the job number, see below
    ``ReqCPUs``         CPUs, whole number
    ``ReqGPUs``         GPUs, whole number; 0 where there is no such column
    ``ReqMem``          memory, all cells with a unit (``128 GB``, ``1.5 GiB``) or none (`memory_unit`)
    ``ReqDuration``     the user's limit, a duration; empty or 0: the run time is taken
    ``ActualDuration``  run time, a duration
    ``Submit``          seconds of the log's clock; Unix time in real logs
    ``Nodes``           different machines that must give so much each; 1 where there is no such column
    ``Spread``          1: the amounts are totals that any machines may give; else 0
    ``Exclusive``       1: whole machines; else 0
    ``Constraint``      features that the machines must have, joined by ``&``; may be empty
    ``Kind``            kind of work: a whole number, with or without a name (``0=dgemm``); may be empty
    ``User`` ...        what SWF has besides, names or whole numbers, may be empty: ``User``, ``Group``,
                        ``Executable``, ``Queue``, ``Partition``, ``Status``,
                        ``RecordedWaitTime``, ``RequestedMemory``, ``UsedMemory``
    ==================  =============================================================================

    - A duration is a number of seconds, ``MM:SS``, ``HH:MM:SS`` or ``D-HH:MM:SS``, see
      :func:`hpcsimkit.workloads.cells.duration`.
    - If all names are one word with a different number behind it (``job261221``), these are the job numbers;
      else jobs are numbered from 0 and ``labels["id"]`` has their names.
    - Names get numbers in the order in which they first appear.
    - Runs longer than requested are kept, and noted; so are rows out of order.
    - A file that is not well-formed is refused: another number of cells, a cell that cannot be read.

    Parameters
    ----------
    path : str or path
        The table. Its name without ``.csv`` and ``.gz`` becomes the workload's name.
    strict : bool
        Refuse what is otherwise skipped: jobs without a run time or submit time (< 0), that ask for nothing
        or less, for no node, or with numbers too large to be true; and job names used twice.
    memory_unit : str
        Of ``ReqMem`` without a unit; Beocat's logs have kB, which are 1000 bytes.

    Returns
    -------
    Workload
        With the resources ``cpus, gpus, memory``; one row a usable job, in the order of the file.

    Raises
    ------
    WorkloadError
        The file cannot be read, is no well-formed job table, mixes memory with and without units, or holds no
        usable job; or, if `strict`, any job is not usable.
    UsageError
        `memory_unit` is no unit of memory.

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
    table = read_csv(path)
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
    """Return the memory [bytes]; its unit must stand in every cell, or in none."""
    if "ReqMem" not in table.columns:
        return np.zeros(len(table), dtype=np.int64)
    cells = table.columns["ReqMem"]
    with_unit = {cell: any(map(str.isalpha, cell)) for cell in dict.fromkeys(cells)}
    if len(set(with_unit.values())) > 1:
        row = next(row for row, cell in enumerate(cells) if with_unit[cell] != with_unit[cells[0]])
        raise table.refuse(
            row, f"ReqMem: mixed units: a unit in every cell or in none needed, "
            f"found {shown(cells[row])} after {shown(cells[0])}"
        )  # fmt: skip
    default = "" if with_unit[cells[0]] else f" {unit}"
    return table.numbers("ReqMem", lambda text: min(memory_bytes(text and text + default), AMOUNT_LIMIT + 1))


def _further(table: Table, sieve: Sieve) -> tuple[dict[str, ArrayLike], dict[str, tuple[str, ...]]]:
    """Return the further columns, and the names for their numbers."""
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
            cells = [_features(table, row, cell) for row, cell in enumerate(table.columns[title])]
            columns[name], labels[name] = labelled(cells, numbers=False)
        else:
            columns[name], labels[name] = labelled(table.columns[title])
    return columns, labels


def _flag(text: str) -> int:
    if text not in ("0", "1", ""):
        raise UsageError(f"0 or 1 needed, found {text!r}")
    return int(text == "1")


def _features(table: Table, row: int, cell: str) -> str:
    if not cell.strip():
        return ""
    features = [feature.strip() for feature in cell.split("&")]
    if not all(features) or "|" in cell:
        raise table.refuse(row, f"Constraint: features joined by & needed, found {shown(cell)}")
    return "&".join(features)


def _kinds(table: Table) -> tuple[Column, tuple[str, ...]]:
    """Return the kinds of work; their numbers have a meaning, so they stand there with the names."""
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
    """Write a workload as a job table; reading it gives the same jobs again.

    Memory is written in kB, or if an amount is no whole number of them in bytes (``1536 B``) throughout;
    durations in seconds; the further columns of :func:`read_job_table` where the workload has them. Jobs of a
    log that counts processors only ask for so many CPUs, wherever they are. The file appears whole or not at
    all, and is compressed if its name ends in ``.gz``.

    Raises
    ------
    WorkloadError
        The file cannot be written, or the workload has columns for which the table has none, or a name that
        is not printable.
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_bytes(path, text.getvalue().encode())


def _counted_as_cpus(workload: Workload) -> Workload:
    ones = np.ones(len(workload), dtype=np.int64)
    columns = {**workload.columns, "nodes": ones, "spread": ones, "cpus": workload.nodes}
    return Workload(columns, header=workload.header, labels=workload.labels, resources=("cpus",))


def _cells(workload: Workload) -> Iterator[tuple[str, list[int] | list[str]]]:
    """Yield the columns of the table: title and cells."""
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
