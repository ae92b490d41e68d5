"""The loop over the instants of a run."""

from __future__ import annotations

from typing import Any

from hpcsimkit.compiled.compilation import pasted
from hpcsimkit.compiled.fair_shares import Shares, charge_ended, see
from hpcsimkit.compiled.filling import skips
from hpcsimkit.compiled.hole_tests import stop_tests, take_after_tests
from hpcsimkit.compiled.hole_tests_on_machines import fill_machines_with_tests
from hpcsimkit.compiled.journal import ENDED, Journal, enter_in
from hpcsimkit.compiled.listing import Listing
from hpcsimkit.compiled.machine_outages import change_machines, take_free
from hpcsimkit.compiled.machines import NEWCOMERS, Machines
from hpcsimkit.compiled.machines import end_next as end_next_on_machines
from hpcsimkit.compiled.passes import scored_pass, sorted_pass, update_plan
from hpcsimkit.compiled.plain_passes import plain_pass
from hpcsimkit.compiled.plan import Plan, next_pass, note_end
from hpcsimkit.compiled.predictions import Histories, correct, observe, predict
from hpcsimkit.compiled.queue import WAITING, Queue, Sizes, add
from hpcsimkit.compiled.running import end_next
from hpcsimkit.compiled.state import (
    ARRIVED,
    FREE,
    NO_LIMIT,
    PASSES,
    PLANNED,
    RUNNING,
    Integers,
    Jobs,
    Rules,
    Run,
    Tests,
)
from hpcsimkit.compiled.stops import (
    OVER,
    TEST,
    Stops,
    change_capacity,
    join,
    need,
    next_change,
    rejoin_later,
    take_after_pass,
    take_correction,
    take_what_is_left,
)
from hpcsimkit.compiled.windows import Windows, change_windows, count_after_end, next_step


def simulate(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    rules: Rules,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    listing: Listing | None,
    gone: Integers | None,
    shares: Shares | None,
    machines: Machines | None,
    histories: Histories | None,
    profile: Any,
    plan: Plan | None,
    candidate_shares: Shares | None,
    stops: Stops | None,
    windows: Windows | None,
    tests: Tests | None,
) -> int:
    """Process all events: at each instant all ends, then all submissions, then a pass if jobs wait.

    Return what the run needs to go on, :data:`~hpcsimkit.compiled.stops.OVER` if it is over.

    Mirrors ``TextbookOrder`` and ``Run``. Numba drops the code for what is None, here and in all functions
    that it calls, so that each kind of policy is compiled on its own when it is first used.

    Parameters
    ----------
    jobs, rules : Jobs, Rules
        The workload and the pipeline.
    run, queue : Run, Queue
        The state, which this function changes; `run` has the schedule at the end.
    sizes : Sizes, optional
        Sizes in the queue, if jobs are searched in its order.
    listing : Listing, optional
        Space for lists of jobs, unless all decisions follow the order of the queue.
    gone : array of int64, shape (jobs,), optional
        Space for marks of listed jobs, if scores of this instant or a window decide which job is next.
    shares : Shares, optional
        Shares and usage of users, if they are in the scores.
    machines : Machines, optional
        The machines, unless nodes are counted.
    histories : Histories, optional
        Knowledge of users, if it predicts run times.
    profile : Profile or MachineProfile, optional
        Available capacity over time, if several reservations are made anew at each pass.
    plan : Plan, optional
        Reservations of all waiting jobs, if each is made on arrival (conservative backfilling).
    candidate_shares : Shares, optional
        Those of the listing.
    stops : Stops, optional
        Outages, and the jobs that they stop.
    windows : Windows, optional
        Windows in which nodes are gone.
    tests : Tests, optional
        The tester.
    """
    head = -1
    while True:
        needed = need(jobs, run, queue, machines, stops)
        if needed != OVER:
            return needed
        now = max(next_instant(jobs, run, queue, plan, stops, windows), rules.begin)
        if now == NO_LIMIT:
            return OVER
        changed = end_jobs(
            jobs, run, shares, candidate_shares, machines, histories, plan, stops, windows, None, now
        )
        tested = stop_tests(jobs, run, queue, machines, stops, tests, now)
        changed |= _change_capacity(jobs, run, queue, sizes, machines, stops, plan, now)
        changed |= change_windows(jobs, run, queue, windows, now)
        first = run.counters[ARRIVED]
        submit_jobs(jobs, run, queue, sizes, shares, candidate_shares, histories, stops, now)
        changed |= rejoin_later(jobs, run, queue, sizes, machines, stops, plan, now)
        take_after_tests(jobs, run, machines, stops, tested, now)
        if not queue.counters[WAITING]:
            continue
        run.counters[PASSES] += 1
        corrected = _corrects(jobs, run, machines, histories, stops, now)
        changed |= corrected
        if plan is not None and listing is not None:
            update_plan(
                jobs, rules, run, queue, listing, gone, shares, machines, plan, stops, first, now, corrected
            )
        blocked = -1
        if machines is not None:
            machines.counters[NEWCOMERS] = first
        if (
            machines is None
            and (windows is not None or tests is not None)
            and gone is not None
            and listing is not None
        ):
            plain_pass(
                jobs, run, rules, queue, listing, gone, shares, profile, plan, windows, None, tests, now
            )
        elif gone is not None and listing is not None:
            blocked = scored_pass(
                jobs, run, rules, queue, sizes, listing, gone, shares, machines, profile, plan, stops, now
            )
        elif (
            changed
            or (stops is not None and machines is None)
            or rules.backfilling == PLANNED
            or not _settled(jobs, run, rules, queue, machines, head, first, now)
        ):
            head = sorted_pass(jobs, run, rules, queue, sizes, listing, machines, profile, plan, stops, now)
            blocked = head
        fill_machines_with_tests(
            jobs, run, rules, queue, listing, machines, profile, plan, tests, blocked, now
        )
        take_after_pass(jobs, run, machines, stops, now)


@pasted
def _change_capacity(
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    machines: Machines | None,
    stops: Stops | None,
    plan: Plan | None,
    now: int,
) -> bool:
    """Return capacity from outages that end now, and begin others; return whether there are any."""
    if stops is None:
        return False
    if machines is None:
        return change_capacity(jobs, run, queue, sizes, stops, plan, now)
    return change_machines(jobs, run, queue, machines, stops, plan, now)


@pasted
def _corrects(
    jobs: Jobs,
    run: Run,
    machines: Machines | None,
    histories: Histories | None,
    stops: Stops | None,
    now: int,
) -> bool:
    """Correct estimates that were exceeded; return whether a plan of reservations is void, also by a stop."""
    if histories is not None:
        return correct(jobs, run, machines, histories, now)
    if stops is not None:
        return take_correction(stops)
    return False


@pasted
def next_instant(
    jobs: Jobs, run: Run, queue: Queue, plan: Plan | None, stops: Stops | None, windows: Windows | None
) -> int:
    """Return the time of the next events [s], after all others if there are none."""
    now = run.ends[0, 0] if run.counters[RUNNING] else NO_LIMIT
    arrived = run.counters[ARRIVED]
    if arrived < len(jobs.arrival_order):
        now = min(now, jobs.due[jobs.arrival_order[arrived]])
    if plan is not None and queue.counters[WAITING]:
        now = next_pass(plan, now)
    if stops is not None:
        now = next_change(jobs, run, queue, stops, now)
    if windows is not None:
        now = next_step(windows, now)
    return now


@pasted
def end_jobs(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    shares: Shares | None,
    candidate_shares: Shares | None,
    machines: Machines | None,
    histories: Histories | None,
    plan: Plan | None,
    stops: Stops | None,
    windows: Windows | None,
    journal: Journal | None,
    now: int,
) -> bool:
    """End all jobs that end now, and return whether there are any; mirrors ``Run.end``."""
    ended = False
    while run.counters[RUNNING] and run.ends[0, 0] == now:
        if stops is not None and run.ends[1, 0] >= TEST:
            break
        row = end_next(jobs, run) if machines is None else end_next_on_machines(run, machines)
        ended = True
        if shares is not None:
            charge_ended(shares, run, row, now)
        if candidate_shares is not None:
            charge_ended(candidate_shares, run, row, now)
        if histories is not None:
            observe(jobs, histories, row, now - run.start_time[row])
        if plan is not None:
            note_end(plan, row)
        if stops is not None:
            _take_what_is_left(jobs, run, machines, stops, row, now)
        if windows is not None:
            count_after_end(run, windows, now)
        if journal is not None:
            enter_in(journal, ENDED, row, now)
    return ended


@pasted
def _take_what_is_left(
    jobs: Jobs, run: Run, machines: Machines | None, stops: Stops, row: int, now: int
) -> None:
    """Take out of order what a job that has ended leaves; mirrors ``Run.end``."""
    if machines is None:
        take_what_is_left(jobs, run, stops, row, now)
    else:
        take_free(jobs, run, machines, stops, now)


@pasted
def submit_jobs(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    queue: Queue,
    sizes: Sizes | None,
    shares: Shares | None,
    candidate_shares: Shares | None,
    histories: Histories | None,
    stops: Stops | None,
    now: int,
) -> None:
    """Add all jobs that are submitted now; mirrors ``Run.submit``."""
    arrived = run.counters[ARRIVED]
    while arrived < len(jobs.arrival_order) and jobs.due[jobs.arrival_order[arrived]] <= now:
        row = jobs.arrival_order[arrived]
        if shares is not None:
            see(shares, jobs, row)
        if candidate_shares is not None:
            see(candidate_shares, jobs, row)
        if histories is not None:
            run.estimate[row] = predict(jobs, histories, row)
        if stops is not None:
            join(jobs, stops, row)
        add(queue, sizes, row, jobs.rank, jobs.nodes, run.estimate)
        arrived += 1
    run.counters[ARRIVED] = arrived


@pasted
def _settled(
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    machines: Machines | None,
    head: int,
    first: int,
    now: int,
) -> bool:
    """Return whether a pass would start nothing, as only submissions occurred since the last one.

    Mirrors ``SettlingBackfiller.skip``: the first job that does not fit is the same, no new job fits, and no
    job exceeds its estimate.
    """
    if machines is not None:
        return skips(jobs, run, rules, machines, queue.rows[queue.order[0], 0], now)
    if queue.rows[queue.order[0], 0] != head or run.expected[0, 0] <= now:
        return False
    fits = False
    for place in range(first, run.counters[ARRIVED]):
        fits |= jobs.nodes[jobs.arrival_order[place]] <= run.counters[FREE]
    return not fits
