"""Runs of policies, and their files: tables of jobs, the schedule, metrics and further facts."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit import _version
from hpcsimkit._version import __version__
from hpcsimkit.cluster.files import machines_text
from hpcsimkit.errors import HpcsimkitError, PolicyError
from hpcsimkit.experiments.experiment import Experiment
from hpcsimkit.experiments.results_folder import FINISHED, file_name
from hpcsimkit.io.documents import json_record
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import EVENT_ORDERS
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.parameters import parts
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.kernel.watchdog import Watchdog
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas

__all__ = ["Run", "fingerprint", "finished_run", "prepare", "run_policy"]

DECISIVE = ("seed", "walltime", "dependencies", "period", "semantics", "warmup", "cooldown", "trace")
"""Settings of an experiment that determine the files of a run, besides the workload and the policy."""


@dataclass(frozen=True)
class Run:
    """Record of a run, besides its tables.

    Parameters
    ----------
    policy : str
        Name of the policy as given by the user.
    fingerprint : str
        Hash of the inputs; see :func:`fingerprint`.
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
    notes : sequence of str
        Remarks of the policy on its result.
    """

    policy: str
    fingerprint: str
    representation: str
    metrics: Mapping[str, float | None]
    schedule_sha256: str
    seconds: float
    passes: int
    notes: Sequence[str] = ()


def run_policy(
    policy: str, tell: Callable[[int], None], *, experiment: Experiment, workload: Workload, folder: Path
) -> None:
    """Simulate one policy and write its files; the last one marks the run as finished.

    Parameters
    ----------
    policy : str
        Name of the policy.
    tell : callable
        Callback, called from time to time with the number of ended jobs.
    experiment, workload : Experiment, Workload
        Settings and jobs to simulate.
    folder : Path
        Path of the incomplete results folder.

    Raises
    ------
    HpcsimkitError
        The policy failed, or a file cannot be written; the message begins with the name of the policy.
    """
    finished = folder / FINISHED / f"{file_name(policy)}.json"
    try:
        finished.unlink(missing_ok=True)  # a record of another experiment is not valid for the new files
        with guarded(policy):
            made = experiment.policy(policy)
            mark, representation = fingerprint(policy, experiment, workload), repr(made)
        with Watchdog():
            result = _simulate(policy, made, tell, experiment, workload, folder)
        run = Run(
            policy=policy,
            fingerprint=mark,
            representation=representation,
            metrics=_metrics(result, experiment),
            schedule_sha256=result.hash,
            seconds=result.seconds,
            passes=result.passes,
            notes=made.remarks_on(result),
        )
        _write_files(result, run, folder)
        write_bytes(finished, json.dumps(asdict(run)).encode())
        tell(len(workload))
    except PolicyError:  # its message names the policy
        raise
    except HpcsimkitError as error:
        raise type(error)(f"{policy}: {error}") from error


def prepare(workload: Workload) -> None:
    """Precompute values shared by all runs, before processes are forked that inherit them."""
    import pandas  # noqa: F401
    from pyarrow import csv, parquet  # noqa: F401

    workload.jobs, workload.hash  # noqa: B018 - made when first asked for


def finished_run(policy: str, folder: Path) -> Run | None:
    """Return the finished run of a policy in an incomplete results folder, if there is one."""
    try:
        return Run(**json_record(folder / FINISHED / f"{file_name(policy)}.json"))
    except TypeError:  # a record with other fields
        return None


def fingerprint(policy: str, experiment: Experiment, workload: Workload) -> str:
    """Return the SHA-256 of everything that determines the files of a run."""
    made, cluster, model = experiment.policy(policy), experiment.cluster, experiment.service_time
    facts: list[object] = [
        __version__,
        policy,
        repr(made),
        _foreign_code(*parts(made)),
        workload.name,
        workload.hash,
    ]
    facts.append({name: getattr(experiment, name) for name in DECISIVE})
    if cluster is not None:
        facts.append(machines_text(cluster))
    if model is not None:  # a model made from a function stores it
        facts += [repr(model), _foreign_code(model, *vars(model).values())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _foreign_code(*things: object) -> list[str]:
    """Return the hashes of the files outside hpcsimkit that define some objects (stages, functions)."""
    modules = {str(getattr(thing, "__module__", "")) for thing in things}
    files = (getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules))
    kit = Path(_version.__file__).parent.resolve()
    own = (kit, *(kit.parent / room for room in ("policies", "agents", "workloads")))
    return [
        hashlib.sha256(Path(file).read_bytes()).hexdigest()
        for file in files
        if file is not None and not any(Path(file).resolve().is_relative_to(folder) for folder in own)
    ]


def _simulate(
    name: str,
    policy: Policy,
    tell: Callable[[int], None],
    experiment: Experiment,
    workload: Workload,
    folder: Path,
) -> Result:
    observers: list[Observer] = [Ended(tell)]
    if experiment.trace:
        observers.append(Trace(folder / "traces" / f"{file_name(name)}.jsonl"))
    return Simulation(
        workload,
        policy,
        experiment.cluster,
        service_time=experiment.service_time,
        seed=experiment.seed,
        walltime=experiment.walltime,
        dependencies=experiment.dependencies,
        period=experiment.period,
        event_order=EVENT_ORDERS[experiment.semantics](),
        observers=observers,
        name=name,
    ).run()


class Ended(Observer):
    """Observer that reports the number of ended jobs.

    Parameters
    ----------
    tell : callable
        Callback, called with the number of ended jobs.
    """

    EVERY = 1000

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.tell = tell
        self.jobs = 0

    def on_end(self, job: Job, system: System) -> None:
        """Count the job, and report every thousandth one."""
        self.jobs += 1
        if self.jobs % self.EVERY == 0:
            self.tell(self.jobs)


def _metrics(result: Result, experiment: Experiment) -> dict[str, float | None]:
    metrics = evaluate(result, warmup=experiment.warmup, cooldown=experiment.cooldown)
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def _write_files(result: Result, run: Run, folder: Path) -> None:
    """Write the tables and the schedule of a run."""
    stem = file_name(run.policy)
    write_tables(result.to_frame(), folder / "jobs", stem)
    result.to_swf(folder / "schedules" / f"{stem}.swf")
    if result.placements is not None:
        write_tables(_placements(result, result.placements), folder / "placements", stem)


def _placements(result: Result, placements: Placements) -> pandas.DataFrame:
    """Return a row for each allocated machine of a job: job, machine, and amount of each resource."""
    import pandas

    cluster = placements.cluster
    resources = dict(zip(cluster.resources, placements.amounts.T, strict=True))
    machine = pandas.Categorical.from_codes(placements.machine, categories=pandas.Index(cluster.names))
    job = {"row": placements.job, "job_id": result.workload.id[placements.job]}
    return pandas.DataFrame({**job, "machine": machine, **resources})


def write_tables(frame: pandas.DataFrame, folder: Path, stem: str) -> None:
    """Write a table as ``stem.parquet`` and ``stem.csv`` with Arrow, which is far faster than pandas."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(table, buffer)
    write_bytes(folder / f"{stem}.parquet", buffer.getvalue().to_pybytes())
    words = pyarrow.table({name: _words(table.column(name)) for name in table.column_names})
    write_bytes(folder / f"{stem}.csv", _csv(words))


def _csv(table: Any) -> bytes:
    """Return a table as CSV, with quotation marks only if some value needs them."""
    import pyarrow
    from pyarrow import csv

    for quoting in ("none", "needed"):
        buffer = pyarrow.BufferOutputStream()
        buffer.write(f"{','.join(table.column_names)}\n".encode())
        try:
            csv.write_csv(table, buffer, csv.WriteOptions(include_header=False, quoting_style=quoting))
            break
        except pyarrow.ArrowInvalid:  # a value with a comma, a quotation mark or a line break
            continue
    return bytes(buffer.getvalue().to_pybytes())


def _words(column: Any) -> Any:
    """Return a categorical column as a column of strings, for CSV."""
    import pyarrow

    return column.cast(pyarrow.string()) if pyarrow.types.is_dictionary(column.type) else column
