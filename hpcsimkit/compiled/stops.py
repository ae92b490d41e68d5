"""Jobs that are stopped and come back, and the outages of homogeneous nodes that stop them.

Mirrors :mod:`hpcsimkit.kernel.failures`, and ``Run.on_stop``. Nodes that are out of order are running jobs
without a submission: they have rows of their own behind those of the jobs, and are expected to end when the
outage does. Those of machines are in :mod:`.machine_outages`.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.attempts import (
    CANCELLED,
    FAILED,
    PREEMPTED,
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
from hpcsimkit.compiled.machines import CHANGES, COUNT, Machines, lacks_space, leave
from hpcsimkit.compiled.machines import FIRST as FIRST_PART
from hpcsimkit.compiled.plan import Plan, forget_slot
from hpcsimkit.compiled.queue import WAITING, Queue, Sizes, add
from hpcsimkit.compiled.running import expect, forget, pop, push, withdraw
from hpcsimkit.compiled.state import ARRIVED, FREE, NO_LIMIT, RUNNING, Integers, Jobs, Numbers, Run

OVER, MORE_OUTAGES, MORE_ATTEMPTS, MORE_DOWN, MORE_PARTS, FROM_THE_BEGINNING = cast(
    tuple[int, ...], tuple(map(np.int64, range(6)))
)
"""What a run needs to go on, if it is not over: more outages, or space for attempts, for nodes that are down
or for allocations to machines; the last one: more space, from the beginning."""

LISTED, NEXT, EXHAUSTED, INCOMPLETE, GONE, TAKEN, UNUSED = range(7)
JOINED, REJOINED, EARLY, CORRECTED, FIRST, LACKING, BEGUN = range(7, 14)
"""Positions in :attr:`Stops.counters`."""

TEST, GIVE = 2**39, 2**40
"""Numbers behind those of all starts: tests that jobs outlast are over after the jobs of the instant have
ended, and nodes return from outages after that."""

START, END, NODES, DRAIN, MEMBERS = range(5)
"""Rows of :attr:`Stops.outages`."""

UNTIL, MEMBER, SIZE, IN_USE = range(4)
"""Rows of :attr:`MachineOutages.begun`."""


YOUNGEST, OLDEST, LEAST_LOST, SMALLEST = range(4)
"""Codes of the first choice of a preemptor."""


class Preemption(NamedTuple):
    """A :class:`~hpcsimkit.policies.preempting.preemptors.PreemptLowerTiers` as numbers.

    Attributes
    ----------
    active : int
        Whether there is one.
    first : int
        The code of its first choice.
    exempt_time : int
        Time from its start during which a job is not stopped [s].
    cancels : int
        Whether jobs that are stopped never run again.
    tier, size : array of int64, shape (jobs,)
        Tier of each job, larger is higher, and its size.
    chosen : array of int64, shape (jobs that can run at once,)
        Space for the jobs to stop.
    marked : array of uint8, shape (jobs,)
        Whether each job is among them.
    """

    active: int
    first: int
    exempt_time: int
    cancels: int
    tier: Integers
    size: Integers
    chosen: Integers
    marked: NDArray[np.uint8]


class MachineOutages(NamedTuple):
    """The outages of machines; with homogeneous nodes, all arrays are empty.

    Attributes
    ----------
    members : array of int64
        Numbers of the machines of each outage so far, one outage after the other.
    begun : array of int64, shape (4, places)
        The outages that have begun and may not be over: end [s], position of its first machine among the
        members, number of machines, and whether any of these may still be in use.
    gone : array of int64, shape (machines, resources)
        Amounts that are out of order.
    hit : array of uint8, shape (machines,)
        Space for marks of the machines of an outage.
    found : array of int64, shape (jobs,)
        Space for the jobs on them.
    amounts : array of int64, shape (resources, places)
        Amounts that went out of order together, as in :attr:`Stops.down`.
    places : array of int64, shape (2, stops)
        First part of the allocation of each attempt that was stopped, and number of parts.
    parts : array of int64, shape (1,)
        Maximum number of parts of one allocation of each job, together.
    """

    members: Integers
    begun: Integers
    gone: Integers
    hit: NDArray[np.uint8]
    found: Integers
    amounts: Integers
    places: Integers
    parts: Integers


class Stops(NamedTuple):
    """The state of what may stop jobs, and of the jobs that were stopped.

    Attributes
    ----------
    restart : RestartRules
        Rules of stopped jobs: what they keep, and when they may start again.
    attempts : Attempts
        The attempts of the jobs.
    preemption : Preemption
        The preemptor of the pipeline.
    on_machines : MachineOutages
        The outages of machines.
    work, asked : array of int64, shape (jobs,)
        Run time and estimate of each job [s]. In :class:`Jobs` and :class:`Run`, there are those of its
        current or next attempt.
    failures : array of int64, shape (jobs,)
        Number of failures of each job.
    given_up : array of uint8, shape (jobs,)
        Whether each job does not start again.
    group : array of int64, shape (jobs,)
        Rank of each job by its keys, times the largest number of jobs that may join the queue.
    outages : array of int64, shape (5, outages)
        Beginning and end [s], number of nodes or machines, whether running jobs end first, and position of
        the first machine among all members, of the next outages.
    position : array of float64, shape (outages,)
        Position of their first nodes among all.
    incomplete : array of int64, shape (2, nodes + 1)
        End [s] of the outages under way, and number of their nodes that are still in use.
    by_start : array of int64, shape (jobs that can run at once,)
        Running jobs by start and row, as they were at the last outage.
    listed : array of uint8, shape (jobs,)
        Whether each job is in this list, and has not ended since.
    down : array of int64, shape (3, places)
        Beginning and end [s], and number of the nodes that went out of order together, or number of the
        machine of which a part did.
    unused : array of int64, shape (rows,)
        Rows of nodes that are out of order, as far as they are not in use.
    rejoined : array of int64, shape (jobs,)
        Rows of the jobs that have joined the queue again since the last pass.
    counters : array of int64
        Number of running jobs that are listed by start, of outages that have begun, whether no others follow,
        number of incomplete outages, of rows in use for nodes out of order, of times that nodes went out of
        order, of unused rows, of jobs that joined the queue, of those that rejoined it since the last pass
        and of those among them that came before the submissions, whether plans are void, the instant before
        which there are no outages [s], whether there was too little space for the stops of a pass or for what
        is out of order, and the number of outages of machines that have begun and may not be over, at the
        positions named above.
    """

    restart: RestartRules
    attempts: Attempts
    preemption: Preemption
    on_machines: MachineOutages
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
def need(jobs: Jobs, run: Run, queue: Queue, machines: Machines | None, stops: Stops | None) -> int:
    """Return what the run needs before its next instant, `OVER` for nothing."""
    return OVER if stops is None else _need(jobs, run, queue, machines, stops)


@machine_code
def _need(jobs: Jobs, run: Run, queue: Queue, machines: Machines | None, stops: Stops) -> int:
    counters = stops.counters
    if counters[LACKING]:
        return FROM_THE_BEGINNING
    if stops.attempts.counters[STOPPED] + run.counters[RUNNING] > stops.attempts.log.shape[1]:
        return MORE_ATTEMPTS
    if counters[TAKEN] + len(stops.unused) > stops.down.shape[1]:
        return MORE_DOWN
    if machines is not None:
        begun = counters[BEGUN] + stops.outages.shape[1] - counters[NEXT]
        if begun > stops.on_machines.begun.shape[1]:
            return MORE_DOWN
        if lacks_space(machines, len(stops.work), stops.on_machines.parts[0]):
            return MORE_PARTS
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
def next_outage(jobs: Jobs, run: Run, queue: Queue, stops: Stops) -> int:
    """Return the beginning of the next outage [s], after all others if there is none, or the run is over."""
    counters = stops.counters
    if counters[NEXT] == stops.outages.shape[1] or _is_over(jobs, run, queue, stops):
        return NO_LIMIT
    return int(max(stops.outages[START, counters[NEXT]], counters[FIRST]))


@pasted
def next_change(jobs: Jobs, run: Run, queue: Queue, stops: Stops, limit: int) -> int:
    """Return the time of the next outage or return of a job [s], or the limit if it comes first."""
    return min(next_outage(jobs, run, queue, stops), next_return(stops.attempts), limit)


# --- jobs --------------------------------------------------------------------------------------------------


@pasted
def join(jobs: Jobs, stops: Stops, row: int) -> None:
    """Give a job that joins the queue its place in it, behind those with equal keys."""
    jobs.rank[row] = stops.group[row] + stops.counters[JOINED]
    stops.counters[JOINED] += 1


@machine_code
def _rejoin(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    machines: Machines | None,
    stops: Stops,
    plan: Plan | None,
    row: int,
    now: int,
) -> None:
    """Add a job that was stopped to the queue again; mirrors ``Run.rejoin``."""
    join(jobs, stops, row)
    stops.attempts.joined[row] = now
    if machines is not None:
        machines.counters[CHANGES] += 1  # it is no newcomer, so that the next pass has to look at all jobs
    if plan is not None:
        stops.rejoined[stops.counters[REJOINED]] = row
        stops.counters[REJOINED] += 1
    add(queue, sizes, row, jobs.rank, jobs.nodes, run.estimate)


@pasted
def rejoin_later(
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    machines: Machines | None,
    stops: Stops | None,
    plan: Plan | None,
    now: int,
) -> bool:
    """Add the jobs whose delays end now to the queue; return whether there are any."""
    rejoined = False
    if stops is not None:
        while next_return(stops.attempts) == now:
            _rejoin(jobs, run, queue, sizes, machines, stops, plan, take_return(stops.attempts), now)
            rejoined = True
    return rejoined


@called
def stop(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    machines: Machines | None,
    stops: Stops,
    plan: Plan | None,
    row: int,
    now: int,
    why: int,
) -> None:
    """Stop a running job; mirrors ``Run.on_stop``."""
    attempts, restart = stops.attempts, stops.restart
    start, mode = run.start_time[row], run.mode[row]
    if machines is None:
        _leave_nodes(jobs, run, stops, row)
    else:
        places, number = stops.on_machines.places, attempts.counters[STOPPED]
        places[0, number], places[1, number] = machines.jobs[FIRST_PART, row], machines.jobs[COUNT, row]
        leave(run, machines, row)
    if plan is not None:
        forget_slot(plan, row)
    record_stop(attempts, restart, row, stops.work[row] - attempts.kept[row], start, now, mode, why)
    stops.failures[row] += why == FAILED
    if why == CANCELLED or stops.failures[row] > restart.limit:
        stops.given_up[row], jobs.run_time[row] = 1, now - start
        return
    run.start_time[row], run.mode[row] = -1, 0
    jobs.run_time[row] = duration(restart, stops.work[row] - attempts.kept[row], 1)
    run.estimate[row] = duration(restart, max(stops.asked[row] - attempts.kept[row], 1), 1)
    if restart.delay:
        return_later(attempts, row, now + restart.delay)
    else:
        _rejoin(jobs, run, queue, sizes, machines, stops, plan, row, now)


@pasted
def _leave_nodes(jobs: Jobs, run: Run, stops: Stops, row: int) -> None:
    """Take back the nodes of a job that is stopped; mirrors ``Run.leave``."""
    counters = run.counters
    withdraw(run.ends, counters[RUNNING], row)
    forget(run.expected, counters[RUNNING], run.start_time[row] + run.estimate[row], row)
    counters[RUNNING] -= 1
    counters[FREE] += jobs.nodes[row]
    stops.listed[row] = 0


# --- nodes out of order ------------------------------------------------------------------------------------


@pasted
def take_what_is_left(jobs: Jobs, run: Run, stops: Stops, row: int, now: int) -> None:
    """Take what a job on homogeneous nodes that has ended leaves; mirrors ``Run.end``."""
    stops.listed[row] = 0
    take_incomplete(jobs, run, stops, now)


@called
def take_incomplete(jobs: Jobs, run: Run, stops: Stops, now: int) -> None:
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
    take_incomplete(jobs, run, stops, now)


@pasted
def take_correction(stops: Stops) -> bool:
    """Return whether something has happened since the last pass that makes plans void."""
    corrected = stops.counters[CORRECTED] > 0
    stops.counters[CORRECTED] = 0
    return corrected


@called
def change_capacity(
    jobs: Jobs, run: Run, queue: Queue, sizes: Sizes | None, stops: Stops, plan: Plan | None, now: int
) -> bool:
    """Return nodes from outages that end now, and begin others; return whether there are any."""
    changed = False
    while run.counters[RUNNING] and run.ends[0, 0] == now:
        _give(jobs, run, stops, now)
        changed = True
    while next_outage(jobs, run, queue, stops) == now:
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
    take_incomplete(jobs, run, stops, now)
    stops.incomplete[0, counters[INCOMPLETE]] = stops.outages[END, outage]
    stops.incomplete[1, counters[INCOMPLETE]] = wanted
    counters[INCOMPLETE] += 1
    take_incomplete(jobs, run, stops, now)


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
            stop(jobs, run, queue, sizes, None, stops, plan, row, now, FAILED)
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
        while place > 0 and starts_before(run, row, rows[place - 1]):
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row
        count += 1
    stops.counters[LISTED] = count


@machine_code
def starts_before(run: Run, row: int, other: int) -> bool:
    start, other_start = run.start_time[row], run.start_time[other]
    return bool(start < other_start or (start == other_start and row < other))


# --- preemption --------------------------------------------------------------------------------------------


@pasted
def makes_way(
    jobs: Jobs, run: Run, queue: Queue, sizes: Sizes | None, stops: Stops | None, head: int, now: int
) -> bool:
    """Stop jobs of lower tiers so that a job that does not fit may start, and return whether it may."""
    return False if stops is None else _preempt(jobs, run, queue, sizes, stops, head, now)


@called
def _preempt(
    jobs: Jobs, run: Run, queue: Queue, sizes: Sizes | None, stops: Stops, head: int, now: int
) -> bool:
    """Mirrors ``Pipeline._preempt`` and ``Preemptor.victims``."""
    preemption = stops.preemption
    if not preemption.active or stops.counters[LACKING]:
        return False
    level, chosen, count = run.counters[FREE], preemption.chosen, 0
    most = level
    for place in range(run.counters[RUNNING]):
        if _is_candidate(run, stops, head, run.expected[1, place], now):
            most += jobs.nodes[run.expected[1, place]]
    if most < jobs.nodes[head]:
        return False
    while level < jobs.nodes[head]:
        row = _first_choice(run, stops, head, now)
        chosen[count], preemption.marked[row] = row, 1
        level += jobs.nodes[row]
        count += 1
    stops.counters[LACKING] = stops.attempts.counters[STOPPED] + count > stops.attempts.log.shape[1]
    for place in range(count):
        row = chosen[place]
        preemption.marked[row] = 0
        if level - jobs.nodes[row] >= jobs.nodes[head]:  # never for the last one, before it too low
            level -= jobs.nodes[row]
        elif not stops.counters[LACKING]:
            why = CANCELLED if preemption.cancels else PREEMPTED
            stop(jobs, run, queue, sizes, None, stops, None, row, now, why)
    return not stops.counters[LACKING]


@machine_code
def _is_candidate(run: Run, stops: Stops, head: int, row: int, now: int) -> bool:
    """Return whether a running job, or nodes out of order, may be stopped for another job."""
    preemption = stops.preemption
    return bool(
        row < len(preemption.tier)
        and not preemption.marked[row]
        and preemption.tier[row] < preemption.tier[head]
        and now - run.start_time[row] >= preemption.exempt_time
    )


@machine_code
def _first_choice(run: Run, stops: Stops, head: int, now: int) -> int:
    """Return the first of the candidates; mirrors ``PreemptLowerTiers.candidates``."""
    tier, best, best_key = stops.preemption.tier, -1, 0
    for place in range(run.counters[RUNNING]):
        row = run.expected[1, place]
        if not _is_candidate(run, stops, head, row, now):
            continue
        key = _key(run, stops, row, now)
        if best >= 0:
            if tier[row] > tier[best] or (tier[row] == tier[best] and key > best_key):
                continue
            if tier[row] == tier[best] and key == best_key and row > best:
                continue
        best, best_key = row, key
    return best


@machine_code
def _key(run: Run, stops: Stops, row: int, now: int) -> int:
    """Return the sort key of the first choice within a tier."""
    first, start = stops.preemption.first, run.start_time[row]
    if first == YOUNGEST:
        return int(-start)
    if first == LEAST_LOST:
        return int((now - start) * stops.preemption.size[row])
    if first == SMALLEST:
        return int(stops.preemption.size[row])
    return int(start)


@pasted
def take_after_pass(jobs: Jobs, run: Run, machines: Machines | None, stops: Stops | None, now: int) -> None:
    """Take what a pass has freed of nodes that go out of order; mirrors ``Run._drain``.

    If a job that has just started ends at once, they are taken at its end. On machines no pass stops jobs.
    """
    if machines is None and stops is not None and not (run.counters[RUNNING] and run.ends[0, 0] == now):
        take_incomplete(jobs, run, stops, now)
