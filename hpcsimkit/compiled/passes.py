"""Scheduling passes of a pipeline: jobs in their turn, and EASY or greedy backfilling behind the first."""

from __future__ import annotations

import numpy as np

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.queue import BLOCKS, WAITING, Queue, find, gather, remove, take
from hpcsimkit.compiled.running import reserve, start
from hpcsimkit.compiled.scores import BY_RANK, score
from hpcsimkit.compiled.state import FREE, Integers, Jobs, Numbers, Rules, Run

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
def sorted_pass(jobs: Jobs, run: Run, rules: Rules, queue: Queue, now: int) -> int:
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
        take(queue, 0, 0, nodes, estimate)
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
        _backfill_in_order(jobs, run, rules, queue, now, room)
        return head
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    while True:
        place, position = find(queue, place, position, room, nodes, estimate)
        if place < 0:
            return head
        row = queue.rows[queue.order[place], position]
        blocks = queue.counters[BLOCKS]
        take(queue, place, position, nodes, estimate)
        if queue.counters[BLOCKS] < blocks:
            position = 0
        start(jobs, run, row, now, mode)
        room = _less(jobs, run, room, row)


@machine_code
def _backfill_in_order(
    jobs: Jobs, run: Run, rules: Rules, queue: Queue, now: int, room: tuple[int, int, int]
) -> None:
    """Backfill candidates in an order of their own; mirrors ``EASY._tried_in_order``."""
    waiting = np.empty(queue.counters[WAITING], dtype=np.int64)
    _backfill(jobs, run, rules, queue, waiting[: gather(queue, waiting)], now, room)


@machine_code
def _backfill(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    waiting: Integers,
    now: int,
    room: tuple[int, int, int],
) -> None:
    """Backfill jobs listed in the order of the policy; each is tried in the order of the candidates."""
    nodes, estimate = jobs.nodes, run.estimate
    count = 0
    for row in waiting:
        if nodes[row] <= room[0] and (estimate[row] <= room[1] or nodes[row] <= room[2]):
            waiting[count] = row
            count += 1
    candidates = waiting[:count]
    if rules.candidates != BY_RANK:
        scores = np.empty(count, dtype=np.float64)
        for position in range(count):
            row = candidates[position]
            scores[position] = score(jobs, estimate[row], rules.candidates, row, now, jobs.weight[1])
        candidates = candidates[np.argsort(scores, kind="mergesort")]
    rank = jobs.arrival if rules.order != BY_RANK or rules.window else jobs.rank
    mode = READY if rules.backfilling == FITTING else BACKFILLED
    for row in candidates:
        if nodes[row] <= room[0] and (estimate[row] <= room[1] or nodes[row] <= room[2]):
            remove(queue, row, rank, nodes, estimate)
            start(jobs, run, row, now, mode)
            room = _less(jobs, run, room, row)


@machine_code
def _first(scores: Numbers, gone: Integers, limit: int) -> int:
    """Return the position of the smallest score among the first `limit` jobs that wait."""
    best, seen = -1, 0
    for position in range(len(scores)):
        if gone[position]:
            continue
        if best < 0 or scores[position] < scores[best]:
            best = position
        seen += 1
        if seen == limit:
            break
    return best


@machine_code
def scored_pass(jobs: Jobs, run: Run, rules: Rules, queue: Queue, now: int) -> int:
    """Run a pass on a queue in order of arrival, with scores of this instant.

    Mirrors ``Pipeline.schedule`` with a ``ScoredQueue``, and with a window (``JobQueue.oldest``).

    Returns
    -------
    int
        Row of the first job that does not fit, -1 if there is none.
    """
    nodes, estimate = jobs.nodes, run.estimate
    count = queue.counters[WAITING]
    waiting = np.empty(count, dtype=np.int64)
    gather(queue, waiting)
    scores = np.empty(count, dtype=np.float64)
    for position in range(count):
        row = waiting[position]
        scores[position] = score(jobs, estimate[row], rules.order, row, now, jobs.weight[0])
    gone = np.zeros(count, dtype=np.int64)
    while queue.counters[WAITING]:
        position = _first(scores, gone, rules.window)
        head = waiting[position]
        if nodes[head] > run.counters[FREE]:
            break
        gone[position] = 1
        remove(queue, head, jobs.arrival, nodes, estimate)
        start(jobs, run, head, now, RESERVED if run.reserved[head] else READY)
    else:
        return -1
    if rules.backfilling == NONE:
        return head
    if rules.backfilling == EASY:
        run.reserved[head] = 1
    free, left = run.counters[FREE], 0
    for position in range(count):
        if not gone[position] and nodes[waiting[position]] <= free:
            waiting[left], scores[left] = waiting[position], scores[position]
            left += 1
    if left:
        fitting = waiting[:left][np.argsort(scores[:left], kind="mergesort")]
        _backfill(jobs, run, rules, queue, fitting, now, _room(jobs, run, rules, head, now))
    return head
