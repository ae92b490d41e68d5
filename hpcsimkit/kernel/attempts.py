"""The attempts and outages of a finished run, as tables of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.opaque import Allocation
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Attempt, Attempts, Downtime, Outcome
from hpcsimkit.results.placements import Placements

__all__ = ["attempts_of", "downtime_of", "events_of_attempts"]


def attempts_of(
    system: System, restart: Restart, killed: NDArray[np.bool_], partitioned: bool
) -> Attempts | None:
    """Return all attempts of a run; None if each job ran once, for as long as its work takes.

    Parameters
    ----------
    system : System
        The system of the whole cluster at the end of the run.
    restart : Restart
        The rules of stopped jobs.
    killed : array of bool, shape (jobs,)
        Whether each job was killed at its requested time.
    partitioned : bool
        Whether the cluster has partitions.
    """
    ledger = system.ledger
    if not ledger.stopped and restart.plain:
        return None
    ended = np.flatnonzero(ledger.end_time >= 0).tolist()
    if not ended:
        return None
    last = _last(sorted({*ended} - {*ledger.given_up}), system, killed)
    listed = sorted([*ledger.stopped, *last], key=lambda each: each.job)
    placements = None
    if system.allocations is not None:
        events = events_of_attempts(system.events, [each.job for each in listed])
        placements = Placements.of(system.cluster, [each.allocation for each in listed], events)
    partition = np.array([each.partition for each in listed], dtype=np.str_) if partitioned else None
    return replace(Attempts.of(listed), placements=placements, partition=partition)


def _last(rows: Sequence[int], system: System, killed: NDArray[np.bool_]) -> list[Attempt]:
    """Return the attempts in which jobs ended."""
    ledger, given, where = system.ledger, system.given, system.ledger.partition_of
    stopped = {each.job for each in ledger.stopped}
    outcomes = np.where(killed, int(Outcome.LIMIT), int(Outcome.COMPLETED)).tolist()
    work = system.workload.column("run_time").tolist()
    for row in stopped:
        work[row] = ledger.work_left(row) - ledger.done_before(row)
    return [
        Attempt(
            row,
            ledger.joined(row) if row in stopped else ledger.jobs[row].submit_time,
            ledger.starts[row],
            ledger.ends[row],
            ledger.modes[row],
            outcomes[row],
            work[row],
            0,
            given(row),
            where(row),
        )
        for row in rows
    ]


def events_of_attempts(events: Sequence[int], jobs: Sequence[int]) -> list[int]:
    """Return starts and ends of jobs as starts and ends of attempts, which follow each other.

    Parameters
    ----------
    events : sequence of int
        Starts (rows of jobs) and ends (complements of rows) in chronological order.
    jobs : sequence of int
        Rows of the jobs of all attempts, in the order of the jobs.

    Examples
    --------
    >>> events_of_attempts([4, ~4, 4, 7, ~4, ~7], [4, 4, 7])
    [0, -1, 1, 2, -2, -3]
    """
    current: dict[int, int] = {}
    for place, job in enumerate(jobs):
        current.setdefault(job, place)
    found = []
    for event in events:
        if event >= 0:
            found.append(current[event])
        else:
            found.append(~current[~event])
            current[~event] += 1
    return found


def downtime_of(down: Sequence[tuple[int, int, Allocation]]) -> Downtime | None:
    """Return the outages of a run as a table; None if there was none."""
    if not down:
        return None
    parts = [
        (start, end, machine, amounts)
        for start, end, capacity in down
        for machine, amounts in zip(
            getattr(capacity, "machines", (0,)), getattr(capacity, "amounts", [[capacity]]), strict=True
        )
    ]
    starts, ends, machines, amounts = zip(*parts, strict=True)
    return Downtime(
        start=np.array(starts, dtype=np.int64),
        end=np.array(ends, dtype=np.int64),
        machine=np.array(machines, dtype=np.int64),
        amounts=np.array(amounts, dtype=np.int64),
    )
