"""Jobs that had their nodes to themselves, by what the accounting says that they got."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.scontrol import expanded
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

__all__ = ["with_whole_nodes"]

NOTE = "all CPUs of their nodes allocated, fewer requested (--exclusive): whole nodes"


def with_whole_nodes(requested: Workload, allocated: Workload, machines: Machines) -> Workload:
    """Return jobs with requested amounts; those that were allocated all CPUs of their nodes have these alone.

    Parameters
    ----------
    requested, allocated : Workload
        The same jobs with the amounts that they requested, and with those that they were allocated.
    machines : Machines
        The machines, by whose names the jobs list their nodes.

    Examples
    --------
    >>> columns = {"submit_time": [0, 0], "run_time": [9, 9], "nodes": [1, 1], "node_list": [0, 1]}
    >>> about = {"resources": ("cpus",), "labels": {"node_list": ("node1", "node2")}}
    >>> asked, given = (Workload({**columns, "cpus": cpus}, **about) for cpus in ([1, 1], [8, 2]))
    >>> with_whole_nodes(asked, given, Machines.of(2, cpus=8)).column("exclusive").tolist()
    [1, -1]
    """
    columns = ("id", "submit_time", "nodes")
    same = len(requested) == len(allocated) and all(
        np.array_equal(requested.column(name), allocated.column(name)) for name in columns
    )
    if not same or "node_list" not in requested.columns:
        return requested
    cpus = dict(zip(machines.names, machines.amount("cpus").tolist(), strict=True))
    given = allocated.column("cpus") * allocated.column("nodes")
    exclusive = requested.column("exclusive").copy()
    found = 0
    for row in np.flatnonzero(allocated.column("cpus") > requested.column("cpus")).tolist():
        names = _names(requested, row)
        if names and exclusive[row] < 1 and given[row] >= sum(cpus.get(name, 0) for name in names):
            exclusive[row] = 1
            found += 1
    if not found:
        return requested
    notes = {**requested.notes, NOTE: found}
    return replace(requested, columns={**requested.columns, "exclusive": exclusive}, notes=notes)


def _names(workload: Workload, row: int) -> list[str]:
    """Return the names of the nodes of a job; none if they are not known."""
    value = int(workload.column("node_list")[row])
    try:
        return expanded(workload.label("node_list", value)) if value >= 0 else []
    except UsageError:
        return []
