"""Limits of QOS and associations, and the reasons for which they hold jobs.

Mirrors :mod:`hpcsimkit.slurm.limits`.
"""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.slurm_priority import amount_of
from hpcsimkit.compiled.slurm_state import (
    AMOUNT,
    EVENTS,
    FIRST_RUNNING,
    GROUP,
    JOBS,
    LEAST,
    LOGGED,
    MEASURE,
    MINUTES,
    MINUTES_OF_JOB,
    NAME,
    OF_BILLING,
    PER_NODE,
    REASON,
    WALL,
    Jobs,
    Limits,
    Run,
)

MINUTE = 60


@machine_code
def holds(jobs: Jobs, limits: Limits, run: Run, ticket: int, now: int) -> int:
    """Return the number of the reason that holds a ticket now, 0 for none.

    What was found holds until a job starts or ends that counts under one of the limits, unless one of them
    depends on the time that running jobs have left: the jobs of a class are checked against the same groups,
    and what a ticket asks for never changes.
    """
    if run.checked[ticket] < limits.changed_at[jobs.class_[ticket]]:
        run.held[ticket] = reason_of(jobs, limits, run, ticket, now, False)
        run.checked[ticket] = run.counters[EVENTS]
    return int(run.held[ticket])


@separate
def reason_of(jobs: Jobs, limits: Limits, run: Run, ticket: int, now: int, alone: bool) -> int:
    """Return the number of the reason that holds a ticket, 0 for none; `alone`, as if no job were running.

    Mirrors ``LimitBook.reason`` and ``LimitBook.never``.
    """
    of = jobs.class_[ticket]
    for check in range(limits.first_check[of], limits.first_check[of + 1]):
        if _is_beyond(jobs, limits, run, ticket, check, now, alone):
            return int(limits.checks[check, REASON])
    return 0


@pasted
def _is_beyond(jobs: Jobs, limits: Limits, run: Run, ticket: int, check: int, now: int, alone: bool) -> bool:
    """Return whether a ticket exceeds a limit, together with running jobs."""
    measure, limit, row = limits.checks[check, MEASURE], limits.limit[check], jobs.row[ticket]
    name, group = limits.checks[check, NAME], limits.checks[check, GROUP]
    if measure == JOBS:
        return bool((0 if alone else limits.jobs[group]) + 1 > limit)
    if measure == WALL:
        return bool(jobs.requested_time[row] > limit)
    own = limits.asked[name, row]
    if limits.source[name] == OF_BILLING:
        own = jobs.billing[ticket]
    if measure == LEAST:
        return bool(own < limit)
    others = 0.0
    if measure == PER_NODE:
        own /= jobs.nodes[row]
    elif measure in (MINUTES, MINUTES_OF_JOB):
        own *= jobs.requested_time[row] / MINUTE
        if measure == MINUTES and not alone:
            others = _minutes(jobs, limits, run, group, name, now)
    elif measure == AMOUNT and not alone:
        others = limits.running[group, name]
    return bool(own > 0 and own + others > limit)


@separate
def _minutes(jobs: Jobs, limits: Limits, run: Run, group: int, name: int, now: int) -> float:
    """Return an amount of all jobs of a group, each times the minutes left; mirrors ``_Group.minutes``."""
    if limits.counted_at[group] != now:
        limits.counted_at[group] = now
        for each in range(limits.minutes.shape[1]):
            limits.minutes[group, each] = 0.0
        row = run.counters[FIRST_RUNNING]
        while row >= 0:
            if _belongs(limits, run.class_[row], group):
                left = max(run.start_time[row] + jobs.requested_time[row] - now, 0)
                for each in range(limits.minutes.shape[1]):
                    limits.minutes[group, each] += limits.has[each, row] * left
            row = run.running[0, row]
    return float(limits.minutes[group, name] / MINUTE)


@machine_code
def _belongs(limits: Limits, of: int, group: int) -> bool:
    """Return whether the jobs of a class belong to a group."""
    for place in range(limits.first_group[of], limits.first_group[of + 1]):
        if limits.groups[place] == group:
            return True
    return False


@separate
def enter_start(limits: Limits, run: Run, row: int, billing: float) -> None:
    """Enter a job that has started in the groups of its class; mirrors ``LimitBook.start``."""
    for name in range(len(limits.source)):
        limits.has[name, row] = amount_of(run, row, limits.source[name], billing)
    _enter(limits, run, row, 1)


@separate
def enter_end(limits: Limits, run: Run, row: int) -> None:
    """Enter a job that runs no longer; mirrors ``LimitBook.end``."""
    _enter(limits, run, row, -1)


@machine_code
def _enter(limits: Limits, run: Run, row: int, sign: int) -> None:
    of = run.class_[row]
    for place in range(limits.first_group[of], limits.first_group[of + 1]):
        group = limits.groups[place]
        limits.jobs[group] += sign
        limits.counted_at[group] = -1
        _note_change_of(limits, run, group)
        for name in range(len(limits.source)):
            limits.running[group, name] += sign * limits.has[name, row]
            if not limits.jobs[group]:
                limits.running[group, name] = 0.0


@machine_code
def _note_change_of(limits: Limits, run: Run, group: int) -> None:
    """Note for the classes that are checked against a group that it has changed."""
    for place in range(limits.first_watching[group], limits.first_watching[group + 1]):
        of = limits.watching[place]
        limits.changed_at[of] = max(limits.changed_at[of], run.counters[EVENTS])


@separate
def explain(run: Run, row: int, now: int, reason: int) -> None:
    """Enter the reason that holds a job, if any, in place of another one; mirrors ``Ledger.explain``."""
    if run.reason[row] == reason:
        return
    if run.reason[row] and now > run.since[row]:
        write_in_log(run, row, now)
    run.reason[row], run.since[row] = reason, now


@separate
def write_in_log(run: Run, row: int, now: int) -> None:
    """Enter that a reason holds a job until now."""
    place, log = run.counters[LOGGED], run.log
    log[0, place], log[1, place] = row, run.since[row]
    log[2, place], log[3, place] = now, run.reason[row]
    run.counters[LOGGED] += 1
