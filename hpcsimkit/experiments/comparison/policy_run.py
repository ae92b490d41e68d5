"""Runs of policies as tasks, and their files: tables of jobs, the schedule, and placements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.files import machines_text
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled.support import is_ready, slowness
from hpcsimkit.engine.results_folder import file_name
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import HpcsimkitError, ImpossibleScheduleError, PolicyError
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.parts.trust import importing
from hpcsimkit.experiments.settings.run_table import DECISIVE_KEYS
from hpcsimkit.experiments.source import Source
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.results.breakdown import breakdown
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    import pyarrow

DECISIVE = (*DECISIVE_KEYS, "warmup", "cooldown", "trace")
"""Settings that determine the files of a run, besides the workload and the policy."""


ROWS = 16_384
"""Number of rows of a CSV file that are formatted together."""


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


class PolicyRun(Task):
    """Simulation of a policy; its outcome is the record of a :class:`Run`."""

    kind = "simulation"

    def __init__(self, policy: str, experiment: Experiment, workload: Workload, results: Path) -> None:
        self.policy = policy
        self.experiment = experiment
        self.workload = workload
        self.results = results

    @property
    def name(self) -> str:
        """Name of the policy's files."""
        return file_name(self.policy)

    @property
    def label(self) -> str:
        """Name of the policy."""
        return self.policy

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.workload)

    def inputs(self) -> Any:
        """Return the policy, the jobs and the settings."""
        inputs = inputs_of(self.policy, self.experiment, self.workload.name, self.workload)
        own = self.experiment.own_metrics
        return {**inputs, "metrics": own} if own else inputs

    @property
    def simulation(self) -> Simulation:
        """The simulation, without observers."""
        policy = self.experiment.policy_named(self.policy)
        return simulation_of(self.policy, policy, self.experiment, self.workload)

    @cached_property
    def slowness(self) -> int:
        """Rough duration of a compiled run, from 1; 0 if SimPy runs it, or it must be compiled first."""
        simulation = self.simulation
        return slowness(simulation) if not self.experiment.trace and is_ready(simulation) else 0

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and write the tables."""
        try:
            with guarded(self.policy):
                policy = self.experiment.policy_named(self.policy)
                representation = repr(policy)
            trace = self.results / "traces" / f"{self.name}.jsonl"
            result = simulated(self.policy, policy, self.experiment, self.workload, tell, trace)
            self._write_files(result)
        except (PolicyError, ImpossibleScheduleError):  # their messages name the policy
            raise
        except HpcsimkitError as error:
            raise type(error)(f"{self.policy}: {error}") from error
        return {
            "policy": self.policy,
            "representation": representation,
            "metrics": metrics_of(result, self.experiment),
            "schedule_sha256": result.hash,
            "seconds": result.seconds,
            "passes": result.passes,
            "simulator": result.simulator,
            "notes": list(policy.remarks_on(result)),
            "waits": _waits_of(result, self.experiment),
        }

    def _write_files(self, result: Result) -> None:
        """Write the tables and the schedule of a run."""
        write_tables(result.to_arrow(), self.results / "jobs", self.name)
        result.to_swf(self.results / "schedules" / f"{self.name}.swf")
        if result.placements is not None:
            placements = _placements(result, result.placements)
            write_tables(arrow_table(placements), self.results / "placements", self.name)


def inputs_of(policy: str, source: Source, *workload: Any) -> dict[str, Any]:
    """Return everything that determines the files of a run."""
    cluster, partitions = source.cluster, source.scheduled
    return {
        "name": policy,
        "policy": source.policy_named(policy),
        "workload": workload,
        "settings": source.model_dump(include=set(DECISIVE)),
        "machines": None if cluster is None else machines_text(cluster),
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


def simulated(
    name: str,
    policy: Policy,
    experiment: Experiment,
    workload: Workload,
    tell: Tell,
    trace: Path,
    observers: Sequence[Observer] = (),
) -> Result:
    """Simulate a policy with the settings of an experiment.

    `tell` is called from time to time with the number of ended jobs; `trace` is the file of all events, if
    the experiment asks for it.
    """
    traces = [Trace(trace)] if experiment.trace else []
    return simulation_of(name, policy, experiment, workload, [Ended(tell), *traces, *observers]).run()


def simulation_of(
    name: str,
    policy: Policy,
    experiment: Experiment,
    workload: Workload,
    observers: Sequence[Observer] = (),
) -> Simulation:
    """Return the simulation of a policy with the settings of an experiment."""
    return Simulation(workload, policy, setup=experiment.setup, observers=observers, name=name)


class Ended(Observer):
    """Observer that reports the number of ended jobs."""

    EVERY = 1000
    needs_events = False

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.jobs = 0

    def on_end(self, job: Job, system: System) -> None:
        """Count the job, and report every thousandth one."""
        self.jobs += 1
        if self.jobs % self.EVERY == 0:
            self.tell(self.jobs)


def metrics_of(result: Result, experiment: Experiment) -> dict[str, float | None]:
    """Return the metrics of a run; None for undefined ones."""
    selected = {"warmup": experiment.warmup, "cooldown": experiment.cooldown}
    own = experiment.own_metrics
    names = [name for name in experiment.metric_names if name not in own]
    metrics = evaluate(result, **selected, names=names)
    for name in own:
        metrics |= importing(partial(evaluate, result, **selected, names=[name]), name, "computed")
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def _waits_of(result: Result, experiment: Experiment) -> dict[str, float]:
    """Return the mean wait of the jobs that started in each partition; nothing without partitions."""
    if result.started_in is None:
        return {}
    table = breakdown(result, "partition", warmup=experiment.warmup, cooldown=experiment.cooldown)
    return dict(zip(table.index, table.mean_wait_time.tolist(), strict=True))


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
