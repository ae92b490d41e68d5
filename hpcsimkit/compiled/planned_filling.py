"""Starts on machines beside many reservations: conservative backfilling, and several reservations."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import pasted, separate
from hpcsimkit.compiled.filling import start
from hpcsimkit.compiled.listing import Listing
from hpcsimkit.compiled.machine_profile import (
    ON_TOTALS,
    RESERVED,
    MachineProfile,
    earliest,
    expect_ends,
    fits_throughout,
    hold_started,
    occupy,
    reserve_found,
    within,
)
from hpcsimkit.compiled.machines import NEED, Machines, fits_now
from hpcsimkit.compiled.needs import BY_TOTALS, INSIDE, NOW, fits
from hpcsimkit.compiled.plan import Plan, take_in_start
from hpcsimkit.compiled.queue import Queue, remove
from hpcsimkit.compiled.state import BACKFILLED, NO_LIMIT, Jobs, Rules, Run


@separate
def is_due(run: Run, machines: Machines, plan: Plan, row: int, now: int) -> bool:
    """Return whether a job may start as reserved; mirrors ``Conservative.due``.

    It sets the level within which :func:`start_due` places it, see ``Conservative.level``.
    """
    if plan.start[row] > now:
        return False
    level = within(machines, plan.profile, row, run.estimate[row], True)
    return fits(machines.levels, machines.jobs[NEED, row], level)


@separate
def start_due(
    jobs: Jobs, run: Run, rules: Rules, machines: Machines, plan: Plan, row: int, now: int, mode: int
) -> None:
    """Start a job that :func:`is_due`."""
    start(jobs, run, rules, machines, row, now, mode, level_of(plan.profile))
    take_in_start(plan, run, machines, row)


@pasted
def level_of(profile: MachineProfile) -> int:
    """Return the level that jobs may use, after it has been set."""
    return NOW if profile.counters[ON_TOTALS] else INSIDE


@pasted
def fill_due(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    machines: Machines,
    plan: Plan,
    listing: Listing,
    listed: int,
    now: int,
) -> None:
    """Start the listed jobs whose reservations are due; mirrors ``Conservative.fill``."""
    for position in range(listed):
        row = listing.rows[position]
        if is_due(run, machines, plan, row, now):
            remove(queue, None, row, jobs.rank)
            start_due(jobs, run, rules, machines, plan, row, now, BACKFILLED)


@separate
def fill_reserving(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    machines: Machines,
    profile: MachineProfile,
    listing: Listing,
    listed: int,
    now: int,
) -> None:
    """Reserve slots for the first jobs, and start others that delay none of them.

    Mirrors ``Reservations._planned``. All waiting jobs are listed in the order of the policy, the job that
    does not fit first.
    """
    on_totals = True
    for position in range(listed):
        on_totals &= machines.levels.needs[machines.jobs[NEED, listing.rows[position]], BY_TOTALS] == 1
    expect_ends(machines, profile, None, now, on_totals)
    reserved = 0
    for position in range(listed):
        row = listing.rows[position]
        estimate, begin = run.estimate[row], now
        profile.jobs[RESERVED, row] = NO_LIMIT
        if reserved < rules.reservations:
            begin = earliest(machines, profile, row, estimate, NO_LIMIT, NO_LIMIT)
            reserve_found(machines, profile, row, begin)
            if begin > now:
                occupy(profile, row, begin, begin + estimate)
                profile.jobs[RESERVED, row] = begin
                reserved += 1
                continue
            within(machines, profile, row, estimate, False)
        elif not fits_now(machines, row) or not fits_throughout(machines, profile, row, estimate):
            continue
        remove(queue, None, row, jobs.rank)
        start(jobs, run, rules, machines, row, now, BACKFILLED, level_of(profile))
        hold_started(machines, profile, row, row, now, now + estimate)
