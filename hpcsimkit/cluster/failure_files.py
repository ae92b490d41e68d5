"""Failure logs: when which nodes were out of order.

Three kinds of files are read, plain or compressed, and told apart by their headers:

- a table with a header (CSV or another usual separator) and the columns ``start`` and ``end``; ``machine``
  (or ``node``), a name or list such as ``node[1-4]``, or ``nodes``, a number of homogeneous nodes; and
  ``state``, if there is one. Times are seconds of the clock of the log of jobs, or dates in its local time.
- the output of ``sacctmgr show event``, with ``-P`` or as a table of fixed width. ``NodeName, TimeStart,
  TimeEnd, State`` are read, and ``Cluster`` if there are several.
- the failure data of LANL (LA-UR-05-7318): ``System, nodenum, Prob Started, Prob Fixed``, with dates such as
  ``6/21/2005 10:54``. Numbers of nodes are those of machines, from 0, if no machine has such a name.

In the states ``DOWN, FAIL, NO_RESPOND, UNKNOWN``, and without a state, the jobs on a node are stopped; with
``DRAIN`` or ``MAINT`` they end first. Rows with other states (``POWERED_DOWN``, ``PLANNED`` ...) are left out
and counted, as are rows without a node (events of the whole cluster), those that end when they begin, and
cells that cannot be parsed. An outage without an end lasts until the last submission of the log.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.outages import Outage, Outages, OutageSource
from hpcsimkit.cluster.scontrol import expanded
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.formats import Format
from hpcsimkit.io.units import is_whole_number
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import moment
from hpcsimkit.workloads.readers.local_time import calendar_of
from hpcsimkit.workloads.readers.records import Columns, like, read_records
from hpcsimkit.workloads.readers.sieve import Sieve
from hpcsimkit.workloads.readers.tables import EncodedCells, Table, read_text, shown

__all__ = ["FailureLog", "read_failures"]

NAMES = {
    "start": ("start", "start_time", "timestart", "prob started"),
    "end": ("end", "end_time", "timeend", "prob fixed"),
    "machine": ("machine", "node", "nodename", "nodenum"),
    "nodes": ("nodes", "count"),
    "state": ("state",),
    "cluster": ("cluster", "system"),
}
"""Names of the columns that are read, in lower case; of several, the first one counts."""

UNIT = re.compile(r"\s*\(mm/dd/yy hh:mm\)$", re.IGNORECASE)
OF_LANL = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{2}|\d{4}) (\d{1,2}):(\d{2})(?::(\d{2}))?")
RULED = re.compile(r"-+( +-+)*\s*")
NUMBER = re.compile(r"\d{1,12}")
OPEN = -1
UNKNOWN = ("", "unknown", "none")

STOPS, DRAINS, OTHER = range(3)


@dataclass(frozen=True)
class FailureLog(OutageSource):
    """The outages of a failure log.

    Parameters
    ----------
    name : str
        Name of the file.
    listed : sequence of Outage
        The outages, in the order of the file, each of one machine or of some homogeneous nodes; their times
        are seconds of the clock of a log of jobs or, if `dated`, seconds of local time since 1970, and their
        ends are -1 if they are unknown.
    dated : bool
        Whether times are dates.
    notes : mapping of str to int
        Number of rows that were left out, by reason.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload, make
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 9], "nodes": [1, 1]}, machine_size=2)
    >>> log = FailureLog("failures.csv", [Outage(3, 5), Outage(7, 8, machines=("n1",))], dated=False)
    >>> Simulation(w, make("fcfs"), outages=log).run().end_time.tolist()
    [9, 17]
    """

    name: str
    listed: Sequence[Outage]
    dated: bool
    notes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "listed", tuple(self.listed))

    def on(self, workload: Workload, cluster: AnyCluster) -> Outages:
        """Return the outages of a cluster, in seconds of the clock of a log of jobs.

        Raises
        ------
        UsageError
            The cluster has none of the machines, or fewer homogeneous nodes than machines are named, each of
            which is one of them.
        WorkloadError
            The failure log has dates, and the log of jobs has none.
        """
        shift = _shift_of(workload) if self.dated else _same
        last = int(workload.submit_time.max(initial=0)) + 1
        numbers = cluster.numbers if isinstance(cluster, Machines) else {}
        found = []
        for each in self.listed:
            if not numbers or _known(each.machines, numbers):
                end = last if each.end == OPEN else shift(each.end)
                found.append(replace(each, start=shift(each.start), end=end))
        if self.listed and not found:
            one = self.listed[0].machines or ("no name",)
            raise UsageError(f"{self.name}: machines of {cluster!r} are needed, found {one[0]}")
        named = {name for each in self.listed for name in each.machines}
        if not numbers and len(named) > cluster.size:
            needed = f"at most one machine for each of {cluster.size} nodes is needed"
            raise UsageError(f"{self.name}: {needed}, found {len(named)}")
        return Outages(
            [replace(each, machines=_known(each.machines, numbers)) for each in _one_after_another(found)]
        )

    def unknown_on(self, cluster: AnyCluster) -> int:
        """Return the number of outages of machines that a cluster does not have."""
        numbers = cluster.numbers if isinstance(cluster, Machines) else {}
        return sum(not _known(each.machines, numbers) for each in self.listed) if numbers else 0

    def notes_on(self, cluster: AnyCluster) -> dict[str, int]:
        """Return what is left out on a cluster, and how often."""
        unknown = self.unknown_on(cluster)
        own = {f"{self.name}: outage of an unknown machine: left out": unknown} if unknown else {}
        return {f"{self.name}: {text}": count for text, count in self.notes.items()} | own

    def outages(self, cluster: AnyCluster, begin: int, rng: np.random.Generator) -> Iterator[Outage]:
        """Raise an error: the clock of a log of jobs is needed, see :meth:`on`."""
        raise UsageError(f"{self.name}: a failure log needs the clock of a workload: call on()")

    @property
    def record(self) -> dict[str, object]:
        """The name of the file, and the number and the hash of the outages."""
        words = repr([(each.start, each.end, each.machines, each.nodes, each.drain) for each in self.listed])
        digest = hashlib.sha256(words.encode()).hexdigest()[:16]
        return {"file": self.name, "outages": len(self.listed), "sha256": digest}


def _same(time: int) -> int:
    return time


def _shift_of(workload: Workload) -> Callable[[int], int]:
    """Return the function from local time since 1970 to the clock of a log."""
    clock = calendar_of(workload)
    if clock is None:
        raise WorkloadError(f"{workload.name}: a log with dates is needed for a failure log with dates")
    start, zone = clock.start, clock.zone

    def shifted(local: int) -> int:
        return int(datetime.fromtimestamp(local, UTC).replace(tzinfo=zone).timestamp()) - start

    return shifted


def _known(machines: Sequence[str | int], numbers: Mapping[str | int, int]) -> tuple[str | int, ...]:
    """Return the machines that exist, by name, else by number."""
    found: list[str | int] = []
    for name in machines:
        if name in numbers:
            found.append(name)
        elif isinstance(name, str) and is_whole_number(name) and int(name) in numbers:
            found.append(int(name))
    return tuple(found)


def _one_after_another(outages: Sequence[Outage]) -> Iterator[Outage]:
    """Yield outages by their beginning; one that begins during another of the same machine follows it."""
    over: dict[tuple[str | int, ...], int] = {}
    for each in sorted(outages, key=lambda outage: (outage.start, outage.drain)):
        start = max(each.start, over.get(each.machines, each.start)) if each.machines else each.start
        if start < each.end:
            over[each.machines] = each.end
            yield replace(each, start=start)


# --- reading -----------------------------------------------------------------------------------------------


def read_failures(path: str | os.PathLike[str], *, cluster: str | None = None) -> FailureLog:
    """Read a failure log; see :mod:`hpcsimkit.cluster.failure_files`.

    Parameters
    ----------
    path : str or path
        Path of the file.
    cluster : str, optional
        Name of the cluster (Slurm) or number of the system (LANL) whose outages are read, in a file of
        several.

    Raises
    ------
    WorkloadError
        The file cannot be read, lacks a column, or has no usable outage.
    UsageError
        The file has several clusters, and none is chosen, or there is no such cluster.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "failures.csv"
    >>> _ = file.write_text("machine,start,end\\nnode[1-2],100,250\\nnode2,300,300\\n")
    >>> log = read_failures(file)
    >>> [(each.machines, each.start, each.end) for each in log.listed]
    [(('node1',), 100, 250), (('node2',), 100, 250)]
    >>> dict(log.notes)
    {'without any time (first: line 3)': 1}
    >>> folder.cleanup()
    """
    table = _table(path)
    if not len(table) and not table.malformed:
        raise WorkloadError(f"{path}: outages are needed, found only a header line")
    sieve = Sieve(table, strict=False)
    _choose(sieve, cluster)
    kinds = _kinds(sieve)
    given = {cell.strip() for cell in table.columns["start"]}
    dated = not all(NUMBER.fullmatch(cell) or cell.lower() in UNKNOWN for cell in given)
    start = sieve.parse("start", _moment if dated else _second)
    end = sieve.parse("end", _moment if dated else _second)
    sieve.leave_out(start == OPEN, "without a beginning", "a beginning", table.columns["start"])
    sieve.leave_out((end != OPEN) & (end <= start), "without any time", "a later end", table.columns["end"])
    counts = sieve.parse("nodes", _count) if "nodes" in table.columns else np.ones(len(table), dtype=np.int64)
    if "machine" in table.columns:
        named = table.columns["machine"]
        empty = np.array([not cell.strip() for cell in named], dtype=bool)
        if "nodes" not in table.columns:
            sieve.leave_out(empty, "without a node", "a node", named)
    notes = dict(sieve.skipped)
    listed: list[Outage] = []
    for row in np.flatnonzero(sieve.kept).tolist():
        cell = table.columns["machine"][row].strip() if "machine" in table.columns else ""
        times = int(start[row]), int(end[row])
        drain = bool(kinds[row] == DRAINS)
        if not cell:
            listed.append(Outage(*times, nodes=int(counts[row]), drain=drain))
        else:
            listed += [Outage(*times, machines=(name,), drain=drain) for name in _names(cell, sieve, row)]
    if not listed:
        reasons = "; ".join(f"{count} {reason}" for reason, count in notes.items())
        raise WorkloadError(f"{path}: outages are needed, found none: {reasons or 'no rows'}")
    if unended := int(np.count_nonzero(sieve.kept & (end == OPEN))):
        notes["without an end: until the last submission"] = unended
    return FailureLog(os.path.basename(path), listed, dated, notes)  # noqa: PTH119 - also of a text


def _names(cell: str, sieve: Sieve, row: int) -> list[str]:
    """Return the names of a list of nodes such as ``node[1-4]``."""
    try:
        return list(expanded(cell))
    except UsageError as error:
        raise WorkloadError(f"{sieve.table.path}:{sieve.table.line[row]}: {error}") from None


def _table(path: str | os.PathLike[str]) -> Table:
    """Return the table with the columns that are read, under their names here."""
    text = read_text(path, Format.FAILURES)
    lines = text.lstrip("\n").split("\n", 2)
    if len(lines) > 1 and RULED.fullmatch(lines[1]):
        table = _of_fixed_width(text, path)
    else:
        looks = {"timestart": like(r"\d{4}-.*|unknown"), "timeend": like(r"\d{4}-.*|unknown")}
        table = read_records(path, Format.FAILURES, Columns(looks=looks, free=("reason",)))
    spelt = {UNIT.sub("", name).strip().lower(): name for name in table.columns}
    chosen = {}
    for name, known in NAMES.items():
        if there := next((each for each in known if each in spelt), None):
            chosen[name] = table.columns[spelt[there]]
    for needed in (("start",), ("end",), ("machine", "nodes")):
        if not chosen.keys() & set(needed):
            words = " or ".join(" or ".join(NAMES[name][:3]) for name in needed)
            found = ", ".join(map(shown, table.columns))
            raise WorkloadError(f"{path}:1: a column {words} needed, found {found}")
    if "prob started" in spelt:  # LANL's column "nodes" has the size of the system
        chosen.pop("nodes", None)
    return replace(table, columns=chosen, unread=())


def _of_fixed_width(text: str, path: str | os.PathLike[str]) -> Table:
    """Return the table of lines of fixed width, whose second line consists of rules."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip())
    parts = [match.span() for match in re.finditer(r"-+", lines[first + 1])]
    names = [lines[first][begin:end].strip() for begin, end in parts]
    rows = [(number, line) for number, line in enumerate(lines[first + 2 :], first + 3) if line.strip()]
    columns = {
        name: [line[begin:end].strip() for _, line in rows]
        for name, (begin, end) in zip(names, parts, strict=True)
    }
    numbers = np.array([number for number, _ in rows], dtype=np.int64)
    return Table(str(path), columns, numbers, len(names), (), ())


def _choose(sieve: Sieve, cluster: str | None) -> None:
    """Leave out the rows of other clusters; several clusters need a choice."""
    columns = sieve.table.columns
    cells = columns.get("cluster", EncodedCells([""], np.zeros(len(sieve.table), dtype=np.int64)))
    names = list(dict.fromkeys(cell.strip() for cell in cells if cell.strip()))
    if cluster is None and len(names) > 1:
        some = ", ".join(names[:8])
        raise UsageError(f"{sieve.table.path}: one cluster must be chosen of {some}: 'FILE, {names[0]}'")
    if cluster is not None and cluster not in names:
        some = ", ".join(names[:8]) or "any name"
        raise UsageError(f"{sieve.table.path}: a cluster of {some} needed, found {cluster!r}")
    if cluster is not None:
        others = np.array([cell.strip() != cluster for cell in cells], dtype=bool)
        sieve.leave_out(others, "of another cluster")


def _kinds(sieve: Sieve) -> NDArray[np.int64]:
    """Return what happens to the jobs of each row; leave out rows in which nodes are not out of order."""
    cells = sieve.table.columns.get("state")
    if cells is None:
        return np.full(len(sieve.table), STOPS)
    kinds = np.array([_kind(cell) for cell in cells], dtype=np.int64)
    for state in sorted({cell.strip() for cell in cells if _kind(cell) == OTHER}):
        here = np.array([cell.strip() == state for cell in cells], dtype=bool)
        sieve.leave_out(here, f"in the state {shown(state)}")
    return kinds


def _kind(state: str) -> int:
    words = state.upper()
    if "POWER" in words:
        return OTHER
    if not words.strip() or any(word in words for word in ("DOWN", "FAIL", "NO_RESPOND", "UNKNOWN")):
        return STOPS
    return DRAINS if "DRAIN" in words or "DRNG" in words or "MAINT" in words else OTHER


def _second(cell: str) -> int:
    if cell.lower() in UNKNOWN:
        return OPEN
    if not NUMBER.fullmatch(cell) or int(cell) > TIME_LIMIT:
        raise UsageError(f"a whole number of seconds needed, found {shown(cell)}")
    return int(cell)


_moment_of = moment()


def _moment(cell: str) -> int:
    """Return the seconds of local time since 1970 of a date; -1 for none."""
    if match := OF_LANL.fullmatch(cell):
        month, day, year, hour, minute, second = (int(group or 0) for group in match.groups())
        year += 0 if year >= 100 else 1900 + 100 * (year < 70)
        cell = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    return _moment_of(cell)


def _count(cell: str) -> int:
    if not is_whole_number(cell) or not 1 <= int(cell) < 2**31:
        raise UsageError(f"a number of nodes, at least 1, needed, found {shown(cell)}")
    return int(cell)
