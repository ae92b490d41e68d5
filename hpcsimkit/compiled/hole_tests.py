"""Test runs in what reservations leave: their ends, and their starts on homogeneous nodes.

Mirrors :class:`~hpcsimkit.policies.backfill.testing.HoleTests`. A test that its job outlasts is an end with a
number of its own in the heap of ends: it comes after the ends of jobs at that instant.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from hpcsimkit.compiled.attempts import TESTED
from hpcsimkit.compiled.compilation import called, machine_code, pasted
from hpcsimkit.compiled.listing import Listing, sort
from hpcsimkit.compiled.machine_outages import take_free
from hpcsimkit.compiled.machines import Machines
from hpcsimkit.compiled.passes import admissible, less, list_waiting, room_behind
from hpcsimkit.compiled.plan import Plan
from hpcsimkit.compiled.profile import Profile, fits, occupy
from hpcsimkit.compiled.queue import Queue, remove
from hpcsimkit.compiled.running import enter, push
from hpcsimkit.compiled.state import FREE, RUNNING, STARTED, Integers, Jobs, Rules, Run, Tests
from hpcsimkit.compiled.stops import GIVE, TEST, Stops, stop, take_incomplete

MODE = cast(int, np.int64(4))
"""Start mode, as in :class:`~hpcsimkit.kernel.ledger.Mode`; no literal, see :mod:`.compilation`."""


@pasted
def stop_tests(
    jobs: Jobs,
    run: Run,
    queue: Queue,
    machines: Machines | None,
    stops: Stops | None,
    tests: Tests | None,
    now: int,
) -> bool:
    """Stop the jobs whose tests are over now; return whether there are any. Mirrors ``Run._stop_test``."""
    if tests is None or stops is None:
        return False
    return _stop_tests(jobs, run, queue, machines, stops, tests, now)


@called
def _stop_tests(
    jobs: Jobs, run: Run, queue: Queue, machines: Machines | None, stops: Stops, tests: Tests, now: int
) -> bool:
    stopped = False
    while run.counters[RUNNING] and run.ends[0, 0] == now and TEST <= run.ends[1, 0] < GIVE:
        row = run.ends[2, 0]
        tests.left[row] -= 1
        if not tests.delay:
            tests.asked[row] = 0
        stop(jobs, run, queue, None, machines, stops, None, row, now, TESTED)
        stopped = True
    return stopped


@pasted
def take_after_tests(
    jobs: Jobs, run: Run, machines: Machines | None, stops: Stops | None, stopped: bool, now: int
) -> None:
    """Take what stopped tests have freed of nodes that go out of order; mirrors ``Run._drain``."""
    if stops is not None and stopped:
        if machines is None:
            take_incomplete(jobs, run, stops, now)
        else:
            take_free(jobs, run, machines, stops, now)


@pasted
def fill_with_tests(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    profile: Profile | None,
    plan: Plan | None,
    tests: Tests,
    head: int,
    now: int,
) -> None:
    """Start the waiting jobs that may be tested beside all reservations, in policy order.

    Mirrors ``HoleTests.chosen``.
    """
    count = list_waiting(jobs, run, rules, queue, listing, None, None, now)
    sort(listing, count)
    if plan is not None:
        _test_in_profile(jobs, run, queue, listing, plan.profile, plan.start, tests, head, count, now)
    elif profile is not None:
        _test_in_profile(jobs, run, queue, listing, profile, tests.reserved, tests, head, count, now)
    else:
        _test_behind(jobs, run, rules, queue, listing, tests, head, count, now)


@machine_code
def seconds_of(run: Run, tests: Tests, head: int, row: int) -> int:
    """Return the time of the next test of a job [s]; 0 if it is not to be tested."""
    left = tests.left[row]
    if not left or row == head:
        return 0
    seconds = tests.seconds[len(tests.seconds) - left]
    return int(seconds) if seconds < run.estimate[row] else 0


@called
def _test_behind(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    rules: Rules,
    queue: Queue,
    listing: Listing,
    tests: Tests,
    head: int,
    count: int,
    now: int,
) -> None:
    """Start tests of listed jobs that do not delay the head; mirrors ``HoleBesideHead``."""
    room = room_behind(jobs, run, rules, head, now)
    for position in range(count):
        row = listing.rows[position]
        seconds = seconds_of(run, tests, head, row)
        if seconds and admissible(room, jobs.nodes[row], seconds):
            _begin(jobs, run, queue, tests, row, seconds, now)
            room = less(jobs, run, room, row)


@called
def _test_in_profile(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    queue: Queue,
    listing: Listing,
    profile: Any,
    reserved: Integers,
    tests: Tests,
    head: int,
    count: int,
    now: int,
) -> None:
    """Start tests of listed jobs that delay no reservation, and are over by their own [s].

    Mirrors ``HoleInProfile``.
    """
    nodes = jobs.nodes
    for position in range(count):
        row = listing.rows[position]
        seconds = seconds_of(run, tests, head, row)
        if not seconds or nodes[row] > run.counters[FREE] or now + seconds + tests.delay > reserved[row]:
            continue
        if fits(profile, nodes[row], seconds):
            _begin(jobs, run, queue, tests, row, seconds, now)
            occupy(profile, now, now + seconds, nodes[row])


@pasted
def _begin(jobs: Jobs, run: Run, queue: Queue, tests: Tests, row: int, seconds: int, now: int) -> None:
    """Start a test that is at most some seconds long."""
    remove(queue, None, row, jobs.rank)
    schedule_stop(jobs, run, tests, row, seconds, now)
    enter(jobs, run, row, now, MODE)


@pasted
def schedule_stop(jobs: Jobs, run: Run, tests: Tests, row: int, seconds: int, now: int) -> None:
    """Schedule the end of a job in its test, or its stop after some seconds.

    Mirrors ``Run._schedule_stop``.
    """
    end, number = now + jobs.run_time[row], run.counters[STARTED]
    if jobs.run_time[row] > seconds:
        end, number = now + seconds, TEST + number
    tests.asked[row], run.estimate[row] = run.estimate[row], seconds
    push(run.ends, run.counters[RUNNING], end, number, row)
