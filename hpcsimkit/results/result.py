"""The immutable result of a run."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit._version import __version__
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.timeline import Steps, Sweep
from hpcsimkit.jobs.views import views
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.attempts import Attempts, Downtime
from hpcsimkit.results.held import HeldJobs
from hpcsimkit.results.node_numbers import assign_nodes
from hpcsimkit.results.placements import Placements

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["MODE_NAMES", "Result"]

MODE_NAMES = ("none", "ready", "reserved", "backfilled", "tested")
"""Names of the start modes, indexed by :class:`~hpcsimkit.kernel.ledger.Mode`."""

ASKED = ("spread", "exclusive", "constraint", "kind")
OWNERS = ("user", "group", "queue", "partition", "qos")
"""Columns of a workload that are included in tables of jobs if present."""

CANCELLED = 5
"""Status (SWF field 11) of a job that never ran."""

Seconds = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """Schedule of a run: the fate of each job, in the order of the log; times in seconds of the log's clock.

    Parameters
    ----------
    workload : Workload
        The jobs as simulated (with ``walltime="kill"``: with their limited run times).
    policy : str
        Name of the policy in tables and figures.
    size : int
        Size of the cluster: number of nodes; on machines, total amount of the first resource.
    submit_time, start_time, end_time : array of int64, shape (jobs,)
        Times of submission, start and end [s], -1 for rejected jobs. With dependencies, submission times may
        differ from those of the log.
    mode : array of uint8, shape (jobs,)
        Start mode of each job; see `MODE_NAMES`.
    killed : array of bool, shape (jobs,)
        Whether the job ended before it was complete: it was killed at its requested time, or did not start
        again after a failure.
    seed : int
        Seed of the run.
    options : mapping
        Other options that determine the schedule, such as ``walltime``, and ``semantics`` if different from
        ``"textbook"``; see :class:`~hpcsimkit.kernel.setup.Setup`.
    choices : tuple of (str, int)
        Decisions at open seats: stage and position among the options.
    seconds : float
        Computing time of the simulation [s of wall clock], excluding that of agents.
    passes : int
        Number of scheduling passes.
    placements : Placements, optional
        Allocation of each job to machines; None with homogeneous nodes.
    started_in : array of str, shape (jobs,), optional
        Name of the partition in which each job started, empty for rejected jobs; None without partitions.
    simulator : str
        Program that simulated: ``"simpy"`` or ``"compiled"``.
    attempts : Attempts, optional
        All attempts, if a job was stopped or wrote checkpoints; then `start_time` is the start of the first
        attempt of a job that was no stopped test, `end_time` the end of its last one. None if each job ran
        once.
    downtime : Downtime, optional
        Capacity that was out of order; None if there was no outage.
    held : HeldJobs, optional
        Intervals in which gates held jobs, with the reasons; None if no job was held.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> r = Result(w, "fcfs", 4, *map(np.array, ([0, 1], [0, 9], [9, 13], [1, 1], [False, False])))
    >>> r.wait_time.tolist(), r.bounded_slowdown().tolist(), r.makespan
    ([0.0, 8.0], [1.0, 1.2], 13)
    >>> r
    <Result of fcfs on workload: 2 jobs on 4 nodes, mean wait 4 s>
    """

    workload: Workload
    policy: str
    size: int
    submit_time: NDArray[np.int64]
    start_time: NDArray[np.int64]
    end_time: NDArray[np.int64]
    mode: NDArray[np.uint8]
    killed: NDArray[np.bool_]
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    choices: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0
    passes: int = 0
    placements: Placements | None = None
    started_in: NDArray[np.str_] | None = None
    simulator: str = "simpy"
    attempts: Attempts | None = None
    downtime: Downtime | None = None
    held: HeldJobs | None = None

    def __post_init__(self) -> None:
        for name in ("submit_time", "start_time", "end_time", "mode", "killed"):
            column = np.asarray(getattr(self, name)).view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    # --- quantities per job --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.start_time)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Whether each job ran to its end; the others were rejected."""
        return self.end_time >= 0

    @property
    def by_attempt(self) -> Result:
        """The same schedule with a row for each attempt, submitted when it joined the queue.

        Without any, the result itself.
        """
        return self if self.attempts is None else self._by_attempt

    @cached_property
    def _by_attempt(self) -> Result:  # of its own: a result that caches itself is freed late
        found = self.attempts
        assert found is not None
        return dataclasses.replace(
            self,
            workload=self.workload.select(found.job, "attempts"),
            submit_time=found.submit_time,
            start_time=found.start_time,
            end_time=found.end_time,
            mode=found.mode,
            killed=found.lost > 0,
            placements=found.placements,
            started_in=found.partition,
            attempts=None,
            held=None,
        )

    @property
    def wait_time(self) -> Seconds:
        """First start, apart from stopped tests, minus submission [s]; NaN for rejected jobs, as below."""
        return self._where_finished(self.start_time - self.submit_time)

    @property
    def response_time(self) -> Seconds:
        """End minus submission [s]."""
        return self._where_finished(self.end_time - self.submit_time)

    @property
    def run_time(self) -> Seconds:
        """Time for which the job ran [s]: end minus start, or the sum over its attempts."""
        return self._where_finished(self._seconds_run())

    def _seconds_run(self) -> NDArray[np.int64]:
        found = self.attempts
        if found is None:
            return self.end_time - self.start_time
        took = np.bincount(found.job, found.end_time - found.start_time, len(self)).astype(np.int64)
        return np.where(self.finished, took, 0)

    def _seconds_worked(self) -> NDArray[np.int64]:
        """Return the run time of which each job is complete [s]."""
        found = self.attempts
        if found is None:
            return self.end_time - self.start_time
        return np.bincount(found.job, found.work, len(self)).astype(np.int64)

    @property
    def slowdown(self) -> Seconds:
        """Response time divided by run time, with a run time of at least 1 s; at least 1."""
        return self.bounded_slowdown(threshold=1)

    def bounded_slowdown(self, threshold: float = 10) -> Seconds:
        """Return ``max(1, response time / max(run time, threshold))`` of each job.

        The bound limits the influence of short jobs (Feitelson & Rudolph, JSSPP 1998). The run time of a job
        with several attempts is that of its work, without what was lost.

        Parameters
        ----------
        threshold : float
            Lower bound of the run time [s], > 0. Default: 10.
        """
        run_time = np.maximum(self._seconds_worked(), threshold)
        ratio = (self.end_time - self.submit_time) / run_time
        return self._where_finished(np.maximum(ratio, 1.0, out=ratio))

    def _where_finished(self, values: NDArray[np.int64] | Seconds) -> Seconds:
        values, finished = values.astype(np.float64, copy=False), self.finished
        if not finished.all():
            values[~finished] = np.nan
        return values

    # --- quantities of the schedule ------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """Unit of `size`: ``nodes``, or the first resource of the machines."""
        return "nodes" if self.placements is None else self.placements.cluster.unit

    @property
    def amount(self) -> NDArray[np.int64]:
        """Part of `size` that each job occupied, int64, shape (jobs,)."""
        return self.workload.column("nodes") if self.placements is None else self.placements.totals[:, 0]

    @property
    def makespan(self) -> int:
        """Last end minus first submission [s]; 0 if no job ran."""
        if not self.finished.any():
            return 0
        return int(self.end_time.max() - self.submit_time.min())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the start times, of all attempts; equal for equal schedules of a workload."""
        return hashlib.sha256(self.by_attempt.start_time.astype("<i8").tobytes()).hexdigest()

    def sweep(self) -> Sweep:
        """Return the times at which the jobs that ran were submitted, started and ended, in each attempt."""
        each = self.by_attempt
        ran = each.finished
        columns = (each.submit_time, each.start_time, each.end_time, each.amount)
        return Sweep.of(*(column[ran] for column in columns))

    def timeline(self) -> Steps:
        """Return the numbers of waiting jobs and busy nodes over time, after all events of each instant.

        On machines, the busy amount of the first resource. Rejected jobs do not count as waiting, because
        their rejection times are not recorded.
        """
        return self.sweep().steps

    @property
    def metrics(self) -> dict[str, float]:
        """All of :data:`~hpcsimkit.results.metrics.METRICS` by name; NaN where undefined."""
        return dict(views().metrics_of(self))

    def summary(self) -> pandas.DataFrame:
        """Return the metrics as a table: ``value``, ``unit``, ``better`` and ``description`` by ``metric``.

        Metrics that are undefined for this result are left out.
        """
        found: pandas.DataFrame = views().summary_of(self)
        return found

    def node_numbers(self) -> list[tuple[range, ...]]:
        """Return the intervals of node numbers of each job (:attr:`by_attempt`: attempt), for Gantt charts.

        Nodes are only counted during a run; :func:`~hpcsimkit.results.node_numbers.assign_nodes` assigns the
        numbers.

        Raises
        ------
        UsageError
            There are several attempts of a job, each of which has its own: those are of :attr:`by_attempt`.
        """
        if self.attempts is not None:
            raise UsageError(
                "node_numbers() needs one attempt of each job, found a run with more: "
                "use by_attempt.node_numbers(), which has a row for each attempt"
            )
        return assign_nodes(self.start_time, self.end_time, self.workload.column("nodes"), self.size)

    # --- input and output ----------------------------------------------------------------------------

    def to_frame(self) -> pandas.DataFrame:
        """Return a table with one row per job, in log order, times in seconds of the log's clock.

        Columns: ``job_id``, and ``job_name`` if the log has names; ``submit_time, start_time, end_time,
        wait_time, run_time, requested_time, nodes``; the resource requests of the log (its resources,
        ``spread, exclusive, constraint, kind``), on machines ``machines`` (their names, joined by blanks),
        and with partitions ``started_in``; ``mode, killed``; ``attempts``, if a job was stopped; then those
        of ``user, group, queue, partition, qos`` that the log has, as names where the log has names.
        ``start_time, end_time, wait_time, run_time`` are nullable integers, empty for rejected jobs.
        """
        import pandas

        return pandas.DataFrame(self._columns())

    def to_arrow(self) -> pyarrow.Table:
        """Return the table of :meth:`to_frame` as a table of Arrow, which takes a fraction of its time.

        Its metadata let pandas restore the same frame.
        """
        import pyarrow

        columns = self._columns()
        kinds = [(name, getattr(values, "dtype", "O")) for name, values in columns.items()]
        if any(kind == "O" for _, kind in kinds):  # the metadata of texts depends on their values
            return pyarrow.Table.from_pandas(self.to_frame(), preserve_index=False)
        arrays = {name: pyarrow.array(values, from_pandas=True) for name, values in columns.items()}
        return pyarrow.table(arrays, metadata=_metadata(tuple(kinds)))

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the table of jobs: arrays of numpy and pandas."""
        import pandas

        given, never = self.workload.columns, ~self.finished
        times = {
            "start_time": self.start_time,
            "end_time": self.end_time,
            "wait_time": self.start_time - self.submit_time,
            "run_time": self._seconds_run(),
        }
        columns: dict[str, Any] = {"job_id": given["id"]}
        if "id" in self.workload.labels:
            columns["job_name"] = _in_words(self.workload, "id")
        columns["submit_time"] = self.submit_time
        columns |= {name: pandas.arrays.IntegerArray(values.copy(), never) for name, values in times.items()}
        columns |= {name: given[name] for name in ("requested_time", "nodes", *self.workload.resources)}
        columns |= {name: _in_words(self.workload, name) for name in ASKED if name in given}
        if self.placements is not None:
            columns["machines"] = self.placements.words()
        if self.started_in is not None:
            columns["started_in"] = self.started_in.astype(object)
        columns["mode"] = pandas.Categorical.from_codes(self.mode, dtype=_mode_type())
        columns["killed"] = self.killed
        if self.attempts is not None:
            columns["attempts"] = self.attempts.count(len(self))
        columns |= {name: _in_words(self.workload, name) for name in OWNERS if name in given}
        return columns

    def to_swf(self, path: str | os.PathLike[str]) -> None:
        """Write the schedule as a log in the Standard Workload Format.

        :func:`~hpcsimkit.workloads.readers.swf.read_swf` reads it back. Field 3 is the simulated wait time,
        field 4 the simulated run time, and fields 5 and 8 are the nodes; the other fields are those of the
        log. The header describes the simulation. Rejected jobs have -1 in fields 3 and 4 and status 5
        (cancelled).

        The format has a single number of processors and no machines. On machines, fields 5 and 8 are
        therefore the allocated amounts of the first resource (0 for jobs without any); other requests and the
        allocations are available from :meth:`to_frame` only.

        Raises
        ------
        WorkloadError
            The file cannot be written.
        """
        from hpcsimkit.io.files import write_bytes
        from hpcsimkit.workloads.readers.swf import SWF_FIELDS, swf_bytes
        from hpcsimkit.workloads.readers.swf_header import header_to_write

        ran = self.finished
        columns = {name: values for name, values in self.workload.columns.items() if name in SWF_FIELDS}
        nodes = self.amount
        columns |= {
            "submit_time": self.submit_time,
            "wait_time": np.where(ran, self.start_time - self.submit_time, -1),
            "run_time": _fixed(np.where(ran, self._seconds_run(), -1)),
            "allocated_processors": nodes,
            "requested_processors": nodes,
        }
        if not ran.all():
            columns["status"] = _fixed(np.where(ran, self.workload.column("status"), CANCELLED))
        header = header_to_write(dataclasses.replace(self.workload, machine_size=self.size))
        write_bytes(path, swf_bytes(columns, {**header, **self._swf_header()}))

    def _swf_header(self) -> dict[str, str]:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return {
            "Simulator": f"hpcsimkit {__version__}",
            "Policy": self.policy,
            "Seed": str(self.seed),
            "Options": options,
            **({} if self.placements is None else {"Processors": f"{self.unit} of {self.machine}"}),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the complete result, including the workload, to one compressed ``.npz`` file (no pickle).

        Raises
        ------
        WorkloadError
            The file cannot be written.
        """
        from hpcsimkit.results.result_file import save

        save({field.name: getattr(self, field.name) for field in dataclasses.fields(self)}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a result written by :meth:`save`.

        Raises
        ------
        WorkloadError
            The file cannot be read, or is not a saved result.
        """
        from hpcsimkit.results.result_file import load

        return cls(**load(path))

    # --- display -------------------------------------------------------------------------------------

    def plot(self, kind: str = "wait", ax: Any = None, **options: Any) -> Any:
        """Draw the schedule.

        Parameters
        ----------
        kind : str
            The plot: ``"wait"``, ``"wait_tail"``, ``"slowdown"``, ``"fairness"``, ``"start_modes"``,
            ``"gantt"``, ``"queue"``, ``"busy"``, ``"availability"`` or ``"week"``. Default: ``"wait"``.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure.
        **options
            Further parameters of the plot, such as ``window`` of a Gantt chart.

        Returns
        -------
        Axes
            The axes.
        """
        return views().plot_results(self, kind, ax, **options)

    def gantt(
        self, ax: Any = None, *, window: tuple[int, int] | None = None, interactive: bool = False
    ) -> Any:
        """Draw the allocations over time.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; by default those of a new figure.
        window : (int, int), optional
            Begin and end of the window [s of the log's clock]; by default a busy one of about 300 jobs.
        interactive : bool
            Whether a notebook shows a chart of all jobs that zooms, instead. Default: False.

        Returns
        -------
        Axes or ZoomChart
            The axes, or the chart, which can also be saved as a page.
        """
        if interactive:
            return views().ZoomChart(self)
        return self.plot("gantt", ax, window=window)

    def queue(self, ax: Any = None, **options: Any) -> Any:
        """Draw the number of waiting jobs over time; see :func:`~hpcsimkit.reports.time_plots.plot_queue`."""
        return self.plot("queue", ax, **options)

    def __repr__(self) -> str:
        rows = dict(self._rows())
        return (
            f"<Result of {self.policy} on {self.workload.name}: {rows['Jobs']} jobs on "
            f"{self.machine}, mean wait {rows['Mean wait']}>"
        )

    @property
    def machine(self) -> str:
        """The machine in words: its nodes, or its machines with their resources."""
        return f"{self.size} nodes" if self.placements is None else self.placements.cluster.summary

    def _repr_html_(self) -> str:
        """Return a table of facts, a busy window and the queue, for notebooks."""
        return str(views().result_html(self, self._rows()))

    def _rows(self) -> list[tuple[str, str]]:
        """Return the rows of the summary table."""
        ran = self.finished
        jobs, rejected = len(self), len(self) - int(ran.sum())
        wait = f"{self.wait_time[ran].mean():,.6g} s" if ran.any() else "unknown"
        slowdown = f"{self.bounded_slowdown()[ran].mean():,.6g}" if ran.any() else "unknown"
        return [
            ("Policy", self.policy),
            ("Workload", self.workload.name),
            ("Machine", self.machine),
            ("Jobs", f"{jobs:,}" + (f", {rejected:,} of them rejected" if rejected else "")),
            ("Mean wait", wait),
            ("Mean bounded slowdown", slowdown),
            ("Makespan", f"{self.makespan:,} s"),
            ("Seed", str(self.seed)),
            ("Simulated in", f"{self.seconds:.3g} s, {self.passes:,} passes"),
        ]


@cache
def _mode_type() -> pandas.CategoricalDtype:
    """Return the type of a column of start modes."""
    import pandas

    return pandas.CategoricalDtype(pandas.Index(MODE_NAMES))


@lru_cache(maxsize=16)
def _metadata(kinds: tuple[tuple[str, Any], ...]) -> dict[bytes, bytes]:
    """Return the metadata by which pandas restores a table with columns of some types."""
    import pandas
    import pyarrow

    empty = pandas.DataFrame({name: pandas.Series(dtype=kind) for name, kind in kinds})
    return dict(pyarrow.Schema.from_pandas(empty, preserve_index=False).metadata)


def _fixed(column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a new column, which cannot be changed any more."""
    column.flags.writeable = False
    return column


def _in_words(workload: Workload, name: str) -> Any:
    """Return a column, as names if the workload has labels for its values (None for -1)."""
    column = workload.column(name)
    if name not in workload.labels:
        return column
    words = (workload.label(name, number) if number >= 0 else None for number in column.tolist())
    return np.array([*words], dtype=object)
