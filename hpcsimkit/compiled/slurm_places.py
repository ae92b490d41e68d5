"""Places of jobs on the machines that are free now, and in a plan of all partitions.

Mirrors :mod:`hpcsimkit.slurm.plan`. The plan holds, for each machine, a list of steps: its level from a time
on.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.needs import AMOUNTS, EMPTY, EXCLUSIVE, MASK, NODES, NOW, SPREAD
from hpcsimkit.compiled.shifting import open_gap, place_of
from hpcsimkit.compiled.slurm_state import (
    AT,
    BACKFILL,
    BEGIN,
    BEGINNING,
    CHANGES,
    CHOSEN,
    END,
    ENOUGH_FOR,
    EPOCH,
    FOLLOWING,
    KEPT,
    KNOWN,
    LENGTH,
    LEVEL,
    LIKE,
    NEXT,
    PASS,
    PLAN_AT,
    PLANNED,
    POOLED,
    REQUEST,
    RUNNING,
    SEARCH,
    SECOND,
    SOONEST,
    STEPS,
    WITNESS,
    Clocks,
    Nodes,
    Run,
)
from hpcsimkit.compiled.state import Integers

NEVER = cast(int, np.int64(2**62))
"""A time after all events [s]."""

NOW_ON = 0
"""Value of :attr:`Nodes.enough` for a machine that has enough now."""

FITS_AT, FITS, FITTING = range(3)
"""Rows of :attr:`Nodes.fits`."""

SHORTEST = 1
"""Row of :attr:`Nodes.late` after that of the number of the backfill."""


# --- levels ------------------------------------------------------------------------------------------------


@machine_code
def _has(nodes: Nodes, level: Integers, place: int, number: int, machine: int) -> bool:
    """Return whether a machine with a level has enough for one node, or any of a pooled request.

    Mirrors ``Need.usable`` but for the machines that are allowed.
    """
    needs, resources = nodes.levels.needs, level.shape[1]
    if needs[number, EXCLUSIVE]:
        for resource in range(resources):
            if level[place, resource] != nodes.levels.levels[EMPTY, machine, resource]:
                return False
    if needs[number, SPREAD]:
        for resource in range(resources):
            if needs[number, AMOUNTS + resource] > 0 and level[place, resource] > 0:
                return True
        return False
    for resource in range(resources):
        if level[place_of(place), place_of(resource)] < needs[place_of(number), place_of(AMOUNTS + resource)]:
            return False
    return True


@machine_code
def choose(nodes: Nodes, number: int, machine: int) -> None:
    """Add a machine with what a node takes of it to the allocation that is being made."""
    place, needs = nodes.counters[CHOSEN], nodes.levels.needs
    nodes.chosen[place, 0] = machine
    for resource in range(nodes.chosen.shape[1] - 1):
        amount = needs[number, AMOUNTS + resource]
        if needs[number, EXCLUSIVE]:
            amount = nodes.levels.levels[EMPTY, machine, resource]
        nodes.chosen[place, 1 + resource] = amount
    nodes.counters[CHOSEN] += 1


@machine_code
def begin_choice(nodes: Nodes) -> None:
    """Let no machine be chosen yet."""
    nodes.counters[CHOSEN] = 0


@pasted
def _begin_filling(nodes: Nodes, number: int) -> None:
    """Begin the allocation of a pooled request, which lacks all that it asks for."""
    nodes.counters[CHOSEN] = 0
    for resource in range(len(nodes.missing)):
        nodes.missing[resource] = nodes.levels.needs[number, AMOUNTS + resource]


@machine_code
def _fill(nodes: Nodes, level: Integers, number: int, machine: int) -> None:
    """Let a machine give as much as it can of what a pooled request lacks; mirrors ``Need._fill``."""
    place, gives = nodes.counters[CHOSEN], False
    for resource in range(len(nodes.missing)):
        amount = min(level[machine, resource], nodes.missing[resource])
        nodes.chosen[place, 1 + resource] = amount
        nodes.missing[resource] -= amount
        gives |= amount > 0
    if gives and nodes.levels.needs[number, EXCLUSIVE]:
        choose(nodes, number, machine)
    elif gives:
        nodes.chosen[place, 0] = machine
        nodes.counters[CHOSEN] += 1


@machine_code
def _is_filled(nodes: Nodes) -> bool:
    """Return whether a pooled request lacks nothing."""
    for resource in range(len(nodes.missing)):  # noqa: SIM110 - numba knows no generators
        if nodes.missing[resource] > 0:
            return False
    return True


# --- now ---------------------------------------------------------------------------------------------------


@separate
def choose_free(nodes: Nodes, run: Run, number: int) -> bool:
    """Choose the first free machines that are not closed, and return whether they suffice."""
    return choose_of(nodes, nodes.levels.levels[NOW], run.closed, number)


@separate
def choose_of(nodes: Nodes, level: Integers, shut: NDArray[np.uint8], number: int) -> bool:
    """Choose the first machines that have enough and are not shut; mirrors ``Places.first``."""
    needs = nodes.levels.needs
    mask = needs[number, MASK]
    _begin_filling(nodes, number)
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place]
        if shut[machine] or not _has(nodes, level, machine, number, machine):
            continue
        if needs[number, SPREAD]:
            _fill(nodes, level, number, machine)
        else:
            choose(nodes, number, machine)
            if nodes.counters[CHOSEN] == needs[number, NODES]:
                return True
    return bool(needs[number, SPREAD]) and _is_filled(nodes)


@separate
def lacks_open_nodes(nodes: Nodes, run: Run, part: int, number: int) -> bool:
    """Return whether a request does not fit the open machines of a partition, though they are many enough.

    It would not if they were idle, either; one for whole nodes has to wait if they are not. Mirrors
    ``reasons.lack_of``.
    """
    needs, levels = nodes.levels.needs, nodes.levels.levels
    left, idle, whole = 0, True, needs[number, EXCLUSIVE]
    for place in range(nodes.first_member[part], nodes.first_member[part + 1]):
        machine = nodes.members[place]
        if not run.closed[machine]:
            left += 1
            if whole:
                for resource in range(levels.shape[2]):
                    idle &= levels[NOW, machine, resource] == levels[EMPTY, machine, resource]
    wanted = 1 if needs[number, SPREAD] else needs[number, NODES]
    if left < wanted or not idle:
        return False
    return not choose_of(nodes, levels[EMPTY], run.closed, number)


@machine_code
def fits_free(nodes: Nodes, run: Run, number: int) -> bool:
    """Return whether a request fits the free machines, none of which is closed."""
    fits, changes = nodes.fits, nodes.counters[CHANGES]
    if fits[FITS_AT, number] != changes:
        if not _fits_as_before(nodes, number):
            fits[FITS, number] = choose_free(nodes, run, number)
            fits[FITTING, number] = nodes.chosen[0, 0]
        fits[FITS_AT, number] = changes
    return bool(fits[FITS, number])


@separate
def _fits_as_before(nodes: Nodes, number: int) -> bool:
    """Return whether what was found about a request and the free machines is known to hold still.

    One that did not fit only does so once a job has ended on its machines. One for a single node fits as long
    as the machine that was chosen has enough.
    """
    fits, needs = nodes.fits, nodes.levels.needs
    mask, since = needs[number, MASK], fits[FITS_AT, number]
    if fits[FITS, number] == 1:
        machine, single = fits[FITTING, number], needs[number, NODES] == 1 and not needs[number, SPREAD]
        return bool(single) and _has(nodes, nodes.levels.levels[NOW], machine, number, machine)
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        if nodes.changed_at[place_of(nodes.members[place_of(place)])] > since:
            return False
    return True


# --- the plan ----------------------------------------------------------------------------------------------


@separate
def make_plan(nodes: Nodes, run: Run, now: int) -> None:
    """Let the plan hold the running jobs until their expected ends; mirrors ``Plan``.

    Planned places stay what they are.
    """
    resources, free = len(nodes.wanted), nodes.levels.levels[NOW]
    nodes.counters[BACKFILL] += 1
    nodes.counters[EPOCH] += 1
    nodes.counters[PLAN_AT] = now
    nodes.counters[STEPS] = len(nodes.tail)
    for machine in range(len(nodes.tail)):
        nodes.steps[machine, AT], nodes.steps[machine, NEXT], nodes.tail[machine] = now, -1, machine
        for resource in range(resources):
            nodes.steps[machine, LEVEL + resource] = free[machine, resource]
    for place in range(run.counters[RUNNING]):
        end, row = run.expected[0, place], run.expected[1, place]
        at = max(end, now + 1)
        for part in range(run.first[row], run.first[row] + run.part_count[row]):
            machine = run.parts[part, 0]
            step = nodes.tail[machine]
            if nodes.steps[step, AT] != at:
                step = nodes.tail[machine] = _add_step(nodes, step, at)
            for resource in range(resources):
                nodes.steps[step, LEVEL + resource] += run.parts[part, 1 + resource]
    if nodes.counters[POOLED]:
        _copy_steps(nodes)


@machine_code
def _copy_steps(nodes: Nodes) -> None:
    """Begin a second list of steps for each machine, in which planned jobs have their places, too."""
    count = nodes.counters[SECOND] = nodes.counters[STEPS]
    for step in range(count):
        for column in range(nodes.steps.shape[1]):
            nodes.steps[count + step, column] = nodes.steps[step, column]
        if nodes.steps[step, NEXT] >= 0:
            nodes.steps[count + step, NEXT] += count
    nodes.counters[STEPS] = 2 * count


@machine_code
def _add_step(nodes: Nodes, before: int, at: int) -> int:
    """Add a step with the level of the one before it, and return its number."""
    step = nodes.counters[STEPS]
    nodes.counters[STEPS] += 1
    nodes.steps[step, AT], nodes.steps[step, NEXT] = at, nodes.steps[before, NEXT]
    nodes.steps[before, NEXT] = step
    for resource in range(len(nodes.wanted)):
        nodes.steps[step, LEVEL + resource] = nodes.steps[before, LEVEL + resource]
    return int(step)


@machine_code
def occupy(nodes: Nodes, start: int, end: int) -> None:
    """Subtract the allocation of a job that starts in [start, end) [s]; mirrors ``MachineProfile.occupy``."""
    nodes.counters[EPOCH] += 1  # what is known of when machines have enough does not hold any more
    nodes.counters[SOONEST] = start
    _take(nodes, 0, start, end, False)
    if nodes.counters[POOLED]:
        _take(nodes, nodes.counters[SECOND], start, end, False)


@separate
def _take(nodes: Nodes, first: int, start: int, end: int, whole: bool) -> None:
    """Subtract the allocation that was chosen in [start, end) [s], or leave nothing of its nodes (``whole``).

    The list of a machine begins with the step `first` + its number.
    """
    for chosen in range(nodes.counters[CHOSEN]):
        step = _step_at(nodes, first + nodes.chosen[chosen, 0], start)
        if nodes.steps[step, AT] < start:
            step = _add_step(nodes, step, start)
        while True:
            following = nodes.steps[step, NEXT]
            if following < 0 or nodes.steps[following, AT] > end:
                following = _add_step(nodes, step, end)
            for resource in range(len(nodes.wanted)):
                # Jobs that have been stopped are in the plan to their limits, so that too little may be left.
                left = max(nodes.steps[step, LEVEL + resource] - nodes.chosen[chosen, 1 + resource], 0)
                nodes.steps[step, LEVEL + resource] = 0 if whole else left
            if nodes.steps[following, AT] == end:
                break
            step = following


@separate
def reserve(clocks: Clocks, nodes: Nodes, start: int, end: int, now: int) -> None:
    """Give the nodes of the allocation that was chosen to a planned job alone; mirrors ``Plan.reserve``."""
    grid = clocks.bf_resolution
    start, end = max(start // grid * grid, now), end // grid * grid
    if end <= start:
        return
    nodes.counters[SOONEST] = min(nodes.counters[SOONEST], start)
    if nodes.counters[POOLED]:
        _take(nodes, nodes.counters[SECOND], start, end, True)
    for chosen in range(nodes.counters[CHOSEN]):
        _list_planned(nodes, nodes.chosen[chosen, 0], start, end)
        if clocks.end_groups:
            _list_edge(nodes, start, 2 * nodes.counters[PLANNED])
            _list_edge(nodes, end, 2 * nodes.counters[PLANNED] + 1)
        nodes.counters[PLANNED] += 1


@separate
def keep_planned(nodes: Nodes, count: int) -> None:
    """Let the plan hold the first parts of planned places only."""
    planned = nodes.planned
    for machine in range(len(nodes.first_planned)):
        last, part = -1, nodes.first_planned[machine]
        nodes.first_planned[machine] = -1
        while part >= 0:
            following = planned[FOLLOWING, place_of(part)]
            if part < count:
                planned[FOLLOWING, place_of(part)] = -1
                if last < 0:
                    nodes.first_planned[machine] = part
                else:
                    planned[FOLLOWING, place_of(last)] = part
                last = part
            part = following
    nodes.counters[PLANNED] = count


@machine_code
def _list_planned(nodes: Nodes, machine: int, start: int, end: int) -> None:
    """List a part of a planned place among those of its machine, sorted by their beginnings."""
    planned, place = nodes.planned, nodes.counters[PLANNED]
    before, after = -1, nodes.first_planned[machine]
    while after >= 0 and planned[BEGIN, place_of(after)] < start:
        before, after = after, planned[FOLLOWING, place_of(after)]
    planned[BEGIN, place_of(place)], planned[END, place_of(place)], planned[FOLLOWING, place_of(place)] = (
        start,
        end,
        after,
    )
    if before < 0:
        nodes.first_planned[machine] = place
    else:
        planned[FOLLOWING, place_of(before)] = place


@machine_code
def _list_edge(nodes: Nodes, edge: int, count: int) -> None:
    """Insert a beginning or end [s] into the sorted ones."""
    position = edge_after(nodes, edge, count)
    open_gap(nodes.edges, position, count)
    nodes.edges[position] = edge


@machine_code
def edge_after(nodes: Nodes, time: int, count: int) -> int:
    """Return the position of the first of the sorted edges after a time [s]; `count` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if nodes.edges[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


# --- searches ----------------------------------------------------------------------------------------------


@separate
def first_place(nodes: Nodes, number: int, length: int, after: int, before: int) -> int:
    """Return the first time between two from which a job fits for a length [s].

    Its allocation is chosen. Returns a time after all events if there is none. Mirrors ``Plan.first_place``:
    the job has no place before the first of the two times.
    """
    after, found = _soonest(nodes, number, length, after), NEVER
    if after < before:
        if nodes.levels.needs[number, SPREAD]:
            found = _first_pooled(nodes, number, length, after, before)
        else:
            slot = _begin_search(nodes, number, length)
            if nodes.levels.needs[number, NODES] == 1:
                found = _first_of_one(nodes, number, slot, length, after, before)
            else:
                found = _first_of_several(nodes, number, slot, length, after, before)
        if found > after:
            remember(nodes, number, length, found)
    return int(found)


@separate
def may_start(nodes: Nodes, number: int, length: int, now: int) -> bool:
    """Return whether a job has a place in the plan from now on for a length [s]; true of pooled requests.

    The last machine of the place is noted.
    """
    mask, wanted, found = nodes.levels.needs[number, MASK], nodes.levels.needs[number, NODES], 0
    if nodes.levels.needs[number, SPREAD]:
        return True
    late, slot = nodes.late, slot_of(nodes, number)
    if late[PASS, number] == nodes.counters[BACKFILL] and late[SHORTEST, number] <= length:
        return False  # within a backfill the plan only fills up
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place_of(place)]
        if not enough_on(nodes, number, slot, machine) and _is_unplanned(nodes, machine, now + length):
            found += 1
            if found == wanted:
                nodes.counters[WITNESS] = machine
                return True
    late[PASS, number], late[SHORTEST, number] = nodes.counters[BACKFILL], length
    return False


@machine_code
def still_may_start(nodes: Nodes, number: int, length: int, now: int) -> bool:
    """Return whether a job that had a place from now on has it still, as far as that is known.

    That is so if all that has been planned since begins later. Or its only machine is still unplanned, and no
    job has started, which would have set the first beginning to now.
    """
    soonest = nodes.counters[SOONEST]
    if soonest >= now + length:
        return True
    single = nodes.levels.needs[number, NODES] == 1 and not nodes.levels.needs[number, SPREAD]
    return bool(single) and soonest > now and _is_unplanned(nodes, nodes.counters[WITNESS], now + length)


@machine_code
def _is_unplanned(nodes: Nodes, machine: int, end: int) -> bool:
    """Return whether no job has a place on a machine before a time [s]."""
    place = nodes.first_planned[place_of(machine)]
    while place >= nodes.counters[PLANNED]:  # of the last plan, see `first_on`
        place = nodes.planned[FOLLOWING, place_of(place)]
    return bool(place < 0 or nodes.planned[BEGIN, place_of(place)] >= end)


@machine_code
def is_planned(nodes: Nodes, machine: int, begin: int, end: int) -> bool:
    """Return whether a planned job has a machine between two times [s]."""
    part = nodes.first_planned[machine]
    while part >= 0 and nodes.planned[BEGIN, place_of(part)] < end:
        if nodes.planned[END, place_of(part)] > begin:
            return True
        part = nodes.planned[FOLLOWING, place_of(part)]
    return False


@machine_code
def _slot(nodes: Nodes, number: int) -> int:
    """Return the slot of a request; there is one for each, unless they are very many."""
    return number if number < nodes.slots.shape[1] else number % nodes.slots.shape[1]


@machine_code
def slot_of(nodes: Nodes, number: int) -> int:
    """Return the slot of a request; what is known of when machines have enough for another one is lost."""
    slot = _slot(nodes, number)
    if nodes.slots[ENOUGH_FOR, slot] != number:
        nodes.slots[ENOUGH_FOR, slot] = number
        for machine in range(len(nodes.tail)):
            nodes.enough[slot, machine], nodes.enough_at[slot, machine] = NEVER, -1
    return slot


@machine_code
def enough_on(nodes: Nodes, number: int, slot: int, machine: int) -> int:
    """Return from when on a machine has enough for a node of a request, as running jobs end; 0: from now on.

    What is known of a machine holds until a job starts or ends on it, or should have ended.
    """
    enough = nodes.enough[place_of(slot), place_of(machine)]
    late = 0 < enough <= nodes.counters[PLAN_AT]
    if late or nodes.enough_at[place_of(slot), place_of(machine)] < nodes.changed_at[place_of(machine)]:
        enough = _note_enough(nodes, number, slot, machine)
    return int(enough)


@separate
def _note_enough(nodes: Nodes, number: int, slot: int, machine: int) -> int:
    """Note from when on a machine has enough for a node of a request, and return it."""
    step, enough = machine, NEVER
    _want(nodes, number)
    if nodes.levels.needs[number, EXCLUSIVE]:
        _want_all(nodes, number, machine)
    while step >= 0 and not _has_wanted(nodes, step):
        step = nodes.steps[step, NEXT]
    if step == machine:
        enough = NOW_ON
    elif step >= 0:
        enough = nodes.steps[step, AT]
    nodes.enough[slot, machine], nodes.enough_at[slot, machine] = enough, nodes.counters[CHANGES]
    return int(enough)


@machine_code
def _begin_search(nodes: Nodes, number: int, length: int) -> int:
    """Return the slot of a request, whose search begins where that for an equal or lesser one ended."""
    slots, counters = nodes.slots, nodes.counters
    slot, like = slot_of(nodes, number), _slot(nodes, counters[LIKE])
    counters[SEARCH] += 1
    if not _is_known(nodes, number, length):
        lesser = slot != like and _is_known(nodes, counters[LIKE], length)
        mask = nodes.levels.needs[number, MASK]
        for member in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
            machine = nodes.members[place_of(member)]
            found, place = enough_on(nodes, number, slot, machine), -1
            if lesser and nodes.found[place_of(like), place_of(machine)] > found:
                found = nodes.found[place_of(like), place_of(machine)]
                place = nodes.place[place_of(like), place_of(machine)]
            nodes.found[place_of(slot), place_of(machine)] = found
            nodes.place[place_of(slot), place_of(machine)] = place
        slots[PASS, slot], slots[REQUEST, slot] = counters[EPOCH], number
    slots[LENGTH, slot] = length
    return int(slot)


@machine_code
def _is_known(nodes: Nodes, number: int, length: int) -> bool:
    """Return whether a request has been searched for since the last start, for no longer a time."""
    slots, slot = nodes.slots, _slot(nodes, number)
    known = slots[PASS, slot] == nodes.counters[EPOCH] and slots[REQUEST, slot] == number
    return bool(known and slots[LENGTH, slot] <= length)


@machine_code
def _soonest(nodes: Nodes, number: int, length: int, now: int) -> int:
    """Return a time before which a job has no place, from the places of others that asked for no more [s].

    Within a backfill the plan only fills up. The request with the latest place is noted.
    """
    known, mask = nodes.known, nodes.levels.needs[number, MASK]
    nodes.counters[LIKE] = number
    for entry in range(KNOWN * mask, KNOWN * (mask + 1)):
        if known[PASS, entry] != nodes.counters[BACKFILL]:
            break
        later = known[BEGINNING, entry] > now and length >= known[LENGTH, entry]
        if later and _asks_no_more(nodes, known[REQUEST, entry], number):
            now, nodes.counters[LIKE] = known[BEGINNING, entry], known[REQUEST, entry]
    return now


@machine_code
def _asks_no_more(nodes: Nodes, less: int, more: int) -> bool:
    """Return whether a request of the same machines asks for nothing of which another one asks for less."""
    needs = nodes.levels.needs
    if less == more:
        return True
    if needs[less, SPREAD] or needs[more, SPREAD] or needs[less, EXCLUSIVE] > needs[more, EXCLUSIVE]:
        return False
    if needs[less, NODES] > needs[more, NODES]:
        return False
    for resource in range(len(nodes.wanted)):
        if needs[less, AMOUNTS + resource] > needs[more, AMOUNTS + resource]:
            return False
    return True


@machine_code
def remember(nodes: Nodes, number: int, length: int, found: int) -> None:
    """Remember the place of a request, in place of the oldest one of the same machines."""
    known, mask, counters = nodes.known, nodes.levels.needs[number, MASK], nodes.counters
    entry = KNOWN * mask + nodes.latest[mask] % KNOWN
    if known[PASS, KNOWN * mask] != counters[BACKFILL]:
        entry = KNOWN * mask
    nodes.latest[mask] = entry + 1
    known[PASS, entry], known[REQUEST, entry] = counters[BACKFILL], number
    known[LENGTH, entry], known[BEGINNING, entry] = length, found


@machine_code
def _search(nodes: Nodes, slot: int, machine: int, length: int, after: int, before: int) -> int:
    """Return the first time between two from which a machine has enough for a length [s], or a later one.

    It is the first gap between planned places once running jobs leave enough. The search begins where the
    last one on this machine ended: `place` is a part that is over by then, and so are those before it.
    """
    begins, ends, followed_by = nodes.planned[BEGIN], nodes.planned[END], nodes.planned[FOLLOWING]
    place = nodes.place[place_of(slot), place_of(machine)]
    found = max(after, nodes.found[place_of(slot), place_of(machine)])
    following = nodes.first_planned[place_of(machine)] if place < 0 else followed_by[place_of(place)]
    while following >= 0 and begins[place_of(following)] < found + length:
        found, place = max(found, ends[place_of(following)]), following
        if found >= before:
            break
        following = followed_by[place_of(following)]
    nodes.found[place_of(slot), place_of(machine)] = found
    nodes.place[place_of(slot), place_of(machine)] = place
    return found if found < before else NEVER


@machine_code
def first_on(nodes: Nodes, number: int, slot: int, machine: int, length: int, after: int, before: int) -> int:
    """Return the first time from which a machine has enough for a length, if it is before another one [s].

    As long as places are those of the last plan, the lists hold all of its parts: those of jobs that have not
    been planned anew have higher numbers.
    """
    found = max(after, enough_on(nodes, number, slot, machine))
    if found >= before:
        return NEVER
    planned, following = nodes.planned, nodes.first_planned[place_of(machine)]
    count = nodes.counters[PLANNED]
    while following >= 0 and found < before and planned[BEGIN, place_of(following)] < found + length:
        if following < count:
            found = max(found, planned[END, place_of(following)])
        following = planned[FOLLOWING, place_of(following)]
    return int(found) if found < before else NEVER


@machine_code
def _step_at(nodes: Nodes, step: int, at: int) -> int:
    """Return the step of a machine at a time [s], or one that begins after it."""
    while nodes.steps[step, NEXT] >= 0 and nodes.steps[nodes.steps[step, NEXT], AT] <= at:
        step = nodes.steps[step, NEXT]
    return step


@machine_code
def _has_wanted(nodes: Nodes, step: int) -> bool:
    """Return whether a step has what is wanted of a machine."""
    for resource in range(len(nodes.wanted)):
        if nodes.steps[step, LEVEL + resource] < nodes.wanted[resource]:
            return False
    return True


@machine_code
def _want(nodes: Nodes, number: int) -> None:
    """Set what a request wants of each machine."""
    for resource in range(len(nodes.wanted)):
        nodes.wanted[resource] = nodes.levels.needs[number, AMOUNTS + resource]


@machine_code
def _want_all(nodes: Nodes, number: int, machine: int) -> None:
    """Set what a request for whole machines wants of one, which may be too small."""
    for resource in range(len(nodes.wanted)):
        amount = nodes.levels.needs[number, AMOUNTS + resource]
        nodes.wanted[resource] = max(amount, nodes.levels.levels[EMPTY, machine, resource])


@pasted
def _first_of_one(nodes: Nodes, number: int, slot: int, length: int, after: int, before: int) -> int:
    """Return the first time for a job on one machine."""
    mask, best = nodes.levels.needs[number, MASK], -1
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place_of(place)]
        if nodes.found[place_of(slot), place_of(machine)] >= before:
            continue
        found = _search(nodes, slot, machine, length, after, before)
        if found < before:
            best, before = machine, found
            if found == after:
                break
    if best < 0:
        return NEVER
    nodes.counters[CHOSEN] = 0
    choose(nodes, number, best)
    return before


@separate
def _first_of_several(nodes: Nodes, number: int, slot: int, length: int, after: int, before: int) -> int:
    """Return the first time for a job on several machines.

    If some machines have enough from a time on, fewer than the job needs have it before the last of as many
    as it needs.
    """
    mask, wanted, start = nodes.levels.needs[number, MASK], nodes.levels.needs[number, NODES], after
    while not _have_enough(nodes, number, slot, length, start, before):
        if nodes.counters[KEPT] < wanted:
            return NEVER
        start = nodes.smallest[wanted - 1]
    nodes.counters[CHOSEN] = 0
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place]
        if nodes.sought[machine] == nodes.counters[SEARCH] and nodes.found[slot, machine] == start:
            choose(nodes, number, machine)
            if nodes.counters[CHOSEN] == wanted:
                break
    return int(start)


@separate
def _have_enough(nodes: Nodes, number: int, slot: int, length: int, start: int, before: int) -> bool:
    """Return whether as many machines as are wanted have enough from a time on [s].

    If not, the smallest of their next times are known, those before another time; later ones are not sought.
    """
    mask, wanted = nodes.levels.needs[number, MASK], nodes.levels.needs[number, NODES]
    at_once, kept, bound, search, known = 0, 0, before, nodes.counters[SEARCH], nodes.found[slot]
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place_of(place)]
        found = known[place_of(machine)]
        if found >= bound:
            continue
        if found < start or nodes.sought[place_of(machine)] != search:
            found = _search(nodes, slot, machine, length, start, bound)
            nodes.sought[place_of(machine)] = search if found < NEVER else 0
            if found == NEVER:
                continue
        if found == start:
            at_once += 1
            if at_once == wanted:
                return True
        kept = keep_smallest(nodes, found, kept, wanted)
        if kept == wanted:
            bound = nodes.smallest[wanted - 1]
    nodes.counters[KEPT] = kept
    return False


@machine_code
def keep_smallest(nodes: Nodes, found: int, kept: int, wanted: int) -> int:
    """Insert a time into the sorted list of the smallest ones, and return their number."""
    smallest = nodes.smallest
    if kept < wanted:
        kept += 1
    place = kept - 1
    while place > 0 and smallest[place - 1] > found:
        smallest[place] = smallest[place - 1]
        place -= 1
    smallest[place] = found
    return kept


@separate
def _first_pooled(nodes: Nodes, number: int, length: int, after: int, before: int) -> int:
    """Return the first time for a pooled request; each change of a machine is examined, one by one.

    Mirrors ``MachineProfile._earliest_in_parts``.
    """
    mask, start = nodes.levels.needs[number, MASK], after
    first, last = nodes.first_member[mask], nodes.first_member[mask + 1]
    while start < before:
        following = NEVER
        _begin_filling(nodes, number)
        for place in range(first, last):
            machine = nodes.members[place]
            following = min(following, _set_least(nodes, machine, start, start + length))
            if not _is_filled(nodes) and _has(nodes, nodes.least, machine, number, machine):
                _fill(nodes, nodes.least, number, machine)
        if _is_filled(nodes):
            return int(start)
        start = following
    return NEVER


@machine_code
def _set_least(nodes: Nodes, machine: int, start: int, end: int) -> int:
    """Set what a machine has throughout [start, end) [s], and return its first change after the start [s]."""
    step, following = _step_at(nodes, nodes.counters[SECOND] + machine, start), NEVER
    for resource in range(len(nodes.wanted)):
        nodes.least[machine, resource] = nodes.steps[step, LEVEL + resource]
    step = nodes.steps[step, NEXT]
    if step >= 0:
        following = nodes.steps[step, AT]
    while step >= 0 and nodes.steps[step, AT] < end:
        for resource in range(len(nodes.wanted)):
            least = min(nodes.least[machine, resource], nodes.steps[step, LEVEL + resource])
            nodes.least[machine, resource] = least
        step = nodes.steps[step, NEXT]
    return int(following)
