"""Reader for Slurm accounting data, as printed by ``sacct --parsable2``.

A suitable export, with one line per job and all fields that :func:`read_sacct` uses::

    sacct --allusers --allocations --parsable2 --noconvert --starttime 2024-01-01 --endtime 2024-02-01 \\
          --format JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Start,End,ElapsedRaw,\\
    TimelimitRaw,ReqTRES,AllocTRES,Constraints,Eligible,NodeList > january.sacct

The fields are described at https://slurm.schedmd.com/sacct.html.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import UNIX_TIME, clock_of, moment
from hpcsimkit.workloads.readers.sacct_cells import count, elapsed, minutes, state, status, time_limit
from hpcsimkit.workloads.readers.sacct_requests import (
    SACCT_FEATURES,
    constraints,
    first_known,
    requested_amounts,
)
from hpcsimkit.workloads.readers.sieve import Mask, Sieve
from hpcsimkit.workloads.readers.tables import Parser, Table, read_text, shown, table_of

__all__ = ["read_sacct"]

Size = Literal["requested", "allocated"]

FIELDS = (
    "JobID",
    "JobIDRaw",
    "User",
    "Account",
    "Partition",
    "QOS",
    "State",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "Elapsed",
    "ElapsedRaw",
    "Timelimit",
    "TimelimitRaw",
    "ReqTRES",
    "AllocTRES",
    "ReqCPUS",
    "AllocCPUS",
    "NCPUS",
    "ReqNodes",
    "AllocNodes",
    "NNodes",
    "ReqMem",
    "ReqGRES",
    "AllocGRES",
    "Constraints",
    "Restarts",
    "NodeList",
)
"""Fields that are read; all others are ignored."""

FREE_TEXT = {
    "jobname",
    "constraints",
    "comment",
    "admincomment",
    "systemcomment",
    "extra",
    "submitline",
    "workdir",
    "stdin",
    "stdout",
    "stderr",
    "container",
    "reason",
    "failednode",
    "licenses",
    "wckey",
    "reservation",
}
"""Free-text fields, which may contain the separator (in lower case)."""

NOWHERE = {"None assigned", "(null)", "None", "Unknown"}
"""Cells of jobs without nodes."""

NAMES = {"user": "User", "group": "Account", "queue": "Partition", "partition": "Partition", "qos": "QOS"}
"""Name columns and the corresponding fields; Slurm's queues are its partitions."""

SPELLING = {field.lower(): field for field in FIELDS}

WAITING = {"PENDING", "REVOKED"}
RUNNING = {"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STAGE_OUT", "STOPPED", "SIGNALING"}

JOB, COMPONENT, STEP, PENDING_ARRAY, HEADER = range(5)
JOB_ID = re.compile(
    r"(?P<job>\d+(_\d+)?)(?P<component>\+\d+)?(?P<step>\..+)?|(?P<pending>\d+_\[.*)|(?P<header>jobid\w*)"
)


def read_sacct(
    path: str | os.PathLike[str],
    *,
    size: Size = "requested",
    features: Collection[str] = ("constraints",),
    timezone: str | None = None,
    default_times: Mapping[str, int] | None = None,
    strict: bool = False,
) -> Workload:
    """Read the output of ``sacct --parsable2`` (or ``--parsable``) with a header, plain or gzip.

    The fields may be any subset in any order that includes ``JobID`` or ``JobIDRaw``; ``Submit``; one of
    ``ElapsedRaw``, ``Elapsed``, ``Start`` with ``End``; and one of ``ReqTRES``, ``AllocTRES``, ``ReqCPUS``,
    ``AllocCPUS``, ``NCPUS``. All fields except `FIELDS` are ignored. A different ``--delimiter`` is detected;
    it is advisable if job names or constraints contain ``|``, which ``sacct`` does not escape.

    - CPUs, GPUs and memory are the job's totals divided by its nodes, rounded up: the request per machine on
      ``nodes`` different machines. They are taken from ``ReqTRES``, then from ``ReqCPUS``, ``ReqNodes``,
      ``ReqMem``, then from the allocated amounts; with ``size="allocated"`` in reverse order. Exclusive use
      of nodes is visible in the allocated amounts only. The old fields for GPUs (``ReqGRES``, ``AllocGRES``)
      are not read; ``notes`` counts the jobs with GPUs only in these fields.
    - Units of memory are powers of 1024. ``mem=0`` requests all memory of the nodes; the allocated amount is
      used.
    - ``requested_time`` is the time limit. If there is no limit (``UNLIMITED``, ``Partition_Limit``), it is
      the longest of the `default_times` of the job's partitions, and without these the run time, which no
      scheduler knows. ``notes`` counts both.
    - A job that became eligible after its submission (``Eligible``: it had a dependency, a begin time, was
      held, or was throttled in its array) counts as submitted then; ``notes`` counts such jobs.
    - ``user, group, partition, qos`` are ``User, Account, Partition, QOS``, with names in the labels, and
      ``queue`` is also the partition. ``status`` is ``State`` in the codes of SWF; ``recorded_wait_time`` is
      the time from submission to start.
    - Job numbers are ``JobIDRaw``, else ``JobID``; if these are not plain numbers (array tasks ``7_1``), jobs
      are numbered from 0 and ``labels["id"]`` holds the original cells.
    - Each record of a requeued job (``--duplicates``) and each component of a heterogeneous job is a separate
      job.
    - Skipped are job steps; jobs that never started or have not ended; pending array tasks, which ``sacct``
      prints on one line; jobs without CPUs; and lines and cells that cannot be parsed.

    Parameters
    ----------
    path : str or path
        Path of the export.
    size : {"requested", "allocated"}
        Source of the amounts that jobs request.
    features : collection of str
        Fields that become required features of a job's machines: ``constraints`` (``--constraint=a&b``),
        ``partition``, ``gpu_type`` (``gres/gpu:a100``). Alternatives (``a|b``; several partitions) and counts
        of at most all nodes (``a*2&b*4``) are supported, counts among alternatives (``a*2|b*4``) and features
        in common to several nodes (``[a|b]``) are not: such constraints are ignored and counted in ``notes``.
    timezone : str, optional
        Name of the cluster's time zone, with which submit times are converted to Unix time. By default they
        are seconds of local time since 1970, since ``sacct`` prints no zone, and jump by an hour when
        daylight saving time begins or ends. Unix times are printed in UTC without a zone.
    default_times : mapping of str to int, optional
        Requested times [s] of jobs without a time limit, by partition; see
        :attr:`~hpcsimkit.cluster.partitions.Partitions.default_times`.
    strict : bool
        Whether rows that would be skipped, except job steps and repeated headers, and repeated job numbers
        are an error.

    Returns
    -------
    Workload
        The usable jobs, in the order of the file, with the resources ``cpus, gpus, memory``.

    Raises
    ------
    WorkloadError
        If the file cannot be read, lacks a header or a required field, or has no usable job; or, if `strict`,
        any job is unusable.
    UsageError
        If an option has an invalid value.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "january.sacct"
    >>> _ = log.write_text(
    ...     "JobID|Submit|Elapsed|Timelimit|ReqTRES\\n"
    ...     "17|2024-01-31T23:59:59|00:30:00|1-00:00:00|cpu=16,gres/gpu=2,mem=64G,node=2\\n"
    ...     "17.batch|2024-01-31T23:59:59|00:30:00||\\n"
    ... )
    >>> w = read_sacct(log)
    >>> w.id.tolist(), w.requested_time.tolist(), w.nodes.tolist(), w.jobs[0].request.amounts
    ([17], [86400], [2], (8, 1, 34359738368))
    >>> dict(w.skipped)
    {'job step': 1}
    >>> folder.cleanup()
    """
    if size not in ("requested", "allocated"):
        raise UsageError(f"size must be 'requested' or 'allocated', found {size!r}")
    unknown = [name for name in features if name not in SACCT_FEATURES]
    if isinstance(features, str) or unknown:
        raise UsageError(f"features must be some of {', '.join(SACCT_FEATURES)}, found {features!r}")
    zone = clock_of(timezone)
    table, mended = _read(path)
    sieve = Sieve(table, strict)
    sieve.note("separator in a name or constraint: put together again", np.isin(table.line, mended))
    _leave_out_other_lines(sieve)
    columns = _times(sieve, moment(zone), default_times or {})
    columns["nodes"], amounts = requested_amounts(sieve, requested=size == "requested")
    sieve.amounts(amounts)
    names, labels = _names(sieve)
    columns |= names
    columns["constraint"], labels["constraint"] = constraints(sieve, np.asarray(columns["nodes"]), features)
    if "NodeList" in table.columns:
        cells = ["" if cell in NOWHERE else cell for cell in table.columns["NodeList"]]
        columns["node_list"], labels["node_list"] = sieve.labelled(cells, numbers=False)
    sieve.used_before(sieve.table.columns[_id_field(sieve.table)], "job number")
    columns["id"], word, labels["id"] = sieve.ids(
        "JobIDRaw" if "JobIDRaw" in sieve.table.columns else "JobID"
    )
    universal = timezone is None and all(
        map(UNIX_TIME.fullmatch, map(str.strip, sieve.table.columns["Submit"]))
    )
    clock = "UTC" if universal else timezone
    header = {"UnixStartTime": "0", "JobName": word} | ({"TimeZoneString": clock} if clock else {})
    resources = tuple(amounts)
    return sieve.workload({**columns, **amounts}, resources=resources, labels=labels, header=header)


# --- lines ---------------------------------------------------------------------------------------------


def _read(path: str | os.PathLike[str]) -> tuple[Table, list[int]]:
    """Return the fields that are read, in the spelling of `FIELDS`, and the numbers of repaired lines."""
    lines = read_text(path, Format.SACCT).split("\n")
    first = next(line for line in lines if line.strip()).strip()
    separator = re.match(r"\w+(\W+)(\w|$)", first)
    delimiter = separator[1] if separator else "|"
    if not delimiter.strip(" "):
        raise WorkloadError(
            f"{path}:1: fields separated by | (sacct --parsable2) needed, found {shown(first)}"
        )
    header = [name.strip().lower() for name in first.split(delimiter)]
    if not SPELLING.keys() & set(header):
        raise WorkloadError(
            f"{path}:1: a header line (sacct without --noheader) needed, found {shown(first)}"
        )
    refuse_beyond("cells", sum(line.count(delimiter) for line in lines), path)
    rows = [line.rstrip("\r").split(delimiter) for line in lines]
    mended = _mend(rows, header, delimiter)
    table = table_of(path, enumerate(rows, start=1))
    columns = {
        SPELLING[name.lower()]: cells for name, cells in table.columns.items() if name.lower() in SPELLING
    }
    table = replace(table, columns=columns)
    _check_fields(table)
    return table, mended


def _mend(rows: list[list[str]], header: list[str], delimiter: str) -> list[int]:
    """Rejoin cells that were split at a separator in their text; return the numbers of the repaired lines.

    ``sacct`` does not escape separators. The split cell is known only if exactly one field has free text.
    """
    free = [place for place, name in enumerate(header) if name in FREE_TEXT]
    if len(free) != 1:
        return []
    place, mended = free[0], []
    for line, row in enumerate(rows, start=1):
        more = len(row) - len(header)
        if more > 0:
            row[place : place + more + 1] = [delimiter.join(row[place : place + more + 1])]
            mended.append(line)
    return mended


def _check_fields(table: Table) -> None:
    there = table.columns.keys()
    for choice in (
        ({"JobID"}, {"JobIDRaw"}),
        ({"Submit"},),
        ({"ElapsedRaw"}, {"Elapsed"}, {"Start", "End"}),
        ({"ReqTRES"}, {"AllocTRES"}, {"ReqCPUS"}, {"AllocCPUS"}, {"NCPUS"}),
    ):
        if not any(fields <= there for fields in choice):
            needed = " or ".join(" with ".join(sorted(fields, reverse=True)) for fields in choice)
            raise WorkloadError(f"{table.path}:1: the field {needed} needed, found {', '.join(there)}")


def _id_field(table: Table) -> str:
    return "JobID" if "JobID" in table.columns else "JobIDRaw"


def _leave_out_other_lines(sieve: Sieve) -> None:
    """Exclude lines that are not complete jobs."""
    ids = _id_field(sieve.table)
    kinds = sieve.parse(ids, _kind_of_line)
    sieve.leave_out(kinds == STEP, "job step")
    sieve.leave_out(kinds == HEADER, "header line repeated")
    pending, cells = kinds == PENDING_ARRAY, sieve.table.columns[ids]
    sieve.leave_out(pending, "array tasks still pending", "a job that started", cells)
    sieve.note("component of a heterogeneous job: read as a job of its own", kinds == COMPONENT)


def _kind_of_line(job_id: str) -> int:
    match = JOB_ID.fullmatch(job_id.lower())
    if match is None or not job_id.isascii():
        raise UsageError(f"a job number such as 123, 123_4 or 123.batch needed, found {shown(job_id)}")
    kinds = {"header": HEADER, "pending": PENDING_ARRAY, "step": STEP, "component": COMPONENT}
    return next((kind for part, kind in kinds.items() if match[part]), JOB)


# --- times ---------------------------------------------------------------------------------------------


def _times(sieve: Sieve, moment: Parser, default_times: Mapping[str, int]) -> dict[str, ArrayLike]:
    """Return the time columns; exclude jobs that never started or have not ended."""
    columns, rows = sieve.table.columns, len(sieve.table)
    names = sieve.table.columns[_id_field(sieve.table)]
    unknown = np.full(rows, UNKNOWN)
    submit = sieve.parse("Submit", moment)
    start = sieve.parse("Start", moment) if "Start" in columns else None
    end = sieve.parse("End", moment) if "End" in columns else None
    submit = _eligible(sieve, submit, start, moment)
    run = first_known(sieve, (("ElapsedRaw", elapsed), ("Elapsed", elapsed)))
    if start is not None and end is not None:
        run = np.where((run < 0) & (start >= 0) & (end >= 0), end - start, run)
    states = list(map(state, columns["State"])) if "State" in columns else [""] * rows
    never = _among(states, WAITING) | ((run == 0) & _nothing_allocated(sieve, states))
    never |= (start < 0) if start is not None else False
    sieve.leave_out(never, "never started", "a job that started", names)
    running = _among(states, RUNNING) | ((end < 0) if end is not None else False)
    sieve.leave_out(running, "not ended", "a job that ended", names)
    limit = first_known(sieve, (("TimelimitRaw", minutes), ("Timelimit", time_limit)))
    partitions = columns.get("Partition", [""] * rows)
    default = [_longest(names, default_times) for names in partitions]
    times = sieve.times(submit, run, limit, np.array(default, dtype=np.int64))
    sieve.note_rounding(name for name in ("ElapsedRaw", "Elapsed") if name in columns)
    wait = start - submit if start is not None else unknown
    sieve.note("started before it was submitted: no wait recorded", (wait < 0) & (start is not None))
    return {**times, "recorded_wait_time": np.maximum(wait, UNKNOWN)}


def _eligible(sieve: Sieve, submit: Column, start: Column | None, moment: Parser) -> Column:
    """Return the times at which jobs became eligible, if after their submission and not after their start."""
    if "Eligible" not in sieve.table.columns or start is None:
        return submit
    eligible = sieve.parse("Eligible", moment)
    held = (submit >= 0) & (eligible > submit) & (eligible <= start)
    sieve.note("eligible after submission (dependency, hold, array limit): submitted then", held)
    return np.where(held, eligible, submit)


def _longest(names: str, times: Mapping[str, int]) -> int:
    """Return the longest default time of the partitions that a job names; -1 if one has none."""
    found = [times.get(name.strip(), UNKNOWN) for name in names.split(",")]
    return UNKNOWN if UNKNOWN in found else max(found)


def _among(states: list[str], wanted: set[str]) -> Mask:
    return np.fromiter((word in wanted for word in states), dtype=bool, count=len(states))


def _nothing_allocated(sieve: Sieve, states: list[str]) -> Mask:
    """Return a mask of jobs without an allocation; if the log lacks the fields, of cancelled jobs."""
    columns = sieve.table.columns
    if "AllocTRES" in columns:
        return _among([cell.strip() for cell in columns["AllocTRES"]], {""})
    for name in ("AllocNodes", "AllocCPUS", "NCPUS"):
        if name in columns:
            return sieve.parse(name, count) <= 0
    return _among(states, {"CANCELLED"})


def _names(sieve: Sieve) -> tuple[dict[str, Column], dict[str, tuple[str, ...]]]:
    """Return the columns of users, accounts, partitions, QOS and status, and the names for their numbers."""
    columns: dict[str, Column] = {}
    labels: dict[str, tuple[str, ...]] = {}
    for name, field in NAMES.items():
        if field in sieve.table.columns:
            columns[name], labels[name] = sieve.labelled(sieve.table.columns[field], numbers=False)
    if "State" in sieve.table.columns:
        columns["status"] = sieve.parse("State", status)
    if "Restarts" in sieve.table.columns:
        sieve.note("requeued before: submitted then for the last time", sieve.parse("Restarts", count) > 0)
    return columns, labels
