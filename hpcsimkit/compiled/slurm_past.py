"""The given starts before Slurm as configured takes over, see :mod:`hpcsimkit.kernel.past`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.cluster.request import Need
from hpcsimkit.compiled.needs import AMOUNTS, EXCLUSIVE, NODES, SPREAD
from hpcsimkit.compiled.on_machines import needs_of, table_of_needs
from hpcsimkit.compiled.slurm_arrays import Tickets
from hpcsimkit.compiled.slurm_places import NEVER
from hpcsimkit.compiled.slurm_state import Past
from hpcsimkit.compiled.state import Integers
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun


class Given(NamedTuple):
    """The starts of a begun run as arrays, each of shape (starts,) but the parts.

    Attributes
    ----------
    begun : Begun
        The starts.
    rows, start : array of int64
        Rows of the jobs, and their starts [s].
    first, part_count : array of int64
        First part of each given allocation, and number of parts; 0 if none is given.
    parts : array of int64, shape (parts, 1 + resources)
        Machine and amounts of each part.
    """

    begun: Begun
    rows: Integers
    start: Integers
    first: Integers
    part_count: Integers
    parts: Integers


LAST: list[Given] = []
"""The last starts of this process: those of the futures of one moment are the same ones."""


def past_of(begun: Begun | None, workload: Workload, partitions: Partitions, tickets: Tickets) -> Past | None:
    """Return the past of a run; None if its starts are not possible, which the kernel then says."""
    assert partitions.machines is not None
    resources = len(partitions.machines.resources)
    none, jobs = np.zeros(0, dtype=np.int64), len(workload)
    rejected = np.zeros(jobs, dtype=np.uint8)
    if begun is None:
        parts = np.zeros((0, 1 + resources), dtype=np.int64)
        return Past(-NEVER, 1, none, none, none, none, none, parts, rejected, np.zeros(0, dtype=np.uint8))
    rejected[list(begun.rejected)] = 1
    given = _given(begun, resources)
    ticket = _tickets(begun, given.rows, partitions, tickets, jobs)
    if (ticket < 0).any() or not _is_possible(given, workload, partitions.machines):
        return None
    runs = workload.column("run_time")[given.rows] > 0
    order = np.lexsort((given.rows, runs, given.start))
    return Past(
        begun.at,
        int(not begun.before),
        given.rows[order],
        given.start[order],
        ticket[order],
        given.first[order],
        given.part_count[order],
        given.parts,
        rejected,
        np.zeros(len(order), dtype=np.uint8),
    )


def _given(begun: Begun, resources: int) -> Given:
    """Return the starts of a begun run as arrays."""
    if LAST and LAST[0].begun is begun:
        return LAST[0]
    rows = np.fromiter(begun.started, dtype=np.int64, count=len(begun.started))
    start = np.fromiter(begun.started.values(), dtype=np.int64, count=len(rows))
    allocations = [begun.allocations.get(row) for row in begun.started]
    count = np.array([0 if each is None else len(each.machines) for each in allocations], dtype=np.int64)
    parts = np.zeros((int(count.sum()), 1 + resources), dtype=np.int64)
    there = [each for each in allocations if each is not None]
    if there:
        parts[:, 0] = np.concatenate([np.array(each.machines, dtype=np.int64) for each in there])
        parts[:, 1:] = np.concatenate([each.amounts for each in there])
    LAST[:] = [Given(begun, rows, start, np.cumsum(count) - count, count, parts)]
    return LAST[0]


def _tickets(begun: Begun, rows: Integers, partitions: Partitions, tickets: Tickets, jobs: int) -> Integers:
    """Return the ticket of each job in the partition in which it started; -1 for none."""
    of = np.full((len(partitions.parts), jobs), -1, dtype=np.int64)
    of[tickets.part, tickets.row] = np.arange(len(tickets.row))
    first = np.argmax(of >= 0, axis=0)
    numbers = {name: number for number, name in enumerate(partitions.names)}
    parts = [
        numbers.get(begun.partitions[row], -1) if row in begun.partitions else int(first[row])
        for row in rows.tolist()
    ]
    known = np.array(parts, dtype=np.int64)
    return np.where(known < 0, -1, of[known, rows])


def _is_possible(given: Given, workload: Workload, machines: Machines) -> bool:
    """Return whether all given allocations are what the jobs need, as in :meth:`Need.met_by`."""
    there = given.part_count > 0
    machine = given.parts[:, 0]
    if not there.any():
        return True
    if machine.min() < 0 or machine.max() >= len(machines):
        return False
    needs, numbers = needs_of(workload, machines)
    number = numbers[given.rows]
    table = table_of_needs(needs, len(machines.resources))[number]
    plain = (table[:, SPREAD] == 0) & (table[:, EXCLUSIVE] == 0)
    if (there & plain & (given.part_count != table[:, NODES])).any():
        return False
    owner = np.repeat(np.arange(len(given.rows)), given.part_count)
    differs = (given.parts[:, 1:] != table[owner, AMOUNTS:]).any(axis=1)
    if (differs & plain[owner]).any():
        return False
    return _are_met(given, needs, number, there, plain, owner, machines)


def _are_met(
    given: Given,
    needs: Sequence[Need],
    number: Integers,
    there: NDArray[np.bool_],
    plain: NDArray[np.bool_],
    owner: Integers,
    machines: Machines,
) -> bool:
    """Return whether machines are allowed, and pooled requests and those of whole machines are met."""
    for each in np.unique(number[there & plain]).tolist():
        allowed = needs[each].allowed
        if allowed is not None and not allowed[given.parts[number[owner] == each, 0]].all():
            return False
    return all(
        needs[number[place]].met_by(given.begun.allocations[int(given.rows[place])], machines.capacity)
        for place in np.flatnonzero(there & ~plain).tolist()
    )
