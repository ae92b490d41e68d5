"""Job tables: workloads with resource requests as CSV files.

``JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit`` are the columns of the logs of Kansas
State University's cluster Beocat, as published at github.com/shutchison/HPC_Scheduling_with_RL. The further
columns of :func:`read_job_table` are an extension of hpcsimkit, so that workloads from other sources can also
be written as job tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import UsageError, WorkloadError, close_words
from hpcsimkit.io.documents import csv_text
from hpcsimkit.io.files import write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.units import MEMORY_UNITS, MIG, is_whole_number, memory_bytes, total_of
from hpcsimkit.jobs.columns import AMOUNT_LIMIT, GATE_COLUMNS, LOG_COLUMNS, TEXT_COLUMNS, Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import duration, whole
from hpcsimkit.workloads.readers.records import read_records
from hpcsimkit.workloads.readers.sacct_cells import condition
from hpcsimkit.workloads.readers.sieve import Mask, Sieve
from hpcsimkit.workloads.readers.tables import Table, shown

__all__ = ["JOB_TABLE_COLUMNS", "read_job_table", "write_job_table"]

JOB_TABLE_COLUMNS = ("JobName", "ReqMem", "ReqCPUs", "ReqGPUs", "ReqDuration", "ActualDuration", "Submit")
"""Columns that every written job table has."""

NEEDED = ("ReqCPUs", "ActualDuration", "Submit")
RESOURCES = ("cpus", "gpus", "memory")
SHARES = ("shards", "mps")
ASKED = "Req"
"""Beginning of the names of columns with requests."""

FURTHER_COLUMNS = {
    "".join(word.capitalize() for word in name.split("_")): name
    for name in (
        *("nodes", "spread", "exclusive", "constraint", "kind"),
        *(*LOG_COLUMNS, "qos", *GATE_COLUMNS, "node_list"),
    )
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

    The columns may be in any order; ``ReqCPUs, ActualDuration, Submit`` are required. Others are not read,
    unless they may be misspelled ones, which is an error.

    ==================  =============================================================================
    ``JobName``         any text; ``<word><number>`` gives the job number, see below
    ``ReqCPUs``         number of CPUs, an integer
    ``ReqGPUs``         number of GPUs, an integer; 0 without this column
    ``ReqGPUs:a100``    number of these that are of a model, ``ReqMIG:1g.5gb`` of slices, which are no GPUs
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
    ``Dependency``      jobs that must have started or ended, as for Slurm's ``--dependency``, by their
                        numbers or names: ``afterok:12:13,afterany:7``; may be empty
    ``BeginTime``       time before which the job may not start, and time at which a held job is released
    ``HoldUntil``       [s of the log's clock]; may be empty
    ``ArrayJob``        number of the job's array, and number of its jobs that may run at once; may be empty
    ``ArrayLimit``
    ``Licenses``        licences that the job needs: ``matlab:2,ansys``; may be empty
    ``NodeList``        names of the nodes on record: ``n[1-2]``; may be empty
    ==================  =============================================================================

    - A duration is a number of seconds, ``MM:SS``, ``HH:MM:SS`` or ``D-HH:MM:SS``, see
      :func:`hpcsimkit.workloads.readers.cells.duration`.
    - If all job names consist of the same word and a different number (``job261221``), these numbers are the
      job numbers; otherwise jobs are numbered from 0 and ``labels["id"]`` holds their names.
    - Names are numbered in order of first appearance.
    - Jobs that ran longer than requested and rows out of order are kept and counted in ``notes``.
    - Rows with a wrong number of cells or a cell that cannot be parsed are skipped and counted.

    Parameters
    ----------
    path : str or path
        Path of the table. Its name without ``.csv`` and ``.gz`` becomes the name of the workload.
    strict : bool
        Whether jobs that would be skipped are an error: jobs without a run time or submit time (< 0), without
        or with negative requests, without nodes, with implausibly large numbers, or with cells that cannot be
        parsed; also repeated job names.
    memory_unit : str
        Unit of ``ReqMem`` without a unit; in Beocat's logs it is kB, which is 1000 bytes.

    Returns
    -------
    Workload
        The usable jobs, in the order of the file, with the resources ``cpus, gpus, memory``.

    Raises
    ------
    WorkloadError
        If the file cannot be read, lacks a column, or has no usable job; or, if `strict`, any job is
        unusable.
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
        "cpus": sieve.parse("ReqCPUs", whole),
        "gpus": _optional(sieve, "ReqGPUs", whole, np.zeros(rows, dtype=np.int64)),
        "memory": _memory(sieve, memory_unit),
        **{resource: sieve.parse(name, whole) for name, resource in _models(table).items()},
    }
    amounts["gpus"] = np.maximum(amounts["gpus"], _of_models(amounts))
    sieve.amounts(amounts)
    run = sieve.parse("ActualDuration", duration)
    limit = _optional(sieve, "ReqDuration", _unless_empty(duration), np.full(rows, UNKNOWN))
    columns = sieve.times(sieve.parse("Submit", whole), run, limit)
    sieve.note_rounding(name for name in ("ActualDuration", "ReqDuration") if name in table.columns)
    further, labels = _further(sieve)
    header = {"UnixStartTime": "0"}
    if "JobName" in table.columns:
        sieve.used_before(table.columns["JobName"])
        columns["id"], header[PREFIX], labels["id"] = sieve.ids("JobName")
    return sieve.workload(
        {**columns, **further, **amounts}, resources=tuple(amounts), labels=labels, header=header
    )


def _check_form(table: Table) -> None:
    known = (*JOB_TABLE_COLUMNS, *FURTHER_COLUMNS)
    for name in table.columns:
        if name in known or name in _models(table):
            continue
        if close := close_words(name, known, cutoff=0.8):
            raise WorkloadError(
                f"{table.path}:1: unknown column {shown(name)} in a job table; did you mean {close[0]}?"
            )
    table.needs(NEEDED, "a job table")


def _models(table: Table) -> dict[str, str]:
    """Return the resources of models of GPUs and of slices, by column."""
    found = {name: name.removeprefix(ASKED).lower() for name in table.columns if name.startswith(ASKED)}
    return {
        name: resource
        for name, resource in found.items()
        if total_of(resource) == "gpus" or resource.startswith(MIG) or resource in SHARES
    }


def _of_models(amounts: Mapping[str, Column]) -> Column:
    """Return the GPUs of all models of each job."""
    of_models = [values for name, values in amounts.items() if total_of(name) == "gpus"]
    return np.sum([np.maximum(values, 0) for values in of_models], axis=0, dtype=np.int64, initial=0)


def _optional(sieve: Sieve, name: str, parser: Callable[[str], int], absent: Column) -> Column:
    return sieve.parse(name, parser) if name in sieve.table.columns else absent


def _unless_empty(parser: Callable[[str], int]) -> Callable[[str], int]:
    return lambda text: parser(text) if text else UNKNOWN


def _memory(sieve: Sieve, unit: str) -> Column:
    """Return the memory [bytes]; either all cells or none must have a unit, as in the first."""
    if "ReqMem" not in sieve.table.columns:
        return np.zeros(len(sieve.table), dtype=np.int64)
    first = next((cell.strip() for cell in sieve.table.columns["ReqMem"] if cell.strip()), "")
    with_unit = any(map(str.isalpha, first))

    def read(text: str) -> int:
        if text and any(map(str.isalpha, text)) != with_unit:
            raise UsageError(
                f"mixed units: a unit in every cell or in none needed, "
                f"found {shown(text)} after {shown(first)}"
            )
        return min(memory_bytes(text if with_unit or not text else f"{text} {unit}"), AMOUNT_LIMIT + 1)

    return sieve.parse("ReqMem", read)


def _further(sieve: Sieve) -> tuple[dict[str, ArrayLike], dict[str, tuple[str, ...]]]:
    """Return the optional columns and the names that belong to their numbers."""
    table = sieve.table
    columns: dict[str, ArrayLike] = {"nodes": np.ones(len(table), dtype=np.int64)}
    labels: dict[str, tuple[str, ...]] = {}
    for title, name in FURTHER_COLUMNS.items():
        if title not in table.columns:
            continue
        if name == "nodes":
            nodes = columns[name] = sieve.parse(title, whole)
            sieve.leave_out((nodes < 1) | (nodes > 2**31), "no nodes", "1 to 2^31 nodes", nodes)
        elif name in ("spread", "exclusive"):
            columns[name] = sieve.parse(title, _flag)
        elif name == "kind":
            columns[name], labels[name] = _kinds(sieve)
        elif name in (*TEXT_COLUMNS, "node_list"):
            columns[name], labels[name] = sieve.labelled(table.columns[title], numbers=False)
        elif name in GATE_COLUMNS:
            columns[name] = sieve.parse(title, _unless_empty(whole))
        elif name == "constraint":
            pooled = np.broadcast_to(columns.get("spread", UNKNOWN), len(table)) == 1
            columns[name], labels[name] = _constraints(sieve, np.asarray(columns["nodes"]), pooled)
        else:
            columns[name], labels[name] = sieve.labelled(table.columns[title])
    return columns, labels


def _flag(text: str) -> int:
    if text not in ("0", "1", ""):
        raise UsageError(f"0 or 1 needed, found {text!r}")
    return int(text == "1")


def _constraints(sieve: Sieve, nodes: Column, pooled: Mask) -> tuple[Column, tuple[str, ...]]:
    """Return the constraint numbers of the jobs, and the constraints by number."""
    found = []
    cells = sieve.table.columns["Constraint"]
    for row, (cell, count, of_all) in enumerate(zip(cells, nodes.tolist(), pooled.tolist(), strict=True)):
        text = condition(cell, count)
        if text is None or (of_all and "*" in text):
            needed = (
                "features joined by & or |, or by & with counts of at most all nodes,"
                if text is None
                else "no counts in a pooled request"
            )
            sieve.refuse(row, "Constraint", cell, f"{needed} needed, found {shown(cell)}")
        found.append(text or "")
    return sieve.labelled(found, numbers=False)


def _kinds(sieve: Sieve) -> tuple[Column, tuple[str, ...]]:
    """Return the job types and their names; the numbers have a meaning, so cells hold both."""
    names: dict[int, str] = {}

    def kind(text: str) -> int:
        number, _, name = text.partition("=")
        if not text:
            return UNKNOWN
        if not is_whole_number(number, 4):
            raise UsageError(
                f"a whole number below 10000, with or without a name (0=dgemm) needed, found {text!r}"
            )
        if name and names.setdefault(int(number), name) != name:
            raise UsageError(
                f"one name for kind {number} needed, found {name!r} after {names[int(number)]!r}"
            )
        return int(number)

    kinds = sieve.parse("Kind", kind)
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
    models = [
        name
        for name in workload.resources
        if total_of(name) == "gpus" or name.startswith(MIG) or name in SHARES
    ]
    known = (
        *("id", "submit_time", "run_time", "requested_time"),
        *(*RESOURCES, *models, *FURTHER_COLUMNS.values()),
    )
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
    for name in workload.resources:
        if name not in RESOURCES:
            yield (
                f"{ASKED}{name.replace('gpus:', 'GPUs:').replace(MIG, MIG.upper())}",
                _amounts(workload, name),
            )
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
