"""Test runs in what the reservation of the head leaves, on homogeneous nodes.

Mirrors :class:`~hpcsimkit.policies.backfill.testing.HoleTests`. A test that its job outlasts is an end with a
number of its own in the heap of ends: it comes after the ends of jobs at that instant.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from hpcsimkit.compiled.attempts import TESTED
from hpcsimkit.compiled.compilation import called, pasted
from hpcsimkit.compiled.listing import Listing, sort
from hpcsimkit.compiled.passes import admissible, less, list_waiting, room_behind
from hpcsimkit.compiled.queue import Queue, remove
from hpcsimkit.compiled.running import enter, push
from hpcsimkit.compiled.state import RUNNING, STARTED, Integers, Jobs, Rules, Run
from hpcsimkit.compiled.stops import GIVE, TEST, Stops, stop, take_incomplete

MODE = cast(int, np.int64(4))
"""Start mode, as in :class:`~hpcsimkit.kernel.ledger.Mode`; no literal, see :mod:`.compilation`."""


class Tests(NamedTuple):
    """The tester of a pipeline.

    Attributes
    ----------
    seconds : array of int64, shape (levels,)
        Longest time of a test at each level [s], ascending.
    left : array of int64, shape (jobs,)
        Number of levels at which each job may still be tested: the last ones.
    """

    seconds: Integers
    left: Integers


@pasted
def stop_tests(
    jobs: Jobs, run: Run, queue: Queue, stops: Stops | None, tests: Tests | None, now: int
) -> bool:
    """Stop the jobs whose tests are over now; return whether there are any. Mirrors ``Run._stop_test``."""
    if tests is None or stops is None:
        return False
    return _stop_tests(jobs, run, queue, stops, tests, now)


@called
def _stop_tests(jobs: Jobs, run: Run, queue: Queue, stops: Stops, tests: Tests, now: int) -> bool:
    stopped = False
    while run.counters[RUNNING] and run.ends[0, 0] == now and TEST <= run.ends[1, 0] < GIVE:
        row = run.ends[2, 0]
        tests.left[row] -= 1
        stop(jobs, run, queue, None, stops, None, row, now, TESTED)
        stopped = True
    return stopped


@pasted
def take_after_tests(jobs: Jobs, run: Run, stops: Stops | None, stopped: bool, now: int) -> None:
    """Take what stopped tests have freed of nodes that go out of order; mirrors ``Run._drain``."""
    if stops is not None and stopped:
        take_incomplete(jobs, run, stops, now)


@called
def fill_with_tests(
    jobs: Jobs, run: Run, rules: Rules, queue: Queue, listing: Listing, tests: Tests, head: int, now: int
) -> None:
    """Start the waiting jobs that may be tested beside the reservation of the head, in policy order.

    Mirrors ``HoleTests.chosen``.
    """
    count = list_waiting(jobs, run, rules, queue, listing, None, None, now)
    sort(listing, count)
    room, levels = room_behind(jobs, run, rules, head, now), len(tests.seconds)
    for position in range(count):
        row = listing.rows[position]
        left = tests.left[row]
        if not left or row == head:
            continue
        seconds = tests.seconds[levels - left]
        if seconds < run.estimate[row] and admissible(room, jobs.nodes[row], seconds):
            _begin(jobs, run, queue, row, seconds, now)
            room = less(jobs, run, room, row)


@pasted
def _begin(jobs: Jobs, run: Run, queue: Queue, row: int, seconds: int, now: int) -> None:
    """Start a test that is at most some seconds long; mirrors ``Run._schedule_stop``."""
    remove(queue, None, row, jobs.rank)
    end, number = now + jobs.run_time[row], run.counters[STARTED]
    if jobs.run_time[row] > seconds:
        end, number = now + seconds, TEST + number
    run.estimate[row] = seconds
    push(run.ends, run.counters[RUNNING], end, number, row)
    enter(jobs, run, row, now, MODE)
