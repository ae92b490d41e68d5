"""Places in the plan of a backfill that are those of the plan before it.

The plan of a backfill depends on the order of the jobs, on the running jobs and on the time. A job had no
place before that of the last plan. It has none now, either, on a machine on which nothing is free that was
not then: no job has started or ended there, and all jobs that had a place there and came before this one have
it still. So only its own machines are searched, and those that have *more room* than in the last plan. A job
without a place in the window of the last plan has none in the present one, either, unless something ends in
what the window has moved on. Its own machines still have its place unless they are *fuller*: a job has
started there, or one has a place there that had none, or another one, or came later. It only affects the time
that a backfill takes.

As long as all jobs have the places of the last plan, that plan stays what it is. The first job that has not
ends it, and a new plan begins with the places up to there.
"""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code, separate
from hpcsimkit.compiled.needs import MASK, NODES
from hpcsimkit.compiled.shifting import place_of
from hpcsimkit.compiled.slurm_places import (
    NEVER,
    choose,
    first_on,
    first_place,
    keep_planned,
    remember,
    slot_of,
)
from hpcsimkit.compiled.slurm_state import (
    ALIKE,
    BEFORE,
    BEGIN,
    CHANGES,
    CHOSEN,
    END,
    FIRST_PART,
    FIRST_PLANNED,
    LAST_BEFORE,
    LAST_PLAN,
    LAST_PLANNED,
    LATE_ENDS,
    LOOKED_AT,
    NEW_PLANNED,
    PLAN_BEFORE,
    PLAN_CHANGES,
    PLANNED,
    POOLED,
    ROOMIER,
    RUNNING,
    SINCE,
    SOONEST,
    TICKET,
    Nodes,
    Run,
)


@separate
def begin_like_last(nodes: Nodes, run: Run, now: int, before: int) -> None:
    """Begin with the last plan, and note which machines have changed since it was made.

    Places of the plan begin before a time [s].
    """
    counters = nodes.counters
    counters[LAST_BEFORE], counters[BEFORE], counters[LATE_ENDS] = counters[PLAN_BEFORE], before, 0
    counters[LOOKED_AT] = counters[ROOMIER] = counters[PLANNED] = 0
    counters[ALIKE] = 1
    for machine in range(len(nodes.lacking)):
        nodes.lacking[machine] = 0
        nodes.fuller[machine] = nodes.changed_at[machine] > counters[PLAN_CHANGES]
        if nodes.fuller[machine]:
            _note_lack(nodes, machine, 1)
    place = 0
    while place < run.counters[RUNNING] and run.expected[0, place] <= now:  # they end later than expected
        row = run.expected[1, place]
        for part in range(run.first[row], run.first[row] + run.part_count[row]):
            _note_lack(nodes, run.parts[part, 0], 1)
        place += 1
    while place < run.counters[RUNNING] and not counters[LATE_ENDS]:
        note_end(nodes, run.expected[0, place])
        place += 1
    if counters[POOLED]:
        end_last_plan(nodes, 0)


@machine_code
def is_alike(nodes: Nodes, number: int, ticket: int, length: int, now: int) -> bool:
    """Return whether a job has its place of the last plan, as all that were planned before it; see above."""
    return bool(nodes.counters[ALIKE]) and _is_alike(nodes, number, ticket, length, now)


@separate
def _is_alike(nodes: Nodes, number: int, ticket: int, length: int, now: int) -> bool:
    """Go on to the next place of the last plan, if that is the one of a job; else end the plan before it."""
    counters, planned = nodes.counters, nodes.planned
    plan, entry, first = counters[LAST_PLAN], counters[LOOKED_AT], counters[PLANNED]
    alike = entry < counters[NEW_PLANNED] and nodes.plans[plan, TICKET, entry] == ticket
    if not alike or not _has_its_place(nodes, number, entry, length, now):
        end_last_plan(nodes, entry)
        return False
    counters[LOOKED_AT] += 1
    counters[PLANNED] = nodes.plans[plan, FIRST_PLANNED, entry + 1]
    if counters[PLANNED] > first:
        counters[SOONEST] = min(counters[SOONEST], planned[BEGIN, place_of(first)])
        note_end(nodes, planned[END, place_of(first)])
    remember(nodes, number, length, nodes.plans[plan, SINCE, entry])
    return True


@machine_code
def _has_its_place(nodes: Nodes, number: int, entry: int, length: int, now: int) -> bool:
    """Return whether a job has its place of the last plan; all that were planned before it have theirs."""
    plan, slot = nodes.counters[LAST_PLAN], slot_of(nodes, number)
    since, first = nodes.plans[plan, SINCE, entry], nodes.counters[PLANNED]
    mask, last, bound = nodes.levels.needs[number, MASK], -1, _first_bound(nodes, since)
    if since == NEVER:
        if bound < nodes.counters[BEFORE]:
            return False
    elif since <= now or (
        first < nodes.plans[plan, FIRST_PLANNED, entry + 1] and nodes.planned[END, place_of(first)] <= now
    ):
        return False
    for part in range(nodes.plans[plan, FIRST_PART, entry], nodes.plans[plan, FIRST_PART, entry + 1]):
        last = nodes.plan_parts[plan, part]
        if not _is_kept(nodes, number, slot, last, length, since, True):
            return False
    for place in range(nodes.counters[ROOMIER]):
        machine = nodes.roomier[place_of(place)]
        if nodes.is_member[place_of(mask), place_of(machine)]:
            # At the same time, the first machines are taken.
            until = bound + (machine < last and not _is_own(nodes, plan, entry, machine))
            if first_on(nodes, number, slot, machine, length, now, until) < NEVER:
                return False
    return True


@separate
def end_last_plan(nodes: Nodes, entry: int) -> None:
    """Begin a new plan with the first places of the last one, those before a position."""
    counters, plans, parts = nodes.counters, nodes.plans, nodes.plan_parts
    old, new = counters[LAST_PLAN], 1 - counters[LAST_PLAN]
    plans[old, FIRST_PART, 0] = plans[old, FIRST_PLANNED, 0] = 0
    for row in range(plans.shape[1]):
        for place in range(entry + 1):  # with the first part of the next one
            plans[new, row, place] = plans[old, row, place]
    for part in range(plans[old, FIRST_PART, entry]):
        parts[new, part] = parts[old, part]
    keep_planned(nodes, plans[old, FIRST_PLANNED, entry])
    counters[ALIKE], counters[LAST_PLAN] = 0, new
    counters[LAST_PLANNED], counters[NEW_PLANNED] = counters[NEW_PLANNED], entry
    counters[PLAN_CHANGES], counters[PLAN_BEFORE] = counters[CHANGES], counters[BEFORE]


@machine_code
def _note_lack(nodes: Nodes, machine: int, count: int) -> None:
    """Note that a machine lacks something that it had in the last plan, or that it has it again (-1)."""
    counters, lacked = nodes.counters, nodes.lacking[machine]
    nodes.lacking[machine] += count
    if not lacked:
        nodes.roomier_at[machine], nodes.roomier[counters[ROOMIER]] = counters[ROOMIER], machine
        counters[ROOMIER] += 1
    elif lacked + count == 0:  # the last one takes its place
        counters[ROOMIER] -= 1
        other = nodes.roomier[counters[ROOMIER]]
        nodes.roomier[nodes.roomier_at[machine]], nodes.roomier_at[other] = other, nodes.roomier_at[machine]


@machine_code
def note_end(nodes: Nodes, end: int) -> None:
    """Note an end in what the window has moved on since the last plan [s]."""
    if nodes.counters[LAST_BEFORE] <= end < nodes.counters[BEFORE]:
        nodes.counters[LATE_ENDS] += 1


@separate
def place_like_last(nodes: Nodes, number: int, ticket: int, length: int, now: int, before: int) -> int:
    """Return what ``first_place`` does, from the last plan as far as possible; the allocation is chosen."""
    counters, entry = nodes.counters, nodes.planned_as[ticket]
    last = 1 - counters[LAST_PLAN]
    if counters[POOLED] or entry >= counters[LAST_PLANNED] or nodes.plans[last, TICKET, entry] != ticket:
        found = first_place(nodes, number, length, now, before)
        _note_fuller(nodes, found)
        return int(found)
    behind = entry >= counters[LOOKED_AT]  # those that came before it then do so now, or have no place yet
    if not behind:  # it has been passed, as other jobs come before it now
        _note_place(nodes, entry, -1)
    for passed in range(counters[LOOKED_AT], entry):
        _note_place(nodes, passed, 1)
    counters[LOOKED_AT] = max(counters[LOOKED_AT], entry + 1)
    since = nodes.plans[last, SINCE, entry]
    if since <= now:
        found = first_place(nodes, number, length, now, before)
    elif nodes.levels.needs[number, NODES] == 1:
        found = _again_on_one(nodes, number, entry, length, now, before, behind)
    else:
        found = _again_on_several(nodes, number, entry, length, now, before, behind)
    # A job that starts takes what it needs of its machines, and a planned one has them for itself.
    if found <= now or found != since or not _is_equal(nodes, entry):
        _note_place(nodes, entry, 1)
        _note_fuller(nodes, found)
    return int(found)


@machine_code
def _note_fuller(nodes: Nodes, found: int) -> None:
    """Note that the machines that were chosen may have more than in the last plan, if there is a place."""
    if found < NEVER:
        for chosen in range(nodes.counters[CHOSEN]):
            nodes.fuller[nodes.chosen[chosen, 0]] = 1


@separate
def _note_place(nodes: Nodes, entry: int, count: int) -> None:
    """Note that the machines of a place of the last plan lack it, or have it again (-1)."""
    plan = 1 - nodes.counters[LAST_PLAN]
    for part in range(nodes.plans[plan, FIRST_PART, entry], nodes.plans[plan, FIRST_PART, entry + 1]):
        _note_lack(nodes, nodes.plan_parts[plan, part], count)


@machine_code
def _is_equal(nodes: Nodes, entry: int) -> bool:
    """Return whether the machines that were chosen are those of a place of the last plan."""
    plan = 1 - nodes.counters[LAST_PLAN]
    first = nodes.plans[plan, FIRST_PART, entry]
    if nodes.plans[plan, SINCE, entry] == NEVER:
        return True
    if nodes.plans[plan, FIRST_PART, entry + 1] - first != nodes.counters[CHOSEN]:
        return False
    for chosen in range(nodes.counters[CHOSEN]):
        if nodes.plan_parts[plan, first + chosen] != nodes.chosen[chosen, 0]:
            return False
    return True


@machine_code
def _first_bound(nodes: Nodes, since: int) -> int:
    """Return a time before which machines without more room have no place for a job of the last plan [s].

    That is its place. If it had none in the window of then, it has none on what the window has moved on in
    which nothing ends, either: a place begins now, or at an end.
    """
    if since < NEVER:
        return since
    return int(nodes.counters[LAST_BEFORE] if nodes.counters[LATE_ENDS] else nodes.counters[BEFORE])


@separate
def _again_on_one(
    nodes: Nodes, number: int, entry: int, length: int, now: int, before: int, behind: bool
) -> int:
    """Return the time from which a job on one machine has a place, as ``first_place``.

    It is on its own machine of the last plan, or on one with more room and earlier. If not, the search goes
    on from the place of the last plan.
    """
    plan, mask, counters = 1 - nodes.counters[LAST_PLAN], nodes.levels.needs[number, MASK], nodes.counters
    since, best, found, slot = nodes.plans[plan, SINCE, entry], -1, NEVER, slot_of(nodes, number)
    bound = _first_bound(nodes, since)
    if since < NEVER:
        best = nodes.plan_parts[plan, nodes.plans[plan, FIRST_PART, entry]]
        if _is_kept(nodes, number, slot, best, length, since, behind):
            found = since
    for place in range(counters[ROOMIER]):
        machine = nodes.roomier[place_of(place)]
        if nodes.is_member[place_of(mask), place_of(machine)]:
            # At the same time, the first machine is taken.
            until = min(found, bound) + (found <= bound and machine < best)
            other = first_on(nodes, number, slot, machine, length, now, until)
            if other < NEVER:
                found, best = other, machine
    if found == NEVER:
        return _search_from(nodes, number, length, now, bound, before)
    counters[CHOSEN] = 0
    choose(nodes, number, best)
    if found > now:
        remember(nodes, number, length, found)
    return int(found)


@separate
def _again_on_several(
    nodes: Nodes, number: int, entry: int, length: int, now: int, before: int, behind: bool
) -> int:
    """Return the time from which a job on several machines has a place, as ``first_place``.

    It is that of the last plan unless machines with more room have an earlier one, from which on it is
    searched for.
    """
    plan, counters = 1 - nodes.counters[LAST_PLAN], nodes.counters
    since, mask, slot = (
        nodes.plans[plan, SINCE, entry],
        nodes.levels.needs[number, MASK],
        slot_of(nodes, number),
    )
    first, end = nodes.plans[plan, FIRST_PART, entry], nodes.plans[plan, FIRST_PART, entry + 1]
    bound, last, kept = _first_bound(nodes, since), -1, since < NEVER
    counters[CHOSEN] = 0
    for part in range(first, end):
        last = nodes.plan_parts[plan, part]
        kept &= _is_kept(nodes, number, slot, last, length, since, behind)
        choose(nodes, number, last)
    soonest, earlier = bound, False
    for place in range(counters[ROOMIER]):
        machine = nodes.roomier[place_of(place)]
        if nodes.is_member[place_of(mask), place_of(machine)]:
            # At the same time, the first machines are taken.
            until = soonest + (
                kept and soonest == since and machine < last and not _is_own(nodes, plan, entry, machine)
            )
            other = first_on(nodes, number, slot, machine, length, now, until)
            if other < NEVER:
                soonest, earlier = other, True
    if not kept:
        return _search_from(nodes, number, length, now, soonest, before)
    if earlier:
        return _search_from(nodes, number, length, now, soonest, since + 1)
    if since > now:
        remember(nodes, number, length, since)
    return int(since)


@machine_code
def _is_kept(
    nodes: Nodes, number: int, slot: int, machine: int, length: int, since: int, behind: bool
) -> bool:
    """Return whether a machine still has a place of the last plan, with nothing that it had not then."""
    if behind and not nodes.fuller[place_of(machine)]:
        return True
    return bool(first_on(nodes, number, slot, machine, length, since, since + 1) < NEVER)


@machine_code
def _search_from(nodes: Nodes, number: int, length: int, now: int, soonest: int, before: int) -> int:
    """Return the first place between a time before which there is none and another one [s]."""
    after, found = max(soonest, now), NEVER
    if after < before:
        found = first_place(nodes, number, length, after, before)
    if (found == after or after >= before) and found > now:  # the search remembers later ones
        remember(nodes, number, length, found)
    return int(found)


@machine_code
def _is_own(nodes: Nodes, plan: int, entry: int, machine: int) -> bool:
    """Return whether a machine belongs to a place of a plan."""
    for part in range(nodes.plans[plan, FIRST_PART, entry], nodes.plans[plan, FIRST_PART, entry + 1]):
        if nodes.plan_parts[plan, part] == machine:
            return True
    return False


@machine_code
def keep_place(nodes: Nodes, ticket: int, start: int) -> None:
    """Keep the place that was chosen for the next plan, or that there is none, after it has been reserved."""
    counters = nodes.counters
    plan, entry = counters[LAST_PLAN], counters[NEW_PLANNED]
    part = nodes.plans[plan, FIRST_PART, entry]
    nodes.planned_as[ticket] = entry
    nodes.plans[plan, TICKET, entry], nodes.plans[plan, SINCE, entry] = ticket, start
    if start < NEVER:
        for chosen in range(counters[CHOSEN]):
            nodes.plan_parts[plan, part] = nodes.chosen[chosen, 0]
            part += 1
    counters[NEW_PLANNED] += 1
    nodes.plans[plan, FIRST_PART, entry + 1] = part
    nodes.plans[plan, FIRST_PLANNED, entry + 1] = counters[PLANNED]
