"""Scheduling passes of a pipeline: jobs in their turn, and backfilling behind the first that cannot start."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsimkit.compiled.compilation import called, machine_code, pasted
from hpcsimkit.compiled.fair_shares import Shares, minus_priority, value_usage
from hpcsimkit.compiled.filling import fill, skips, sort_candidates
from hpcsimkit.compiled.filling import start as start_on_machines
from hpcsimkit.compiled.gates import Gates, after_start, may_start
from hpcsimkit.compiled.listing import BY_RANK, Listing, score, sort
from hpcsimkit.compiled.machines import Machines, fits_now
from hpcsimkit.compiled.needs import NOW
from hpcsimkit.compiled.plan import (
    ENDED,
    Plan,
    compress,
    gather_due,
    make_anew,
    prepare,
    release_ended,
    release_tested,
    request_pass,
    welcome,
    welcome_back,
)
from hpcsimkit.compiled.planned_filling import fill_due, fill_reserving, is_due, start_due
from hpcsimkit.compiled.profile import Profile, earliest, fits, occupy
from hpcsimkit.compiled.queue import BLOCKS, WAITING, Queue, Sizes, find, gather, remove, take
from hpcsimkit.compiled.running import reserve, start
from hpcsimkit.compiled.state import (
    ARRIVED,
    BACKFILLED,
    EASY,
    FITTING,
    FREE,
    NO_LIMIT,
    NONE,
    READY,
    RESERVED,
    ZERO,
    Integers,
    Jobs,
    Rules,
    Run,
    Tests,
)
from hpcsimkit.compiled.stops import EARLY, REJOINED, Stops, makes_way
from hpcsimkit.compiled.windows import expect_capacity


@machine_code
def room_behind(jobs: Jobs, run: Run, rules: Rules, head: int, now: int) -> tuple[int, int, int]:
    """Return the capacity for backfilling; mirrors ``reserve`` and, if greedy, ``_fitting``."""
    free = run.counters[FREE]
    if rules.backfilling != EASY:
        return free, NO_LIMIT, free
    shadow_time, extra = reserve(jobs, run, head, now)
    return free, shadow_time - now, extra


@machine_code
def less(jobs: Jobs, run: Run, room: tuple[int, int, int], row: int) -> tuple[int, int, int]:
    """Return what a started job leaves of the capacity for backfilling; mirrors ``Cluster.take``."""
    free, window, spare = room
    nodes = jobs.nodes[row]
    return free - nodes, window, spare if run.estimate[row] <= window else spare - nodes


@machine_code
def admissible(room: tuple[int, int, int], nodes: int, estimate: int) -> bool:
    """Return whether a job may be backfilled; mirrors ``Nodes.admissible``."""
    free, window, spare = room
    return nodes <= free and (estimate <= window or nodes <= spare)


@pasted
def _blocked(jobs: Jobs, run: Run, machines: Machines | None, plan: Plan | None, row: int, now: int) -> bool:
    """Return whether a job cannot start in its turn; mirrors ``Cluster.place`` and ``Conservative.due``."""
    if machines is not None:
        if plan is not None:
            return not is_due(run, machines, plan, row, now)
        return not fits_now(machines, row)
    if plan is not None and plan.start[row] > now:
        return True
    return bool(jobs.nodes[row] > run.counters[FREE])


@pasted
def _start_next(
    jobs: Jobs, run: Run, rules: Rules, machines: Machines | None, plan: Plan | None, row: int, now: int
) -> None:
    """Start the job whose turn it is."""
    mode = RESERVED if run.reserved[row] else READY
    if machines is not None and plan is not None:
        start_due(jobs, run, rules, machines, plan, row, now, mode)
    elif machines is not None:
        start_on_machines(jobs, run, rules, machines, row, now, mode, NOW)
    else:
        start(jobs, run, row, now, mode)


@machine_code
def list_waiting(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    shares: Shares | None,
    machines: Machines | None,
    now: int,
) -> int:
    """List all waiting jobs in the order of the queue, with their scores, and return their number."""
    count = gather(queue, listing.rows)
    if shares is not None:
        value_usage(shares, run, machines, now)
    for position in range(count):
        row = listing.rows[position]
        if shares is not None:
            listing.scores[position] = minus_priority(shares, jobs, row, now)
        else:
            listing.scores[position] = score(jobs, run.estimate[row], rules.order, row, now, jobs.weight[0])
    return count


@pasted
def renew_plan(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    listing: Listing,
    gone: Integers | None,
    shares: Shares | None,
    machines: Machines | None,
    plan: Plan,
    now: int,
    corrected: bool,
) -> None:
    """Update the reservations that there are; mirrors the first part of ``Conservative.plan``."""
    release_tested(plan, plan.tests, jobs, machines)
    if prepare(plan, run, machines, now, corrected):
        make_anew(plan, jobs, run, machines, listing, now)
    elif plan.counters[ENDED] and release_ended(plan, jobs, run, machines, now):
        count = gather(queue, listing.rows)
        if gone is not None:
            count = list_waiting(jobs, run, rules, queue, listing, shares, machines, now)
            sort(listing, count)
        compress(plan, jobs, run, machines, listing, count)


@pasted
def update_plan(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    listing: Listing,
    gone: Integers | None,
    shares: Shares | None,
    machines: Machines | None,
    plan: Plan,
    stops: Stops | None,
    first: int,
    now: int,
    corrected: bool,
) -> None:
    """Update all reservations, and reserve slots for the jobs that arrive; mirrors ``Conservative.plan``.

    These are the jobs from position `first` on in the order of submission, and those that were stopped and
    have come back.
    """
    renew_plan(jobs, rules, run, queue, listing, gone, shares, machines, plan, now, corrected)
    if stops is not None:
        for place in range(stops.counters[EARLY]):
            welcome_back(plan, plan.tests, jobs, run, machines, listing, stops.rejoined[place], now)
    for place in range(first, run.counters[ARRIVED]):
        welcome(plan, jobs, run, machines, listing, jobs.arrival_order[place], now)
    if stops is not None:
        for place in range(stops.counters[EARLY], stops.counters[REJOINED]):
            welcome_back(plan, plan.tests, jobs, run, machines, listing, stops.rejoined[place], now)
        stops.counters[REJOINED] = 0
    request_pass(plan, now)


@machine_code
def several(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing,
    profile: Profile,
    windows: Any,
    gates: Gates | None,
    tests: Tests | None,
    listed: int,
    now: int,
) -> None:
    """Reserve slots for the first jobs, and start others that delay none of them.

    Mirrors ``Reservations._planned``. All waiting jobs are listed in the order of the policy, the job that
    does not fit first.
    """
    reserved = 0
    expect_capacity(profile, jobs, run, windows, now)
    for position in range(listed):
        row, begin = listing.rows[position], now
        if tests is not None:
            tests.reserved[row] = NO_LIMIT
        nodes, estimate = jobs.nodes[row], run.estimate[row]
        if reserved < rules.reservations:
            begin = profile.times[earliest(profile, nodes, estimate)[0]]
            reserved += begin > now
            if tests is not None and begin > now:
                tests.reserved[row] = begin
        elif nodes > run.counters[FREE] or not fits(profile, nodes, estimate):
            continue
        if begin == now and not may_start(gates, row):
            continue
        occupy(profile, begin, begin + estimate, nodes)
        if begin == now:
            remove(queue, sizes, row, jobs.rank)
            start(jobs, run, row, now, BACKFILLED)
            if gates is not None:
                after_start(jobs, run, queue, None, gates, row, now)


@pasted
def sorted_pass(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing | None,
    machines: Machines | None,
    profile: Any,
    plan: Plan | None,
    stops: Stops | None,
    now: int,
) -> int:
    """Run a pass on a queue in the order of the policy; mirrors ``Pipeline.schedule``.

    Return the row of the first job that does not fit, -1 if there is none.
    """
    while queue.counters[WAITING]:
        head = queue.rows[queue.order[0], 0]
        if _blocked(jobs, run, machines, plan, head, now):
            if not makes_way(jobs, run, queue, sizes, stops, head, now):
                break
            remove(queue, sizes, head, jobs.rank)
        else:
            take(queue, sizes, ZERO, ZERO)
        _start_next(jobs, run, rules, machines, plan, head, now)
    else:
        return -1
    if rules.backfilling >= EASY:
        run.reserved[head] = 1
    if sizes is not None and rules.backfilling != NONE:
        _search(jobs, run, rules, queue, sizes, listing, head, now)
    if listing is not None:
        _backfill_sorted(jobs, run, rules, queue, sizes, listing, machines, profile, plan, head, now)
    return head


@pasted
def _backfill_sorted(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing,
    machines: Machines | None,
    profile: Any,
    plan: Plan | None,
    head: int,
    now: int,
) -> None:
    """Backfill jobs of a sorted queue, unless it is searched in its order."""
    if plan is not None:
        listed = _list_due(jobs, run, listing, plan, now)
        _start_listed_due(jobs, run, rules, queue, sizes, listing, machines, plan, head, listed, now)
    elif profile is not None:
        listed = gather(queue, listing.rows)
        if machines is not None:
            fill_reserving(jobs, run, rules, queue, machines, profile, listing, listed, now)
        else:
            several(jobs, run, rules, queue, sizes, listing, profile, None, None, None, listed, now)
    elif machines is not None:
        fill(jobs, run, rules, queue, machines, listing, head, -1, now)


@pasted
def _start_listed_due(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing,
    machines: Machines | None,
    plan: Plan,
    head: int,
    listed: int,
    now: int,
) -> None:
    """Start the listed jobs whose reservations are due."""
    if machines is not None:
        fill_due(jobs, run, rules, queue, machines, plan, listing, listed, now)
    elif listed:
        room = room_behind(jobs, run, rules, head, now)
        backfill(jobs, run, rules, queue, sizes, listing, listed, now, room)


@pasted
def _list_due(jobs: Jobs, run: Run, listing: Listing, plan: Plan, now: int) -> int:
    """List the jobs whose reservations are due in the order of a sorted queue, and return their number."""
    count = gather_due(plan, run, listing, now)
    for position in range(count):
        listing.scores[position] = jobs.rank[listing.rows[position]]
    sort(listing, count)
    return count


@machine_code
def _search(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes,
    listing: Listing | None,
    head: int,
    now: int,
) -> None:
    """Backfill jobs in the order of a sorted queue, or in that of the candidates; mirrors ``admissible``."""
    nodes, estimate, free = jobs.nodes, run.estimate, run.counters[FREE]
    place, position = find(queue, sizes, 0, 0, (free, NO_LIMIT, free), nodes, estimate)
    if place < 0:
        return
    room = room_behind(jobs, run, rules, head, now)
    if listing is not None:
        backfill(jobs, run, rules, queue, sizes, listing, gather(queue, listing.rows), now, room)
        return
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    while True:
        place, position = find(queue, sizes, place, position, room, nodes, estimate)
        if place < 0:
            return
        row = queue.rows[queue.order[place], position]
        blocks = queue.counters[BLOCKS]
        take(queue, sizes, place, position)
        if queue.counters[BLOCKS] < blocks:
            position = 0
        start(jobs, run, row, now, mode)
        room = less(jobs, run, room, row)


@machine_code
def backfill(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing,
    listed: int,
    now: int,
    room: tuple[int, int, int],
) -> None:
    """Backfill jobs listed in the order of the policy; each is tried in the order of the candidates.

    Mirrors ``EASY._tried_in_order``.
    """
    nodes, estimate, rows = jobs.nodes, run.estimate, listing.rows
    count = 0
    for position in range(listed):
        row = rows[position]
        if admissible(room, nodes[row], estimate[row]):
            rows[count] = row
            count += 1
    if rules.candidates != BY_RANK:
        sort_candidates(jobs, run, rules, None, listing, listing.shares, count, now)
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    for position in range(count):
        row = rows[position]
        if admissible(room, nodes[row], estimate[row]):
            remove(queue, sizes, row, jobs.rank)
            start(jobs, run, row, now, mode)
            room = less(jobs, run, room, row)


@machine_code
def first_of(listing: Listing, gone: Integers, count: int, limit: int) -> int:
    """Return the position of the smallest score among the first `limit` jobs that wait."""
    best, seen = -1, 0
    for position in range(count):
        if gone[position]:
            continue
        if best < 0 or listing.scores[position] < listing.scores[best]:
            best = position
        seen += 1
        if seen == limit:
            break
    return best


@called
def scored_pass(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing,
    gone: Integers,
    shares: Shares | None,
    machines: Machines | None,
    profile: Any,
    plan: Plan | None,
    stops: Stops | None,
    now: int,
) -> int:
    """Run a pass on a queue in order of arrival, with scores of this instant.

    Return the row of the first job that does not fit, -1 if there is none, or nothing can be started.

    Mirrors ``Pipeline.schedule`` with a ``ScoredQueue``, and with a window (``JobQueue.oldest``).
    """
    rows = listing.rows
    count = list_waiting(jobs, run, rules, queue, listing, shares, machines, now)
    for position in range(count):
        gone[position] = 0
    if machines is not None and skips(
        jobs, run, rules, machines, rows[first_of(listing, gone, count, rules.window)], now
    ):
        return -1
    while queue.counters[WAITING]:
        position = first_of(listing, gone, count, rules.window)
        head = rows[position]
        if _blocked(jobs, run, machines, plan, head, now):
            if not makes_way(jobs, run, queue, sizes, stops, head, now):
                break
            remove(queue, sizes, head, jobs.rank)  # others have joined the queue
            count = list_waiting(jobs, run, rules, queue, listing, shares, machines, now)
            for place in range(count):
                gone[place] = 0
        else:
            gone[position] = 1
            remove(queue, sizes, head, jobs.rank)
        _start_next(jobs, run, rules, machines, plan, head, now)
    else:
        return -1
    if rules.backfilling >= EASY:
        run.reserved[head] = 1
    if rules.backfilling != NONE:
        _backfill_by_score(
            jobs, run, rules, queue, sizes, listing, gone, machines, profile, plan, head, count, now
        )
    return int(head)


@pasted
def _backfill_by_score(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing,
    gone: Integers,
    machines: Machines | None,
    profile: Any,
    plan: Plan | None,
    head: int,
    count: int,
    now: int,
) -> None:
    """Backfill those of `count` listed jobs that wait, in the order of their scores."""
    everything = profile is not None
    listed = list_by_score(jobs, run, listing, gone, machines, plan, head, count, everything, now)
    if plan is not None:
        _start_listed_due(jobs, run, rules, queue, sizes, listing, machines, plan, head, listed, now)
    elif profile is not None:
        if machines is not None:
            fill_reserving(jobs, run, rules, queue, machines, profile, listing, listed, now)
        else:
            several(jobs, run, rules, queue, sizes, listing, profile, None, None, None, listed, now)
    elif machines is not None:
        fill(jobs, run, rules, queue, machines, listing, head, listed, now)
    elif listed:
        room = room_behind(jobs, run, rules, head, now)
        backfill(jobs, run, rules, queue, sizes, listing, listed, now, room)


@pasted
def _may_start(
    jobs: Jobs, run: Run, machines: Machines | None, plan: Plan | None, row: int, now: int
) -> bool:
    """Return whether a job is a candidate of backfilling."""
    if plan is not None:
        return bool(plan.start[row] <= now)
    return not _blocked(jobs, run, machines, plan, row, now)


@pasted
def list_by_score(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    listing: Listing,
    gone: Integers,
    machines: Machines | None,
    plan: Plan | None,
    head: int,
    count: int,
    everything: bool,
    now: int,
) -> int:
    """Keep the candidates of backfilling among `count` listed jobs, by score, and return their number.

    If `everything`, these are all waiting jobs, the first one that does not fit in front.
    """
    rows, scores, listed = listing.rows, listing.scores, 0
    for position in range(count):
        row = rows[position]
        may_start = everything or _may_start(jobs, run, machines, plan, row, now)
        if may_start and not gone[position]:
            rows[listed], scores[listed] = row, -np.inf if row == head else scores[position]
            listed += 1
    sort(listing, listed)
    return listed
