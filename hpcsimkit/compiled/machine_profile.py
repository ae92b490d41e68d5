"""The available capacity of machines over time, for planning the reservations of many jobs.

Mirrors :mod:`hpcsimkit.policies.backfill.machine_profile`. Most jobs use few of many machines; therefore a
profile is kept as the level of its first step and the changes after it, through which a search walks.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from hpcsimkit.compiled.codes import NO_LIMIT
from hpcsimkit.compiled.compilation import machine_code, separate
from hpcsimkit.compiled.machines import CHOSEN, COUNT, FIRST, NEED, Machines, expected_end
from hpcsimkit.compiled.needs import (
    AMOUNTS,
    BASE,
    EMPTY,
    GIVEN,
    INSIDE,
    LATER,
    NODES,
    NOW,
    SPREAD,
    THEN,
    amount_taken,
    fits,
    holds_node,
)
from hpcsimkit.compiled.placing import FIRST_FIT, choose, forget, rank
from hpcsimkit.compiled.queue import BLOCKS
from hpcsimkit.compiled.shifting import close_gap, open_gap
from hpcsimkit.compiled.state import Integers

__all__ = [
    "ON_TOTALS",
    "MachineProfile",
    "advance",
    "earliest",
    "expect_ends",
    "fits_throughout",
    "hold_given",
    "hold_started",
    "new_machine_profile",
    "occupy",
    "release",
    "reserve_found",
    "within",
]

BEGIN, LISTED, ON_TOTALS, READY, GOOD = range(5)
"""Positions in :attr:`MachineProfile.counters`."""

SINCE, BEFORE, AFTER = range(3)
"""Rows of :attr:`MachineProfile.machines`."""

RELEASE, OCCUPY = cast(tuple[int, ...], tuple(map(np.int64, range(2))))
"""Kinds of changes. At an instant, releases are first: in between, no machine seems to lack what it has."""

PLUS, MINUS = cast(tuple[int, ...], tuple(map(np.int64, (1, -1))))
"""Signs; no literals, for each of which numba would compile functions again."""

NEVER = -(2**62)
"""An instant before all events [s]."""


class MachineProfile(NamedTuple):
    """The available capacity as a step function of time.

    Its first step is a level of the machines, `BASE`. As long as no waiting job needs particular machines,
    levels and allocations hold totals instead, on a single machine.

    Attributes
    ----------
    changes : array of int64, shape (2 * jobs + 2,)
        Later starts and ends of jobs in this order: time [s], whether it is a start, and row, in one number.
    parts : array of int64, shape (parts, 1 + resources)
        Machine and amounts of each part of the allocations of running jobs and reservations.
    jobs : array of int64, shape (3, jobs)
        Of each job, the second and third row are the first and the number of its parts.
    machines : array of int64, shape (3, machines + 1)
        State of a search: instant from which each machine has enough [s], an instant after all events if it
        has not; and the machines before and after it in the list of those for which it lies after the
        beginning of the examined slot. The last column has the last and the first machine of the list.
    totals : array of int64, shape (2, resources)
        Space for sums over machines.
    counters : array of int64
        Beginning of the profile [s], number of changes, whether it holds totals, and, in a search, numbers of
        machines that have enough from the beginning of the slot on, and at the moment.
    """

    changes: Integers
    parts: Integers
    jobs: Integers
    machines: Integers
    totals: Integers
    counters: Integers


def new_machine_profile(machines: Machines, most_parts: Integers) -> MachineProfile:
    """Return the profile of empty machines, with space for as many parts of each job as given.

    It holds totals.
    """
    jobs, (_, count, resources) = len(most_parts), machines.levels.levels.shape
    levels = machines.levels.levels
    levels[BASE] = 0
    levels[BASE, 0] = levels[EMPTY].sum(axis=0)
    place = np.zeros((3, jobs), dtype=np.int64)
    place[FIRST] = np.cumsum(most_parts) - most_parts
    return MachineProfile(
        changes=np.empty(2 * jobs + 2, dtype=np.int64),
        parts=np.empty((int(most_parts.sum()), 1 + resources), dtype=np.int64),
        jobs=place,
        machines=np.empty((3, count + 1), dtype=np.int64),
        totals=np.empty((2, resources), dtype=np.int64),
        counters=np.array([NEVER, 0, 1, 0, 0], dtype=np.int64),
    )


# --- changes -----------------------------------------------------------------------------------------------


@machine_code
def _time_of(machines: Machines, profile: MachineProfile, place: int) -> int:
    """Return the time of the change at a place [s], an instant after all events behind the last one."""
    if place == profile.counters[LISTED]:
        return NO_LIMIT
    return profile.changes[place] >> (machines.digits + 1)


@machine_code
def _row_of(machines: Machines, profile: MachineProfile, place: int) -> int:
    """Return the row of the change at a place."""
    return profile.changes[place] & ((1 << machines.digits) - 1)


@machine_code
def _sign_of(machines: Machines, profile: MachineProfile, place: int) -> int:
    """Return the sign with which the change at a place adds to levels."""
    return 1 - 2 * ((profile.changes[place] >> machines.digits) & 1)


@machine_code
def _place_of(profile: MachineProfile, change: int) -> int:
    """Return the place of a change, or that at which to insert it."""
    low, high = 0, profile.counters[LISTED]
    if high and profile.changes[high - 1] < change:
        return high
    while low < high:
        middle = (low + high) // 2
        if profile.changes[middle] < change:
            low = middle + 1
        else:
            high = middle
    return low


@separate
def _alter(machines: Machines, profile: MachineProfile, row: int, at: int, kind: int, sign: int) -> None:
    """Add a change, or remove it if the sign is negative; the first step changes at once."""
    if at <= profile.counters[BEGIN]:
        _apply(machines, profile, BASE, row, sign if kind == RELEASE else -sign)
        return
    change = (((at << 1) + kind) << machines.digits) + row
    place, count = _place_of(profile, change), profile.counters[LISTED]
    if sign > 0:
        open_gap(profile.changes, place, count)
        profile.changes[place] = change
        profile.counters[LISTED] += 1
    else:
        close_gap(profile.changes, place, 1, count)
        profile.counters[LISTED] -= 1


@machine_code
def _apply(machines: Machines, profile: MachineProfile, level: int, row: int, sign: int) -> None:
    """Add the allocation of a job to a level, or subtract it."""
    levels, parts, first = machines.levels.levels, profile.parts, profile.jobs[FIRST, row]
    for part in range(first, first + profile.jobs[COUNT, row]):
        for resource in range(levels.shape[2]):
            levels[level, parts[part, 0], resource] += sign * parts[part, 1 + resource]


@machine_code
def occupy(machines: Machines, profile: MachineProfile, row: int, start: int, end: int) -> None:
    """Subtract the allocation of a job in [start, end) [s]; mirrors ``MachineProfile.occupy``."""
    _alter(machines, profile, row, start, OCCUPY, PLUS)
    _alter(machines, profile, row, end, RELEASE, PLUS)


@machine_code
def release(machines: Machines, profile: MachineProfile, row: int, start: int, end: int) -> None:
    """Add the allocation of a job, subtracted before, in [start, end) [s]."""
    _alter(machines, profile, row, start, OCCUPY, MINUS)
    _alter(machines, profile, row, end, RELEASE, MINUS)


@separate
def advance(machines: Machines, profile: MachineProfile, now: int) -> None:
    """Drop the profile before now [s]; mirrors ``MachineProfile.advance``."""
    passed = 0
    while _time_of(machines, profile, passed) <= now:
        row, sign = _row_of(machines, profile, passed), _sign_of(machines, profile, passed)
        _apply(machines, profile, BASE, row, sign)
        passed += 1
    if passed:
        close_gap(profile.changes, 0, passed, profile.counters[LISTED])
        profile.counters[LISTED] -= passed
    profile.counters[BEGIN] = max(profile.counters[BEGIN], now)


@separate
def expect_ends(machines: Machines, profile: MachineProfile, now: int, on_totals: bool) -> None:
    """Set the profile to that of running jobs that end as expected; mirrors ``expected``."""
    counters, levels, expected = profile.counters, machines.levels.levels, machines.expected
    counters[BEGIN], counters[LISTED], counters[ON_TOTALS] = now, 0, on_totals
    if on_totals:
        for resource in range(levels.shape[2]):
            levels[BASE, 0, resource] = 0
            for machine in range(levels.shape[1]):
                levels[BASE, 0, resource] += levels[NOW, machine, resource]
    else:
        _copy(machines, profile, NOW, BASE)
    for place in range(expected.counters[BLOCKS]):
        block = expected.order[place]
        for position in range(expected.filled[block]):
            row = expected.rows[block, position]
            _note_given(machines, profile, row)
            _alter(machines, profile, row, max(expected_end(machines, row), now + 1), RELEASE, PLUS)


# --- allocations -------------------------------------------------------------------------------------------


@machine_code
def _machines(machines: Machines, profile: MachineProfile) -> int:
    """Return the number of machines of a level."""
    return 1 if profile.counters[ON_TOTALS] else machines.levels.levels.shape[1]


@machine_code
def _copy(machines: Machines, profile: MachineProfile, level: int, other: int) -> None:
    """Set another level to a level."""
    levels = machines.levels.levels
    for machine in range(_machines(machines, profile)):
        for resource in range(levels.shape[2]):
            levels[other, machine, resource] = levels[level, machine, resource]


@machine_code
def _note_given(machines: Machines, profile: MachineProfile, row: int) -> None:
    """Copy the allocation of a running job."""
    ours, first = profile.jobs[FIRST, row], machines.jobs[FIRST, row]
    resources, count = machines.levels.levels.shape[2], machines.jobs[COUNT, row]
    if profile.counters[ON_TOTALS]:
        for resource in range(1, 1 + resources):
            profile.parts[ours, resource] = 0
            for part in range(first, first + count):
                profile.parts[ours, resource] += machines.parts[part, resource]
        profile.parts[ours, 0], profile.jobs[COUNT, row] = 0, 1
        return
    for part in range(count):
        for place in range(1 + resources):
            profile.parts[ours + part, place] = machines.parts[first + part, place]
    profile.jobs[COUNT, row] = count


@separate
def hold_given(machines: Machines, profile: MachineProfile, row: int) -> bool:
    """Replace the reservation of a job that starts by its allocation, and return whether they differ.

    Mirrors ``LevelProfile.replace`` at the beginning of the profile.
    """
    if profile.counters[ON_TOTALS]:
        return False
    ours, first = profile.jobs[FIRST, row], machines.jobs[FIRST, row]
    differ = profile.jobs[COUNT, row] != machines.jobs[COUNT, row]
    if not differ:
        for part in range(machines.jobs[COUNT, row]):
            for place in range(machines.parts.shape[1]):
                differ |= profile.parts[ours + part, place] != machines.parts[first + part, place]
    if differ:
        _apply(machines, profile, BASE, row, PLUS)
        _note_given(machines, profile, row)
        _apply(machines, profile, BASE, row, MINUS)
    return bool(differ)


@separate
def hold_started(machines: Machines, profile: MachineProfile, row: int, now: int, end: int) -> None:
    """Occupy the allocation of a job that has started without a reservation."""
    _note_given(machines, profile, row)
    occupy(machines, profile, row, now, end)


@separate
def reserve_found(machines: Machines, profile: MachineProfile, row: int, start: int) -> None:
    """Write the allocation in the slot that was found; mirrors ``MachineProfile._first_of``."""
    levels, number = machines.levels, machines.jobs[NEED, row]
    pooled = levels.needs[number, SPREAD]
    missing = levels.needs[number, NODES]
    part = profile.jobs[FIRST, row]
    for machine in range(_machines(machines, profile)):
        if profile.counters[ON_TOTALS] or not pooled:
            chosen = profile.machines[SINCE, machine] <= start and missing > 0
        else:
            chosen = machines.machines[CHOSEN, machine] == 1
        if not chosen:
            continue
        missing -= 1
        profile.parts[part, 0] = machine
        for resource in range(levels.levels.shape[2]):
            amount = amount_taken(levels, number, machine, resource)
            if pooled and not profile.counters[ON_TOTALS]:
                amount = levels.levels[GIVEN, machine, resource]
            profile.parts[part, 1 + resource] = amount
        if pooled and not profile.counters[ON_TOTALS]:
            forget(machines, machine)
        part += 1
    profile.jobs[COUNT, row] = part - profile.jobs[FIRST, row]


# --- searches ----------------------------------------------------------------------------------------------


@separate
def earliest(machines: Machines, profile: MachineProfile, row: int, duration: int, before: int) -> int:
    """Return the start of the earliest feasible slot for a job before an instant [s], or else that instant.

    Mirrors ``MachineProfile.earliest`` and, for a job that has a reservation, which is disregarded,
    ``MachineProfile.earlier``. The first slot begins with the profile; each later one does when a machine gets
    enough, since otherwise it could begin earlier.
    """
    number, counters = machines.jobs[NEED, row], profile.counters
    if machines.levels.needs[number, SPREAD] and not counters[ON_TOTALS]:
        return _earliest_in_parts(machines, profile, row, duration, before)
    wanted, place, start = machines.levels.needs[number, NODES], 0, counters[BEGIN]
    if start >= before:
        return before
    _begin_search(machines, profile, number)
    while True:
        at = _time_of(machines, profile, place)
        if counters[READY] >= wanted:
            if at >= start + duration:
                return int(start)
        elif counters[GOOD] >= wanted:
            start = _next_start(profile)
            if start >= before:
                return before
            continue
        elif at >= before:
            return before
        while _time_of(machines, profile, place) == at:
            changed = _row_of(machines, profile, place)
            if changed != row:
                _follow(machines, profile, number, changed, start, at, _sign_of(machines, profile, place))
            place += 1


@machine_code
def _begin_search(machines: Machines, profile: MachineProfile, number: int) -> None:
    """Find the machines that have enough in the first step."""
    states, count, good = profile.machines, _machines(machines, profile), 0
    _copy(machines, profile, BASE, THEN)
    for machine in range(count):
        states[SINCE, machine] = NO_LIMIT
        if holds_node(machines.levels, number, THEN, machine):
            states[SINCE, machine] = profile.counters[BEGIN]
            good += 1
    last = states.shape[1] - 1
    states[BEFORE, last] = states[AFTER, last] = last
    profile.counters[READY] = profile.counters[GOOD] = good


@machine_code
def _next_start(profile: MachineProfile) -> int:
    """Return the next instant at which a machine gets enough [s]; these machines are ready then."""
    states, last = profile.machines, profile.machines.shape[1] - 1
    machine = states[AFTER, last]
    start = states[SINCE, machine]
    while machine != last and states[SINCE, machine] == start:
        machine = states[AFTER, machine]
        profile.counters[READY] += 1
    states[AFTER, last], states[BEFORE, machine] = machine, last
    return start


@machine_code
def _follow(
    machines: Machines,
    profile: MachineProfile,
    number: int,
    changed: int,
    start: int,
    at: int,
    sign: int,
) -> None:
    """Apply a change, and note which machines have enough."""
    levels, parts, states = machines.levels.levels, profile.parts, profile.machines
    counters, first = profile.counters, profile.jobs[FIRST, changed]
    for part in range(first, first + profile.jobs[COUNT, changed]):
        machine = parts[part, 0]
        for resource in range(levels.shape[2]):
            levels[THEN, machine, resource] += sign * parts[part, 1 + resource]
        since = states[SINCE, machine]
        had_enough = since != NO_LIMIT
        if had_enough == (sign > 0) or holds_node(machines.levels, number, THEN, machine) == had_enough:
            continue
        if had_enough:
            states[SINCE, machine] = NO_LIMIT
            counters[GOOD] -= 1
            if since > start:
                before, after = states[BEFORE, machine], states[AFTER, machine]
                states[AFTER, before], states[BEFORE, after] = after, before
            else:
                counters[READY] -= 1
        else:
            states[SINCE, machine] = at
            counters[GOOD] += 1
            last = states.shape[1] - 1
            before = states[BEFORE, last]
            states[BEFORE, machine], states[AFTER, machine] = before, last
            states[AFTER, before] = states[BEFORE, last] = machine


@separate
def _earliest_in_parts(
    machines: Machines, profile: MachineProfile, row: int, duration: int, before: int
) -> int:
    """Examine, one by one, the slots with enough in total; mirrors ``MachineProfile._earliest_in_parts``."""
    number, place, start = machines.jobs[NEED, row], 0, profile.counters[BEGIN]
    hopeless = start - 1
    _copy(machines, profile, BASE, LATER)
    while start < before:
        if start > hopeless:
            hopeless = _least(machines, profile, LATER, place, start + duration, row, number)
            if hopeless == NO_LIMIT:
                hopeless = start
                if choose(machines, number, INSIDE, rank(machines, FIRST_FIT, number, INSIDE)):
                    return int(start)
        start = _time_of(machines, profile, place)
        while place < profile.counters[LISTED] and _time_of(machines, profile, place) == start:
            changed = _row_of(machines, profile, place)
            if changed != row:
                _apply(machines, profile, LATER, changed, _sign_of(machines, profile, place))
            place += 1
    return before


@separate
def _least(
    machines: Machines, profile: MachineProfile, level: int, place: int, end: int, row: int, number: int
) -> int:
    """Set the level `INSIDE` to what is available throughout a slot that ends at an instant [s].

    Parameters
    ----------
    machines, profile : Machines, MachineProfile
        The machines.
    level : int
        Level at the beginning of the slot.
    place : int
        Place of the first change after it.
    end : int
        End of the slot [s].
    row : int
        Job whose reservation is disregarded; -1 if there is none.
    number : int
        Need that must be met in total; -1 if there is none.

    Returns
    -------
    int
        The first instant at which the totals do not meet the need [s], where the search ends; an instant
        after all events if they always do.
    """
    levels, resources = machines.levels.levels, machines.levels.levels.shape[2]
    _copy(machines, profile, level, THEN)
    _copy(machines, profile, level, INSIDE)
    missing, at = profile.totals, profile.counters[BEGIN]
    if number >= 0:
        for resource in range(resources):
            missing[0, resource] = machines.levels.needs[number, AMOUNTS + resource]
            for machine in range(levels.shape[1]):
                missing[0, resource] -= levels[level, machine, resource]
    while True:
        if number >= 0:
            for resource in range(resources):
                if missing[0, resource] > 0:
                    return int(at)
        at = _time_of(machines, profile, place)
        if at >= end:
            return NO_LIMIT
        while _time_of(machines, profile, place) == at:
            changed, sign = _row_of(machines, profile, place), _sign_of(machines, profile, place)
            place += 1
            if changed == row:
                continue
            first = profile.jobs[FIRST, changed]
            for part in range(first, first + profile.jobs[COUNT, changed]):
                machine = profile.parts[part, 0]
                for resource in range(resources):
                    amount = sign * profile.parts[part, 1 + resource]
                    missing[0, resource] -= amount
                    then = levels[THEN, machine, resource] + amount
                    levels[THEN, machine, resource] = then
                    levels[INSIDE, machine, resource] = min(levels[INSIDE, machine, resource], then)


# --- starts ------------------------------------------------------------------------------------------------


@separate
def within(machines: Machines, profile: MachineProfile, row: int, duration: int, own: bool) -> int:
    """Return the level that a job may use from now for a duration [s] without delaying a reservation.

    Mirrors ``LevelProfile.level`` and ``TotalsProfile.level``; `own` tells whether it has a reservation now.
    """
    if profile.counters[ON_TOTALS]:
        return NOW
    levels = machines.levels.levels
    _least(machines, profile, BASE, 0, profile.counters[BEGIN] + duration, -1, -1)
    if own:
        _apply(machines, profile, INSIDE, row, PLUS)
    for machine in range(levels.shape[1]):
        for resource in range(levels.shape[2]):
            there = levels[NOW, machine, resource]
            levels[INSIDE, machine, resource] = min(levels[INSIDE, machine, resource], there)
    return INSIDE


@separate
def fits_throughout(machines: Machines, profile: MachineProfile, row: int, duration: int) -> bool:
    """Return whether a job fits from the start of the profile for a duration [s].

    Mirrors ``LevelProfile.fits`` and ``TotalsProfile.fits``. It sets the level that :func:`within` returns.
    """
    number = machines.jobs[NEED, row]
    if not profile.counters[ON_TOTALS]:
        return fits(machines.levels, number, within(machines, profile, row, duration, False))
    _least(machines, profile, BASE, 0, profile.counters[BEGIN] + duration, -1, -1)
    return holds_node(machines.levels, number, INSIDE, 0)
