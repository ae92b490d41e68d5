"""Allocations on the best machines, see :mod:`hpcsimkit.policies.placing.placements`."""

from __future__ import annotations

from typing import cast

import numpy as np

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.listing import sort
from hpcsimkit.compiled.machines import CHOSEN, COUNT, FIRST, KINDS, NEED, PARTS, Machines
from hpcsimkit.compiled.needs import AMOUNTS, EMPTY, EXCLUSIVE, GIVEN, NODES, SPREAD, amount_taken, usable
from hpcsimkit.compiled.state import ZERO
from hpcsimkit.policies.placing.placements import GRID

FIRST_FIT, BEST_FIT, WORST_FIT = cast(tuple[int, ...], tuple(map(np.int64, range(3))))
"""Codes of placements."""


@separate
def allocate(machines: Machines, placement: int, row: int, level: int) -> bool:
    """Give a job the best machines of a level, and return whether it fits; mirrors ``MachineOrder.place``."""
    needs, number = machines.levels.needs, machines.jobs[NEED, row]
    machines.jobs[FIRST, row] = machines.counters[PARTS]
    if not needs[number, SPREAD] and needs[number, NODES] == 1:
        machine = _best(machines, placement, number, level)
        if machine < 0:
            return False
        _give(machines, number, machine)
        _write_part(machines, machine)
    else:
        if not choose(machines, number, level, rank(machines, placement, number, level)):
            return False
        for machine in range(machines.machines.shape[1]):
            if machines.machines[CHOSEN, machine]:
                _write_part(machines, machine)
    machines.jobs[COUNT, row] = machines.counters[PARTS] - machines.jobs[FIRST, row]
    return True


@machine_code
def _score(machines: Machines, placement: int, number: int, level: int, machine: int) -> float:
    """Return the score of a usable machine, the smallest of which is the best.

    Mirrors ``BestFit.scores``, ``WorstFit.scores`` and ``margins``.
    """
    if placement == FIRST_FIT:
        return 0.0
    levels, needs, kinds = machines.levels.levels, machines.levels.needs, machines.machines[KINDS, machine]
    share = 1.0
    if kinds:
        share = 0.0
        if not needs[number, EXCLUSIVE]:
            for resource in range(levels.shape[2]):
                left = max(levels[level, machine, resource] - needs[number, AMOUNTS + resource], 0)
                share += left / max(levels[EMPTY, machine, resource], 1)
        share = np.rint(share / kinds * GRID) / GRID
    return share if placement == BEST_FIT else -share


@pasted
def _best(machines: Machines, placement: int, number: int, level: int) -> int:
    """Return the best usable machine, the first of several; -1 if there is none."""
    best, least = -1, 0.0
    for machine in range(machines.machines.shape[1]):
        if not usable(machines.levels, number, level, machine):
            continue
        if placement == FIRST_FIT:
            return machine
        score = _score(machines, placement, number, level, machine)
        if best < 0 or score < least:
            best, least = machine, score
    return best


@separate
def rank(machines: Machines, placement: int, number: int, level: int) -> int:
    """List the usable machines, best first, and return their number; mirrors ``MachineOrder._ranked``."""
    ranking, count = machines.ranking, ZERO
    for machine in range(machines.machines.shape[1]):
        if usable(machines.levels, number, level, machine):
            ranking.rows[count] = machine
            ranking.scores[count] = _score(machines, placement, number, level, machine)
            count += 1
    if placement != FIRST_FIT:
        sort(ranking, count)
    return count


@separate
def choose(machines: Machines, number: int, level: int, ranked: int) -> bool:
    """Set the amounts of an allocation on ranked machines, and return whether they suffice.

    Mirrors ``Need.take``.
    """
    needs, rows, missing = machines.levels.needs, machines.ranking.rows, machines.levels.supply
    if not needs[number, SPREAD]:
        if ranked < needs[number, NODES]:
            return False
        for place in range(needs[number, NODES]):
            _give(machines, number, rows[place])
        return True
    for resource in range(len(missing)):
        missing[resource] = needs[number, AMOUNTS + resource]
    for place in range(ranked):
        _fill(machines, number, level, rows[place])
    for resource in range(len(missing)):
        if missing[resource] > 0:
            for place in range(ranked):
                forget(machines, rows[place])
            return False
    return True


@pasted
def _fill(machines: Machines, number: int, level: int, machine: int) -> None:
    """Let a machine give as much as it can of what is missing; mirrors ``Need._fill``."""
    levels, missing, gives = machines.levels.levels, machines.levels.supply, False
    for resource in range(levels.shape[2]):
        part = min(levels[level, machine, resource], missing[resource])
        levels[GIVEN, machine, resource] = part
        missing[resource] -= part
        gives |= part > 0
    if gives:
        machines.machines[CHOSEN, machine] = 1
        if machines.levels.needs[number, EXCLUSIVE]:
            _give(machines, number, machine)


@machine_code
def _give(machines: Machines, number: int, machine: int) -> None:
    """Let a machine give what a node needs, or all that it has."""
    machines.machines[CHOSEN, machine] = 1
    for resource in range(machines.levels.levels.shape[2]):
        taken = amount_taken(machines.levels, number, machine, resource)
        machines.levels.levels[GIVEN, machine, resource] = taken


@pasted
def _write_part(machines: Machines, machine: int) -> None:
    """Move what a machine gives to the list of parts."""
    part = machines.counters[PARTS]
    machines.parts[part, 0] = machine
    for resource in range(machines.levels.levels.shape[2]):
        machines.parts[part, 1 + resource] = machines.levels.levels[GIVEN, machine, resource]
    machines.counters[PARTS] += 1
    forget(machines, machine)


@pasted
def forget(machines: Machines, machine: int) -> None:
    """Let a machine give nothing."""
    machines.machines[CHOSEN, machine] = 0
    for resource in range(machines.levels.levels.shape[2]):
        machines.levels.levels[GIVEN, machine, resource] = 0
