"""Files of results: arrays in an ``.npz``, all other data as JSON, no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit._version import __version__
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import DAMAGED, arrays_in, write_arrays
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.attempts import COLUMNS, Attempts, Downtime
from hpcsimkit.results.held import HeldJobs
from hpcsimkit.results.placements import Placements

__all__ = ["load", "save"]

FORMAT = "hpcsimkit result 2"
FORMER = ("hpcsimkit result 1",)
"""Older supported formats, from before the introduction of machines."""

COLUMN, PLACEMENT = "workload.", "placements."
"""Prefixes of the array names of workload columns and of placements."""

OUTCOME = ("submit_time", "start_time", "end_time", "mode", "killed")
VALUES = ("policy", "size", "seed", "options", "seconds", "passes")
ABOUT_WORKLOAD = (
    "machine_size",
    "name",
    "header",
    "skipped",
    "notes",
    "provenance",
    "resources",
    "labels",
)
ATTEMPTS, DOWNTIME, HELD = "attempts.", "downtime.", "held."
"""Prefixes of the array names of attempts, of outages, and of intervals in which jobs were held."""

PARTS = ("job", "machine", "amounts")


def save(fields: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the fields of a result to a file, atomically."""
    workload, placements, choices = fields["workload"], fields["placements"], fields["choices"]
    stages = sorted({stage for stage, _ in choices})
    about = {
        "format": FORMAT,
        "kit": __version__,
        **{name: fields[name] for name in VALUES},
        "simulator": fields["simulator"],
        "options": dict(fields["options"]),
        "stages": stages,
        "workload": {name: _plain(getattr(workload, name)) for name in ABOUT_WORKLOAD},
    }
    arrays: dict[str, Any] = {name: fields[name] for name in OUTCOME}
    arrays |= {COLUMN + name: column for name, column in workload.columns.items()}
    if placements is not None:
        about["cluster"] = _about_cluster(placements.cluster)
        arrays[PLACEMENT + "capacity"] = placements.cluster.capacity
        arrays |= {PLACEMENT + name: getattr(placements, name) for name in PARTS}
        if placements.events is not None:
            arrays[PLACEMENT + "events"] = placements.events
    if fields["started_in"] is not None:
        arrays["started_in"] = fields["started_in"]
    if fields["attempts"] is not None:
        arrays |= _arrays_of_attempts(fields["attempts"])
    for name, prefix in (("downtime", DOWNTIME), ("held", HELD)):
        if fields[name] is not None:
            arrays |= {prefix + column: values for column, values in vars(fields[name]).items()}
    arrays["choice_stage"] = np.array([stages.index(stage) for stage, _ in choices], dtype=np.uint8)
    arrays["choice_position"] = np.array([position for _, position in choices], dtype=np.int64)
    write_arrays(path, about=np.array(json.dumps(about)), **arrays)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the fields of a result; see :meth:`Result.load`."""
    content = read_bytes(path, Format.RESULT)
    try:
        arrays = arrays_in(content, path)
        about = json_value(str(arrays["about"]), path)
        if about["format"] not in (FORMAT, *FORMER):
            raise WorkloadError(f"{path}: {FORMAT!r} is needed, found {about['format']!r}")
        return _fields(about, arrays)
    except DAMAGED as error:
        raise WorkloadError(f"{path}: a saved result is needed, found something else or damaged") from error


def _fields(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    workload = about["workload"]
    for name in ("provenance", "resources"):
        workload[name] = tuple(workload.get(name, ()))
    workload["labels"] = {name: tuple(words) for name, words in workload.get("labels", {}).items()}
    columns = {name.removeprefix(COLUMN): array for name, array in arrays.items() if name.startswith(COLUMN)}
    choices = zip(arrays["choice_stage"].tolist(), arrays["choice_position"].tolist(), strict=True)
    fields: dict[str, Any] = {name: arrays[name] for name in OUTCOME} | {name: about[name] for name in VALUES}
    fields["simulator"] = about.get("simulator", "simpy")  # unless written by an older version
    fields["choices"] = tuple((about["stages"][stage], position) for stage, position in choices)
    if "cluster" in about:
        fields["placements"] = _placements(about["cluster"], arrays, jobs=len(fields["start_time"]))
    fields["started_in"] = arrays.get("started_in")
    fields["attempts"] = _attempts(about.get("cluster"), arrays)
    down, held = _beginning(DOWNTIME, arrays), _beginning(HELD, arrays)
    fields["downtime"] = Downtime(**down) if down else None
    fields["held"] = HeldJobs(**held) if held else None
    fields["workload"] = Workload(columns, **workload)
    return fields


def _beginning(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _arrays_of_attempts(attempts: Attempts) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table of attempts, with the places of each attempt."""
    arrays = {ATTEMPTS + name: getattr(attempts, name) for name in COLUMNS}
    if attempts.partition is not None:
        arrays[ATTEMPTS + "partition"] = attempts.partition
    if attempts.placements is not None:
        arrays |= {ATTEMPTS + PLACEMENT + name: getattr(attempts.placements, name) for name in PARTS}
        if attempts.placements.events is not None:
            arrays[ATTEMPTS + PLACEMENT + "events"] = attempts.placements.events
    return arrays


def _attempts(about: dict[str, Any] | None, arrays: dict[str, NDArray[Any]]) -> Attempts | None:
    """Return the table of attempts; None if the result has none."""
    given = _beginning(ATTEMPTS, arrays)
    if not given:
        return None
    columns: dict[str, Any] = {name: given[name] for name in COLUMNS}
    if about is not None:
        placed = {name: array for name, array in given.items() if name.startswith(PLACEMENT)}
        capacity = {PLACEMENT + "capacity": arrays[PLACEMENT + "capacity"]}
        columns["placements"] = _placements(about, placed | capacity, jobs=len(given["job"]))
    return Attempts(**columns, partition=given.get("partition"))


def _about_cluster(cluster: Machines) -> dict[str, Any]:
    """Return the non-numeric attributes of a cluster."""
    features = [sorted(words) for words in cluster.features]
    return {"names": list(cluster.names), "resources": list(cluster.resources), "features": features}


def _placements(about: dict[str, Any], arrays: dict[str, NDArray[Any]], jobs: int) -> Placements:
    cluster = Machines(about["names"], about["resources"], arrays[PLACEMENT + "capacity"], about["features"])
    job, machine, amounts = (arrays[PLACEMENT + name] for name in PARTS)
    return Placements(cluster, jobs, job, machine, amounts, arrays.get(PLACEMENT + "events"))


def _plain(value: Any) -> Any:
    """Return mappings as dictionaries, and other values unchanged."""
    return dict(value) if hasattr(value, "keys") else value
