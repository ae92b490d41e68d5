"""Places of jobs in the plan when running jobs end in groups.

Mirrors ``Plan._with_a_group`` of :mod:`hpcsimkit.slurm.plan`. The machines of a request are *open* for a time
if no planned job has them in it.
"""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.needs import MASK, NODES, NOW, SPREAD
from hpcsimkit.compiled.shifting import place_of
from hpcsimkit.compiled.slurm_places import (
    NEVER,
    begin_choice,
    choose,
    choose_of,
    edge_after,
    is_planned,
    keep_smallest,
)
from hpcsimkit.compiled.slurm_state import (
    AT,
    BACKFILL,
    BEGIN,
    BEGINNING,
    CHOSEN,
    END,
    ENDS,
    ENOUGH,
    FOLLOWING,
    FREE_UNTIL,
    LENGTH,
    MACHINE,
    NEXT,
    OUTDATED,
    PART,
    PASS,
    PLANNED,
    RUNNING,
    TAKEN_UNTIL,
    Nodes,
    Run,
    Stops,
)
from hpcsimkit.slurm.plan import GROUP


@separate
def place_with_a_group(
    nodes: Nodes, run: Run, stops: Stops | None, number: int, length: int, start: int, now: int
) -> int:
    """Return the time from which a job has a place that has none before a time [s]; its allocation is chosen.

    Mirrors ``Plan.first_place``.
    """
    equal = nodes.equal
    if equal[PASS, number] == nodes.counters[BACKFILL] and equal[LENGTH, number] == length:
        start = max(start, equal[BEGINNING, number])
    found = _first(nodes, run, stops, number, length, start, now)
    equal[PASS, number], equal[LENGTH, number] = nodes.counters[BACKFILL], length
    equal[BEGINNING, number] = found
    return int(found)


@separate
def _first(
    nodes: Nodes, run: Run, stops: Stops | None, number: int, length: int, start: int, now: int
) -> int:
    """Return the time from which a job has a place that has none before a time [s].

    As long as the same machines are open, the request fits at the same time: edges in between are skipped.
    """
    count, edges = _look_at(nodes, number), 2 * nodes.counters[PLANNED]
    while True:
        change = _open_and_shut(nodes, count, start, length)
        edge, later = edge_after(nodes, change - 1, edges), NEVER
        if edge < edges:
            later = nodes.edges[edge]
        one_by_one = nodes.levels.needs[number, SPREAD] > 0
        if stops is not None and stops.counters[OUTDATED]:  # the plan still holds jobs that were stopped
            one_by_one = True
        if one_by_one:
            ready = _ready_one_by_one(nodes, run, number, count, start + length, now, later)
        else:
            ready = _ready(nodes, run, number, count, start, start + length, now, later)
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


@pasted
def _look_at(nodes: Nodes, number: int) -> int:
    """Note what is known of the machines of a request, one after the other, and return their number."""
    seen, mask, slot = nodes.seen, nodes.levels.needs[number, MASK], number % nodes.slots.shape[1]
    first, last = nodes.first_member[mask], nodes.first_member[mask + 1]
    for machine in range(len(nodes.shut)):
        nodes.shut[machine] = 1
    for place in range(first, last):
        machine = nodes.members[place]
        nodes.shut[machine] = 0
        step = nodes.steps[machine, NEXT]
        seen[MACHINE, place - first] = machine
        seen[ENOUGH, place - first] = nodes.enough[slot, machine]
        seen[ENDS, place - first] = nodes.steps[step, AT] if step >= 0 else NEVER
        _note_part(nodes, place - first, nodes.first_planned[machine])
    return int(last - first)


@machine_code
def _note_part(nodes: Nodes, place: int, part: int) -> None:
    """Note the next part of planned places on a machine."""
    seen = nodes.seen
    seen[PART, place], seen[FREE_UNTIL, place], seen[TAKEN_UNTIL, place] = part, NEVER, NEVER
    if part >= 0:
        seen[FREE_UNTIL, place], seen[TAKEN_UNTIL, place] = (
            nodes.planned[BEGIN, place_of(part)],
            nodes.planned[END, place_of(part)],
        )


@separate
def _open_and_shut(nodes: Nodes, count: int, start: int, length: int) -> int:
    """Note the planned parts that end after a time [s], which only grows, for a request of a length.

    Returns the next time for which other machines may be open.
    """
    free_until, taken_until = nodes.seen[FREE_UNTIL], nodes.seen[TAKEN_UNTIL]
    change, least = NEVER, NEVER
    for place in range(count):
        least = min(least, taken_until[place_of(place)])
    if least <= start:
        for place in range(count):
            while taken_until[place] <= start:
                _note_part(nodes, place, nodes.planned[FOLLOWING, place_of(nodes.seen[PART, place])])
    for place in range(count):
        until = taken_until[place_of(place)]
        if free_until[place_of(place)] >= start + length:
            until = free_until[place_of(place)] - length + 1
        change = min(change, until)
    return int(change)


@machine_code
def _is_taken(nodes: Nodes, begin: int, end: int) -> bool:
    """Return whether planned jobs have some of the machines that were chosen between two times [s]."""
    for chosen in range(nodes.counters[CHOSEN]):
        if is_planned(nodes, nodes.chosen[chosen, 0], begin, end):
            return True
    return False


@separate
def _ready(
    nodes: Nodes, run: Run, number: int, count: int, begin: int, end: int, now: int, before: int
) -> int:
    """Return when a request fits as running jobs end group by group, if it is up to a time [s].

    Mirrors ``Plan._ready``, on the machines that are open between two times: with the end of the job from
    which on as many machines as are wanted have enough, its whole group has ended.
    """
    wanted = nodes.levels.needs[number, NODES]
    ready = _enough_at(nodes, wanted, count, end, before)
    if NEVER > ready > now:
        ready = _end_of_group(nodes, run, count, ready, begin, end, now)
    if ready > before or ready == NEVER:
        return NEVER
    begin_choice(nodes)
    for place in range(count):
        if nodes.seen[ENOUGH, place] <= ready and nodes.seen[FREE_UNTIL, place] >= end:
            choose(nodes, number, nodes.seen[MACHINE, place])
            if nodes.counters[CHOSEN] == wanted:
                break
    return int(ready)


@machine_code
def _enough_at(nodes: Nodes, wanted: int, count: int, end: int, before: int) -> int:
    """Return from when on as many open machines as are wanted have enough, if it is up to a time [s]."""
    enough, free_until, kept = nodes.seen[ENOUGH], nodes.seen[FREE_UNTIL], 0
    ready = bound = min(before + 1, NEVER)
    if wanted == 1:
        for place in range(count):
            if free_until[place_of(place)] >= end:
                ready = min(ready, enough[place_of(place)])
    else:
        for place in range(count):
            if enough[place] < ready and free_until[place] >= end:
                kept = keep_smallest(nodes, enough[place], kept, wanted)
                if kept == wanted:
                    ready = nodes.smallest[wanted - 1]
    return NEVER if ready == bound else int(ready)


@machine_code
def _end_of_group(nodes: Nodes, run: Run, count: int, time: int, begin: int, end: int, now: int) -> int:
    """Return the last end of the group in which a job ends at a time, of those on open machines [s].

    Mirrors ``plan._groups``.
    """
    ends, free_until, origin, window = nodes.seen[ENDS], nodes.seen[FREE_UNTIL], time, GROUP
    for place in range(count):
        if free_until[place_of(place)] >= end:
            origin = min(origin, ends[place_of(place)])
    origin = origin // GROUP * GROUP + GROUP
    while time > origin + window:
        window *= 2
    low, high = 0, run.counters[RUNNING]
    while low < high:
        middle = (low + high) // 2
        if run.expected[0, middle] <= origin + window:
            low = middle + 1
        else:
            high = middle
    while not _is_on_open(nodes, run, run.expected[1, low - 1], begin, end):
        low -= 1
    return _end_at(run, low - 1, now)


@machine_code
def _is_on_open(nodes: Nodes, run: Run, row: int, begin: int, end: int) -> bool:
    """Return whether a job runs on a machine of a request that is open between two times [s]."""
    for part in range(run.first[row], run.first[row] + run.part_count[row]):
        machine = run.parts[part, 0]
        if not nodes.shut[machine] and not is_planned(nodes, machine, begin, end):
            return True
    return False


@separate
def _ready_one_by_one(
    nodes: Nodes, run: Run, number: int, count: int, end: int, now: int, before: int
) -> int:
    """Return when a request fits as running jobs end group by group, if it is up to a time [s].

    Mirrors ``Plan._ready`` without what is known of single machines: for pooled requests.
    """
    for seen in range(count):
        nodes.shut[nodes.seen[MACHINE, seen]] = nodes.seen[FREE_UNTIL, seen] < end
    begin_with_free(nodes)
    if choose_of(nodes, nodes.least, nodes.shut, number):
        return now
    place, running, window = _on_open_from(nodes, run, 0), run.counters[RUNNING], GROUP
    if place == running:
        return NEVER
    origin = _end_at(run, place, now) // GROUP * GROUP + GROUP
    while place < running:
        last = now
        while place < running and _end_at(run, place, now) <= origin + window:
            last = _end_at(run, place, now)
            if last > before:
                return NEVER
            let_end(nodes, run, run.expected[1, place])
            place = _on_open_from(nodes, run, place + 1)
        if choose_of(nodes, nodes.least, nodes.shut, number):
            return int(last)
        window *= 2
        while place < running and _end_at(run, place, now) > origin + window:
            window *= 2
    return NEVER


@machine_code
def begin_with_free(nodes: Nodes) -> None:
    """Let the levels be those of now."""
    free = nodes.levels.levels[NOW]
    for machine in range(len(free)):
        for resource in range(free.shape[1]):
            nodes.least[machine, resource] = free[machine, resource]


@machine_code
def let_end(nodes: Nodes, run: Run, row: int) -> None:
    """Add what a running job has to the levels."""
    for part in range(run.first[row], run.first[row] + run.part_count[row]):
        for resource in range(len(nodes.wanted)):
            nodes.least[run.parts[part, 0], resource] += run.parts[part, 1 + resource]


@machine_code
def _end_at(run: Run, place: int, now: int) -> int:
    """Return the expected end of a running job [s], which lies ahead."""
    return int(max(run.expected[0, place], now + 1))


@machine_code
def _on_open_from(nodes: Nodes, run: Run, place: int) -> int:
    """Return the first running job from a place on with an open machine; else their number."""
    while place < run.counters[RUNNING] and not _is_on_one(nodes, run, run.expected[1, place]):
        place += 1
    return place


@machine_code
def _is_on_one(nodes: Nodes, run: Run, row: int) -> bool:
    """Return whether a job runs on a machine that is not shut."""
    for part in range(run.first[row], run.first[row] + run.part_count[row]):
        if not nodes.shut[run.parts[part, 0]]:
            return True
    return False
