"""Machines with several resources: what is free on each, and what running jobs occupy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.listing import Listing, new_listing
from hpcsimkit.compiled.needs import EMPTY, MINUS, NOW, PLUS, Levels, fits
from hpcsimkit.compiled.queue import BLOCKS, Queue, add, new_queue, remove
from hpcsimkit.compiled.running import pop, push, withdraw
from hpcsimkit.compiled.state import RUNNING, STARTED, Integers, Jobs, Run

PARTS, EVENTS, CHANGES, MARK, NEWCOMERS, BLOCKED, SETTLED, SEEN_PASS, HEAD, SHADOW_TIME, HAS_ROOM = range(11)
"""Positions in :attr:`Machines.counters`, from `MARK` on those of :mod:`~hpcsimkit.compiled.filling`."""

NEED, FIRST, COUNT, RANK = range(4)
"""Rows of :attr:`Machines.jobs`."""

KINDS, CHOSEN = range(2)
"""Rows of :attr:`Machines.machines`."""

KNOWN, ANSWER, FULL = range(3)
"""Columns of :attr:`Machines.memory`; the last one is followed by another one of its type."""


class Machines(NamedTuple):
    """The state of the machines, in few arrays: the more there are, the longer takes compiling.

    Attributes
    ----------
    levels : Levels
        Levels of the machines, and the needs of jobs.
    jobs : array of int64, shape (4, jobs)
        Number of the need of each job, first part of its allocation, number of parts, and, while it runs, its
        rank by expected end and then by row. If there are outages, columns for what is out of order follow,
        each with a part of its own in front of those of jobs; see :mod:`.machine_outages`.
    machines : array of int64, shape (2, machines)
        Number of resources of each machine, and whether it is in the allocation that is being made.
    memory : array of int64, shape (needs, 4)
        Number of changes of the free level at which it was last found whether each need fits, and the answer;
        last mark when no capacity was left for it, for jobs that end by the shadow time and for others.
    ranking : Listing
        Space to rank machines.
    expected : Queue
        Running jobs by expected end.
    parts : array of int64, shape (parts, 1 + resources)
        Machine and amounts of each part of an allocation.
    events : array of int64, shape (2 * jobs,), or more if jobs may be stopped
        Starts (rows) and ends (complements of rows) in chronological order.
    counters : array of int64
        Number of parts, of events, and of changes of the free level, and the state of the backfilling, at the
        positions named above.
    digits : int
        Number of binary digits of a rank that are those of the row.
    """

    levels: Levels
    jobs: Integers
    machines: Integers
    memory: Integers
    ranking: Listing
    expected: Queue
    parts: Integers
    events: Integers
    counters: Integers
    digits: int


def new_machines(levels: Levels, need: Integers, parts: int, gone: int = 0) -> Machines:
    """Return empty machines, with space for a number of parts of allocations.

    There is space for capacity that is out of order, `gone` times at once, and then for further attempts.
    """
    jobs, (_, machines, resources) = len(need), levels.levels.shape
    rows, again = jobs + gone, 2 if gone else 1
    counters = np.full(11, -1, dtype=np.int64)
    counters[[PARTS, EVENTS, CHANGES]] = gone, 0, 0
    by_row = np.zeros((4, rows), dtype=np.int64)
    by_row[NEED, :jobs] = need
    by_row[FIRST, jobs:], by_row[COUNT, jobs:] = np.arange(gone), 1
    return Machines(
        levels,
        jobs=by_row,
        machines=np.stack(
            [np.count_nonzero(levels.levels[EMPTY], axis=1), np.zeros(machines, dtype=np.int64)]
        ),
        memory=np.full((len(levels.needs), 4), -1, dtype=np.int64),
        ranking=new_listing(machines),
        expected=new_queue(rows),
        parts=np.empty((gone + again * parts, 1 + resources), dtype=np.int64),
        events=np.empty(2 * again * jobs, dtype=np.int64),
        counters=counters,
        digits=rows.bit_length(),
    )


def with_space(machines: Machines) -> Machines:
    """Return the same machines with space for more allocations, and for more starts and ends."""
    return machines._replace(
        parts=np.concatenate([machines.parts, np.empty_like(machines.parts)]),
        events=np.concatenate([machines.events, np.empty_like(machines.events)]),
    )


@pasted
def lacks_space(machines: Machines, jobs: int, parts: int) -> bool:
    """Return whether the next instant may need more space: all jobs may end or be stopped, and start again.

    `parts` is the maximum number of parts of one allocation of each job, together.
    """
    counters = machines.counters
    events = counters[EVENTS] + 3 * jobs
    return bool(counters[PARTS] + parts > len(machines.parts) or events > len(machines.events))


@machine_code
def fits_now(machines: Machines, row: int) -> bool:
    """Return whether a job fits the free level; mirrors ``Machines.fits`` of the cluster."""
    memory, number, changes = machines.memory, machines.jobs[NEED, row], machines.counters[CHANGES]
    if memory[number, KNOWN] != changes:
        memory[number, KNOWN] = changes
        memory[number, ANSWER] = fits(machines.levels, number, NOW)
    return bool(memory[number, ANSWER])


@pasted
def expected_end(machines: Machines, row: int) -> int:
    """Return the expected end of a running job [s]."""
    return machines.jobs[RANK, row] >> machines.digits


@machine_code
def overrun(machines: Machines, now: int) -> bool:
    """Return whether a running job has reached or passed its expected end; mirrors ``Running.overrun``."""
    return bool(
        machines.expected.counters[BLOCKS] and expected_end(machines, expected_first(machines)) <= now
    )


@pasted
def expected_first(machines: Machines) -> int:
    """Return the row of the running job that is expected to end first."""
    return machines.expected.rows[machines.expected.order[0], 0]


@separate
def _expect(jobs: Jobs, run: Run, machines: Machines, row: int) -> None:
    """Add a job to those that run by its expected end; mirrors ``Running.add``."""
    expected = run.start_time[row] + run.estimate[row]
    machines.jobs[RANK, row] = (expected << machines.digits) + row
    add(machines.expected, None, row, machines.jobs[RANK], jobs.nodes, run.estimate)


@separate
def expect_anew(jobs: Jobs, run: Run, machines: Machines, row: int) -> None:
    """Adopt the corrected estimate of a running job; mirrors ``System.expect``."""
    remove(machines.expected, None, row, machines.jobs[RANK])
    _expect(jobs, run, machines, row)
    machines.counters[CHANGES] += 1


@separate
def record_start(jobs: Jobs, run: Run, machines: Machines, row: int, now: int, mode: int) -> None:
    """Start a job that has an allocation, and schedule its end; mirrors ``Run.on_start``."""
    push(run.ends, run.counters[RUNNING], now + jobs.run_time[row], run.counters[STARTED], row)
    enter(jobs, run, machines, row, now, mode)


@machine_code
def enter(jobs: Jobs, run: Run, machines: Machines, row: int, now: int, mode: int) -> None:
    """Let a job that has an allocation run; mirrors ``System.start``."""
    counters = machines.counters
    run.start_time[row] = now
    run.mode[row] = mode
    change_free(machines, row, MINUS)
    machines.events[counters[EVENTS]] = row
    counters[EVENTS] += 1
    _expect(jobs, run, machines, row)
    run.counters[RUNNING] += 1
    run.counters[STARTED] += 1


@separate
def end_next(run: Run, machines: Machines) -> int:
    """End the job that ends first, and return its row; mirrors ``System.end``."""
    counters = machines.counters
    row = pop(run.ends, run.counters[RUNNING])
    run.counters[RUNNING] -= 1
    remove(machines.expected, None, row, machines.jobs[RANK])
    machines.events[counters[EVENTS]] = ~row
    counters[EVENTS] += 1
    change_free(machines, row, PLUS)
    return row


@separate
def leave(run: Run, machines: Machines, row: int) -> None:
    """Take back what a job that is stopped uses; mirrors ``Run.leave``."""
    counters = machines.counters
    withdraw(run.ends, run.counters[RUNNING], row)
    run.counters[RUNNING] -= 1
    remove(machines.expected, None, row, machines.jobs[RANK])
    machines.events[counters[EVENTS]] = ~row
    counters[EVENTS] += 1
    change_free(machines, row, PLUS)


@machine_code
def change_free(machines: Machines, row: int, sign: int) -> None:
    """Release the resources of a job's allocation, or occupy them."""
    levels, parts, first = machines.levels.levels, machines.parts, machines.jobs[FIRST, row]
    for part in range(first, first + machines.jobs[COUNT, row]):
        for resource in range(levels.shape[2]):
            levels[NOW, parts[part, 0], resource] += sign * parts[part, 1 + resource]
    machines.counters[CHANGES] += 1
