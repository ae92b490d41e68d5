"""Test runs in what reservations leave, on machines.

Mirrors :class:`~hpcsimkit.policies.backfill.testing.HoleTests`; the ends of tests are in :mod:`.hole_tests`.
"""

from __future__ import annotations

from typing import Any

from hpcsimkit.compiled.compilation import pasted, separate
from hpcsimkit.compiled.hole_tests import MODE, schedule_stop, seconds_of
from hpcsimkit.compiled.listing import Listing, sort
from hpcsimkit.compiled.machine_profile import (
    RESERVED,
    MachineProfile,
    entry_in_test,
    fits_throughout,
    hold_started,
    note_unexamined,
)
from hpcsimkit.compiled.machine_room import reserve
from hpcsimkit.compiled.machines import Machines, enter, fits_now
from hpcsimkit.compiled.needs import NOW
from hpcsimkit.compiled.passes import list_waiting
from hpcsimkit.compiled.placing import allocate
from hpcsimkit.compiled.plan import Plan
from hpcsimkit.compiled.planned_filling import level_of
from hpcsimkit.compiled.queue import Queue, remove
from hpcsimkit.compiled.state import Integers, Jobs, Rules, Run, Tests


@pasted
def fill_machines_with_tests(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing | None,
    machines: Machines | None,
    profile: Any,
    plan: Plan | None,
    tests: Tests | None,
    head: int,
    now: int,
) -> None:
    """Start the waiting jobs that may be tested beside all reservations, if a job is blocked.

    Mirrors ``HoleTests.chosen``.
    """
    if machines is None or tests is None or listing is None or head < 0:
        return
    count = list_waiting(jobs, run, rules, queue, listing, None, None, now)
    sort(listing, count)
    if plan is not None:
        slots, starts = plan.profile, plan.start
        _test_in_profile(jobs, run, rules, queue, listing, machines, slots, starts, tests, head, count, now)
    elif profile is not None:
        starts = profile.jobs[RESERVED]
        _test_in_profile(jobs, run, rules, queue, listing, machines, profile, starts, tests, head, count, now)
    else:
        _test_behind(jobs, run, rules, queue, listing, machines, tests, head, count, now)


@separate
def _test_behind(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    machines: Machines,
    tests: Tests,
    head: int,
    count: int,
    now: int,
) -> None:
    """Start tests of listed jobs that do not delay the head; mirrors ``HoleBesideHead``.

    A job that could run beyond the shadow time would have been backfilled, for longer than its test.
    """
    shadow_time, reserved = now, False
    for position in range(count):
        row = listing.rows[position]
        seconds = seconds_of(run, tests, head, row)
        if not seconds or not fits_now(machines, row):
            continue
        if not reserved:  # with the jobs that have been backfilled
            shadow_time, reserved = reserve(machines, head, now), True
        if now + seconds <= shadow_time:
            _begin(jobs, run, rules, queue, machines, tests, row, seconds, now, NOW)


@separate
def _test_in_profile(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    machines: Machines,
    profile: MachineProfile,
    reserved: Integers,
    tests: Tests,
    head: int,
    count: int,
    now: int,
) -> None:
    """Start tests of listed jobs that delay no reservation, and are over by their own [s].

    Mirrors ``HoleInProfile``. In the profile, a test has a row of its own: the job's has its reservation.
    """
    for position in range(count):
        row = listing.rows[position]
        seconds = seconds_of(run, tests, head, row)
        if not seconds or now + seconds + tests.delay > reserved[row]:
            continue
        if fits_now(machines, row) and fits_throughout(machines, profile, row, seconds):
            _begin(jobs, run, rules, queue, machines, tests, row, seconds, now, level_of(profile))
            note_unexamined(profile, row)
            hold_started(machines, profile, row, entry_in_test(profile, tests, row), now, now + seconds)


@pasted
def _begin(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    machines: Machines,
    tests: Tests,
    row: int,
    seconds: int,
    now: int,
    level: int,
) -> None:
    """Start a test on a level in which the job fits."""
    remove(queue, None, row, jobs.rank)
    allocate(machines, rules.placement, row, level)
    schedule_stop(jobs, run, tests, row, seconds, now)
    enter(jobs, run, machines, row, now, MODE)
