"""Breakdowns: job metrics by size, run time, start mode, use of GPUs, or a column such as user or queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.results.metrics import select
from hpcsimkit.results.result import MODE_NAMES, Result
from hpcsimkit.workloads.readers.local_time import local_time

if TYPE_CHECKING:
    import pandas

__all__ = ["GROUPS", "RUN_TIME_CLASSES", "By", "breakdown", "classes_of"]

RUN_TIME_CLASSES: Mapping[str, float] = {
    "< 10 min": 600,
    "< 1 h": 3600,
    "< 6 h": 6 * 3600,
    "< 24 h": 24 * 3600,
    "longer": np.inf,
}
"""Run-time classes and their upper limits [s]."""

NOTHING = -1
"""Size class of jobs that occupy none of the machines' first resource."""

By = Literal[
    "size",
    "run_time",
    "mode",
    "hour",
    "gpus",
    "kind",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "qos",
]

GROUPS: tuple[By, ...] = ("partition", "queue", "qos", "group", "user", "executable")
"""Columns of a log that divide its jobs into groups."""

Label = Callable[[int], str]
Classes = tuple[NDArray[np.int64], Label]
"""Class number of each job, and a function from class number to label."""


def breakdown(
    result: Result,
    by: By = "size",
    *,
    top: int | None = None,
    warmup: float = 0,
    cooldown: float = 0,
) -> pandas.DataFrame:
    """Compute job metrics for each non-empty class of jobs.

    Parameters
    ----------
    result : Result
        The result of a run; rejected jobs are ignored.
    by : {"size", "run_time", "mode", "hour", "gpus", "kind", "user", "group", "executable", "queue", ...}
        Criterion: size by powers of two (1, 2, 3-4, 5-8, ...) in nodes or in the machines' first resource,
        simulated run time by `RUN_TIME_CLASSES`, start mode, hour of the day of the submission (local
        standard time, or of the log's clock), use of GPUs, job type, or a column of the log:
        one of `GROUPS`. Jobs of a run with partitions are divided by the partition in which they started.
        Default: ``"size"``.
    top : int, optional
        Maximum number of classes: those with the most node-seconds in the log, in descending order; the
        other jobs form a last row ``other (n groups)``. By default all classes, in ascending order.
    warmup, cooldown : float
        Trimmed durations [s], as in :func:`~hpcsimkit.results.metrics.measure`. Default: 0.

    Returns
    -------
    pandas.DataFrame
        One row per class, labels as the index (named `by`). Columns: ``jobs`` (that ran),
        ``area_share`` (share of the total of size x run time), and ``mean_wait_time, median_wait_time,
        p95_wait_time, max_wait_time`` [s], ``mean_bounded_slowdown, max_bounded_slowdown``, each as in
        `METRICS`.

    Raises
    ------
    UsageError
        `by` is invalid, or `top` is below 1.

    Examples
    --------
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> r = Result(w, "fcfs", 4, *map(np.array, ([0, 1], [0, 9], [9, 13], [1, 1], [False, False])))
    >>> breakdown(r, "size").mean_wait_time.to_dict()
    {'2': 8.0, '3-4': 0.0}
    """
    import pandas

    number, label = classes_of(result, by, top)
    rows = select(result, warmup=warmup, cooldown=cooldown).jobs & result.finished
    area = (result.run_time * result.amount)[rows]
    jobs = pandas.DataFrame(
        {"area": area, "wait": result.wait_time[rows], "slowdown": result.bounded_slowdown()[rows]}
    ).groupby(number[rows])
    table = pandas.DataFrame(
        {
            "jobs": jobs.size(),
            "area_share": jobs.area.sum() / area.sum() if area.any() else np.nan,
            "mean_wait_time": jobs.wait.mean(),
            "median_wait_time": jobs.wait.median(),
            "p95_wait_time": jobs.wait.quantile(0.95),
            "max_wait_time": jobs.wait.max(),
            "mean_bounded_slowdown": jobs.slowdown.mean(),
            "max_bounded_slowdown": jobs.slowdown.max(),
        }
    )
    table.index = pandas.Index([label(int(number)) for number in table.index], name=by, dtype=object)
    return table


def classes_of(result: Result, by: By, top: int | None = None) -> Classes:
    """Return the class number of each job, and a function from class number to label.

    The parameters and errors are those of :func:`breakdown`.
    """
    if by not in _CLASSES:
        raise UsageError(f"by must be one of {', '.join(map(repr, _CLASSES))}, found {by!r}")
    if top is not None and top < 1:
        raise UsageError(f"top must be 1 or more, found {top}")
    number, label = _CLASSES[by](result)
    return (number, label) if top is None else _largest(number, label, result, top)


def _largest(number: NDArray[np.int64], label: Label, result: Result, top: int) -> Classes:
    """Return the classes by descending node-seconds; those beyond `top` are joined to one.

    The node-seconds are those of the log, so that the classes are the same under all policies.
    """
    known, place = np.unique(number, return_inverse=True)
    work = np.bincount(place, weights=result.workload.run_time.astype(float) * result.workload.size)
    order = np.argsort(-work, kind="stable")
    rank, others = np.argsort(order)[place], len(known) - top
    if others <= 1:  # a row of its own
        return rank, lambda n: label(int(known[order[n]]))
    return np.minimum(
        rank, top
    ), lambda n: label(int(known[order[n]])) if n < top else f"other ({others} groups)"


def _by_size(result: Result) -> Classes:
    power = np.frexp(result.amount - 0.5)[1].astype(np.int64)
    return np.where(result.amount, power, NOTHING), _size_label


def _size_label(power: int) -> str:
    if power == NOTHING:
        return "0"
    low, high = 2 ** (power - 1) + 1, 2**power
    return f"{low}-{high}" if low < high else str(high)


def _by_run_time(result: Result) -> Classes:
    ends = np.array(list(RUN_TIME_CLASSES.values()))
    run_time = np.where(result.finished, result.run_time, 0)
    return np.searchsorted(ends, run_time, side="right"), list(RUN_TIME_CLASSES).__getitem__


def _by_mode(result: Result) -> Classes:
    return result.mode.astype(np.int64), MODE_NAMES.__getitem__


def _by_hour(result: Result) -> Classes:
    seconds = result.submit_time + local_time(result.workload).offset
    return seconds % 86_400 // 3600, lambda hour: f"{hour:02d}:00"


def _by_gpus(result: Result) -> Classes:
    workload = result.workload
    gpus = workload.column("gpus") if "gpus" in workload.resources else np.zeros(len(workload))
    return (gpus > 0).astype(np.int64), ("without GPUs", "with GPUs").__getitem__


def _by_label(column: str) -> Callable[[Result], Classes]:
    """Return a classifier by a column with optional labels."""

    def classes(result: Result) -> Classes:
        label = result.workload.label
        return result.workload.column(column), lambda n: label(column, n) if n >= 0 else "unknown"

    return classes


def _by_partition(result: Result) -> Classes:
    """Return the partitions in which jobs started; without partitions, those of the log."""
    if result.started_in is None:
        return _by_label("partition")(result)
    names, number = np.unique(result.started_in, return_inverse=True)
    return number.astype(np.int64), lambda n: str(names[n]) or "unknown"


_CLASSES: Mapping[str, Callable[[Result], Classes]] = {
    "size": _by_size,
    "run_time": _by_run_time,
    "mode": _by_mode,
    "hour": _by_hour,
    "gpus": _by_gpus,
    "kind": _by_label("kind"),
    **{column: _by_label(column) for column in GROUPS},
    "partition": _by_partition,
}
