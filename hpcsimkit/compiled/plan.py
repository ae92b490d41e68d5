"""The plan of conservative backfilling: a reservation for each waiting job.

Mirrors :class:`~hpcsimkit.policies.backfill.conservative.Conservative` on counted nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import called, machine_code
from hpcsimkit.compiled.listing import Listing
from hpcsimkit.compiled.profile import (
    Profile,
    advance,
    earlier,
    earliest,
    expect_ends,
    new_profile,
    occupy,
    occupy_steps,
)
from hpcsimkit.compiled.running import expect, forget
from hpcsimkit.compiled.shifting import close_gap, open_gap
from hpcsimkit.compiled.state import RUNNING, Integers, Jobs, Run

__all__ = [
    "NEVER",
    "Plan",
    "compress",
    "gather_due",
    "make_anew",
    "new_plan",
    "next_wake",
    "note_end",
    "prepare",
    "release_ended",
    "request_wake",
    "welcome",
]

SLOTS, ENDED, WAKES, RELEASED, PLANNED_AT, BROKEN = range(6)
"""Positions in :attr:`Plan.counters`."""

NEVER = -(2**62)
"""An instant before all events [s]."""


class Plan(NamedTuple):
    """The reservations of the waiting jobs.

    Attributes
    ----------
    profile : Profile
        Free nodes if running jobs end as expected and waiting jobs start as reserved.
    slots : array of int64, shape (2, jobs)
        Start [s] and row of the reservations, in this order.
    start : array of int64, shape (jobs,)
        Start of each waiting job's reservation [s]; an instant before all events if it has none yet.
    ended : array of int64, shape (jobs,)
        Rows of the jobs that have ended since the last pass.
    wakes : array of int64, shape (2 * jobs + 1,)
        Instants of requested passes [s], the latest first. A pass requests one at most, so that those pending
        are not more than the passes after submissions and ends.
    counters : array of int64
        Number of reservations, of ended jobs and of requested passes, the end of the capacity released since
        the last compression [s], the instant of the last pass [s], and whether a job exceeded its estimate
        then, at the positions named above.
    """

    profile: Profile
    slots: Integers
    start: Integers
    ended: Integers
    wakes: Integers
    counters: Integers


def new_plan(jobs: int, nodes: int) -> Plan:
    """Return an empty plan for at most `jobs` jobs on a cluster of `nodes` nodes."""
    return Plan(
        new_profile(jobs, nodes),
        np.empty((2, jobs), dtype=np.int64),
        np.full(jobs, NEVER, dtype=np.int64),
        np.empty(jobs, dtype=np.int64),
        np.empty(2 * jobs + 1, dtype=np.int64),
        np.array([0, 0, 0, NEVER, NEVER, 0], dtype=np.int64),
    )


@machine_code
def note_end(plan: Plan, row: int) -> None:
    """Record the end of a job for the next pass."""
    plan.ended[plan.counters[ENDED]] = row
    plan.counters[ENDED] += 1


@called
def prepare(plan: Plan, run: Run, now: int, corrected: bool) -> bool:
    """Bring the plan to the present, and return whether it must be made anew.

    Mirrors the beginning of ``Conservative.plan``. A reservation that is past, or was due in the last pass,
    and whose job has not started, is one that was held or missed.
    """
    _take_in_starts(plan, run)
    advance(plan.profile, now)
    counters = plan.counters
    overrun = run.counters[RUNNING] > 0 and run.expected[0, 0] <= now
    late = counters[SLOTS] > 0 and plan.slots[0, 0] <= max(counters[PLANNED_AT], now - 1)
    anew = overrun or counters[BROKEN] > 0 or corrected or late
    counters[BROKEN], counters[PLANNED_AT] = overrun, now
    return bool(anew)


@machine_code
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


@machine_code
def _put(plan: Plan, row: int, start: int) -> None:
    """Enter a reservation, for which the profile has been changed; mirrors ``Conservative._put``."""
    plan.start[row] = start
    expect(plan.slots, plan.counters[SLOTS], start, row)
    plan.counters[SLOTS] += 1


@machine_code
def welcome(plan: Plan, jobs: Jobs, run: Run, row: int) -> None:
    """Reserve the earliest feasible slot for a job; mirrors ``Conservative._welcome``."""
    nodes, estimate = jobs.nodes[row], run.estimate[row]
    first, last = earliest(plan.profile, nodes, estimate)
    start = plan.profile.times[first]
    occupy_steps(plan.profile, first, last, start + estimate, nodes)
    _put(plan, row, start)


@called
def make_anew(plan: Plan, jobs: Jobs, run: Run, listing: Listing, now: int) -> None:
    """Plan running jobs by their expected ends, then waiting jobs in the order of their reservations.

    Mirrors ``Conservative._make_anew``. Afterwards no job can be moved.
    """
    counters, rows = plan.counters, listing.rows
    expect_ends(plan.profile, jobs, run, now)
    count = counters[SLOTS]
    for place in range(count):
        rows[place] = plan.slots[1, place]
    counters[SLOTS] = counters[ENDED] = 0
    counters[RELEASED] = NEVER
    for place in range(count):
        welcome(plan, jobs, run, rows[place])


@called
def release_ended(plan: Plan, jobs: Jobs, run: Run, now: int) -> bool:
    """Release the capacity of jobs that ended early, and return whether jobs may have earlier slots.

    Mirrors the first part of ``Conservative._compress``.
    """
    counters = plan.counters
    for place in range(counters[ENDED]):
        row = plan.ended[place]
        expected_end = run.start_time[row] + run.estimate[row]
        if expected_end > now:
            occupy(plan.profile, now, expected_end, -jobs.nodes[row])
            counters[RELEASED] = max(counters[RELEASED], expected_end)
    counters[ENDED] = 0
    if counters[SLOTS] == 0:
        counters[RELEASED] = NEVER
    return bool(counters[RELEASED] > now)


@called
def compress(plan: Plan, jobs: Jobs, run: Run, listing: Listing, listed: int) -> None:
    """Move each job, listed in the order of the policy, to an earlier feasible slot if there is one.

    Mirrors ``Conservative._compress``. A slot that begins after all capacity released since the job was last
    examined was no more feasible then than now.
    """
    counters, profile, moved_until = plan.counters, plan.profile, NEVER
    for place in range(listed):
        row = listing.rows[place]
        nodes, estimate, reserved = jobs.nodes[row], run.estimate[row], plan.start[row]
        start = earlier(profile, nodes, estimate, reserved, counters[RELEASED])
        if start != reserved:
            moved_until = max(moved_until, reserved + estimate)
            counters[RELEASED] = max(counters[RELEASED], moved_until)
            occupy(profile, reserved, reserved + estimate, -nodes)
            forget(plan.slots, counters[SLOTS], reserved, row)
            counters[SLOTS] -= 1
            occupy(profile, start, start + estimate, nodes)
            _put(plan, row, start)
    counters[RELEASED] = moved_until


@machine_code
def gather_due(plan: Plan, run: Run, listing: Listing, now: int) -> int:
    """Write the rows of waiting jobs whose reservations are due, and return their number."""
    count = 0
    for place in range(plan.counters[SLOTS]):
        if plan.slots[0, place] > now:
            break
        row = plan.slots[1, place]
        if run.start_time[row] < 0:
            listing.rows[count] = row
            count += 1
    return count


# --- requested passes --------------------------------------------------------------------------------------


@called
def request_wake(plan: Plan, now: int) -> None:
    """Request a pass at the start of the next reservation; mirrors ``Conservative._find_due``."""
    counters, wakes, slots = plan.counters, plan.wakes, plan.slots
    while counters[WAKES] and wakes[counters[WAKES] - 1] <= now:
        counters[WAKES] -= 1
    due = 0
    while due < counters[SLOTS] and slots[0, due] <= now:
        due += 1
    if due == counters[SLOTS] or slots[0, due] <= now + counters[BROKEN]:
        return
    at, place = slots[0, due], counters[WAKES]
    while place > 0 and wakes[place - 1] < at:
        place -= 1
    if place > 0 and wakes[place - 1] == at:
        return
    open_gap(wakes, place, counters[WAKES])
    wakes[place] = at
    counters[WAKES] += 1


@machine_code
def next_wake(plan: Plan, limit: int) -> int:
    """Return the instant of the next requested pass [s], or the limit if it comes first."""
    count = plan.counters[WAKES]
    return min(plan.wakes[count - 1], limit) if count else limit
