"""Scheduling passes of a pipeline: jobs in their turn, and backfilling behind the first that cannot start."""

from __future__ import annotations

import numpy as np

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.listing import Listing, sort
from hpcsimkit.compiled.plan import (
    ENDED,
    Plan,
    compress,
    gather_due,
    make_anew,
    prepare,
    release_ended,
)
from hpcsimkit.compiled.profile import earliest, expect_ends, fits, occupy
from hpcsimkit.compiled.queue import BLOCKS, WAITING, Queue, find, gather, remove, take
from hpcsimkit.compiled.running import reserve, start
from hpcsimkit.compiled.scores import BY_RANK, score
from hpcsimkit.compiled.state import FREE, Jobs, Rules, Run

__all__ = [
    "CONSERVATIVE",
    "EASY",
    "FITTING",
    "GREEDY",
    "NONE",
    "NO_LIMIT",
    "SEVERAL",
    "is_sorted",
    "scored_pass",
    "sorted_pass",
    "update_plan",
]

NONE, GREEDY, FITTING, EASY, SEVERAL, CONSERVATIVE = range(6)
"""Codes of backfilling, from `EASY` on with reservations.

`FITTING` is greedy, but every job counts as started in its turn. `SEVERAL` makes several reservations anew at
each pass, `CONSERVATIVE` one for each job on its arrival.
"""

READY, RESERVED, BACKFILLED = 1, 2, 3
"""Start modes, as in :class:`~hpcsimkit.kernel.system.Mode`."""

NO_LIMIT = 2**62
"""A time that no estimate exceeds [s]."""


@machine_code
def _room(jobs: Jobs, run: Run, rules: Rules, head: int, now: int) -> tuple[int, int, int]:
    """Return the capacity for backfilling; mirrors ``reserve`` and, if greedy, ``_fitting``."""
    free = run.counters[FREE]
    if rules.backfilling != EASY:
        return free, NO_LIMIT, free
    shadow_time, extra = reserve(jobs, run, head, now)
    return free, shadow_time - now, extra


@machine_code
def _less(jobs: Jobs, run: Run, room: tuple[int, int, int], row: int) -> tuple[int, int, int]:
    """Return what a started job leaves of the capacity for backfilling; mirrors ``Cluster.take``."""
    free, window, spare = room
    nodes = jobs.nodes[row]
    return free - nodes, window, spare if run.estimate[row] <= window else spare - nodes


@machine_code
def _admissible(room: tuple[int, int, int], nodes: int, estimate: int) -> bool:
    """Return whether a job may be backfilled; mirrors ``Nodes.admissible``."""
    free, window, spare = room
    return nodes <= free and (estimate <= window or nodes <= spare)


@machine_code
def _blocked(jobs: Jobs, run: Run, rules: Rules, plan: Plan, row: int, now: int) -> bool:
    """Return whether a job cannot start in its turn; mirrors ``Nodes.place`` and ``Conservative.due``."""
    if rules.backfilling == CONSERVATIVE and plan.start[row] > now:
        return True
    return bool(jobs.nodes[row] > run.counters[FREE])


@machine_code
def is_sorted(rules: Rules) -> bool:
    """Return whether the queue is in the order of the policy; otherwise it is in order of arrival."""
    return rules.order == BY_RANK and not rules.window


@machine_code
def _list_waiting(jobs: Jobs, run: Run, rules: Rules, queue: Queue, listing: Listing, now: int) -> int:
    """List all waiting jobs in the order of the queue, with their scores, and return their number."""
    count = gather(queue, listing.rows)
    for position in range(count):
        row = listing.rows[position]
        listing.scores[position] = score(jobs, run.estimate[row], rules.order, row, now, jobs.weight[0])
    return count


@machine_code
def update_plan(
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    listing: Listing,
    plan: Plan,
    now: int,
    corrected: bool,
) -> None:
    """Update the reservations of jobs that have one; mirrors ``Conservative.plan``."""
    if prepare(plan, run, now, corrected):
        make_anew(plan, jobs, run, listing, now)
    elif plan.counters[ENDED] and release_ended(plan, jobs, run, now):
        if is_sorted(rules):
            count = gather(queue, listing.rows)
        else:
            count = _list_waiting(jobs, run, rules, queue, listing, now)
            sort(listing, count)
        compress(plan, jobs, run, listing, count)


@machine_code
def _several(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    plan: Plan,
    listed: int,
    now: int,
) -> None:
    """Reserve slots for the first jobs, and start others that delay none of them.

    Mirrors ``Reservations._planned``. All waiting jobs are listed in the order of the policy, the job that
    does not fit first.
    """
    profile, reserved = plan.profile, 0
    rank = jobs.rank if is_sorted(rules) else jobs.arrival
    expect_ends(profile, jobs, run, now)
    for position in range(listed):
        row, begin = listing.rows[position], now
        nodes, estimate = jobs.nodes[row], run.estimate[row]
        if reserved < rules.reservations:
            begin = earliest(profile, nodes, estimate, now)
            reserved += begin > now
        elif nodes > run.counters[FREE] or not fits(profile, nodes, estimate):
            continue
        occupy(profile, begin, begin + estimate, nodes)
        if begin == now:
            remove(queue, row, rank)
            start(jobs, run, row, now, BACKFILLED)


@machine_code
def sorted_pass(
    jobs: Jobs, run: Run, rules: Rules, queue: Queue, listing: Listing, plan: Plan, now: int
) -> int:
    """Run a pass on a queue in the order of the policy; mirrors ``Pipeline.schedule``.

    Returns
    -------
    int
        Row of the first job that does not fit, -1 if there is none.
    """
    while queue.counters[WAITING]:
        head = queue.rows[queue.order[0], 0]
        if _blocked(jobs, run, rules, plan, head, now):
            break
        take(queue, 0, 0)
        start(jobs, run, head, now, RESERVED if run.reserved[head] else READY)
    else:
        return -1
    if rules.backfilling >= EASY:
        run.reserved[head] = 1
    if rules.backfilling == SEVERAL:
        _several(jobs, run, rules, queue, listing, plan, gather(queue, listing.rows), now)
    elif rules.backfilling == CONSERVATIVE or rules.candidates != BY_RANK:
        listed = _list_candidates(jobs, run, rules, queue, listing, plan, now)
        if listed:
            _backfill(jobs, run, rules, queue, listing, listed, now, _room(jobs, run, rules, head, now))
    elif rules.backfilling != NONE:
        _search(jobs, run, rules, queue, head, now)
    return head


@machine_code
def _list_candidates(
    jobs: Jobs, run: Run, rules: Rules, queue: Queue, listing: Listing, plan: Plan, now: int
) -> int:
    """List the candidates of backfilling in a sorted queue, in its order, and return their number."""
    if rules.backfilling != CONSERVATIVE:
        free = run.counters[FREE]
        place, _ = find(queue, 0, 0, (free, NO_LIMIT, free), jobs.nodes, run.estimate)
        return 0 if place < 0 else gather(queue, listing.rows)
    count = gather_due(plan, run, listing, now)
    for position in range(count):
        listing.scores[position] = jobs.rank[listing.rows[position]]
    sort(listing, count)
    return count


@machine_code
def _search(jobs: Jobs, run: Run, rules: Rules, queue: Queue, head: int, now: int) -> None:
    """Backfill jobs in the order of a sorted queue; mirrors ``admissible``."""
    nodes, estimate, free = jobs.nodes, run.estimate, run.counters[FREE]
    place, position = find(queue, 0, 0, (free, NO_LIMIT, free), nodes, estimate)
    if place < 0:
        return
    room = _room(jobs, run, rules, head, now)
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    while True:
        place, position = find(queue, place, position, room, nodes, estimate)
        if place < 0:
            return
        row = queue.rows[queue.order[place], position]
        blocks = queue.counters[BLOCKS]
        take(queue, place, position)
        if queue.counters[BLOCKS] < blocks:
            position = 0
        start(jobs, run, row, now, mode)
        room = _less(jobs, run, room, row)


@machine_code
def _backfill(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
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
        if _admissible(room, nodes[row], estimate[row]):
            rows[count] = row
            count += 1
    if rules.candidates != BY_RANK:
        for position in range(count):
            row = rows[position]
            listing.scores[position] = score(jobs, estimate[row], rules.candidates, row, now, jobs.weight[1])
        sort(listing, count)
    rank = jobs.rank if is_sorted(rules) else jobs.arrival
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    for position in range(count):
        row = rows[position]
        if _admissible(room, nodes[row], estimate[row]):
            remove(queue, row, rank)
            start(jobs, run, row, now, mode)
            room = _less(jobs, run, room, row)


@machine_code
def _first(listing: Listing, count: int, limit: int) -> int:
    """Return the position of the smallest score among the first `limit` jobs that wait."""
    best, seen = -1, 0
    for position in range(count):
        if listing.gone[position]:
            continue
        if best < 0 or listing.scores[position] < listing.scores[best]:
            best = position
        seen += 1
        if seen == limit:
            break
    return best


@machine_code
def scored_pass(
    jobs: Jobs, run: Run, rules: Rules, queue: Queue, listing: Listing, plan: Plan, now: int
) -> int:
    """Run a pass on a queue in order of arrival, with scores of this instant.

    Mirrors ``Pipeline.schedule`` with a ``ScoredQueue``, and with a window (``JobQueue.oldest``).

    Returns
    -------
    int
        Row of the first job that does not fit, -1 if there is none.
    """
    rows = listing.rows
    count = _list_waiting(jobs, run, rules, queue, listing, now)
    for position in range(count):
        listing.gone[position] = 0
    while queue.counters[WAITING]:
        position = _first(listing, count, rules.window)
        head = rows[position]
        if _blocked(jobs, run, rules, plan, head, now):
            break
        listing.gone[position] = 1
        remove(queue, head, jobs.arrival)
        start(jobs, run, head, now, RESERVED if run.reserved[head] else READY)
    else:
        return -1
    if rules.backfilling >= EASY:
        run.reserved[head] = 1
    if rules.backfilling != NONE:
        listed = _list_by_score(jobs, run, rules, listing, plan, head, count, now)
        if rules.backfilling == SEVERAL:
            _several(jobs, run, rules, queue, listing, plan, listed, now)
        elif listed:
            _backfill(jobs, run, rules, queue, listing, listed, now, _room(jobs, run, rules, head, now))
    return head


@machine_code
def _list_by_score(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    listing: Listing,
    plan: Plan,
    head: int,
    count: int,
    now: int,
) -> int:
    """Keep the candidates of backfilling among `count` listed jobs, by score, and return their number.

    With several reservations, these are all waiting jobs, the first one that does not fit in front.
    """
    rows, scores, listed = listing.rows, listing.scores, 0
    for position in range(count):
        row = rows[position]
        may_start = rules.backfilling == SEVERAL or not _blocked(jobs, run, rules, plan, row, now)
        if may_start and not listing.gone[position]:
            rows[listed], scores[listed] = row, -np.inf if row == head else scores[position]
            listed += 1
    sort(listing, listed)
    return listed
