"""Jobs on counted nodes that are stopped and come back, and the outages that stop them.

Mirrors :mod:`hpcsimkit.kernel.failures`, and ``Run.on_stop``. Nodes that are out of order are running jobs
without a submission: they have rows of their own behind those of the jobs, and are expected to end when the
outage does.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.attempts import (
    FAILED,
    RETURNED,
    RETURNS,
    STOPPED,
    Attempts,
    RestartRules,
    duration,
    next_return,
    record_stop,
    return_later,
    take_return,
)
from hpcsimkit.compiled.compilation import called, machine_code, pasted
from hpcsimkit.compiled.plan import Plan, forget_slot
from hpcsimkit.compiled.queue import WAITING, Queue, Sizes, add
from hpcsimkit.compiled.running import expect, forget, pop, push, withdraw
from hpcsimkit.compiled.state import ARRIVED, FREE, NO_LIMIT, RUNNING, Integers, Jobs, Numbers, Run

OVER, MORE_OUTAGES, MORE_SPACE = cast(tuple[int, ...], tuple(map(np.int64, range(3))))
"""What a run needs to go on, if it is not over."""

LISTED, NEXT, EXHAUSTED, INCOMPLETE, GONE, TAKEN, UNUSED, JOINED, REJOINED, EARLY, CORRECTED, FIRST = range(
    12
)
"""Positions in :attr:`Stops.counters`."""

GIVE = 2**40
"""Number behind those of all starts: nodes return from outages after the jobs of the instant have ended."""

START, END, NODES, DRAIN = range(4)
"""Rows of :attr:`Stops.outages`."""


class Stops(NamedTuple):
    """The state of what may stop jobs, and of the jobs that were stopped.

    Attributes
    ----------
    restart : RestartRules
        Rules of stopped jobs: what they keep, and when they may start again.
    attempts : Attempts
        The attempts of the jobs.
    work, asked : array of int64, shape (jobs,)
        Run time and estimate of each job [s]. In :class:`Jobs` and :class:`Run`, there are those of its
        current or next attempt.
    failures : array of int64, shape (jobs,)
        Number of failures of each job.
    given_up : array of uint8, shape (jobs,)
        Whether each job does not start again.
    group : array of int64, shape (jobs,)
        Rank of each job by its keys, times the largest number of jobs that may join the queue.
    outages : array of int64, shape (4, outages)
        Beginning and end [s], number of nodes, and whether running jobs end first, of the next outages.
    position : array of float64, shape (outages,)
        Position of their first nodes among all.
    incomplete : array of int64, shape (2, nodes + 1)
        End [s] of the outages under way, and number of their nodes that are still in use.
    by_start : array of int64, shape (jobs that can run at once,)
        Running jobs by start and row, as they were at the last outage.
    listed : array of uint8, shape (jobs,)
        Whether each job is in this list, and has not ended since.
    down : array of int64, shape (3, places)
        Beginning and end [s], and number of the nodes that went out of order together.
    unused : array of int64, shape (nodes,)
        Rows of nodes that are out of order, as far as they are not in use.
    rejoined : array of int64, shape (jobs,)
        Rows of the jobs that have joined the queue again since the last pass.
    counters : array of int64
        Number of running jobs that are listed by start, of outages that have begun, whether no others follow,
        number of incomplete outages, of rows in use for nodes out of order, of times that nodes went out of
        order, of unused rows, of jobs that joined the queue, of those that rejoined it since the last pass
        and of those among them that came before the submissions, whether plans are void, and the instant
        before which there are no outages [s], at the positions named above.
    """

    restart: RestartRules
    attempts: Attempts
    work: Integers
    asked: Integers
    failures: Integers
    given_up: NDArray[np.uint8]
    group: Integers
    outages: Integers
    position: Numbers
    incomplete: Integers
    by_start: Integers
    listed: NDArray[np.uint8]
    down: Integers
    unused: Integers
    rejoined: Integers
    counters: Integers


@machine_code
def _is_over(jobs: Jobs, run: Run, queue: Queue, stops: Stops) -> bool:
    """Return whether no job runs, waits or is to come; mirrors ``System.over``."""
    attempts = stops.attempts.counters
    return bool(
        run.counters[RUNNING] == stops.counters[GONE]
        and not queue.counters[WAITING]
        and run.counters[ARRIVED] == len(jobs.arrival_order)
        and attempts[RETURNED] == attempts[RETURNS]
    )


@pasted
def need(jobs: Jobs, run: Run, queue: Queue, stops: Stops | None) -> int:
    """Return what the run needs before its next instant, `OVER` for nothing."""
    return OVER if stops is None else _need(jobs, run, queue, stops)


@machine_code
def _need(jobs: Jobs, run: Run, queue: Queue, stops: Stops) -> int:
    counters = stops.counters
    if stops.attempts.counters[STOPPED] + run.counters[RUNNING] > stops.attempts.log.shape[1]:
        return MORE_SPACE
    if counters[TAKEN] + len(stops.unused) > stops.down.shape[1]:
        return MORE_SPACE
    if not counters[EXHAUSTED] and _at_last(stops) and not _is_over(jobs, run, queue, stops):
        return MORE_OUTAGES
    return OVER


@pasted
def _at_last(stops: Stops) -> bool:
    """Return whether the next outages that are known may not be all of their instant."""
    following, count = stops.counters[NEXT], stops.outages.shape[1]
    if following == count:
        return True
    last = stops.outages[START, count - 1]
    return bool(last <= max(stops.outages[START, following], stops.counters[FIRST]))


@machine_code
def _next_outage(jobs: Jobs, run: Run, queue: Queue, stops: Stops) -> int:
    """Return the beginning of the next outage [s], after all others if there is none, or the run is over."""
    counters = stops.counters
    if counters[NEXT] == stops.outages.shape[1] or _is_over(jobs, run, queue, stops):
        return NO_LIMIT
    return int(max(stops.outages[START, counters[NEXT]], counters[FIRST]))


@pasted
def next_change(jobs: Jobs, run: Run, queue: Queue, stops: Stops, limit: int) -> int:
    """Return the time of the next outage or return of a job [s], or the limit if it comes first."""
    return min(_next_outage(jobs, run, queue, stops), next_return(stops.attempts), limit)


# --- jobs --------------------------------------------------------------------------------------------------


@pasted
def join(jobs: Jobs, stops: Stops, row: int) -> None:
    """Give a job that joins the queue its place in it, behind those with equal keys."""
    jobs.rank[row] = stops.group[row] + stops.counters[JOINED]
    stops.counters[JOINED] += 1


@machine_code
def _rejoin(
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    stops: Stops,
    plan: Plan | None,
    row: int,
    now: int,
) -> None:
    """Add a job that was stopped to the queue again; mirrors ``Run.rejoin``."""
    join(jobs, stops, row)
    stops.attempts.joined[row] = now
    if plan is not None:
        stops.rejoined[stops.counters[REJOINED]] = row
        stops.counters[REJOINED] += 1
    add(queue, sizes, row, jobs.rank, jobs.nodes, run.estimate)


@pasted
def rejoin_later(
    jobs: Jobs, run: Run, queue: Queue, sizes: Sizes | None, stops: Stops | None, plan: Plan | None, now: int
) -> bool:
    """Add the jobs whose delays end now to the queue; return whether there are any."""
    rejoined = False
    if stops is not None:
        while next_return(stops.attempts) == now:
            _rejoin(jobs, run, queue, sizes, stops, plan, take_return(stops.attempts), now)
            rejoined = True
    return rejoined


@called
def stop(
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    stops: Stops,
    plan: Plan | None,
    row: int,
    now: int,
) -> None:
    """Stop a running job that has failed; mirrors ``Run.on_stop``."""
    counters, attempts, restart = run.counters, stops.attempts, stops.restart
    start, mode = run.start_time[row], run.mode[row]
    withdraw(run.ends, counters[RUNNING], row)
    forget(run.expected, counters[RUNNING], start + run.estimate[row], row)
    counters[RUNNING] -= 1
    counters[FREE] += jobs.nodes[row]
    stops.listed[row] = 0
    stops.counters[CORRECTED] = 1
    if plan is not None:
        forget_slot(plan, row)
    record_stop(attempts, restart, row, stops.work[row] - attempts.kept[row], start, now, mode, FAILED)
    stops.failures[row] += 1
    if stops.failures[row] > restart.limit:
        stops.given_up[row], jobs.run_time[row] = 1, now - start
        return
    run.start_time[row], run.mode[row] = -1, 0
    jobs.run_time[row] = duration(restart, stops.work[row] - attempts.kept[row], 1)
    run.estimate[row] = duration(restart, max(stops.asked[row] - attempts.kept[row], 1), 1)
    if restart.delay:
        return_later(attempts, row, now + restart.delay)
    else:
        _rejoin(jobs, run, queue, sizes, stops, plan, row, now)


# --- nodes out of order ------------------------------------------------------------------------------------


@pasted
def take_what_is_left(jobs: Jobs, run: Run, stops: Stops, row: int, now: int) -> None:
    """Take what a job that has ended leaves; mirrors ``Run.end_job``."""
    stops.listed[row] = 0
    _take_incomplete(jobs, run, stops, now)


@called
def _take_incomplete(jobs: Jobs, run: Run, stops: Stops, now: int) -> None:
    """Take what has become free of nodes that go out of order; mirrors ``FailureEvents.after_end``."""
    incomplete, kept = stops.incomplete, 0
    for place in range(stops.counters[INCOMPLETE]):
        until, left = incomplete[0, place], incomplete[1, place]
        if until <= now:
            continue
        taken = min(left, run.counters[FREE])
        if taken:
            _take(jobs, run, stops, taken, now, until)
        if left > taken:
            incomplete[0, kept], incomplete[1, kept] = until, left - taken
            kept += 1
    stops.counters[INCOMPLETE] = kept


@pasted
def _take(jobs: Jobs, run: Run, stops: Stops, nodes: int, now: int, until: int) -> None:
    """Take free nodes out of order; mirrors ``Capacity.take``."""
    counters, place = stops.counters, stops.counters[TAKEN]
    stops.down[0, place], stops.down[1, place], stops.down[2, place] = now, until, nodes
    counters[UNUSED] -= 1
    row = stops.unused[counters[UNUSED]]
    jobs.nodes[row] = nodes
    push(run.ends, run.counters[RUNNING], until, GIVE + place, row)
    expect(run.expected, run.counters[RUNNING], until, row)
    run.counters[RUNNING] += 1
    run.counters[FREE] -= nodes
    counters[TAKEN] += 1
    counters[GONE] += 1
    counters[CORRECTED] = 1


@pasted
def _give(jobs: Jobs, run: Run, stops: Stops, now: int) -> None:
    """Return the nodes whose outage ends first; mirrors ``Capacity.give``."""
    counters = stops.counters
    row = pop(run.ends, run.counters[RUNNING])
    forget(run.expected, run.counters[RUNNING], now, row)
    run.counters[RUNNING] -= 1
    run.counters[FREE] += jobs.nodes[row]
    stops.unused[counters[UNUSED]] = row
    counters[UNUSED] += 1
    counters[GONE] -= 1
    counters[CORRECTED] = 1
    _take_incomplete(jobs, run, stops, now)


@pasted
def change_capacity(
    jobs: Jobs, run: Run, queue: Queue, sizes: Sizes | None, stops: Stops | None, plan: Plan | None, now: int
) -> bool:
    """Return nodes from outages that end now, and begin others; return whether there are any."""
    return False if stops is None else _change_capacity(jobs, run, queue, sizes, stops, plan, now)


@pasted
def take_correction(stops: Stops) -> bool:
    """Return whether something has happened since the last pass that makes plans void."""
    corrected = stops.counters[CORRECTED] > 0
    stops.counters[CORRECTED] = 0
    return corrected


@called
def _change_capacity(
    jobs: Jobs, run: Run, queue: Queue, sizes: Sizes | None, stops: Stops, plan: Plan | None, now: int
) -> bool:
    changed = False
    while run.counters[RUNNING] and run.ends[0, 0] == now:
        _give(jobs, run, stops, now)
        changed = True
    while _next_outage(jobs, run, queue, stops) == now:
        _begin(jobs, run, queue, sizes, stops, plan, now)
        changed = True
    stops.counters[EARLY] = stops.counters[REJOINED]
    return changed


@pasted
def _begin(
    jobs: Jobs, run: Run, queue: Queue, sizes: Sizes | None, stops: Stops, plan: Plan | None, now: int
) -> None:
    """Begin an outage; mirrors ``FailureEvents._begin``."""
    counters = stops.counters
    outage = counters[NEXT]
    counters[NEXT] += 1
    wanted = stops.outages[NODES, outage]
    if not stops.outages[DRAIN, outage]:
        wanted = _fail_nodes(jobs, run, queue, sizes, stops, plan, wanted, stops.position[outage], now)
    _take_incomplete(jobs, run, stops, now)
    stops.incomplete[0, counters[INCOMPLETE]] = stops.outages[END, outage]
    stops.incomplete[1, counters[INCOMPLETE]] = wanted
    counters[INCOMPLETE] += 1
    _take_incomplete(jobs, run, stops, now)


@pasted
def _fail_nodes(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    stops: Stops,
    plan: Plan | None,
    nodes: int,
    position: float,
    now: int,
) -> int:
    """Stop the jobs on nodes from a position on; mirrors ``FailureEvents._fail_nodes``."""
    _list_by_start(run, stops)
    count, present = stops.counters[LISTED], run.counters[FREE]
    for place in range(count):
        present += jobs.nodes[stops.by_start[place]]
    wanted = min(nodes, present)
    first, node = min(int(position * present), present - wanted), 0
    for place in range(count):
        row = stops.by_start[place]
        after = node + jobs.nodes[row]
        if node < first + wanted and after > first:
            stop(jobs, run, queue, sizes, stops, plan, row, now)
        node = after
    return wanted


@machine_code
def _list_by_start(run: Run, stops: Stops) -> None:
    """Bring the list of running jobs by start to the present: all that are not in it have started later."""
    rows, listed, count = stops.by_start, stops.listed, 0
    for place in range(stops.counters[LISTED]):
        if listed[rows[place]]:
            rows[count] = rows[place]
            count += 1
    for at in range(run.counters[RUNNING]):
        row = run.expected[1, at]
        if row >= len(listed) or listed[row]:
            continue
        listed[row], place = 1, count
        while place > 0 and _starts_before(run, row, rows[place - 1]):
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row
        count += 1
    stops.counters[LISTED] = count


@machine_code
def _starts_before(run: Run, row: int, other: int) -> bool:
    start, other_start = run.start_time[row], run.start_time[other]
    return bool(start < other_start or (start == other_start and row < other))
