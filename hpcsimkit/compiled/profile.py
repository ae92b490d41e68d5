"""The free nodes over time, for planning the reservations of many jobs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import called, machine_code
from hpcsimkit.compiled.shifting import close_gap, open_gap, place_of
from hpcsimkit.compiled.state import FREE, RUNNING, Integers, Jobs, Run

STEPS = 0
"""Position in :attr:`Profile.counters`."""


class Profile(NamedTuple):
    """The number of free nodes as a step function of time, as in :mod:`hpcsimkit.cluster.profile`.

    Attributes
    ----------
    times, levels : array of int64, shape (steps,)
        Start of each step [s], and the number of nodes that are free from then on; the first steps are used.
    counters : array of int64
        Number of steps, at the position named above.
    """

    times: Integers
    levels: Integers
    counters: Integers


def new_profile(jobs: int, nodes: int) -> Profile:
    """Return the profile of an idle cluster, with space for `jobs` running or reserved jobs.

    Each has two steps.
    """
    times, levels = np.empty((2, 2 * jobs + 4), dtype=np.int64)
    times[0], levels[0] = -(2**62), nodes
    return Profile(times, levels, np.ones(1, dtype=np.int64))


@machine_code
def expect_ends(profile: Profile, jobs: Jobs, run: Run, now: int) -> None:
    """Set the profile to that of running jobs that end as expected; mirrors ``expected``."""
    times, levels, last = profile.times, profile.levels, 0
    times[0], levels[0] = now, run.counters[FREE]
    for place in range(run.counters[RUNNING]):
        end = max(run.expected[0, place], now + 1)
        level = levels[last] + jobs.nodes[run.expected[1, place]]
        if end != times[last]:
            last += 1
        times[last], levels[last] = end, level
    profile.counters[STEPS] = last + 1


@machine_code
def advance(profile: Profile, now: int) -> None:
    """Drop the profile before now [s]; mirrors ``LevelProfile.advance``."""
    times, levels, count = profile.times, profile.levels, profile.counters[STEPS]
    dropped = 0
    while dropped + 1 < count and times[dropped + 1] <= now:
        dropped += 1
    if dropped:
        close_gap(times, 0, dropped, count)
        close_gap(levels, 0, dropped, count)
        profile.counters[STEPS] = count - dropped
    times[0] = max(times[0], now)


@called
def earliest(profile: Profile, nodes: int, duration: int) -> tuple[int, int]:
    """Return the step with which the earliest feasible slot starts, and the first step at or after its end.

    Mirrors ``Profile.earliest``.
    """
    levels, first = profile.levels, 0
    while True:
        while levels[place_of(first)] < nodes:
            first += 1
        end = profile.times[place_of(first)] + duration
        last = _end_of_run(profile, first + 1, nodes, end)
        if last == profile.counters[STEPS] or profile.times[place_of(last)] >= end:
            return first, last
        first = last + 1


@machine_code
def earlier(profile: Profile, nodes: int, duration: int, start: int, limit: int) -> int:
    """Return the start of an earlier feasible slot before `limit` [s], or else the current start [s].

    Mirrors ``Profile.earlier``: from its current start on, the job's own nodes are free for it.
    """
    times, levels, before, first = profile.times, profile.levels, min(start, limit), 0
    while times[place_of(first)] < before:
        if levels[place_of(first)] >= nodes:
            begin = times[place_of(first)]
            end = min(begin + duration, start)
            first = _end_of_run(profile, first + 1, nodes, end)
            if times[place_of(first)] >= end:
                return int(begin)
        first += 1
    return start


@machine_code
def _end_of_run(profile: Profile, step: int, nodes: int, end: int) -> int:
    """Return the first step from another on that has fewer free nodes or does not start before `end` [s].

    Returns the number of steps if there is none.
    """
    times, levels, steps = profile.times, profile.levels, profile.counters[STEPS]
    while step < steps and levels[place_of(step)] >= nodes and times[place_of(step)] < end:
        step += 1
    return step


@machine_code
def fits(profile: Profile, nodes: int, duration: int) -> bool:
    """Return whether nodes are free from the start of the profile for a duration [s].

    Mirrors ``Profile.fits``.
    """
    times, levels, position = profile.times, profile.levels, 0
    end = times[0] + duration
    while position < profile.counters[STEPS] and times[position] < end:
        if levels[position] < nodes:
            return False
        position += 1
    return True


@called
def occupy(profile: Profile, start: int, end: int, nodes: int) -> None:
    """Subtract nodes from the free nodes in [start, end) [s]; mirrors ``LevelProfile.occupy``.

    Negative numbers are added, as in ``Profile.release``.
    """
    first = _position(profile, start)
    _cut(profile, first, start)
    occupy_steps(profile, first, _position(profile, end), end, nodes)


@called
def occupy_steps(profile: Profile, first: int, last: int, end: int, nodes: int) -> None:
    """Subtract nodes from the first of some steps to an end [s], which is not after the last one's start."""
    _cut(profile, last, end)
    levels = profile.levels
    for step in range(first, last):
        levels[place_of(step)] -= nodes
    _join(profile, last)
    _join(profile, first)


@machine_code
def _position(profile: Profile, at: int) -> int:
    """Return the position of the first step that does not start before an instant."""
    low, high = 0, profile.counters[STEPS]
    while low < high:
        middle = (low + high) // 2
        if profile.times[middle] < at:
            low = middle + 1
        else:
            high = middle
    return low


@machine_code
def _cut(profile: Profile, position: int, at: int) -> None:
    """Insert a step that starts at an instant [s] at its position, if there is none.

    Mirrors ``LevelProfile._cut``.
    """
    times, levels, count = profile.times, profile.levels, profile.counters[STEPS]
    if position < count and times[position] == at:
        return
    open_gap(times, position, count)
    open_gap(levels, position, count)
    times[position], levels[position] = at, levels[max(position - 1, 0)]
    profile.counters[STEPS] = count + 1


@machine_code
def _join(profile: Profile, position: int) -> None:
    """Remove a step with as many free nodes as the step before it; mirrors ``LevelProfile._join``."""
    times, levels, count = profile.times, profile.levels, profile.counters[STEPS]
    if position == 0 or position == count or levels[position] != levels[position - 1]:
        return
    close_gap(times, position, 1, count)
    close_gap(levels, position, 1, count)
    profile.counters[STEPS] = count - 1
