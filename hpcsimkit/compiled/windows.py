"""Windows of a calendar, in which homogeneous nodes are gone, and passes beside them.

Mirrors :mod:`hpcsimkit.cluster.calendar`, and what pipelines do if there is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpcsimkit.cluster.calendar import Calendar
from hpcsimkit.compiled.compilation import machine_code, pasted
from hpcsimkit.compiled.profile import STEPS, Profile, expect_ends, occupy
from hpcsimkit.compiled.queue import WAITING, Queue
from hpcsimkit.compiled.state import ARRIVED, FREE, RUNNING, Integers, Jobs, Run

NEXT, PENDING, GONE, SINCE, DOWN, RECORDED = range(6)
"""Positions in :attr:`Windows.counters`."""


class Windows(NamedTuple):
    """The windows of a calendar, and its state.

    Attributes
    ----------
    steps : array of int64, shape (2, steps)
        Times from which another number of nodes is gone [s], and the number.
    windows : array of int64, shape (3, windows)
        Beginning and end [s] of the windows, and their numbers of nodes.
    down : array of int64, shape (3, places)
        Beginning and end [s] of times in which nodes were gone and not in use, and the number of nodes.
    counters : array of int64
        Number of the next step, whether it is to come, number of nodes that are gone; since when nodes have
        been down [s], and how many; and number of such times so far, at the positions named above.
    """

    steps: Integers
    windows: Integers
    down: Integers
    counters: Integers


def new_windows(calendar: Calendar, run: Run, jobs: int, begin: int) -> Windows:
    """Return the windows at the beginning of a run [s], from whose free nodes they take theirs."""
    steps = np.array(calendar.steps, dtype=np.int64).reshape(-1, 2).T.copy()
    windows = [(each.start, each.end, each.nodes) for each in calendar.windows]
    gone = calendar.gone(begin)
    run.counters[FREE] -= gone
    following = int(np.searchsorted(steps[0], begin, side="right"))
    pending = following < steps.shape[1]
    return Windows(
        steps,
        np.array(windows, dtype=np.int64).reshape(-1, 3).T.copy(),
        np.empty((3, jobs + steps.shape[1] + 1), dtype=np.int64),
        np.array([following, pending, gone, begin, gone, 0], dtype=np.int64),
    )


def announce(profile: Profile, windows: Windows) -> None:
    """Subtract the nodes that are gone from the profile of an idle cluster."""
    times, gone = windows.steps
    count = len(times)
    profile.times[1 : count + 1], profile.levels[1 : count + 1] = times, profile.levels[0] - gone
    profile.counters[STEPS] = 1 + count


@pasted
def next_step(windows: Windows, limit: int) -> int:
    """Return the time of the next change of the calendar [s], or the limit if it comes first."""
    counters = windows.counters
    return min(windows.steps[0, counters[NEXT]], limit) if counters[PENDING] else limit


@pasted
def change_windows(jobs: Jobs, run: Run, queue: Queue, windows: Windows | None, now: int) -> bool:
    """Take or return the nodes of windows that begin or end now, and return whether there are any."""
    return False if windows is None else _change(jobs, run, queue, windows, now)


@machine_code
def _change(jobs: Jobs, run: Run, queue: Queue, windows: Windows, now: int) -> bool:
    """Mirrors ``Run._change``: the changes end with the first one at which no job is left."""
    counters = windows.counters
    if not counters[PENDING] or windows.steps[0, counters[NEXT]] != now:
        return False
    gone = windows.steps[1, counters[NEXT]]
    run.counters[FREE] += counters[GONE] - gone
    counters[GONE] = gone
    _count_down(run, windows, now)
    counters[NEXT] += 1
    over = not run.counters[RUNNING] and not queue.counters[WAITING]
    over = over and run.counters[ARRIVED] == len(jobs.arrival_order)
    counters[PENDING] = counters[NEXT] < windows.steps.shape[1] and not over
    return True


@pasted
def count_after_end(run: Run, windows: Windows, now: int) -> None:
    """Count the nodes that are down once a job beyond its estimate has left those of a window."""
    if windows.counters[GONE]:
        _count_down(run, windows, now)


@machine_code
def _count_down(run: Run, windows: Windows, now: int) -> None:
    """Record the nodes that were down up to now, and count those that are; mirrors ``Run._count_down``."""
    counters, down = windows.counters, windows.counters[GONE] + min(run.counters[FREE], 0)
    if down == counters[DOWN]:
        return
    if counters[DOWN] and now > counters[SINCE]:
        place = counters[RECORDED]
        windows.down[0, place], windows.down[1, place] = counters[SINCE], now
        windows.down[2, place] = counters[DOWN]
        counters[RECORDED] += 1
    counters[SINCE], counters[DOWN] = now, down


@machine_code
def room_for(jobs: Jobs, run: Run, windows: Windows, row: int, now: int) -> int:
    """Return the nodes that a job may use from now until its expected end; mirrors ``Calendar.level_for``."""
    least, end, place = run.counters[FREE], now + run.estimate[row], 0
    there = least + windows.counters[GONE]
    for step in range(windows.counters[NEXT], windows.steps.shape[1]):
        time = windows.steps[0, step]
        if time >= end:
            break
        while place < run.counters[RUNNING] and run.expected[0, place] <= time:
            there += jobs.nodes[run.expected[1, place]]
            place += 1
        least = min(least, there - windows.steps[1, step])
    return int(least)


@machine_code
def expect_capacity(profile: Profile, jobs: Jobs, run: Run, windows: Any, now: int) -> None:
    """Set the profile to that of running jobs that end as expected, beside windows; mirrors ``expected``."""
    expect_ends(profile, jobs, run, now)
    if windows is not None:
        for step in range(profile.counters[STEPS]):
            profile.levels[step] += windows.counters[GONE]
        for place in range(windows.windows.shape[1]):
            start, end = max(windows.windows[0, place], now), windows.windows[1, place]
            if end > now:
                occupy(profile, start, end, windows.windows[2, place])
