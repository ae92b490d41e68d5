"""One policy's run, put on disk: its tables of jobs, its schedule, and what is worth keeping beside them."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit import __version__, registry
from hpcsimkit.campaigns.experiment import Experiment
from hpcsimkit.campaigns.results_folder import file_name
from hpcsimkit.errors import HpcsimkitError, PolicyError
from hpcsimkit.files import write_bytes
from hpcsimkit.job import Job
from hpcsimkit.machine_files import machines_text
from hpcsimkit.metrics import evaluate
from hpcsimkit.observers import Observer
from hpcsimkit.placements import Placements
from hpcsimkit.policy import Policy, parts
from hpcsimkit.recording import Trace
from hpcsimkit.result import Result
from hpcsimkit.semantics import SEMANTICS
from hpcsimkit.system import System
from hpcsimkit.workload import Workload

if TYPE_CHECKING:
    import pandas

__all__ = ["FINISHED", "Run", "fingerprint", "finished_run", "prepare", "run_policy"]

FINISHED = "finished"
"""The folder, only in a results folder in the making, that holds a file for each run that is complete."""

DECISIVE = ("seed", "walltime", "dependencies", "period", "semantics", "warmup", "cooldown", "trace")
"""What of an experiment decides a run's files, beside the workload and the policy."""


@dataclass(frozen=True)
class Run:
    """What is kept of a run beside its tables.

    Parameters
    ----------
    policy : str
        The name it was asked for with.
    fingerprint : str
        See :func:`fingerprint`.
    representation : str
        The policy with its parameters.
    metrics : mapping of str to float or None
        See :data:`hpcsimkit.metrics.METRICS`; None where one is not defined.
    schedule_sha256 : str
        Hash of the start times.
    seconds : float
        What the simulation took [s of wall clock].
    passes : int
        Passes of the policy.
    """

    policy: str
    fingerprint: str
    representation: str
    metrics: Mapping[str, float | None]
    schedule_sha256: str
    seconds: float
    passes: int


def run_policy(
    policy: str, tell: Callable[[int], None], *, experiment: Experiment, workload: Workload, folder: Path
) -> None:
    """Simulate one policy and write its files; the last one says that the run is finished.

    Parameters
    ----------
    policy : str
        Its name.
    tell : callable
        Told now and then how many jobs have ended.
    experiment, workload : Experiment, Workload
        What to simulate.
    folder : Path
        The results folder in the making.

    Raises
    ------
    HpcsimkitError
        The policy failed, or a file cannot be written; the message begins with the policy's name.
    """
    try:
        made = experiment.policy(policy)
        result = _simulate(policy, made, tell, experiment, workload, folder)
        run = Run(
            policy=policy,
            fingerprint=fingerprint(policy, experiment, workload),
            representation=repr(made),
            metrics=_metrics(result, experiment),
            schedule_sha256=result.hash,
            seconds=result.seconds,
            passes=result.passes,
        )
        _write_files(result, run, folder)
        tell(len(workload))
    except PolicyError:  # says whose it is
        raise
    except HpcsimkitError as error:
        raise type(error)(f"{policy}: {error}") from error
    except SystemExit as error:
        raise PolicyError(f"{policy}: the policy asked to exit: {error}") from error


def prepare(workload: Workload) -> None:
    """Do what all runs need once, before processes are forked that inherit it."""
    import pandas  # noqa: F401
    from pyarrow import csv, parquet  # noqa: F401

    workload.jobs, workload.hash  # noqa: B018 - made when first asked for


def finished_run(policy: str, folder: Path) -> Run | None:
    """Return the run of a policy that is complete in a folder in the making, if there is one."""
    try:
        return Run(**json.loads((folder / FINISHED / f"{file_name(policy)}.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def fingerprint(policy: str, experiment: Experiment, workload: Workload) -> str:
    """Return the SHA-256 of all that decides the files of a run: equal fingerprints, equal files."""
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
    if model is not None:  # one made of a function holds it
        facts += [repr(model), _foreign_code(model, *vars(model).values())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _foreign_code(*things: object) -> list[str]:
    """Return the hashes of the files that define things (stages, functions) and are not the kit's own."""
    modules = {str(getattr(thing, "__module__", "")) for thing in things}
    files = (getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules))
    kit = Path(registry.__file__).parent.resolve()
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
    return SEMANTICS[experiment.semantics](
        workload,
        policy,
        experiment.cluster,
        service_time=experiment.service_time,
        seed=experiment.seed,
        walltime=experiment.walltime,
        dependencies=experiment.dependencies,
        period=experiment.period,
        observers=observers,
        name=name,
    ).run()


class Ended(Observer):
    """Tells now and then how many jobs have ended.

    Parameters
    ----------
    tell : callable
        Called with the number.
    """

    EVERY = 1000

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.tell = tell
        self.jobs = 0

    def on_end(self, job: Job, system: System) -> None:
        """Count, and tell every thousandth time."""
        self.jobs += 1
        if self.jobs % self.EVERY == 0:
            self.tell(self.jobs)


def _metrics(result: Result, experiment: Experiment) -> dict[str, float | None]:
    metrics = evaluate(result, warmup=experiment.warmup, cooldown=experiment.cooldown)
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def _write_files(result: Result, run: Run, folder: Path) -> None:
    """Write the files of a run, the one that says that it is finished last."""
    stem = file_name(run.policy)
    write_tables(result.to_frame(), folder / "jobs", stem)
    result.to_swf(folder / "schedules" / f"{stem}.swf")
    if result.placements is not None:
        write_tables(_placements(result, result.placements), folder / "placements", stem)
    write_bytes(folder / FINISHED / f"{stem}.json", json.dumps(asdict(run)).encode())


def _placements(result: Result, placements: Placements) -> pandas.DataFrame:
    """Return a row for each machine that a job had: of whom, which, and how much of each resource."""
    import pandas

    cluster = placements.cluster
    resources = dict(zip(cluster.resources, placements.amounts.T, strict=True))
    machine = pandas.Categorical.from_codes(placements.machine, categories=pandas.Index(cluster.names))
    job = {"row": placements.job, "job_id": result.workload.id[placements.job]}
    return pandas.DataFrame({**job, "machine": machine, **resources})


def write_tables(frame: pandas.DataFrame, folder: Path, stem: str) -> None:
    """Write a table as ``stem.parquet`` and ``stem.csv``; Arrow writes both, far faster than pandas would."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(table, buffer)
    write_bytes(folder / f"{stem}.parquet", buffer.getvalue().to_pybytes())
    words = pyarrow.table({name: _words(table.column(name)) for name in table.column_names})
    write_bytes(folder / f"{stem}.csv", _csv(words))


def _csv(table: Any) -> bytes:
    """Return a table as CSV, with quotation marks only if some word is in need of them."""
    import pyarrow
    from pyarrow import csv

    for quoting in ("none", "needed"):
        buffer = pyarrow.BufferOutputStream()
        buffer.write(f"{','.join(table.column_names)}\n".encode())
        try:
            csv.write_csv(table, buffer, csv.WriteOptions(include_header=False, quoting_style=quoting))
            break
        except pyarrow.ArrowInvalid:  # a word with a comma, a quotation mark or the end of a line
            continue
    return bytes(buffer.getvalue().to_pybytes())


def _words(column: Any) -> Any:
    """Return a column of categories as one of words, which is all that CSV knows."""
    import pyarrow

    return column.cast(pyarrow.string()) if pyarrow.types.is_dictionary(column.type) else column
