"""Gates that let jobs join the queue at a time that is known ahead: begin times, and holds until a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.job_gates import BeginTimes
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.results.held import HeldJobs

Integers = NDArray[np.int64]


def joins(setup: Setup, workload: Workload) -> tuple[Integers, Integers]:
    """Return the times at which the jobs join the queue [s], and their rows in this order."""
    submit_time = workload.column("submit_time")
    if not setup.gates:
        return submit_time, workload.arrival_order.astype(np.int64)
    due = submit_time.copy()
    for _, times in _times_of(setup, workload):
        np.maximum(due, times, out=due)
    return due, np.argsort(due, kind="stable")


def held_jobs(setup: Setup, workload: Workload) -> HeldJobs | None:
    """Return the intervals in which the gates held jobs, as a table; None if there are none."""
    since, found = workload.column("submit_time").copy(), dict[int, list[tuple[int, int, str]]]()
    for reason, times in _times_of(setup, workload):
        for row in np.flatnonzero(times > since).tolist():
            found.setdefault(row, []).append((int(since[row]), int(times[row]), reason))
        np.maximum(since, times, out=since)
    return HeldJobs.of(found)


def _times_of(setup: Setup, workload: Workload) -> list[tuple[str, Any]]:
    """Return the reason and the column of each gate, in the order in which jobs pass them."""
    return [
        (gate.reason, workload.column(gate.columns[0]))
        for gate in setup.all_gates
        if isinstance(gate, BeginTimes) and gate.columns[0] in workload.columns
    ]
