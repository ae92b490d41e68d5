"""Reader of results folders: the results of the policies, their metrics and their provenance."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import HpcsimkitError, UsageError, WorkloadError
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.held import HeldJobs
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import MODE_NAMES, Result
from hpcsimkit.workloads.readers.swf import SWF_FIELDS, read_swf_lines

if TYPE_CHECKING:
    import pyarrow

__all__ = ["SavedResults"]

NUMBERS = ("job_id", "submit_time", "start_time", "end_time", "run_time", "requested_time", "nodes")
NEEDED = (*NUMBERS, "mode")
ASKED = ("spread", "exclusive", "constraint", "kind")
STARTED_IN = "started_in"
OPTIONAL = (*ASKED, "user", "group", "queue", "partition", "qos")


@dataclass(frozen=True, eq=False)
class SavedResults:
    """Contents of a results folder.

    Parameters
    ----------
    results : mapping of str to Result
        Results by the name of the policy, in the order of the experiment. Their workloads have the columns of
        the tables of jobs only, and the clock of the log; on machines, their placements are those of the
        tables of placements.
    metrics : mapping of str to mapping of str to float or None
        Metrics of each policy; None for undefined ones.
    provenance : mapping
        Contents of ``provenance.json``.
    experiment : str
        TOML text of the experiment, which reproduces the results.
    """

    results: Mapping[str, Result]
    metrics: Mapping[str, Mapping[str, float | None]]
    provenance: Mapping[str, Any]
    experiment: str

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> SavedResults:
        """Read a results folder: its tables of jobs from Parquet files, or from CSV files if there are none.

        Raises
        ------
        UsageError
            The path is not a results folder, or a file is missing or damaged; the message names it.
        """
        place = Path(folder)
        if not place.is_dir():
            raise UsageError(f"{place}: a results folder is needed, found {_kind(place)}")
        if not (place / "provenance.json").is_file():
            raise UsageError(f"{place}: a results folder is needed, found one without provenance.json")
        provenance = _json(place / "provenance.json", Format.PROVENANCE)
        metrics = _json(place / "metrics.json", Format.METRICS)
        try:
            files = {name: _stem(about["file"]) for name, about in provenance["policies"].items()}
            about = provenance["workload"]
            known = {
                "name": str(about["name"]),
                "resources": tuple(map(str, about.get("resources", ()))),
                "header": {str(key): str(value) for key, value in about.get("clock", {}).items()},
                "provenance": tuple(map(str, about.get("steps", ()))),
            }
            cluster = _cluster(place, provenance)
            size = int(about["nodes"]) if cluster is None else cluster.size
            metrics = {policy: dict(metrics[policy]) for policy in files}
            _check_kinds(provenance, metrics)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"provenance.json and metrics.json do not fit together: {error!r}"
            raise UsageError(f"{place}: {reason}") from None
        if not files:
            raise UsageError(f"{place}: at least one policy is needed, found none in provenance.json")
        results: dict[str, Result] = {}
        for policy, stem in files.items():
            result = _result(_file(place / "jobs" / stem), policy, size, known)
            if cluster is not None:
                placements = _placements(_file(place / "placements" / stem), cluster, len(result))
                result = replace(result, placements=placements)
            stopped = place / "attempts" / f"{stem}.npz"
            if stopped.is_file():
                saved = _saved(stopped, len(result))
                result = replace(result, attempts=saved.attempts, downtime=saved.downtime)
            result = replace(result, held=_held(place / "held" / stem, result))
            if not results:  # one table of jobs serves all policies: they have the same rows
                column = _executables(place / "schedules" / f"{stem}.swf", len(result))
            if column is not None:
                columns = {**result.workload.columns, "executable": column}
                result = replace(result, workload=replace(result.workload, columns=columns))
            results[policy] = result
        return cls(results, metrics, provenance, _text(place / "experiment.toml", Format.EXPERIMENT))


def _stem(name: Any) -> str:
    """Return the name of a policy's files; a name that leads out of the folder is an error."""
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise ValueError(f"names of files are needed, found {name!r}")
    return name


def _check_kinds(provenance: Mapping[str, Any], metrics: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise a TypeError if a value that the report shows is of another kind."""
    workload = provenance["workload"]
    loads = (provenance.get("machines") or {}).get("offered_load") or {}
    policies = provenance["policies"].values()
    counts = [*workload.get("skipped", {}).values(), *workload.get("notes", {}).values()]
    counts += [about.get("passes", 0) for about in policies]
    options = provenance.get("options", {})
    lengths = [options.get("warmup", 0), options.get("cooldown", 0)]
    numbers = [value for values in metrics.values() for value in values.values() if value is not None]
    for values, kinds in (
        ([*counts], int),
        ([*numbers, *lengths, *loads.values()], int | float),
        ([provenance.get("packages", {})], dict),
        ([workload.get("steps", []), *(about.get("notes", []) for about in policies)], list),
        ([*workload.get("steps", []), *(about.get("schedule_sha256", "") for about in policies)], str),
    ):
        for value in values:
            if not isinstance(value, kinds):
                raise TypeError(f"{value!r} is of another kind")


def _cluster(place: Path, provenance: Mapping[str, Any]) -> Machines | None:
    """Return the machines; None for homogeneous nodes."""
    return Machines.read(place / "machines.csv") if provenance.get("machines") else None


def _result(file: Path, policy: str, size: int, about: Mapping[str, Any]) -> Result:
    """Return the result stored in a table of jobs; `about` holds further fields of its workload."""
    resources: tuple[str, ...] = about["resources"]
    table = _table(file, (*NEEDED, *resources))
    labels: dict[str, tuple[str, ...]] = {}
    try:
        columns = {column: _numbers(table, column) for column in (*NUMBERS, *resources)}
        for column in (column for column in OPTIONAL if column in table.column_names):
            columns[column], labels[column] = _numbers_and_words(table, column)
        mode, killed = _modes(table), np.zeros(len(table), dtype=bool)
        if "killed" in table.column_names:
            killed = np.asarray(table.column("killed").to_numpy(), dtype=bool)
        start, end = columns.pop("start_time"), columns.pop("end_time")
        columns["id"] = columns.pop("job_id")
        columns["run_time"] = np.maximum(columns["run_time"], 0)  # rejected jobs have none
        labels = {column: words for column, words in labels.items() if words}
        workload = Workload(columns, machine_size=size, labels=labels, **about)
    except (WorkloadError, ValueError, TypeError) as error:
        raise UsageError(f"{file}: not a table of jobs: {error}") from None
    return Result(
        workload,
        policy,
        size,
        columns["submit_time"],
        start,
        end,
        mode,
        killed,
        started_in=_started_in(table),
    )


def _saved(file: Path, jobs: int) -> Result:
    """Return the saved result of a run with outages or with jobs that were stopped."""
    try:
        saved = Result.load(file)
    except WorkloadError as error:
        raise UsageError(str(error)) from None
    if len(saved) != jobs:
        raise UsageError(f"{file}: {jobs} jobs are needed, found {len(saved)}")
    return saved


def _started_in(table: pyarrow.Table) -> NDArray[np.str_] | None:
    """Return the partitions in which jobs started; None for a run without partitions."""
    if STARTED_IN not in table.column_names:
        return None
    import pyarrow

    names = table.column(STARTED_IN).cast(pyarrow.string()).fill_null("")
    return np.array(names.to_pylist(), dtype=np.str_)


def _executables(schedule: Path, jobs: int) -> NDArray[np.int64] | None:
    """Return the executable of each job, which a schedule has and a table of jobs has not; None if absent."""
    try:
        numbers = read_swf_lines(schedule).fields[SWF_FIELDS.index("executable")]
    except HpcsimkitError:
        return None
    return numbers.astype(np.int64) if len(numbers) == jobs and (numbers >= 0).any() else None


def _held(stem: Path, result: Result) -> HeldJobs | None:
    """Return the intervals in which gates held jobs; None without any, or if job numbers are repeated."""
    number = result.workload.column("id").tolist()
    row_of = {each: row for row, each in enumerate(number)}
    if not any(stem.with_name(f"{stem.name}.{ending}").is_file() for ending in ("parquet", "csv")):
        return None
    if len(row_of) < len(number):
        return None
    file = _file(stem)
    table = _table(file, ("job_id", "start_time", "end_time", "reason"))
    try:
        job = np.array([row_of[each] for each in _numbers(table, "job_id").tolist()], dtype=np.int64)
        numbers, words = _numbers_and_words(table, "reason")
        reason = np.array([words[each] for each in numbers.tolist()], dtype=np.str_)
    except (LookupError, ValueError, TypeError) as error:
        raise UsageError(f"{file}: not a table of intervals of these jobs: {error!r}") from None
    return HeldJobs(job, _numbers(table, "start_time"), _numbers(table, "end_time"), reason)


def _placements(file: Path, cluster: Machines, jobs: int) -> Placements:
    """Return the placements stored in a table."""
    table = _table(file, ("row", "machine", *cluster.resources))
    numbers = {name: number for number, name in enumerate(cluster.names)}
    try:
        job = _numbers(table, "row")
        if len(job) and not (job.min() >= 0 and job.max() < jobs and (np.diff(job) >= 0).all()):
            raise ValueError(f"rows of jobs, ascending from 0 to {jobs - 1}, are needed")
        machine = np.array([numbers[name] for name in table.column("machine").to_pylist()], dtype=np.int64)
        amounts = np.column_stack([_numbers(table, resource) for resource in cluster.resources])
    except (KeyError, ValueError, TypeError) as error:
        raise UsageError(f"{file}: not a table of placements on machines.csv: {error}") from None
    return Placements(cluster, jobs, job, machine, amounts)


def _file(stem: Path) -> Path:
    """Return the path of a table given without suffix."""
    for ending in ("parquet", "csv"):
        file = stem.with_name(f"{stem.name}.{ending}")
        with suppress(OSError):  # a name too long for the file system
            if file.is_file():
                return file
    raise UsageError(f"{stem}.parquet: no such file, and no .csv in its place")


def _table(file: Path, needed: Sequence[str]) -> pyarrow.Table:
    """Read a table with Arrow, and check that it has the needed columns."""
    from pyarrow import ArrowException, csv, parquet, string

    options = csv.ConvertOptions(
        column_types={"machine": string()}, null_values=[""], strings_can_be_null=True
    )
    try:
        content = io.BytesIO(read_bytes(file, Format.TABLE))
        if file.suffix == ".parquet":
            _check_size(parquet.read_metadata(content), file)
            table = parquet.read_table(content)
        else:
            table = csv.read_csv(content, convert_options=options)
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: a table of jobs is needed, cannot be read: {_first_line(error)}") from None
    missing = [column for column in needed if column not in table.column_names]
    if missing:
        raise UsageError(f"{file}: column {missing[0]!r} is needed, found {', '.join(table.column_names)}")
    return table


def _check_size(about: pyarrow.parquet.FileMetaData, file: Path) -> None:
    """Reject a compressed table with a declared size over the limits; a small file can declare any size."""
    groups = map(about.row_group, range(about.num_row_groups))
    refuse_beyond("jobs", about.num_rows, file)
    refuse_beyond("bytes", sum(group.total_byte_size for group in groups), file)


def _numbers(table: pyarrow.Table, column: str) -> NDArray[np.int64]:
    """Return a column of integers, with -1 for missing values."""
    import pyarrow

    return np.asarray(table.column(column).cast(pyarrow.int64()).fill_null(-1).to_numpy())


def _numbers_and_words(table: pyarrow.Table, column: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return a column of integers; for strings, their codes (-1 for missing values) and the strings."""
    import pyarrow

    values = table.column(column)
    if pyarrow.types.is_integer(values.type):
        return _numbers(table, column), ()
    coded = values.cast(pyarrow.string()).combine_chunks().dictionary_encode()
    numbers = np.asarray(coded.indices.fill_null(-1).to_numpy(), dtype=np.int64)
    return numbers, tuple(coded.dictionary.to_pylist())


def _modes(table: pyarrow.Table) -> NDArray[np.uint8]:
    """Return the start modes as integer codes; raise a ValueError for an unknown one."""
    import pyarrow
    from pyarrow import compute

    words = table.column("mode").cast(pyarrow.string())
    numbers = compute.index_in(words, value_set=pyarrow.array(MODE_NAMES)).fill_null(255).to_numpy()
    if (numbers == 255).any():
        raise ValueError(f"modes are {', '.join(MODE_NAMES)}, found {words[int(np.argmax(numbers == 255))]}")
    return np.asarray(numbers, dtype=np.uint8)


def _json(file: Path, form: Format) -> dict[str, Any]:
    text = _text(file, form)
    try:
        value = json_value(text, file)
    except ValueError as error:
        raise UsageError(f"{file}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{file}: a JSON object is needed, found {type(value).__name__}")
    return value


def _text(file: Path, form: Format) -> str:
    try:
        return read_bytes(file, form).decode("utf-8")
    except WorkloadError as error:
        raise UsageError(str(error)) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: cannot be read: {_first_line(error)}") from None


def _kind(place: Path) -> str:
    return "a file" if place.exists() else "nothing there"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
