"""The state of a run that begins with running and waiting jobs, see :mod:`hpcsimkit.kernel.begun`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.compiled.machines import CHANGES, COUNT, EVENTS, FIRST, PARTS, RANK, Machines
from hpcsimkit.compiled.needs import NOW
from hpcsimkit.compiled.queue import fill_empty
from hpcsimkit.compiled.state import FREE, RUNNING, START, STARTED, Integers, Jobs, Run
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.ledger import Mode


def take_over(
    begun: Begun, jobs: Jobs, run: Run, machines: Machines | None, allocations: Sequence[Allocation]
) -> None:
    """Set the running jobs of a begun run, on machines with their allocations; mirrors ``Run.take_over``."""
    count = len(begun.started)
    rows = np.fromiter(begun.started, dtype=np.int64, count=count)
    start_time = np.fromiter(begun.started.values(), dtype=np.int64, count=count)
    run.start_time[rows], run.mode[rows] = start_time, Mode.READY
    end, expected = start_time + jobs.run_time[rows], start_time + run.estimate[rows]
    by_end = np.argsort(end, kind="stable")  # a sorted array is a heap
    by_expected_end = np.lexsort((rows, expected))
    run.ends[:, :count] = end[by_end], by_end, rows[by_end]
    run.counters[RUNNING] = run.counters[STARTED] = count
    if machines is not None:
        machines.jobs[RANK, rows] = (expected << machines.digits) + rows
        fill_empty(machines.expected, rows[by_expected_end])
        _occupy(machines, rows, allocations)
        return
    run.positions[START, rows[np.argsort(start_time)]] = np.arange(count)
    run.expected[:, :count] = expected[by_expected_end], rows[by_expected_end]
    run.counters[FREE] -= jobs.nodes[rows].sum()


def _occupy(machines: Machines, rows: Integers, allocations: Sequence[Allocation]) -> None:
    """Give the running jobs their allocations; mirrors ``resume``."""
    first = 0
    for row, allocation in zip(rows, allocations, strict=True):
        chosen = list(allocation.machines)
        last = first + len(chosen)
        machines.parts[first:last, 0], machines.parts[first:last, 1:] = chosen, allocation.amounts
        machines.levels.levels[NOW, chosen] -= allocation.amounts
        machines.jobs[FIRST, row], machines.jobs[COUNT, row] = first, len(chosen)
        first = last
    machines.events[: len(rows)] = rows
    machines.counters[PARTS], machines.counters[EVENTS] = first, len(rows)
    machines.counters[CHANGES] = len(rows)
