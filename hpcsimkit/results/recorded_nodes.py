"""The nodes on which a log records its jobs, and when a job could have had others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.scontrol import expanded
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.attempts import Downtime
from hpcsimkit.results.machine_levels import MachineLevels

__all__ = ["RecordedNodes"]

Integers = NDArray[np.int64]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RecordedNodes:
    """The machines that each job had on record, from the column ``node_list``.

    Unknown are the machines of jobs with pooled requests, without a list of as many nodes as they have, and
    with names that the cluster does not have. What these jobs used is not counted.

    Parameters
    ----------
    workload : Workload
        The log.
    cluster : Machines
        The machines.
    start, end : array of int64, shape (jobs,)
        Recorded start and end times [s]; -1 for jobs that are left out.
    down : Downtime, optional
        Capacity that was out of order; by default none.

    Examples
    --------
    >>> columns = {"submit_time": [0, 2], "run_time": [9, 5], "nodes": [1, 1], "cpus": [4, 4]}
    >>> lists = {"node_list": ("node1", "node2")}
    >>> log = Workload({**columns, "node_list": [0, 1]}, labels=lists, resources=("cpus",))
    >>> nodes = RecordedNodes(log, Machines.of(2, cpus=4), np.array([0, 12]), np.array([9, 17]))
    >>> nodes.earliest(1, np.array([0])), nodes.earliest(1, np.array([0, 1]))
    (9, 2)
    """

    workload: Workload
    cluster: Machines
    start: Integers
    end: Integers
    down: Downtime | None = None

    @cached_property
    def machines(self) -> list[Places | None]:
        """Numbers of the machines of each job; None if they are unknown."""
        workload, cluster = self.workload, self.cluster
        number_of = {name: number for number, name in enumerate(cluster.names)}
        values, value_of = np.unique(workload.column("node_list"), return_inverse=True)
        lists = [
            _numbers(workload.label("node_list", value) if value >= 0 else "", number_of)
            for value in values.tolist()
        ]
        needs = map(cluster.need, workload.jobs)
        found = [lists[place] for place in value_of.tolist()]
        return [
            None if need.pooled or start < 0 or len(numbers) != need.nodes else numbers
            for need, numbers, start in zip(needs, found, self.start.tolist(), strict=True)
        ]

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which jobs have known machines, bool, shape (jobs,)."""
        return np.array([numbers is not None for numbers in self.machines])

    @cached_property
    def levels(self) -> MachineLevels:
        """Free amounts of the machines over time."""
        cluster, rows = self.cluster, np.flatnonzero(self.known)
        parts = [self.machines[row] for row in rows.tolist()]
        counts = np.array([len(part) for part in parts if part is not None], dtype=np.int64)
        needs = [cluster.need(self.workload.jobs[row]) for row in rows.tolist()]
        amounts = np.repeat(
            np.array([need.amounts for need in needs]).reshape(-1, len(cluster.resources)), counts, axis=0
        )
        used = np.concatenate([np.zeros(0, dtype=np.intp), *(part for part in parts if part is not None)])
        whole = np.repeat(np.array([need.exclusive for need in needs], dtype=bool), counts)
        amounts[whole] = cluster.capacity[used[whole]]
        starts, ends = (np.repeat(times[rows], counts) for times in (self.start, self.end))
        if (down := self.down) is not None:
            used, amounts = np.concatenate([used, down.machine]), np.concatenate([amounts, down.amounts])
            starts, ends = np.concatenate([starts, down.start]), np.concatenate([ends, down.end])
        return MachineLevels.of(cluster.capacity, -1, range(len(cluster)), (used, starts, ends, amounts))

    def earliest(self, row: int, machines: Places) -> int:
        """Return when a job could have started first beside all others on record [s].

        Parameters
        ----------
        row : int
            Row of a job with known machines.
        machines : array of int
            Numbers of the machines that it may use, ascending.
        """
        own, need = self.machines[row], self.cluster.need(self.workload.jobs[row])
        assert own is not None
        submit, start, end = int(self.workload.submit_time[row]), int(self.start[row]), int(self.end[row])
        machines = machines[need.usable(self.cluster.capacity)[machines]]
        machine, time, free = self.levels
        bound = int(time.max()) + 2
        keys = machine * bound + time
        first = np.searchsorted(keys, machines * bound + submit, side="right") - 1
        counts = np.searchsorted(keys, machines * bound + end) - first
        rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        enough = (free[rows] >= need.amounts).all(axis=1)
        if need.exclusive:
            enough = (free[rows] == self.cluster.capacity[machine[rows]]).all(axis=1)
        enough |= (time[rows] >= start) & np.isin(machine[rows], own)  # then it is there itself
        lacking = rows[~enough]
        # Between two times at which a machine lacks something, the job may start from the first one's end on.
        opens = np.concatenate([np.full(len(machines), submit), _next(time, lacking)])
        closes = np.concatenate([time[lacking], np.full(len(machines), end)])
        by_open = np.lexsort((opens, np.concatenate([machines, machine[lacking]])))
        by_close = np.lexsort((closes, np.concatenate([machine[lacking], machines])))
        where = np.concatenate([machines, machine[lacking]])[by_open]
        opens, latest = opens[by_open], closes[by_close] - (end - start)
        usable = np.maximum(opens, submit) <= latest
        where, opens, latest = where[usable], np.maximum(opens[usable], submit), latest[usable]
        times = np.unique(opens[opens < start])
        fits = _usable(times, opens, latest) >= need.nodes
        for counted, number in need.quotas:
            some = counted[where]
            fits &= _usable(times, opens[some], latest[some]) >= number
        return int(times[np.argmax(fits)]) if fits.any() else start


def _usable(times: Integers, opens: Integers, latest: Integers) -> Integers:
    """Return in how many of some intervals each of some times lies."""
    begun = np.searchsorted(np.sort(opens), times, side="right")
    return begun - np.searchsorted(np.sort(latest), times)


def _next(time: Integers, rows: Places) -> Integers:
    """Return the time of the following row of each row; the last row of a machine lacks nothing."""
    return time[np.minimum(rows + 1, len(time) - 1)]


def _numbers(text: str, number_of: dict[str, int]) -> Places:
    """Return the numbers of the machines in a list; none if one of them is unknown."""
    try:
        names: Sequence[str] = expanded(text)
    except UsageError:
        names = ()
    numbers = [number_of.get(name, -1) for name in names]
    return np.array([] if -1 in numbers else sorted(numbers), dtype=np.intp)
