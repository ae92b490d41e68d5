"""Calendars: capacity that is known ahead to be gone or reserved for some time, such as for maintenance."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.opaque import Allocation, AnyCluster, Level
from hpcsimkit.cluster.outages import PlannedOutage
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import date
from hpcsimkit.workloads.readers.local_time import calendar_of

__all__ = ["Calendar", "Window"]


@dataclass(frozen=True)
class Window:
    """A time during which nodes are gone, or reserved for some users or accounts.

    Parameters
    ----------
    start, end : int or str
        Beginning and end, excluded: seconds of the log's clock, or dates in its local time, such as
        ``"2024-01-31 08:00"``.
    nodes : int
        Number of nodes of a cluster of homogeneous nodes, >= 1. Default: 1.
    machines : tuple of str or int
        Names or numbers (from 0) of the machines of a cluster of machines; ``*`` and ``?`` in a name match
        any characters. Default: none.
    users, accounts : tuple of str or int
        Users and accounts (column ``group``) for whose jobs the nodes are reserved, by name or number; with
        both, a job needs one of each. By default, the nodes are gone for all.
    name : str
        Name, for pictures and messages. Default: none.
    """

    start: Any
    end: Any
    nodes: int = 1
    machines: tuple[str | int, ...] = ()
    users: tuple[str | int, ...] = ()
    accounts: tuple[str | int, ...] = ()
    name: str = ""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Window:
        """Return the window of a :attr:`record`."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
        }
        return cls(**values)

    @property
    def record(self) -> dict[str, Any]:
        """The parameters that differ from their default values, besides the name."""
        known = {each.name: each.default for each in fields(self) if each.name != "name"}
        values = {name: getattr(self, name) for name in known}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != known[name]
        }

    @property
    def reserved(self) -> bool:
        """Whether the nodes are reserved for some jobs, rather than gone."""
        return bool(self.users or self.accounts)

    def admits(self, workload: Workload) -> NDArray[np.bool_]:
        """Return the jobs for which the nodes are reserved, bool, shape (jobs,).

        Examples
        --------
        >>> w = Workload({"submit_time": [0, 0], "run_time": [1, 1], "nodes": [1, 1], "user": [3, 4]})
        >>> Window(0, 9, users=(4,)).admits(w).tolist(), Window(0, 9).admits(w).tolist()
        ([False, True], [False, False])
        """
        admitted = np.full(len(workload), self.reserved)
        for column, names in (("user", self.users), ("group", self.accounts)):
            if names:
                numbers, number_of = np.unique(workload.column(column), return_inverse=True)
                named = [
                    each in names or (each >= 0 and workload.label(column, each) in names)
                    for each in numbers.tolist()
                ]
                admitted &= np.array(named, dtype=np.bool_)[number_of]
        return admitted


@dataclass(frozen=True)
class Calendar:
    """Windows during which nodes of a cluster are gone or reserved, all known from the beginning.

    No job starts that, by its estimate, would run into a window without enough nodes beside it, unless the
    window is reserved for it. A job that exceeds its estimate keeps its nodes; the window then has fewer
    until the job ends.

    Parameters
    ----------
    windows : sequence of Window
        The windows, in any order; they may overlap. Default: none.
    notes : mapping of str to int
        Values of a file that could not be used, and how often. Default: none.

    Attributes
    ----------
    times : list of int
        Times at which the number of nodes that are gone changes [s]; none until :meth:`on` replaces dates.

    Examples
    --------
    >>> calendar = Calendar([Window(10, 20, nodes=3), Window(15, 30, nodes=1)])
    >>> calendar.steps
    [(10, 3), (15, 4), (20, 1), (30, 0)]
    >>> calendar.gone(9), calendar.gone(10), calendar.gone(20)
    (0, 3, 1)
    >>> calendar.between(10, 30)
    [(15, 4), (20, 1)]
    """

    windows: Sequence[Window] = ()
    notes: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    times: list[int] = field(init=False, repr=False, compare=False)
    _gone: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", tuple(self.windows))
        for each in self.windows:
            _check(each)
        changes: dict[int, int] = {}
        for each in () if self.dated else self.windows:
            changes[each.start] = changes.get(each.start, 0) + each.nodes
            changes[each.end] = changes.get(each.end, 0) - each.nodes
        times = sorted(time for time, change in changes.items() if change)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "_gone", [0, *accumulate(changes[time] for time in times)])

    def __bool__(self) -> bool:
        return bool(self.windows)

    @property
    def dated(self) -> bool:
        """Whether a window has dates instead of seconds."""
        return any(isinstance(time, str) for each in self.windows for time in (each.start, each.end))

    def on(self, workload: Workload) -> Calendar:
        """Return the calendar in seconds of the clock of a log.

        Raises
        ------
        WorkloadError
            The calendar has dates, and the log has none.

        Examples
        --------
        >>> w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]},
        ...              header={"UnixStartTime": "843480031", "TimeZoneString": "Europe/Stockholm"})
        >>> Calendar([Window("1996-09-23 14:00:31", "1996-09-24 14:00:31")]).on(w).windows
        (Window(start=0, end=86400, nodes=1, machines=(), users=(), accounts=(), name=''),)
        """
        if not self.dated:
            return self
        clock = calendar_of(workload)
        if clock is None:
            raise WorkloadError(f"{workload.name}: a log with dates is needed for the calendar, found none")
        start, zone = clock.start, clock.zone

        def seconds(time: int | str) -> int:
            return date(time, zone) - start if isinstance(time, str) else time

        windows = [replace(each, start=seconds(each.start), end=seconds(each.end)) for each in self.windows]
        return Calendar(windows, self.notes)

    def check_nodes(self, cluster: AnyCluster) -> None:
        """Raise a UsageError if the windows do not fit a cluster of homogeneous nodes without numbers."""
        self._check_counts(cluster)
        for each in self.windows:
            if each.reserved:
                raise UsageError(
                    f"window from {each.start} to {each.end} s: reservations for users or accounts need"
                    f" machines, or homogeneous nodes without partitions: {cluster!r}"
                )

    def numbered(self, cluster: Nodes) -> Calendar:
        """Return the windows by their beginning, each with the first nodes that no other one has meanwhile.

        Raises
        ------
        UsageError
            The windows do not fit the cluster.
        """
        self._check_counts(cluster)
        numbered: list[Window] = []
        under_way: list[Window] = []
        for window in sorted(self.windows, key=lambda each: each.start):
            under_way = [each for each in under_way if each.end > window.start]
            taken = {number for each in under_way for number in each.machines}
            left = (number for number in range(cluster.count) if number not in taken)
            under_way.append(replace(window, machines=tuple(islice(left, window.nodes))))
            numbered.append(under_way[-1])
        return Calendar(numbered, self.notes)

    def _check_counts(self, cluster: AnyCluster) -> None:
        """Raise a UsageError if there are windows on machines, or on more nodes than there are."""
        if not isinstance(cluster, Nodes):
            raise UsageError(f"a calendar needs homogeneous nodes or machines, found {cluster!r}")
        for each in self.windows:
            if each.machines:
                who = f"window from {each.start} to {each.end} s"
                found = f"found machine {each.machines[0]!r}"
                raise UsageError(f"{who}: the cluster has homogeneous nodes, {found}")
        for time, gone in self.steps:
            if gone > cluster.count:
                raise UsageError(
                    f"windows at {time} s: {gone} nodes are gone or reserved at once, of {cluster.count}"
                )

    @property
    def outages(self) -> list[PlannedOutage]:
        """The windows on machines that are gone for all, as outages that stop no job."""
        return [
            PlannedOutage(each.start, each.end, machines=each.machines, drain=True)
            for each in self.windows
            if not each.reserved
        ]

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Each time [s] from which another number of nodes is gone, and the number."""
        return list(zip(self.times, self._gone[1:], strict=True))

    def level_for(
        self, job: Job, level: Level, now: int, end: int, releases: Iterable[tuple[int, int, Allocation]]
    ) -> Level:
        """Return the part of the capacity that is free now which a job may use until its expected end.

        Parameters
        ----------
        job : Job
            The job.
        level : int
            Number of free nodes.
        now, end : int
            Present time and expected end of the job [s].
        releases : iterable of (int, int, int)
            Expected releases of nodes by running jobs: time [s], tie-breaker and number, by time.
        """
        least, there = level, level + self.gone(now)
        coming = iter(releases)
        following = next(coming, None)
        for time, gone in self.between(now, end):
            while following is not None and max(following[0], now + 1) <= time:
                there = there + following[2]
                following = next(coming, None)
            least = min(least, there - gone)
        return least

    def gone(self, at: int) -> int:
        """Return the number of nodes that are gone at a time [s]."""
        return self._gone[bisect_right(self.times, at)]

    def between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the steps after `start` and before `end` [s]: times, and numbers of nodes that are gone."""
        first, last = bisect_right(self.times, start), bisect_left(self.times, end)
        return list(zip(self.times[first:last], self._gone[first + 1 : last + 1], strict=True))


def _check(window: Window) -> None:
    """Raise a UsageError if a window is invalid."""
    needed = "a calendar needs windows that end after they start, with 1 node or more"
    if not isinstance(window, Window) or type(window.nodes) is not int or window.nodes < 1:
        raise UsageError(f"{needed}, found {window!r}")
    dated = isinstance(window.start, str) and isinstance(window.end, str)
    if not dated and not (type(window.start) is int and type(window.end) is int):
        raise UsageError(
            f"a window needs seconds or dates for both ends, found {window.start!r}, {window.end!r}"
        )
    ends = (date(window.start), date(window.end)) if dated else (window.start, window.end)
    if not ends[0] < ends[1] or max(map(abs, ends)) > TIME_LIMIT:
        raise UsageError(f"{needed}, found {window!r}")
