"""A result as one file: arrays in an ``.npz``, everything else as JSON beside them, no pickle."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit import __version__
from hpcsimkit.errors import WorkloadError
from hpcsimkit.files import read_bytes, write_bytes
from hpcsimkit.machines import Machines
from hpcsimkit.placements import Placements
from hpcsimkit.result import Result
from hpcsimkit.workload import Workload

__all__ = ["load", "save"]

FORMAT = "hpcsimkit result 2"
FORMER = ("hpcsimkit result 1",)
"""Formats that are read as well: before there were machines."""

COLUMN, PLACEMENT = "workload.", "placements."
"""Prefixes of the workload's columns, and of those of the placements, among the arrays."""

OUTCOME = ("submit_time", "start_time", "end_time", "mode", "killed")
VALUES = ("policy", "size", "seed", "options", "seconds", "passes")
ABOUT_WORKLOAD = (
    "machine_size", "name", "header", "skipped", "notes", "provenance", "resources", "labels",
)  # fmt: skip
PARTS = ("job", "machine", "amounts")


def save(result: Result, path: str | os.PathLike[str]) -> None:
    """Write a result into a file of just this name; it appears whole or not at all."""
    workload = result.workload
    stages = sorted({stage for stage, _ in result.choices})
    about = {
        "format": FORMAT,
        "kit": __version__,
        **{name: getattr(result, name) for name in VALUES},
        "options": dict(result.options),
        "stages": stages,
        "workload": {name: _plain(getattr(workload, name)) for name in ABOUT_WORKLOAD},
    }
    arrays: dict[str, Any] = {name: getattr(result, name) for name in OUTCOME}
    arrays |= {COLUMN + name: column for name, column in workload.columns.items()}
    if result.placements is not None:
        about["cluster"] = _about_cluster(result.placements.cluster)
        arrays[PLACEMENT + "capacity"] = result.placements.cluster.capacity
        arrays |= {PLACEMENT + name: getattr(result.placements, name) for name in PARTS}
        if result.placements.events is not None:
            arrays[PLACEMENT + "events"] = result.placements.events
    arrays["choice_stage"] = np.array([stages.index(stage) for stage, _ in result.choices], dtype=np.uint8)
    arrays["choice_position"] = np.array([position for _, position in result.choices], dtype=np.int64)
    content = io.BytesIO()
    np.savez_compressed(content, about=np.array(json.dumps(about)), **arrays)
    write_bytes(path, content.getvalue())


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result; see :meth:`Result.load`."""
    content = read_bytes(path)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays["about"]))
        if about["format"] not in (FORMAT, *FORMER):
            raise WorkloadError(f"{path}: {FORMAT!r} is needed, found {about['format']!r}")
        return _result(about, arrays)
    except (AttributeError, EOFError, KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise WorkloadError(f"{path}: a saved result is needed, found something else or damaged") from error


def _result(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Result:
    workload = about["workload"]
    for name in ("provenance", "resources"):
        workload[name] = tuple(workload.get(name, ()))
    workload["labels"] = {name: tuple(words) for name, words in workload.get("labels", {}).items()}
    columns = {name.removeprefix(COLUMN): array for name, array in arrays.items() if name.startswith(COLUMN)}
    choices = zip(arrays["choice_stage"].tolist(), arrays["choice_position"].tolist(), strict=True)
    fields: dict[str, Any] = {name: arrays[name] for name in OUTCOME} | {name: about[name] for name in VALUES}
    fields["choices"] = tuple((about["stages"][stage], position) for stage, position in choices)
    if "cluster" in about:
        fields["placements"] = _placements(about["cluster"], arrays, jobs=len(fields["start_time"]))
    return Result(Workload(columns, **workload), **fields)


def _about_cluster(cluster: Machines) -> dict[str, Any]:
    """Return what is not numbers."""
    features = [sorted(words) for words in cluster.features]
    return {"names": list(cluster.names), "resources": list(cluster.resources), "features": features}


def _placements(about: dict[str, Any], arrays: dict[str, NDArray[Any]], jobs: int) -> Placements:
    cluster = Machines(about["names"], about["resources"], arrays[PLACEMENT + "capacity"], about["features"])
    job, machine, amounts = (arrays[PLACEMENT + name] for name in PARTS)
    return Placements(cluster, jobs, job, machine, amounts, arrays.get(PLACEMENT + "events"))


def _plain(value: Any) -> Any:
    """Return mappings as dictionaries, the rest as it is."""
    return dict(value) if hasattr(value, "keys") else value
