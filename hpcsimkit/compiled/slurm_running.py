"""Slurm as configured: running jobs as they start and leave.

Mirrors ``on_start`` and ``on_end`` of :class:`~hpcsimkit.slurm.scheduler.SlurmScheduler`.
"""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.needs import MINUS, NOW, PLUS
from hpcsimkit.compiled.running import expect, forget, push
from hpcsimkit.compiled.slurm_limits import enter_end, enter_start, explain
from hpcsimkit.compiled.slurm_priority import begin_usage, billing_of, end_usage
from hpcsimkit.compiled.slurm_state import (
    ASKED,
    CHANGED,
    CHANGES,
    CHOSEN,
    EVENTS,
    FIRST_ASKED,
    FIRST_RUNNING,
    JOBS_WAITING,
    LAST_ASKED,
    LAST_RUNNING,
    PARTS,
    RUNNING,
    RUNS,
    STARTED,
    UNPLANNED,
    UNSEEN_SOME,
    Factors,
    Jobs,
    Limits,
    Nodes,
    Run,
    Stops,
)


@machine_code
def note_change(run: Run) -> None:
    """Note that something has changed since the last main loop and the last backfill."""
    run.counters[CHANGED] = run.counters[UNPLANNED] = run.counters[UNSEEN_SOME] = 1


@machine_code
def count_asked(run: Run, row: int) -> None:
    """Count a job that waits no longer, if it is asked for."""
    if run.counters[ASKED] > 0 and run.counters[FIRST_ASKED] <= row < run.counters[LAST_ASKED]:
        run.counters[ASKED] -= 1


@machine_code
def _change_free(nodes: Nodes, run: Run, row: int, sign: int) -> None:
    """Release what a job has, or occupy it."""
    free = nodes.levels.levels
    nodes.counters[CHANGES] += 1
    for part in range(run.first[row], run.first[row] + run.part_count[row]):
        nodes.changed_at[run.parts[part, 0]] = nodes.counters[CHANGES]
        for resource in range(free.shape[2]):
            free[NOW, run.parts[part, 0], resource] += sign * run.parts[part, 1 + resource]


@separate
def start(  # noqa: PLR0913 - parts of the state
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    ticket: int,
    mode: int,
    now: int,
) -> None:
    """Start a job with the allocation that was chosen; mirrors ``SlurmScheduler._start`` and ``on_start``."""
    counters, row = run.counters, jobs.row[ticket]
    run.first[row], run.part_count[row] = counters[PARTS], nodes.counters[CHOSEN]
    for chosen in range(nodes.counters[CHOSEN]):
        for column in range(run.parts.shape[1]):
            run.parts[counters[PARTS], column] = nodes.chosen[chosen, column]
        counters[PARTS] += 1
    explain(run, row, now, 0)
    run.state[row], run.start_time[row], run.mode[row] = RUNS, now, mode
    run.part[row], run.class_[row] = jobs.part[ticket], jobs.class_[ticket]
    counters[JOBS_WAITING] -= 1
    if stops is None:
        count_asked(run, row)
    else:
        _note_start(jobs, run, stops, row, now)
    _change_free(nodes, run, row, MINUS)
    run.events[counters[EVENTS]] = row
    counters[EVENTS] += 1
    expect(run.expected, counters[RUNNING], now + jobs.requested_time[row], row)
    push(run.ends, counters[RUNNING], now + jobs.run_time[row], counters[STARTED], row)
    run.running[0, row], run.running[1, row] = -1, counters[LAST_RUNNING]
    if counters[LAST_RUNNING] >= 0:
        run.running[0, counters[LAST_RUNNING]] = row
    else:
        counters[FIRST_RUNNING] = row
    counters[LAST_RUNNING] = row
    counters[RUNNING] += 1
    counters[STARTED] += 1
    billing = billing_of(factors, run, row, jobs.part[ticket])
    begin_usage(jobs, factors, run, row, billing, now)
    enter_start(limits, run, row, billing)


@machine_code
def _note_start(jobs: Jobs, run: Run, stops: Stops, row: int, now: int) -> None:
    """Count a job among those that may be stopped; its first start is the one that is asked for."""
    if stops.first_start[row] < 0:
        stops.first_start[row] = now
        count_asked(run, row)
    _count_present(jobs, run, stops, row, 1)


@machine_code
def _count_present(jobs: Jobs, run: Run, stops: Stops, row: int, change: int) -> None:
    if not stops.rules.protected[run.part[row]]:
        stops.present[class_of(jobs, stops, row, run.part[row])] += change


@machine_code
def class_of(jobs: Jobs, stops: Stops, row: int, part: int) -> int:
    """Return the class of a job in a partition."""
    return int(jobs.tier[part] if stops.rules.by_tier else stops.rules.kind[row])


@pasted
def leave(
    factors: Factors,
    jobs: Jobs,
    limits: Limits,
    nodes: Nodes,
    run: Run,
    stops: Stops | None,
    row: int,
    now: int,
) -> None:
    """Let a job that has been removed from the heap of ends run no longer."""
    counters = run.counters
    forget(run.expected, counters[RUNNING], run.start_time[row] + jobs.requested_time[row], row)
    counters[RUNNING] -= 1
    run.events[counters[EVENTS]] = ~row
    counters[EVENTS] += 1
    _change_free(nodes, run, row, PLUS)
    after, before = run.running[0, row], run.running[1, row]
    if before >= 0:
        run.running[0, before] = after
    else:
        counters[FIRST_RUNNING] = after
    if after >= 0:
        run.running[1, after] = before
    else:
        counters[LAST_RUNNING] = before
    end_usage(jobs, factors, run, row, now)
    enter_end(limits, run, row)
    if stops is not None:
        _count_present(jobs, run, stops, row, -1)
    note_change(run)
