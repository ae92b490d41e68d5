"""Descriptive statistics of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.views import views
from hpcsimkit.jobs.workload import Column, Workload
from hpcsimkit.workloads.readers.local_time import calendar_of, local_time
from hpcsimkit.workloads.readers.sieve import FORMAT, UNREAD, USED
from hpcsimkit.workloads.readers.swf import NO_ESTIMATE

__all__ = ["WEEKDAYS", "Description", "Value", "describe", "load_remark", "most_in_use"]

Value = int | float | str
Rows = dict[str, Value]

HOUR = 3600
DAY = 86_400
GIGABYTE = 10**9
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

QUANTILES = {"5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95}

RUN_TIME_CLASSES = {
    "under 1 min": 60,
    "1 to 10 min": 600,
    "10 min to 1 h": 3600,
    "1 to 6 h": 21_600,
    "6 to 24 h": DAY,
    "1 day and more": np.inf,
}
"""Upper limits of the run-time classes by name [s], exclusive."""


@dataclass(frozen=True, eq=False)
class Description:
    """Descriptive statistics of a workload.

    Parameters
    ----------
    name : str
        The workload's name.
    sections : mapping of str to mapping of str to value
        Named tables, with units in the names of sections or rows; shares are in [0, 1].
    by_hour : array of int64, shape (24,)
        Number of jobs submitted in each hour of the day.
    by_weekday : array of int64, shape (7,)
        Number of jobs submitted on each day of the week, from Monday, or from the log's first day if
        `calendar` is False.
    calendar : bool
        Whether days and hours are those of the calendar; otherwise they count from second 0 of the log's
        clock.
    """

    name: str
    sections: Mapping[str, Mapping[str, Value]]
    by_hour: Column
    by_weekday: Column
    calendar: bool

    @property
    def day_names(self) -> tuple[str, ...]:
        """The names of the seven entries of `by_weekday`."""
        return WEEKDAYS if self.calendar else tuple(f"day {number}" for number in range(1, 8))

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as plain dictionaries, lists and numbers, ready for JSON."""
        sections = {title: dict(rows) for title, rows in self.sections.items()}
        hours = {f"{hour:02d}": int(count) for hour, count in enumerate(self.by_hour)}
        days = {name: int(count) for name, count in zip(self.day_names, self.by_weekday, strict=True)}
        return {"name": self.name, **sections, "jobs by hour": hours, "jobs by weekday": days}

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the tables beside each other, for notebooks."""
        return str(views().description_html(self))

    def __str__(self) -> str:
        tables = {title: rows for title, rows in self.to_dict().items() if title != "name" and rows}
        width = max(len(label) for rows in tables.values() for label in rows)
        lines = [self.name]
        for title, rows in tables.items():
            lines += ["", title, *(f"  {label:<{width}}  {_shown(value)}" for label, value in rows.items())]
        return "\n".join(lines)


def describe(workload: Workload, machine_size: int | None = None) -> Description:
    """Return descriptive statistics of a workload.

    Parameters
    ----------
    workload : Workload
        Workload with at least one job.
    machine_size : int or None
        Number of nodes for the offered load; None for that of the workload.

    Raises
    ------
    WorkloadError
        If there is no job.

    Notes
    -----
    Hours and weekdays are local standard time if the header has ``UnixStartTime`` (and ``TimeZone`` or
    ``TimeZoneString``, else UTC). A workload does not record which jobs had no estimate: their requested time
    is their run time, so all jobs for which the two are equal count as "exact or not given".

    The sections ``log`` and ``stands out`` tell what was understood of a log, and what limits the conclusions
    from it: equal limits of all jobs, no recorded waits, more in use on record than the machine has.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 3600], "run_time": [60, 30], "nodes": [1, 4]}, machine_size=4)
    >>> d = describe(w)
    >>> d.sections["sizes [nodes]"]["serial (share)"], d.by_hour[:3].tolist()
    (0.5, [1, 1, 0])
    """
    if not len(workload):
        raise WorkloadError(f"{workload.name}: at least one job needed to describe, found none")
    machine = machine_size or workload.machine_size
    clock = local_time(workload)
    seconds = workload.submit_time + clock.offset
    sections: dict[str, Rows] = {
        "log": _log(workload),
        "stands out": _oddities(workload, machine),
        "jobs": _jobs(workload),
        "time": _time(workload, machine),
        **(_requests(workload) if workload.resources else _nodes(workload, machine)),
        "run times [s]": _distribution(workload.run_time),
        "jobs by run time": _run_time_classes(workload.run_time),
        "estimates": _estimates(workload),
        "times between arrivals [s]": _distribution(np.diff(np.sort(workload.submit_time))),
        "skipped jobs": dict(workload.skipped),
        "notes (jobs)": dict(workload.notes),
    }
    return Description(
        name=workload.name,
        sections=sections,
        by_hour=np.bincount(seconds % DAY // 3600, minlength=24),
        by_weekday=np.bincount(seconds // DAY % 7, minlength=7),
        calendar=clock.start is not None,
    )


def _log(workload: Workload) -> Rows:
    """Return what was understood of the log; an empty table for a generated workload."""
    if workload.lines is None:
        return {}
    rows: Rows = {"format": workload.header.get(FORMAT, "Standard Workload Format")}
    rows |= {key.lower(): workload.header[key] for key in (USED, UNREAD) if key in workload.header}
    if workload.resources:
        rows["resources"] = ", ".join(workload.resources)
    rows["jobs left out"] = sum(workload.skipped.values())
    return rows


def _oddities(workload: Workload, machine: int | None) -> Rows:
    """Return what limits the conclusions from a log."""
    rows: Rows = {}
    limits = np.unique(workload.requested_time)
    if len(workload) > 1 and len(limits) == 1:
        rows["all requested times are equal"] = f"{limits[0]} s"
    if remark := load_remark(workload):
        rows["waits"] = remark
    if machine and not workload.resources and (most := most_in_use(workload)["nodes"]) > machine:
        rows["more in use on record than exists"] = f"{most} of {machine} nodes"
    return rows


def most_in_use(workload: Workload) -> dict[str, int]:
    """Return the largest amounts in use at once on record, of nodes and of each resource.

    Jobs without a recorded wait do not count.

    >>> columns = {"submit_time": [0, 1, 5], "run_time": [5, 9, 9], "nodes": [1, 2, 4]}
    >>> most_in_use(Workload({**columns, "recorded_wait_time": [0, 0, 0]}))
    {'nodes': 6}
    """
    known = workload.recorded_wait_time >= 0
    start = (workload.submit_time + workload.recorded_wait_time)[known]
    end = start + workload.run_time[known]
    times = np.concatenate([end, start])  # of equal times, ends come first
    order = np.argsort(times, kind="stable")
    factor = np.where(workload.column("spread") == 1, 1, workload.nodes)
    amounts = {"nodes": workload.nodes.astype(float)}
    amounts |= {name: workload.column(name).astype(float) * factor for name in workload.resources}
    changes = {name: np.concatenate([-each[known], each[known]])[order] for name, each in amounts.items()}
    return {name: int(np.cumsum(each).max(initial=0)) for name, each in changes.items()}


def load_remark(workload: Workload) -> str:
    """Return a remark if the recorded waits of a log do not show how busy its machine was; else "".

    >>> columns = {"submit_time": [0, 1], "run_time": [9, 9], "nodes": [1, 1], "recorded_wait_time": [0, 0]}
    >>> load_remark(Workload(columns))
    'every recorded wait is 0, so the log does not show how busy its machine was'
    """
    known = workload.recorded_wait_time[workload.recorded_wait_time >= 0]
    if len(known):
        empty = "" if known.any() else "every recorded wait is 0"
    else:  # of a log with dates, and not of a model
        empty = "" if calendar_of(workload) is None else "no waits are recorded"
    return empty and f"{empty}, so the log does not show how busy its machine was"


def _jobs(workload: Workload) -> Rows:
    rows: Rows = {"jobs": len(workload)}
    for column in ("user", "group", "executable", "queue", "partition", "qos"):
        known = np.unique(workload.column(column))
        known = known[known >= 0]
        if len(known):
            rows["QOS" if column == "qos" else f"{column}s"] = len(known)
    following = np.count_nonzero(workload.column("preceding") > 0)
    if following:
        rows["after a preceding job"] = int(following)
    return rows


def _time(workload: Workload, machine: int | None) -> Rows:
    first, last = int(workload.submit_time.min()), int(workload.submit_time.max())
    rows: Rows = {"first submission [s]": first, "last submission [s]": last}
    if (calendar := calendar_of(workload)) is not None:
        for label, moment in (("first submission", first), ("last submission", last)):
            rows[label] = calendar.text(moment)
        if not calendar.name:
            rows["clock"] = "time zone not given"
    rows["span [days]"] = workload.span / DAY
    if not workload.resources:
        rows["machine [nodes]"] = machine or "unknown"
    if machine and workload.span:
        rows["offered load"] = workload.offered_load(machine)
    return rows


def _requests(workload: Workload) -> dict[str, Rows]:
    """Return statistics of the total requests for each resource; memory in GB."""
    factor = np.where(workload.column("spread") == 1, 1, workload.nodes)
    sections: dict[str, Rows] = {}
    for resource in workload.resources:
        in_gigabytes = resource == "memory"
        asked = workload.column(resource) * factor / (GIGABYTE if in_gigabytes else 1)
        some = asked[asked > 0]
        rows: Rows = {"jobs that ask for it (share)": len(some) / len(asked)}
        title = f"{resource} asked for" + (" [GB]" if in_gigabytes else "")
        sections[title] = {**rows, **_distribution(some)} if len(some) else rows
    if (workload.nodes > 1).any():
        sections["nodes asked for"] = _distribution(workload.nodes)
    asking = workload.size > 0
    if asking.any():
        sections |= _by_size(workload.size[asking], workload.run_time[asking], workload.resources[0])
    return sections


def _nodes(workload: Workload, machine: int | None) -> dict[str, Rows]:
    """Return statistics of the job sizes of a log without resources."""
    return {
        "sizes [nodes]": _sizes(workload, machine),
        **_by_size(workload.nodes, workload.run_time, "nodes"),
    }


def _sizes(workload: Workload, machine: int | None) -> Rows:
    nodes = workload.nodes
    rows: Rows = {
        **_distribution(nodes),
        "serial (share)": float(np.mean(nodes == 1)),
        "power of two (share)": float(np.mean(nodes & (nodes - 1) == 0)),
    }
    if machine:
        rows["larger than the machine (jobs)"] = int(np.count_nonzero(nodes > machine))
    return rows


def _by_size(size: Column, run_time: Column, unit: str) -> dict[str, Rows]:
    """Return the number of jobs, and what they used, in each of the size classes 1, 2, 3-4, 5-8, ..."""
    number = np.ceil(np.log2(size)).astype(np.int64)
    jobs, used = np.bincount(number), np.bincount(number, weights=size * (run_time / HOUR))
    names = ["1", "2", *(f"{2 ** (k - 1) + 1}-{2**k}" for k in range(2, len(jobs)))]
    return {
        f"jobs by size [{unit}]": dict(zip(names, jobs.tolist(), strict=False)),
        f"{unit.removesuffix('s')}-hours by size [{unit}]": dict(zip(names, map(round, used), strict=False)),
    }


def _run_time_classes(run_time: Column) -> Rows:
    below = [np.count_nonzero(run_time < end) for end in RUN_TIME_CLASSES.values()]
    return {name: int(count) for name, count in zip(RUN_TIME_CLASSES, np.diff([0, *below]), strict=True)}


def _estimates(workload: Workload) -> Rows:
    run_time, requested = workload.run_time, workload.requested_time
    rows: Rows = {"exact or not given (share)": float(np.mean(requested == np.maximum(run_time, 1)))}
    if NO_ESTIMATE in workload.notes:
        rows["not given (jobs of the log)"] = workload.notes[NO_ESTIMATE]
    if rows["exact or not given (share)"] == 1:
        return rows
    rows["run time above requested (share)"] = float(np.mean(run_time > requested))
    accuracy = _distribution(run_time / requested)
    rows |= {f"run time / requested, {label}": value for label, value in accuracy.items()}
    values, counts = np.unique(requested, return_counts=True)
    for place, index in enumerate(np.argsort(-counts, kind="stable")[:5], start=1):
        share = counts[index] / len(workload)
        rows[f"most requested, {place}"] = f"{values[index]} s by {share:.1%} of the jobs"
    return rows


def _distribution(values: NDArray[Any]) -> Rows:
    """Return minimum, quantiles, maximum and mean; an empty table for no values."""
    if not len(values):
        return {}
    quantiles = np.quantile(values, list(QUANTILES.values()))
    rows = {"min": values.min(), **dict(zip(QUANTILES, quantiles, strict=True)), "max": values.max()}
    return {**{label: value.item() for label, value in rows.items()}, "mean": float(values.mean())}


def _shown(value: Value) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
