"""A run that pauses at an open seat: the same events and passes, in parts.

Mirrors :class:`~hpcsimkit.kernel.pipeline.Pipeline` with one open seat, on homogeneous nodes, by the rules of
the textbook or of the published simulators.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled import dirlab
from hpcsimkit.compiled.compilation import called, machine_code
from hpcsimkit.compiled.dirlab import NOBODY, Published
from hpcsimkit.compiled.filling import sort_candidates
from hpcsimkit.compiled.journal import STARTED, SUBMITTED, Journal, enter_in
from hpcsimkit.compiled.listing import BY_RANK, Listing, new_listing, sort
from hpcsimkit.compiled.loop import end_jobs, next_instant, submit_jobs
from hpcsimkit.compiled.passes import admissible, backfill, room_behind
from hpcsimkit.compiled.queue import WAITING, Queue, gather, remove
from hpcsimkit.compiled.running import start
from hpcsimkit.compiled.state import (
    ARRIVED,
    BACKFILLED,
    EASY,
    FREE,
    NO_LIMIT,
    PASSES,
    READY,
    RESERVED,
    RUNNING,
    Integers,
    Jobs,
    Rules,
    Run,
)
from hpcsimkit.compiled.state import STARTED as STARTS
from hpcsimkit.kernel.stalls import IDLE_WAKES

ORDER, INSPECTOR, BACKFILLER = range(3)
"""Codes of seats."""

OVER, PAUSED, STALLED = range(3)
"""States of a run: without further events, at a decision, or waking in vain."""

BETWEEN, SELECTS, INSPECTS, PLACES, FILLS = range(5)
"""Parts of a pass, of which the first one is none."""

PART, NOW, JOB, OFFERED, KEPT, NEWCOMER, OLDEST, NOTED = range(8)
FIRST_WAKE, LAST_WAKE, IDLE_VERSION, IDLE_COUNT = range(8, 12)
"""Positions in :attr:`Seat.counters`."""


class Seat(NamedTuple):
    """The open seat of a pipeline, and the part of the state that only paused runs need.

    Attributes
    ----------
    kind : int
        The seat: one of the codes above.
    skips, declines : bool
        Whether a single option is taken without a decision, and whether "no job" is an option.
    fitting, guarded : bool
        At the backfiller's seat: whether all jobs that fit are candidates, unless it is guarded, as those of
        :class:`~hpcsimkit.policies.dirlab.backfilling.FittingCandidates`; otherwise they are those of EASY.
    relax : float
        Permitted delay of the blocked job as a share of its waiting time.
    window, most : int
        Maximum number of jobs from which the order selects, and of options that are jobs.
    max_interval, max_rejections : int
        Limits of an inspector's rejections; -1 if there are none.
    stands_still : bool
        Whether the clock does not advance without events (published rules).
    following : int
        Submission time of the job after the last one [s]; -1 if there is none (published rules).
    holds : array of int64, shape (jobs,)
        Number of times that each job was held.
    wakes : array of int64, shape (2 jobs + 2,)
        Instants of requested passes [s], a ring. A pass requests one at most, so that those pending are not
        more than the passes after submissions and ends.
    listing : Listing
        The options, if they are jobs.
    counters : array of int64
        The part of the pass, the simulated time [s], the row of the job that is inspected or blocked, the
        number of options that are jobs, the row of the selected job that is kept, that of the only job
        submitted since the last pass, the position of the oldest waiting job in the order of submission (or
        an earlier one), the number of starts in the journal, the first and the last requested pass, starts
        and ends at the last requested pass, and the number of those in vain, at the positions named above.
    """

    kind: int
    skips: bool
    declines: bool
    fitting: bool
    guarded: bool
    relax: float
    window: int
    most: int
    max_interval: int
    max_rejections: int
    stands_still: bool
    following: int
    holds: Integers
    wakes: Integers
    listing: Listing
    counters: Integers


def new_seat(jobs: int, now: int, **rules: int | float | bool) -> Seat:
    """Return a seat before the first event of a run of some jobs, which begins now [s]."""
    counters = np.zeros(12, dtype=np.int64)
    counters[NOW] = now
    counters[JOB] = counters[KEPT] = counters[NEWCOMER] = NOBODY
    return Seat(
        **rules,  # type: ignore[arg-type]
        holds=np.zeros(jobs, dtype=np.int64),
        wakes=np.empty(2 * jobs + 2, dtype=np.int64),
        listing=new_listing(jobs),
        counters=counters,
    )


def advance(
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    published: Published | None,
    seat: Seat,
    journal: Journal,
    answer: int,
) -> int:
    """Answer the pending decision, if there is one, and run to the next; return the state of the run.

    Numba drops the code for what is None, so that the rules of the textbook and the published ones are
    compiled separately.

    `answer` is the row of the chosen job, -1 for none; at the inspector's seat 1 to accept, 0 to reject.
    There is no `published` by the rules of the textbook.
    """
    counters = seat.counters
    if counters[PART] != BETWEEN:
        _take_answer(jobs, run, queue, published, seat, answer)
        if _pass_pauses(jobs, rules, run, queue, published, seat, journal):
            return PAUSED
    while True:
        state = _next_events(jobs, rules, run, queue, published, seat, journal)
        if state != PAUSED:
            return state
        if queue.counters[WAITING]:
            run.counters[PASSES] += 1
            counters[PART] = SELECTS
            if _pass_pauses(jobs, rules, run, queue, published, seat, journal):
                return PAUSED


# --- events ------------------------------------------------------------------------------------------------


@machine_code
def _next_events(
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    published: Published | None,
    seat: Seat,
    journal: Journal,
) -> int:
    """Process the events before the next pass; return ``PAUSED`` if there are any."""
    counters = seat.counters
    if published is not None:
        counters[NEWCOMER] = NOBODY
        if counters[FIRST_WAKE] != counters[LAST_WAKE]:  # it comes before all others
            counters[NOW] = _next_wake(seat)
            counters[FIRST_WAKE] = counters[LAST_WAKE]
            return STALLED if _in_vain(jobs, run, seat) else PAUSED
        kind, row, now = dirlab.next_event(jobs, run, published, counters[NOW])
        if kind < 0:
            return OVER
        counters[NOW] = now
        dirlab.occur(jobs, run, queue, kind, row)
        enter_in(journal, kind, row, now)
        if kind == SUBMITTED:
            counters[NEWCOMER] = row
        return PAUSED
    now = min(next_instant(jobs, run, queue, None, None, None), _next_wake(seat))
    if now == NO_LIMIT:
        return OVER
    counters[NOW] = now
    end_jobs(jobs, run, None, None, None, None, None, None, None, journal, now)
    first = run.counters[ARRIVED]
    submit_jobs(jobs, run, queue, None, None, None, None, None, now)
    for place in range(first, run.counters[ARRIVED]):
        enter_in(journal, SUBMITTED, jobs.arrival_order[place], now)
    if _next_wake(seat) == now:
        counters[FIRST_WAKE] = (counters[FIRST_WAKE] + 1) % len(seat.wakes)
        if queue.counters[WAITING] and _in_vain(jobs, run, seat):
            return STALLED
    return PAUSED


@machine_code
def _next_wake(seat: Seat) -> int:
    """Return the instant of the next requested pass [s], after all others if there is none."""
    first = seat.counters[FIRST_WAKE]
    return NO_LIMIT if first == seat.counters[LAST_WAKE] else int(seat.wakes[first])


@machine_code
def _in_vain(jobs: Jobs, run: Run, seat: Seat) -> bool:
    """Count a requested pass, and return whether too many were idle; mirrors ``IdleWakes``."""
    counters, version = seat.counters, 2 * run.counters[STARTS] - run.counters[RUNNING]
    idle = version == counters[IDLE_VERSION] and not _anything_ahead(jobs, run)
    counters[IDLE_VERSION] = version
    counters[IDLE_COUNT] = counters[IDLE_COUNT] + 1 if idle else 0
    return bool(counters[IDLE_COUNT] > IDLE_WAKES)


@machine_code
def _anything_ahead(jobs: Jobs, run: Run) -> bool:
    """Return whether jobs are running or submissions pending; mirrors ``System.anything_ahead``."""
    return bool(run.counters[RUNNING] > 0 or run.counters[ARRIVED] < len(jobs.arrival_order))


@machine_code
def _request_wake(jobs: Jobs, run: Run, published: Published | None, seat: Seat) -> None:
    """Request a pass after the longest interval; mirrors ``Pipeline._wake`` and ``EventOrder.wake_time``."""
    counters = seat.counters
    if seat.max_interval < 0:
        return
    now = counters[NOW]
    at = now + seat.max_interval
    if published is not None:
        kind, _, next_event = dirlab.next_event(jobs, run, published, now)
        if not _anything_ahead(jobs, run):
            at = now
        elif (kind >= 0 and next_event <= at) or (
            run.counters[ARRIVED] == len(jobs.arrival_order) and 0 <= seat.following <= at
        ):
            return
    last = counters[LAST_WAKE]
    if last != counters[FIRST_WAKE] and seat.wakes[last - 1] == at:
        return
    seat.wakes[last] = at
    counters[LAST_WAKE] = (last + 1) % len(seat.wakes)


# --- a pass ------------------------------------------------------------------------------------------------


@machine_code
def _start(
    jobs: Jobs, run: Run, queue: Queue, published: Published | None, row: int, now: int, mode: int
) -> None:
    """Start a waiting job that fits."""
    if published is not None:
        dirlab.start(jobs, run, queue, published, row, now, mode)
    else:
        remove(queue, None, row, jobs.rank)
        start(jobs, run, row, now, mode)


@machine_code
def _take_answer(
    jobs: Jobs, run: Run, queue: Queue, published: Published | None, seat: Seat, answer: int
) -> None:
    """Take the answer of the open seat; what it declines ends the pass."""
    counters = seat.counters
    if seat.kind == BACKFILLER:
        if answer >= 0:
            _start(jobs, run, queue, published, answer, counters[NOW], BACKFILLED)
        else:
            counters[PART] = BETWEEN
        return
    if seat.kind == ORDER:
        counters[JOB] = answer
        declined = answer < 0
    else:
        declined = answer == 0
        seat.holds[counters[JOB]] += declined
    counters[PART] = BETWEEN if declined else PLACES
    if declined:
        _request_wake(jobs, run, published, seat)


@called
def _pass_pauses(
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    published: Published | None,
    seat: Seat,
    journal: Journal,
) -> bool:
    """Go on with a pass to its end, or to the next decision; return whether there is one."""
    counters = seat.counters
    paused = counters[PART] != BETWEEN and _goes_on(jobs, rules, run, queue, published, seat)
    if not paused:
        counters[PART] = BETWEEN
    _note_starts(run, published, seat, journal)
    return paused


@machine_code
def _note_starts(run: Run, published: Published | None, seat: Seat, journal: Journal) -> None:
    """Enter the starts of this part of a pass in the journal, in their order."""
    counters = seat.counters
    for number in range(counters[NOTED], run.counters[STARTS]):
        for place in range(run.counters[RUNNING]):
            if published is not None:
                row = run.expected[1, place]
                found = published.number[row] == number
            else:
                row = run.ends[2, place]
                found = run.ends[1, place] == number
            if found:
                enter_in(journal, STARTED, row, counters[NOW])
                break
    counters[NOTED] = run.counters[STARTS]


@machine_code
def _goes_on(
    jobs: Jobs, rules: Rules, run: Run, queue: Queue, published: Published | None, seat: Seat
) -> bool:
    """Select, inspect, place and start jobs, and backfill; return whether there is a decision.

    Mirrors ``Pipeline._run``.
    """
    counters = seat.counters
    while counters[PART] != FILLS:
        if not queue.counters[WAITING]:
            return False
        if counters[PART] == SELECTS:
            if _selection_pauses(jobs, rules, run, queue, seat):
                return True
            counters[PART] = INSPECTS
        job = counters[JOB]
        if counters[PART] == INSPECTS and seat.kind == INSPECTOR and _inspects(jobs, run, seat, job):
            return True
        counters[PART] = SELECTS
        if jobs.nodes[job] > run.counters[FREE]:
            break
        counters[KEPT] = NOBODY
        _start(jobs, run, queue, published, job, counters[NOW], RESERVED if run.reserved[job] else READY)
    if counters[PART] != FILLS and _block(jobs, rules, run, queue, published, seat):
        return False
    counters[PART] = FILLS
    return _candidates_pause(jobs, rules, run, queue, published, seat)


@machine_code
def _selection_pauses(jobs: Jobs, rules: Rules, run: Run, queue: Queue, seat: Seat) -> bool:
    """Select a job, or list the options of an open order seat; mirrors ``Pipeline._select``."""
    counters = seat.counters
    if counters[KEPT] >= 0:
        counters[JOB] = counters[KEPT]
    elif seat.kind != ORDER:
        counters[JOB] = queue.rows[queue.order[0], 0]
        if seat.window < queue.counters[WAITING]:
            _list_oldest(jobs, run, queue, seat)
            counters[JOB] = seat.listing.rows[0]
    else:
        counters[JOB], counters[OFFERED] = NOBODY, _list_oldest(jobs, run, queue, seat)
        single = counters[OFFERED] == 1 and not (seat.declines and _may_hold(jobs, run, seat))
        if not (seat.skips and single):
            return True
        counters[JOB] = seat.listing.rows[0]
    return False


@machine_code
def _may_hold(jobs: Jobs, run: Run, seat: Seat) -> bool:
    """Return whether another pass is certain to follow; mirrors ``Pipeline._may_hold``."""
    return _anything_ahead(jobs, run) or (seat.stands_still and seat.max_interval >= 0)


@machine_code
def _list_oldest(jobs: Jobs, run: Run, queue: Queue, seat: Seat) -> int:
    """List the jobs that arrived first, in the order of the queue; mirrors ``JobQueue.oldest``."""
    listing, arrived, counters = seat.listing, jobs.arrival_order, seat.counters
    count, wanted = 0, min(queue.counters[WAITING], seat.window)
    while run.start_time[arrived[counters[OLDEST]]] >= 0:
        counters[OLDEST] += 1
    place = counters[OLDEST]
    while count < wanted:
        row = arrived[place]
        if run.start_time[row] < 0:
            listing.rows[count], listing.scores[count] = row, jobs.rank[row]
            count += 1
        place += 1
    sort(listing, count)
    return count


@machine_code
def _inspects(jobs: Jobs, run: Run, seat: Seat, job: int) -> bool:
    """Return whether the inspector is asked; mirrors ``Pipeline._accept``."""
    if job == seat.counters[KEPT] or 0 <= seat.max_rejections <= seat.holds[job]:
        return False
    return not (seat.skips and not _may_hold(jobs, run, seat))


@machine_code
def _block(jobs: Jobs, rules: Rules, run: Run, queue: Queue, published: Published | None, seat: Seat) -> bool:
    """Let a known backfiller start jobs behind the first one that does not fit; return whether it does."""
    counters = seat.counters
    if published is not None and published.commits:
        counters[KEPT] = counters[JOB]
    if seat.kind == BACKFILLER:
        run.reserved[counters[JOB]] = 1
        return False
    if published is not None:
        if published.backfills:
            run.reserved[counters[JOB]] = 1
            dirlab.list_to_examine(jobs, run, queue, published, counters[JOB], counters[NEWCOMER])
            dirlab.backfill(jobs, run, queue, published, counters[NOW])
    elif rules.backfilling == EASY:
        run.reserved[counters[JOB]] = 1
        _backfill_by_easy(jobs, rules, run, queue, seat)
    return True


@machine_code
def _backfill_by_easy(jobs: Jobs, rules: Rules, run: Run, queue: Queue, seat: Seat) -> None:
    """Start the jobs that EASY admits."""
    now = seat.counters[NOW]
    room = room_behind(jobs, run, rules, seat.counters[JOB], now)
    count = gather(queue, seat.listing.rows)
    backfill(jobs, run, rules, queue, None, seat.listing, count, now, room)


# --- the candidates of an open backfiller ------------------------------------------------------------------


@machine_code
def _candidates_pause(
    jobs: Jobs, rules: Rules, run: Run, queue: Queue, published: Published | None, seat: Seat
) -> bool:
    """List the candidates, and start a single one; mirrors ``Pipeline._ask_to_backfill``."""
    counters = seat.counters
    while True:
        if seat.fitting:
            count = _list_fitting(jobs, run, queue, published, seat)
        else:
            count = _list_admissible(jobs, rules, run, queue, seat)
        counters[OFFERED] = min(count, seat.most)
        if not count or not (seat.skips and counters[OFFERED] == 1 and not seat.declines):
            return bool(count > 0)
        _start(jobs, run, queue, published, seat.listing.rows[0], counters[NOW], BACKFILLED)


@machine_code
def _list_fitting(jobs: Jobs, run: Run, queue: Queue, published: Published | None, seat: Seat) -> int:
    """List the jobs that fit, in the order of the queue; mirrors ``FittingCandidates._candidates``."""
    rows, count = seat.listing.rows, 0
    for position in range(gather(queue, rows)):
        if jobs.nodes[rows[position]] <= run.counters[FREE]:
            rows[count] = rows[position]
            count += 1
    if not count:
        return 0
    if published is not None:
        published.counters[dirlab.SORTED] = run.counters[STARTS]
    if seat.guarded or count == 1:
        before = dirlab.deadline(jobs, run, seat.counters[JOB], seat.relax)
        listed, count = count, 0
        for position in range(listed):
            if seat.counters[NOW] + run.estimate[rows[position]] < before:
                rows[count] = rows[position]
                count += 1
    return count


@machine_code
def _list_admissible(jobs: Jobs, rules: Rules, run: Run, queue: Queue, seat: Seat) -> int:
    """List the jobs that EASY admits, in the order of its candidates; mirrors ``EASY.fill``."""
    listing, now, count = seat.listing, seat.counters[NOW], 0
    room = room_behind(jobs, run, rules, seat.counters[JOB], now)
    for position in range(gather(queue, listing.rows)):
        row = listing.rows[position]
        if admissible(room, jobs.nodes[row], run.estimate[row]):
            listing.rows[count] = row
            count += 1
    if rules.candidates != BY_RANK:
        sort_candidates(jobs, run, rules, None, listing, None, count, now)
    return count
