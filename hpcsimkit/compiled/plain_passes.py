"""Scheduling passes of a pipeline on homogeneous nodes beside the windows of a calendar, with gates or tests.

Mirrors :class:`~hpcsimkit.kernel.pipeline.Pipeline` and the backfillers, for all orders at once; no pass is
skipped, and no block of the queue.
"""

from __future__ import annotations

from hpcsimkit.compiled.compilation import called, machine_code, pasted
from hpcsimkit.compiled.fair_shares import Shares
from hpcsimkit.compiled.filling import sort_candidates
from hpcsimkit.compiled.gates import STATE, WAITS, Gates, may_start, start_waiting
from hpcsimkit.compiled.hole_tests import fill_with_tests
from hpcsimkit.compiled.listing import BY_RANK, Listing
from hpcsimkit.compiled.passes import (
    admissible,
    first_of,
    less,
    list_by_score,
    list_waiting,
    room_behind,
    several,
)
from hpcsimkit.compiled.plan import Plan
from hpcsimkit.compiled.profile import Profile, earliest, fits, occupy
from hpcsimkit.compiled.queue import WAITING, Queue
from hpcsimkit.compiled.state import (
    BACKFILLED,
    EASY,
    FITTING,
    FREE,
    NONE,
    READY,
    RESERVED,
    Integers,
    Jobs,
    Rules,
    Run,
    Tests,
)
from hpcsimkit.compiled.windows import Windows, expect_capacity, room_for


@called
def plain_pass(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    gone: Integers,
    shares: Shares | None,
    profile: Profile | None,
    plan: Plan | None,
    windows: Windows | None,
    gates: Gates | None,
    tests: Tests | None,
    now: int,
) -> None:
    """Run a pass; mirrors ``Pipeline._run``."""
    count = list_waiting(jobs, run, rules, queue, listing, shares, None, now)
    for position in range(count):
        gone[position] = 0
    head = -1
    while queue.counters[WAITING]:
        position = first_of(listing, gone, count, rules.window)
        row = listing.rows[position]
        if not _fits(jobs, run, plan, windows, row, now):
            head = row
            break
        gone[position] = 1
        mode = RESERVED if run.reserved[row] else READY
        if start_waiting(jobs, run, queue, plan, gates, row, now, mode):
            _miss(listing, gone, gates, count)
    if head >= 0 and rules.backfilling != NONE:
        _backfill(
            jobs, run, rules, queue, listing, gone, profile, plan, windows, gates, tests, head, count, now
        )
    if head >= 0 and tests is not None:
        fill_with_tests(jobs, run, rules, queue, listing, profile, plan, tests, head, now)


@pasted
def _backfill(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    gone: Integers,
    profile: Profile | None,
    plan: Plan | None,
    windows: Windows | None,
    gates: Gates | None,
    tests: Tests | None,
    head: int,
    count: int,
    now: int,
) -> None:
    """Start jobs behind the first one that does not fit, among `count` listed jobs."""
    if rules.backfilling >= EASY:
        run.reserved[head] = 1
    listed = list_by_score(jobs, run, listing, gone, None, plan, head, count, plan is None, now)
    if profile is not None and rules.backfilling != EASY:
        several(jobs, run, rules, queue, None, listing, profile, windows, gates, tests, listed, now)
    elif profile is not None:
        _fill(jobs, run, rules, queue, listing, profile, plan, windows, gates, head, listed, now)
    elif rules.backfilling == EASY:
        _fill_behind(jobs, run, rules, queue, listing, plan, gates, head, listed, now)
    else:
        _start_that_fit(jobs, run, rules, queue, listing, plan, windows, gates, listed, now)


@pasted
def _miss(listing: Listing, gone: Integers, gates: Gates | None, count: int) -> None:
    """Mark the listed jobs that have left the queue since gates hold them."""
    if gates is not None:
        for position in range(count):
            gone[position] |= gates.jobs[STATE, listing.rows[position]] != WAITS


@machine_code
def _fits(jobs: Jobs, run: Run, plan: Plan | None, windows: Windows | None, row: int, now: int) -> bool:
    """Return whether a job may start, and if there is a plan, as reserved; mirrors ``Conservative.due``."""
    if plan is not None and plan.start[row] > now:
        return False
    if windows is None:
        return bool(jobs.nodes[row] <= run.counters[FREE])
    return bool(jobs.nodes[row] <= room_for(jobs, run, windows, row, now))


@machine_code
def _start_that_fit(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    plan: Plan | None,
    windows: Windows | None,
    gates: Gates | None,
    listed: int,
    now: int,
) -> None:
    """Start the listed jobs that may start; mirrors ``Greedy.fill`` and ``Conservative.fill``."""
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    for position in range(listed):
        row = listing.rows[position]
        if may_start(gates, row) and _fits(jobs, run, plan, windows, row, now):
            start_waiting(jobs, run, queue, plan, gates, row, now, mode)


@machine_code
def _fill_behind(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    plan: Plan | None,
    gates: Gates | None,
    head: int,
    listed: int,
    now: int,
) -> None:
    """Start listed jobs that do not delay the head; mirrors ``EASY.fill``."""
    room, count = room_behind(jobs, run, rules, head, now), 0
    for position in range(listed):
        row = listing.rows[position]
        if admissible(room, jobs.nodes[row], run.estimate[row]):
            listing.rows[count] = row
            count += 1
    if rules.candidates != BY_RANK:
        sort_candidates(jobs, run, rules, None, listing, listing.shares, count, now)
    for position in range(count):
        row = listing.rows[position]
        if may_start(gates, row) and admissible(room, jobs.nodes[row], run.estimate[row]):
            start_waiting(jobs, run, queue, plan, gates, row, now, BACKFILLED)
            room = less(jobs, run, room, row)


@machine_code
def _fill(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    profile: Profile,
    plan: Plan | None,
    windows: Windows | None,
    gates: Gates | None,
    head: int,
    listed: int,
    now: int,
) -> None:
    """Start listed jobs beside the reservation of the head; mirrors ``EASY._fill_as_planned``."""
    expect_capacity(profile, jobs, run, windows, now)
    nodes, estimate = jobs.nodes, run.estimate
    begin = profile.times[earliest(profile, nodes[head], estimate[head])[0]]
    occupy(profile, begin, begin + estimate[head], nodes[head])
    if rules.candidates != BY_RANK:
        sort_candidates(jobs, run, rules, None, listing, listing.shares, listed, now)
    for position in range(listed):
        row = listing.rows[position]
        if may_start(gates, row) and fits(profile, nodes[row], estimate[row]):
            start_waiting(jobs, run, queue, plan, gates, row, now, BACKFILLED)
            occupy(profile, now, now + estimate[row], nodes[row])
