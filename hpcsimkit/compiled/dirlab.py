"""The loop and the passes by the rules of RLScheduler, SchedInspector and RLBackfilling.

Mirrors :class:`~hpcsimkit.kernel.event_order.DirlabOrder` and, on homogeneous nodes, the pipelines of
:mod:`hpcsimkit.policies.dirlab` without open seats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.journal import ENDED, SUBMITTED
from hpcsimkit.compiled.listing import Listing, new_listing, sort
from hpcsimkit.compiled.queue import WAITING, Queue, add, gather, remove
from hpcsimkit.compiled.running import enter, leave
from hpcsimkit.compiled.shifting import open_gap
from hpcsimkit.compiled.state import (
    ARRIVED,
    BACKFILLED,
    FREE,
    PASSES,
    READY,
    RESERVED,
    RUNNING,
    STARTED,
    Integers,
    Jobs,
    Numbers,
    Run,
)
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.dirlab.backfilling import PublishedEASY

KEPT, HEAD, LISTED, SORTED = range(4)
"""Positions in :attr:`Published.counters`."""

NOBODY = -1


class Published(NamedTuple):
    """The rules of a pipeline, and the part of the state that only these rules need.

    Attributes
    ----------
    commits, backfills, skips_after_start : bool
        Whether the pipeline keeps a selected job until it starts, whether it backfills, and whether
        backfilling skips the job after a started one.
    relax : float
        Permitted delay of the blocked job as a share of its waiting time.
    listing : Listing
        Jobs that backfilling examines: those that waited when the blocked job was selected, and later ones.
    number : array of int64, shape (jobs,)
        Number of the start of each job.
    deadline : array of float64, shape (1,)
        Deadline for the expected ends of backfilled jobs [s].
    counters : array of int64
        Row of the selected job that is kept, row of the blocked job, number of listed jobs, and number of
        starts before the last reservation, at the positions named above.
    """

    commits: bool
    backfills: bool
    skips_after_start: bool
    relax: float
    listing: Listing
    number: Integers
    deadline: Numbers
    counters: Integers


def new_published(policy: Pipeline, jobs: int) -> Published:
    """Return the rules of a pipeline and the state before the first event."""
    easy = policy.backfiller if isinstance(policy.backfiller, PublishedEASY) else None
    return Published(
        commits=bool(policy.commit),
        backfills=easy is not None,
        skips_after_start=easy is not None and bool(easy.skips_after_start),
        relax=0.0 if easy is None else float(easy.relax),
        listing=new_listing(jobs),
        number=np.zeros(jobs, dtype=np.int64),
        deadline=np.zeros(1),
        counters=np.array([NOBODY, NOBODY, 0, 0], dtype=np.int64),
    )


def simulate(jobs: Jobs, run: Run, queue: Queue, published: Published) -> None:
    """Process all events one at a time, with a pass after each; mirrors ``DirlabOrder``."""
    now = -(2**62)
    while True:
        kind, row, now = next_event(jobs, run, published, now)
        if kind < 0:
            return
        occur(jobs, run, queue, kind, row)
        if queue.counters[WAITING]:
            run.counters[PASSES] += 1
            _pass(jobs, run, queue, published, row if kind == SUBMITTED else NOBODY, now)


@machine_code
def next_event(jobs: Jobs, run: Run, published: Published, now: int) -> tuple[int, int, int]:
    """Return kind, row and time [s] of the next event; the kind is -1 if there is none.

    Submissions come before ends, in the order of the log, and none before its predecessor.
    """
    ending, end = _next_end(jobs, run, published)
    row = run.counters[ARRIVED]
    if row < len(jobs.submit_time) and (ending < 0 or max(jobs.submit_time[row], now) <= end):
        return SUBMITTED, row, max(jobs.submit_time[row], now)
    if ending >= 0:
        return ENDED, ending, end
    return -1, NOBODY, now


@machine_code
def occur(jobs: Jobs, run: Run, queue: Queue, kind: int, row: int) -> None:
    """Submit or end a job."""
    if kind == SUBMITTED:
        run.counters[ARRIVED] += 1
        add(queue, None, row, jobs.rank, jobs.nodes, run.estimate)
    else:
        leave(jobs, run, row)


@machine_code
def _next_end(jobs: Jobs, run: Run, published: Published) -> tuple[int, int]:
    """Return the row of the job that ends first, and its end [s]; mirrors ``RunningList.next_to_end``."""
    ending, end = NOBODY, 0
    for place in range(run.counters[RUNNING]):
        row = run.expected[1, place]
        its_end = run.start_time[row] + jobs.run_time[row]
        if ending < 0 or its_end < end or (its_end == end and _precedes(run, published, row, ending)):
            ending, end = row, its_end
    return ending, end


@machine_code
def _precedes(run: Run, published: Published, row: int, other: int) -> bool:
    """Return whether a job ends before another one at the same instant; mirrors ``RunningList``.

    A reservation sorts the jobs that run by expected end, and those started later follow them.
    """
    if max(published.number[row], published.number[other]) < published.counters[SORTED]:
        expected_end = run.start_time[row] + run.estimate[row]
        other_expected_end = run.start_time[other] + run.estimate[other]
        if expected_end != other_expected_end:
            return bool(expected_end < other_expected_end)
    return bool(published.number[row] < published.number[other])


@machine_code
def start(jobs: Jobs, run: Run, queue: Queue, published: Published, row: int, now: int, mode: int) -> None:
    """Start a waiting job that fits."""
    remove(queue, None, row, jobs.rank)
    published.number[row] = run.counters[STARTED]
    enter(jobs, run, row, now, mode)


@machine_code
def _pass(jobs: Jobs, run: Run, queue: Queue, published: Published, newcomer: int, now: int) -> None:
    """Run a pass; mirrors ``Pipeline.schedule``."""
    counters = published.counters
    while queue.counters[WAITING]:
        head = counters[KEPT] if counters[KEPT] != NOBODY else queue.rows[queue.order[0], 0]
        if jobs.nodes[head] > run.counters[FREE]:
            break
        counters[KEPT] = NOBODY
        start(jobs, run, queue, published, head, now, RESERVED if run.reserved[head] else READY)
    else:
        return
    if published.commits:
        counters[KEPT] = head
    if published.backfills:
        run.reserved[head] = 1
        list_to_examine(jobs, run, queue, published, head, newcomer)
        backfill(jobs, run, queue, published, now)


@machine_code
def list_to_examine(
    jobs: Jobs, run: Run, queue: Queue, published: Published, head: int, newcomer: int
) -> None:
    """List the jobs to examine, and reserve for a new blocked job; mirrors ``PublishedEASY.fill``."""
    listing, counters = published.listing, published.counters
    if head != counters[HEAD]:
        counters[HEAD], counters[LISTED] = head, gather(queue, listing.rows)
        for position in range(counters[LISTED]):
            listing.scores[position] = jobs.weight[1, listing.rows[position]]
        sort(listing, counters[LISTED])
        published.deadline[0] = _reserve(jobs, run, published, head)
    elif newcomer >= 0:
        position, score = counters[LISTED], jobs.weight[1, newcomer]
        while position > 0 and listing.scores[position - 1] > score:
            position -= 1
        open_gap(listing.rows, position, counters[LISTED])
        open_gap(listing.scores, position, counters[LISTED])
        listing.rows[position], listing.scores[position] = newcomer, score
        counters[LISTED] += 1


@machine_code
def _reserve(jobs: Jobs, run: Run, published: Published, head: int) -> float:
    """Return the deadline for the expected ends of backfilled jobs, which sorts the running ones."""
    published.counters[SORTED] = run.counters[STARTED]
    return deadline(jobs, run, head, published.relax)


@machine_code
def deadline(jobs: Jobs, run: Run, head: int, relax: float) -> float:
    """Return the time at which a blocked job will fit, and its permitted delay [s].

    Mirrors ``reservation``.
    """
    level, place = run.counters[FREE], 0
    while level < jobs.nodes[head]:
        level += jobs.nodes[run.expected[1, place]]
        place += 1
    expected_end = run.expected[0, place - 1]
    return float(expected_end + relax * (expected_end - jobs.submit_time[head]))


@machine_code
def backfill(jobs: Jobs, run: Run, queue: Queue, published: Published, now: int) -> None:
    """Start listed jobs that fit and are expected to end before the deadline; mirrors ``PublishedEASY.fill``.

    Jobs that no longer wait leave the list.
    """
    rows, scores = published.listing.rows, published.listing.scores
    window, kept, skip = published.deadline[0] - now, 0, False
    for position in range(published.counters[LISTED]):
        row, score = rows[position], scores[position]
        if run.start_time[row] >= 0:
            continue
        if not skip and run.estimate[row] < window and jobs.nodes[row] <= run.counters[FREE]:
            start(jobs, run, queue, published, row, now, BACKFILLED)
            skip = published.skips_after_start
            continue
        skip = False
        rows[kept], scores[kept] = row, score
        kept += 1
    published.counters[LISTED] = kept
