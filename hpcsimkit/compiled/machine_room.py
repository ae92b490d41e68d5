"""The capacity for backfilling on machines, see :class:`~hpcsimkit.cluster.room.MachineRoom`."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.machines import COUNT, FIRST, NEED, Machines, expected_end, fits_now
from hpcsimkit.compiled.needs import (
    AMOUNTS,
    BY_TOTALS,
    EMPTY,
    EXCLUSIVE,
    GIVEN,
    INSIDE,
    LATER,
    MINUS,
    NODES,
    NOW,
    PLUS,
    SPREAD,
    Levels,
    amount_taken,
    enough,
    fits,
    tally,
    usable,
)
from hpcsimkit.compiled.placing import FIRST_FIT, choose, forget, rank
from hpcsimkit.compiled.queue import BLOCKS

FORBIDDEN = -1
"""Amount that marks an unusable machine in a level."""


@pasted
def _copy_free(levels: Levels, level: int) -> None:
    """Set a level to the free one."""
    for machine in range(levels.levels.shape[1]):
        for resource in range(levels.levels.shape[2]):
            levels.levels[level, machine, resource] = levels.levels[NOW, machine, resource]


@separate
def reserve(machines: Machines, head: int, now: int) -> int:
    """Return the shadow time of a job that does not fit, and set the level at that time.

    Mirrors ``Machines.earliest`` of the cluster.
    """
    number, expected = machines.jobs[NEED, head], machines.expected
    _copy_free(machines.levels, LATER)
    found = fits(machines.levels, number, LATER)
    shadow_time = now + 1
    for place in range(expected.counters[BLOCKS]):
        block = expected.order[place]
        for position in range(expected.filled[block]):
            row = expected.rows[block, position]
            end = expected_end(machines, row)
            if found and end > shadow_time:
                return shadow_time
            _release(machines, number, row)
            if not found and enough(machines.levels, number):
                found, shadow_time = True, max(end, shadow_time)
    return shadow_time


@pasted
def _release(machines: Machines, number: int, row: int) -> None:
    """Add the allocation of a job to the level at the shadow time, and to the supply of a need."""
    levels, parts, first = machines.levels, machines.parts, machines.jobs[FIRST, row]
    for part in range(first, first + machines.jobs[COUNT, row]):
        machine = parts[part, 0]
        tally(levels, number, LATER, machine, MINUS)
        for resource in range(levels.levels.shape[2]):
            levels.levels[LATER, machine, resource] += parts[part, 1 + resource]
        tally(levels, number, LATER, machine, PLUS)


@machine_code
def take(machines: Machines, row: int) -> None:
    """Deduct a job that runs beyond the shadow time from the level then; mirrors ``Machines.take``."""
    levels, parts, first = machines.levels.levels, machines.parts, machines.jobs[FIRST, row]
    for part in range(first, first + machines.jobs[COUNT, row]):
        for resource in range(levels.shape[2]):
            levels[LATER, parts[part, 0], resource] -= parts[part, 1 + resource]


@separate
def admits(machines: Machines, head: int, row: int, long: bool) -> bool:
    """Return whether a job may be backfilled; mirrors ``Machines.within`` of the cluster.

    A job that runs beyond the shadow time may use the level `INSIDE`, which this function sets; others may
    use all that is free.
    """
    if not fits_now(machines, row):
        return False
    if not long:
        return True
    number = machines.jobs[NEED, row]
    return _spare(machines, machines.jobs[NEED, head], number) and fits(machines.levels, number, INSIDE)


@pasted
def _spare(machines: Machines, head: int, number: int) -> bool:
    """Set the level for a job that runs beyond the shadow time, and return whether there is any.

    Mirrors ``MachineRoom.sparing``.
    """
    levels, needs = machines.levels.levels, machines.levels.needs
    _copy_free(machines.levels, INSIDE)
    if not needs[head, SPREAD] and not needs[number, SPREAD]:
        _keep_critical(machines.levels, head, number)
        return True
    if needs[head, BY_TOTALS] and not needs[number, EXCLUSIVE]:
        return _leave_totals(machines.levels, head, number)
    if needs[head, BY_TOTALS] and not needs[number, SPREAD]:
        _forbid_large(machines.levels, head, number)
        if fits(machines.levels, number, INSIDE):
            return True
        _copy_free(machines.levels, INSIDE)
    if not choose(machines, head, LATER, rank(machines, FIRST_FIT, head, LATER)):
        return False
    for machine in range(levels.shape[1]):
        for resource in range(levels.shape[2]):
            left = levels[LATER, machine, resource] - levels[GIVEN, machine, resource]
            levels[INSIDE, machine, resource] = min(levels[INSIDE, machine, resource], left)
        forget(machines, machine)
    return True


@pasted
def _leave_totals(levels: Levels, head: int, number: int) -> bool:
    """Return whether the totals that a job leaves suffice for a pooled request."""
    for resource in range(levels.levels.shape[2]):
        left = -levels.needs[number, AMOUNTS + resource] * levels.needs[number, NODES]
        for machine in range(levels.levels.shape[1]):
            left += levels.levels[LATER, machine, resource]
        if left < levels.needs[head, AMOUNTS + resource]:
            return False
    return True


@pasted
def _forbid_large(levels: Levels, head: int, number: int) -> None:
    """Forbid the machines that are too large for a job that takes whole ones; mirrors ``_beside_totals``."""
    for resource in range(levels.levels.shape[2]):
        if not levels.needs[head, AMOUNTS + resource]:
            continue
        spare = -levels.needs[head, AMOUNTS + resource]
        for machine in range(levels.levels.shape[1]):
            spare += levels.levels[LATER, machine, resource]
        for machine in range(levels.levels.shape[1]):
            if levels.levels[EMPTY, machine, resource] > spare // levels.needs[number, NODES]:
                _forbid(levels, machine)


@pasted
def _forbid(levels: Levels, machine: int) -> None:
    """Let nothing of a machine be used inside."""
    for resource in range(levels.levels.shape[2]):
        levels.levels[INSIDE, machine, resource] = FORBIDDEN


@pasted
def _keep_critical(levels: Levels, head: int, number: int) -> None:
    """Forbid the critical machines that the blocked job cannot spare; mirrors ``_beside_head``."""
    spare = -levels.needs[head, NODES]
    for machine in range(levels.levels.shape[1]):
        spare += usable(levels, head, LATER, machine)
    if levels.needs[number, NODES] <= spare:
        return
    for machine in range(levels.levels.shape[1]):
        if not _critical(levels, head, number, machine):
            continue
        if spare > 0:
            spare -= 1
        else:
            _forbid(levels, machine)


@pasted
def _critical(levels: Levels, head: int, number: int, machine: int) -> bool:
    """Return whether a job could use a machine, and the blocked job could then no longer use it."""
    if not usable(levels, number, NOW, machine) or not usable(levels, head, LATER, machine):
        return False
    for resource in range(levels.levels.shape[2]):
        taken = amount_taken(levels, number, machine, resource)
        levels.levels[LATER, machine, resource] -= taken
    critical = not usable(levels, head, LATER, machine)
    for resource in range(levels.levels.shape[2]):
        taken = amount_taken(levels, number, machine, resource)
        levels.levels[LATER, machine, resource] += taken
    return critical
