"""A results folder, read back: the results of its policies, their metrics, and where it all comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.result import MODE_NAMES, Result
from hpcsimkit.workload import Workload

if TYPE_CHECKING:
    import pyarrow

__all__ = ["SavedResults"]

NUMBERS = ("job_id", "submit_time", "start_time", "end_time", "run_time", "requested_time", "nodes")
NEEDED = (*NUMBERS, "mode")
OPTIONAL = ("user", "group", "queue", "partition")


@dataclass(frozen=True, eq=False)
class SavedResults:
    """What a results folder holds.

    Parameters
    ----------
    results : mapping of str to Result
        By the name of the policy, in the order of the experiment. Their workloads have the columns of the
        tables of jobs, no more.
    metrics : mapping of str to mapping of str to float or None
        For each policy its metrics; None where one is not defined.
    provenance : mapping
        What ``provenance.json`` says.
    experiment : str
        The TOML text that makes the same results.
    """

    results: Mapping[str, Result]
    metrics: Mapping[str, Mapping[str, float | None]]
    provenance: Mapping[str, Any]
    experiment: str

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> SavedResults:
        """Read a results folder: its tables of jobs as Parquet, or as CSV where there is no Parquet file.

        Raises
        ------
        UsageError
            The folder is none, or a file of it is missing or damaged; the message names it.
        """
        place = Path(folder)
        if not place.is_dir():
            raise UsageError(f"{place}: a results folder is needed, found {_kind(place)}")
        if not (place / "provenance.json").is_file():
            raise UsageError(f"{place}: a results folder is needed, found one without provenance.json")
        provenance, metrics = _json(place / "provenance.json"), _json(place / "metrics.json")
        try:
            files = {name: place / "jobs" / about["file"] for name, about in provenance["policies"].items()}
            size, name = int(provenance["workload"]["nodes"]), str(provenance["workload"]["name"])
            metrics = {policy: dict(metrics[policy]) for policy in files}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"provenance.json and metrics.json do not fit together: {error!r}"
            raise UsageError(f"{place}: {reason}") from None
        if not files:
            raise UsageError(f"{place}: at least one policy is needed, found none in provenance.json")
        results = {policy: _result(_file(stem), policy, size, name) for policy, stem in files.items()}
        return cls(results, metrics, provenance, _text(place / "experiment.toml"))


def _result(file: Path, policy: str, size: int, name: str) -> Result:
    """Make a result of a table of jobs."""
    table = _table(file)
    try:
        columns = {column: _numbers(table, column) for column in NUMBERS}
        columns |= {column: _numbers(table, column) for column in OPTIONAL if column in table.column_names}
        mode, killed = _modes(table), np.zeros(len(table), dtype=bool)
        if "killed" in table.column_names:
            killed = np.asarray(table.column("killed").to_numpy(), dtype=bool)
        start, end = columns.pop("start_time"), columns.pop("end_time")
        columns["id"] = columns.pop("job_id")
        columns["run_time"] = np.maximum(columns["run_time"], 0)  # rejected jobs have none
        workload = Workload(columns, machine_size=size, name=name)
    except (WorkloadError, ValueError, TypeError) as error:
        raise UsageError(f"{file}: not a table of jobs: {error}") from None
    return Result(workload, policy, size, columns["submit_time"], start, end, mode, killed)


def _file(stem: Path) -> Path:
    """Return the table of jobs whose name begins so."""
    for ending in ("parquet", "csv"):
        file = stem.with_name(f"{stem.name}.{ending}")
        if file.is_file():
            return file
    raise UsageError(f"{stem}.parquet: no such file, and no .csv in its place")


def _table(file: Path) -> pyarrow.Table:
    """Read a table of jobs with Arrow, and check that its columns are there."""
    from pyarrow import ArrowException, csv, parquet

    try:
        table = parquet.read_table(file) if file.suffix == ".parquet" else csv.read_csv(file)
    except (ArrowException, OSError) as error:
        raise UsageError(f"{file}: a table of jobs is needed, cannot be read: {_first_line(error)}") from None
    missing = [column for column in NEEDED if column not in table.column_names]
    if missing:
        raise UsageError(f"{file}: column {missing[0]!r} is needed, found {', '.join(table.column_names)}")
    return table


def _numbers(table: pyarrow.Table, column: str) -> NDArray[np.int64]:
    """Return a column of whole numbers, -1 where there is none."""
    import pyarrow

    return np.asarray(table.column(column).cast(pyarrow.int64()).fill_null(-1).to_numpy())


def _modes(table: pyarrow.Table) -> NDArray[np.uint8]:
    """Return the start modes as numbers; ValueError for a word that is none."""
    import pyarrow
    from pyarrow import compute

    words = table.column("mode").cast(pyarrow.string())
    numbers = compute.index_in(words, value_set=pyarrow.array(MODE_NAMES)).fill_null(255).to_numpy()
    if (numbers == 255).any():
        raise ValueError(f"modes are {', '.join(MODE_NAMES)}, found {words[int(np.argmax(numbers == 255))]}")
    return np.asarray(numbers, dtype=np.uint8)


def _json(file: Path) -> dict[str, Any]:
    text = _text(file)
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{file}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{file}: a JSON object is needed, found {type(value).__name__}")
    return value


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {_first_line(error)}") from None


def _kind(place: Path) -> str:
    return "a file" if place.exists() else "nothing there"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
