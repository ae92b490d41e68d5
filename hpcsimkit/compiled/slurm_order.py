"""The order of the queue with jobs before those that they may preempt.

Mirrors ``Waiting._preempting_first`` and :mod:`hpcsimkit.slurm.order`.
"""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code, separate
from hpcsimkit.compiled.slurm_priority import sort
from hpcsimkit.compiled.slurm_state import LISTED, ORDERS, UNSORTED, Jobs, Run, Stops


@separate
def put_preempting_first(jobs: Jobs, run: Run, stops: Stops) -> None:
    """Put the waiting tickets, which are in order, into that in which a merge sort leaves them."""
    if stops.rules.by_tier or not _some_may_preempt(jobs, run, stops):
        return
    count, listed = run.counters[LISTED], run.listed
    for position in range(count):
        stops.rank[listed[position]] = position
        run.key[listed[position]] = 0  # so that they are sorted by their numbers
    sort(run, 0, count)
    records = _list_records(run, stops, count)
    _sort_records(jobs, run, stops, records)
    position = 0
    for place in range(records):
        ticket = run.other[place]
        while ticket >= 0:
            listed[position] = ticket
            position += 1
            ticket = stops.follows[ticket]
    run.counters[UNSORTED] = 0


@separate
def _some_may_preempt(jobs: Jobs, run: Run, stops: Stops) -> bool:
    """Return whether some waiting job may preempt another one."""
    wait, may = stops.wait, stops.rules.may
    for kind in range(len(wait)):
        wait[kind] = 0
    for position in range(run.counters[LISTED]):
        wait[stops.rules.kind[jobs.row[run.listed[position]]]] = 1
    for kind in range(len(wait)):
        for other in range(len(wait)):
            if wait[kind] and wait[other] and may[kind, other]:
                return True
    return False


@separate
def _list_records(run: Run, stops: Stops, count: int) -> int:
    """List the first ticket of each record in the order of numbers, and return the number of records."""
    records = 0
    stops.counters[ORDERS] += 1
    for position in range(count):
        ticket = run.listed[position]
        record = stops.rules.record[ticket]
        stops.follows[ticket] = -1
        if stops.listed_at[record] == stops.counters[ORDERS]:
            stops.follows[stops.last_of[record]] = ticket
        else:
            stops.listed_at[record] = stops.counters[ORDERS]
            run.other[records] = ticket
            records += 1
        stops.last_of[record] = ticket
    return records


@separate
def _sort_records(jobs: Jobs, run: Run, stops: Stops, count: int) -> None:
    """Sort the halves of each part and merge them, the smallest parts first.

    A part is given by the path to it: the digits of a number, 1 for the second half.
    """
    depth = 0
    while 2**depth < count:
        depth += 1
    while depth > 0:
        depth -= 1
        for path in range(2**depth):
            first, last = 0, count
            for digit in range(depth - 1, -1, -1):
                half = first + (last - first) // 2
                if path >> digit & 1:
                    first = half
                else:
                    last = half
            _merge(jobs, run, stops, first, last)


@separate
def _merge(jobs: Jobs, run: Run, stops: Stops, first: int, last: int) -> None:
    """Merge the sorted halves of a part."""
    found, merged = run.other, stops.merged
    half = first + (last - first) // 2
    left, right = first, half
    for place in range(first, last):
        if left == half or (right < last and _goes_before(jobs, stops, found[right], found[left])):
            merged[place] = found[right]
            right += 1
        else:
            merged[place] = found[left]
            left += 1
    for place in range(first, last):
        found[place] = merged[place]


@machine_code
def _goes_before(jobs: Jobs, stops: Stops, ticket: int, other: int) -> bool:
    """Return whether a ticket goes before another one: it may preempt it or, if neither may, ranks above."""
    may, kind = stops.rules.may, stops.rules.kind[jobs.row[ticket]]
    kind_of_other = stops.rules.kind[jobs.row[other]]
    if may[kind, kind_of_other]:
        return True
    return bool(not may[kind_of_other, kind] and stops.rank[ticket] < stops.rank[other])
