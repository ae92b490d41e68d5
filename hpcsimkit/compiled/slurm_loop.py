"""Slurm as configured: the loop over the instants of a run, the main loop and the backfill.

Mirrors :class:`~hpcsimkit.slurm.scheduler.SlurmScheduler` in a run by the rules of
:class:`~hpcsimkit.kernel.event_order.TextbookOrder`.
"""

from __future__ import annotations

from hpcsimkit.compiled.attempts import next_return
from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.needs import NOW
from hpcsimkit.compiled.running import pop
from hpcsimkit.compiled.slurm_groups import place_with_a_group
from hpcsimkit.compiled.slurm_last_plan import (
    begin_like_last,
    end_last_plan,
    is_alike,
    keep_place,
    note_end,
    place_like_last,
)
from hpcsimkit.compiled.slurm_limits import explain, holds, reason_of, write_in_log
from hpcsimkit.compiled.slurm_order import put_preempting_first
from hpcsimkit.compiled.slurm_places import (
    NEVER,
    choose_free,
    choose_of,
    first_place,
    fits_free,
    keep_planned,
    lacks_open_nodes,
    make_plan,
    may_start,
    occupy,
    reserve,
    still_may_start,
)
from hpcsimkit.compiled.slurm_priority import calculate, list_tickets, put_in_order
from hpcsimkit.compiled.slurm_running import count_asked, leave, note_change, start
from hpcsimkit.compiled.slurm_state import (
    ACTING,
    ALIKE,
    ARRIVED,
    ASKED,
    CHANGED,
    CHECKED,
    CHOSEN,
    DONE,
    FAILED,
    GIVEN,
    GIVEN_LEFT,
    JOBS_WAITING,
    JUDGED,
    LISTED,
    LOGGED,
    LOOKED_AT,
    MAIN_AT,
    NEWS,
    NEXT_PASS,
    NOW_AT,
    PASSES,
    PAUSES,
    REJECTED,
    REJOINED,
    RUNNING,
    SOONEST,
    UNPLANNED,
    UNSEEN_SOME,
    WAITING,
    Clocks,
    Factors,
    Jobs,
    Limits,
    Nodes,
    Past,
    Run,
    Stops,
)
from hpcsimkit.compiled.slurm_stops import (
    awaits_ends,
    begin_stops_of_plan,
    give_up,
    is_ready,
    lacks_space,
    makes_way,
    makes_way_in_plan,
    may_stop_some,
    next_taking,
    note_kill,
    rejoin_later,
    shut_now,
    take_again,
)
from hpcsimkit.compiled.state import BACKFILLED, READY

OVER, LACKS_SPACE, STUCK, PAUSED = range(4)
"""What a run returns: it is over, its log is full, the kernel should say what is wrong, the past is over."""

GOES_ON, GOES_ON_IDLE = 2, 3
"""Values of ``PAUSES`` with which a run goes on after its pause: with a pass, or without as no job waited."""


def simulate(
    clocks: Clocks,
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    past: Past,
    run: Run,
    stops: Stops | None,
) -> int:
    """Process all events: at each instant all ends, then all submissions, then a pass if jobs wait.

    With `stops`, jobs may be stopped for others.

    Returns
    -------
    int
        One of the codes above. If the log is full, or the past is over, the run goes on at the next call.
    """
    counters = run.counters
    while counters[ASKED]:
        if _lacks_space(jobs, run, stops):
            return LACKS_SPACE
        now = counters[NOW_AT]
        if counters[PAUSES] >= GOES_ON:
            idle = counters[PAUSES] == GOES_ON_IDLE
            counters[PAUSES] = 0
        else:
            now = counters[NOW_AT] = _next_instant(jobs, past, run, stops)
            if now == NEVER:
                return STUCK if counters[JOBS_WAITING] else OVER
            _end_jobs(factors, jobs, limits, nodes, run, stops, now)
            _submit_jobs(jobs, run, stops, now)
            idle = not counters[JOBS_WAITING]
            if idle and not _pauses_now(past, run, now):
                continue
            counters[PASSES] += 1
            if not counters[ACTING]:
                _repeat_past(factors, jobs, limits, nodes, past, run, stops, now)
            if counters[FAILED]:
                return STUCK
            if counters[ACTING] and counters[PAUSES]:
                counters[PAUSES] = GOES_ON_IDLE if idle else GOES_ON
                return PAUSED
        if counters[ACTING] and not idle:
            _schedule(clocks, factors, jobs, limits, nodes, run, stops, now)
    return OVER


@pasted
def _lacks_space(jobs: Jobs, run: Run, stops: Stops | None) -> bool:
    """Return whether the next instant may need more space than there is."""
    most = run.counters[LOGGED] + run.counters[JOBS_WAITING] + len(jobs.run_time)
    lacks = most >= run.log.shape[1]
    if stops is not None:
        lacks = lacks or lacks_space(jobs, run, stops)
    return bool(lacks)


# --- events ------------------------------------------------------------------------------------------------


@pasted
def _next_instant(jobs: Jobs, past: Past, run: Run, stops: Stops | None) -> int:
    """Return the time of the next events [s], after all others if there are none."""
    counters, now = run.counters, NEVER
    if counters[RUNNING]:
        now = run.ends[0, 0]
    if counters[ARRIVED] < len(jobs.arrival_order):
        now = min(now, jobs.submit_time[jobs.arrival_order[counters[ARRIVED]]])
    if counters[JOBS_WAITING]:
        if counters[ACTING]:
            now = min(now, counters[NEXT_PASS])
        else:
            coming = past.at
            if counters[GIVEN] < len(past.rows):
                coming = min(coming, past.start[counters[GIVEN]])
            if coming > counters[NOW_AT]:
                now = min(now, coming)
    elif counters[PAUSES] and not counters[ACTING]:
        now = min(now, past.at)
    if stops is not None:
        now = min(now, next_return(stops.attempts))
    return now


@pasted
def _pauses_now(past: Past, run: Run, now: int) -> bool:
    """Return whether the past is over now, so that a run that pauses then does so though no job waits."""
    return bool(run.counters[PAUSES]) and not run.counters[ACTING] and now == past.at


@pasted
def _end_jobs(
    factors: Factors, jobs: Jobs, limits: Limits, nodes: Nodes, run: Run, stops: Stops | None, now: int
) -> None:
    """End all jobs that end now."""
    counters = run.counters
    while counters[RUNNING] and run.ends[0, 0] == now:
        row = pop(run.ends, counters[RUNNING])
        run.state[row] = DONE
        leave(factors, jobs, limits, nodes, run, stops, row, now)
        if stops is not None and now - run.start_time[row] >= jobs.requested_time[row]:  # at its limit
            note_kill(run, stops, row, now)


@pasted
def _submit_jobs(jobs: Jobs, run: Run, stops: Stops | None, now: int) -> None:
    """Add all jobs that are submitted now, and those that wait again from now on."""
    counters, order = run.counters, jobs.arrival_order
    while counters[ARRIVED] < len(order) and jobs.submit_time[order[counters[ARRIVED]]] <= now:
        row = order[counters[ARRIVED]]
        counters[ARRIVED] += 1
        counters[JOBS_WAITING] += 1
        run.state[row] = WAITING
        list_tickets(jobs, run, row)
        note_change(run)
    if stops is not None:
        rejoin_later(jobs, run, stops, now)


# --- the past ----------------------------------------------------------------------------------------------


@separate
def _repeat_past(
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    past: Past,
    run: Run,
    stops: Stops | None,
    now: int,
) -> None:
    """Start the jobs whose starts are given, up to the time of the policy; mirrors ``Past.schedule``."""
    counters = run.counters
    _reject_of_past(jobs, past, run)
    while counters[GIVEN] < len(past.rows) and past.start[counters[GIVEN]] <= now:
        past.due[counters[GIVEN]] = 1
        counters[GIVEN] += 1
    while counters[GIVEN_LEFT] < counters[GIVEN] and not past.due[counters[GIVEN_LEFT]]:
        counters[GIVEN_LEFT] += 1
    left = 0
    for place in range(counters[GIVEN_LEFT], counters[GIVEN]):
        if past.due[place]:
            past.due[place] = not _is_over(factors, jobs, limits, nodes, past, run, stops, place, now)
            left += past.due[place]
    if now < past.at or counters[FAILED]:
        return
    if left and counters[RUNNING] and run.ends[0, 0] <= now:  # a job without run time ends at this instant
        return
    if left and past.strict:
        counters[FAILED] = 1
    counters[ACTING], counters[JUDGED] = 1, 0
    note_change(run)


@pasted
def _reject_of_past(jobs: Jobs, past: Past, run: Run) -> None:
    """Reject the new jobs that neither start nor wait."""
    counters = run.counters
    while counters[JUDGED] < counters[ARRIVED]:
        row = jobs.arrival_order[counters[JUDGED]]
        counters[JUDGED] += 1
        if past.rejected[row]:
            run.state[row] = REJECTED
            counters[JOBS_WAITING] -= 1


@separate
def _is_over(  # noqa: PLR0913 - parts of the state
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    past: Past,
    run: Run,
    stops: Stops | None,
    place: int,
    now: int,
) -> bool:
    """Start a job if it waits and fits; return whether nothing is left to do; mirrors ``Past._is_over``."""
    if run.state[past.rows[place]] != WAITING:
        return True
    if past.start[place] < now and past.strict:
        run.counters[FAILED] = 1
        return False
    if not _choose_given(jobs, nodes, past, run, place):
        return False
    start(factors, jobs, limits, nodes, run, stops, past.ticket[place], READY, now)
    return True


@separate
def _choose_given(jobs: Jobs, nodes: Nodes, past: Past, run: Run, place: int) -> bool:
    """Choose the given allocation of a job or, without one, the first machines; return whether it fits."""
    first, count = past.first[place], past.part_count[place]
    free = nodes.levels.levels[NOW]
    fits = True
    for part in range(first, first + count):
        machine = past.parts[part, 0]
        for resource in range(free.shape[1]):
            fits &= past.parts[part, 1 + resource] <= free[machine, resource]
    if count and fits:
        for part in range(count):
            for column in range(past.parts.shape[1]):
                nodes.chosen[part, column] = past.parts[first + part, column]
        nodes.counters[CHOSEN] = count
        return True
    if count and past.strict:
        return False
    _open_all(run)
    return choose_free(nodes, run, jobs.need[past.ticket[place]])


# --- passes ------------------------------------------------------------------------------------------------


@separate
def _schedule(
    clocks: Clocks,
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    now: int,
) -> None:
    """Run the loops that are due, and set the time of the next pass; mirrors ``SlurmScheduler.schedule``."""
    counters = run.counters
    _refuse_for_ever(jobs, limits, run, stops, now)
    if stops is not None and take_again(stops, now):
        note_change(run)
    if calculate(clocks, factors, run, now):
        counters[UNPLANNED] = counters[UNSEEN_SOME] = 1
    regular = counters[UNSEEN_SOME] and _at_tick(clocks, now, clocks.sched_interval)
    soonest = max(clocks.begin, counters[MAIN_AT] + clocks.sched_min_interval)
    if regular or (counters[CHANGED] and not clocks.defer and now >= soonest):
        _put_in_order(jobs, factors, run, stops)
        _main_loop(clocks, factors, jobs, limits, nodes, run, stops, regular, now)
    if clocks.bf_interval and counters[UNPLANNED] and _at_tick(clocks, now, clocks.bf_interval):
        _put_in_order(jobs, factors, run, stops)
        _backfill(clocks, factors, jobs, limits, nodes, run, stops, now)
    counters[NEXT_PASS] = _next_pass(clocks, jobs, run, stops, now)


@pasted
def _put_in_order(jobs: Jobs, factors: Factors, run: Run, stops: Stops | None) -> None:
    """Let the list hold the waiting tickets in order."""
    put_in_order(jobs, factors, run, stops)
    if stops is not None:
        put_preempting_first(jobs, run, stops)


@machine_code
def _at_tick(clocks: Clocks, now: int, interval: int) -> bool:
    return (now - clocks.begin) % interval == 0


@machine_code
def _tick(clocks: Clocks, now: int, interval: int) -> int:
    """Return the next time of a clock after now [s]."""
    return clocks.begin + ((now - clocks.begin) // interval + 1) * interval


@pasted
def _next_pass(clocks: Clocks, jobs: Jobs, run: Run, stops: Stops | None, now: int) -> int:
    """Return the time of the next loop that can change anything [s]; mirrors ``SlurmScheduler._next``."""
    counters, found = run.counters, NEVER
    if counters[CHANGED] and not clocks.defer:
        soonest = max(clocks.begin, counters[MAIN_AT] + clocks.sched_min_interval)
        found = max(soonest, now + 1)
    if counters[UNSEEN_SOME]:
        found = min(found, _tick(clocks, now, clocks.sched_interval))
    if counters[UNPLANNED] and clocks.bf_interval:
        found = min(found, _tick(clocks, now, clocks.bf_interval))
    ahead = counters[RUNNING] or counters[ARRIVED] < len(jobs.arrival_order)
    if stops is not None:
        ahead = ahead or next_return(stops.attempts) < NEVER
        found = min(found, next_taking(stops, now))
    if ahead:
        found = min(found, _tick(clocks, now, clocks.calc_period))
    return found


@pasted
def _refuse_for_ever(jobs: Jobs, limits: Limits, run: Run, stops: Stops | None, now: int) -> None:
    """Reject new jobs that limits hold for ever in all of their partitions."""
    counters = run.counters
    while counters[JUDGED] < counters[ARRIVED]:
        row = jobs.arrival_order[counters[JUDGED]]
        counters[JUDGED] += 1
        _judge(jobs, limits, run, stops, row, now)
    if stops is not None:
        for place in range(stops.counters[REJOINED]):
            _judge(jobs, limits, run, stops, stops.rejoined[place], now)
        stops.counters[REJOINED] = 0


@pasted
def _judge(jobs: Jobs, limits: Limits, run: Run, stops: Stops | None, row: int, now: int) -> None:
    """Reject a job if limits hold it for ever in all of its partitions."""
    if run.state[row] != WAITING:
        return
    first, reason = jobs.first_ticket[row], 0
    for ticket in range(first, first + jobs.tickets[row]):
        found = reason_of(jobs, limits, run, ticket, now, True)
        if ticket == first:
            reason = found
        if not found:
            reason = 0
    if reason:
        explain(run, row, now, reason)
        write_in_log(run, row, now)
        run.counters[JOBS_WAITING] -= 1
        if stops is None or stops.first_start[row] < 0:
            run.state[row] = REJECTED
            count_asked(run, row)
        else:
            give_up(run, stops, row)
        note_change(run)


@machine_code
def _may_start(jobs: Jobs, limits: Limits, run: Run, ticket: int, now: int) -> bool:
    """Return whether no limit holds a ticket; one that does is its reason.

    Where only starts are asked for, nobody reads the reasons.
    """
    reason = holds(jobs, limits, run, ticket, now)
    if run.counters[ASKED] < 0:
        explain(run, jobs.row[ticket], now, reason)
    return reason == 0


@machine_code
def _open_all(run: Run) -> None:
    """Let no machine be closed."""
    for machine in range(len(run.closed)):
        run.closed[machine] = 0


@separate
def _main_loop(  # noqa: PLR0913 - parts of the state
    clocks: Clocks,
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    whole: bool,
    now: int,
) -> None:
    """Start jobs in order; one that lacks nodes closes its partition.

    Mirrors ``SlurmScheduler._main_loop``.
    """
    counters, looked_at, closed = run.counters, 0, 0
    most = 0 if whole or not clocks.default_queue_depth else clocks.default_queue_depth + 1
    _open_all(run)
    for part in range(len(run.seen)):
        run.seen[part] = run.blocked[part] = 0
    counters[MAIN_AT], counters[CHANGED], counters[UNSEEN_SOME] = now, 0, 0
    for position in range(counters[LISTED]):
        ticket = run.listed[position]
        part = jobs.part[ticket]
        if run.state[jobs.row[ticket]] != WAITING:
            continue
        run.seen[part] += 1
        if clocks.partition_job_depth and run.seen[part] > clocks.partition_job_depth:
            if not run.blocked[part]:
                counters[UNSEEN_SOME] = 1
            continue
        if most and looked_at >= most:
            counters[UNSEEN_SOME] = 1
            break
        looked_at += 1
        if run.blocked[part] or not _may_start(jobs, limits, run, ticket, now):
            continue
        closed += _start_or_close(factors, jobs, limits, nodes, run, stops, ticket, now)
        if closed == len(run.blocked):
            break


@pasted
def _start_or_close(
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    ticket: int,
    now: int,
) -> bool:
    """Start a job if it fits; else close its partition, unless it lacks open nodes; return whether it did."""
    part = jobs.part[ticket]
    if _has_place_now(factors, jobs, limits, nodes, run, stops, ticket, now):
        run.counters[UNPLANNED] = 1
        start(factors, jobs, limits, nodes, run, stops, ticket, READY, now)
        return False
    ready = True
    if stops is not None:
        ready = not awaits_ends(nodes, run, stops, part, now)
    if ready and lacks_open_nodes(nodes, run, part, jobs.need[ticket]):
        return False
    _close(nodes, run, part)
    return True


@pasted
def _has_place_now(
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    ticket: int,
    now: int,
) -> bool:
    """Return whether a job may start now, once it has stopped others if need be; its allocation is chosen.

    Mirrors ``SlurmScheduler._place_now``.
    """
    if stops is None:
        return choose_free(nodes, run, jobs.need[ticket])
    shut_now(run, stops, now)
    if choose_of(nodes, nodes.levels.levels[NOW], stops.shut, jobs.need[ticket]):
        return True
    made = makes_way(factors, jobs, limits, nodes, run, stops, ticket, now)
    return bool(made and is_ready(nodes, stops, now))


@pasted
def _close(nodes: Nodes, run: Run, part: int) -> None:
    """Close a partition, and its machines to all jobs."""
    run.blocked[part] = 1
    for place in range(nodes.first_member[part], nodes.first_member[part + 1]):
        run.closed[nodes.members[place]] = 1


@separate
def _backfill(
    clocks: Clocks,
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    now: int,
) -> None:
    """Give jobs their first places in one plan, and start those that are due; mirrors ``_backfill``."""
    counters, tested, started = run.counters, 0, 0
    counters[UNPLANNED] = 0
    _count_none(run)
    candidates = _note_candidates(jobs, limits, nodes, run, stops, now)
    if candidates:
        _begin_plan(clocks, nodes, run, stops, now)
    for position in range(counters[LISTED]):
        ticket = run.listed[position]
        row = jobs.row[ticket]
        if run.state[row] != WAITING:
            continue
        if not candidates and counters[ASKED] > 0:  # only starts are asked for, not reasons
            break
        if not _may_start(jobs, limits, run, ticket, now) or _is_passed_over(clocks, jobs, run, ticket):
            continue
        tested += 1
        if clocks.bf_max_job_test and tested > clocks.bf_max_job_test:
            break
        candidates = _without_late_ones(jobs, nodes, run, stops, candidates, position, now)
        if candidates:
            started += _plan(clocks, factors, jobs, limits, nodes, run, stops, ticket, now)
            if clocks.bf_max_job_start and started >= clocks.bf_max_job_start:
                break
            if stops is not None and stops.counters[NEWS]:  # limits may hold fewer jobs now
                stops.counters[NEWS] = 0
                candidates = _note_candidates(jobs, limits, nodes, run, stops, now)


@pasted
def _begin_plan(clocks: Clocks, nodes: Nodes, run: Run, stops: Stops | None, now: int) -> None:
    """Make the plan of a backfill."""
    if stops is not None:
        begin_stops_of_plan(nodes, stops)
    make_plan(nodes, run, now)
    if clocks.end_groups:
        keep_planned(nodes, 0)
    else:
        begin_like_last(nodes, run, now, now + clocks.bf_window + 1)


@separate
def _plan(  # noqa: PLR0913 - parts of the state
    clocks: Clocks,
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    ticket: int,
    now: int,
) -> bool:
    """Give a job its first place in the plan, and start it if that begins now; return whether it does."""
    length = jobs.requested_time[jobs.row[ticket]]
    if not clocks.end_groups and _goes_on_alike(jobs, nodes, stops, ticket, length, now):
        return False
    begin = _first_begin(clocks, jobs, nodes, run, stops, ticket, now)
    if stops is not None:
        if begin > now and makes_way_in_plan(factors, jobs, limits, nodes, run, stops, ticket, now):
            begin = now
        begin += begin == now and not is_ready(nodes, stops, now)
    if begin == NEVER and not clocks.end_groups:
        keep_place(nodes, ticket, begin)
    if begin - now > clocks.bf_window:
        return False
    if begin > now:
        note_end(nodes, (begin + length) // clocks.bf_resolution * clocks.bf_resolution)
        reserve(clocks, nodes, begin, begin + length, now)
        if not clocks.end_groups:
            keep_place(nodes, ticket, begin)
        return False
    run.counters[UNPLANNED] = 1
    start(factors, jobs, limits, nodes, run, stops, ticket, BACKFILLED, now)
    note_end(nodes, begin + length)
    occupy(nodes, begin, begin + length)
    return True


@pasted
def _first_begin(
    clocks: Clocks, jobs: Jobs, nodes: Nodes, run: Run, stops: Stops | None, ticket: int, now: int
) -> int:
    """Return when a job has its first place in the plan [s]."""
    number, length = jobs.need[ticket], jobs.requested_time[jobs.row[ticket]]
    before = now + clocks.bf_window + 1
    if not clocks.end_groups:
        return place_like_last(nodes, number, ticket, length, now, before)
    begin = first_place(nodes, number, length, now, before)
    if now < begin < NEVER:
        begin = place_with_a_group(nodes, run, stops, number, length, begin, now)
    return int(begin)


@pasted
def _goes_on_alike(jobs: Jobs, nodes: Nodes, stops: Stops | None, ticket: int, length: int, now: int) -> bool:
    """Return whether a job has its place of the last plan, as all that were planned before it.

    One that may stop others ends this.
    """
    if stops is not None and nodes.counters[ALIKE] and may_stop_some(jobs, stops, ticket):
        end_last_plan(nodes, nodes.counters[LOOKED_AT])
    return is_alike(nodes, jobs.need[ticket], ticket, length, now)


@pasted
def _count_none(run: Run) -> None:
    """Let no job be tested yet."""
    for count in (run.of_part, run.of_user, run.of_user_part, run.of_place):
        for place in range(len(count)):
            count[place] = 0


@separate
def _note_candidates(
    jobs: Jobs, limits: Limits, nodes: Nodes, run: Run, stops: Stops | None, now: int
) -> int:
    """Note the positions of the tickets that might start in a backfill, and return their number.

    They fit the free machines, or may stop others, and no limit holds them.
    """
    candidates = 0
    _open_all(run)
    for position in range(run.counters[LISTED]):
        ticket = run.listed[position]
        if run.state[jobs.row[ticket]] != WAITING or not _might_start(jobs, nodes, run, stops, ticket):
            continue
        if not holds(jobs, limits, run, ticket, now):
            run.other[candidates] = position
            candidates += 1
    nodes.counters[CHECKED] = -1
    return candidates


@pasted
def _might_start(jobs: Jobs, nodes: Nodes, run: Run, stops: Stops | None, ticket: int) -> bool:
    """Return whether a ticket fits the free machines, or may stop others."""
    if stops is not None and may_stop_some(jobs, stops, ticket):
        return True
    return fits_free(nodes, run, jobs.need[ticket])


@machine_code
def _without_late_ones(
    jobs: Jobs, nodes: Nodes, run: Run, stops: Stops | None, candidates: int, position: int, now: int
) -> int:
    """Return the number of candidates without the last ones, which cannot start now beside what is planned.

    None is left if all are before a position. What a plan holds for jobs behind the last candidate changes
    nothing, as each backfill makes its own; and it only fills up, so that no candidate comes back.
    """
    while candidates:
        last = run.other[candidates - 1]
        if last < position:
            return 0
        ticket = run.listed[last]
        row = jobs.row[ticket]
        length = jobs.requested_time[row]
        if stops is not None and run.state[row] == WAITING and may_stop_some(jobs, stops, ticket):
            return candidates
        if nodes.counters[CHECKED] == last and still_may_start(nodes, jobs.need[ticket], length, now):
            return candidates
        if run.state[row] == WAITING and may_start(nodes, jobs.need[ticket], length, now):
            nodes.counters[CHECKED], nodes.counters[SOONEST] = last, NEVER
            return candidates
        candidates -= 1
    return 0


@pasted
def _is_passed_over(clocks: Clocks, jobs: Jobs, run: Run, ticket: int) -> bool:
    """Count a job that is tested; return whether too many of its partition, user or association were.

    Mirrors ``_Tested.beyond``.
    """
    row, part = jobs.row[ticket], jobs.part[ticket]
    user, place = jobs.user[row], jobs.place[row]
    both = user * len(run.of_part) + part
    if (
        (clocks.bf_max_job_part and run.of_part[part] >= clocks.bf_max_job_part)
        or (clocks.bf_max_job_user and run.of_user[user] >= clocks.bf_max_job_user)
        or (clocks.bf_max_job_user_part and run.of_user_part[both] >= clocks.bf_max_job_user_part)
        or (clocks.bf_max_job_assoc and run.of_place[place] >= clocks.bf_max_job_assoc)
    ):
        return True
    if clocks.bf_max_job_part:
        run.of_part[part] += 1
    if clocks.bf_max_job_user:
        run.of_user[user] += 1
    if clocks.bf_max_job_user_part:
        run.of_user_part[both] += 1
    if clocks.bf_max_job_assoc:
        run.of_place[place] += 1
    return False
