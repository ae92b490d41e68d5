"""Outages of machines, whose free capacity goes out of order at once, and the rest as it becomes free.

Mirrors :mod:`hpcsimkit.kernel.failures`. What is out of order is a running job without a submission, as on
homogeneous nodes (see :mod:`.stops`): its row has a part of an allocation of its own.
"""

from __future__ import annotations

from hpcsimkit.compiled.attempts import FAILED
from hpcsimkit.compiled.compilation import machine_code, pasted, separate
from hpcsimkit.compiled.machines import COUNT, RANK, Machines, change_free
from hpcsimkit.compiled.machines import FIRST as FIRST_PART
from hpcsimkit.compiled.needs import EMPTY, MINUS, NOW, PLUS
from hpcsimkit.compiled.plan import Plan
from hpcsimkit.compiled.queue import BLOCKS, Queue, add, remove
from hpcsimkit.compiled.running import pop, push
from hpcsimkit.compiled.state import RUNNING, Jobs, Run
from hpcsimkit.compiled.stops import (
    BEGUN,
    CORRECTED,
    DRAIN,
    EARLY,
    END,
    GIVE,
    GONE,
    IN_USE,
    LACKING,
    MEMBER,
    MEMBERS,
    NEXT,
    NODES,
    REJOINED,
    SIZE,
    TAKEN,
    UNTIL,
    UNUSED,
    Stops,
    next_outage,
    starts_before,
    stop,
)


@pasted
def change_machines(
    jobs: Jobs, run: Run, queue: Queue, machines: Machines, stops: Stops, plan: Plan | None, now: int
) -> bool:
    """Return capacity from outages that end now, and begin others; return whether there are any."""
    changed = False
    while run.counters[RUNNING] and run.ends[0, 0] == now:
        _give(jobs, run, machines, stops, now)
        changed = True
    while next_outage(jobs, run, queue, stops) == now:
        _begin(jobs, run, queue, machines, stops, plan, now)
        changed = True
    stops.counters[EARLY] = stops.counters[REJOINED]
    return changed


@separate
def take_free(jobs: Jobs, run: Run, machines: Machines, stops: Stops, now: int) -> None:
    """Take what has become free of machines that go out of order; mirrors ``FailureEvents.after_end``."""
    begun = stops.on_machines.begun
    for place in range(stops.counters[BEGUN]):
        if begun[IN_USE, place] and begun[UNTIL, place] > now:
            begun[IN_USE, place] = _take_of(jobs, run, machines, stops, place, now)


@separate
def _take_of(jobs: Jobs, run: Run, machines: Machines, stops: Stops, place: int, now: int) -> int:
    """Take the free capacity of an outage; return whether any of its machines is still in use.

    Mirrors ``FailureEvents._take`` and ``_take_machine``.
    """
    there, begun, in_use = machines.levels.levels, stops.on_machines.begun, 0
    first = begun[MEMBER, place]
    for member in range(first, first + begun[SIZE, place]):
        machine, free, left = stops.on_machines.members[member], 0, 0
        for resource in range(there.shape[2]):
            free |= there[NOW, machine, resource] > 0
        if free:
            _take(jobs, run, machines, stops, machine, begun[UNTIL, place], now)
        for resource in range(there.shape[2]):
            left |= stops.on_machines.gone[machine, resource] < there[EMPTY, machine, resource]
        in_use |= left
    return in_use


@machine_code
def _take(jobs: Jobs, run: Run, machines: Machines, stops: Stops, machine: int, until: int, now: int) -> None:
    """Take what is free of a machine out of order; mirrors ``Capacity.take``."""
    counters = stops.counters
    if not counters[UNUSED]:
        counters[LACKING] = 1  # the run begins again, so that it does not matter how it goes on
        return
    counters[UNUSED] -= 1
    row, place = stops.unused[counters[UNUSED]], counters[TAKEN]
    part = machines.jobs[FIRST_PART, row]
    machines.parts[part, 0] = machine
    for resource in range(machines.levels.levels.shape[2]):
        amount = machines.levels.levels[NOW, machine, resource]
        machines.parts[part, 1 + resource] = stops.on_machines.amounts[resource, place] = amount
        stops.on_machines.gone[machine, resource] += amount
    change_free(machines, row, MINUS)
    machines.jobs[RANK, row] = (until << machines.digits) + row
    add(machines.expected, None, row, machines.jobs[RANK], jobs.nodes, run.estimate)
    push(run.ends, run.counters[RUNNING], until, GIVE + place, row)
    stops.down[0, place], stops.down[1, place], stops.down[2, place] = now, until, machine
    run.counters[RUNNING] += 1
    counters[TAKEN] += 1
    counters[GONE] += 1
    counters[CORRECTED] = 1


@pasted
def _give(jobs: Jobs, run: Run, machines: Machines, stops: Stops, now: int) -> None:
    """Return the capacity whose outage ends first; mirrors ``Capacity.give`` and ``after_give``."""
    counters = stops.counters
    row = pop(run.ends, run.counters[RUNNING])
    run.counters[RUNNING] -= 1
    remove(machines.expected, None, row, machines.jobs[RANK])
    change_free(machines, row, PLUS)
    part = machines.jobs[FIRST_PART, row]
    machine = machines.parts[part, 0]
    for resource in range(machines.levels.levels.shape[2]):
        stops.on_machines.gone[machine, resource] -= machines.parts[part, 1 + resource]
    stops.unused[counters[UNUSED]] = row
    counters[UNUSED] += 1
    counters[GONE] -= 1
    counters[CORRECTED] = 1
    _forget_over(stops, now)
    for place in range(counters[BEGUN]):
        if _has(stops, place, machine):
            _take_of(jobs, run, machines, stops, place, now)
    take_free(jobs, run, machines, stops, now)


@pasted
def _forget_over(stops: Stops, now: int) -> None:
    """Forget the outages that are over."""
    begun, kept = stops.on_machines.begun, 0
    for place in range(stops.counters[BEGUN]):
        if begun[UNTIL, place] > now:
            for item in range(len(begun)):
                begun[item, kept] = begun[item, place]
            kept += 1
    stops.counters[BEGUN] = kept


@machine_code
def _has(stops: Stops, place: int, machine: int) -> bool:
    """Return whether a machine is one of those of an outage that has begun."""
    begun = stops.on_machines.begun
    for member in range(begun[MEMBER, place], begun[MEMBER, place] + begun[SIZE, place]):
        if stops.on_machines.members[member] == machine:
            return True
    return False


@pasted
def _begin(
    jobs: Jobs, run: Run, queue: Queue, machines: Machines, stops: Stops, plan: Plan | None, now: int
) -> None:
    """Begin an outage; mirrors ``FailureEvents._begin``."""
    counters, begun = stops.counters, stops.on_machines.begun
    outage = counters[NEXT]
    counters[NEXT] += 1
    first, size = stops.outages[MEMBERS, outage], stops.outages[NODES, outage]
    if not stops.outages[DRAIN, outage]:
        _fail(jobs, run, queue, machines, stops, plan, first, size, now)
    place = counters[BEGUN]
    begun[UNTIL, place], begun[MEMBER, place] = stops.outages[END, outage], first
    begun[SIZE, place], begun[IN_USE, place] = size, 1
    counters[BEGUN] += 1
    take_free(jobs, run, machines, stops, now)


@separate
def _fail(  # noqa: PLR0913 - parts of the state
    jobs: Jobs,
    run: Run,
    queue: Queue,
    machines: Machines,
    stops: Stops,
    plan: Plan | None,
    first: int,
    size: int,
    now: int,
) -> None:
    """Stop the jobs on the machines of an outage, by start and row; mirrors ``_fail_machines``."""
    members, hit, found = stops.on_machines.members, stops.on_machines.hit, stops.on_machines.found
    busy = 0
    for member in range(first, first + size):
        busy += _is_busy(machines, stops, members[member])
    if not busy:
        return
    for member in range(first, first + size):
        hit[members[member]] = 1
    count, expected = 0, machines.expected
    for place in range(expected.counters[BLOCKS]):
        block = expected.order[place]
        for position in range(expected.filled[block]):
            row = expected.rows[block, position]
            if row < len(stops.work) and _is_hit(machines, stops, row):
                _insert(run, stops, count, row)
                count += 1
    for member in range(first, first + size):
        hit[members[member]] = 0
    for place in range(count):
        stop(jobs, run, queue, None, machines, stops, plan, found[place], now, FAILED)


@machine_code
def _is_busy(machines: Machines, stops: Stops, machine: int) -> bool:
    """Return whether jobs use anything of a machine."""
    there, busy = machines.levels.levels, False
    for resource in range(there.shape[2]):
        left = there[NOW, machine, resource] + stops.on_machines.gone[machine, resource]
        busy |= left < there[EMPTY, machine, resource]
    return busy


@machine_code
def _is_hit(machines: Machines, stops: Stops, row: int) -> bool:
    """Return whether a running job has a part of a marked machine."""
    first = machines.jobs[FIRST_PART, row]
    for part in range(first, first + machines.jobs[COUNT, row]):
        if stops.on_machines.hit[machines.parts[part, 0]]:
            return True
    return False


@pasted
def _insert(run: Run, stops: Stops, count: int, row: int) -> None:
    """Add a job to a list of `count` jobs by start and row."""
    found, place = stops.on_machines.found, count
    while place > 0 and starts_before(run, row, found[place - 1]):
        found[place] = found[place - 1]
        place -= 1
    found[place] = row
