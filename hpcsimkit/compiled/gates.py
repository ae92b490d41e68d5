"""Gates: whether a job may start now and, if not, for which reason; jobs that join the queue and leave it.

Mirrors :mod:`hpcsimkit.kernel.gate`, the gates of the kit, and what ``Run`` does with their answers. No job
is stopped, so that each is due for its turn in an array, or for its licences, once.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from hpcsimkit.compiled.compilation import called, machine_code, pasted
from hpcsimkit.compiled.plan import Plan, forget_reservation
from hpcsimkit.compiled.queue import WAITING, Queue, add, remove
from hpcsimkit.compiled.running import pop, push, start
from hpcsimkit.compiled.state import Integers, Jobs, Run

UNSEEN, WAITS, RUNS, DONE, REJECTED, HELD, AWAITED = range(7)
"""States of jobs; those that are awaited are submitted once another job has ended."""

NONE, DEPENDENCY, NEVER, BEGIN_TIME, USER, ARRAY_LIMIT, LICENSES = cast(
    tuple[int, ...], tuple(map(np.int64, range(7)))
)
"""Codes of the reasons for which a job is held; `NEVER`: it may never start."""

STATE, SINCE, REASON, LAST, ASKED, MARK, GROUP, BEGIN, HOLD, WELL, THINK, FIRST_FOLLOWER, LAST_FOLLOWER = (
    range(13)
)
CONDITION, FIRST_TERM, LAST_TERM, NAME, SINGLETON, ARRAY, LIMITED, TURN, TURNS, KIND, TAKES = range(13, 24)
"""Rows of :attr:`Gates.jobs`."""

OPEN, MET, ANY_OF, NOT_BEFORE, FIRST_JOB, LAST_JOB = range(6)
"""Rows of :attr:`Gates.conditions`."""

ANY, OK, NOT_OK, STARTED = range(4)
"""Kinds of terms: that another job has ended, has ended well or has not, or that it has started."""

FIRST, END, LIMIT, RUNNING = range(4)
"""Rows of :attr:`Gates.names`, :attr:`Gates.arrays` and :attr:`Gates.kinds`, as far as they have them."""

ASKS, LOGGED, CHANGED, NEWCOMERS, JOINED, HELD_JOBS, WANTED, AGAIN, LACKING = range(9)
"""Positions in :attr:`Gates.counters`."""

NOT_DUE, DUE, LEFT = range(3)
"""Whether a job is, or has been, among those that are due for a turn or for licences."""


class Gates(NamedTuple):
    """The state of the gates, in few arrays: the more there are, the longer takes compiling.

    Attributes
    ----------
    jobs : array of int64, shape (24, jobs)
        State of each job; since when a gate holds it [s], for which reason, and its last interval in the log;
        the time at which the gates are asked about it next [s]; a mark; its rank by its keys, times the
        largest number of jobs that may join the queue; its begin time and the end of its hold [s]; whether it
        ends well; its think time [s], and the members that follow it; its condition, and the terms that other
        conditions have about it; its user and name, and the condition of a singleton; its array, whether it
        has a limit there, whether it is due for a turn, and a mark; its kind, and whether it is due for it.
    conditions : array of int64, shape (6, conditions)
        Number of open terms, whether the condition is met (-1 if undecided), whether one term is enough, the
        time from which on it is met [s], and the members that have it.
    terms : array of int64, shape (3, terms)
        Kind and delay [s] of each term, and the condition of which it is one.
    members : array of int64
        Rows of the jobs of all lists.
    names : array of int64, shape (2, names)
        Next and last one of the members of the same user and name.
    arrays : array of int64, shape (4, arrays)
        Members that are due for their turns, limit, and number of jobs that run.
    kinds : array of int64, shape (2, kinds)
        Members that ask for the same licences, and are due for them.
    wanted : array of int64, shape (kinds, pools)
        Number of licences that the jobs of each kind ask for.
    free : array of int64, shape (pools,)
        Number of free licences.
    asks : array of int64, shape (3, places)
        Binary heap of the submissions, and of the times at which the gates are asked again: time [s] and row.
    log : array of int64, shape (5, places)
        Row, beginning and end [s] and reason of each interval in which a job was held, and the one before.
    changed : array of int64, shape (jobs,)
        Space for the jobs to ask about again.
    newcomers : array of int64, shape (jobs,)
        Rows of the jobs that have joined the queue since the last pass.
    counters : array of int64
        Number of asks, of intervals, of changed jobs, of newcomers, of jobs that have joined, and of those
        that are held; whether a pass is wanted, whether another one follows at this instant, and whether
        there was too little space, at the positions named above.
    """

    jobs: Integers
    conditions: Integers
    terms: Integers
    members: Integers
    names: Integers
    arrays: Integers
    kinds: Integers
    wanted: Integers
    free: Integers
    asks: Integers
    log: Integers
    changed: Integers
    newcomers: Integers
    counters: Integers


@pasted
def may_start(gates: Gates | None, row: int) -> bool:
    """Return whether no start of this pass has let a job leave the queue; mirrors ``_still_waiting``."""
    return True if gates is None else bool(gates.jobs[STATE, row] == WAITS)


@machine_code
def start_waiting(
    jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, gates: Gates | None, row: int, now: int, mode: int
) -> bool:
    """Start a job of the queue; return whether other jobs had to leave the queue."""
    remove(queue, None, row, jobs.rank)
    start(jobs, run, row, now, mode)
    return False if gates is None else after_start(jobs, run, queue, plan, gates, row, now)


# --- answers -----------------------------------------------------------------------------------------------


@called
def _answer(gates: Gates, row: int, now: int) -> tuple[int, int]:
    """Return the reason for which a job is held, and when to ask again [s], -1 for no time.

    Mirrors ``Gates.holds`` and the gates.
    """
    about, condition = gates.jobs, gates.jobs[CONDITION, row]
    if condition >= 0 and gates.conditions[MET, condition] != 1:
        return DEPENDENCY if gates.conditions[MET, condition] < 0 else NEVER, -1
    if condition >= 0 and gates.conditions[NOT_BEFORE, condition] > now:
        return DEPENDENCY, gates.conditions[NOT_BEFORE, condition]
    if about[BEGIN, row] > now:
        return BEGIN_TIME, about[BEGIN, row]
    if about[HOLD, row] > now:
        return USER, about[HOLD, row]
    if about[LIMITED, row] and not _has_turn(gates, row):
        return ARRAY_LIMIT, -1
    if about[KIND, row] >= 0 and not _has_licenses(gates, row):
        return LICENSES, -1
    return NONE, -1


@machine_code
def _has_turn(gates: Gates, row: int) -> bool:
    """Return whether it is the turn of a job, which is due from now on; mirrors ``ArrayLimits.holds``."""
    array = gates.jobs[ARRAY, row]
    _count_in(gates.jobs, TURN, gates.arrays, array, gates.members, row)
    left = gates.arrays[LIMIT, array] - gates.arrays[RUNNING, array]
    for place in range(gates.arrays[FIRST, array], gates.arrays[END, array]):
        if left <= 0:
            break
        other = gates.members[place]
        if other == row:
            return True
        left -= gates.jobs[TURN, other] == DUE
    return False


@machine_code
def _has_licenses(gates: Gates, row: int) -> bool:
    """Return whether there are the licences of a job, which is due from now on; see ``Licenses.holds``."""
    kind = gates.jobs[KIND, row]
    _count_in(gates.jobs, TAKES, gates.kinds, kind, gates.members, row)
    return _suffices(gates, kind)


@machine_code
def _count_in(
    about: Integers, column: int, lists: Integers, number: int, members: Integers, row: int
) -> None:
    """Add a job to the end of a list of those that are due, unless it has been added before."""
    if about[column, row] == NOT_DUE:
        about[column, row] = DUE
        members[lists[END, number]] = row
        lists[END, number] += 1


@machine_code
def _suffices(gates: Gates, kind: int) -> bool:
    """Return whether there are as many free licences as the jobs of a kind ask for."""
    missing = False
    for pool in range(len(gates.free)):
        missing |= gates.wanted[kind, pool] > gates.free[pool]
    return not missing


# --- the record --------------------------------------------------------------------------------------------


@called
def _release(gates: Gates, row: int, now: int, for_good: bool) -> None:
    """Enter that no gate holds a job any more; mirrors ``Ledger.release``."""
    about, place = gates.jobs, gates.counters[LOGGED]
    reason, about[REASON, row] = about[REASON, row], NONE
    if reason == NONE or (now == about[SINCE, row] and not for_good):
        return
    if place == gates.log.shape[1]:
        gates.counters[LACKING] = 1
        return
    gates.log[0, place], gates.log[1, place], gates.log[2, place] = row, about[SINCE, row], now
    gates.log[3, place], gates.log[4, place] = reason, about[LAST, row]
    about[LAST, row] = place
    gates.counters[LOGGED] = place + 1


@machine_code
def _hold(gates: Gates, row: int, now: int, reason: int) -> None:
    """Enter that a gate holds a job; mirrors ``Ledger.hold``."""
    about, log = gates.jobs, gates.log
    gates.counters[HELD_JOBS] += about[STATE, row] != HELD
    about[STATE, row] = HELD
    if about[REASON, row] == reason:
        return
    _release(gates, row, now, False)
    last = about[LAST, row]
    about[SINCE, row], about[REASON, row] = now, reason
    if (
        last >= 0 and log[2, last] == now and log[3, last] == reason
    ):  # it was in the queue at this instant only
        about[SINCE, row], about[LAST, row] = log[1, last], log[4, last]
        log[3, last] = NONE


@called
def _ask_at(gates: Gates, row: int, at: int) -> None:
    """Ask the gates about a job at a time [s], or submit it then; mirrors ``Run._ask_at``."""
    place = gates.counters[ASKS]
    if gates.jobs[ASKED, row] == at:
        return
    if place == gates.asks.shape[1]:
        gates.counters[LACKING] = 1
        return
    gates.jobs[ASKED, row] = at
    push(gates.asks, place, at, row, row)
    gates.counters[ASKS] = place + 1


@machine_code
def _note(gates: Gates, row: int) -> None:
    """Note a job to ask about again, once."""
    if not gates.jobs[MARK, row]:
        gates.jobs[MARK, row] = 1
        gates.changed[gates.counters[CHANGED]] = row
        gates.counters[CHANGED] += 1


# --- what changes ------------------------------------------------------------------------------------------


@machine_code
def _settle(gates: Gates, condition: int, met: bool, at: int) -> None:
    """Settle one of the terms of a condition, and note its jobs if that changes anything.

    Mirrors ``Condition.settle``.
    """
    about = gates.conditions
    before, time = about[MET, condition], about[NOT_BEFORE, condition]
    about[OPEN, condition] -= 1
    if met and about[ANY_OF, condition] and before == 1:
        about[NOT_BEFORE, condition] = min(time, at)
    elif met:
        about[NOT_BEFORE, condition] = max(time, at)
    if before < 0 and (met == (about[ANY_OF, condition] == 1) or not about[OPEN, condition]):
        about[MET, condition] = met
    after = about[MET, condition]
    if after >= 0 and (after != before or about[NOT_BEFORE, condition] != time):
        for place in range(about[FIRST_JOB, condition], about[LAST_JOB, condition]):
            _note(gates, gates.members[place])


@called
def _settle_terms(gates: Gates, row: int, now: int, well: bool, begins: bool) -> None:
    """Settle the terms about a job that begins or is over; mirrors ``AfterJobs``."""
    state = gates.jobs[STATE, row]
    for place in range(gates.jobs[FIRST_TERM, row], gates.jobs[LAST_TERM, row]):
        kind, delay = gates.terms[0, place], gates.terms[1, place]
        if (kind != STARTED) if begins else (kind == STARTED and state != REJECTED):
            continue
        met = kind in (ANY, STARTED) or (kind == OK) == well
        _settle(gates, gates.terms[2, place], met, now + delay if delay else 0)


@called
def _settle_singleton(gates: Gates, row: int) -> None:
    """Let the next job of the same user and name start, if it is a singleton; mirrors ``Names.over``."""
    name, names = gates.jobs[NAME, row], gates.names
    if name < 0:
        return
    place = names[FIRST, name]
    while place < names[END, name] and _is_over(gates, gates.members[place]):
        place += 1
    names[FIRST, name] = place
    if place == names[END, name]:
        return
    following = gates.members[place]
    condition, gates.jobs[SINGLETON, following] = gates.jobs[SINGLETON, following], -1
    if condition >= 0:
        _settle(gates, condition, True, 0)


@machine_code
def _is_over(gates: Gates, row: int) -> bool:
    state = gates.jobs[STATE, row]
    return state in (DONE, REJECTED)


@called
def _change_turns(gates: Gates, row: int, running: int) -> None:
    """Note the jobs whose turn it is now, or no longer; mirrors ``ArrayLimits._changed``."""
    about, arrays, array = gates.jobs, gates.arrays, gates.jobs[ARRAY, row]
    if array < 0:
        return
    first, last = arrays[FIRST, array], _mark_turns(gates, array, 1)
    if about[TURN, row] == DUE:
        about[TURN, row] = LEFT
    arrays[RUNNING, array] += running
    last = max(last, _mark_turns(gates, array, 2))
    for place in range(first, last):
        other = gates.members[place]
        if about[TURNS, other] == 1 or about[TURNS, other] == 2:
            _note(gates, other)
        about[TURNS, other] = 0
    while first < arrays[END, array] and about[TURN, gates.members[first]] == LEFT:
        first += 1
    arrays[FIRST, array] = first


@machine_code
def _mark_turns(gates: Gates, array: int, mark: int) -> int:
    """Add a mark to those whose turn it is in an array; return the place behind them."""
    place, last = gates.arrays[FIRST, array], gates.arrays[END, array]
    left = gates.arrays[LIMIT, array] - gates.arrays[RUNNING, array]
    while left > 0 and place < last:
        row = gates.members[place]
        if gates.jobs[TURN, row] == DUE:
            gates.jobs[TURNS, row] += mark
            left -= 1
        place += 1
    return int(place)


@called
def _give_licenses(gates: Gates, row: int, sign: int) -> None:
    """Let a job return its licences (1), take them (-1), or do without (0), and note whom that concerns.

    Mirrors ``Licenses.after_start`` and ``Licenses.after_stop``.
    """
    kind = gates.jobs[KIND, row]
    if kind < 0:
        return
    if gates.jobs[TAKES, row] == DUE:
        gates.jobs[TAKES, row] = LEFT
    if not sign:
        return
    for pool in range(len(gates.free)):
        gates.free[pool] += sign * gates.wanted[kind, pool]
    for other in range(len(gates.wanted)):
        if _share_a_pool(gates, kind, other) and _suffices(gates, other) == (sign > 0):
            _note_due(gates, other)


@machine_code
def _share_a_pool(gates: Gates, kind: int, other: int) -> bool:
    shared = 0
    for pool in range(len(gates.free)):
        shared += gates.wanted[kind, pool] * gates.wanted[other, pool]
    return bool(shared > 0)


@machine_code
def _note_due(gates: Gates, kind: int) -> None:
    """Note the jobs of a kind that are due, and drop the others from the list."""
    kept = gates.kinds[FIRST, kind]
    for place in range(kept, gates.kinds[END, kind]):
        row = gates.members[place]
        if gates.jobs[TAKES, row] == DUE:
            _note(gates, row)
            gates.members[kept] = row
            kept += 1
    gates.kinds[END, kind] = kept


# --- events ------------------------------------------------------------------------------------------------


@called
def after_start(
    jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, gates: Gates, row: int, now: int
) -> bool:
    """Process the start of a job; return whether others had to leave the queue."""
    gates.jobs[STATE, row] = RUNS
    _settle_terms(gates, row, now, True, True)
    _change_turns(gates, row, 1)
    _give_licenses(gates, row, -1)
    return _ask_again(jobs, run, queue, plan, gates, now)


@called
def after_end(
    jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, gates: Gates, row: int, now: int
) -> None:
    """Process the end of a job; mirrors ``Run._over``."""
    about = gates.jobs
    about[STATE, row] = DONE
    for place in range(about[FIRST_FOLLOWER, row], about[LAST_FOLLOWER, row]):
        follower = gates.members[place]
        submitted, think = jobs.submit_time[follower], about[THINK, follower]
        jobs.submit_time[follower] = max(now, submitted) if think < 0 else now + think
        _note(gates, follower)
    _settle_terms(gates, row, now, about[WELL, row] == 1, False)
    _settle_singleton(gates, row)
    _change_turns(gates, row, -1)
    _give_licenses(gates, row, 1)
    _ask_again(jobs, run, queue, plan, gates, now)
    gates.counters[WANTED] |= queue.counters[WAITING] > 0


@called
def _ask_again(jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, gates: Gates, now: int) -> bool:
    """Ask about the jobs that have been noted; return whether any left the queue.

    Mirrors ``Run._ask_again``.
    """
    about, left = gates.jobs, False
    for place in range(gates.counters[CHANGED]):
        row = gates.changed[place]
        state, about[MARK, row] = about[STATE, row], 0
        if state == WAITS:
            reason, until = _answer(gates, row, now)
            if reason != NONE:
                _leave(jobs, queue, plan, gates, row, now, reason, until)
                left = True
        elif state == HELD:
            _ask_at(gates, row, now)
        elif state == AWAITED:
            about[STATE, row] = UNSEEN
            _ask_at(gates, row, max(jobs.submit_time[row], now))
    gates.counters[CHANGED] = 0
    gates.counters[AGAIN] |= left
    return left


@machine_code
def _leave(
    jobs: Jobs, queue: Queue, plan: Plan | None, gates: Gates, row: int, now: int, reason: int, until: int
) -> None:
    """Let a job leave the queue; mirrors ``Run._leave_queue`` and ``System.withdraw``."""
    remove(queue, None, row, jobs.rank)
    kept = 0
    for place in range(gates.counters[NEWCOMERS]):
        if gates.newcomers[place] != row:
            gates.newcomers[kept] = gates.newcomers[place]
            kept += 1
    gates.counters[NEWCOMERS] = kept
    if plan is not None:
        forget_reservation(plan, row)
    _hold(gates, row, now, reason)
    if until >= 0:
        _ask_at(gates, row, until)


@called
def submit_due(jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, gates: Gates, now: int) -> None:
    """Submit all jobs that are due now, and ask again about those that are held, in the order of the log."""
    counters = gates.counters
    while counters[ASKS] and gates.asks[0, 0] == now:
        row = pop(gates.asks, counters[ASKS])
        counters[ASKS] -= 1
        if gates.jobs[ASKED, row] == now:
            gates.jobs[ASKED, row] = -1
        if gates.jobs[STATE, row] == UNSEEN or gates.jobs[STATE, row] == HELD:
            _submit(jobs, run, queue, plan, gates, row, now)


@machine_code
def _submit(jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, gates: Gates, row: int, now: int) -> None:
    """Let a job join the queue, unless a gate holds it; mirrors ``Run.submit``."""
    counters = gates.counters
    reason, until = _answer(gates, row, now)
    if reason == NONE:
        _release(gates, row, now, False)
        counters[HELD_JOBS] -= gates.jobs[STATE, row] == HELD
        gates.jobs[STATE, row] = WAITS
        jobs.rank[row] = gates.jobs[GROUP, row] + counters[JOINED]
        add(queue, None, row, jobs.rank, jobs.nodes, run.estimate)
        gates.newcomers[counters[NEWCOMERS]] = row
        counters[NEWCOMERS] += 1
        counters[JOINED] += 1
        counters[WANTED] = 1
        return
    _hold(gates, row, now, reason)
    if reason == NEVER:
        _release(gates, row, now, True)
        _reject(jobs, run, queue, plan, gates, row, now)
    elif until >= 0:
        _ask_at(gates, row, until)


@machine_code
def _reject(jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, gates: Gates, row: int, now: int) -> None:
    """Reject a job that may never start; mirrors ``Run.on_reject``.

    No job is submitted after it: only ``AfterJobs`` rejects, which is not compiled beside ``Dependencies``.
    """
    gates.counters[HELD_JOBS] -= 1
    gates.jobs[STATE, row] = REJECTED
    _settle_terms(gates, row, now, False, False)
    _settle_singleton(gates, row)
    _change_turns(gates, row, 0)
    _give_licenses(gates, row, 0)
    _ask_again(jobs, run, queue, plan, gates, now)
