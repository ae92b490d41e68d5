"""Usage, fair share and priorities as Slurm computes them, and the order of the waiting jobs.

Mirrors :mod:`hpcsimkit.slurm.priority` and :class:`~hpcsimkit.slurm.queue.Waiting`.
"""

from __future__ import annotations

from math import exp2, floor

import numpy as np

from hpcsimkit.compiled.compilation import called, machine_code, pasted, separate
from hpcsimkit.compiled.slurm_state import (
    CALCULATED_AT,
    LISTED,
    OF_BILLING,
    OF_NODES,
    RUNNING,
    UNSORTED,
    USED_AT,
    WAITING,
    Clocks,
    Factors,
    Jobs,
    Run,
    Stops,
)
from hpcsimkit.slurm.priority import LN2

TIER_DIGITS = 40
"""Number of binary digits of a key of the order that are those of the priority."""

FIRST, LAST, NEXT = range(3)
"""Rows of :attr:`~hpcsimkit.compiled.slurm_state.Run.stack` with a list of siblings on each level."""

PLACES = 3
"""Row with their places, one list after the other."""


# --- usage -------------------------------------------------------------------------------------------------


@separate
def use_until(factors: Factors, run: Run, now: int) -> None:
    """Bring the usage of all associations to a time; mirrors ``Usage.at_time``."""
    seconds = float(now - run.counters[USED_AT])
    if seconds <= 0:
        return
    run.counters[USED_AT] = now
    left = 1.0
    if factors.half_life:
        left = exp2(-seconds / factors.half_life)
        seconds = (1.0 - left) * factors.half_life / LN2
    for place in range(len(run.raw)):
        run.raw[place] = run.raw[place] * left + run.rate[place] * seconds


@separate
def begin_usage(jobs: Jobs, factors: Factors, run: Run, row: int, billing: float, now: int) -> None:
    """Enter that a job has started; mirrors ``Usage.begin``."""
    use_until(factors, run, now)
    run.billing[row] = billing * jobs.factor[row]
    _charge(jobs, factors, run, row, run.billing[row])


@separate
def end_usage(jobs: Jobs, factors: Factors, run: Run, row: int, now: int) -> None:
    """Enter that a job runs no longer; mirrors ``Usage.end``."""
    use_until(factors, run, now)
    _charge(jobs, factors, run, row, -run.billing[row])
    if not run.counters[RUNNING]:
        for place in range(len(run.rate)):
            run.rate[place] = 0.0


@pasted
def _charge(jobs: Jobs, factors: Factors, run: Run, row: int, billing: float) -> None:
    """Change the rate of the usage of an association and of all above it."""
    place = jobs.place[row]
    while place >= 0:
        run.rate[place] += billing
        place = factors.parent[place]


@machine_code
def billing_of(factors: Factors, run: Run, row: int, part: int) -> float:
    """Return the billing of what a job has in a partition; mirrors ``priority.billing_of``."""
    found = 0.0
    for place in range(factors.first_weight[part], factors.first_weight[part + 1]):
        each = (
            factors.weight[place] * amount_of(run, row, factors.weight_of[place], 0.0) / factors.unit[place]
        )
        found = max(found, each) if factors.largest else found + each
    return found


@separate
def amount_of(run: Run, row: int, source: int, billing: float) -> float:
    """Return how much of a resource, or of what else limits count, the allocation of a job has."""
    if source == OF_NODES:
        return float(run.part_count[row])
    if source == OF_BILLING:
        return billing
    total = 0
    if source >= 0:
        for part in range(run.first[row], run.first[row] + run.part_count[row]):
            total += run.parts[part, 1 + source]
    return float(total)


# --- fair share --------------------------------------------------------------------------------------------


@separate
def share(factors: Factors, run: Run) -> None:
    """Compute the fair share of each association; mirrors ``FairShare.factors``."""
    parent, raw, used = factors.parent, run.raw, run.used
    for place in range(len(raw)):
        used[place] = 1.0
        above = parent[place]
        if above >= 0:
            used[place] = raw[place] / raw[above] if raw[above] > 0 else 0.0
    if factors.fair_tree:
        for place in range(len(raw)):
            shares = factors.shares[place]
            run.level[place] = np.inf if shares > 0 else 0.0
            if used[place] > 0:
                run.level[place] = shares / used[place]
        _rank(factors, run)
    else:
        _share_classically(factors, run)


@pasted
def _share_classically(factors: Factors, run: Run) -> None:
    """Mirrors ``FairShare._classic``."""
    parent, used, whole, effective = factors.parent, run.used, run.whole, run.level
    for position in range(len(factors.by_depth)):
        place = factors.by_depth[position]
        above, shares = parent[place], factors.shares[place]
        if above < 0:
            whole[place] = effective[place] = 1.0
            continue
        whole[place] = whole[above] * shares
        used[place] = used[above] * used[place]
        effective[place] = used[place] + (effective[above] - used[place]) * shares
        if above == 0:
            effective[place] = used[place]
    for place in range(len(used)):
        ratio = effective[place] / whole[place] if whole[place] > 0 else np.inf
        run.fair[place] = exp2(-(ratio / factors.dampening))


@pasted
def _rank(factors: Factors, run: Run) -> None:
    """Rank the users in the order of the tree; mirrors ``FairShare._ranked``.

    Siblings are on a stack, sorted by falling values; those with equal values are visited together.
    """
    stack, level, fair = run.stack, run.level, run.fair
    users = 0
    for place in range(len(fair)):
        fair[place] = 0.0
        users += factors.is_user[place]
    left, rank, shared = users, users, False
    depth, top = 0, _push_children(factors, run, 0, 0)
    stack[FIRST, 0] = stack[NEXT, 0] = 0
    stack[LAST, 0] = top
    _sort_siblings(run, 0, top)
    while depth >= 0:
        position, last = stack[NEXT, depth], stack[LAST, depth]
        if position == last:
            top = stack[FIRST, depth]
            depth -= 1
            shared = False
            continue
        value, following = level[stack[PLACES, position]], position
        while following < last and level[stack[PLACES, following]] == value:
            following += 1
        stack[NEXT, depth] = following
        for tied in range(position, following):
            place = stack[PLACES, tied]
            if factors.is_user[place]:
                rank = rank if shared else left
                left -= 1
                fair[place] = rank / users
                shared = True
        first = top
        for tied in range(position, following):
            place = stack[PLACES, tied]
            if not factors.is_user[place]:
                top = _push_children(factors, run, place, top)
        depth += 1
        stack[FIRST, depth] = stack[NEXT, depth] = first
        stack[LAST, depth] = top
        _sort_siblings(run, first, top)


@machine_code
def _push_children(factors: Factors, run: Run, place: int, top: int) -> int:
    """Put the children of an association on the stack, and return its new top."""
    for child in range(factors.first_child[place], factors.first_child[place + 1]):
        run.stack[PLACES, top] = factors.children[child]
        top += 1
    return top


@separate
def _sort_siblings(run: Run, first: int, last: int) -> None:
    """Sort places by falling values; those with equal values keep their order."""
    places, level = run.stack[PLACES], run.level
    for position in range(first + 1, last):
        place, before = places[position], position - 1
        while before >= first and level[places[before]] < level[place]:
            places[before + 1] = places[before]
            before -= 1
        places[before + 1] = place


# --- order -------------------------------------------------------------------------------------------------


@separate
def calculate(clocks: Clocks, factors: Factors, run: Run, now: int) -> bool:
    """Compute the fair share anew, if it is time to, and return whether it was.

    Mirrors ``Waiting.calculate``.
    """
    last = now - (now - clocks.begin) % clocks.calc_period
    if last == run.counters[CALCULATED_AT]:
        return False
    run.counters[CALCULATED_AT] = last
    use_until(factors, run, now)
    share(factors, run)
    run.counters[UNSORTED] = 0
    return True


@machine_code
def _set_key(jobs: Jobs, factors: Factors, run: Run, stops: Stops | None, ticket: int) -> None:
    """Set the key of a ticket by tier and priority; mirrors ``Waiting.priorities``."""
    row, priority = jobs.row[ticket], 0
    if not factors.basic:
        since = jobs.submit_time[row]
        if stops is not None and not stops.rules.accrues:
            since = stops.attempts.joined[row]
        age = max(run.counters[CALCULATED_AT] - since, 0) / factors.max_age
        found = factors.age * min(age, 1.0) + factors.fair_share * run.fair[jobs.place[row]]
        priority = max(floor(found + jobs.standing[ticket]), 1)
    run.key[ticket] = (jobs.tier[jobs.part[ticket]] << TIER_DIGITS) - priority


@separate
def put_in_order(jobs: Jobs, factors: Factors, run: Run, stops: Stops | None) -> None:
    """Let the list hold the waiting tickets by tier, priority and job number; mirrors ``Waiting.in_order``.

    Tickets up to a position are in order since the last calculation; those after it are new.
    """
    listed, kept, in_order = run.listed, 0, 0
    for position in range(run.counters[LISTED]):
        ticket = listed[position]
        if run.state[jobs.row[ticket]] == WAITING:
            if position >= run.counters[UNSORTED]:
                _set_key(jobs, factors, run, stops, ticket)
            else:
                in_order += 1
            listed[kept] = ticket
            kept += 1
    run.counters[LISTED] = kept
    if in_order < kept:
        sort(run, in_order, kept)
        _merge(run, 0, in_order, kept)
    run.counters[UNSORTED] = kept


@pasted
def sort(run: Run, first: int, last: int) -> None:
    """Sort a part of the list by keys and numbers: runs of increasing length are merged."""
    width = 1
    while width < last - first:
        begin = first
        while begin + width < last:
            _merge(run, begin, begin + width, min(begin + 2 * width, last))
            begin += 2 * width
        width *= 2


@separate
def _merge(run: Run, first: int, middle: int, last: int) -> None:
    """Merge two sorted parts of the list that follow each other."""
    listed, other = run.listed, run.other
    if first == middle or middle == last or _precedes(run, listed[middle - 1], listed[middle]):
        return
    for position in range(first, middle):
        other[position] = listed[position]
    left, right = first, middle
    for position in range(first, last):
        if left == middle:
            return
        if right < last and _precedes(run, listed[right], other[left]):
            listed[position] = listed[right]
            right += 1
        else:
            listed[position] = other[left]
            left += 1


@machine_code
def _precedes(run: Run, left: int, right: int) -> bool:
    """Return whether a ticket comes before another one."""
    if run.key[left] != run.key[right]:
        return bool(run.key[left] < run.key[right])
    return bool(left < right)


@called
def list_tickets(jobs: Jobs, run: Run, row: int) -> None:
    """Add the tickets of a job that has been submitted to the list."""
    for ticket in range(jobs.first_ticket[row], jobs.first_ticket[row] + jobs.tickets[row]):
        run.listed[run.counters[LISTED]] = ticket
        run.counters[LISTED] += 1


@separate
def list_again(jobs: Jobs, run: Run, row: int) -> None:
    """Add the tickets of a job that waits again to the list, unless they are in it since it was started."""
    for position in range(run.counters[LISTED]):
        if jobs.row[run.listed[position]] == row:
            run.counters[UNSORTED] = 0  # as its age begins anew
            return
    list_tickets(jobs, run, row)
