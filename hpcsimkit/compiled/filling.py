"""Backfilling behind a blocked job: the order of candidates, and EASY and greedy on machines with pauses."""

from __future__ import annotations

from typing import cast

import numpy as np

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.fair_shares import Shares, minus_priority, value_usage
from hpcsimkit.compiled.listing import BY_RANK, Listing, score, sort
from hpcsimkit.compiled.machine_room import admits, reserve, take
from hpcsimkit.compiled.machines import (
    BLOCKED,
    CHANGES,
    FULL,
    HAS_ROOM,
    HEAD,
    MARK,
    NEED,
    NEWCOMERS,
    SEEN_PASS,
    SETTLED,
    SHADOW_TIME,
    Machines,
    fits_now,
    overrun,
    record_start,
)
from hpcsimkit.compiled.needs import INSIDE, NOW
from hpcsimkit.compiled.placing import allocate
from hpcsimkit.compiled.queue import Queue, gather, remove
from hpcsimkit.compiled.state import (
    ARRIVED,
    BACKFILLED,
    EASY,
    FITTING,
    GREEDY,
    NO_LIMIT,
    NONE,
    PASSES,
    READY,
    Jobs,
    Rules,
    Run,
)

START, LIST, START_LISTED = cast(tuple[int, ...], tuple(map(np.int64, range(3))))
"""What becomes of admitted jobs; no literals, for each of which numba would compile :func:`_try` again."""


@machine_code
def sort_candidates(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    machines: Machines | None,
    listing: Listing,
    shares: Shares | None,
    count: int,
    now: int,
) -> None:
    """Sort the first `count` listed jobs in the order of the candidates; mirrors ``Order.sort``.

    `shares` are those of the listing, an argument of their own so that numba drops what they do not need.
    """
    if shares is not None and count:
        value_usage(shares, run, machines, now)
    for position in range(count):
        row = listing.rows[position]
        if shares is not None:
            listing.scores[position] = minus_priority(shares, jobs, row, now)
        else:
            listing.scores[position] = score(
                jobs, run.estimate[row], rules.candidates, row, now, jobs.weight[1]
            )
    sort(listing, count)


@separate
def start(
    jobs: Jobs, run: Run, rules: Rules, machines: Machines, row: int, now: int, mode: int, level: int
) -> None:
    """Start a job on a level in which it fits; mirrors ``Pipeline._place`` and ``System.start``."""
    allocate(machines, rules.placement, row, level)
    record_start(jobs, run, machines, row, now, mode)


@pasted
def skips(jobs: Jobs, run: Run, rules: Rules, machines: Machines, head: int, now: int) -> bool:
    """Return whether nothing can be started; mirrors ``SettlingBackfiller.skip``."""
    state = machines.counters
    if rules.window or state[SETTLED] != machines.counters[CHANGES] or state[BLOCKED] != head:
        return False
    for place in range(state[NEWCOMERS], run.counters[ARRIVED]):
        if fits_now(machines, jobs.arrival_order[place]):
            return False
    if overrun(machines, now):
        return False
    state[SEEN_PASS] = run.counters[PASSES]
    return True


@pasted
def _list_fitting(machines: Machines, queue: Queue, listing: Listing) -> int:
    """List the waiting jobs that fit, in the order of the queue, and return their number.

    Mirrors ``Machines.fitting`` of the cluster.
    """
    count = 0
    for position in range(gather(queue, listing.rows)):
        row = listing.rows[position]
        if fits_now(machines, row):
            listing.rows[count] = row
            count += 1
    return count


@pasted
def _only_newcomer(run: Run, rules: Rules, machines: Machines, head: int, now: int) -> bool:
    """Return whether only the job that has just arrived may be backfilled, with the last reservation.

    Mirrors the beginning of ``EASY.fill``.
    """
    state = machines.counters
    return bool(
        rules.backfilling == EASY
        and state[SETTLED] == machines.counters[CHANGES]
        and state[SEEN_PASS] == run.counters[PASSES] - 1
        and state[HEAD] == head
        and state[NEWCOMERS] == run.counters[ARRIVED] - 1
        and not overrun(machines, now)
    )


@separate
def fill(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    machines: Machines,
    listing: Listing,
    head: int,
    listed: int,
    now: int,
) -> None:
    """Backfill jobs that fit, listed in the order of the policy, or all in the queue if `listed` is -1.

    Mirrors ``EASY.fill`` and ``Greedy.fill``.
    """
    if rules.backfilling == NONE:
        return
    state, newcomer = machines.counters, _only_newcomer(run, rules, machines, head, now)
    state[BLOCKED], state[SEEN_PASS] = head, run.counters[PASSES]
    if newcomer:  # mirrors EASY._newcomer
        listing.rows[0] = jobs.arrival_order[state[NEWCOMERS]]
        listed = int(fits_now(machines, listing.rows[0]))
    else:
        state[HEAD], state[SETTLED], state[HAS_ROOM] = head, state[CHANGES], 0
        if listed < 0:
            listed = _list_fitting(machines, queue, listing)
    if not listed:
        return
    window = _reserved(rules, machines, head, now)
    by_score = rules.candidates != BY_RANK and not newcomer
    if by_score:
        listed = _try(jobs, run, rules, queue, machines, listing, head, listed, now, window, LIST)
        sort_candidates(jobs, run, rules, machines, listing, listing.shares, listed, now)
    task = START_LISTED if by_score else START
    started = _try(jobs, run, rules, queue, machines, listing, head, listed, now, window, task)
    if started or (by_score and listed):
        state[SETTLED] = -1
        if newcomer:
            state[HEAD] = -1
    if not rules.window and rules.backfilling in (EASY, GREEDY):  # mirrors the end of Pipeline._backfill
        state[SETTLED] = state[CHANGES]


@pasted
def _reserved(rules: Rules, machines: Machines, head: int, now: int) -> int:
    """Return the time until the shadow time of the blocked job [s], which is found if it is not known."""
    state = machines.counters
    if rules.backfilling != EASY:
        return NO_LIMIT
    if state[HAS_ROOM] != 1:
        state[SHADOW_TIME], state[HAS_ROOM] = reserve(machines, head, now), 1
    return int(state[SHADOW_TIME] - now)


@separate
def _try(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    machines: Machines,
    listing: Listing,
    head: int,
    listed: int,
    now: int,
    window: int,
    task: int,
) -> int:
    """Start the listed jobs that are admitted in their turn, or only list them, and return their number.

    Mirrors ``Machines.admissible`` of the cluster and ``_each_taken``. Unless the task is `START_LISTED`,
    once no capacity is left for a need, its jobs are not tried again, but for one exception: after the first
    job that is started.
    """
    memory, admitted, mark = machines.memory, 0, machines.counters[MARK] + 1
    for position in range(listed):
        row = listing.rows[position]
        number, long = machines.jobs[NEED, row], run.estimate[row] > window
        if task != START_LISTED and memory[number, FULL + int(long)] == mark:
            continue
        if not admits(machines, head, row, long):
            memory[number, FULL + int(long)] = mark
            continue
        if task == LIST:
            listing.rows[admitted] = row
        else:
            remove(queue, None, row, jobs.rank)
            mode = READY if rules.backfilling == FITTING else BACKFILLED
            start(jobs, run, rules, machines, row, now, mode, INSIDE if long else NOW)
            if long:
                take(machines, row)
        admitted += 1
        mark += admitted == 1
    machines.counters[MARK] = mark
    return admitted
