"""The available capacity of machines over time, for planning the reservations of many jobs.

Mirrors :mod:`hpcsimkit.cluster.machine_profile`. Most jobs use few of many machines; therefore the
profile of each machine is kept as its first step and a list of the changes after it.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled import machines as of_machines
from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.machines import CHOSEN, NEED, Machines, expected_end
from hpcsimkit.compiled.needs import (
    AMOUNTS,
    EMPTY,
    EXCLUSIVE,
    GIVEN,
    INSIDE,
    MASK,
    MINUS,
    NODES,
    NOW,
    PLUS,
    SPREAD,
    amount_taken,
    fits,
)
from hpcsimkit.compiled.placing import FIRST_FIT, choose, forget, rank
from hpcsimkit.compiled.queue import BLOCKS
from hpcsimkit.compiled.state import NO_LIMIT, ZERO, Integers, Tests

BEGIN, ON_TOTALS, WITH_TOTALS, RELEASES, ONLY = range(5)
"""Positions in :attr:`MachineProfile.counters`."""

FIRST, COUNT, EXAMINED, RESERVED = range(4)
"""Rows of :attr:`MachineProfile.jobs`."""

TIME, NEXT, PREVIOUS = range(3)
"""Columns of :attr:`MachineProfile.changes`."""

SINCE, PLACE, FOUND, SMALLEST, FREED, CHANGES, ASKED, WRITTEN, WRITTEN_AT, STEPS = range(10)
"""Rows of :attr:`MachineProfile.machines`."""

MOST_STEPS = 1024
"""Maximum number of steps of a machine that are written down."""

OFTEN = 2
"""Number of searches of an unchanged machine from which its steps are written down."""

BASE, THEN = cast(tuple[int, ...], tuple(map(np.int64, range(2))))
"""Levels of a profile: its first step, and the current step of a search."""

RELEASE, OCCUPY = cast(tuple[int, ...], tuple(map(np.int64, range(2))))
"""Kinds of changes, at the end and at the start of a job."""

NOBODY = cast(int, np.int64(-1))
"""A row that is no job, with the type of a variable."""

NEVER = cast(int, np.int64(-(2**62)))
"""An instant before all events [s]."""

UNEXAMINED = cast(int, np.int64(-1))
"""A number of releases before all others."""

MORE_THAN_ALL = cast(int, np.int64(2**60))
"""More of a resource than all machines have together."""


class MachineProfile(NamedTuple):
    """The available capacity as a step function of time.

    The totals of all machines are kept as if they were those of another machine, the last one, if jobs have
    pooled requests. As long as no waiting job needs particular machines, nothing else is kept.

    Attributes
    ----------
    levels : array of int64, shape (2, machines + 1, resources)
        Levels named above.
    changes : array of int64, shape (2 * parts + machines + 1, 3)
        Time of a change [s], the next change of its machine and the previous one. Each part of an allocation
        has two, one after the other: that at the end of the job, and that at its start. The last ones are
        the ends of the lists, one for each machine, which are before the first change as well.
    parts : array of int64, shape (parts, 1 + resources)
        Machine and amounts of each part of the allocations of running jobs and reservations.
    jobs : array of int64, shape (4, rows)
        First part of each job, number of its parts, and number of releases at which it had its earliest slot.
        Where reservations are made anew at each pass, start of its reservation [s], after all events if it
        has none. If there are tests, the last rows are those of the jobs again, for allocations in tests,
        and the row before them is one that takes all machines.
    machines : array of int64, shape (10, machines + 1)
        State of a search: instant from which each machine has enough [s], an instant after all events if it
        has not; its next change; its earliest slot [s]; and space for some of the slots. Then the number of
        the last release of each machine; number of its changes, and of the searches since the last one; and,
        of its steps when they were written down, the number of changes, the beginning [s] and their number, 0
        if they are too many.
    steps : array of int64, shape (machines + 1, 1 + resources, steps)
        Beginnings of steps [s] and levels from then on, for machines that are searched often.
    wanted : array of int64, shape (resources,)
        Amounts that a machine must have in a search.
    counters : array of int64
        Beginning of the profile [s], whether it holds totals only, whether it holds them besides the
        machines, number of releases before their time, and the machine that was found.
    """

    levels: NDArray[np.int64]
    changes: Integers
    parts: Integers
    jobs: Integers
    machines: Integers
    steps: NDArray[np.int64]
    wanted: Integers
    counters: Integers


def new_machine_profile(
    machines: Machines, most_parts: Integers, with_totals: bool, everything: int | None = None
) -> MachineProfile:
    """Return the profile of empty machines, with space for as many parts of each row as given.

    It holds totals only. The row `everything` is one that takes all machines.
    """
    empty = machines.levels.levels[EMPTY]
    (count, resources), parts = empty.shape, int(most_parts.sum()) + len(most_parts)
    place = np.zeros((4, len(most_parts)), dtype=np.int64)
    place[FIRST] = np.cumsum(most_parts + 1) - most_parts - 1
    changes = np.empty((2 * parts + count + 1, 3), dtype=np.int64)
    changes[2 * parts :, TIME] = NO_LIMIT
    changes[2 * parts :, NEXT] = changes[2 * parts :, PREVIOUS] = np.arange(2 * parts, len(changes))
    levels = np.zeros((2, count + 1, resources), dtype=np.int64)
    levels[BASE, count] = empty.sum(axis=0)
    parts_of_rows = np.empty((parts, 1 + resources), dtype=np.int64)
    if everything is not None:
        place[COUNT, everything] = count + 1
        own = parts_of_rows[place[FIRST, everything] :][: count + 1]
        own[:, 0], own[:, 1:] = np.arange(count + 1), MORE_THAN_ALL
    return MachineProfile(
        levels,
        changes,
        parts=parts_of_rows,
        jobs=place,
        machines=np.zeros((10, count + 1), dtype=np.int64),
        steps=np.empty((count + 1, 1 + resources, min(MOST_STEPS, 2 * parts + 2)), dtype=np.int64),
        wanted=np.empty(resources, dtype=np.int64),
        counters=np.array([NEVER, 1, with_totals, 0, -1], dtype=np.int64),
    )


# --- changes -----------------------------------------------------------------------------------------------


@pasted
def _end_of_list(profile: MachineProfile, machine: int) -> int:
    """Return the end of the list of changes of a machine."""
    return 2 * profile.parts.shape[0] + machine


@machine_code
def _apply(profile: MachineProfile, level: int, part: int, sign: int) -> None:
    """Add a part of an allocation to a level of its machine, or subtract it."""
    levels, parts = profile.levels, profile.parts
    for resource in range(levels.shape[2]):
        levels[level, parts[part, 0], resource] += sign * parts[part, 1 + resource]


@pasted
def _unlink(profile: MachineProfile, change: int) -> None:
    """Remove a change from the list of its machine."""
    changes = profile.changes
    before, after = changes[change, PREVIOUS], changes[change, NEXT]
    changes[before, NEXT], changes[after, PREVIOUS] = after, before


@pasted
def _link(profile: MachineProfile, change: int, at: int) -> None:
    """Insert a change into the list of its machine."""
    changes, end = profile.changes, _end_of_list(profile, profile.parts[change >> 1, 0])
    before = changes[end, PREVIOUS]
    while before != end and changes[before, TIME] > at:
        before = changes[before, PREVIOUS]
    after = changes[before, NEXT]
    changes[change, TIME], changes[change, NEXT], changes[change, PREVIOUS] = at, after, before
    changes[before, NEXT] = changes[after, PREVIOUS] = change


@machine_code
def _settle(profile: MachineProfile, machine: int) -> int:
    """Bring the first step of a machine to the beginning of the profile, and return its next change."""
    changes, end = profile.changes, _end_of_list(profile, machine)
    change = changes[end, NEXT]
    while changes[change, TIME] <= profile.counters[BEGIN]:
        _apply(profile, BASE, change >> 1, 1 - 2 * (change & 1))
        change = changes[change, NEXT]
        changes[end, NEXT], changes[change, PREVIOUS] = change, end
    return change


@separate
def _alter(profile: MachineProfile, row: int, at: int, kind: int, sign: int) -> None:
    """Add the changes of a job, or remove them if the sign is negative; the first step changes at once."""
    first = profile.jobs[FIRST, row]
    for part in range(first, first + profile.jobs[COUNT, row]):
        machine = profile.parts[part, 0]
        profile.machines[CHANGES, machine] += 1
        profile.machines[ASKED, machine] = 0
        if at <= profile.counters[BEGIN]:
            _settle(profile, machine)
            _apply(profile, BASE, part, sign if kind == RELEASE else -sign)
        elif sign > 0:
            _link(profile, 2 * part + kind, at)
        else:
            _unlink(profile, 2 * part + kind)


@pasted
def occupy(profile: MachineProfile, row: int, start: int, end: int) -> None:
    """Subtract the allocation of a job in [start, end) [s]; mirrors ``MachineProfile.occupy``."""
    _alter(profile, row, start, OCCUPY, PLUS)
    _alter(profile, row, end, RELEASE, PLUS)


@pasted
def release(profile: MachineProfile, row: int, start: int, end: int) -> None:
    """Add the allocation of a job, subtracted before, in [start, end) [s]."""
    _alter(profile, row, start, OCCUPY, MINUS)
    _alter(profile, row, end, RELEASE, MINUS)
    profile.counters[RELEASES] += 1
    first = profile.jobs[FIRST, row]
    for part in range(first, first + profile.jobs[COUNT, row]):
        profile.machines[FREED, profile.parts[part, 0]] = profile.counters[RELEASES]


@pasted
def advance(profile: MachineProfile, now: int) -> None:
    """Drop the profile before now [s]; mirrors ``MachineProfile.advance``."""
    profile.counters[BEGIN] = max(profile.counters[BEGIN], now)


@separate
def expect_ends(
    machines: Machines, profile: MachineProfile, tests: Tests | None, now: int, on_totals: bool
) -> None:
    """Set the profile to that of running jobs that end as expected; mirrors ``expected``."""
    levels, there, expected = profile.levels, machines.levels.levels, machines.expected
    profile.counters[BEGIN], profile.counters[ON_TOTALS] = now, on_totals
    last = levels.shape[1] - 1
    for resource in range(levels.shape[2]):
        levels[BASE, last, resource] = 0
        for machine in range(last):
            free = there[NOW, machine, resource]
            levels[BASE, machine, resource] = free
            levels[BASE, last, resource] += free
    for machine in range(levels.shape[1]):
        end = _end_of_list(profile, machine)
        profile.changes[end, NEXT] = profile.changes[end, PREVIOUS] = end
        profile.machines[CHANGES, machine] += 1
    for place in range(expected.counters[BLOCKS]):
        block = expected.order[place]
        for position in range(expected.filled[block]):
            row = expected.rows[block, position]
            entry = entry_of(profile, tests, row)
            _note_given(machines, profile, row, entry)
            _alter(profile, entry, max(expected_end(machines, row), now + 1), RELEASE, PLUS)


@machine_code
def entry_of(profile: MachineProfile, tests: Tests | None, row: int) -> int:
    """Return the row of the profile with the allocation of a job: not its own if that has its reservation."""
    if tests is None:
        return row
    return entry_in_test(profile, tests, row) if tests.asked[row] else row


@pasted
def entry_in_test(profile: MachineProfile, tests: Tests, row: int) -> int:
    """Return the row of the profile with the allocation of a job in a test."""
    return profile.jobs.shape[1] - len(tests.asked) + row


# --- allocations -------------------------------------------------------------------------------------------


@pasted
def _first_machine_part(profile: MachineProfile, row: int) -> int:
    """Return the part of a job's allocation that is the first one on a machine."""
    return profile.jobs[FIRST, row] + profile.counters[WITH_TOTALS]


@pasted
def _add_totals(profile: MachineProfile, row: int, parts: Integers, first: int, last: int) -> None:
    """Let the first part of a job be the totals of some parts."""
    ours = profile.jobs[FIRST, row]
    profile.parts[ours, 0] = profile.levels.shape[1] - 1
    for resource in range(1, 1 + profile.levels.shape[2]):
        total = 0
        for part in range(first, last):
            total += parts[part, resource]
        profile.parts[ours, resource] = total


@separate
def _note_given(machines: Machines, profile: MachineProfile, row: int, entry: int) -> None:
    """Copy the allocation of a running job to a row of the profile."""
    first, count = machines.jobs[of_machines.FIRST, row], machines.jobs[of_machines.COUNT, row]
    if profile.counters[WITH_TOTALS] or profile.counters[ON_TOTALS]:
        _add_totals(profile, entry, machines.parts, first, first + count)
    if profile.counters[ON_TOTALS]:
        profile.jobs[COUNT, entry] = 1
        return
    ours = _first_machine_part(profile, entry)
    for part in range(count):
        for place in range(profile.parts.shape[1]):
            profile.parts[ours + part, place] = machines.parts[first + part, place]
    profile.jobs[COUNT, entry] = profile.counters[WITH_TOTALS] + count


@separate
def hold_given(machines: Machines, profile: MachineProfile, row: int, start: int, end: int) -> bool:
    """Replace the reservation of a job that starts by its allocation, and return whether they differ.

    Mirrors ``LevelProfile.replace``.
    """
    if profile.counters[ON_TOTALS]:
        return False
    ours, first = _first_machine_part(profile, row), machines.jobs[of_machines.FIRST, row]
    count = machines.jobs[of_machines.COUNT, row]
    differ = profile.jobs[COUNT, row] - profile.counters[WITH_TOTALS] != count
    if not differ:
        for part in range(count):
            for place in range(profile.parts.shape[1]):
                differ |= profile.parts[ours + part, place] != machines.parts[first + part, place]
    if differ:
        release(profile, row, start, end)
        _note_given(machines, profile, row, row)
        occupy(profile, row, start, end)
    return bool(differ)


@separate
def hold_started(
    machines: Machines, profile: MachineProfile, row: int, entry: int, now: int, end: int
) -> None:
    """Occupy the allocation of a job that has started without a reservation, in a row of the profile."""
    _settle_machines_of(profile, entry)
    _note_given(machines, profile, row, entry)
    occupy(profile, entry, now, end)


@pasted
def _settle_machines_of(profile: MachineProfile, entry: int) -> None:
    """Apply the changes of a row that are over, since its parts are to be written anew."""
    first = profile.jobs[FIRST, entry]
    for part in range(first, first + profile.jobs[COUNT, entry]):
        _settle(profile, profile.parts[part, 0])


@separate
def reserve_found(machines: Machines, profile: MachineProfile, row: int, start: int) -> None:
    """Write the allocation in the slot that was found; mirrors ``MachineProfile._first_of``."""
    levels, number = machines.levels, machines.jobs[NEED, row]
    if profile.counters[ON_TOTALS]:
        profile.parts[profile.jobs[FIRST, row], 0] = profile.levels.shape[1] - 1
        for resource in range(profile.levels.shape[2]):
            amount = levels.needs[number, AMOUNTS + resource]
            profile.parts[profile.jobs[FIRST, row], 1 + resource] = amount
        profile.jobs[COUNT, row] = 1
        return
    pooled, nodes = levels.needs[number, SPREAD], levels.needs[number, NODES]
    ours = part = _first_machine_part(profile, row)
    for machine in range(levels.levels.shape[1]):
        if not _is_found(machines, profile, machine, pooled, nodes, part - ours, start):
            continue
        profile.parts[part, 0] = machine
        for resource in range(levels.levels.shape[2]):
            amount = amount_taken(levels, number, machine, resource)
            if pooled:
                amount = levels.levels[GIVEN, machine, resource]
            profile.parts[part, 1 + resource] = amount
        if pooled:
            forget(machines, machine)
        part += 1
    if profile.counters[WITH_TOTALS]:
        _add_totals(profile, row, profile.parts, ours, part)
    profile.jobs[COUNT, row] = part - profile.jobs[FIRST, row]


@pasted
def _is_found(
    machines: Machines,
    profile: MachineProfile,
    machine: int,
    pooled: int,
    nodes: int,
    before: int,
    start: int,
) -> bool:
    """Return whether a machine is in the slot that was found, after a number of others."""
    if pooled:
        return bool(machines.machines[CHOSEN, machine])
    if nodes == 1:
        return bool(machine == profile.counters[ONLY])
    return bool(before < nodes and profile.machines[FOUND, machine] == start)


@machine_code
def note_examined(profile: MachineProfile, tests: Tests | None, row: int) -> None:
    """Record that a job has its earliest feasible slot, unless it is away for a test: it misses releases."""
    if not is_away(tests, row):
        profile.jobs[EXAMINED, row] = profile.counters[RELEASES]


@pasted
def note_unexamined(profile: MachineProfile, row: int) -> None:
    """Record that an earlier slot of a job may be on any machine."""
    profile.jobs[EXAMINED, row] = UNEXAMINED


@pasted
def is_unexamined(profile: MachineProfile, row: int) -> bool:
    """Return whether a job has missed releases."""
    return bool(profile.jobs[EXAMINED, row] == UNEXAMINED)


@machine_code
def is_away(tests: Tests | None, row: int) -> bool:
    """Return whether a job is in a test, or has not yet come back from it."""
    if tests is None:
        return False
    return bool(tests.asked[row] > 0)


# --- searches ----------------------------------------------------------------------------------------------


@separate
def earliest(
    machines: Machines, profile: MachineProfile, row: int, duration: int, before: int, reserved: int
) -> int:
    """Return the start of the earliest feasible slot for a job before an instant [s], or else that instant.

    Mirrors ``MachineProfile.earliest`` and, for a job that has a reservation, which is disregarded,
    ``MachineProfile.earlier``; otherwise `reserved` is an instant after all events. Each slot begins with the
    profile, or when a machine gets enough. One that is earlier than the job's reservation needs a machine
    that has been released since the job had its earliest slot.
    """
    number, counters = machines.jobs[NEED, row], profile.counters
    first, last, releases = 0, profile.levels.shape[1] - 1, -1
    if counters[BEGIN] >= before:
        return before
    if counters[ON_TOTALS]:
        first, last = last, last + 1
    elif machines.levels.needs[number, SPREAD]:
        return _earliest_in_parts(machines, profile, row, duration, before)
    elif machines.levels.needs[number, NODES] > 1:
        return _earliest_on_several(machines, profile, row, duration, before)
    if reserved != NO_LIMIT:
        releases = profile.jobs[EXAMINED, row]
    for machine in range(first, last):
        if profile.machines[FREED, machine] > releases and _want(machines, profile, number, machine):
            found = _on_one(profile, row, machine, duration, before, reserved)
            if found < before:
                before, counters[ONLY] = found, machine
                if found == counters[BEGIN]:
                    return before
    return before


@separate
def earliest_after(
    machines: Machines, profile: MachineProfile, tests: Tests, row: int, duration: int, after: int
) -> int:
    """Return the start of the earliest feasible slot for a job from an instant on [s]."""
    everything, begin = entry_in_test(profile, tests, ZERO) - 1, profile.counters[BEGIN]
    occupy(profile, everything, begin, after)
    start = earliest(machines, profile, row, duration, NO_LIMIT, NO_LIMIT)
    _alter(profile, everything, begin, OCCUPY, MINUS)
    _alter(profile, everything, after, RELEASE, MINUS)
    return int(start)


@pasted
def _on_one(
    profile: MachineProfile, row: int, machine: int, duration: int, before: int, reserved: int
) -> int:
    """Return the start of the earliest slot on a machine before an instant [s], or a later instant."""
    states, begin = profile.machines, profile.counters[BEGIN]
    states[ASKED, machine] += 1
    if states[ASKED, machine] < OFTEN:
        _enter(profile, machine)
        return _search(profile, row, machine, begin, duration, before)
    if states[WRITTEN, machine] != states[CHANGES, machine] or states[WRITTEN_AT, machine] != begin:
        _write_steps(profile, machine)
    if not states[STEPS, machine]:
        _enter(profile, machine)
        return _search(profile, row, machine, begin, duration, before)
    if reserved != NO_LIMIT:
        last_part = profile.jobs[FIRST, row] + profile.jobs[COUNT, row] - 1
        if profile.parts[last_part, 0] != machine:
            reserved = NO_LIMIT
    return _search_steps(profile, machine, duration, before, reserved)


@separate
def _step(profile: MachineProfile, change: int, first: int, after: int) -> int:
    """Apply all changes at the instant of one, but those of some parts, and return the next change."""
    changes = profile.changes
    at = changes[change, TIME]
    while changes[change, TIME] == at:
        part = change >> 1
        if part < first or part >= after:
            _apply(profile, THEN, part, 1 - 2 * (change & 1))
        change = changes[change, NEXT]
    return int(change)


@separate
def _write_steps(profile: MachineProfile, machine: int) -> None:
    """Write down the steps of a machine."""
    changes, states, steps = profile.changes, profile.machines, profile.steps
    _enter(profile, machine)
    change, at, count = states[PLACE, machine], profile.counters[BEGIN], 0
    while count < steps.shape[2]:
        steps[machine, 0, count] = at
        for resource in range(profile.levels.shape[2]):
            steps[machine, 1 + resource, count] = profile.levels[THEN, machine, resource]
        count += 1
        at = changes[change, TIME]
        if at == NO_LIMIT:
            break
        change = _step(profile, change, ZERO, ZERO)
    states[WRITTEN, machine], states[WRITTEN_AT, machine] = states[CHANGES, machine], profile.counters[BEGIN]
    states[STEPS, machine] = 0 if count == steps.shape[2] else count


@separate
def _search_steps(profile: MachineProfile, machine: int, duration: int, before: int, reserved: int) -> int:
    """Return the start of the earliest slot on a machine before an instant [s], or a later instant.

    If the job is reserved the machine, it has enough from the start of the reservation on.
    """
    steps, wanted, count = profile.steps[machine], profile.wanted, profile.machines[STEPS, machine]
    since = NO_LIMIT
    for place in range(count):
        at = steps[0, place]
        if since != NO_LIMIT:
            if at >= min(since + duration, reserved):
                return since
        elif at >= before:
            return NO_LIMIT
        enough = True
        for resource in range(len(wanted)):
            if steps[1 + resource, place] < wanted[resource]:
                enough = False
                break
        if not enough:
            since = NO_LIMIT
        elif since == NO_LIMIT:
            since = at
    return since


@separate
def _earliest_on_several(
    machines: Machines, profile: MachineProfile, row: int, duration: int, before: int
) -> int:
    """Return the start of the earliest slot on several machines before an instant [s], or that instant.

    If some machines have earliest slots after a beginning, fewer than the job needs can begin before the last
    of as many as it needs.
    """
    number, states, start = machines.jobs[NEED, row], profile.machines, profile.counters[BEGIN]
    last = profile.levels.shape[1] - 1
    for machine in range(last):
        _enter(profile, machine)
        states[FOUND, machine] = NEVER
    while start < before:
        for machine in range(last):
            if states[FOUND, machine] < start:
                found = NO_LIMIT
                if _want(machines, profile, number, machine):
                    found = _search(profile, row, machine, start, duration, before)
                states[FOUND, machine] = found
        following = _smallest(profile, last, machines.levels.needs[number, NODES])
        if following == start:
            return int(start)
        start = following
    return before


@pasted
def _smallest(profile: MachineProfile, count: int, wanted: int) -> int:
    """Return the last of as many of the earliest slots of the machines as are wanted [s]."""
    states, kept = profile.machines, 0
    for machine in range(count):
        found, place = states[FOUND, machine], kept
        if kept == wanted:
            if found >= states[SMALLEST, kept - 1]:
                continue
            place = kept - 1
        else:
            kept += 1
        while place > 0 and states[SMALLEST, place - 1] > found:
            states[SMALLEST, place] = states[SMALLEST, place - 1]
            place -= 1
        states[SMALLEST, place] = found
    return states[SMALLEST, wanted - 1] if kept == wanted else NO_LIMIT


@separate
def _earliest_in_parts(
    machines: Machines, profile: MachineProfile, row: int, duration: int, before: int
) -> int:
    """Examine, one by one, the slots with enough in total; mirrors ``MachineProfile._earliest_in_parts``."""
    number, start, last = machines.jobs[NEED, row], profile.counters[BEGIN], profile.levels.shape[1] - 1
    change = _settle(profile, last)
    _want(machines, profile, number, last)
    _enter(profile, last)
    while True:
        start = _search(profile, row, last, start, duration, before)
        if start >= before:
            return before
        _set_least(machines, profile, row, start, start + duration)
        if choose(machines, number, INSIDE, rank(machines, FIRST_FIT, number, INSIDE)):
            return int(start)
        while profile.changes[change, TIME] <= start:
            change = profile.changes[change, NEXT]
        start = profile.changes[change, TIME]


@pasted
def _want(machines: Machines, profile: MachineProfile, number: int, machine: int) -> bool:
    """Set what a machine must have for one node, and return whether the job may use it.

    The last machine stands for the totals of all, which must suffice for a pooled request.
    """
    levels, needs = machines.levels, machines.levels.needs
    for resource in range(len(profile.wanted)):
        profile.wanted[resource] = needs[number, AMOUNTS + resource]
    if machine == levels.levels.shape[1]:
        return True
    if needs[number, EXCLUSIVE]:
        for resource in range(len(profile.wanted)):
            whole = levels.levels[EMPTY, machine, resource]
            profile.wanted[resource] = max(profile.wanted[resource], whole)
    return bool(levels.masks[needs[number, MASK], machine])


@machine_code
def _enter(profile: MachineProfile, machine: int) -> None:
    """Begin a search on a machine."""
    states = profile.machines
    states[PLACE, machine], states[SINCE, machine] = _settle(profile, machine), NEVER
    for resource in range(profile.levels.shape[2]):
        profile.levels[THEN, machine, resource] = profile.levels[BASE, machine, resource]


@separate
def _search(profile: MachineProfile, row: int, machine: int, start: int, duration: int, before: int) -> int:
    """Return the start of the earliest slot of a machine between two instants [s]; see :func:`_enter`.

    Returns an instant after all events if there is none. Changes of the job itself are disregarded.
    """
    changes, states = profile.changes, profile.machines
    first, after = profile.jobs[FIRST, row], profile.jobs[FIRST, row] + profile.jobs[COUNT, row]
    change, since = states[PLACE, machine], states[SINCE, machine]
    found = NO_LIMIT
    if since == NEVER:
        since = profile.counters[BEGIN] if _has_enough(profile, machine) else NO_LIMIT
    while True:
        at = changes[change, TIME]
        if since != NO_LIMIT:
            begin = max(since, start)
            if begin >= before:
                break
            if at >= begin + duration:
                found = begin
                break
        elif at >= before:
            break
        change = _step(profile, change, first, after)
        if not _has_enough(profile, machine):
            since = NO_LIMIT
        elif since == NO_LIMIT:
            since = at
    states[PLACE, machine], states[SINCE, machine] = change, since
    return found


@machine_code
def _has_enough(profile: MachineProfile, machine: int) -> bool:
    """Return whether a machine has what is wanted."""
    for resource in range(len(profile.wanted)):
        if profile.levels[THEN, machine, resource] < profile.wanted[resource]:
            return False
    return True


@separate
def _set_least(machines: Machines, profile: MachineProfile, row: int, start: int, end: int) -> None:
    """Set the level `INSIDE` to what is available throughout [start, end) [s].

    The reservation of a job is disregarded, if its row is not negative.
    """
    levels, changes, least = profile.levels, profile.changes, machines.levels.levels
    first = after = 0
    if row >= 0:
        first, after = profile.jobs[FIRST, row], profile.jobs[FIRST, row] + profile.jobs[COUNT, row]
    for machine in range(least.shape[1]):
        change = _settle(profile, machine)
        for resource in range(levels.shape[2]):
            levels[THEN, machine, resource] = levels[BASE, machine, resource]
            least[INSIDE, machine, resource] = levels[BASE, machine, resource]
        while changes[change, TIME] < end:
            at = changes[change, TIME]
            change = _step(profile, change, first, after)
            for resource in range(levels.shape[2]):
                then = levels[THEN, machine, resource]
                if at > start:
                    then = min(then, least[INSIDE, machine, resource])
                least[INSIDE, machine, resource] = then


# --- starts ------------------------------------------------------------------------------------------------


@separate
def within(machines: Machines, profile: MachineProfile, row: int, duration: int, own: bool) -> int:
    """Return the level that a job may use from now for a duration [s] without delaying a reservation.

    Mirrors ``LevelProfile.level`` and ``TotalsProfile.level``; `own` tells whether it has a reservation now.
    """
    if profile.counters[ON_TOTALS]:
        return NOW
    levels, begin = machines.levels.levels, profile.counters[BEGIN]
    _set_least(machines, profile, NOBODY, begin, begin + duration)
    if own:
        first = _first_machine_part(profile, row)
        for part in range(first, profile.jobs[FIRST, row] + profile.jobs[COUNT, row]):
            for resource in range(levels.shape[2]):
                levels[INSIDE, profile.parts[part, 0], resource] += profile.parts[part, 1 + resource]
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
    number, begin, last = machines.jobs[NEED, row], profile.counters[BEGIN], profile.levels.shape[1] - 1
    if profile.counters[ON_TOTALS]:
        _want(machines, profile, number, last)
        _enter(profile, last)
        return _search(profile, row, last, begin, duration, begin + 1) == begin
    return fits(machines.levels, number, within(machines, profile, row, duration, False))
