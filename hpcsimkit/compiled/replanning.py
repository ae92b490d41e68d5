"""The loop of preemptive schedulers that distribute homogeneous nodes or machines anew at every event.

Mirrors :mod:`hpcsimkit.policies.preempting.replanning`.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.attempts import (
    PREEMPTED,
    STOPPED,
    Attempts,
    RestartRules,
    duration,
    next_return,
    progress,
    record_stop,
    return_later,
    take_return,
)
from hpcsimkit.compiled.compilation import called, machine_code, pasted
from hpcsimkit.compiled.listing import Listing, sort
from hpcsimkit.compiled.machines import COUNT, EVENTS, FIRST, Machines, lacks_space
from hpcsimkit.compiled.needs import EMPTY, NOW
from hpcsimkit.compiled.placing import FIRST_FIT, allocate
from hpcsimkit.compiled.running import pop, push, withdraw
from hpcsimkit.compiled.state import NO_LIMIT, READY, Integers, Numbers

REMAINING, AREA, SIZE, ATTAINED, GITTINS = range(5)
"""Codes of schedulers."""

WAITING, RUNNING, ENDED, STOPPED_FOR_NOW = cast(tuple[int, ...], tuple(map(np.uint8, (1, 2, 3, 5))))
"""States of jobs, as in :class:`~hpcsimkit.kernel.ledger.State`."""

PRESENT, AT_ONCE, STARTS, PASSES, ARRIVED, PLANNED, NUMBERED, SEEN_AT, LEARNT = range(9)
"""Positions in :attr:`State.counters`."""

PLACE, NUMBER, FORGIVEN, WAITED = range(4)
"""Rows of :attr:`State.served`."""


class Rules(NamedTuple):
    """A scheduler as numbers.

    Attributes
    ----------
    kind : int
        Its code.
    nodes : int
        Number of nodes of the cluster.
    by_area : int
        Whether service is run time times size.
    promote : float
        Ratio of waiting time to attained run time at which a job returns to the first queue; 0 for never.
    published : int
        Whether the service of running jobs is checked as in the simulator of Tiresias.
    quantum, interval : int
        Service over which a job is judged, and the longest time between two passes [s].
    least : int
        Number of ended jobs from which indices are computed.
    parts : int
        Maximum number of parts of one allocation of each job, together, on machines.
    """

    kind: int
    nodes: int
    by_area: int
    promote: float
    published: int
    quantum: int
    interval: int
    least: int
    parts: int


class Columns(NamedTuple):
    """Columns of the workload, of shape (jobs,), and the rows in order of submission."""

    submit_time: Integers
    run_time: Integers
    nodes: Integers
    size: Integers
    arrival_order: Integers


class State(NamedTuple):
    """The state of a run.

    Attributes
    ----------
    state : array of uint8, shape (jobs,)
        State of each job.
    start_time, end_time : array of int64, shape (jobs,)
        Start and end of the last attempt of each job [s].
    ends : array of int64, shape (3, jobs that can run at once)
        Binary heap of the running jobs by end, see :class:`~hpcsimkit.compiled.state.Run`.
    listing : Listing
        The jobs that have arrived and not ended, in the order of the last pass.
    served : array of int64, shape (4, jobs)
        For queues by attained service: number of each job's queue, -1 before the first; its position among
        all arrivals; service [s] that no longer counts, and time for which it has waited since it counts [s].
    thresholds : array of int64
        Attained service at which jobs leave each queue but the last.
    past, sums : array of float64, shape (jobs,) and (jobs + 1,)
        Service of the ended jobs, in order, and the sums of the first ones.
    counters : array of int64
        Number of present jobs, of running ones, of starts, of passes and of submissions; the time of the
        planned pass [s], after all others if there is none; number of jobs with a position; time of the last
        pass [s]; and number of ended jobs that are in the past, at the positions named above.
    """

    state: NDArray[np.uint8]
    start_time: Integers
    end_time: Integers
    ends: Integers
    listing: Listing
    served: Integers
    thresholds: Integers
    past: Numbers
    sums: Numbers
    counters: Integers


def replan(
    jobs: Columns,
    rules: Rules,
    restart: RestartRules,
    state: State,
    attempts: Attempts,
    machines: Machines | None,
    places: Integers | None,
) -> bool:
    """Process events, with a pass after each instant; mirrors ``TextbookOrder`` and ``Replanning``.

    Return whether the run is over: it stops if its next pass may need more space for stopped attempts. On
    machines, `places` has the first part and the number of parts of each stopped attempt.
    """
    counters = state.counters
    while True:
        now = _next_instant(jobs, state, attempts)
        if now == NO_LIMIT:
            return True
        if _lacks_space(jobs, rules, state, attempts, machines):
            return False
        while counters[AT_ONCE] and state.ends[0, 0] == now:
            _end(jobs, rules, state, machines, now)
        while counters[ARRIVED] < len(jobs.arrival_order):
            row = jobs.arrival_order[counters[ARRIVED]]
            if jobs.submit_time[row] > now:
                break
            _join(state, row)
            counters[ARRIVED] += 1
        while next_return(attempts) == now:
            row = take_return(attempts)
            attempts.joined[row] = now
            state.state[row] = WAITING
        if counters[PLANNED] == now:
            counters[PLANNED] = NO_LIMIT
        counters[PASSES] += 1
        _order(jobs, rules, restart, state, attempts, now)
        if machines is not None and places is not None:
            _distribute_machines(jobs, restart, state, attempts, machines, places, now)
        else:
            _distribute(jobs, rules, restart, state, attempts, now)
        _plan_next(jobs, rules, restart, state, attempts, now)


@pasted
def _next_instant(jobs: Columns, state: State, attempts: Attempts) -> int:
    """Return the time of the next events [s], after all others if there are none."""
    counters = state.counters
    now = min(counters[PLANNED], next_return(attempts))
    if counters[AT_ONCE]:
        now = min(now, state.ends[0, 0])
    if counters[ARRIVED] < len(jobs.arrival_order):
        now = min(now, jobs.submit_time[jobs.arrival_order[counters[ARRIVED]]])
    return now


@machine_code
def _join(state: State, row: int) -> None:
    """Add a job that has arrived to those that are present."""
    state.state[row] = WAITING
    state.listing.rows[state.counters[PRESENT]] = row
    state.counters[PRESENT] += 1


@pasted
def _end(jobs: Columns, rules: Rules, state: State, machines: Machines | None, now: int) -> None:
    """End the job that ends first, and learn its service; mirrors ``Gittins._learn``."""
    counters = state.counters
    row = pop(state.ends, counters[AT_ONCE])
    counters[AT_ONCE] -= 1
    state.state[row], state.end_time[row] = ENDED, now
    if machines is not None:
        _note(machines, ~row)
    if rules.kind == GITTINS:
        past, place = state.past, counters[LEARNT]
        service = float(jobs.run_time[row] * _weight(jobs, rules, row))
        while place > 0 and past[place - 1] > service:
            past[place] = past[place - 1]
            place -= 1
        past[place] = service
        counters[LEARNT] += 1
        for each in range(place, counters[LEARNT]):
            state.sums[each + 1] = state.sums[each] + past[each]


# --- the order ---------------------------------------------------------------------------------------------


@machine_code
def _weight(jobs: Columns, rules: Rules, row: int) -> int:
    """Return the service of a job per second."""
    return int(jobs.size[row]) if rules.by_area else 1


@machine_code
def _attained(
    jobs: Columns, restart: RestartRules, state: State, attempts: Attempts, row: int, now: int
) -> int:
    """Return the work that a job has done so far, without what it has lost [s]; mirrors ``attained``."""
    kept = attempts.kept[row]
    if state.state[row] != RUNNING:
        return int(kept)
    elapsed, work = now - state.start_time[row], jobs.run_time[row] - kept
    done, lost = progress(restart, elapsed, work, attempts.again[row], PREEMPTED)
    return int(kept + done + lost)


@called
def _order(
    jobs: Columns, rules: Rules, restart: RestartRules, state: State, attempts: Attempts, now: int
) -> None:
    """Sort the jobs that are present; those with equal keys keep their order.

    Mirrors ``Replanning.schedule`` and the methods ``ordered``.
    """
    rows, scores, counters, count = state.listing.rows, state.listing.scores, state.counters, 0
    for position in range(counters[PRESENT]):
        if state.state[rows[position]] != ENDED:
            rows[count] = rows[position]
            count += 1
    counters[PRESENT] = count
    if rules.kind == ATTAINED:
        _queue_up(jobs, rules, restart, state, attempts, now)
        return
    for position in range(count):
        scores[position] = _score(jobs, rules, restart, state, attempts, rows[position], now)
    sort(state.listing, count)


@machine_code
def _score(
    jobs: Columns, rules: Rules, restart: RestartRules, state: State, attempts: Attempts, row: int, now: int
) -> float:
    """Return the key of a job."""
    if rules.kind == SIZE:
        return float(jobs.size[row])
    attained = _attained(jobs, restart, state, attempts, row, now)
    if rules.kind == GITTINS:
        service = float(attained * _weight(jobs, rules, row))
        return service if state.counters[LEARNT] < rules.least else -_index(rules, state, service)
    remaining = jobs.run_time[row] - attained
    return float(remaining * jobs.size[row] if rules.kind == AREA else remaining)


@machine_code
def _index(rules: Rules, state: State, service: float) -> float:
    """Return the Gittins index at an attained service; mirrors ``Gittins._indices``."""
    past, sums, count = state.past, state.sums, state.counters[LEARNT]
    first = _beyond(past, count, service)
    last = _beyond(past, count, service + rules.quantum)
    left = count - first
    if left == 0:
        return 0.0
    expected = sums[last] - sums[first] - (last - first) * service + (count - last) * rules.quantum
    return float(((last - first) / left) / (expected / left))


@machine_code
def _beyond(past: Numbers, count: int, service: float) -> int:
    """Return the position of the first number that is larger than another."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if past[middle] <= service:
            low = middle + 1
        else:
            high = middle
    return low


# --- queues by attained service ----------------------------------------------------------------------------


@pasted
def _queue_up(
    jobs: Columns, rules: Rules, restart: RestartRules, state: State, attempts: Attempts, now: int
) -> None:
    """Move jobs to the queues that their service demands; mirrors ``LAS.ordered``."""
    counters, rows, served = state.counters, state.listing.rows, state.served
    waited, counters[SEEN_AT] = now - counters[SEEN_AT], now
    for position in range(counters[PRESENT]):
        row = rows[position]
        if served[PLACE, row] < 0:
            served[PLACE, row], served[NUMBER, row] = 0, counters[NUMBERED]
            counters[NUMBERED] += 1
    _move(jobs, rules, restart, state, attempts, RUNNING, waited, now)
    if rules.promote:
        _move(jobs, rules, restart, state, attempts, WAITING, waited, now)
    for position in range(counters[PRESENT]):
        state.listing.scores[position] = served[PLACE, rows[position]]
    sort(state.listing, counters[PRESENT])


@machine_code
def _move(
    jobs: Columns,
    rules: Rules,
    restart: RestartRules,
    state: State,
    attempts: Attempts,
    of_state: int,
    waited: int,
    now: int,
) -> None:
    """Move running or waiting jobs to other queues, behind all others, in the order of their arrival."""
    listing, kept, moved = state.listing, 0, 0
    rows, aside, count = listing.rows, listing.other_rows, state.counters[PRESENT]
    for position in range(count):
        row = rows[position]
        if state.state[row] == of_state and _moves(jobs, rules, restart, state, attempts, row, waited, now):
            aside[moved] = row
            moved += 1
        else:
            rows[kept] = row
            kept += 1
    for position in range(moved):  # sorted by insertion: they are few
        row, place = aside[position], position
        while place > 0 and state.served[NUMBER, aside[place - 1]] > state.served[NUMBER, row]:
            aside[place] = aside[place - 1]
            place -= 1
        aside[place] = row
    for position in range(moved):
        rows[kept + position] = aside[position]


@machine_code
def _moves(
    jobs: Columns,
    rules: Rules,
    restart: RestartRules,
    state: State,
    attempts: Attempts,
    row: int,
    waited: int,
    now: int,
) -> bool:
    """Return whether a job moves to another queue; mirrors ``LAS._demote`` and ``LAS._promote``."""
    place, attained = state.served[PLACE, row], _attained(jobs, restart, state, attempts, row, now)
    served = attained - state.served[FORGIVEN, row]
    if state.state[row] == RUNNING:
        reached = place < len(state.thresholds) and (
            served * _weight(jobs, rules, row) >= state.thresholds[place]
        )
        state.served[PLACE, row] += reached
        return bool(reached)
    if served <= 0:
        return False
    state.served[WAITED, row] += waited
    if place == 0 or state.served[WAITED, row] < int(served * rules.promote):
        return False
    state.served[FORGIVEN, row], state.served[WAITED, row], state.served[PLACE, row] = attained, 0, 0
    return True


# --- the cluster -------------------------------------------------------------------------------------------


@called
def _distribute(
    jobs: Columns, rules: Rules, restart: RestartRules, state: State, attempts: Attempts, now: int
) -> None:
    """Stop the jobs that get no nodes any more, and start the others; mirrors ``Replanning._planned``."""
    level, rows, chosen, count = rules.nodes, state.listing.rows, state.listing.other_rows, 0
    for position in range(state.counters[PRESENT]):
        row = rows[position]
        if state.state[row] == STOPPED_FOR_NOW:
            continue
        if jobs.nodes[row] <= level:
            level -= jobs.nodes[row]
            if state.state[row] == WAITING:
                chosen[count] = row
                count += 1
        elif state.state[row] == RUNNING:
            _stop(jobs, restart, state, attempts, row, now)
    for position in range(count):  # after all stops: no more jobs run than there are nodes
        _start(jobs, restart, state, attempts, chosen[position], now)


@pasted
def _start(
    jobs: Columns, restart: RestartRules, state: State, attempts: Attempts, row: int, now: int
) -> None:
    """Start a job; mirrors ``Run.on_start``."""
    counters = state.counters
    end = now + duration(restart, jobs.run_time[row] - attempts.kept[row], attempts.again[row])
    state.state[row], state.start_time[row] = RUNNING, now
    push(state.ends, counters[AT_ONCE], end, counters[STARTS], row)
    counters[AT_ONCE] += 1
    counters[STARTS] += 1


@pasted
def _stop(jobs: Columns, restart: RestartRules, state: State, attempts: Attempts, row: int, now: int) -> None:
    """Stop a job, which waits again at once or after a delay; mirrors ``Run.on_stop``."""
    withdraw(state.ends, state.counters[AT_ONCE], row)
    state.counters[AT_ONCE] -= 1
    work = jobs.run_time[row] - attempts.kept[row]
    record_stop(attempts, restart, row, work, state.start_time[row], now, READY, PREEMPTED)
    if restart.delay:
        state.state[row] = STOPPED_FOR_NOW
        return_later(attempts, row, now + restart.delay)
    else:
        state.state[row], attempts.joined[row] = WAITING, now


# --- machines ----------------------------------------------------------------------------------------------


@machine_code
def _lacks_space(
    jobs: Columns, rules: Rules, state: State, attempts: Attempts, machines: Machines | None
) -> bool:
    """Return whether the next instant may need more space for stops or, on machines, for allocations."""
    if attempts.counters[STOPPED] + state.counters[AT_ONCE] > attempts.log.shape[1]:
        return True
    if machines is None:
        return False
    return lacks_space(machines, len(jobs.submit_time), rules.parts)


@machine_code
def _note(machines: Machines, event: int) -> None:
    """Record a start (row) or an end (complement of a row)."""
    machines.events[machines.counters[EVENTS]] = event
    machines.counters[EVENTS] += 1


@called
def _distribute_machines(
    jobs: Columns,
    restart: RestartRules,
    state: State,
    attempts: Attempts,
    machines: Machines,
    places: Integers,
    now: int,
) -> None:
    """Stop the jobs whose machines go to others, and start jobs; mirrors ``Replanning._planned``."""
    rows, chosen, count = state.listing.rows, state.listing.other_rows, 0
    _empty(machines)
    for position in range(state.counters[PRESENT]):
        row = rows[position]
        if state.state[row] == STOPPED_FOR_NOW:
            continue
        if state.state[row] == RUNNING:
            if _lies_within(machines, row):
                _subtract(machines, row)
                continue
            stopped = attempts.counters[STOPPED]
            places[0, stopped], places[1, stopped] = machines.jobs[FIRST, row], machines.jobs[COUNT, row]
            _note(machines, ~row)
            _stop(jobs, restart, state, attempts, row, now)
            if restart.delay:
                continue
        if allocate(machines, FIRST_FIT, row, NOW):
            _subtract(machines, row)
            chosen[count] = row
            count += 1
    for position in range(count):
        _note(machines, chosen[position])
        _start(jobs, restart, state, attempts, chosen[position], now)


@machine_code
def _empty(machines: Machines) -> None:
    """Set the capacity that is left to that of empty machines."""
    levels = machines.levels.levels
    for machine in range(levels.shape[1]):
        for resource in range(levels.shape[2]):
            levels[NOW, machine, resource] = levels[EMPTY, machine, resource]


@machine_code
def _lies_within(machines: Machines, row: int) -> bool:
    """Return whether what a job has is left; mirrors ``Machines.holds`` of the cluster."""
    levels, parts, first = machines.levels.levels, machines.parts, machines.jobs[FIRST, row]
    for part in range(first, first + machines.jobs[COUNT, row]):
        for resource in range(levels.shape[2]):
            if levels[NOW, parts[part, 0], resource] < parts[part, 1 + resource]:
                return False
    return True


@machine_code
def _subtract(machines: Machines, row: int) -> None:
    """Subtract what a job has from the capacity that is left."""
    levels, parts, first = machines.levels.levels, machines.parts, machines.jobs[FIRST, row]
    for part in range(first, first + machines.jobs[COUNT, row]):
        for resource in range(levels.shape[2]):
            levels[NOW, parts[part, 0], resource] -= parts[part, 1 + resource]


# --- the planned pass --------------------------------------------------------------------------------------


@called
def _plan_next(
    jobs: Columns, rules: Rules, restart: RestartRules, state: State, attempts: Attempts, now: int
) -> None:
    """Plan the next pass besides those after events; mirrors the methods ``schedule``."""
    counters, rows = state.counters, state.listing.rows
    if rules.kind == GITTINS:
        waits = False
        for position in range(counters[PRESENT]):
            waits |= state.state[rows[position]] == WAITING
        if waits and counters[AT_ONCE]:
            counters[PLANNED] = now + rules.interval
    elif rules.kind == ATTAINED:
        counters[PLANNED] = NO_LIMIT
        for position in range(counters[PRESENT]):
            row = rows[position]
            # Behind those of the same queue that run; the queues are sorted when they are needed next.
            state.listing.scores[position] = state.state[row] == WAITING
            at = _next_move(jobs, rules, restart, state, attempts, row, now)
            if at > now:
                counters[PLANNED] = min(counters[PLANNED], at)
        sort(state.listing, counters[PRESENT])


@machine_code
def _next_move(
    jobs: Columns, rules: Rules, restart: RestartRules, state: State, attempts: Attempts, row: int, now: int
) -> int:
    """Return the time at which a job changes its queue [s], or an earlier one; mirrors ``LAS._wake``."""
    place = state.served[PLACE, row]
    served = _attained(jobs, restart, state, attempts, row, now) - state.served[FORGIVEN, row]
    if state.state[row] == RUNNING and place < len(state.thresholds):
        weight, threshold = _weight(jobs, rules, row), state.thresholds[place]
        if weight == 0:
            return now
        missing = threshold - (served if rules.published else served * weight)
        idle = max(attempts.again[row] * restart.cost - (now - state.start_time[row]), 0)  # of its restart
        return int(now + idle - (-missing // weight))
    if rules.promote and state.state[row] == WAITING and place > 0 and served > 0:
        return int(now + int(served * rules.promote - state.served[WAITED, row]))
    return now
