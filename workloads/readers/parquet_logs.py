"""Readers for published job tables in Parquet: PM100 of Marconi100, and F-DATA of Fugaku."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import duration, moment, whole
from hpcsimkit.workloads.readers.sacct_cells import count, minutes, status
from hpcsimkit.workloads.readers.sieve import Sieve, per_node
from hpcsimkit.workloads.readers.tables import MISSING, EncodedCells, Table, parse

__all__ = ["FDATA_FIELDS", "PARQUET_MAGIC", "PM100_FIELDS", "parquet_columns", "read_fdata", "read_pm100"]

PARQUET_MAGIC = b"PAR1"

PM100_FIELDS = ("job_id", "submit_time", "start_time", "end_time", "num_cores_req", "num_nodes_req")
FDATA_FIELDS = ("jid", "adt", "sdt", "edt", "nnumr", "elpl")
"""Required columns, by which the format of a table is recognised; other columns are optional."""

GIGABYTE = 10**9

PM100_NAMES = {
    "user": "user_id",
    "group": "group_id",
    "queue": "partition",
    "partition": "partition",
    "qos": "qos",
}


def read_pm100(path: str | os.PathLike[str], *, strict: bool = False) -> Workload:
    """Read the job table of PM100, of the supercomputer Marconi100 of CINECA (2020).

    The table accompanies F. Antici et al., "PM100: A Job Power Consumption Dataset of a Large-scale
    Production HPC System", SC Workshops 2023; its columns are described at https://github.com/francescoantici/PM100-data.

    - Requested cores, GPUs and memory are totals; they are divided by the nodes, rounded up. Memory is taken
      as GB.
    - ``requested_time`` is ``time_limit`` [min]. Queues are also the partitions. Names are numbers.

    Parameters
    ----------
    path : str or path
        Path of the table.
    strict : bool
        Whether rows that would be skipped are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no such table, or has no usable job; or, if `strict`, any job is
        unusable.
    """
    optional = ("eligible_time", "num_gpus_req", "mem_req", "time_limit", "job_state", *PM100_NAMES.values())
    sieve = Sieve(_table(path, PM100_FIELDS, optional, "PM100"), strict)
    cells = sieve.table.columns
    submit, start, end = (sieve.parse(name, moment()) for name in ("submit_time", "start_time", "end_time"))
    sieve.leave_out(start < 0, "never started", "a job that started", cells["start_time"])
    run = np.where(end >= start, end - start, UNKNOWN)
    unknown = np.full(len(run), UNKNOWN)
    limit = sieve.parse("time_limit", minutes) if "time_limit" in cells else unknown
    columns: dict[str, ArrayLike] = dict(sieve.times(submit, run, limit))
    columns["recorded_wait_time"] = np.maximum(start - submit, UNKNOWN)
    nodes, cpus = (np.maximum(sieve.parse(name, count), 0) for name in ("num_nodes_req", "num_cores_req"))
    sieve.leave_out(nodes < 1, "no nodes", "at least 1 node", nodes)
    sieve.leave_out(cpus < 1, "no CPUs", "at least 1 core", cpus)
    gpus, memory = (
        np.maximum(sieve.parse(name, count), 0) if name in cells else np.zeros_like(nodes)
        for name in ("num_gpus_req", "mem_req")
    )
    nodes = np.maximum(nodes, 1)
    totals = {"cpus": cpus, "gpus": gpus, "memory": np.minimum(memory, 10**8) * GIGABYTE}
    uneven = np.logical_or.reduce([total % nodes > 0 for total in totals.values()])
    sieve.note("totals not divisible by the nodes: rounded up", uneven)
    amounts = {name: per_node(total, nodes) for name, total in totals.items()}
    sieve.amounts(amounts)
    labels: dict[str, tuple[str, ...]] = {}
    for name, field in PM100_NAMES.items():
        if field in cells:
            columns[name], labels[name] = sieve.labelled(cells[field])
    if "job_state" in cells:
        columns["status"] = parse(cells["job_state"], status)[0]
    sieve.used_before(cells["job_id"], "job number")
    columns |= {"nodes": nodes}
    columns["id"], _, labels["id"] = sieve.ids("job_id")
    header = {"UnixStartTime": "0", "TimeZoneString": "UTC"}
    return sieve.workload({**columns, **amounts}, resources=tuple(amounts), labels=labels, header=header)


def read_fdata(path: str | os.PathLike[str], *, strict: bool = False) -> Workload:
    """Read a month of F-DATA, of the supercomputer Fugaku of RIKEN (2021 to 2024).

    The tables accompany F. Antici et al., "F-DATA: A Fugaku Workload Dataset for Job-centric Predictive
    Modelling in HPC Systems" (2024), https://zenodo.org/records/11467483.

    - ``nodes`` is the number of requested nodes, which jobs do not share. ``requested_time`` is the elapsed
      time limit, else the run time. Names of users and jobs are anonymous.

    Parameters
    ----------
    path : str or path
        Path of the table.
    strict : bool
        Whether rows that would be skipped are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is no such table, or has no usable job; or, if `strict`, any job is
        unusable.
    """
    sieve = Sieve(_table(path, FDATA_FIELDS, ("usr", "jnam", "exit state"), "F-DATA"), strict)
    cells = sieve.table.columns
    submit, start, end = (sieve.parse(name, moment()) for name in ("adt", "sdt", "edt"))
    sieve.leave_out(start < 0, "never started", "a job that started", cells["sdt"])
    run = np.where(end >= start, end - start, UNKNOWN)
    limit = sieve.parse("elpl", lambda text: UNKNOWN if text.lower() in MISSING else duration(text))
    columns: dict[str, ArrayLike] = dict(sieve.times(submit, run, limit))
    columns["recorded_wait_time"] = np.maximum(start - submit, UNKNOWN)
    nodes = sieve.parse("nnumr", whole)
    sieve.leave_out((nodes < 1) | (nodes > 2**31), "no nodes", "1 to 2^31 nodes", nodes)
    labels: dict[str, tuple[str, ...]] = {}
    for name, field in (("user", "usr"), ("executable", "jnam")):
        if field in cells:
            columns[name], labels[name] = sieve.labelled(cells[field])
    if "exit state" in cells:
        columns["status"] = parse(cells["exit state"], lambda text: int(text.lower() == "completed"))[0]
    columns["nodes"] = nodes
    sieve.used_before(cells["jid"], "job number")
    columns["id"], _, labels["id"] = sieve.ids("jid")
    return sieve.workload(columns, labels=labels, header={"UnixStartTime": "0", "TimeZoneString": "UTC"})


def parquet_columns(content: bytes, path: str | os.PathLike[str]) -> Sequence[str]:
    """Return the names of the columns of a Parquet file.

    Raises
    ------
    WorkloadError
        The content is no such file.
    """
    from pyarrow import ArrowException, parquet

    try:
        return list(parquet.read_schema(io.BytesIO(content)).names)
    except (ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from None


def _damaged(path: str | os.PathLike[str], error: Exception) -> WorkloadError:
    return WorkloadError(f"{path}: the Parquet file cannot be read: {' '.join(str(error).split())[:200]}")


def _table(
    path: str | os.PathLike[str], needed: Sequence[str], optional: Collection[str], what: str
) -> Table:
    """Return the columns of a Parquet file as cells; times are Unix times."""
    from pyarrow import ArrowException, parquet

    content = read_bytes(path, Format.PARQUET_LOG)
    there = parquet_columns(content, path)
    missing = [name for name in needed if name not in there]
    if missing:
        raise WorkloadError(
            f"{path}: a table of {what} needs the column {missing[0]}, found {', '.join(there)[:200]}"
        )
    chosen = [name for name in there if name in {*needed, *optional}]
    try:
        rows = parquet.read_metadata(io.BytesIO(content)).num_rows
        refuse_beyond("jobs", rows, path)
        table = parquet.read_table(io.BytesIO(content), columns=chosen)
        cells = {name: _cells(table.column(name)) for name in chosen}
    except (ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from None
    unread = tuple(name for name in there if name not in chosen)
    return Table(str(path), cells, np.arange(1, rows + 1), len(there), unread=unread)


def _cells(column: Any) -> EncodedCells:
    """Return a column of Arrow as cells."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("s", column.type.tz), safe=False).cast(pyarrow.int64())
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    texts = ["" if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return EncodedCells([*texts, ""], codes.astype(np.int64))
