"""Homogeneous nodes by number, on which a calendar may reserve nodes for the jobs of some users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.calendar import Calendar
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.request import Need
from hpcsimkit.jobs.job import Request
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.attempts import Downtime
from hpcsimkit.results.result import Result

__all__ = ["NumberedNodes", "nodes_alone", "with_numbers", "without_numbers"]


@dataclass(frozen=True, eq=False, repr=False)
class NumberedNodes(Machines):
    """Homogeneous nodes as machines with one unit each; jobs take their nodes, whatever else they request.

    Without windows, schedules equal those on as many :class:`~hpcsimkit.cluster.base.Nodes`.

    Examples
    --------
    >>> cluster = NumberedNodes.of(4, nodes=1)
    >>> cluster.summary, cluster.size, cluster.unit
    ('4 nodes', 4, 'nodes')
    """

    @property
    def summary(self) -> str:
        """The number of nodes, in words."""
        return f"{len(self)} nodes"

    def _worked_out(self, nodes: int, request: Request | None) -> Need:
        return super()._worked_out(nodes, None)


def with_numbers(cluster: AnyCluster, calendar: Calendar, workload: Workload) -> tuple[AnyCluster, Calendar]:
    """Return a cluster and its calendar; if it reserves homogeneous nodes, those of its windows have numbers.

    Raises
    ------
    UsageError
        The windows do not fit the nodes.
    WorkloadError
        The calendar has dates, and the log has none.

    Examples
    --------
    >>> from hpcsimkit.cluster.calendar import Window
    >>> calendar = Calendar([Window(10, 30, nodes=2), Window(20, 40, nodes=1, users=(7,)), Window(30, 50)])
    >>> w = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]})
    >>> cluster, numbered = with_numbers(Nodes(4), calendar, w)
    >>> cluster, [each.machines for each in numbered.windows]
    (Machines(4: 4 nodes), [(0, 1), (2,), (0,)])
    """
    if type(cluster) is not Nodes or not any(each.reserved for each in calendar.windows):
        return cluster, calendar
    return NumberedNodes.of(cluster.count, nodes=1), calendar.on(workload).numbered(cluster)


def nodes_alone(workload: Workload) -> Workload:
    """Return jobs that request their nodes and nothing else."""
    others = {*workload.resources, "constraint"}
    columns = {name: column for name, column in workload.columns.items() if name not in others}
    return replace(workload, columns=columns, resources=())


def without_numbers(result: Result) -> Result:
    """Return the result of a run on numbered nodes as one on homogeneous nodes."""
    options: dict[str, Any] = dict(result.options)
    options["calendar"] = [
        {key: value for key, value in window.items() if key != "machines"} for window in options["calendar"]
    ]
    attempts, down = result.attempts, result.downtime
    return replace(
        result,
        options=options,
        placements=None,
        attempts=None if attempts is None else replace(attempts, placements=None),
        downtime=None if down is None else _counted(down),
    )


def _counted(down: Downtime) -> Downtime:
    """Return outages with a row for each time, instead of one for each node."""
    times, row = np.unique([down.start, down.end], axis=1, return_inverse=True)
    amounts = np.zeros((times.shape[1], 1), dtype=np.int64)
    np.add.at(amounts, row.ravel(), down.amounts)
    return Downtime(times[0], times[1], np.zeros(times.shape[1], dtype=np.int64), amounts)
