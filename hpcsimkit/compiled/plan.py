"""The plan of conservative backfilling: a reservation for each waiting job.

Mirrors :class:`~hpcsimkit.policies.backfill.conservative.Conservative`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpcsimkit.compiled import machine_profile
from hpcsimkit.compiled.compilation import called, pasted
from hpcsimkit.compiled.listing import Listing
from hpcsimkit.compiled.machines import NEED, Machines
from hpcsimkit.compiled.machines import overrun as overrun_on_machines
from hpcsimkit.compiled.needs import BY_TOTALS
from hpcsimkit.compiled.profile import advance, earlier, earliest, occupy, occupy_steps
from hpcsimkit.compiled.running import expect, forget
from hpcsimkit.compiled.shifting import close_gap
from hpcsimkit.compiled.state import NO_LIMIT, RUNNING, ZERO, Integers, Jobs, Run, Tests
from hpcsimkit.compiled.windows import expect_capacity

SLOTS, ENDED, NEXT_PASS, RELEASED, PLANNED_AT, BROKEN, CHOOSY, LEFT = range(8)
"""Positions in :attr:`Plan.counters`."""

NEVER = -(2**62)
"""An instant before all events [s]."""


MORE_THAN_ALL = 2**40
"""More nodes than any cluster has."""


class Plan(NamedTuple):
    """The reservations of the waiting jobs.

    Attributes
    ----------
    profile : Profile or MachineProfile
        Available capacity if running jobs end as expected and waiting jobs start as reserved.
    slots : array of int64, shape (2, jobs)
        Start [s] and row of the reservations, in this order.
    start : array of int64, shape (jobs,)
        Start of each waiting job's reservation [s]; an instant before all events if it has none yet.
    ended : array of int64, shape (jobs,)
        Rows of the jobs that have ended since the last pass.
    counters : array of int64
        Number of reservations and of ended jobs, the instant of the requested pass [s] (after all others if
        there is none), the end of the capacity released since the last compression [s], the instant of the
        last pass [s], whether a job exceeded its estimate then, the number of waiting jobs with reservations
        that need particular machines, and whether a job with a reservation has left the queue, at the
        positions named above.
    windows : Windows, optional
        Windows in which nodes are gone.
    tests : Tests, optional
        The tester: jobs keep their reservations while they are in tests.
    """

    profile: Any
    slots: Integers
    start: Integers
    ended: Integers
    counters: Integers
    windows: Any = None
    tests: Any = None


def new_plan(jobs: int, profile: Any, windows: Any = None, tests: Any = None) -> Plan:
    """Return an empty plan for at most `jobs` jobs with the profile of an idle cluster."""
    return Plan(
        profile,
        np.empty((2, jobs), dtype=np.int64),
        np.full(jobs, NEVER, dtype=np.int64),
        np.empty(jobs, dtype=np.int64),
        np.array([0, 0, NO_LIMIT, NEVER, NEVER, 0, 0, 0], dtype=np.int64),
        windows,
        tests,
    )


def plan_anew(plan: Plan) -> None:
    """Have the first pass plan the jobs that are running when the run begins."""
    plan.counters[BROKEN] = 1


@pasted
def note_end(plan: Plan, row: int) -> None:
    """Record the end of a job for the next pass."""
    plan.ended[plan.counters[ENDED]] = row
    plan.counters[ENDED] += 1


@pasted
def prepare(plan: Plan, run: Run, machines: Machines | None, now: int, corrected: bool) -> bool:
    """Bring the plan to the present, and return whether it must be made anew.

    Mirrors the beginning of ``Conservative.plan``. A reservation that is past, or was due in the last pass,
    and whose job has not started, is one that was held or missed.
    """
    _take_in_starts(plan, run)
    counters, other = plan.counters, False
    if machines is not None:
        machine_profile.advance(plan.profile, now)
        overrun = overrun_on_machines(machines, now)
        other = counters[ENDED] > 0 and counters[SLOTS] > 0 and _wants_another_profile(plan)
    else:
        advance(plan.profile, now)
        overrun = run.counters[RUNNING] > 0 and run.expected[0, 0] <= now
    late = counters[SLOTS] > 0 and plan.slots[0, 0] <= max(counters[PLANNED_AT], now - 1)
    anew = overrun or counters[BROKEN] > 0 or counters[LEFT] > 0 or corrected or late or other
    counters[BROKEN], counters[LEFT], counters[PLANNED_AT] = overrun, 0, now
    return bool(anew)


@pasted
def _wants_another_profile(plan: Plan) -> bool:
    """Return whether the profile holds totals although some job needs machines, or vice versa.

    Mirrors ``Conservative._wants_another_profile``.
    """
    return (plan.counters[CHOOSY] == 0) != (plan.profile.counters[machine_profile.ON_TOTALS] == 1)


@pasted
def take_in_start(plan: Plan, run: Run, machines: Machines, row: int) -> None:
    """Replace the planned allocation of a job that has started; mirrors ``Conservative._take_in_starts``."""
    counters = plan.counters
    counters[CHOOSY] -= _is_choosy(machines, row)
    start, end = plan.start[row], plan.start[row] + run.estimate[row]
    if machine_profile.hold_given(machines, plan.profile, row, start, end):
        counters[RELEASED] = max(counters[RELEASED], end)


@pasted
def _is_choosy(machines: Machines, row: int) -> int:
    """Return 1 if the choice of machines matters for a job, or else 0; mirrors ``needs_machines``."""
    return 1 - machines.levels.needs[machines.jobs[NEED, row], BY_TOTALS]


@pasted
def _take_in_starts(plan: Plan, run: Run) -> None:
    """Remove the reservations of jobs that have started; mirrors ``Conservative._take_in_starts``."""
    slots, counters = plan.slots, plan.counters
    due = kept = 0
    while due < counters[SLOTS] and slots[0, due] <= counters[PLANNED_AT]:
        if run.start_time[slots[1, due]] < 0:
            slots[0, kept], slots[1, kept] = slots[0, due], slots[1, due]
            kept += 1
        due += 1
    if kept == due:
        return
    close_gap(slots[0], kept, due - kept, counters[SLOTS])
    close_gap(slots[1], kept, due - kept, counters[SLOTS])
    counters[SLOTS] -= due - kept


@pasted
def forget_slot(plan: Plan, row: int) -> None:
    """Remove the reservation of a job that was stopped before the pass after its start.

    Mirrors ``Conservative._take_in_stops``.
    """
    slots, count = plan.slots, plan.counters[SLOTS]
    for place in range(count):
        if slots[1, place] == row:
            close_gap(slots[0], place, 1, count)
            close_gap(slots[1], place, 1, count)
            plan.counters[SLOTS] = count - 1
            return
        if slots[0, place] > plan.counters[PLANNED_AT]:
            return


@called
def forget_reservation(plan: Plan, row: int) -> None:
    """Remove the reservation of a job that leaves the queue, if it has one; the plan is void then.

    Mirrors ``Conservative._take_in_rejections``.
    """
    if plan.start[row] == NEVER:
        return
    forget(plan.slots, plan.counters[SLOTS], plan.start[row], row)
    plan.counters[SLOTS] -= 1
    plan.counters[LEFT], plan.start[row] = 1, NEVER


@pasted
def _put(plan: Plan, row: int, start: int) -> None:
    """Enter a reservation, for which the profile has been changed; mirrors ``Conservative._put``."""
    plan.start[row] = start
    expect(plan.slots, plan.counters[SLOTS], start, row)
    plan.counters[SLOTS] += 1


@pasted
def welcome(
    plan: Plan, jobs: Jobs, run: Run, machines: Machines | None, listing: Listing, row: int, now: int
) -> None:
    """Reserve the earliest feasible slot for a job that has arrived.

    Mirrors ``Conservative._reserve_on_arrival``.
    """
    if machines is not None:
        plan.counters[CHOOSY] += _is_choosy(machines, row)
        if _wants_another_profile(plan):
            make_anew(plan, jobs, run, machines, listing, now)
    _reserve(plan, jobs, run, machines, row)


@called
def welcome_back(
    plan: Plan,
    tests: Tests | None,
    jobs: Jobs,
    run: Run,
    machines: Machines | None,
    listing: Listing,
    row: int,
    now: int,
) -> None:
    """Reserve a slot for a job that was stopped and has come back, unless it has kept one during its test."""
    if tests is None:
        welcome(plan, jobs, run, machines, listing, row, now)
    else:
        if not tests.asked[row]:
            welcome(plan, jobs, run, machines, listing, row, now)
        tests.asked[row] = 0


@called
def release_tested(plan: Plan, tests: Tests | None, jobs: Jobs, machines: Machines | None) -> None:
    """Remove the reservations of jobs that have ended in their tests; mirrors ``_take_in_tests``."""
    if tests is not None:
        counters = plan.counters
        for place in range(counters[ENDED]):
            row = plan.ended[place]
            if tests.asked[row] > 0:
                start, end = plan.start[row], plan.start[row] + tests.asked[row]
                _vacate(plan, jobs, machines, row, start, end)
                if machines is not None:
                    counters[CHOOSY] -= _is_choosy(machines, row)
                forget(plan.slots, counters[SLOTS], start, row)
                counters[SLOTS] -= 1
                counters[RELEASED] = max(counters[RELEASED], end)
                tests.asked[row] = -1


@pasted
def _reserve(plan: Plan, jobs: Jobs, run: Run, machines: Machines | None, row: int) -> None:
    """Reserve the earliest feasible slot for a job."""
    estimate = run.estimate[row]
    if machines is not None:
        start = machine_profile.earliest(machines, plan.profile, row, estimate, NO_LIMIT, NO_LIMIT)
        _take(plan, machines, row, start, estimate)
    else:
        first, last = earliest(plan.profile, jobs.nodes[row], estimate)
        start = plan.profile.times[first]
        occupy_steps(plan.profile, first, last, start + estimate, jobs.nodes[row])
    _put(plan, row, start)


@called
def make_anew(
    plan: Plan, jobs: Jobs, run: Run, machines: Machines | None, listing: Listing, now: int
) -> None:
    """Plan running jobs by their expected ends, then waiting jobs in the order of their reservations.

    Mirrors ``Conservative._make_anew``. Afterwards no job can be moved.
    """
    counters, rows = plan.counters, listing.rows
    if machines is not None:
        machine_profile.expect_ends(machines, plan.profile, plan.tests, now, counters[CHOOSY] == 0)
    else:
        expect_capacity(plan.profile, jobs, run, plan.windows, now)
    count = counters[SLOTS]
    for place in range(count):
        rows[place] = plan.slots[1, place]
    counters[SLOTS] = counters[ENDED] = 0
    counters[RELEASED] = NEVER
    for place in range(count):
        if not _reserve_after_test(plan, plan.tests, jobs, run, machines, rows[place]):
            _reserve(plan, jobs, run, machines, rows[place])


@called
def _reserve_after_test(
    plan: Plan, tests: Tests | None, jobs: Jobs, run: Run, machines: Machines | None, row: int
) -> bool:
    """Reserve the earliest slot after the test of a job that is in one; return whether it is."""
    if tests is None:
        return False
    if not tests.asked[row] or run.start_time[row] < 0:
        return False
    profile, estimate, nodes = plan.profile, tests.asked[row], jobs.nodes[row]
    back = run.start_time[row] + run.estimate[row] + tests.delay
    if machines is not None:
        start = machine_profile.earliest_after(machines, profile, tests, row, estimate, back)
        _take(plan, machines, row, start, estimate)
    else:
        begin = profile.times[0]
        occupy(profile, begin, back, MORE_THAN_ALL)
        first, last = earliest(profile, nodes, estimate)
        start = profile.times[first]
        occupy_steps(profile, first, last, start + estimate, nodes)
        occupy(profile, begin, back, -MORE_THAN_ALL)
    _put(plan, row, start)
    return True


@pasted
def _take(plan: Plan, machines: Machines, row: int, start: int, estimate: int) -> None:
    """Occupy the machines in the slot that was found."""
    machine_profile.reserve_found(machines, plan.profile, row, start)
    machine_profile.occupy(plan.profile, row, start, start + estimate)
    machine_profile.note_examined(plan.profile, plan.tests, row)


@pasted
def release_ended(plan: Plan, jobs: Jobs, run: Run, machines: Machines | None, now: int) -> bool:
    """Release the capacity of jobs that ended early, and return whether jobs may have earlier slots.

    Mirrors the first part of ``Conservative._compress``.
    """
    counters = plan.counters
    for place in range(counters[ENDED]):
        row = plan.ended[place]
        expected_end = run.start_time[row] + run.estimate[row]
        if expected_end > now:
            _vacate(plan, jobs, machines, _entry(plan, plan.tests, machines, row), now, expected_end)
            counters[RELEASED] = max(counters[RELEASED], expected_end)
    counters[ENDED] = 0
    if counters[SLOTS] == 0:
        counters[RELEASED] = NEVER
    return bool(counters[RELEASED] > now)


@pasted
def _entry(plan: Plan, tests: Tests | None, machines: Machines | None, row: int) -> int:
    """Return the row of the profile with the allocation of a job; on homogeneous nodes that of the job."""
    return row if machines is None else machine_profile.entry_of(plan.profile, tests, row)


@pasted
def _vacate(plan: Plan, jobs: Jobs, machines: Machines | None, row: int, start: int, end: int) -> None:
    """Release the capacity of a job in [start, end) [s]."""
    if machines is not None:
        machine_profile.release(plan.profile, row, start, end)
    else:
        occupy(plan.profile, start, end, -jobs.nodes[row])


@pasted
def compress(
    plan: Plan, jobs: Jobs, run: Run, machines: Machines | None, listing: Listing, listed: int
) -> None:
    """Move each job, listed in the order of the policy, to an earlier feasible slot if there is one.

    Mirrors ``Conservative._compress``. A slot that begins after all capacity released since the job was last
    examined was no more feasible then than now.
    """
    counters, profile, moved_until = plan.counters, plan.profile, NEVER
    for place in range(listed):
        row = listing.rows[place]
        estimate, reserved = run.estimate[row], plan.start[row]
        if machines is not None:
            start = _earlier_on_machines(machines, plan, row, estimate)
        else:
            start = earlier(profile, jobs.nodes[row], estimate, reserved, counters[RELEASED])
        if start != reserved:
            moved_until = max(moved_until, reserved + estimate)
            counters[RELEASED] = max(counters[RELEASED], moved_until)
            _vacate(plan, jobs, machines, row, reserved, reserved + estimate)
            forget(plan.slots, counters[SLOTS], reserved, row)
            counters[SLOTS] -= 1
            if machines is not None:
                _take(plan, machines, row, start, estimate)
            else:
                occupy(profile, start, start + estimate, jobs.nodes[row])
            _put(plan, row, start)
    counters[RELEASED] = moved_until


@pasted
def _earlier_on_machines(machines: Machines, plan: Plan, row: int, estimate: int) -> int:
    """Return the start of an earlier feasible slot, or else the current start [s].

    A job that has missed releases while it was away may have earlier slots that are not examined now.
    """
    reserved, profile = plan.start[row], plan.profile
    before = min(reserved, plan.counters[RELEASED])
    start = machine_profile.earliest(machines, profile, row, estimate, before, reserved)
    if before == reserved or not machine_profile.is_unexamined(profile, row):
        machine_profile.note_examined(profile, plan.tests, row)
    return start if start < before else reserved


@pasted
def gather_due(plan: Plan, run: Run, listing: Listing, now: int) -> int:
    """Write the rows of waiting jobs whose reservations are due, and return their number."""
    count = ZERO
    for place in range(plan.counters[SLOTS]):
        if plan.slots[0, place] > now:
            break
        row = plan.slots[1, place]
        if run.start_time[row] < 0 and not machine_profile.is_away(plan.tests, row):
            listing.rows[count] = row
            count += 1
    return count


# --- the requested pass ------------------------------------------------------------------------------------


@pasted
def request_pass(plan: Plan, now: int) -> None:
    """Request a pass at the start of the next reservation; mirrors ``Conservative.next_pass``."""
    counters, starts = plan.counters, plan.slots[0]
    place = 0
    while place < counters[SLOTS] and starts[place] <= now + counters[BROKEN]:
        place += 1
    counters[NEXT_PASS] = starts[place] if place < counters[SLOTS] else NO_LIMIT


@pasted
def next_pass(plan: Plan, limit: int) -> int:
    """Return the instant of the requested pass [s], or the limit if it comes first."""
    return min(plan.counters[NEXT_PASS], limit)
