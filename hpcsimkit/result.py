"""The outcome of a run, frozen."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit import __version__
from hpcsimkit.node_numbers import assign_nodes
from hpcsimkit.placements import Placements
from hpcsimkit.timeline import Steps, Sweep
from hpcsimkit.workload import Workload

if TYPE_CHECKING:
    import pandas

    from hpcsimkit.simulation import Simulation

__all__ = ["MODE_NAMES", "Result"]

MODE_NAMES = ("none", "ready", "reserved", "backfilled")
"""Names of the start modes; their numbers are those of :class:`~hpcsimkit.system.Mode`."""

ASKED = ("spread", "exclusive", "constraint", "kind")
OWNERS = ("user", "group", "queue", "partition")
"""Columns of a workload that tables of jobs have too, if it has them."""

CANCELLED = 5
"""Status (SWF field 11) of a job that never ran."""

Seconds = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """What happened to each job, in the order of the log; times in the log's own seconds.

    Parameters
    ----------
    workload : Workload
        The jobs as they were simulated (with ``walltime="kill"``: with the run times they got).
    policy : str
        What tables and pictures call the policy.
    size : int
        How large the cluster is: its nodes; of machines, all of their first resource.
    submit_time, start_time, end_time : array of int64, shape (jobs,)
        -1 for what never happened (rejected jobs). Submission differs from the log's with dependencies.
    mode : array of uint8, shape (jobs,)
        How each job started: see `MODE_NAMES`.
    killed : array of bool, shape (jobs,)
        Whether the job was ended at its requested time although it would have run longer.
    seed : int
        Seed of the run.
    options : mapping
        Whatever else decided the schedule: ``walltime, dependencies, period``, and ``semantics`` if it is not
        the textbook's.
    choices : tuple of (str, int)
        Answers of open seats: stage and position among the options.
    seconds : float
        Time the simulation took [s of wall clock], without what happened outside open seats.
    passes : int
        Passes of the policy.
    placements : Placements, optional
        The machines, and which of them each job had; None where nodes were only counted.

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

    def __post_init__(self) -> None:
        for name in ("submit_time", "start_time", "end_time", "mode", "killed"):
            column = np.asarray(getattr(self, name)).view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @classmethod
    def of(cls, simulation: Simulation, seconds: float) -> Result:
        """Read the outcome of a run that is over."""
        system = simulation.system
        return cls(
            workload=system.workload,
            policy=simulation.name,
            size=simulation.cluster.size,
            submit_time=system.column("submit_time"),
            start_time=np.array(system.starts, dtype=np.int64),
            end_time=np.array(system.finishes, dtype=np.int64),
            mode=np.frombuffer(bytes(system.modes), dtype=np.uint8),
            killed=_killed(simulation),
            seed=simulation.seed,
            options={
                "walltime": simulation.walltime,
                "dependencies": simulation.dependencies,
                "period": simulation.period,
                **({} if simulation.semantics == "textbook" else {"semantics": simulation.semantics}),
                **(
                    {} if simulation.service_time is None else {"service_time": repr(simulation.service_time)}
                ),
            },
            choices=tuple(simulation.choices),
            seconds=seconds,
            passes=system.passes,
            placements=Placements.of(system.cluster, system.allocations, system.events),
        )

    # --- each job ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.start_time)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which jobs ran to their end; the others were rejected."""
        return self.end_time >= 0

    @property
    def wait_time(self) -> Seconds:
        """Start minus submission [s]; not a number for rejected jobs, here and below."""
        return self._where_finished(self.start_time - self.submit_time)

    @property
    def response_time(self) -> Seconds:
        """End minus submission [s]."""
        return self._where_finished(self.end_time - self.submit_time)

    @property
    def run_time(self) -> Seconds:
        """End minus start [s]."""
        return self._where_finished(self.end_time - self.start_time)

    @property
    def slowdown(self) -> Seconds:
        """Response time over run time, a run time below 1 s taken as 1 s; at least 1."""
        return self.bounded_slowdown(threshold=1)

    def bounded_slowdown(self, threshold: float = 10) -> Seconds:
        """Return ``max(1, response time / max(run time, threshold))`` of each job.

        Short jobs do not blow it up (Feitelson & Rudolph, JSSPP 1998).

        Parameters
        ----------
        threshold : float
            Run times below it count as it [s], > 0.
        """
        return np.maximum(1.0, self.response_time / np.maximum(self.run_time, threshold))

    def _where_finished(self, values: NDArray[np.int64]) -> Seconds:
        return np.where(self.finished, values, np.nan)

    # --- the whole -----------------------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """What `size` counts: ``nodes``, or the first resource of machines."""
        return "nodes" if self.placements is None else self.placements.cluster.unit

    @property
    def amount(self) -> NDArray[np.int64]:
        """How much of `size` each job took, int64, shape (jobs,): its nodes, or so much of machines."""
        return self.workload.column("nodes") if self.placements is None else self.placements.totals[:, 0]

    @property
    def makespan(self) -> int:
        """Last end minus first submission [s]; 0 if no job ran."""
        if not self.finished.any():
            return 0
        return int(self.end_time.max() - self.submit_time.min())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the start times: equal schedules of a workload, equal hash."""
        return hashlib.sha256(self.start_time.astype("<i8").tobytes()).hexdigest()

    def sweep(self) -> Sweep:
        """Return the instants at which the jobs that ran were submitted, started and ended."""
        ran = self.finished
        columns = (self.submit_time, self.start_time, self.end_time, self.amount)
        return Sweep.of(*(column[ran] for column in columns))

    def timeline(self) -> Steps:
        """Return waiting jobs and busy nodes over time, exactly, after all that happens at each instant.

        On machines, what is busy of their first resource. A rejected job does not count as waiting: when
        it was rejected is not recorded.
        """
        return self.sweep().steps

    def node_numbers(self) -> list[tuple[range, ...]]:
        """Return for each job the intervals of node numbers it had, for Gantt charts.

        Nodes are only counted during a run; :func:`~hpcsimkit.node_numbers.assign_nodes` says which is whose.
        """
        return assign_nodes(self.start_time, self.end_time, self.workload.column("nodes"), self.size)

    # --- out and in ----------------------------------------------------------------------------------

    def to_frame(self) -> pandas.DataFrame:
        """Return one row a job, in log order, times in the log's own seconds.

        Columns: ``job_id``, and ``job_name`` if the log has names; ``submit_time, start_time, end_time,
        wait_time, run_time, requested_time, nodes``; what the log says was asked of machines (its resources,
        ``spread, exclusive, constraint, kind``), and on machines ``machines`` (their names, joined by
        blanks); ``mode, killed``; then those of ``user, group, queue, partition`` that the log has, names
        where it has names. ``start_time, end_time, wait_time, run_time`` are nullable integers, empty for
        rejected jobs.
        """
        import pandas

        given, never = self.workload.columns, ~self.finished
        times = {
            "start_time": self.start_time,
            "end_time": self.end_time,
            "wait_time": self.start_time - self.submit_time,
            "run_time": self.end_time - self.start_time,
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
        columns["mode"] = pandas.Categorical.from_codes(self.mode, categories=pandas.Index(MODE_NAMES))
        columns["killed"] = self.killed
        columns |= {name: _in_words(self.workload, name) for name in OWNERS if name in given}
        return pandas.DataFrame(columns)

    def to_swf(self, path: str | os.PathLike[str]) -> None:
        """Write the schedule as a log that :func:`~hpcsimkit.workloads.swf.read_swf` reads back.

        Field 3 is the simulated wait time, field 4 the simulated run time, 5 and 8 the nodes; the rest is
        the log's. The header says how the schedule came to be. Rejected jobs have -1 in fields 3 and 4 and
        status 5 (cancelled).

        The format knows one number of processors, and nothing of machines: of those, fields 5 and 8 are
        what a job had of the first resource (0 of jobs that had only others); what else jobs asked for, and
        where they ran, is left to :meth:`to_frame`.

        Raises
        ------
        WorkloadError
            The file cannot be written.
        """
        from hpcsimkit.files import write_bytes
        from hpcsimkit.workloads.swf import SWF_FIELDS, swf_text
        from hpcsimkit.workloads.swf_header import header_to_write

        ran = self.finished
        columns = {name: values for name, values in self.workload.columns.items() if name in SWF_FIELDS}
        nodes = self.amount
        columns |= {
            "submit_time": self.submit_time,
            "wait_time": np.where(ran, self.start_time - self.submit_time, -1),
            "run_time": np.where(ran, self.end_time - self.start_time, -1),
            "allocated_processors": nodes,
            "requested_processors": nodes,
        }
        if not ran.all():
            columns["status"] = np.where(ran, self.workload.column("status"), CANCELLED)
        header = header_to_write(dataclasses.replace(self.workload, machine_size=self.size))
        write_bytes(path, swf_text(columns, {**header, **self._swf_header()}).encode())

    def _swf_header(self) -> dict[str, str]:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return {
            "Simulator": f"hpcsimkit {__version__}",
            "Policy": self.policy,
            "Seed": str(self.seed),
            "Options": options,
            **({} if self.placements is None else {"Processors": f"{self.unit} of {self._machine}"}),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything, the workload included, into one compressed ``.npz`` file (no pickle).

        Raises
        ------
        WorkloadError
            The file cannot be written.
        """
        from hpcsimkit.result_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what :meth:`save` wrote.

        Raises
        ------
        WorkloadError
            The file cannot be read, or is not a saved result.
        """
        from hpcsimkit.result_file import load

        return load(path)

    # --- to look at ----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        rows = dict(self._rows())
        return (
            f"<Result of {self.policy} on {self.workload.name}: {rows['Jobs']} jobs on "
            f"{self._machine}, mean wait {rows['Mean wait']}>"
        )

    @property
    def _machine(self) -> str:
        """The machine in words."""
        return f"{self.size} nodes" if self.placements is None else self.placements.cluster.summary

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        cells = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        return f"<table>{cells}</table>"

    def _rows(self) -> list[tuple[str, str]]:
        """Return what a first look at the result shows."""
        ran = self.finished
        jobs, rejected = len(self), len(self) - int(ran.sum())
        wait = f"{self.wait_time[ran].mean():,.6g} s" if ran.any() else "unknown"
        slowdown = f"{self.bounded_slowdown()[ran].mean():,.6g}" if ran.any() else "unknown"
        return [
            ("Policy", self.policy),
            ("Workload", self.workload.name),
            ("Machine", self._machine),
            ("Jobs", f"{jobs:,}" + (f", {rejected:,} of them rejected" if rejected else "")),
            ("Mean wait", wait),
            ("Mean bounded slowdown", slowdown),
            ("Makespan", f"{self.makespan:,} s"),
            ("Seed", str(self.seed)),
            ("Simulated in", f"{self.seconds:.3g} s, {self.passes:,} passes"),
        ]


def _in_words(workload: Workload, name: str) -> Any:
    """Return a column, as names where the workload has names for its numbers (None for -1)."""
    column = workload.column(name)
    if name not in workload.labels:
        return column
    words = (workload.label(name, number) if number >= 0 else None for number in column.tolist())
    return np.array([*words], dtype=object)


def _killed(simulation: Simulation) -> NDArray[np.bool_]:
    """Tell which jobs were ended at their requested time although they would have run longer."""
    system, model = simulation.system, simulation.service_time
    if model is None or simulation.walltime != "kill":
        return simulation.workload.column("run_time") > system.workload.column("run_time")
    killed = np.zeros(len(system.jobs), dtype=bool)
    for row in system.ended:
        job, allocation = simulation.workload.jobs[row], system.given(row)
        killed[row] = model.actual(job, allocation, system.cluster) > job.requested_time
    return killed
