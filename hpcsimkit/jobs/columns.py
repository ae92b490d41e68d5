"""The columns of a workload: their names and valid ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.job import UNKNOWN

__all__ = [
    "HASHED_COLUMNS",
    "JOB_COLUMNS",
    "LOG_COLUMNS",
    "OPTIONAL_COLUMNS",
    "RECORD_COLUMNS",
    "REQUIRED_COLUMNS",
    "TIME_LIMIT",
    "Column",
    "checked_columns",
    "numbered_texts",
]

Column = NDArray[np.int64]

REQUIRED_COLUMNS = ("id", "submit_time", "run_time", "requested_time", "nodes")
LOG_COLUMNS = (
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think_time",
    "status",
    "recorded_wait_time",
    "requested_memory",
    "used_memory",
)
"""Optional columns of logs in the Standard Workload Format."""

YES_OR_NO = ("spread", "exclusive")
GATE_COLUMNS = ("dependency", "begin_time", "hold_until", "array_job", "array_limit", "licenses")
"""Columns that gates read, see :mod:`hpcsimkit.kernel.gate`."""

TEXT_COLUMNS = ("dependency", "licenses")
"""Columns that may be given as texts: they become numbers with labels, an empty text -1."""

RECORD_COLUMNS = ("recorded_reason", "recorded_held_time", "recorded_backfilled", "recorded_priority")
"""Columns of what Slurm recorded about waits: the last reason (a number with labels), the time from the
submission until the job was eligible [s], whether backfill started it (1 or 0), and its priority."""

OPTIONAL_COLUMNS = (
    *(*LOG_COLUMNS, "qos", "kind", *YES_OR_NO, "constraint", "node_list"),
    *(*GATE_COLUMNS, *RECORD_COLUMNS),
)
JOB_COLUMNS = REQUIRED_COLUMNS + LOG_COLUMNS[:7]
"""Columns that are fields of a :class:`~hpcsimkit.jobs.job.Job`, in the order of the fields."""

HASHED_COLUMNS = REQUIRED_COLUMNS + LOG_COLUMNS
"""Columns included in the hash of every workload; other columns are included if present."""

TIME_LIMIT = 10**11
"""Largest valid time or duration [s]: about three thousand years."""

AMOUNT_LIMIT = 10**16
"""Largest valid amount of a resource: ten petabytes of memory on one node."""


def checked_columns(
    columns: Mapping[str, ArrayLike], name: str, resources: tuple[str, ...]
) -> dict[str, Column]:
    """Return read-only int64 columns of equal length, with the required ones filled in."""
    known = REQUIRED_COLUMNS + OPTIONAL_COLUMNS + tuple(resources)
    _check_names(columns, known, name, resources)
    checked = {key: _whole_numbers(values, key, name) for key, values in columns.items()}
    jobs = len(checked["submit_time"])
    if "requested_time" not in checked:
        checked["requested_time"] = np.maximum(checked["run_time"], 1)
    if "id" not in checked:
        checked["id"] = np.arange(1, jobs + 1)
    for key, values in checked.items():
        if values.shape != (jobs,):
            raise WorkloadError(f"{name}: column {key!r} needs shape ({jobs},), found {values.shape}")
        values.setflags(write=False)
    _check_ranges(checked, name, resources)
    return {key: checked[key] for key in known if key in checked}


def numbered_texts(values: ArrayLike) -> tuple[Column, tuple[str, ...]] | None:
    """Return texts as numbers, in the order of first appearance, and the texts; None if they are no texts.

    >>> numbers, texts = numbered_texts(["afterok:1", "", "afterok:1"])
    >>> numbers.tolist(), texts
    ([0, -1, 0], ('afterok:1',))
    """
    array = np.asarray(values)
    if array.dtype.kind not in "UO" or not all(isinstance(each, str) for each in array.tolist()):
        return None
    number_of: dict[str, int] = {"": UNKNOWN}
    numbers = [number_of.setdefault(text.strip(), len(number_of) - 1) for text in array.tolist()]
    return np.array(numbers, dtype=np.int64), tuple(number_of)[1:]


def _check_names(
    columns: Mapping[str, ArrayLike], known: Sequence[str], name: str, resources: tuple[str, ...]
) -> None:
    """Check that all needed columns are present, and no unknown ones."""
    for resource in resources:
        if resource in REQUIRED_COLUMNS + OPTIONAL_COLUMNS or resource not in columns:
            raise WorkloadError(
                f"{name}: resource {resource!r} needs a column of its own, found {', '.join(columns)}"
            )
    for column in columns:
        if column not in known:
            raise WorkloadError(f"{name}: unknown column {column!r}; known are {', '.join(known)}")
    for column in ("submit_time", "run_time", "nodes"):
        if column not in columns:
            raise WorkloadError(f"{name}: column {column!r} is needed, found {', '.join(columns) or 'none'}")


def _whole_numbers(values: ArrayLike, column: str, name: str) -> Column:
    array = np.asarray(values)
    if array.dtype == np.int64:
        return array if not array.flags.writeable else array.copy()
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype == np.bool_ and column in YES_OR_NO:
        return array.astype(np.int64)
    if not (np.issubdtype(array.dtype, np.integer) or np.issubdtype(array.dtype, np.floating)):
        raise WorkloadError(f"{name}: column {column!r} needs whole numbers, found {array.dtype}")
    whole = np.isfinite(array) & (np.abs(array) < 2**62) & (array == np.rint(array))
    if not whole.all():
        row = int(np.argmin(whole))
        raise WorkloadError(f"{name}: column {column!r} needs whole numbers, found {array[row]} in row {row}")
    return array.astype(np.int64)


def _check_ranges(columns: Mapping[str, Column], name: str, resources: tuple[str, ...]) -> None:
    limits = {
        "submit_time": (0, TIME_LIMIT),
        "run_time": (0, TIME_LIMIT),
        "requested_time": (1, TIME_LIMIT),
        "nodes": (1, 2**31),
    }
    limits |= dict.fromkeys(resources, (0, AMOUNT_LIMIT))
    limits |= {column: (UNKNOWN, 1) for column in YES_OR_NO if column in columns}
    limits |= {column: (UNKNOWN, TIME_LIMIT) for column in GATE_COLUMNS if column in columns}
    for column, (low, high) in limits.items():
        wrong = (columns[column] < low) | (columns[column] > high)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise WorkloadError(
                f"{name}: job {columns['id'][row]}: {column} needs {low} to {high}, "
                f"found {columns[column][row]}"
            )
