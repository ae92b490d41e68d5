"""Data frames as columns of a workload: dates and durations become seconds, texts numbers with labels."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.columns import OPTIONAL_COLUMNS, REQUIRED_COLUMNS, TEXT_COLUMNS, numbered_texts
from hpcsimkit.jobs.job import UNKNOWN

if TYPE_CHECKING:
    import pandas

__all__ = ["Read", "read_frame"]

NAMED = ("user", "group", "executable", "queue", "partition", "qos", "kind", "constraint", *TEXT_COLUMNS)
"""Columns whose values may be names."""

Read = tuple[dict[str, ArrayLike], dict[str, tuple[str, ...]], dict[str, str]]
"""Columns, labels, and header lines of the clock."""


def read_frame(frame: pandas.DataFrame, name: str, renamed: Mapping[str, str]) -> Read:
    """Return the columns, the labels and the clock of the jobs in a data frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row per job.
    name : str
        Name of the workload, for messages.
    renamed : mapping of str to str
        Columns of the frame by the column of a workload that they are.
    """
    lacking = [column for column in renamed.values() if column not in frame.columns]
    if lacking:
        there = ", ".join(map(str, frame.columns))
        raise WorkloadError(f"{name}: no column {lacking[0]!r}; there are {there}")
    chosen = {str(column): frame[column] for column in frame.columns if column not in renamed.values()}
    chosen |= {column: frame[own] for column, own in renamed.items()}
    columns: dict[str, ArrayLike] = {}
    labels: dict[str, tuple[str, ...]] = {}
    header: dict[str, str] = {}
    origin = _origin(chosen)
    if origin is not None:
        header["UnixStartTime"] = str(origin)
    for column, values in chosen.items():
        if values.dtype.kind in "Mm":
            columns[column] = _seconds(values, 0 if values.dtype.kind == "m" else origin or 0, column, name)
        elif (texts := _texts(values)) is not None:
            if column not in NAMED:
                raise WorkloadError(f"{name}: column {column!r} needs whole numbers, found texts")
            columns[column], labels[column] = numbered_texts(texts) or ([], ())
        elif values.isna().any():
            columns[column] = _with_unknown(values, column, name)
        else:
            columns[column] = values.to_numpy()
    return columns, labels, header


def _origin(columns: Mapping[str, Any]) -> int | None:
    """Return the Unix time of second 0 of the clock: the first date of a submission; None without dates."""
    submit = columns.get("submit_time")
    if submit is None or submit.dtype.kind != "M" or not len(submit):
        return None
    return int(submit.min().timestamp())


def _seconds(values: Any, origin: int, column: str, name: str) -> ArrayLike:
    if values.isna().any():
        raise WorkloadError(f"{name}: column {column!r} needs a time in each row, found none in some")
    if values.dtype.kind == "M":
        epoch = datetime(1970, 1, 1, tzinfo=UTC if values.dt.tz is not None else None)
        values = values - epoch
    return np.rint(values.dt.total_seconds().to_numpy() - origin).astype(np.int64)


def _texts(values: Any) -> list[str] | None:
    """Return the values of a column of texts, empty where missing; None for a column of something else."""
    known = values[values.notna()]
    if values.dtype.kind in "iufb" or not len(known) or not all(isinstance(each, str) for each in known):
        return None
    return ["" if missing else str(each) for each, missing in zip(values, values.isna(), strict=True)]


def _with_unknown(values: Any, column: str, name: str) -> ArrayLike:
    """Return a column with -1 for missing values, if it is one that may be unknown."""
    if column in REQUIRED_COLUMNS or column not in OPTIONAL_COLUMNS:
        row = int(np.argmax(values.isna().to_numpy()))
        raise WorkloadError(f"{name}: column {column!r} needs a value in each row, found none in row {row}")
    return values.fillna(UNKNOWN).to_numpy()
