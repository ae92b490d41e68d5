"""Running jobs: a heap by actual end, and a sorted list by expected end."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import called, machine_code
from hpcsimkit.compiled.shifting import close_gap, open_gap
from hpcsimkit.compiled.state import END, FREE, RUNNING, START, STARTED, Integers, Jobs, Run


@machine_code
def _precedes(ends: Integers, left: int, right: int) -> bool:
    """Return whether one running job ends before another; ties are broken by the order of starts."""
    if ends[0, left] != ends[0, right]:
        return bool(ends[0, left] < ends[0, right])
    return bool(ends[1, left] < ends[1, right])


@machine_code
def _swap(ends: Integers, left: int, right: int) -> None:
    for part in range(3):
        ends[part, left], ends[part, right] = ends[part, right], ends[part, left]


@called
def push(ends: Integers, count: int, end: int, number: int, row: int) -> None:
    """Add a job to a heap of `count` jobs (an event of SimPy, see ``TextbookOrder.schedule_end``)."""
    ends[0, count], ends[1, count], ends[2, count] = end, number, row
    child = count
    while child > 0 and _precedes(ends, child, (child - 1) // 2):
        _swap(ends, child, (child - 1) // 2)
        child = (child - 1) // 2


@called
def pop(ends: Integers, count: int) -> int:
    """Remove the job that ends first from a heap of `count` jobs, and return its row."""
    row = ends[2, 0]
    _swap(ends, 0, count - 1)
    _sink(ends, 0, count - 1)
    return row


@machine_code
def _sink(ends: Integers, parent: int, last: int) -> None:
    """Move a job of a heap of `last` jobs behind those that end before it."""
    while True:
        child = 2 * parent + 1
        if child >= last:
            return
        if child + 1 < last and _precedes(ends, child + 1, child):
            child += 1
        if not _precedes(ends, child, parent):
            return
        _swap(ends, child, parent)
        parent = child


@called
def withdraw(ends: Integers, count: int, row: int) -> None:
    """Remove a job that was stopped from a heap of `count` jobs."""
    place, last = 0, count - 1
    while ends[2, place] != row:
        place += 1
    if place == last:
        return
    _swap(ends, place, last)
    while place > 0 and _precedes(ends, place, (place - 1) // 2):
        _swap(ends, place, (place - 1) // 2)
        place = (place - 1) // 2
    _sink(ends, place, last)


@machine_code
def _position(expected: Integers, count: int, end: int, row: int) -> int:
    """Return the position of an expected end and row, or that at which to insert them."""
    low, high = 0, count
    if count and expected[0, count - 1] < end:
        return count
    while low < high:
        middle = (low + high) // 2
        if expected[0, middle] < end or (expected[0, middle] == end and expected[1, middle] < row):
            low = middle + 1
        else:
            high = middle
    return low


@called
def expect(expected: Integers, count: int, end: int, row: int) -> None:
    """Add a job to a list of `count` expected ends; mirrors ``Running.add``."""
    position = _position(expected, count, end, row)
    open_gap(expected[0], position, count)
    open_gap(expected[1], position, count)
    expected[0, position], expected[1, position] = end, row


@called
def forget(expected: Integers, count: int, end: int, row: int) -> None:
    """Remove a job from a list of `count` expected ends; mirrors ``Running.remove``."""
    position = _position(expected, count, end, row)
    close_gap(expected[0], position, 1, count)
    close_gap(expected[1], position, 1, count)


@machine_code
def _note(run: Run, kind: int, row: int) -> None:
    """Note the position of the next start or end among all of them, for the verification of the schedule."""
    ended = run.counters[STARTED] - run.counters[RUNNING]
    run.positions[kind, row] = run.counters[STARTED] + ended


@machine_code
def enter(jobs: Jobs, run: Run, row: int, now: int, mode: int) -> None:
    """Let a job that fits run; mirrors ``System.start``."""
    counters = run.counters
    run.start_time[row] = now
    run.mode[row] = mode
    _note(run, START, row)
    counters[FREE] -= jobs.nodes[row]
    expect(run.expected, counters[RUNNING], now + run.estimate[row], row)
    counters[RUNNING] += 1
    counters[STARTED] += 1


@machine_code
def leave(jobs: Jobs, run: Run, row: int) -> None:
    """End a job; mirrors ``System.end``."""
    counters = run.counters
    _note(run, END, row)
    forget(run.expected, counters[RUNNING], run.start_time[row] + run.estimate[row], row)
    counters[FREE] += jobs.nodes[row]
    counters[RUNNING] -= 1


@machine_code
def start(jobs: Jobs, run: Run, row: int, now: int, mode: int) -> None:
    """Start a job that fits, and schedule its end; mirrors ``Run.on_start``."""
    push(run.ends, run.counters[RUNNING], now + jobs.run_time[row], run.counters[STARTED], row)
    enter(jobs, run, row, now, mode)


@machine_code
def end_next(jobs: Jobs, run: Run) -> int:
    """End the job that ends first, and return its row."""
    row = pop(run.ends, run.counters[RUNNING])
    leave(jobs, run, row)
    return row


@machine_code
def reserve(jobs: Jobs, run: Run, head: int, now: int) -> tuple[int, int]:
    """Return the shadow time of a job that does not fit, and the extra nodes.

    Mirrors ``Nodes.earliest`` and ``Nodes.room``.
    """
    nodes, count = jobs.nodes[head], run.counters[RUNNING]
    level = run.counters[FREE]
    shadow_time = now + 1
    place = 0
    while place < count:
        level += jobs.nodes[run.expected[1, place]]
        place += 1
        if level >= nodes:
            shadow_time = max(run.expected[0, place - 1], shadow_time)
            break
    while place < count and run.expected[0, place] <= shadow_time:
        level += jobs.nodes[run.expected[1, place]]
        place += 1
    return shadow_time, level - nodes
