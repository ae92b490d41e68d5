"""A workload: the jobs of a log as immutable columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.columns import (
    HASHED_COLUMNS,
    JOB_COLUMNS,
    OPTIONAL_COLUMNS,
    REQUIRED_COLUMNS,
    TEXT_COLUMNS,
    TIME_LIMIT,
    Column,
    checked_columns,
    numbered_texts,
)
from hpcsimkit.jobs.frames import read_frame
from hpcsimkit.jobs.job import UNKNOWN, Job, Request
from hpcsimkit.jobs.views import views

if TYPE_CHECKING:
    import pandas

__all__ = ["SCALED", "Column", "Workload"]

SCALED = "load x"
"""Beginning of the provenance step of a scaled load."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs as columns of whole numbers, one row per job, in the order of the log.

    All times are whole seconds of the log's own clock. Every operation returns a new workload.

    Parameters
    ----------
    columns : mapping of str to array of int64, shape (jobs,)
        Columns ``submit_time``, ``run_time`` and ``nodes``, which are required; ``requested_time`` (default:
        the run time, at least 1 s) and ``id`` (default: 1, 2, ...); any of `OPTIONAL_COLUMNS` (default: -1);
        and the columns named in `resources`, >= 0: requested amounts (memory in bytes), per node, or in total
        where ``spread`` is 1. ``dependency`` and ``licenses`` may be texts, which become labels.
    machine_size : int or None
        Number of nodes (or processors) of the machine on which the log was recorded.
    name : str
        Name of the workload in tables and figures.
    header : mapping of str to str
        Header lines of the log.
    skipped : mapping of str to int
        Number of skipped rows by reason.
    notes : mapping of str to int
        Number of repaired or otherwise notable jobs by reason.
    provenance : tuple of str
        Processing steps that produced the workload.
    resources : tuple of str
        Names of the columns with resource requests, such as ``("cpus", "gpus", "memory")``.
    labels : mapping of str to tuple of str
        Names of the values of a column, by position: of ``kind``, ``constraint``, ``user`` ...
    lines : array of int64, shape (jobs,), optional
        Number of the line of each job in the file of the log, from 1, for messages.

    Raises
    ------
    WorkloadError
        A column is missing, differs in length, contains other values than whole numbers, or is out of range.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 5, 5], "run_time": [10, 20, 0], "nodes": [1, 2, 4]}, machine_size=4)
    >>> len(w), w.nodes.tolist(), w.requested_time.tolist()
    (3, [1, 2, 4], [10, 20, 1])
    >>> w.jobs[1].submit_time
    5
    >>> w = Workload({"submit_time": [0], "run_time": [9], "nodes": [2], "cpus": [16], "gpus": [1]},
    ...              resources=("cpus", "gpus"))
    >>> w.jobs[0].request.amounts
    (16, 1)
    """

    columns: Mapping[str, ArrayLike]
    machine_size: int | None = None
    name: str = "workload"
    header: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    provenance: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: Column | None = None

    def __post_init__(self) -> None:
        given = dict(self.columns)
        for name in TEXT_COLUMNS:
            if name in given and (read := numbered_texts(given[name])) is not None:
                given[name], texts = read
                object.__setattr__(self, "labels", {**self.labels, name: texts})
        columns = checked_columns(given, self.name, self.resources)
        object.__setattr__(self, "columns", MappingProxyType(columns))

    def __reduce__(self) -> tuple[Any, ...]:
        values = (self.machine_size, self.name, self.header, self.skipped, self.notes, self.provenance)
        return Workload, (dict(self.columns), *values, self.resources, self.labels, self.lines)

    # --- reading -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.column("submit_time"))

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, {len(self)} jobs, machine_size={self.machine_size})"

    def _repr_html_(self) -> str:
        """Return size, load, first jobs and a picture, for notebooks."""
        return str(views().workload_html(self))

    def __iter__(self) -> Iterator[Job]:
        """Iterate over the jobs, in the order of the log."""
        return iter(self.jobs)

    def __getitem__(self, which: Any) -> Any:
        """Return a column by name, a job by number, or the workload of a slice, a mask or row numbers.

        >>> w = Workload({"submit_time": [0, 5, 9], "run_time": [1, 1, 1], "nodes": [1, 2, 3]})
        >>> w["nodes"].tolist(), w[-1].submit_time, len(w[:2]), len(w[w["nodes"] > 1])
        ([1, 2, 3], 9, 2, 2)
        """
        if isinstance(which, str):
            return self.column(which)
        if isinstance(which, int | np.integer):
            return self.jobs[which]
        return self.select(which)

    def column(self, name: str) -> Column:
        """Return one column, int64, shape (jobs,), read-only; an absent optional column is all -1."""
        if name in self.columns:
            return self.columns[name]  # type: ignore[return-value]
        if name == "size":
            return self.size
        if name in OPTIONAL_COLUMNS:
            return np.broadcast_to(np.int64(UNKNOWN), len(self))
        raise WorkloadError(f"{self.name}: no column {name!r}; there are {', '.join(self.columns)}")

    def __getattr__(self, name: str) -> Column:
        if name in REQUIRED_COLUMNS or name in OPTIONAL_COLUMNS:
            return self.column(name)
        raise AttributeError(f"Workload has no attribute {name!r}")

    @cached_property
    def jobs(self) -> list[Job]:
        """The jobs, created once and shared by all simulations of this workload."""
        return self._jobs(slice(None), range(len(self)), self.requests)

    def _jobs(self, rows: Any, numbers: Iterable[int], requests: Iterable[Request | None]) -> list[Job]:
        """Return the jobs of some rows with their requests."""
        *fields, kinds = (
            self.column(name)[rows].tolist() if name in self.columns else repeat(UNKNOWN)
            for name in (*JOB_COLUMNS, "kind")
        )
        values = zip(numbers, *fields, requests, kinds, strict=False)  # some are endless
        return list(map(partial(tuple.__new__, Job), values))  # without a call of Python for each job

    @cached_property
    def requests(self) -> list[Request | None]:
        """The resource request of each job; jobs with equal requests share one object."""
        if not self.resources:
            return [None] * len(self)
        requests = [job.request for job in self.first_alike]
        return [requests[position] for position in self.alike.tolist()]

    @property
    def alike(self) -> Column:
        """Which of :attr:`first_alike` each job is like: it asks for the same; int64, shape (jobs,)."""
        return self._alike[1]

    @cached_property
    def first_alike(self) -> list[Job]:
        """The first job of each number of nodes and resource request, in the order of the log."""
        rows = self._alike[0]
        if not self.resources:
            return self._jobs(rows, rows.tolist(), repeat(None))
        names = (*self.resources, "spread", "exclusive", "constraint")
        table = np.column_stack([self.column(name)[rows] for name in names])
        made: dict[tuple[int, ...], Request] = {}
        for values in map(tuple, table.tolist()):
            if values not in made:
                made[values] = self._request(values)
        return self._jobs(rows, rows.tolist(), [made[values] for values in map(tuple, table.tolist())])

    @cached_property
    def _alike(self) -> tuple[Column, Column]:
        """The rows of the first jobs that ask for other things, and for each job the position of its like."""
        code = np.zeros(len(self), dtype=np.int64)
        for name in ("nodes", *self.resources, "spread", "exclusive", "constraint"):
            values, number = np.unique(self.column(name), return_inverse=True)
            if len(values) > 1:
                _, code = np.unique(code * len(values) + number, return_inverse=True)
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        order = np.argsort(first)
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        return first[order], position[which]

    def _request(self, row: Sequence[int]) -> Request:
        *amounts, spread, exclusive, constraint = row
        features = self.label("constraint", constraint) if constraint >= 0 else ""
        return Request(self.resources, tuple(amounts), spread == 1, exclusive == 1, features)

    def label(self, column: str, number: int) -> str:
        """Return the name of a value in a column, by default the number itself."""
        names = self.labels.get(column, ())
        return names[number] if 0 <= number < len(names) else str(number)

    @cached_property
    def size(self) -> Column:
        """Sizes of the jobs, int64, shape (jobs,): see :attr:`Job.size <hpcsimkit.jobs.job.Job.size>`."""
        nodes = self.column("nodes")
        if not self.resources:
            return nodes
        return self.column(self.resources[0]) * np.where(self.column("spread") == 1, 1, nodes)

    @cached_property
    def arrival_order(self) -> Column:
        """Rows in order of submission; simultaneous submissions keep the order of the log."""
        return np.argsort(self.column("submit_time"), kind="stable")

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the columns and the machine size; equal for equal workloads."""
        digest = hashlib.sha256(repr(self.machine_size).encode())
        for name in HASHED_COLUMNS:
            digest.update(np.ascontiguousarray(self.column(name)).tobytes())
        for name in self.columns:
            if name not in HASHED_COLUMNS:
                digest.update(repr((name, self.labels.get(name))).encode() + self.column(name).tobytes())
        return digest.hexdigest()

    @property
    def span(self) -> int:
        """Time from the first to the last submission [s]."""
        return int(np.ptp(self.column("submit_time"))) if len(self) else 0

    def offered_load(self, machine_size: int | None = None) -> float:
        """Return the offered load: requested node-seconds (run time x nodes) per available node-second.

        The available node-seconds are those from the first to the last submission.
        """
        size = machine_size or self.machine_size
        if not size or not self.span:
            return float("nan")
        area = float(np.dot(self.column("run_time").astype(float), self.column("nodes").astype(float)))
        return area / (size * self.span)

    def to_frame(self) -> pandas.DataFrame:
        """Return the columns as a pandas DataFrame, one row per job, in log order."""
        import pandas

        return pandas.DataFrame({name: np.asarray(column) for name, column in self.columns.items()})

    def head(self, jobs: int = 5) -> pandas.DataFrame:
        """Return the first jobs as a table, with the names of users, queues and so on where the log has them.

        >>> w = Workload({"submit_time": [0, 5], "run_time": [1, 1], "nodes": [1, 2]})
        >>> w.head(1).shape
        (1, 5)
        """
        first = self.select(slice(0, jobs))
        frame = first.to_frame()
        for name in frame.columns.intersection(list(self.labels)):
            texts = [self.label(name, number) if number >= 0 else "" for number in frame[name].tolist()]
            frame[name] = np.array(texts, dtype=object)
        return frame

    def describe(self) -> Any:
        """Return descriptive statistics: a :class:`~hpcsimkit.workloads.describe.Description`.

        Raises
        ------
        WorkloadError
            There is no job.
        """
        return views().description(self)

    def plot(self, kind: str | None = None, ax: Any = None) -> Any:
        """Draw the workload.

        Parameters
        ----------
        kind : {"hours", "weekdays", "sizes", "durations", "accuracy", "load"}, optional
            One plot; by default all of them in a new figure.
        ax : Axes, optional
            Axes to draw one plot on; by default those of a new figure.

        Returns
        -------
        Axes or array of Axes
            The axes of one plot, or those of all.
        """
        return views().plot_workload(self, kind, ax)

    @classmethod
    def from_frame(
        cls,
        frame: pandas.DataFrame,
        machine_size: int | None = None,
        name: str = "jobs",
        *,
        resources: Sequence[str] = (),
        **columns: str,
    ) -> Workload:
        """Return the workload of a data frame with one row per job.

        Dates of submission become seconds since the first one, durations seconds, and texts numbers with
        labels. A missing value of an optional column is unknown.

        Parameters
        ----------
        frame : pandas.DataFrame
            Table with columns ``submit_time``, ``run_time``, ``nodes`` and any others of a workload.
        machine_size : int, optional
            Number of nodes of the machine. Default: unknown.
        name : str
            Name of the workload. Default: ``"jobs"``.
        resources : sequence of str
            Columns with resource requests, such as ``["cpus", "gpus"]``. Default: none.
        **columns : str
            Names in the table of columns that are called otherwise: ``nodes="NNodes"``.

        Raises
        ------
        WorkloadError
            A column is missing, unknown, or has values that it cannot have.

        Examples
        --------
        >>> import pandas as pd
        >>> dates = pd.to_datetime(["2026-01-05 08:00", "2026-01-05 08:01"])
        >>> table = pd.DataFrame({"Submit": dates, "run_time": [60, 30], "nodes": 1, "user": ["ann", "bob"]})
        >>> w = Workload.from_frame(table, machine_size=4, submit_time="Submit")
        >>> w.submit_time.tolist(), w.labels["user"]
        ([0, 60], ('ann', 'bob'))
        """
        read, labels, header = read_frame(frame, name, columns)
        return cls(read, machine_size, name, header=header, resources=tuple(resources), labels=labels)

    @classmethod
    def from_jobs(cls, jobs: Iterable[Job], machine_size: int | None = None, name: str = "jobs") -> Workload:
        """Return a workload of jobs with new indices.

        >>> Workload.from_jobs([Job(0, 9, 0, 5, 5, 1)]).jobs[0].id
        9
        """
        rows = list(jobs)
        columns = {column: [getattr(job, column) for job in rows] for column in JOB_COLUMNS}
        return cls(columns, machine_size=machine_size, name=name)

    # --- derived workloads ---------------------------------------------------------------------------

    def _derive(self, columns: Mapping[str, ArrayLike], step: str, **changes: Any) -> Workload:
        """Return a workload with other columns, all else equal, and an additional provenance step."""
        values: dict[str, Any] = {
            "machine_size": self.machine_size,
            "name": self.name,
            "header": self.header,
            "skipped": self.skipped,
            "notes": self.notes,
            "resources": self.resources,
            "labels": self.labels,
            "lines": self.lines,
        }
        return Workload(columns, **{**values, **changes}, provenance=(*self.provenance, step))

    def select(self, rows: slice | Sequence[int] | NDArray[Any], step: str = "select") -> Workload:
        """Return the rows selected by a slice, a boolean mask or row numbers, as in numpy indexing.

        >>> w = Workload({"submit_time": [0, 5, 9], "run_time": [1, 1, 1], "nodes": [1, 2, 3]})
        >>> w.select(w.nodes > 1).submit_time.tolist()
        [5, 9]
        """
        return self._derive(step=step, **self._of(rows))

    def _of(self, rows: slice | Sequence[int] | NDArray[Any]) -> dict[str, Any]:
        """Return the columns and the lines of some rows."""
        columns = {name: np.asarray(column)[rows] for name, column in self.columns.items()}
        return {"columns": columns, "lines": None if self.lines is None else self.lines[rows]}

    def first(self, jobs: int, skip: int = 0) -> Workload:
        """Return the first `jobs` jobs by submission time after `skip` jobs; log order is kept."""
        rows = np.sort(self.arrival_order[skip : skip + jobs])
        return self.select(rows, f"jobs {skip} to {skip + len(rows)} by submission")

    def window(self, start: int, end: int) -> Workload:
        """Return the jobs submitted in [start, end) [s of the log's clock]."""
        submit = self.column("submit_time")
        return self.select((submit >= start) & (submit < end), f"submitted in [{start}, {end})")

    def split(self, at: int) -> tuple[Workload, Workload]:
        """Return the jobs submitted before `at` [s of the log's clock], and all others."""
        submit = self.column("submit_time")
        return (
            self.select(submit < at, f"submitted before {at}"),
            self.select(submit >= at, f"submitted from {at} on"),
        )

    def scale_load(self, factor: float) -> Workload:
        """Scale the load: the times between submissions are divided by `factor` (whole seconds, rounded).

        Begin times and holds keep their distance from the submission.

        >>> w = Workload({"submit_time": [10, 20, 40], "run_time": [1, 1, 1], "nodes": [1, 1, 1]})
        >>> w.scale_load(2.0).submit_time.tolist()
        [10, 15, 25]
        """
        if not factor > 0 or not np.isfinite(factor):
            raise WorkloadError(f"{self.name}: the load factor must be a positive number, found {factor}")
        submit = self.column("submit_time")
        origin = submit.min() if len(self) else 0
        if self.span / factor > TIME_LIMIT:
            raise WorkloadError(f"{self.name}: a load factor of {factor:g} leads beyond {TIME_LIMIT} s")
        scaled = origin + np.rint((submit - origin) / factor).astype(np.int64)
        moved = {
            name: np.where(self.column(name) < 0, UNKNOWN, self.column(name) + scaled - submit)
            for name in ("begin_time", "hold_until")
            if name in self.columns
        }
        return self._derive({**self.columns, **moved, "submit_time": scaled}, f"{SCALED} {factor:g}")

    def fitting(self, machine_size: int) -> Workload:
        """Return the jobs that fit a machine of `machine_size` nodes; the others are counted as skipped."""
        larger = self.column("nodes") > machine_size
        kept = self.without(larger, f"larger than the machine of {machine_size} nodes")
        return kept._derive(kept.columns, f"fit {machine_size} nodes", machine_size=int(machine_size))

    def without(self, rows: NDArray[np.bool_], reason: str) -> Workload:
        """Return the jobs outside a boolean mask; the others are counted as skipped for a reason.

        >>> w = Workload({"submit_time": [0, 5], "run_time": [1, 1], "nodes": [1, 2]})
        >>> dict(w.without(w.nodes > 1, "too large").skipped)
        {'too large': 1}
        """
        dropped = int(np.count_nonzero(rows))
        if not dropped:
            return self
        skipped = {**self.skipped, reason: self.skipped.get(reason, 0) + dropped}
        return self._derive(step=f"without {dropped} jobs: {reason}", skipped=skipped, **self._of(~rows))

    @cached_property
    def killed_at_limit(self) -> Workload:
        """The same jobs with run times limited to their requested times (``walltime="kill"``)."""
        run_time = np.minimum(self.column("run_time"), self.column("requested_time"))
        limited = self._derive({**self.columns, "run_time": run_time}, "killed at the requested time")
        limited.__dict__.update({"_alike": self._alike} if "_alike" in self.__dict__ else {})  # as costly
        return limited

    def merge(self, *others: Workload) -> Workload:
        """Return all jobs of this and other workloads as one log, sorted by submission time.

        Job numbers are kept if they remain unique, otherwise reassigned (and dependencies dropped).

        Raises
        ------
        WorkloadError
            The workloads have different resources.
        """
        parts = (self, *others)
        for other in others:
            if other.resources != self.resources:
                raise WorkloadError(
                    f"{self.name}: a workload with resources {self.resources} is needed to merge with, "
                    f"found {other.resources} in {other.name}"
                )
        known = REQUIRED_COLUMNS + OPTIONAL_COLUMNS + self.resources
        names = [name for name in known if any(name in part.columns for part in parts)]
        labels = {name: _all_labels(name, parts) for name in names if any(name in p.labels for p in parts)}
        columns: dict[str, ArrayLike] = {
            name: np.concatenate([_relabelled(part, name, labels.get(name)) for part in parts])
            for name in names
        }
        if len(np.unique(np.asarray(columns["id"]))) < len(np.asarray(columns["id"])):
            columns["id"] = np.arange(1, sum(map(len, parts)) + 1)
            for name in ("preceding", "dependency"):
                columns.pop(name, None)
            labels.pop("id", None)
        order = np.argsort(np.asarray(columns["submit_time"]), kind="stable")
        sizes = [part.machine_size for part in parts if part.machine_size]
        return self._derive(
            {name: np.asarray(column)[order] for name, column in columns.items()},
            f"merged with {', '.join(other.name for other in others)}",
            machine_size=max(sizes, default=None),
            labels=labels,
            lines=None,
            skipped=_added([part.skipped for part in parts]),
            notes=_added([part.notes for part in parts]),
        )


def _all_labels(column: str, parts: Sequence[Workload]) -> tuple[str, ...]:
    """Return the union of the workloads' labels of a column."""
    return tuple(dict.fromkeys(label for part in parts for label in part.labels.get(column, ())))


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of counts by reason."""
    total: dict[str, int] = {}
    for reasons in counts:
        for reason, count in reasons.items():
            total[reason] = total.get(reason, 0) + count
    return total


def _relabelled(part: Workload, name: str, labels: tuple[str, ...] | None) -> Column:
    """Return a column renumbered by the common labels; values without a label are unchanged."""
    column, own = part.column(name), part.labels.get(name, ())
    if labels is None or own == labels[: len(own)]:
        return column
    named = (column >= 0) & (column < len(own))
    number_of = {label: number for number, label in enumerate(labels)}
    numbers = np.array([number_of[label] for label in own], dtype=np.int64)
    return np.where(named, numbers[np.where(named, column, 0)], column)
