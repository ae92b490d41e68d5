"""The loop over the instants of a run."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import entry, machine_code
from hpcsimkit.compiled.listing import Listing
from hpcsimkit.compiled.passes import NO_LIMIT, scored_pass, sorted_pass
from hpcsimkit.compiled.predictions import Histories, correct, observe, predict
from hpcsimkit.compiled.queue import WAITING, Queue, add
from hpcsimkit.compiled.running import end_next
from hpcsimkit.compiled.scores import BY_RANK
from hpcsimkit.compiled.state import FREE, PASSES, RUNNING, Integers, Jobs, Rules, Run

__all__ = ["simulate"]


@entry
def simulate(
    jobs: Jobs, rules: Rules, run: Run, queue: Queue, listing: Listing, histories: Histories
) -> None:
    """Process all events: at each instant all ends, then all submissions, then a pass if jobs wait.

    Mirrors ``TextbookOrder`` and ``Run``.

    Parameters
    ----------
    jobs, rules : Jobs, Rules
        The workload and the pipeline.
    run, queue, listing, histories : Run, Queue, Listing, Histories
        The state, which this function changes; `run` has the schedule at the end.
    """
    is_sorted = rules.order == BY_RANK and not rules.window
    rank = jobs.rank if is_sorted else jobs.arrival
    count, arrived = len(jobs.arrival_order), 0
    head = -1
    while arrived < count or run.counters[RUNNING]:
        now = run.ends[0, 0] if run.counters[RUNNING] else NO_LIMIT
        if arrived < count:
            now = min(now, jobs.submit_time[jobs.arrival_order[arrived]])
        changed = _end_jobs(jobs, rules, run, histories, now)
        first = arrived
        arrived = _submit_jobs(jobs, rules, run, queue, histories, rank, arrived, now)
        if not queue.counters[WAITING]:
            continue
        run.counters[PASSES] += 1
        if rules.last_two:
            changed = correct(jobs, run, histories, now) or changed
        if not is_sorted:
            scored_pass(jobs, run, rules, queue, listing, now)
        elif changed or not _settled(jobs, run, queue, head, first, arrived, now):
            head = sorted_pass(jobs, run, rules, queue, listing, now)


@machine_code
def _end_jobs(jobs: Jobs, rules: Rules, run: Run, histories: Histories, now: int) -> bool:
    """End all jobs that end now, and return whether there are any; mirrors ``Run.end``."""
    ended = False
    while run.counters[RUNNING] and run.ends[0, 0] == now:
        row = end_next(jobs, run)
        ended = True
        if rules.last_two:
            observe(jobs, histories, row, now - run.start_time[row])
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
