"""Slurm as configured: jobs that are stopped for others and wait again, and machines on which jobs are ended.

Mirrors ``SlurmScheduler._preempt``, :mod:`hpcsimkit.slurm.preemption` and :mod:`hpcsimkit.slurm.completing`.
"""

from __future__ import annotations

from hpcsimkit.compiled.attempts import (
    PREEMPTED,
    last_stop,
    next_return,
    record_stop,
    return_later,
    take_return,
)
from hpcsimkit.compiled.attempts import STOPPED as STOPPED_ATTEMPTS
from hpcsimkit.compiled.compilation import machine_code, separate
from hpcsimkit.compiled.needs import NODES, NOW, SPREAD
from hpcsimkit.compiled.running import withdraw
from hpcsimkit.compiled.slurm_groups import begin_with_free, let_end
from hpcsimkit.compiled.slurm_places import NEVER, choose_of, is_planned
from hpcsimkit.compiled.slurm_priority import list_again
from hpcsimkit.compiled.slurm_running import class_of, leave, note_change
from hpcsimkit.compiled.slurm_state import (
    CHANGES,
    CHOSEN,
    DONE,
    EVENTS,
    FIRST_RUNNING,
    JOBS_WAITING,
    LAST_PLANNED,
    MOST_PARTS,
    NEWS,
    OUTDATED,
    PARTS,
    PLANNED_AT,
    REJOINED,
    RUNNING,
    STOPPED,
    WAITING,
    Factors,
    Jobs,
    Limits,
    Nodes,
    Run,
    Stops,
)
from hpcsimkit.compiled.state import Integers
from hpcsimkit.slurm.preemption import REORDERINGS


@machine_code
def lacks_space(jobs: Jobs, run: Run, stops: Stops) -> bool:
    """Return whether the next instant may need more space.

    Each of the two loops looks at each ticket once.
    """
    starts = 2 * len(jobs.row)
    stopped = run.counters[RUNNING] + starts
    return bool(
        stops.attempts.counters[STOPPED_ATTEMPTS] + stopped > stops.attempts.log.shape[1]
        or run.counters[EVENTS] + run.counters[RUNNING] + starts + stopped > len(run.events)
        or run.counters[PARTS] + 2 * stops.counters[MOST_PARTS] > len(run.parts)
    )


# --- jobs that come back -----------------------------------------------------------------------------------


@separate
def rejoin_later(jobs: Jobs, run: Run, stops: Stops, now: int) -> None:
    """Let the jobs whose delays end now wait again."""
    while next_return(stops.attempts) == now:
        row = take_return(stops.attempts)
        _rejoin(jobs, run, stops, row, now)
        stops.rejoined[stops.counters[REJOINED]] = row
        stops.counters[REJOINED] += 1


@separate
def _rejoin(jobs: Jobs, run: Run, stops: Stops, row: int, now: int) -> None:
    """Let a job that was stopped wait again; mirrors ``Run.rejoin``."""
    stops.attempts.joined[row] = now
    run.state[row] = WAITING
    run.counters[JOBS_WAITING] += 1
    list_again(jobs, run, row)
    note_change(run)


@separate
def _stop(
    factors: Factors, jobs: Jobs, limits: Limits, nodes: Nodes, run: Run, stops: Stops, row: int, now: int
) -> None:
    """Stop a running job; mirrors ``Run.on_stop`` and ``SlurmScheduler.on_stop``."""
    attempts, places, began, mode = stops.attempts, stops.places, run.start_time[row], run.mode[row]
    place = attempts.counters[STOPPED_ATTEMPTS]
    places[0, place], places[1, place], places[2, place] = run.first[row], run.part_count[row], run.part[row]
    withdraw(run.ends, run.counters[RUNNING], row)
    leave(factors, jobs, limits, nodes, run, stops, row, now)
    record_stop(attempts, stops.restart, row, jobs.run_time[row], began, now, mode, PREEMPTED)
    note_kill(run, stops, row, now)
    run.part[row] = -1
    if not stops.rules.requeues[stops.rules.kind[row], places[2, place]]:
        run.state[row], stops.given_up[row] = DONE, now
        return
    run.state[row], run.start_time[row], run.mode[row] = STOPPED, -1, 0
    delay = stops.restart.delay + stops.rules.completing
    if delay:
        return_later(attempts, row, now + delay)
    else:
        _rejoin(jobs, run, stops, row, now)


@separate
def give_up(run: Run, stops: Stops, row: int) -> None:
    """Let a job that was stopped not start again; mirrors ``Ledger.give_up``."""
    run.state[row] = DONE
    run.start_time[row], stops.given_up[row], run.mode[row] = last_stop(stops.attempts, row)


# --- machines on which jobs are ended ----------------------------------------------------------------------


@machine_code
def note_kill(run: Run, stops: Stops, row: int, now: int) -> None:
    """Let the machines of a job that was killed take none for some time; mirrors ``Completing.kill``."""
    if stops.rules.completing:
        for part in range(run.first[row], run.first[row] + run.part_count[row]):
            stops.until[run.parts[part, 0]] = now + stops.rules.completing


@machine_code
def take_again(stops: Stops, now: int) -> bool:
    """Return whether a machine takes jobs again from now on; mirrors ``Completing.ends``."""
    if stops.rules.completing:
        for machine in range(len(stops.until)):
            if stops.until[machine] == now:
                return True
    return False


@machine_code
def next_taking(stops: Stops, now: int) -> int:
    """Return when the next machine takes jobs again [s]; mirrors ``Completing.ends_after``."""
    found = NEVER
    if stops.rules.completing:
        for machine in range(len(stops.until)):
            if stops.until[machine] > now:
                found = min(found, stops.until[machine])
    return int(found)


@machine_code
def is_ready(nodes: Nodes, stops: Stops, now: int) -> bool:
    """Return whether all machines that were chosen take jobs."""
    if stops.rules.completing:
        for place in range(nodes.counters[CHOSEN]):
            if stops.until[nodes.chosen[place, 0]] > now:
                return False
    return True


@separate
def shut_now(run: Run, stops: Stops, now: int) -> None:
    """Shut the machines that are closed to a job, or take none."""
    for machine in range(len(stops.shut)):
        stops.shut[machine] = run.closed[machine] or stops.until[machine] > now


@separate
def _shut_planned(nodes: Nodes, stops: Stops, now: int, end: int) -> None:
    """Shut the machines that planned jobs have until a time [s], or that take no jobs."""
    for machine in range(len(stops.shut)):
        stops.shut[machine] = stops.until[machine] > now or is_planned(nodes, machine, now, end)


@machine_code
def awaits_ends(nodes: Nodes, run: Run, stops: Stops, part: int, now: int) -> bool:
    """Return whether an open machine of a partition takes no jobs as others are being ended there."""
    if stops.rules.completing:
        for place in range(nodes.first_member[part], nodes.first_member[part + 1]):
            machine = nodes.members[place]
            if not run.closed[machine] and stops.until[machine] > now:
                return True
    return False


# --- preemption --------------------------------------------------------------------------------------------


@machine_code
def may_stop_some(jobs: Jobs, stops: Stops, ticket: int) -> bool:
    """Return whether there are running jobs that may be stopped for a ticket."""
    of = class_of(jobs, stops, jobs.row[ticket], jobs.part[ticket])
    for other in range(len(stops.present)):  # noqa: SIM110 - numba knows no generators
        if stops.rules.may[of, other] and stops.present[other]:
            return True
    return False


@separate
def makes_way(
    factors: Factors, jobs: Jobs, limits: Limits, nodes: Nodes, run: Run, stops: Stops, ticket: int, now: int
) -> bool:
    """Stop jobs for one that does not fit the machines that are not shut; return whether it fits then.

    Its allocation is chosen. Mirrors ``SlurmScheduler._preempt``.
    """
    row = jobs.row[ticket]
    if stops.waits[row] > now or not may_stop_some(jobs, stops, ticket):
        return False
    count = _list_candidates(jobs, run, stops, ticket)
    if not _would_fit(jobs, nodes, run, stops, ticket, count):
        return False
    _sort_candidates(jobs, run, stops, count)
    count = _victims(jobs, nodes, run, stops, ticket, count)
    if not count:
        return False
    for place in range(count):
        _stop(factors, jobs, limits, nodes, run, stops, stops.candidates[place], now)
    stops.counters[NEWS] = 1
    if stops.rules.completing:
        stops.waits[row] = now + stops.rules.completing
    return choose_of(nodes, nodes.levels.levels[NOW], stops.shut, jobs.need[ticket])


@separate
def makes_way_in_plan(
    factors: Factors, jobs: Jobs, limits: Limits, nodes: Nodes, run: Run, stops: Stops, ticket: int, now: int
) -> bool:
    """Stop jobs on machines that no planned job has; return whether a job fits there then.

    If it does not, the allocation that was chosen before remains. Mirrors ``SlurmScheduler._planned_place``.
    """
    if not may_stop_some(jobs, stops, ticket):
        return False
    count = nodes.counters[CHOSEN]
    _copy(nodes.chosen, stops.chosen, count)
    _shut_planned(nodes, stops, now, now + jobs.requested_time[jobs.row[ticket]])
    found = makes_way(factors, jobs, limits, nodes, run, stops, ticket, now)
    if stops.counters[NEWS]:  # the plan holds the jobs that were stopped to its end
        stops.counters[OUTDATED] = 1
        nodes.counters[LAST_PLANNED] = 0  # nor are places any more like those of the last plan
    if not found:
        _copy(stops.chosen, nodes.chosen, count)
        nodes.counters[CHOSEN] = count
    return found


@machine_code
def _copy(source: Integers, target: Integers, count: int) -> None:
    """Copy the first rows of an allocation."""
    for place in range(count):
        for column in range(source.shape[1]):
            target[place, column] = source[place, column]


@machine_code
def begin_stops_of_plan(nodes: Nodes, stops: Stops) -> None:
    """Note that a plan is made, and that what was found with one that held stopped jobs holds no longer."""
    changes = nodes.counters[CHANGES]
    if stops.counters[OUTDATED]:
        nodes.counters[CHANGES] += 1
        for machine in range(len(nodes.changed_at)):
            if nodes.changed_at[machine] > stops.counters[PLANNED_AT]:
                nodes.changed_at[machine] = changes + 1
    stops.counters[PLANNED_AT] = nodes.counters[CHANGES]
    stops.counters[OUTDATED] = stops.counters[NEWS] = 0


@machine_code
def _may_be_stopped(jobs: Jobs, run: Run, stops: Stops, of: int, row: int) -> bool:
    """Return whether a running job may be stopped for one of a class; mirrors ``Waiting.may_preempt``."""
    part = run.part[row]
    return bool(not stops.rules.protected[part] and stops.rules.may[of, class_of(jobs, stops, row, part)])


@separate
def _list_candidates(jobs: Jobs, run: Run, stops: Stops, ticket: int) -> int:
    """List the running jobs that may be stopped for a ticket, and return their number."""
    of, count = class_of(jobs, stops, jobs.row[ticket], jobs.part[ticket]), 0
    row = run.counters[FIRST_RUNNING]
    while row >= 0:
        if _may_be_stopped(jobs, run, stops, of, row):
            stops.candidates[count] = row
            count += 1
        row = run.running[0, row]
    return count


@separate
def _would_fit(jobs: Jobs, nodes: Nodes, run: Run, stops: Stops, ticket: int, count: int) -> bool:
    """Return whether a job would fit if all candidates were gone: if not, it does not without some."""
    begin_with_free(nodes)
    for place in range(count):
        let_end(nodes, run, stops.candidates[place])
    return choose_of(nodes, nodes.least, stops.shut, jobs.need[ticket])


@separate
def _sort_candidates(jobs: Jobs, run: Run, stops: Stops, count: int) -> None:
    """Sort the candidates, those to be stopped rather in front; mirrors ``Waiting.to_stop``."""
    candidates = stops.candidates
    for position in range(1, count):
        row, place = candidates[position], position
        while place > 0 and _goes_first(jobs, run, stops, row, candidates[place - 1]):
            candidates[place] = candidates[place - 1]
            place -= 1
        candidates[place] = row


@machine_code
def _goes_first(jobs: Jobs, run: Run, stops: Stops, row: int, other: int) -> bool:
    """Return whether a job is stopped rather than another one."""
    rank = stops.rules.rank[class_of(jobs, stops, row, run.part[row])]
    rank_of_other = stops.rules.rank[class_of(jobs, stops, other, run.part[other])]
    if rank != rank_of_other:
        return bool(rank < rank_of_other)
    if run.part_count[row] != run.part_count[other]:
        return bool(run.part_count[row] < run.part_count[other])
    return bool(jobs.first_ticket[row] < jobs.first_ticket[other])


@separate
def _victims(jobs: Jobs, nodes: Nodes, run: Run, stops: Stops, ticket: int, count: int) -> int:
    """Move the jobs to stop to the front of the candidates, and return their number.

    Mirrors ``preemption.victims``.
    """
    number = jobs.need[ticket]
    wanted = 1 if nodes.levels.needs[number, SPREAD] else nodes.levels.needs[number, NODES]
    for last in range(stops.rules.sets):
        machines = 0
        for machine in range(len(stops.shut)):
            is_open = not stops.shut[machine] and stops.rules.set_of[machine] <= last
            nodes.shut[machine] = not is_open
            machines += is_open
        if machines >= wanted:
            found = _needed(nodes, run, stops, number, count)
            if found:
                return found
    return 0


@separate
def _needed(nodes: Nodes, run: Run, stops: Stops, number: int, count: int) -> int:
    """Put the candidates in another order, and move those without which a job fits to the front.

    Returns their number. Mirrors ``preemption._needed``.
    """
    passes = 0
    while True:
        last = _without_some(nodes, run, stops, number, count)
        if last < 0:
            return 0
        _mark_chosen(nodes, stops)
        passes += 1
        if passes > REORDERINGS + 1 or count <= passes:
            return _keep_marked(run, stops, last)
        _reorder(run, stops, last)


@separate
def _without_some(nodes: Nodes, run: Run, stops: Stops, number: int, count: int) -> int:
    """Return the candidate without which, and all before it, a job first fits; -1 for none.

    Its allocation is chosen. Mirrors ``preemption._without_some``.
    """
    begin_with_free(nodes)
    for place in range(count):
        row, there = stops.candidates[place], False
        for part in range(run.first[row], run.first[row] + run.part_count[row]):
            there |= not nodes.shut[run.parts[part, 0]]
        if there:
            let_end(nodes, run, row)
            if choose_of(nodes, nodes.least, nodes.shut, number):
                return place
    return -1


@machine_code
def _mark_chosen(nodes: Nodes, stops: Stops) -> None:
    """Mark the machines that were chosen, and no others."""
    for machine in range(len(stops.marked)):
        stops.marked[machine] = 0
    for place in range(nodes.counters[CHOSEN]):
        stops.marked[nodes.chosen[place, 0]] = 1


@machine_code
def _count_marked(run: Run, stops: Stops, row: int) -> int:
    """Return how many marked machines a job has."""
    found = 0
    for part in range(run.first[row], run.first[row] + run.part_count[row]):
        found += stops.marked[run.parts[part, 0]]
    return found


@machine_code
def _keep_marked(run: Run, stops: Stops, last: int) -> int:
    """Keep the candidates up to a place that have marked machines, and return their number."""
    kept = 0
    for place in range(last + 1):
        row = stops.candidates[place]
        if _count_marked(run, stops, row):
            stops.candidates[kept] = row
            kept += 1
    return kept


@machine_code
def _reorder(run: Run, stops: Stops, last: int) -> None:
    """Put the last one of some candidates first, and those with more marked machines before others."""
    candidates, overlap = stops.candidates, stops.overlap
    first = candidates[last]
    for position in range(last):
        row, place = candidates[position], position
        marked = _count_marked(run, stops, row)
        while place > 0 and overlap[place - 1] < marked:
            candidates[place], overlap[place] = candidates[place - 1], overlap[place - 1]
            place -= 1
        candidates[place], overlap[place] = row, marked
    for place in range(last, 0, -1):
        candidates[place] = candidates[place - 1]
    candidates[0] = first
