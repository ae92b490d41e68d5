"""Reader for any log, with detection of the format from the first line."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.catalogue import Catalogue
from hpcsimkit.io.files import read_start
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.gpu_logs import read_eagle, read_openb, read_philly
from hpcsimkit.workloads.readers.job_table import read_job_table
from hpcsimkit.workloads.readers.sacct import read_sacct
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
    """

    name: str
    read: Callable[..., Workload]
    marks: tuple[str, ...] = ()


SWF = LogFormat("Standard Workload Format", read_swf)
LOG_FORMATS = (
    SWF,
    LogFormat("job table", read_job_table, ("ActualDuration",)),
    LogFormat("sacct --parsable2", read_sacct, ("JobID", "JobIDRaw")),
    LogFormat("openb pod list", read_openb, ("gpu_milli",)),
    LogFormat("Philly (MURI)", read_philly, ("num_gpu",)),
    LogFormat("Eagle", read_eagle, ("wallclock_req",)),
)
"""Formats that :func:`read_log` detects, in this order; then those of plug-ins that have marks."""

READERS: Catalogue[Any] = Catalogue(
    "reader",
    "hpcsimkit.readers",
    {
        "swf": "hpcsimkit.workloads.readers.swf:read_swf",
        "job-table": "hpcsimkit.workloads.readers.job_table:read_job_table",
        "sacct": "hpcsimkit.workloads.readers.sacct:read_sacct",
        "openb": "hpcsimkit.workloads.readers.gpu_logs:read_openb",
        "philly": "hpcsimkit.workloads.readers.gpu_logs:read_philly",
        "eagle": "hpcsimkit.workloads.readers.gpu_logs:read_eagle",
    },
)
"""Readers by name: functions ``read(path)``, or formats."""


def read_log(path: str | os.PathLike[str], form: LogFormat | None = None, **options: Any) -> Workload:
    """Read a log in any supported format, plain or gzip.

    The format is detected from the first line that is not blank: a comment (``;``) or numbers indicate SWF,
    as does the file name ending ``.swf``; a header line names the fields of one of `LOG_FORMATS`.

    Parameters
    ----------
    path : str or path
        Path of the log.
    form : LogFormat, optional
        Format of the log; by default it is detected.
    **options
        Options of the reader: see :func:`read_swf`, :func:`read_job_table`, :func:`read_sacct`,
        :func:`read_openb`, :func:`read_philly`, :func:`read_eagle`.

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
    form = form or _format_of(path)
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
    return workload


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
    start = read_start(path, START).lstrip(b"\xef\xbb\xbf \t\r\n")[:8192]
    first = start.partition(b"\n")[0].decode("utf-8", "replace").strip()
    fields = {field.lower() for field in re.split(r"\W+", first)}
    for form in (*LOG_FORMATS, *_plugged()):
        if any(mark.lower() in fields for mark in form.marks) and not first.startswith(";"):
            return form
    if re.match(r";|[-+.\d][-+.\deE]*\s", first) or re.search(r"\.swf(\.gz)?$", str(path), re.IGNORECASE):
        return SWF
    understood = ", ".join(form.name for form in LOG_FORMATS)
    found = shown(first) if first else "an empty file"
    raise WorkloadError(f"{path}: a log of a form that is understood ({understood}) needed, found {found}")
