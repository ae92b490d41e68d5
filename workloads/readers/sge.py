"""Reader for the accounting of Grid Engine (SGE, UGE, OGS), one job a line, its fields separated by colons.

The fields are those of the manual page ``sge_accounting(5)``, in the order in which ``sge_rusage.c`` of Grid
Engine 6.2 and Open Cluster Scheduler 9 write them. Version 9 writes a line of JSON with these names instead.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import UsageError
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import read_start
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import AMOUNT_LIMIT
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import duration, whole
from hpcsimkit.workloads.readers.records import Columns, like, read_records
from hpcsimkit.workloads.readers.sieve import Sieve
from hpcsimkit.workloads.readers.tables import EncodedCells, Table, parse, read_text, shown, table_of_records

__all__ = ["SGE_FIELDS", "read_sge"]

SGE_FIELDS = (
    *("qname", "hostname", "group", "owner", "job_name", "job_number", "account", "priority"),
    *("submission_time", "start_time", "end_time", "failed", "exit_status", "ru_wallclock"),
    *(f"ru_{number}" for number in range(17)),
    *("project", "department", "granted_pe", "slots", "task_number", "cpu", "mem", "io", "category", "iow"),
    *("pe_taskid", "maxvmem", "arid", "ar_submission_time"),
)
"""Fields of a line; newer versions have more, which are not read."""

READ = (
    *("qname", "group", "owner", "job_number", "submission_time", "start_time", "end_time", "exit_status"),
    *("project", "granted_pe", "slots", "task_number", "category", "pe_taskid"),
)
NUMBER = like(r"-?[\d.e+-]+")
COLUMNS = Columns(
    read={name: name for name in READ},
    looks={
        **dict.fromkeys(
            (*SGE_FIELDS[5:6], *SGE_FIELDS[7:31], "slots", "task_number", "cpu", "mem", "io"), NUMBER
        ),
        **dict.fromkeys(("iow", "arid", "ar_submission_time"), NUMBER),
        "maxvmem": like(r"[\d.e+-]+[kmgt]?"),
        "category": like(r"none|-.*"),
    },
    free=("job_name", "account", "category"),
)

MEMORY = ("h_vmem", "mem_free", "mem", "virtual_free", "s_vmem")
GPUS = ("gpu", "gpus", "ngpus", "gpu_num")
UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
UNITS |= {unit.lower(): 1000**power for power, unit in enumerate("KMGT", start=1)}
AMOUNT = re.compile(r"(\d{1,15})(?:\.\d*)?([KMGTkmgt]?)")
NAMES = {"user": "owner", "group": "group", "queue": "qname", "partition": "qname"}

START = 1 << 16
"""Number of bytes from which the number of fields is known."""

MOST_FURTHER = 40

MILLISECONDS = 10**11
"""Times above it are in milliseconds or microseconds, as newer versions write them."""


def read_sge(path: str | os.PathLike[str], *, strict: bool = False) -> Workload:
    """Read an accounting file of Grid Engine, plain or compressed.

    - A job of several slots has a pooled request, since the file does not say on how many hosts: its amounts
      are totals over any machines, and ``spread`` is 1.
    - Memory (``h_vmem``, else ``mem_free``) per slot, GPUs, and the requested time (``h_rt``) are in the
      ``category``; without it, the run time is taken.
    - Skipped are jobs that never started, lines of the tasks of parallel jobs (``pe_taskid``), which are
      parts of them, and lines that cannot be parsed.
    - ``status`` is 1 for an exit status of 0, else 0. Queues are also the partitions.

    Parameters
    ----------
    path : str or path
        Path of the file.
    strict : bool
        Whether lines that would be skipped, except tasks of parallel jobs, are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or has no usable job; or, if `strict`, any job is unusable.
    """
    table = _table(path)
    table.needs(READ[:-1], "an accounting file of Grid Engine")
    sieve = Sieve(table, strict)
    cells = table.columns
    whole_jobs = EncodedCells([""], np.zeros(len(table), dtype=np.int64))
    tasks = (
        parse(cells.get("pe_taskid", whole_jobs), lambda task: int(task.upper() not in ("", "NONE")))[0] > 0
    )
    sieve.leave_out(tasks, "task of a parallel job")
    submit, start, end = (sieve.parse(name, _time) for name in ("submission_time", "start_time", "end_time"))
    sieve.leave_out(start <= 0, "never started", "a job that started", cells["start_time"])
    run = np.where(end >= start, end - start, UNKNOWN)
    limit = sieve.parse("category", lambda text: _asked(text, ("h_rt", "s_rt"), duration))
    columns: dict[str, ArrayLike] = dict(sieve.times(submit, run, limit))
    columns["recorded_wait_time"] = np.maximum(start - submit, UNKNOWN)
    slots = sieve.parse("slots", whole)
    sieve.leave_out(slots < 1, "no slots", "at least 1 slot", slots)
    memory = np.maximum(sieve.parse("category", lambda text: _asked(text, MEMORY, _amount)), 0)
    sieve.note("memory unknown: 0 taken", memory == 0)
    beyond = memory.astype(float) * slots > AMOUNT_LIMIT
    amounts = {
        "cpus": slots,
        "gpus": np.maximum(sieve.parse("category", lambda text: _asked(text, GPUS, _amount)), 0),
        "memory": np.where(beyond, AMOUNT_LIMIT + 1, memory * slots),
    }
    sieve.amounts(amounts)
    columns |= {"nodes": np.ones_like(slots), "spread": np.where(slots > 1, 1, UNKNOWN)}
    columns["status"] = np.where(sieve.parse("exit_status", whole) == 0, 1, 0)
    labels: dict[str, tuple[str, ...]] = {}
    for name, field in NAMES.items():
        columns[name], labels[name] = sieve.labelled(cells[field], numbers=False)
    numbers = [
        number if task.strip() in ("0", "", "NONE", "undefined") else f"{number}.{task}"
        for number, task in zip(cells["job_number"], cells["task_number"], strict=True)
    ]
    sieve.used_before(numbers, "job number")
    columns["id"], _, labels["id"] = sieve.ids_of(numbers)
    header = {"UnixStartTime": "0", "TimeZoneString": "UTC"}
    return sieve.workload({**columns, **amounts}, resources=tuple(amounts), labels=labels, header=header)


def _table(path: str | os.PathLike[str]) -> Table:
    """Return the table of a file of either form."""
    if read_start(path, START).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return table_of_records(path, _json_records(path))
    fields = [*SGE_FIELDS, *(f"further_{number}" for number in range(MOST_FURTHER))][: _width(path)]
    return read_records(path, Format.SGE, COLUMNS, fields, separator=":", comment="#")


def _json_records(path: str | os.PathLike[str]) -> Iterator[tuple[int, Mapping[str, str] | str]]:
    """Yield the line and the cells of each record of the JSON form."""
    for number, line in enumerate(read_text(path, Format.SGE).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json_value(line, path)
        except ValueError:
            record = None
        if isinstance(record, dict):
            yield number, {name: "" if record.get(name) is None else f"{record[name]}" for name in READ}
        else:
            yield number, shown(line)


def _width(path: str | os.PathLike[str]) -> int:
    """Return the most frequent number of fields of the first lines."""
    start = read_start(path, START)
    lines = start.decode("latin-1").splitlines()
    lines = lines[:-1] if len(start) >= START else lines  # the last one may be cut off
    counts = Counter(line.count(":") + 1 for line in lines if line.strip() and not line.startswith("#"))
    return counts.most_common(1)[0][0] if counts else len(SGE_FIELDS)


def _time(text: str) -> int:
    """Return a time; 0 and -1 stand for none.

    >>> _time("1709280000"), _time("1709280000123"), _time("1709280000123456"), _time("0")
    (1709280000, 1709280000, 1709280000, 0)
    """
    time = whole(text or "0")
    while time > MILLISECONDS:
        time = (time + 500) // 1000
    return time


def _asked(category: str, names: tuple[str, ...], parser: object) -> int:
    """Return the first of some resources in a category; -1 if there is none that can be read.

    >>> _asked("-U staff -l h_rt=3600,h_vmem=4G -pe mpi 16", ("h_vmem",), _amount)
    4294967296
    """
    found: dict[str, str] = {}
    for part in re.findall(r"-l\s+(\S+)", category):
        found |= dict(pair.split("=", 1) for pair in part.split(",") if "=" in pair)
    for name in names:
        if name in found:
            try:
                return parser(found[name])  # type: ignore[operator]
            except UsageError:
                return UNKNOWN
    return UNKNOWN


def _amount(text: str) -> int:
    found = AMOUNT.fullmatch(text)
    if found is None or not text.isascii():
        raise UsageError(f"an amount such as 4G needed, found {text!r}")
    return min(int(found[1]) * UNITS[found[2]], AMOUNT_LIMIT + 1)
