"""A run that pauses at pairs of a job and its machine: the same events and passes, in parts.

Mirrors :class:`~hpcsimkit.policies.one_seat.dispatch.Dispatch` with an open seat, by the rules of the
textbook.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.compilation import machine_code, separate
from hpcsimkit.compiled.journal import STARTED, SUBMITTED, Journal, enter_in
from hpcsimkit.compiled.loop import end_jobs, next_instant, submit_jobs
from hpcsimkit.compiled.machines import COUNT, EVENTS, FIRST, NEED, PARTS, Machines, record_start
from hpcsimkit.compiled.needs import AMOUNTS
from hpcsimkit.compiled.needs import NOW as FREE_NOW
from hpcsimkit.compiled.queue import BLOCKS, WAITING, Queue, remove
from hpcsimkit.compiled.seats import NOW, OVER, PAUSED
from hpcsimkit.compiled.state import ARRIVED, NO_LIMIT, PASSES, READY, Integers, Jobs, Run

ASKED = 0
OFFERED, FITTING, OPTIONS, LISTINGS, SEEN = range(2, 7)
"""Positions in :attr:`Pairs.counters`, besides ``NOW``."""


class Pairs(NamedTuple):
    """The open seat, and on which machines each need fits now.

    Attributes
    ----------
    slots : int
        Maximum number of jobs offered.
    skips, distinct : bool
        Whether a single pair is taken without a decision, and whether only the first of several jobs with
        equal requests is offered.
    request : array of int64, shape (jobs,)
        Number of the distinct need and requested time of each job.
    listed : array of int64, shape (requests,)
        Number of the listing in which each request was last offered.
    ever, usable : array of bool, shape (machines, needs)
        Whether each machine has enough for each need if it is empty, and now.
    hosts : array of int64, shape (needs,)
        Number of machines that have enough for each need now.
    rows : array of int64, shape (jobs offered at most,)
        Rows of the jobs offered.
    valid : array of bool, shape (jobs offered at most, machines)
        Whether each of them fits each machine.
    counters : array of int64
        Whether a decision is pending, the simulated time [s], the number of jobs offered, of jobs that wait
        and fit, of pairs, of listings, and of events after which `usable` was last updated, at the positions
        named above.
    """

    slots: int
    skips: bool
    distinct: bool
    request: Integers
    listed: Integers
    ever: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    hosts: Integers
    rows: Integers
    valid: NDArray[np.bool_]
    counters: Integers


def new_pairs(
    ever: NDArray[np.bool_], request: Integers, now: int, *, slots: int, skips: bool, distinct: bool
) -> Pairs:
    """Return a seat before the first event of a run on empty machines, which begins now [s]."""
    machines, most = len(ever), min(slots, len(request))
    counters = np.zeros(7, dtype=np.int64)
    counters[NOW] = now
    return Pairs(
        slots,
        skips,
        distinct,
        request=request,
        listed=np.zeros(int(request.max(initial=-1)) + 1, dtype=np.int64),
        ever=ever,
        usable=ever.copy(),
        hosts=np.count_nonzero(ever, axis=0).astype(np.int64),
        rows=np.empty(most, dtype=np.int64),
        valid=np.empty((most, machines), dtype=np.bool_),
        counters=counters,
    )


def advance_to_pairs(
    jobs: Jobs,
    run: Run,
    queue: Queue,
    machines: Machines,
    pairs: Pairs,
    journal: Journal,
    row: int,
    machine: int,
) -> int:
    """Answer the pending decision, if there is one, and run to the next; return the state of the run.

    `row` and `machine` are the answer: the row of the chosen job, and its machine.
    """
    counters = pairs.counters
    if counters[ASKED]:
        _start(jobs, run, queue, machines, journal, row, machine, counters[NOW])
        if _asks(jobs, run, queue, machines, pairs, journal):
            return PAUSED
    while True:
        now = next_instant(jobs, run, queue, None, None, None)
        if now == NO_LIMIT:
            return OVER
        counters[NOW] = now
        end_jobs(jobs, run, None, None, machines, None, None, None, None, journal, now)
        first = run.counters[ARRIVED]
        submit_jobs(jobs, run, queue, None, None, None, None, None, now)
        for place in range(first, run.counters[ARRIVED]):
            enter_in(journal, SUBMITTED, jobs.arrival_order[place], now)
        if queue.counters[WAITING]:
            run.counters[PASSES] += 1
            if _asks(jobs, run, queue, machines, pairs, journal):
                return PAUSED


@separate
def _asks(jobs: Jobs, run: Run, queue: Queue, machines: Machines, pairs: Pairs, journal: Journal) -> bool:
    """Go on with a pass to its end, or to the next decision; return whether there is one.

    Mirrors ``Dispatch.schedule``.
    """
    counters = pairs.counters
    while True:
        _update(machines, pairs)
        _list(queue, machines, pairs)
        counters[ASKED] = counters[OPTIONS] > (1 if pairs.skips else 0)
        if counters[ASKED] or not counters[OPTIONS]:
            return bool(counters[ASKED])
        machine = 0
        while not pairs.valid[0, machine]:
            machine += 1
        _start(jobs, run, queue, machines, journal, pairs.rows[0], machine, counters[NOW])


@machine_code
def _start(
    jobs: Jobs,
    run: Run,
    queue: Queue,
    machines: Machines,
    journal: Journal,
    row: int,
    machine: int,
    now: int,
) -> None:
    """Start a job on a machine that has enough for it."""
    part, needs = machines.counters[PARTS], machines.levels.needs
    machines.jobs[FIRST, row], machines.jobs[COUNT, row] = part, 1
    machines.parts[part, 0] = machine
    for resource in range(machines.levels.levels.shape[2]):
        machines.parts[part, 1 + resource] = needs[machines.jobs[NEED, row], AMOUNTS + resource]
    machines.counters[PARTS] += 1
    remove(queue, None, row, jobs.rank)
    record_start(jobs, run, machines, row, now, READY)
    enter_in(journal, STARTED, row, now)


@machine_code
def _update(machines: Machines, pairs: Pairs) -> None:
    """Update what fits the machines on which jobs have started or ended; mirrors ``Usable.update``."""
    counters, levels, needs = pairs.counters, machines.levels.levels, machines.levels.needs
    for event in range(counters[SEEN], machines.counters[EVENTS]):
        row = machines.events[event]
        machine = machines.parts[machines.jobs[FIRST, row if row >= 0 else ~row], 0]
        for number in range(len(needs)):
            enough = pairs.ever[machine, number]
            for resource in range(levels.shape[2]):
                enough &= needs[number, AMOUNTS + resource] <= levels[FREE_NOW, machine, resource]
            pairs.hosts[number] += np.int64(enough) - np.int64(pairs.usable[machine, number])
            pairs.usable[machine, number] = enough
    counters[SEEN] = machines.counters[EVENTS]


@machine_code
def _list(queue: Queue, machines: Machines, pairs: Pairs) -> None:
    """List the first waiting jobs that fit a machine, and on which they fit; mirrors ``Usable.offer``."""
    counters, need = pairs.counters, machines.jobs[NEED]
    offered, fitting, options = 0, 0, 0
    counters[LISTINGS] += 1
    for place in range(queue.counters[BLOCKS]):
        block = queue.order[place]
        for position in range(queue.filled[block]):
            row = queue.rows[block, position]
            hosts = pairs.hosts[need[row]]
            if not hosts:
                continue
            fitting += 1
            if offered == pairs.slots:
                continue
            if pairs.distinct:
                if pairs.listed[pairs.request[row]] == counters[LISTINGS]:
                    continue
                pairs.listed[pairs.request[row]] = counters[LISTINGS]
            for machine in range(len(pairs.usable)):
                pairs.valid[offered, machine] = pairs.usable[machine, need[row]]
            pairs.rows[offered] = row
            offered += 1
            options += hosts
    counters[OFFERED], counters[FITTING], counters[OPTIONS] = offered, fitting, options
