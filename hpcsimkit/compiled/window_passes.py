"""Scheduling passes of a pipeline beside the windows of a calendar.

Mirrors :class:`~hpcsimkit.kernel.pipeline.Pipeline` and the backfillers, for all orders at once; no pass is
skipped, and no block of the queue.
"""

from __future__ import annotations

from hpcsimkit.compiled.compilation import called, machine_code
from hpcsimkit.compiled.fair_shares import Shares
from hpcsimkit.compiled.filling import sort_candidates
from hpcsimkit.compiled.listing import BY_RANK, Listing
from hpcsimkit.compiled.passes import first_of, list_by_score, list_waiting, several
from hpcsimkit.compiled.plan import Plan
from hpcsimkit.compiled.profile import Profile, earliest, fits, occupy
from hpcsimkit.compiled.queue import WAITING, Queue, remove
from hpcsimkit.compiled.running import start
from hpcsimkit.compiled.state import (
    BACKFILLED,
    EASY,
    FITTING,
    NONE,
    READY,
    RESERVED,
    Integers,
    Jobs,
    Rules,
    Run,
)
from hpcsimkit.compiled.windows import Windows, expect_capacity, room_for


@called
def pass_beside_windows(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    gone: Integers,
    shares: Shares | None,
    profile: Profile | None,
    plan: Plan | None,
    windows: Windows,
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
        if not _may_start(jobs, run, plan, windows, row, now):
            head = row
            break
        gone[position] = 1
        remove(queue, None, row, jobs.rank)
        start(jobs, run, row, now, RESERVED if run.reserved[row] else READY)
    if head < 0:
        return
    if rules.backfilling >= EASY:
        run.reserved[head] = 1
    if rules.backfilling == NONE:
        return
    listed = list_by_score(jobs, run, listing, gone, None, plan, head, count, plan is None, now)
    if profile is None:
        _start_that_fit(jobs, run, rules, queue, listing, plan, windows, listed, now)
    elif rules.backfilling == EASY:
        _fill(jobs, run, rules, queue, listing, profile, windows, head, listed, now)
    else:
        several(jobs, run, rules, queue, None, listing, profile, windows, listed, now)


@machine_code
def _may_start(jobs: Jobs, run: Run, plan: Plan | None, windows: Windows, row: int, now: int) -> bool:
    """Return whether a job may start, and if there is a plan, as reserved; mirrors ``Conservative.due``."""
    if plan is not None and plan.start[row] > now:
        return False
    return bool(jobs.nodes[row] <= room_for(jobs, run, windows, row, now))


@machine_code
def _start_that_fit(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    plan: Plan | None,
    windows: Windows,
    listed: int,
    now: int,
) -> None:
    """Start the listed jobs that may start; mirrors ``Greedy.fill`` and ``Conservative.fill``."""
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    for position in range(listed):
        row = listing.rows[position]
        if _may_start(jobs, run, plan, windows, row, now):
            remove(queue, None, row, jobs.rank)
            start(jobs, run, row, now, mode)


@machine_code
def _fill(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    profile: Profile,
    windows: Windows,
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
        if fits(profile, nodes[row], estimate[row]):
            remove(queue, None, row, jobs.rank)
            start(jobs, run, row, now, BACKFILLED)
            occupy(profile, now, now + estimate[row], nodes[row])
