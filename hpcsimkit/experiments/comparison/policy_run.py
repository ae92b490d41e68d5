"""Runs of policies as tasks, and their files: tables of jobs, the schedule, and placements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcsimkit.cluster.failure_files import FailureLog
from hpcsimkit.cluster.files import machines_text
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled.support import is_ready, slowness
from hpcsimkit.engine.results_folder import file_name
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import HpcsimkitError, ImpossibleScheduleError, PolicyError
from hpcsimkit.experiments.comparison.case import Case, Ended
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.parts.named_parts import metric_named
from hpcsimkit.experiments.parts.trust import Trust, importing
from hpcsimkit.experiments.settings.run_table import DECISIVE_KEYS
from hpcsimkit.experiments.source import Source
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import remarks_on
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.breakdown import breakdown
from hpcsimkit.results.held_shares import held_shares
from hpcsimkit.results.metrics import Metric, measure, select
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    import pyarrow

DECISIVE = (*DECISIVE_KEYS, "warmup", "cooldown", "trace")
"""Settings that determine the files of a run, besides the workload and the policy."""

RESULT = "result.npz"
SNAPSHOT = "snapshot.npz"
"""File of a task with the whole result."""

ROWS = 16_384
"""Number of rows of a CSV file that are formatted together."""


ATTEMPTS = "attempts"
"""Folder of the attempts of jobs that were stopped, and of outages."""

HELD = "held"
"""Folder of the intervals in which gates held jobs."""


@dataclass(frozen=True)
class Run:
    """Record of a finished run, besides its tables.

    Parameters
    ----------
    policy : str
        Name of the policy as given by the user.
    representation : str
        Representation of the policy with its parameters.
    metrics : mapping of str to float or None
        Values of :data:`hpcsimkit.results.metrics.METRICS`; None for undefined ones.
    schedule_sha256 : str
        SHA-256 of the start times.
    seconds : float
        Wall-clock time of the simulation [s].
    passes : int
        Number of scheduling passes.
    simulator : str
        Program that simulated: ``"simpy"`` or ``"compiled"``.
    notes : sequence of str
        Notes that the policy adds to the report.
    waits : mapping of str to float
        Mean wait [s] of the jobs that started in each partition; empty without partitions.
    held : mapping of str to float
        Share of the wait by the reason for which gates held jobs; empty without such jobs.
    """

    policy: str
    representation: str
    metrics: Mapping[str, float | None]
    schedule_sha256: str
    seconds: float
    passes: int
    simulator: str = "simpy"
    notes: Sequence[str] = ()
    waits: Mapping[str, float] = field(default_factory=dict)
    held: Mapping[str, float] = field(default_factory=dict)


class Chosen(NamedTuple):
    """Metrics chosen in place of those of an experiment, and the permission to import them.

    Parameters
    ----------
    metrics : sequence of str or Metric
        Metrics, by name or as objects.
    trust : Trust
        Permission to import those that are named.
    """

    metrics: Sequence[str | Metric]
    trust: Trust


class PolicyRun(Task):
    """Simulation of a case; its outcome is the record of a :class:`Run`.

    Parameters
    ----------
    case : Case
        Jobs, policy and options, with the settings of an experiment.
    results : Path, optional
        Path of the folder to which its tables are written; by default there are none.
    chosen : Chosen, optional
        Metrics to compute; by default those of the experiment.
    name : str, optional
        Name of the task; by default that of the policy's files.
    saved : bool
        Whether the result is in the folder of the task. Default: False.
    """

    kind = "simulation"

    def __init__(
        self,
        case: Case,
        results: Path | None = None,
        chosen: Chosen | None = None,
        name: str | None = None,
        *,
        saved: bool = False,
    ) -> None:
        assert isinstance(case.source, Experiment)
        self.case = case
        self.experiment = case.source
        self.policy = case.name
        self.results = results
        self.chosen = chosen
        self.saved = saved
        self._name = name

    @property
    def name(self) -> str:
        """Name of the policy's files, or of the task."""
        return self._name or file_name(self.policy)

    @property
    def label(self) -> str:
        """Name of the policy."""
        return self.policy

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.case.jobs)

    def inputs(self) -> Any:
        """Return the policy, the jobs and the settings; of objects the name, since nothing is resumed."""
        if self._name is not None:
            return self._name
        inputs = inputs_of(self.policy, self.experiment, self.case.jobs.name, self.case.jobs)
        own = self.experiment.own_metrics
        return {**inputs, "metrics": own} if own else inputs

    @cached_property
    def slowness(self) -> int:
        """Rough duration of a compiled run, from 1; 0 if SimPy runs it, or it must be compiled first."""
        simulation = self.case.simulation
        plain = not self.experiment.trace and self.experiment.snapshots is None
        return slowness(simulation) if plain and is_ready(simulation) else 0

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and write the tables."""
        case, experiment = self.case.watched(Ended(tell)), self.experiment
        try:
            with guarded(self.policy):
                representation = repr(case.policy)
            if experiment.trace and self.results is not None:
                case = case.traced(self.results / "traces" / f"{self.name}.jsonl")
            result = self._simulated(case.simulation, folder / SNAPSHOT)
            if self.results is not None:
                self._write_files(result, self.results)
            if self.saved:
                result.save(folder / RESULT)
            metrics = self._metrics_of(result)
        except (PolicyError, ImpossibleScheduleError):  # their messages name the policy
            raise
        except HpcsimkitError as error:
            raise type(error)(f"{self.policy}: {error}") from error
        return {
            "policy": self.policy,
            "representation": representation,
            "metrics": metrics,
            "schedule_sha256": result.hash,
            "seconds": result.seconds,
            "passes": result.passes,
            "simulator": result.simulator,
            "notes": [*case.policy.remarks_on(result), *remarks_on(result), *_refusals(result)],
            "waits": _waits_of(result, experiment),
            "held": _held_in(result, experiment),
        }

    def _simulated(self, simulation: Simulation, file: Path) -> Result:
        """Return the result of a simulation, which goes on from its snapshot if there is one."""
        if self.experiment.snapshots is not None:
            if file.exists():
                simulation.resume(file)
            simulation.keep_snapshots(file, self.experiment.snapshots)
        result = simulation.run()
        file.unlink(missing_ok=True)
        return result

    def _metrics_of(self, result: Result) -> dict[str, float | None]:
        if self.chosen is None:
            return metrics_of(result, self.experiment)
        for metric in self.chosen.metrics:
            if isinstance(metric, str):
                metric_named(metric, None, self.chosen.trust)  # a worker imports it, too
        selected = {"warmup": self.experiment.warmup, "cooldown": self.experiment.cooldown}
        return _plain(measure(result, **selected, names=self.chosen.metrics))

    def _write_files(self, result: Result, folder: Path) -> None:
        """Write the tables and the schedule of a run."""
        write_tables(result.to_arrow(), folder / "jobs", self.name)
        result.to_swf(folder / "schedules" / f"{self.name}.swf")
        if result.placements is not None:
            placements = _placements(result, result.placements)
            write_tables(arrow_table(placements), folder / "placements", self.name)
        if result.held is not None:
            (folder / HELD).mkdir(exist_ok=True)
            write_tables(arrow_table(result.held.to_frame(result.workload)), folder / HELD, self.name)
        if result.attempts is not None or result.downtime is not None:
            (folder / ATTEMPTS).mkdir(exist_ok=True)
        if result.attempts is not None:
            write_tables(arrow_table(result.attempts.to_frame(result.workload)), folder / ATTEMPTS, self.name)
        if result.attempts is not None or result.downtime is not None:
            result.save(folder / ATTEMPTS / f"{self.name}.npz")  # for pictures: with places and outages


def inputs_of(policy: str, source: Source, *workload: Any) -> dict[str, Any]:
    """Return everything that determines the files of a run."""
    cluster, partitions = source.cluster, source.scheduled
    return {
        "name": policy,
        "policy": source.policy_named(policy),
        "workload": workload,
        "settings": source.model_dump(include=set(DECISIVE)),
        "machines": None if cluster is None else machines_text(cluster),
        "failure_log": log.record if isinstance(log := source.setup.outages, FailureLog) else None,
        "partitions": partitions.definition if isinstance(partitions, Partitions) else None,
        "service_time": source.service_time,
    }


def load_writers() -> None:
    """Import the libraries that write tables, before processes are forked that inherit them."""
    import pandas  # noqa: F401
    from pyarrow import csv, parquet  # noqa: F401


def prepare(workload: Workload) -> None:
    """Precompute values shared by all runs, before processes are forked that inherit them."""
    load_writers()
    workload.jobs, workload.hash  # noqa: B018 - made when first asked for


def metrics_of(result: Result, experiment: Experiment) -> dict[str, float | None]:
    """Return the metrics of a run; None for undefined ones."""
    selected = {"warmup": experiment.warmup, "cooldown": experiment.cooldown}
    own = experiment.own_metrics
    names = [name for name in experiment.metric_names if name not in own]
    metrics = measure(result, **selected, names=names)
    for name in own:
        metrics |= importing(partial(measure, result, **selected, names=[name]), name, "computed")
    return _plain(metrics)


def _plain(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Return metrics for JSON."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def _waits_of(result: Result, experiment: Experiment) -> dict[str, float]:
    """Return the mean wait of the jobs that started in each partition; nothing without partitions."""
    if result.started_in is None:
        return {}
    table = breakdown(result, "partition", warmup=experiment.warmup, cooldown=experiment.cooldown)
    return dict(zip(table.index, table.mean_wait_time.tolist(), strict=True))


def _refusals(result: Result) -> list[str]:
    """Return notes on the jobs that were rejected or given up, as no gate would ever have let them start."""
    if result.held is None:
        return []
    started = result.start_time >= 0
    return [
        f"{count} of {len(result)} jobs {what}: {reason}"
        for jobs, what in (
            (~started, "rejected, as they can never start"),
            (started, "given up, as they can never start again"),
        )
        for reason, count in result.held.refused(jobs).items()
    ]


def _held_in(result: Result, experiment: Experiment) -> dict[str, float]:
    """Return the share of the wait by reason."""
    selected = select(result, warmup=experiment.warmup, cooldown=experiment.cooldown)
    return held_shares(result, selected.jobs)


def _placements(result: Result, placements: Placements) -> pandas.DataFrame:
    """Return a row for each allocated machine of a job: job, machine, and amount of each resource."""
    import pandas

    cluster = placements.cluster
    resources = dict(zip(cluster.resources, placements.amounts.T, strict=True))
    machine = pandas.Categorical.from_codes(placements.machine, categories=pandas.Index(cluster.names))
    job = {"row": placements.job, "job_id": result.workload.id[placements.job]}
    return pandas.DataFrame({**job, "machine": machine, **resources})


def arrow_table(frame: pandas.DataFrame) -> pyarrow.Table:
    """Return a table of Arrow without the index of the frame."""
    import pyarrow

    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def write_tables(table: pyarrow.Table, folder: Path, stem: str, *, with_csv: bool = True) -> None:
    """Write a table as ``stem.parquet`` and ``stem.csv`` with Arrow, which is far faster than pandas."""
    import pyarrow
    from pyarrow import parquet

    buffer = pyarrow.BufferOutputStream()
    integers = [each.name for each in table.schema if pyarrow.types.is_int64(each.type)]
    parquet.write_table(
        table,
        buffer,
        use_dictionary=[name for name in table.column_names if name not in integers],
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),  # half the size of a dictionary
    )
    write_bytes(folder / f"{stem}.parquet", memoryview(buffer.getvalue()))
    if not with_csv:
        return
    words = pyarrow.table({name: _words(table.column(name)) for name in table.column_names})
    write_bytes(folder / f"{stem}.csv", _csv(words))


def _csv(table: Any) -> memoryview:
    """Return a table as CSV, with quotation marks only if some value needs them."""
    import pyarrow
    from pyarrow import csv

    for quoting in ("none", "needed"):
        buffer = pyarrow.BufferOutputStream()
        buffer.write(f"{','.join(table.column_names)}\n".encode())
        try:
            options = csv.WriteOptions(include_header=False, quoting_style=quoting, batch_size=ROWS)
            csv.write_csv(table, buffer, options)
            break
        except pyarrow.ArrowInvalid:  # a value with a comma, a quotation mark or a line break
            continue
    return memoryview(buffer.getvalue())


def _words(column: Any) -> Any:
    """Return a categorical column as a column of strings, for CSV."""
    import pyarrow

    return column.cast(pyarrow.string()) if pyarrow.types.is_dictionary(column.type) else column
