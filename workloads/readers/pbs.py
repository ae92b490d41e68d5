"""Reader for the accounting of PBS Pro, OpenPBS and Torque.

A line has a date, a kind of record, a job and attributes, separated by semicolons; the record ``E`` of the
end of a job has all that is known of it. See the PBS Professional Administrator's Guide, "Accounting", and
http://docs.adaptivecomputing.com, "Accounting records".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import UsageError
from hpcsimkit.io.formats import Format
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.columns import AMOUNT_LIMIT
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import duration, moment, whole
from hpcsimkit.workloads.readers.sieve import Sieve, per_node
from hpcsimkit.workloads.readers.tables import parse, read_text, shown, table_of_records

__all__ = ["RECORD", "read_pbs"]

RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?);(\w);([^;]*);(.*)")
ATTRIBUTE = re.compile(r'(?:^|\s)([\w.]+)=("[^"]*"|\S*)')
MEMORY = re.compile(r"(\d{1,15})([kmgtp]?)([bw]?)", re.IGNORECASE)

NAMES = {"user": "user", "group": "group", "queue": "queue", "partition": "queue"}
"""Name columns and the attributes; queues are also the partitions."""

ELIGIBLE_LATER = "eligible after submission (dependency, hold, array limit): submitted then"
"""Note for jobs that count as submitted when they became eligible."""


def read_pbs(path: str | os.PathLike[str], *, strict: bool = False) -> Workload:
    """Read accounting files of PBS or Torque, plain or compressed; several may be put one behind the other.

    - A job is a record of its end (``E``); ``skipped`` counts all other records. Each run of a job that was
      run again is a job.
    - Amounts are those of ``Resource_List``: ``select``, ``nodes``, ``ncpus``, ``mem``, ``ngpus``. Totals are
      divided by the number of nodes, rounded up: the different hosts in ``exec_host``, else ``nodect``, else
      the chunks. Jobs with ``place=excl`` have whole nodes.
    - ``requested_time`` is ``Resource_List.walltime``, else the run time. A job that became eligible after
      its creation (``etime``) counts as submitted then.
    - ``status`` is 1 for an ``Exit_status`` of 0, else 0.

    Parameters
    ----------
    path : str or path
        Path of the file.
    strict : bool
        Whether records of ended jobs that would be skipped are an error.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or has no usable job; or, if `strict`, any job is unusable.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "20240301"
    >>> _ = log.write_text(
    ...     "03/01/2024 08:00:10;E;7.head;user=ada group=g queue=batch ctime=1709280000 qtime=1709280000 "
    ...     "etime=1709280000 start=1709280010 exec_host=n1/0*8+n2/0*8 Resource_List.nodes=2:ppn=8 "
    ...     "Resource_List.walltime=01:00:00 Exit_status=0 end=1709281810\\n"
    ... )
    >>> w = read_pbs(log)
    >>> w.id.tolist(), w.run_time.tolist(), w.nodes.tolist(), w.column("cpus").tolist()
    ([7], [1800], [2], [8])
    >>> folder.cleanup()
    """
    sieve = Sieve(table_of_records(path, _records(read_text(path, Format.PBS))), strict)
    cells = sieve.table.columns
    ended = parse(cells["record"], lambda kind: int(kind == "E"))[0] > 0
    sieve.leave_out(~ended, "record of another kind than the end of a job")
    submit, queued, eligible, start, end = (
        sieve.parse(name, moment()) for name in ("ctime", "qtime", "etime", "start", "end")
    )
    submit = np.where(submit < 0, queued, submit)
    later = (eligible > submit) & (eligible <= start) & (submit >= 0)
    sieve.note(ELIGIBLE_LATER, later)
    submit = np.where(later, eligible, submit)
    run = np.where((start >= 0) & (end >= start), end - start, UNKNOWN)
    columns: dict[str, ArrayLike] = dict(sieve.times(submit, run, sieve.parse("walltime", _unless_empty)))
    columns["recorded_wait_time"] = np.maximum(start - submit, UNKNOWN)
    nodes, cpus, gpus, memory = (sieve.parse(name, whole) for name in ("nodes", "cpus", "gpus", "memory"))
    sieve.leave_out(cpus < 1, "no CPUs", "at least 1 CPU", cpus)
    nodes = np.maximum(nodes, 1)
    totals = {"cpus": cpus, "gpus": gpus, "memory": memory}
    uneven = np.logical_or.reduce([total % nodes > 0 for total in totals.values()])
    sieve.note("totals not divisible by the nodes: rounded up", uneven)
    sieve.note("memory unknown: 0 taken", memory <= 0)
    amounts = {name: np.maximum(per_node(total, nodes), 0) for name, total in totals.items()}
    sieve.amounts(amounts)
    columns["nodes"] = nodes
    columns["exclusive"] = np.where(sieve.parse("exclusive", whole) > 0, 1, UNKNOWN)
    columns["status"] = parse(cells["Exit_status"], _status)[0]
    labels: dict[str, tuple[str, ...]] = {}
    for name, field in NAMES.items():
        columns[name], labels[name] = sieve.labelled(cells[field], numbers=False)
    sieve.used_before(cells["id"], "job number")
    columns["id"], _, labels["id"] = sieve.ids("id")
    header = {"UnixStartTime": "0", "TimeZoneString": "UTC"}
    return sieve.workload({**columns, **amounts}, resources=tuple(amounts), labels=labels, header=header)


FIELDS = (
    *("record", "id", "user", "group", "queue", "ctime", "qtime", "etime", "start", "end", "walltime"),
    *("Exit_status", "nodes", "cpus", "gpus", "memory", "exclusive"),
)


def _records(text: str) -> Iterator[tuple[int, Mapping[str, str] | str]]:
    """Yield the line and the cells of each record; of a line that is none, what was found."""
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line:
            continue
        found = RECORD.fullmatch(line)
        if found is None:
            yield number, shown(line)
            continue
        _, kind, job, attributes = found.groups()
        cells = dict.fromkeys(FIELDS, "") | {"record": kind, "id": job.partition(".")[0]}
        if kind != "E":
            yield number, cells
            continue
        values = {name: value.strip('"') for name, value in ATTRIBUTE.findall(attributes)}
        cells |= {name: values[name] for name in FIELDS if name in values}
        yield number, cells | {"walltime": values.get("Resource_List.walltime", ""), **_request(values)}


def _request(values: Mapping[str, str]) -> dict[str, str]:
    """Return the numbers of nodes, CPUs and GPUs, and the memory [bytes], of a job in all, as text."""
    listed = {
        name.removeprefix("Resource_List."): value
        for name, value in values.items()
        if name.startswith("Resource_List.")
    }
    hosts = {
        part.strip("()").partition("/")[0].partition(":")[0]
        for part in values.get("exec_host", "").split("+")
    }
    chunks = [_chunk(part) for part in (listed.get("select") or listed.get("nodes") or "").split("+") if part]
    count = sum(number for number, _ in chunks)

    def total(*names: str) -> int:
        return sum(
            number * next((_amount(each[name]) for name in names if name in each), 0)
            for number, each in chunks
        )

    cpus = total("ncpus", "ppn") or count
    cpus = _amount(listed.get("ncpus", "")) if listed.get("ncpus", "0") != "0" else cpus
    memory = _amount(listed.get("mem", "")) or total("mem") or _amount(listed.get("pmem", "")) * max(cpus, 1)
    gpus = _amount(listed.get("ngpus", "")) or total("ngpus", "gpus")
    nodes = len(hosts - {""}) or _amount(listed.get("nodect", "")) or count
    return {
        "nodes": f"{nodes}",
        "cpus": f"{max(cpus, nodes)}",
        "gpus": f"{gpus}",
        "memory": f"{memory}",
        "exclusive": f"{int('excl' in listed.get('place', ''))}",
    }


def _chunk(text: str) -> tuple[int, dict[str, str]]:
    """Return how often a chunk such as ``2:ncpus=4:mem=8gb`` is requested, and its amounts.

    >>> _chunk("2:ncpus=4:mem=8gb"), _chunk("node7:ppn=4")
    ((2, {'ncpus': '4', 'mem': '8gb'}), (1, {'ppn': '4'}))
    """
    first, *rest = text.split(":")
    number = int(first) if is_whole_number(first, 9) else 1
    parts = rest if "=" not in first else [first, *rest]
    return number, dict(part.split("=", 1) for part in parts if "=" in part)


def _amount(text: str) -> int:
    """Return an amount; units of memory are powers of 1024, a word has 8 bytes; 0 if there is none.

    >>> _amount("8gb"), _amount("16"), _amount("1kw"), _amount("")
    (8589934592, 16, 8192, 0)
    """
    found = MEMORY.fullmatch(text)
    if found is None or not text.isascii():
        return 0
    power = " kmgtp".index(found[2].lower() or " ")
    return min(int(found[1]) * 1024**power * (8 if found[3].lower() == "w" else 1), AMOUNT_LIMIT + 1)


def _unless_empty(text: str) -> int:
    return duration(text) if text else UNKNOWN


def _status(text: str) -> int:
    try:
        return int(whole(text) == 0)
    except UsageError:
        return UNKNOWN
