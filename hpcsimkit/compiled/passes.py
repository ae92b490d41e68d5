"""Scheduling passes of a pipeline: jobs in their turn, and EASY or greedy backfilling behind the first."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.listing import Listing, sort
from hpcsimkit.compiled.queue import BLOCKS, WAITING, Queue, find, gather, remove, take
from hpcsimkit.compiled.running import reserve, start
from hpcsimkit.compiled.scores import BY_RANK, score
from hpcsimkit.compiled.state import FREE, Jobs, Rules, Run

__all__ = ["EASY", "FITTING", "GREEDY", "NONE", "NO_LIMIT", "scored_pass", "sorted_pass"]

NONE, EASY, GREEDY, FITTING = range(4)
"""Codes of backfilling; `FITTING` is greedy, but every job counts as started in its turn."""

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
def sorted_pass(jobs: Jobs, run: Run, rules: Rules, queue: Queue, listing: Listing, now: int) -> int:
    """Run a pass on a queue in the order of the policy; mirrors ``Pipeline.schedule``.

    Returns
    -------
    int
        Row of the first job that does not fit, -1 if there is none.
    """
    nodes, estimate = jobs.nodes, run.estimate
    while queue.counters[WAITING]:
        head = queue.rows[queue.order[0], 0]
        if nodes[head] > run.counters[FREE]:
            break
        take(queue, 0, 0)
        start(jobs, run, head, now, RESERVED if run.reserved[head] else READY)
    else:
        return -1
    if rules.backfilling == NONE:
        return head
    if rules.backfilling == EASY:
        run.reserved[head] = 1
    free = run.counters[FREE]
    place, position = find(queue, 0, 0, (free, NO_LIMIT, free), nodes, estimate)
    if place < 0:
        return head
    room = _room(jobs, run, rules, head, now)
    if rules.candidates != BY_RANK:
        listed = gather(queue, listing.rows)
        _backfill(jobs, run, rules, queue, listing, listed, now, room)
        return head
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    while True:
        place, position = find(queue, place, position, room, nodes, estimate)
        if place < 0:
            return head
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
    rank = jobs.arrival if rules.order != BY_RANK or rules.window else jobs.rank
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
def scored_pass(jobs: Jobs, run: Run, rules: Rules, queue: Queue, listing: Listing, now: int) -> int:
    """Run a pass on a queue in order of arrival, with scores of this instant.

    Mirrors ``Pipeline.schedule`` with a ``ScoredQueue``, and with a window (``JobQueue.oldest``).

    Returns
    -------
    int
        Row of the first job that does not fit, -1 if there is none.
    """
    nodes, estimate, rows, scores = jobs.nodes, run.estimate, listing.rows, listing.scores
    count = gather(queue, rows)
    for position in range(count):
        row = rows[position]
        scores[position] = score(jobs, estimate[row], rules.order, row, now, jobs.weight[0])
        listing.gone[position] = 0
    while queue.counters[WAITING]:
        position = _first(listing, count, rules.window)
        head = rows[position]
        if nodes[head] > run.counters[FREE]:
            break
        listing.gone[position] = 1
        remove(queue, head, jobs.arrival)
        start(jobs, run, head, now, RESERVED if run.reserved[head] else READY)
    else:
        return -1
    if rules.backfilling == NONE:
        return head
    if rules.backfilling == EASY:
        run.reserved[head] = 1
    free, left = run.counters[FREE], 0
    for position in range(count):
        if not listing.gone[position] and nodes[rows[position]] <= free:
            rows[left], scores[left] = rows[position], scores[position]
            left += 1
    if left:
        sort(listing, left)
        _backfill(jobs, run, rules, queue, listing, left, now, _room(jobs, run, rules, head, now))
    return head
