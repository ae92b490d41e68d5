"""A workload: the jobs of a log as immutable columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.job import UNKNOWN, Job

if TYPE_CHECKING:
    import pandas

__all__ = ["JOB_COLUMNS", "OPTIONAL_COLUMNS", "REQUIRED_COLUMNS", "TIME_LIMIT", "Column", "Workload"]

Column = NDArray[np.int64]

REQUIRED_COLUMNS = ("id", "submit_time", "run_time", "requested_time", "nodes")
OPTIONAL_COLUMNS = (
    "user", "group", "executable", "queue", "partition", "preceding", "think_time",
    "status", "recorded_wait_time", "requested_memory", "used_memory",
)  # fmt: skip
JOB_COLUMNS = REQUIRED_COLUMNS + OPTIONAL_COLUMNS[:7]
"""Columns a :class:`~hpcsimkit.job.Job` carries, in the order of its fields after ``index``."""

TIME_LIMIT = 10**11
"""Largest time or duration taken seriously [s]: about three thousand years."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs as columns of whole numbers, one row a job, in the order of the log.

    All times are whole seconds of the log's own clock. Every operation returns a new workload.

    Parameters
    ----------
    columns : mapping of str to array of int64, shape (jobs,)
        At least ``submit_time, run_time, nodes``; ``requested_time`` falls back on the run time (at least
        1 s) and ``id`` on 1, 2, ...; any of `OPTIONAL_COLUMNS` may follow, absent ones read -1.
    machine_size : int or None
        Nodes (or processors) of the machine the jobs were meant for.
    name : str
        What tables and pictures call it.
    header : mapping of str to str
        Header lines of the log.
    skipped : mapping of str to int
        Why rows were left out, and how many.
    notes : mapping of str to int
        What was repaired or is worth knowing, and for how many jobs.
    provenance : tuple of str
        How the workload came to be, step by step.

    Raises
    ------
    WorkloadError
        A column is missing, of another length, not whole numbers, or out of range.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 5, 5], "run_time": [10, 20, 0], "nodes": [1, 2, 4]}, machine_size=4)
    >>> len(w), w.nodes.tolist(), w.requested_time.tolist()
    (3, [1, 2, 4], [10, 20, 1])
    >>> w.jobs[1].submit_time
    5
    """

    columns: Mapping[str, ArrayLike]
    machine_size: int | None = None
    name: str = "workload"
    header: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    provenance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(_checked_columns(self.columns, self.name)))

    def __reduce__(self) -> tuple[Any, ...]:
        values = (self.machine_size, self.name, self.header, self.skipped, self.notes, self.provenance)
        return Workload, (dict(self.columns), *values)

    # --- reading -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.column("submit_time"))

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, {len(self)} jobs, machine_size={self.machine_size})"

    def column(self, name: str) -> Column:
        """Return one column, int64, shape (jobs,), read-only; an optional one that is absent reads -1."""
        if name in self.columns:
            return self.columns[name]  # type: ignore[return-value]
        if name in OPTIONAL_COLUMNS:
            return np.broadcast_to(np.int64(UNKNOWN), len(self))
        raise WorkloadError(f"{self.name}: no column {name!r}; there are {', '.join(self.columns)}")

    def __getattr__(self, name: str) -> Column:
        if name in REQUIRED_COLUMNS or name in OPTIONAL_COLUMNS:
            return self.column(name)
        raise AttributeError(f"Workload has no attribute {name!r}")

    @cached_property
    def jobs(self) -> list[Job]:
        """The jobs, made once and shared by all simulations of this workload."""
        rows = (self.column(name).tolist() for name in JOB_COLUMNS)
        return list(map(Job, range(len(self)), *rows))

    @cached_property
    def arrival_order(self) -> Column:
        """Rows in the order of submission; jobs of one instant keep the order of the log."""
        return np.argsort(self.column("submit_time"), kind="stable")

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the columns and the machine size: equal workloads, equal hash."""
        digest = hashlib.sha256(repr(self.machine_size).encode())
        for name in REQUIRED_COLUMNS + OPTIONAL_COLUMNS:
            digest.update(np.ascontiguousarray(self.column(name)).tobytes())
        return digest.hexdigest()

    @property
    def span(self) -> int:
        """Time from the first to the last submission [s]."""
        return int(np.ptp(self.column("submit_time"))) if len(self) else 0

    def offered_load(self, machine_size: int | None = None) -> float:
        """Node-seconds asked for (run time x nodes) over node-seconds there are while jobs arrive."""
        size = machine_size or self.machine_size
        if not size or not self.span:
            return float("nan")
        area = float(np.dot(self.column("run_time").astype(float), self.column("nodes").astype(float)))
        return area / (size * self.span)

    def to_frame(self) -> pandas.DataFrame:
        """Return the columns as a pandas DataFrame, one row a job, in log order."""
        import pandas

        return pandas.DataFrame({name: np.asarray(column) for name, column in self.columns.items()})

    @classmethod
    def from_jobs(cls, jobs: Iterable[Job], machine_size: int | None = None, name: str = "jobs") -> Workload:
        """Make a workload of jobs; their indices are made anew.

        >>> Workload.from_jobs([Job(0, 9, 0, 5, 5, 1)]).jobs[0].id
        9
        """
        rows = list(jobs)
        columns = {column: [getattr(job, column) for job in rows] for column in JOB_COLUMNS}
        return cls(columns, machine_size=machine_size, name=name)

    # --- making new ones -----------------------------------------------------------------------------

    def _derive(self, columns: Mapping[str, ArrayLike], step: str, **changes: Any) -> Workload:
        """Return a workload with other columns, everything else kept, and one more step in its provenance."""
        values: dict[str, Any] = {
            "machine_size": self.machine_size, "name": self.name, "header": self.header,
            "skipped": self.skipped, "notes": self.notes,
        }  # fmt: skip
        return Workload(columns, **{**values, **changes}, provenance=(*self.provenance, step))

    def select(self, rows: slice | Sequence[int] | NDArray[Any], step: str = "select") -> Workload:
        """Return the rows chosen by a slice, a boolean mask or row numbers, as numpy indexes.

        >>> w = Workload({"submit_time": [0, 5, 9], "run_time": [1, 1, 1], "nodes": [1, 2, 3]})
        >>> w.select(w.nodes > 1).submit_time.tolist()
        [5, 9]
        """
        return self._derive({name: np.asarray(column)[rows] for name, column in self.columns.items()}, step)

    def first(self, jobs: int, skip: int = 0) -> Workload:
        """Return `jobs` jobs by submission, after leaving out the first `skip`; log order is kept."""
        rows = np.sort(self.arrival_order[skip : skip + jobs])
        return self.select(rows, f"jobs {skip} to {skip + len(rows)} by submission")

    def window(self, start: int, end: int) -> Workload:
        """Return the jobs submitted in [start, end) [s of the log's clock]."""
        submit = self.column("submit_time")
        return self.select((submit >= start) & (submit < end), f"submitted in [{start}, {end})")

    def split(self, at: int) -> tuple[Workload, Workload]:
        """Split by time: jobs submitted before `at` [s of the log's clock], and the rest."""
        submit = self.column("submit_time")
        return (
            self.select(submit < at, f"submitted before {at}"),
            self.select(submit >= at, f"submitted from {at} on"),
        )

    def scale_load(self, factor: float) -> Workload:
        """Raise the load: the time between submissions is divided by `factor` (whole seconds, rounded).

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
        return self._derive({**self.columns, "submit_time": scaled}, f"load x {factor:g}")

    def fitting(self, machine_size: int) -> Workload:
        """Return the jobs that fit a machine of `machine_size` nodes; the others are counted as skipped."""
        fits = self.column("nodes") <= machine_size
        dropped = int(np.count_nonzero(~fits))
        skipped = dict(self.skipped)
        if dropped:
            reason = f"larger than the machine of {machine_size} nodes"
            skipped[reason] = skipped.get(reason, 0) + dropped
        columns = self.columns if not dropped else {n: np.asarray(c)[fits] for n, c in self.columns.items()}
        return self._derive(
            columns, f"fit {machine_size} nodes", machine_size=int(machine_size), skipped=skipped
        )

    @cached_property
    def killed_at_limit(self) -> Workload:
        """The same jobs, each ended at its requested time if it would run longer (``walltime="kill"``)."""
        run_time = np.minimum(self.column("run_time"), self.column("requested_time"))
        return self._derive({**self.columns, "run_time": run_time}, "killed at the requested time")

    def merge(self, *others: Workload) -> Workload:
        """Return all jobs of this and other workloads as one log, sorted by submission.

        Job numbers are kept where they stay unique, else made anew (then dependencies are dropped).
        """
        parts = (self, *others)
        names = [n for n in REQUIRED_COLUMNS + OPTIONAL_COLUMNS if any(n in part.columns for part in parts)]
        columns: dict[str, ArrayLike] = {n: np.concatenate([part.column(n) for part in parts]) for n in names}
        if len(np.unique(np.asarray(columns["id"]))) < len(np.asarray(columns["id"])):
            columns["id"] = np.arange(1, sum(map(len, parts)) + 1)
            columns.pop("preceding", None)
        order = np.argsort(np.asarray(columns["submit_time"]), kind="stable")
        sizes = [part.machine_size for part in parts if part.machine_size]
        return self._derive(
            {name: np.asarray(column)[order] for name, column in columns.items()},
            f"merged with {', '.join(other.name for other in others)}",
            machine_size=max(sizes, default=None),
        )


def _checked_columns(columns: Mapping[str, ArrayLike], name: str) -> dict[str, Column]:
    """Return read-only int64 columns of one length, with the required ones filled in."""
    known = REQUIRED_COLUMNS + OPTIONAL_COLUMNS
    for column in columns:
        if column not in known:
            raise WorkloadError(f"{name}: unknown column {column!r}; known are {', '.join(known)}")
    for column in ("submit_time", "run_time", "nodes"):
        if column not in columns:
            raise WorkloadError(f"{name}: column {column!r} is needed, found {', '.join(columns) or 'none'}")
    checked = {key: _whole_numbers(values, key, name) for key, values in columns.items()}
    jobs = len(checked["submit_time"])
    if "requested_time" not in checked:
        checked["requested_time"] = np.maximum(checked["run_time"], 1)
    if "id" not in checked:
        checked["id"] = np.arange(1, jobs + 1)
    for key, values in checked.items():
        if values.shape != (jobs,):
            raise WorkloadError(f"{name}: column {key!r} needs shape ({jobs},), found {values.shape}")
        values.setflags(write=False)
    _check_ranges(checked, name)
    return {key: checked[key] for key in known if key in checked}


def _whole_numbers(values: ArrayLike, column: str, name: str) -> Column:
    array = np.asarray(values)
    if array.dtype == np.int64:
        return array if not array.flags.writeable else array.copy()
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise WorkloadError(f"{name}: column {column!r} needs whole numbers, found {array.dtype}")
    whole = np.isfinite(array) & (np.abs(array) < 2**62) & (array == np.rint(array))
    if not whole.all():
        row = int(np.argmin(whole))
        raise WorkloadError(f"{name}: column {column!r} needs whole numbers, found {array[row]} in row {row}")
    return array.astype(np.int64)


def _check_ranges(columns: Mapping[str, Column], name: str) -> None:
    limits = {"submit_time": (0, TIME_LIMIT), "run_time": (0, TIME_LIMIT),
              "requested_time": (1, TIME_LIMIT), "nodes": (1, 2**31)}  # fmt: skip
    for column, (low, high) in limits.items():
        wrong = (columns[column] < low) | (columns[column] > high)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise WorkloadError(
                f"{name}: job {columns['id'][row]}: {column} needs {low} to {high}, "
                f"found {columns[column][row]}"
            )
