"""Reader for logs, and writer for workloads and schedules, in the Standard Workload Format (SWF).

The format is described at the Parallel Workloads Archive,
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html: one job per line with 18 numbers, -1 for unknown;
lines that start with ``;`` form the header. Jobs that cannot be simulated are counted, never dropped
silently: see :func:`read_swf`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.files import BYTE_ORDER_MARK, ENDINGS, read_bytes, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import LOG_COLUMNS, REQUIRED_COLUMNS, TIME_LIMIT, Column
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.swf_header import (
    SIZE_KEYS,
    former_steps,
    header_text,
    header_to_write,
    machine_size_of,
    read_header,
    unclear_number,
)
from hpcsimkit.workloads.readers.swf_lines import Lines, parse_lines
from hpcsimkit.workloads.readers.tables import labelled, shown

__all__ = [
    "NO_ESTIMATE",
    "SWF_FIELDS",
    "read_swf",
    "read_swf_lines",
    "swf_bytes",
    "swf_text",
    "swf_workload",
    "write_swf",
]

SWF_FIELDS = (
    "id",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think_time",
)
"""The 18 fields of a line, in order."""

NO_ESTIMATE = "no estimate: run time taken"
"""Note for jobs without a requested time (field 9)."""

EXACT_LIMIT = 2**53
"""Largest number accepted: beyond it double-precision numbers are not exact."""

PROCESSOR_LIMIT = 2**31
LINES_SHOWN = 3

Size = Literal["requested", "allocated"]
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Rule(NamedTuple):
    """A rule that jobs of a log must satisfy to be simulated."""

    reason: str
    needed: str
    found: Numbers
    broken: Mask


# --- reading -------------------------------------------------------------------------------------------


def read_swf(
    path: str | os.PathLike[str],
    *,
    size: Size = "requested",
    machine_size: int | None = None,
    strict: bool = False,
) -> Workload:
    """Read a log in the Standard Workload Format, plain or compressed.

    - ``nodes`` is the number of requested processors (field 8), or of allocated processors (field 5) if field
      8 is unknown; with ``size="allocated"`` in reverse order.
    - ``requested_time`` is field 9, or the run time if field 9 is unknown; at least 1 s.
    - Fractions are rounded to the nearest integer. Names in fields 12 to 16 are numbered, and are labels.
    - Lines with a status (field 11) of 2 to 4 are parts of jobs, and are skipped if the job has a line of its
      own. Other statuses are kept but not interpreted.
    - Skipped are malformed lines and jobs without processors, without a run time (< 0; 0 is valid), with a
      negative submit time, or with a time above `TIME_LIMIT`. ``skipped`` holds their numbers and first
      lines.
    - ``notes`` counts repaired and unusual jobs: run times above requested times, rows out of order.

    Parameters
    ----------
    path : str or path
        Path of the log. Its name without ``.swf`` and ``.gz`` becomes the name of the workload.
    size : {"requested", "allocated"}
        Source of job sizes.
    machine_size : int or None
        Number of processors of the machine, >= 1. None for ``MaxProcs`` of the header, else ``MaxNodes``,
        else unknown. Larger jobs are kept; :meth:`Workload.fitting` removes them.
    strict : bool
        Whether lines that would be skipped and repeated job numbers are an error.

    Returns
    -------
    Workload
        The usable jobs, in the order of the file.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is not SWF, or has no usable job; or, if `strict`, any line is unusable.
    UsageError
        If `size` is invalid, or `machine_size` is below 1.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = Path(folder.name) / "tiny.swf"
    >>> rows = "; MaxProcs: 8\\n" "1 0 -1 50 4 -1 -1 -1 60" + " -1" * 9 + "\\n2 9 -1 -1 4" + " -1" * 13
    >>> _ = log.write_text(rows)
    >>> w = read_swf(log)
    >>> w, w.nodes.tolist(), dict(w.skipped)
    (Workload('tiny', 1 jobs, machine_size=8), [4], {'run time unknown (first: line 3)': 1})
    >>> folder.cleanup()
    """
    if size not in ("requested", "allocated"):
        raise UsageError(f"size must be 'requested' or 'allocated', found {size!r}")
    if machine_size is not None and machine_size < 1:
        raise UsageError(f"machine_size must be 1 or more, found {machine_size}")
    return swf_workload(path, read_swf_lines(path), size=size, machine_size=machine_size, strict=strict)


def read_swf_lines(path: str | os.PathLike[str]) -> Lines:
    """Return the parsed lines of a log, before any rule is applied.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is not SWF, or has no job.
    """
    lines = parse_lines(_checked_content(path))
    if not len(lines.line):
        raise WorkloadError(_no_job_line(path, lines))
    return lines


def swf_workload(
    path: str | os.PathLike[str],
    lines: Lines,
    *,
    size: Size = "requested",
    machine_size: int | None = None,
    strict: bool = False,
) -> Workload:
    """Return the workload of the lines of a log; see :func:`read_swf`."""
    header = read_header(text for _, text in lines.comments)
    nodes, replaced = _nodes(lines.fields, size)
    parts, whole = _parts_of_jobs(lines.fields)
    rules = [rule._replace(broken=rule.broken & ~parts) for rule in _rules(lines.fields, nodes)]
    if strict:
        _refuse_unusable(path, lines, rules, parts)
    skipped, usable = _skip(lines, rules, parts)
    if not usable.any():
        counts = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
        raise WorkloadError(f"{path}: no usable job; skipped: {counts}")
    columns, notes = _columns(lines.fields[:, usable], nodes[usable], replaced[usable], size)
    labels = _named(lines, usable, columns)
    notes["partial executions without a line of the whole job: read as jobs"] = int(whole[usable].sum())
    for key in SIZE_KEYS:
        if text := unclear_number(header, key):
            notes[f"{key} not understood ({shown(text)})"] = 1
    if lines.longer:
        notes["more than 18 fields: the rest ignored"] = lines.longer
    name = Path(path).name
    step = f"read {name} (size={size}): {len(columns['id'])} jobs, {sum(skipped.values())} skipped"
    return Workload(
        columns,
        machine_size=machine_size if machine_size is not None else machine_size_of(header),
        name=re.sub(rf"(\.swf)?{ENDINGS}", "", name, flags=re.IGNORECASE) or name,
        header=header,
        skipped=skipped,
        notes={note: count for note, count in notes.items() if count},
        provenance=(*former_steps(header), step),
        labels=labels,
        lines=lines.line[usable],
    )


def _checked_content(path: str | os.PathLike[str]) -> bytes:
    content = read_bytes(path, Format.SWF, lines=True)
    if not content.removeprefix(BYTE_ORDER_MARK).strip():
        raise WorkloadError(f"{path}: a log in the Standard Workload Format is needed, found an empty file")
    if b"\0" in content:
        raise WorkloadError(f"{path}: a log in the Standard Workload Format is needed, found binary data")
    return content


def _no_job_line(path: str | os.PathLike[str], lines: Lines) -> str:
    if not lines.malformed:
        count = len(lines.comments)
        return f"{path}: no job in it, only {count} header line{'s' * (count != 1)}"
    number, found = lines.malformed[0]
    return f"{path}:{number}: not the Standard Workload Format: 18 numbers a line needed, found {found}"


def _nodes(fields: Numbers, size: Size) -> tuple[Numbers, Mask]:
    """Return the processors of each job, and a mask of jobs for which the other field was used."""
    allocated, requested = fields[4], fields[7]
    wanted, other = (requested, allocated) if size == "requested" else (allocated, requested)
    replaced = (wanted <= 0) & (other > 0)
    return np.where(replaced, other, wanted), replaced


def _rules(fields: Numbers, nodes: Numbers) -> Iterator[Rule]:
    """Yield the rules for usable jobs; the first rule that a job breaks is reported."""
    number, submit, run = fields[0], fields[1], fields[3]
    largest = np.abs(fields).max(axis=0)
    longest = np.maximum.reduce([submit, run, fields[8], fields[17]])
    yield Rule("number beyond 2^53", "numbers up to 2^53", largest, largest > EXACT_LIMIT)
    yield Rule("job number not whole", "a whole job number (field 1)", number, number != np.rint(number))
    yield Rule("submit time negative", "a submit time (field 2) of 0 s or more", submit, submit < 0)
    yield Rule("no processors", "at least 1 processor (fields 8 and 5)", nodes, nodes <= 0)
    wrong = (nodes != np.rint(nodes)) | (nodes > PROCESSOR_LIMIT)
    yield Rule("processors not a whole number up to 2^31", "whole processors up to 2^31", nodes, wrong)
    yield Rule("run time unknown", "a run time (field 4) of 0 s or more", run, run < 0)
    yield Rule(
        "time beyond 10^11 s", "times (fields 2, 4, 9, 18) up to 10^11 s", longest, longest > TIME_LIMIT
    )


def _parts_of_jobs(fields: Numbers) -> tuple[Mask, Mask]:
    """Return masks of lines that are parts of jobs: those of jobs with a line of their own, and others."""
    partial = (fields[10] >= 2) & (fields[10] <= 4)
    if not partial.any():
        return partial, partial
    numbers = fields[0]
    of_whole = partial & np.isin(numbers, numbers[~partial])
    _, place, count = np.unique(numbers, return_inverse=True, return_counts=True)
    return of_whole, partial & ~of_whole & (count[place] > 1)


def _named(lines: Lines, usable: Mask, columns: dict[str, Column]) -> dict[str, tuple[str, ...]]:
    """Number the names in the fields that have any, and return them by column."""
    labels: dict[str, tuple[str, ...]] = {}
    for place, names in lines.names.items():
        name = SWF_FIELDS[place]
        numbers, where = lines.fields[place, usable].tolist(), lines.line[usable].tolist()
        cells = [
            names.get(line, "" if number == UNKNOWN else f"{number:.0f}")
            for number, line in zip(numbers, where, strict=True)
        ]
        column, labels[name] = labelled(cells, numbers=False)
        columns[name] = column
    return {name: each for name, each in labels.items() if each}


def _skip(lines: Lines, rules: list[Rule], parts: Mask) -> tuple[dict[str, int], Mask]:
    """Return the counts of skipped jobs by reason, and a mask of the usable jobs."""
    skipped: dict[str, int] = {}
    if lines.malformed:
        number, found = lines.malformed[0]
        skipped[f"malformed line (first: line {number}: {found})"] = len(lines.malformed)
    usable = ~parts
    if parts.any():
        skipped["partial execution of a job with a line of its own"] = int(parts.sum())
    for rule in rules:
        broken = rule.broken & usable
        usable &= ~broken
        if broken.any():
            where = lines.line[broken]
            shown = ", ".join(map(str, where[:LINES_SHOWN]))
            skipped[f"{rule.reason} (first: line{'s' * (len(where) > 1)} {shown})"] = len(where)
    return skipped, usable


def _refuse_unusable(path: str | os.PathLike[str], lines: Lines, rules: list[Rule], parts: Mask) -> None:
    """Raise an error for the first line of the file that breaks a rule or repeats a job number."""
    problems = [(line, f"18 numbers needed, found {found}") for line, found in lines.malformed[:1]]
    for rule in rules:
        if rule.broken.any():
            row = int(np.argmax(rule.broken))
            found = f"{rule.found[row]:.15g}"
            problems.append((int(lines.line[row]), f"{rule.needed} needed, found {found}"))
    rows = np.flatnonzero(~parts)
    again = _used_before(lines.fields[0, rows])
    if again.any():
        row = int(rows[np.argmax(again)])
        text = f"a job number (field 1) of its own needed, found {lines.fields[0, row]:.0f} again"
        problems.append((int(lines.line[row]), text))
    if problems:
        line, text = min(problems, key=lambda problem: problem[0])
        raise WorkloadError(f"{path}:{line}: {text}")


def _used_before(numbers: Numbers) -> Mask:
    again = np.zeros(len(numbers), dtype=bool)
    if not (np.diff(numbers) > 0).all():
        again[:] = True
        again[np.unique(numbers, return_index=True)[1]] = False
    return again


def _columns(
    fields: Numbers, nodes: Numbers, replaced: Mask, size: Size
) -> tuple[dict[str, Column], dict[str, int]]:
    """Return the columns of the usable jobs, and counts for the notes."""
    estimated = fields[8] > 0
    columns = {
        "id": _whole(fields[0]),
        "submit_time": _whole(fields[1]),
        "run_time": _whole(fields[3]),
        "requested_time": _whole(np.maximum(np.where(estimated, fields[8], fields[3]), 1)),
        "nodes": _whole(nodes),
    }
    times = _fractions(fields[[1, 3]]) | (_fractions(fields[8:9]) & estimated)
    others = _fractions(fields[[2, 6, 9, 10, *range(11, 18)]])
    notes = {
        NO_ESTIMATE: np.count_nonzero(~estimated),
        "run time 0": np.count_nonzero(columns["run_time"] == 0),
        "run time longer than requested": np.count_nonzero(
            (columns["run_time"] > columns["requested_time"]) & estimated
        ),
        "out of order of submission": np.count_nonzero(np.diff(columns["submit_time"]) < 0),
        "job number used before": np.count_nonzero(_used_before(fields[0])),
        f"{size} processors unknown: the other field taken": np.count_nonzero(replaced),
        "times rounded to whole seconds": np.count_nonzero(times),
        "other values rounded to whole numbers": np.count_nonzero(others),
    }
    for name in LOG_COLUMNS:
        values = fields[SWF_FIELDS.index(_field_name(name))]
        if (values != UNKNOWN).any():
            columns[name] = _whole(values)
    return columns, {note: int(count) for note, count in notes.items()}


def _whole(values: Numbers) -> Column:
    whole = np.rint(values).astype(np.int64)
    whole.setflags(write=False)  # so that the workload takes it without copying
    return whole


def _fractions(values: Numbers) -> Mask:
    """Return a mask of the jobs (columns of `values`) with a value that is not an integer."""
    wrong = np.zeros(values.shape[1], dtype=bool)
    for row in values:
        wrong |= row != np.rint(row)
    return wrong


def _field_name(column: str) -> str:
    return "wait_time" if column == "recorded_wait_time" else column


# --- writing -------------------------------------------------------------------------------------------


def write_swf(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Write a workload as SWF, from which equal columns with an equal hash can be read.

    The size of a job is written as requested and as allocated processors. If all requested times are equal to
    the run times, field 9 is -1, since the workload has no estimates. The file is written atomically, and
    compressed if its name ends in ``.gz``.

    Raises
    ------
    WorkloadError
        If the file cannot be written, or the workload has columns without a field in the format.
    """
    foreign = [name for name in workload.columns if name not in (*REQUIRED_COLUMNS, *LOG_COLUMNS)]
    if foreign:
        raise WorkloadError(f"{path}: the Standard Workload Format has no field for {', '.join(foreign)}")
    columns = {_field_name(name): values for name, values in workload.columns.items() if name != "nodes"}
    columns["allocated_processors"] = columns["requested_processors"] = workload.nodes
    if np.array_equal(workload.requested_time, np.maximum(workload.run_time, 1)):
        del columns["requested_time"]
    write_bytes(path, swf_bytes(columns, header_to_write(workload)))


def swf_text(columns: Mapping[str, ArrayLike], header: Mapping[str, str] | None = None) -> str:
    """Return the text of an SWF file.

    Parameters
    ----------
    columns : mapping of str to array, shape (jobs,)
        Values of any of `SWF_FIELDS`, integers or finite fractions (``cpu_time``). Missing fields are -1 on
        every line; a missing ``id`` is 1, 2, ...
    header : mapping of str to str
        Header values by key; each line of a value is written with its key.

    Raises
    ------
    WorkloadError
        If a field is unknown, has the wrong length, or is not numeric.

    Examples
    --------
    >>> print(swf_text({"submit_time": [0, 7], "run_time": [5, 6]}, {"MaxProcs": "8"}), end="")
    ; MaxProcs: 8
    1 0 -1 5 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
    2 7 -1 6 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
    """
    return swf_bytes(columns, header).decode()


def swf_bytes(columns: Mapping[str, ArrayLike], header: Mapping[str, str] | None = None) -> bytes:
    """Return the content of an SWF file; see :func:`swf_text`."""
    arrays = {name: _field_array(name, values) for name, values in columns.items()}
    jobs = max((len(values) for values in arrays.values()), default=0)
    for name, values in arrays.items():
        if len(values) != jobs:
            raise WorkloadError(f"SWF field {name!r} needs {jobs} values, found {len(values)}")
    content = header_text(header or {}).encode()
    if not jobs:
        return content
    arrays.setdefault("id", np.arange(1, jobs + 1))
    wait = _words(arrays["wait_time"]) if "wait_time" in arrays else "-1"
    lines = _joined([BEFORE_WAIT.text(arrays), wait, AFTER_WAIT.text(arrays)], " ")
    return content + memoryview(lines.buffers()[2])


class Fields:
    """Neighbouring fields of the lines, as text.

    The text is kept for a further call with equal arrays that cannot be changed, unless it is very long: the
    schedules of a log differ in few fields.

    Parameters
    ----------
    names : sequence of str
        Names of the fields.
    end : str
        Text after the last one. Default: empty.
    """

    MOST_JOBS = 1_000_000

    def __init__(self, names: Sequence[str], end: str = "") -> None:
        self.names = names
        self.end = end
        self._lock = Lock()
        self._kept: tuple[list[Column | Numbers | None], Any] | None = None

    def text(self, arrays: Mapping[str, Column | Numbers]) -> Any:
        """Return the fields of each line, separated by blanks, as an array of Arrow."""
        mine = [arrays.get(name) for name in self.names]
        with self._lock:  # another thread may be making the same text
            if self._kept is not None and all(map(_equal, mine, self._kept[0])):
                return self._kept[1]
            *others, last = ("-1" if values is None else _words(values) for values in mine)
            text = _joined([*others, _joined([last, self.end], "")], " ")
            if len(text) <= self.MOST_JOBS and all(values is None or _is_fixed(values) for values in mine):
                self._kept = mine, text
            return text


BEFORE_WAIT, AFTER_WAIT = Fields(SWF_FIELDS[:2]), Fields(SWF_FIELDS[3:], "\n")


def _is_fixed(values: Column | Numbers) -> bool:
    """Return whether values cannot be changed, and equal ones have the same text, unlike 0.0 and -0.0."""
    return not values.flags.writeable and values.dtype.kind != "f"


def _equal(one: Column | Numbers | None, other: Column | Numbers | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and np.array_equal(one, other)


def _words(values: Column | Numbers) -> Any:
    """Return numbers as strings of Arrow; fractions, and integers beyond int64, as Python prints them."""
    import pyarrow

    strings = pyarrow.large_string()
    if values.dtype.kind == "f" or values.dtype == np.uint64:
        return pyarrow.array(map(str, values.tolist()), strings)
    buffer = pyarrow.py_buffer(np.ascontiguousarray(values, dtype=np.int64))  # this does not load pandas
    return pyarrow.Array.from_buffers(pyarrow.int64(), len(values), [None, buffer]).cast(strings)


def _joined(columns: Sequence[Any], separator: str) -> Any:
    """Join strings of Arrow row by row, and strings equal in all rows; the latter alone make one."""
    if all(isinstance(column, str) for column in columns):
        return separator.join(columns)
    import pyarrow
    from pyarrow import compute

    wide = [*columns, separator]
    for place, each in enumerate(wide):
        if isinstance(each, str):
            wide[place] = pyarrow.scalar(each, pyarrow.large_string())
    return compute.binary_join_element_wise(*wide)


def _field_array(name: str, values: ArrayLike) -> Column | Numbers:
    if name not in SWF_FIELDS:
        raise WorkloadError(f"unknown SWF field {name!r}; known are {', '.join(SWF_FIELDS)}")
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise WorkloadError(f"SWF field {name!r} needs a list of finite numbers")
    return array
