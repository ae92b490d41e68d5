"""The loop over the instants of a run with gates, on homogeneous nodes."""

from __future__ import annotations

from typing import Any

from hpcsimkit.compiled.compilation import machine_code, pasted
from hpcsimkit.compiled.gates import (
    AGAIN,
    ASKS,
    HELD_JOBS,
    LACKING,
    NEWCOMERS,
    WANTED,
    Gates,
    after_end,
    submit_due,
)
from hpcsimkit.compiled.listing import Listing
from hpcsimkit.compiled.passes import renew_plan
from hpcsimkit.compiled.plain_passes import plain_pass
from hpcsimkit.compiled.plan import NEXT_PASS, Plan, note_end, request_pass, welcome
from hpcsimkit.compiled.queue import WAITING, Queue
from hpcsimkit.compiled.running import end_next
from hpcsimkit.compiled.state import ARRIVED, NO_LIMIT, PASSES, RUNNING, Integers, Jobs, Rules, Run
from hpcsimkit.compiled.stops import FROM_THE_BEGINNING, OVER
from hpcsimkit.compiled.windows import Windows, change_windows, count_after_end, next_step


def simulate(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    listing: Listing,
    gone: Integers,
    profile: Any,
    plan: Plan | None,
    windows: Windows | None,
    gates: Gates,
) -> int:
    """Process all events: at each instant ends, changes of the calendar, submissions; then a pass if wanted.

    Return what the run needs to go on, :data:`~hpcsimkit.compiled.stops.OVER` if it is over.

    Mirrors ``TextbookOrder`` and ``Run`` with gates. The parameters are those of
    :func:`hpcsimkit.compiled.loop.simulate`, and the gates.
    """
    now = NO_LIMIT
    while not gates.counters[LACKING]:
        if not gates.counters[AGAIN]:
            now = _next_instant(run, plan, windows, gates)
        if now == NO_LIMIT:
            return OVER
        _end_jobs(jobs, run, queue, plan, windows, gates, now)
        _change_capacity(jobs, run, queue, windows, gates, now)
        if plan is not None and plan.counters[NEXT_PASS] == now:  # mirrors Scheduler._wake_as_planned
            plan.counters[NEXT_PASS] = NO_LIMIT
            gates.counters[WANTED] |= queue.counters[WAITING] > 0
        submit_due(jobs, run, queue, plan, gates, now)
        if gates.counters[AGAIN]:  # mirrors Run._pass_again
            gates.counters[AGAIN] = 0
            gates.counters[WANTED] |= queue.counters[WAITING] > 0
        if not gates.counters[WANTED]:
            continue
        gates.counters[WANTED] = 0
        run.counters[PASSES] += 1
        if plan is not None:
            _update_plan(jobs, rules, run, queue, listing, gone, plan, gates, now)
        gates.counters[NEWCOMERS] = 0
        plain_pass(jobs, run, rules, queue, listing, gone, None, profile, plan, windows, gates, None, now)
        gates.counters[WANTED] = 0
        if plan is not None:
            request_pass(plan, now)
    return FROM_THE_BEGINNING


@pasted
def _next_instant(run: Run, plan: Plan | None, windows: Windows | None, gates: Gates) -> int:
    """Return the time of the next events [s], after all others if there are none."""
    now = run.ends[0, 0] if run.counters[RUNNING] else NO_LIMIT
    if gates.counters[ASKS]:
        now = min(now, gates.asks[0, 0])
    if plan is not None:
        now = min(now, plan.counters[NEXT_PASS])
    if windows is not None:
        now = next_step(windows, now)
    return now


@machine_code
def _end_jobs(
    jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, windows: Windows | None, gates: Gates, now: int
) -> None:
    """End all jobs that end now; mirrors ``Run.end``."""
    while run.counters[RUNNING] and run.ends[0, 0] == now:
        row = end_next(jobs, run)
        if plan is not None:
            note_end(plan, row)
        after_end(jobs, run, queue, plan, gates, row, now)
        if windows is not None:
            count_after_end(run, windows, now)


@pasted
def _change_capacity(
    jobs: Jobs, run: Run, queue: Queue, windows: Windows | None, gates: Gates, now: int
) -> None:
    """Take or return the nodes of windows that begin or end now; mirrors ``Run._change``."""
    if windows is not None:
        # All jobs have come once none is held, or is to be asked about: see `System.over`.
        to_come = gates.counters[ASKS] or gates.counters[HELD_JOBS]
        run.counters[ARRIVED] = 0 if to_come else len(jobs.arrival_order)
        if change_windows(jobs, run, queue, windows, now):
            gates.counters[WANTED] |= queue.counters[WAITING] > 0


@machine_code
def _update_plan(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    listing: Listing,
    gone: Integers,
    plan: Plan,
    gates: Gates,
    now: int,
) -> None:
    """Update all reservations, and reserve slots for those who have joined; mirrors ``Conservative.plan``."""
    renew_plan(jobs, rules, run, queue, listing, gone, None, None, plan, now, False)
    for place in range(gates.counters[NEWCOMERS]):
        welcome(plan, jobs, run, None, listing, gates.newcomers[place], now)
