"""The loop over the instants of a run."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import entry, machine_code
from hpcsimkit.compiled.listing import Listing
from hpcsimkit.compiled.passes import (
    CONSERVATIVE,
    NO_LIMIT,
    SEVERAL,
    is_sorted,
    scored_pass,
    sorted_pass,
    update_plan,
)
from hpcsimkit.compiled.plan import WAKES, Plan, end_wakes, next_wake, note_end, request_wake, welcome
from hpcsimkit.compiled.predictions import Histories, correct, observe, predict
from hpcsimkit.compiled.queue import WAITING, Queue, add
from hpcsimkit.compiled.running import end_next
from hpcsimkit.compiled.state import FREE, PASSES, RUNNING, Integers, Jobs, Rules, Run

__all__ = ["simulate"]


@entry
def simulate(
    jobs: Jobs, rules: Rules, run: Run, queue: Queue, listing: Listing, histories: Histories, plan: Plan
) -> None:
    """Process all events: at each instant all ends, then all submissions, then a pass if jobs wait.

    Mirrors ``TextbookOrder`` and ``Run``.

    Parameters
    ----------
    jobs, rules : Jobs, Rules
        The workload and the pipeline.
    run, queue, listing, histories, plan : Run, Queue, Listing, Histories, Plan
        The state, which this function changes; `run` has the schedule at the end.
    """
    rank = jobs.rank if is_sorted(rules) else jobs.arrival
    planned = rules.backfilling == SEVERAL or rules.backfilling == CONSERVATIVE
    count, arrived = len(jobs.arrival_order), 0
    head = -1
    while arrived < count or run.counters[RUNNING] or (queue.counters[WAITING] and plan.counters[WAKES]):
        now = next_wake(plan, run.ends[0, 0] if run.counters[RUNNING] else NO_LIMIT)
        if arrived < count:
            now = min(now, jobs.submit_time[jobs.arrival_order[arrived]])
        end_wakes(plan, now)
        changed = _end_jobs(jobs, rules, run, histories, plan, now)
        first = arrived
        arrived = _submit_jobs(jobs, rules, run, queue, histories, rank, arrived, now)
        if not queue.counters[WAITING]:
            continue
        run.counters[PASSES] += 1
        corrected = rules.last_two > 0 and correct(jobs, run, histories, now)
        if rules.backfilling == CONSERVATIVE:
            update_plan(jobs, rules, run, queue, listing, plan, now, corrected)
            for place in range(first, arrived):
                welcome(plan, jobs, run, jobs.arrival_order[place], now)
            request_wake(plan, now)
        if not is_sorted(rules):
            scored_pass(jobs, run, rules, queue, listing, plan, now)
        elif planned or changed or corrected or not _settled(jobs, run, queue, head, first, arrived, now):
            head = sorted_pass(jobs, run, rules, queue, listing, plan, now)


@machine_code
def _end_jobs(jobs: Jobs, rules: Rules, run: Run, histories: Histories, plan: Plan, now: int) -> bool:
    """End all jobs that end now, and return whether there are any; mirrors ``Run.end``."""
    ended = False
    while run.counters[RUNNING] and run.ends[0, 0] == now:
        row = end_next(jobs, run)
        ended = True
        if rules.last_two:
            observe(jobs, histories, row, now - run.start_time[row])
        if rules.backfilling == CONSERVATIVE:
            note_end(plan, row)
    return ended


@machine_code
def _submit_jobs(
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    histories: Histories,
    rank: Integers,
    arrived: int,
    now: int,
) -> int:
    """Add all jobs that are submitted now, and return the number of submissions; mirrors ``Run.submit``."""
    while arrived < len(jobs.arrival_order):
        row = jobs.arrival_order[arrived]
        if jobs.submit_time[row] > now:
            break
        if rules.last_two:
            run.estimate[row] = predict(jobs, histories, row)
        add(queue, row, rank, jobs.nodes, run.estimate)
        arrived += 1
    return arrived


@machine_code
def _settled(jobs: Jobs, run: Run, queue: Queue, head: int, first: int, arrived: int, now: int) -> bool:
    """Return whether a pass would start nothing, as only submissions occurred since the last one.

    Mirrors ``SettlingBackfiller.skip``: the first job that does not fit is the same, no new job fits, and no
    job exceeds its estimate.
    """
    if queue.rows[queue.order[0], 0] != head or run.expected[0, 0] <= now:
        return False
    fits = False
    for place in range(first, arrived):
        fits |= jobs.nodes[jobs.arrival_order[place]] <= run.counters[FREE]
    return not fits
