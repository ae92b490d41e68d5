"""Reader for any log, with detection of the format from the beginning of the file."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.catalogue import Catalogue
from hpcsimkit.io.files import read_bytes, read_start
from hpcsimkit.io.formats import Format
from hpcsimkit.io.known_formats import Start, named_format
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.batsim import read_batsim
from hpcsimkit.workloads.readers.gpu_logs import read_eagle, read_openb, read_philly
from hpcsimkit.workloads.readers.gwf import read_gwf
from hpcsimkit.workloads.readers.job_table import read_job_table
from hpcsimkit.workloads.readers.parquet_logs import (
    FDATA_FIELDS,
    PARQUET_MAGIC,
    PM100_FIELDS,
    parquet_columns,
    read_fdata,
    read_pm100,
)
from hpcsimkit.workloads.readers.pbs import RECORD, read_pbs
from hpcsimkit.workloads.readers.sacct import NO_HEADER, read_sacct
from hpcsimkit.workloads.readers.sge import read_sge
from hpcsimkit.workloads.readers.sieve import FORMAT
from hpcsimkit.workloads.readers.slurm_json import read_slurm_json
from hpcsimkit.workloads.readers.swf import read_swf
from hpcsimkit.workloads.readers.tables import shown

__all__ = ["LOG_FORMATS", "READERS", "LogFormat", "options_of", "read_log"]


START = 1 << 16
"""Number of bytes used to detect the format of a log."""


class LogFormat(NamedTuple):
    """A log format.

    Parameters
    ----------
    name : str
        Name of the format.
    read : callable
        Reader of the format.
    marks : tuple of str
        Field names, any of which identifies the format if it is in the header line.
    looks : callable, optional
        Check of the beginning of a file, a :class:`~hpcsimkit.io.known_formats.Start`, that is
        true for a file of the format; by default only `marks` tell it.
    mark : str
        Mark that tells the format, in words, for pages; by default the field names.
    requests : str
        Requests of the jobs of such a log, in words, for pages.

    Examples
    --------
    >>> from hpcsimkit.workloads import read_swf
    >>> own = LogFormat("mine", read_swf, marks=("JobName", "Submit"))
    >>> own.name, own.marks
    ('mine', ('JobName', 'Submit'))
    """

    name: str
    read: Callable[..., Workload]
    marks: tuple[str, ...] = ()
    looks: Callable[[Start], Any] | None = None
    mark: str = ""
    requests: str = ""

    def is_of(self, start: Start) -> bool:
        """Return whether a file with such a beginning is of this format."""
        if self.looks is not None and self.looks(start):
            return True
        fields = start.fields
        return any(mark.lower() in fields for mark in self.marks) and not start.first.startswith(";")


def _is_swf(start: Start) -> Any:
    return re.match(r";|[-+.\d][-+.\deE]*[\s,;|]", start.first) or SWF_NAME.search(start.name)


def _is_table(*fields: str) -> Callable[[Start], bool]:
    return lambda start: {*fields} <= {*start.fields} and not start.first.startswith(";")


GRID_LINE = re.compile(r"^\s*\d+(?:\s+-?[\w.+:/-]+){28}\s*$", re.MULTILINE)
"""A line of the Grid Workloads Format."""

SWF_NAME = re.compile(r"\.swf(\.\w+)?$", re.IGNORECASE)
EACH_NODE = "CPUs, GPUs and their models, memory, on each node"

SWF = LogFormat(
    "Standard Workload Format",
    read_swf,
    looks=_is_swf,
    mark="a comment (`;`) or numbers",
    requests="processors",
)
WITH_MARKS = (
    LogFormat(
        "job table",
        read_job_table,
        ("ActualDuration",),
        requests="CPUs, GPUs and their models, memory, on one machine or several, or pooled",
    ),
    LogFormat("openb pod list", read_openb, ("gpu_milli",), requests="thousandths of CPUs and GPUs, memory"),
    LogFormat(
        "Philly (MURI)",
        read_philly,
        looks=_is_table("num_gpu", "duration"),
        mark="columns `num_gpu`, `duration`",
        requests="GPUs, pooled",
    ),
    LogFormat("Eagle", read_eagle, ("wallclock_req",), requests="CPUs, GPUs, memory on each node"),
    LogFormat("sacct --parsable2", read_sacct, ("JobID", "JobIDRaw"), requests=EACH_NODE),
    LogFormat(
        "sacct --json, squeue --json",
        read_slurm_json,
        looks=lambda start: (
            "jobs" in start.keys and {"meta", "job_id"} & {*start.keys} and "profiles" not in start.keys
        ),
        mark="JSON with `jobs` and `meta`",
        requests=EACH_NODE,
    ),
    LogFormat(
        "Batsim",
        read_batsim,
        looks=lambda start: {"nb_res"} <= {*start.keys} or {"subtime", "profile"} <= {*start.keys},
        mark="JSON with `nb_res`, `jobs`, `profiles`",
        requests="resources of the platform, counted",
    ),
    LogFormat(
        "Grid Workloads Format",
        read_gwf,
        looks=lambda start: (
            GRID_LINE.match(start.first) or (start.first[:1] == "#" and GRID_LINE.search(start.text))
        ),
        mark="comments (`#`) and lines of 29 fields",
        requests="processors",
    ),
    LogFormat(
        "PBS accounting",
        read_pbs,
        looks=lambda start: RECORD.match(start.first),
        mark="`03/01/2024 08:00:00;E;`",
        requests="CPUs, GPUs, memory on each node",
    ),
    LogFormat(
        "Grid Engine accounting",
        read_sge,
        looks=lambda start: (
            re.search(
                r"^[^:#\n]+(?::[^:\n]*){4}:\d+:[^:\n]*:-?\d+:\d{9,13}:\d+:\d+:", start.text, re.MULTILINE
            )
            or {"job_number", "submission_time", "granted_pe"} <= {*start.keys}
        ),
        mark="fields separated by `:`, the sixth a job number, three Unix times; or JSON with `job_number`",
        requests="slots, GPUs, memory, pooled",
    ),
    LogFormat(
        "PM100",
        read_pm100,
        looks=lambda start: _has_columns(start, PM100_FIELDS),
        mark="Parquet with `num_cores_req`",
        requests="CPUs, GPUs, memory on each node",
    ),
    LogFormat(
        "F-DATA",
        read_fdata,
        looks=lambda start: _has_columns(start, FDATA_FIELDS),
        mark="Parquet with `nnumr`, `elpl`",
        requests="nodes",
    ),
)
LOG_FORMATS = (SWF, *WITH_MARKS)
"""Formats that :func:`read_log` detects: those after SWF in this order, plug-ins with marks, and SWF."""

SACCT = next(form for form in LOG_FORMATS if form.read is read_sacct)

READERS: Catalogue[Any] = Catalogue(
    "reader",
    "hpcsimkit.readers",
    {
        "swf": "hpcsimkit.workloads.readers.swf:read_swf",
        "job-table": "hpcsimkit.workloads.readers.job_table:read_job_table",
        "sacct": "hpcsimkit.workloads.readers.sacct:read_sacct",
        "slurm-json": "hpcsimkit.workloads.readers.slurm_json:read_slurm_json",
        "gwf": "hpcsimkit.workloads.readers.gwf:read_gwf",
        "pbs": "hpcsimkit.workloads.readers.pbs:read_pbs",
        "sge": "hpcsimkit.workloads.readers.sge:read_sge",
        "batsim": "hpcsimkit.workloads.readers.batsim:read_batsim",
        "openb": "hpcsimkit.workloads.readers.gpu_logs:read_openb",
        "philly": "hpcsimkit.workloads.readers.gpu_logs:read_philly",
        "eagle": "hpcsimkit.workloads.readers.gpu_logs:read_eagle",
        "pm100": "hpcsimkit.workloads.readers.parquet_logs:read_pm100",
        "f-data": "hpcsimkit.workloads.readers.parquet_logs:read_fdata",
    },
)
"""Readers by name: functions ``read(path)``, or formats."""


def read_log(path: str | os.PathLike[str], form: LogFormat | None = None, **options: Any) -> Workload:
    """Read a log in any supported format, plain or compressed (gzip, xz, zstd, bzip2).

    The format is detected from the beginning of the file: a comment (``;``) or numbers indicate SWF, as does
    the file name ending ``.swf``; all others have a mark of their own in `LOG_FORMATS`. A file of a known
    format without a reader is refused with what to do.

    Parameters
    ----------
    path : str or path
        Path of the log.
    form : LogFormat, optional
        Format of the log; by default it is detected.
    **options
        Options of the reader, such as :func:`read_swf`, :func:`read_job_table`, :func:`read_sacct`. With
        `fields`, the log is an export of ``sacct`` without a header.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or its format is not supported.
    UsageError
        If the reader has no such option.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "day.csv"
    >>> _ = log.write_text("Submit,ActualDuration,ReqCPUs\\n0,60,4\\n")
    >>> read_log(log).provenance
    ('read day.csv: 1 jobs, 0 skipped',)
    >>> folder.cleanup()
    """
    form = form or (SACCT if options.get("fields") else _format_of(path))
    known = _options_of(form)
    for option in options:
        if option not in known:
            raise UsageError(
                f"{path}: the options of a log of the form {form.name!r} are {', '.join(known)}, "
                f"found {option!r}"
            )
    workload = form.read(path, **options)
    if not isinstance(workload, Workload):
        raise UsageError(f"{path}: the reader {form.name!r} needs to return a Workload, found {workload!r}")
    if form is SWF:
        return workload
    return replace(workload, header={FORMAT: form.name, **workload.header})


def options_of(path: str | os.PathLike[str], form: LogFormat | None = None) -> list[str]:
    """Return the names of the options of the reader of a log; the errors are those of :func:`read_log`."""
    return _options_of(form or _format_of(path))


def _plugged() -> Iterator[LogFormat]:
    """Yield the formats of plug-ins, each imported when all before it do not match."""
    for name in READERS.keys() - READERS.places.keys():
        if isinstance(form := READERS[name], LogFormat):
            yield form


def _options_of(form: LogFormat) -> list[str]:
    return [name for name in inspect.signature(form.read).parameters if name != "path"]


def _format_of(path: str | os.PathLike[str]) -> LogFormat:
    content = read_start(path, START)
    start = Start.of(str(path), content)
    if content.startswith(PARQUET_MAGIC):
        start = start._replace(content=read_bytes(path, Format.PARQUET_LOG))  # its columns are at its end
    if not SWF_NAME.search(start.name):
        if named := named_format(start.name, start.content):
            raise WorkloadError(f"{path}: {named.refusal}")
        for form in (*WITH_MARKS, *_plugged()):
            if form.is_of(start):
                return form
        if _has_jobs_of_sacct(start):
            raise WorkloadError(f"{path}:1: sacct without a header: {NO_HEADER}")
    if SWF.is_of(start):
        return SWF
    understood = ", ".join(form.name for form in LOG_FORMATS)
    found = shown(start.first) if start.first else "an empty file"
    raise WorkloadError(f"{path}: a log of a form that is understood ({understood}) needed, found {found}")


def _has_jobs_of_sacct(start: Start) -> bool:
    """Return whether the first line is a job of ``sacct``: a job number, a state and a time among cells."""
    cells = [cell.strip() for cell in re.split(r"[|;\t,]", start.first)]
    if not any(JOB.fullmatch(cell) for cell in cells[:4]):
        return False
    return any(STATE.fullmatch(cell) for cell in cells) and any(TIME.fullmatch(cell) for cell in cells)


JOB = re.compile(r"\d+(_(\d+|\[.*))?(\+\d+)?(\..+)?")
STATE = re.compile(
    r"(COMPLETED|FAILED|TIMEOUT|CANCELLED( by \d+)?\+?|OUT_OF_MEMORY|NODE_FAIL|PREEMPTED|RUNNING|PENDING"
    r"|REQUEUED)"
)
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d.*|\d{10}(\.\d+)?|Unknown")


def _has_columns(start: Start, names: tuple[str, ...]) -> bool:
    if not start.content.startswith(PARQUET_MAGIC):
        return False
    return {*names} <= {*parquet_columns(start.content, start.name)}
