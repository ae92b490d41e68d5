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
from hpcsimkit.compiled.shifting import open_gap
from hpcsimkit.compiled.slurm_state import (
    AT,
    BACKFILL,
    BEGINNING,
    CHANGES,
    CHOSEN,
    KEPT,
    KNOWN,
    LENGTH,
    LEVEL,
    LIKE,
    NEXT,
    PASS,
    PLANNED,
    REQUEST,
    RUNNING,
    RUNNING_STEPS,
    SEARCH,
    STEPS,
    Clocks,
    Nodes,
    Run,
)
from hpcsimkit.compiled.state import Integers
from hpcsimkit.slurm.plan import GROUP

NEVER = cast(int, np.int64(2**62))
"""A time after all events [s]."""


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
    for resource in range(resources):  # noqa: SIM110 - numba knows no generators
        if level[place, resource] < needs[number, AMOUNTS + resource]:
            return False
    return True


@machine_code
def _choose(nodes: Nodes, number: int, machine: int) -> None:
    """Add a machine with what a node takes of it to the allocation that is being made."""
    place, needs = nodes.counters[CHOSEN], nodes.levels.needs
    nodes.chosen[place, 0] = machine
    for resource in range(nodes.chosen.shape[1] - 1):
        amount = needs[number, AMOUNTS + resource]
        if needs[number, EXCLUSIVE]:
            amount = nodes.levels.levels[EMPTY, machine, resource]
        nodes.chosen[place, 1 + resource] = amount
    nodes.counters[CHOSEN] += 1


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
        _choose(nodes, number, machine)
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
    return _choose_of(nodes, nodes.levels.levels[NOW], run.closed, number)


@separate
def _choose_of(nodes: Nodes, level: Integers, shut: NDArray[np.uint8], number: int) -> bool:
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
            _choose(nodes, number, machine)
            if nodes.counters[CHOSEN] == needs[number, NODES]:
                return True
    return bool(needs[number, SPREAD]) and _is_filled(nodes)


@machine_code
def fits_free(nodes: Nodes, run: Run, number: int) -> bool:
    """Return whether a request fits the free machines, none of which is closed."""
    changes = nodes.counters[CHANGES]
    if nodes.fits[0, number] != changes:
        nodes.fits[0, number], nodes.fits[1, number] = changes, choose_free(nodes, run, number)
    return bool(nodes.fits[1, number])


# --- the plan ----------------------------------------------------------------------------------------------


@separate
def make_plan(nodes: Nodes, run: Run, now: int) -> None:
    """Let the plan hold the running jobs until their expected ends; mirrors ``Plan``."""
    resources, free = len(nodes.wanted), nodes.levels.levels[NOW]
    nodes.counters[BACKFILL] += 1
    nodes.counters[STEPS], nodes.counters[PLANNED] = len(nodes.tail), 0
    for machine in range(len(nodes.tail)):
        nodes.steps[machine, AT], nodes.steps[machine, NEXT] = now, -1
        nodes.tail[machine], nodes.first_planned[machine] = machine, -1
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
    _copy_running(nodes)


@machine_code
def _copy_running(nodes: Nodes) -> None:
    """Keep the steps of the running jobs as a second list, in which no job will be planned."""
    count = nodes.counters[RUNNING_STEPS] = nodes.counters[STEPS]
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
    """Subtract the allocation that was chosen in [start, end) [s], also from what running jobs leave."""
    _take(nodes, 0, start, end, False)
    _take(nodes, nodes.counters[RUNNING_STEPS], start, end, False)


@separate
def _take(nodes: Nodes, first: int, start: int, end: int, whole: bool) -> None:
    """Subtract the allocation that was chosen in [start, end) [s]; mirrors ``MachineProfile.occupy``.

    Or leave nothing of its nodes (``whole``). The list of a machine begins with the step `first` + its number.
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
                left = nodes.steps[step, LEVEL + resource] - nodes.chosen[chosen, 1 + resource]
                nodes.steps[step, LEVEL + resource] = 0 if whole else left
            if nodes.steps[following, AT] == end:
                break
            step = following


@separate
def reserve(clocks: Clocks, nodes: Nodes, start: int, end: int, now: int) -> None:
    """Give the nodes of the allocation that was chosen to a planned job alone; mirrors ``Plan.reserve``."""
    grid = clocks.bf_resolution
    start, end = max(start // grid * grid, now), end // grid * grid
    if end > start:
        _take(nodes, 0, start, end, True)
        if clocks.end_groups:
            for chosen in range(nodes.counters[CHOSEN]):
                _list_planned(nodes, nodes.chosen[chosen, 0], start, end)


@machine_code
def _list_planned(nodes: Nodes, machine: int, start: int, end: int) -> None:
    """List a part of a planned place among those of its machine, sorted by their beginnings."""
    planned, place = nodes.planned, nodes.counters[PLANNED]
    for edge, count in ((start, 2 * place), (end, 2 * place + 1)):
        position = _edge_after(nodes, edge, count)
        open_gap(nodes.edges, position, count)
        nodes.edges[position] = edge
    before, after = -1, nodes.first_planned[machine]
    while after >= 0 and planned[0, after] < start:
        before, after = after, planned[2, after]
    planned[0, place], planned[1, place], planned[2, place] = start, end, after
    if before < 0:
        nodes.first_planned[machine] = place
    else:
        planned[2, before] = place
    nodes.counters[PLANNED] += 1


@machine_code
def _edge_after(nodes: Nodes, time: int, count: int) -> int:
    """Return the position of the first of the sorted edges after a time [s]; `count` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if nodes.edges[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


# --- groups of running jobs --------------------------------------------------------------------------------


@separate
def place_with_a_group(nodes: Nodes, run: Run, number: int, length: int, start: int, now: int) -> int:
    """Return the time from which a job has a place that has none before a time [s]; its allocation is chosen.

    Mirrors ``Plan._with_a_group``.
    """
    equal = nodes.equal
    if equal[PASS, number] == nodes.counters[BACKFILL] and equal[LENGTH, number] == length:
        start = max(start, equal[BEGINNING, number])
    found = _first_with_a_group(nodes, run, number, length, start, now)
    equal[PASS, number], equal[LENGTH, number] = nodes.counters[BACKFILL], length
    equal[BEGINNING, number] = found
    return int(found)


@separate
def _first_with_a_group(nodes: Nodes, run: Run, number: int, length: int, start: int, now: int) -> int:
    """Return the time from which a job has a place that has none before a time [s]."""
    _note_enough(nodes, number)
    count = 2 * nodes.counters[PLANNED]
    while True:
        edge = _edge_after(nodes, start, count)
        later = nodes.edges[edge] if edge < count else NEVER
        _shut_others(nodes, number, start, start + length)
        if nodes.levels.needs[number, SPREAD]:
            ready = _ready_in_parts(nodes, run, number, now, later)
        else:
            ready = _ready(nodes, number, now, later)
        if ready <= start:
            return start
        if ready < NEVER:
            if not _is_taken(nodes, ready, ready + length):
                return int(ready)
            start = ready
        elif later == NEVER:
            return NEVER
        else:
            start = later


@machine_code
def _note_enough(nodes: Nodes, number: int) -> None:
    """Note from when on each machine has enough for a node of a request, as running jobs end."""
    mask, steps = nodes.levels.needs[number, MASK], nodes.steps
    _want(nodes, number)
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place]
        if nodes.levels.needs[number, EXCLUSIVE]:
            _want_all(nodes, number, machine)
        step = nodes.counters[RUNNING_STEPS] + machine
        while step >= 0 and not _has_wanted(nodes, step):
            step = steps[step, NEXT]
        nodes.enough[machine] = steps[step, AT] if step >= 0 else NEVER
        nodes.coming[machine] = nodes.first_planned[machine]


@machine_code
def _shut_others(nodes: Nodes, number: int, begin: int, end: int) -> None:
    """Shut the machines of a request that planned jobs have between two times [s]; the first one only grows."""
    mask, planned = nodes.levels.needs[number, MASK], nodes.planned
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place]
        coming = nodes.coming[machine]
        while coming >= 0 and planned[1, coming] <= begin:
            coming = planned[2, coming]
        nodes.coming[machine] = coming
        nodes.shut[machine] = coming >= 0 and planned[0, coming] < end


@machine_code
def _is_taken(nodes: Nodes, begin: int, end: int) -> bool:
    """Return whether planned jobs have some of the machines that were chosen between two times [s]."""
    for chosen in range(nodes.counters[CHOSEN]):
        place = nodes.first_planned[nodes.chosen[chosen, 0]]
        while place >= 0:
            if nodes.planned[0, place] < end and nodes.planned[1, place] > begin:
                return True
            place = nodes.planned[2, place]
    return False


@separate
def _ready(nodes: Nodes, number: int, now: int, before: int) -> int:
    """Return when a request fits as running jobs end group by group, if it is up to a time [s].

    Mirrors ``Plan._ready``: the group is that of the job with whose end as many machines as are wanted have
    enough.
    """
    mask, wanted = nodes.levels.needs[number, MASK], nodes.levels.needs[number, NODES]
    first, last = nodes.first_member[mask], nodes.first_member[mask + 1]
    kept, bound = 0, min(before + 1, NEVER)
    for place in range(first, last):
        machine = nodes.members[place]
        if not nodes.shut[machine] and nodes.enough[machine] < bound:
            kept = _keep(nodes, nodes.enough[machine], kept, wanted)
            if kept == wanted:
                bound = nodes.smallest[wanted - 1]
    if kept < wanted:
        return NEVER
    ready = nodes.smallest[wanted - 1]
    if ready > now:
        ready = _end_of_group(nodes, first, last, ready)
        if ready > before:
            return NEVER
    nodes.counters[CHOSEN] = 0
    for place in range(first, last):
        machine = nodes.members[place]
        if not nodes.shut[machine] and nodes.enough[machine] <= ready:
            _choose(nodes, number, machine)
            if nodes.counters[CHOSEN] == wanted:
                break
    return int(ready)


@machine_code
def _end_of_group(nodes: Nodes, first: int, last: int, time: int) -> int:
    """Return the last end of the group in which a running job ends at a time [s], on machines that are not shut.

    Mirrors ``plan._groups``.
    """
    steps, origin = nodes.steps, time
    for place in range(first, last):
        step = steps[nodes.counters[RUNNING_STEPS] + nodes.members[place], NEXT]
        if step >= 0 and not nodes.shut[nodes.members[place]]:
            origin = min(origin, steps[step, AT])
    origin, window, found = origin // GROUP * GROUP + GROUP, GROUP, time
    while time > origin + window:
        window *= 2
    for place in range(first, last):
        step = steps[nodes.counters[RUNNING_STEPS] + nodes.members[place], NEXT]
        if not nodes.shut[nodes.members[place]]:
            while step >= 0 and steps[step, AT] <= origin + window:
                found = max(found, steps[step, AT])
                step = steps[step, NEXT]
    return int(found)


@separate
def _ready_in_parts(nodes: Nodes, run: Run, number: int, now: int, before: int) -> int:
    """Return when a pooled request fits as running jobs end group by group, if it is up to a time [s].

    Mirrors ``Plan._ready``.
    """
    _begin_with_free(nodes)
    if _choose_of(nodes, nodes.least, nodes.shut, number):
        return now
    place, running, window = _on_open_from(nodes, run, number, 0), run.counters[RUNNING], GROUP
    if place == running:
        return NEVER
    origin = _end_at(run, place, now) // GROUP * GROUP + GROUP
    while place < running:
        last = now
        while place < running and _end_at(run, place, now) <= origin + window:
            last = _end_at(run, place, now)
            if last > before:
                return NEVER
            _let_end(nodes, run, run.expected[1, place])
            place = _on_open_from(nodes, run, number, place + 1)
        if _choose_of(nodes, nodes.least, nodes.shut, number):
            return int(last)
        window *= 2
        while place < running and _end_at(run, place, now) > origin + window:
            window *= 2
    return NEVER


@machine_code
def _begin_with_free(nodes: Nodes) -> None:
    """Let the levels be those of now."""
    free = nodes.levels.levels[NOW]
    for machine in range(len(free)):
        for resource in range(free.shape[1]):
            nodes.least[machine, resource] = free[machine, resource]


@machine_code
def _let_end(nodes: Nodes, run: Run, row: int) -> None:
    """Add what a running job has to the levels."""
    for part in range(run.first[row], run.first[row] + run.part_count[row]):
        for resource in range(len(nodes.wanted)):
            nodes.least[run.parts[part, 0], resource] += run.parts[part, 1 + resource]


@machine_code
def _end_at(run: Run, place: int, now: int) -> int:
    """Return the expected end of a running job [s], which lies ahead."""
    return int(max(run.expected[0, place], now + 1))


@machine_code
def _on_open_from(nodes: Nodes, run: Run, number: int, place: int) -> int:
    """Return the first running job from a place on with an open machine of a request; else their number."""
    while place < run.counters[RUNNING] and not _is_on_open(nodes, run, number, run.expected[1, place]):
        place += 1
    return place


@machine_code
def _is_on_open(nodes: Nodes, run: Run, number: int, row: int) -> bool:
    """Return whether a job runs on a machine that a request may use, and that is not shut."""
    mask = nodes.levels.needs[number, MASK]
    for part in range(run.first[row], run.first[row] + run.part_count[row]):
        for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
            if nodes.members[place] == run.parts[part, 0] and not nodes.shut[run.parts[part, 0]]:
                return True
    return False


# --- searches ----------------------------------------------------------------------------------------------


@separate
def first_place(nodes: Nodes, number: int, length: int, now: int, before: int) -> int:
    """Return the first time from which a job fits for a length, if it is before another one [s].

    Its allocation is chosen. Returns a time after all events if there is none. Mirrors ``Plan.first_place``.
    """
    after, found = _soonest(nodes, number, length, now), NEVER
    if after < before:
        if nodes.levels.needs[number, SPREAD]:
            found = _first_pooled(nodes, number, length, after, before)
        else:
            slot = _slot(nodes, number, length)
            if nodes.levels.needs[number, NODES] == 1:
                found = _first_of_one(nodes, number, slot, length, after, before)
            else:
                found = _first_of_several(nodes, number, slot, length, after, before)
        if found > after:
            _remember(nodes, number, length, found)
    return int(found)


@separate
def may_start(nodes: Nodes, number: int, length: int, now: int) -> bool:
    """Return whether a job has a place in the plan from now on for a length [s]; true of pooled requests."""
    mask, wanted, found = nodes.levels.needs[number, MASK], nodes.levels.needs[number, NODES], 0
    if nodes.levels.needs[number, SPREAD]:
        return True
    _want(nodes, number)
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place]
        if nodes.levels.needs[number, EXCLUSIVE]:
            _want_all(nodes, number, machine)
        if _has_wanted(nodes, machine) and _has_throughout(nodes, machine, now + length):
            found += 1
            if found == wanted:
                return True
    return False


@machine_code
def _has_throughout(nodes: Nodes, step: int, end: int) -> bool:
    """Return whether what is wanted of a machine is there from a step on to a time [s]."""
    while step >= 0 and nodes.steps[step, AT] < end:
        if not _has_wanted(nodes, step):
            return False
        step = nodes.steps[step, NEXT]
    return True


@machine_code
def _slot(nodes: Nodes, number: int, length: int) -> int:
    """Return where the search for a request begins: where that for an equal or lesser one ended."""
    slots, counters = nodes.slots, nodes.counters
    slot, like = number % slots.shape[1], counters[LIKE] % slots.shape[1]
    counters[SEARCH] += 1
    if not _is_known(nodes, number, length):
        lesser = slot != like and _is_known(nodes, counters[LIKE], length)
        for machine in range(len(nodes.tail)):
            nodes.found[slot, machine] = nodes.found[like, machine] if lesser else -NEVER
            nodes.place[slot, machine] = nodes.place[like, machine] if lesser else machine
        slots[PASS, slot], slots[REQUEST, slot] = counters[BACKFILL], number
    slots[LENGTH, slot] = length
    _want(nodes, number)
    return int(slot)


@machine_code
def _is_known(nodes: Nodes, number: int, length: int) -> bool:
    """Return whether this backfill has searched for a request, for no longer a time."""
    slots = nodes.slots
    slot = number % slots.shape[1]
    known = slots[PASS, slot] == nodes.counters[BACKFILL] and slots[REQUEST, slot] == number
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
def _remember(nodes: Nodes, number: int, length: int, found: int) -> None:
    """Remember the place of a request, in place of the oldest one of the same machines."""
    known, mask, counters = nodes.known, nodes.levels.needs[number, MASK], nodes.counters
    entry = KNOWN * mask + nodes.latest[mask] % KNOWN
    if known[PASS, KNOWN * mask] != counters[BACKFILL]:
        entry = KNOWN * mask
    nodes.latest[mask] = entry + 1
    known[PASS, entry], known[REQUEST, entry] = counters[BACKFILL], number
    known[LENGTH, entry], known[BEGINNING, entry] = length, found


@machine_code
def _search(nodes: Nodes, number: int, slot: int, machine: int, length: int, after: int, before: int) -> int:
    """Return the first time between two from which a machine has enough for a length [s], or a later one.

    It begins where the last search on this machine ended, and notes a time before which there is none.
    """
    steps, since = nodes.steps, NEVER
    after = max(after, nodes.found[slot, machine])
    if nodes.levels.needs[number, EXCLUSIVE]:
        _want_all(nodes, number, machine)
    step = _step_at(nodes, nodes.place[slot, machine], after)
    while True:
        if since == NEVER:
            if steps[step, AT] >= before:
                break
        elif steps[step, AT] >= since + length:
            nodes.found[slot, machine] = since
            return int(since)
        if not _has_wanted(nodes, step):
            since = NEVER
        elif since == NEVER:
            since = max(steps[step, AT], after)
            nodes.place[slot, machine] = step
            if since >= before:
                break
        step = steps[step, NEXT]
        if step < 0:
            nodes.found[slot, machine] = since
            return int(since)
    nodes.place[slot, machine], nodes.found[slot, machine] = step, max(before, after)
    return NEVER


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
        machine = nodes.members[place]
        if nodes.found[slot, machine] >= before:
            continue
        found = _search(nodes, number, slot, machine, length, after, before)
        if found < before:
            best, before = machine, found
            if found == after:
                break
    if best < 0:
        return NEVER
    nodes.counters[CHOSEN] = 0
    _choose(nodes, number, best)
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
            _choose(nodes, number, machine)
            if nodes.counters[CHOSEN] == wanted:
                break
    return int(start)


@separate
def _have_enough(nodes: Nodes, number: int, slot: int, length: int, start: int, before: int) -> bool:
    """Return whether as many machines as are wanted have enough from a time on [s].

    If not, the smallest of their next times are known, those before another time; later ones are not sought.
    """
    mask, wanted = nodes.levels.needs[number, MASK], nodes.levels.needs[number, NODES]
    at_once, kept, bound = 0, 0, before
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = nodes.members[place]
        found = nodes.found[slot, machine]
        if found >= bound:
            continue
        if found < start or nodes.sought[machine] != nodes.counters[SEARCH]:
            found = _search(nodes, number, slot, machine, length, start, bound)
            nodes.sought[machine] = nodes.counters[SEARCH] if found < NEVER else 0
            if found == NEVER:
                continue
        if found == start:
            at_once += 1
            if at_once == wanted:
                return True
        kept = _keep(nodes, found, kept, wanted)
        if kept == wanted:
            bound = nodes.smallest[wanted - 1]
    nodes.counters[KEPT] = kept
    return False


@machine_code
def _keep(nodes: Nodes, found: int, kept: int, wanted: int) -> int:
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
    step, following = _step_at(nodes, machine, start), NEVER
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
