"""The attempts and outages of a finished run, as tables of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.cluster.opaque import Allocation
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import COLUMNS, Attempts, Downtime, Outcome, numbers_of
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
    ended = ledger.end_time >= 0
    if not ended.any():
        return None
    ended[ledger.given_up] = False
    rows: list[int] = np.flatnonzero(ended).tolist()
    numbers = np.concatenate([numbers_of(ledger.stopped), _last(rows, system, killed)], axis=1)
    order = np.argsort(numbers[0], kind="stable")  # those of a job remain in order
    numbers = numbers[:, order]
    placements = partition = None
    if system.allocations is not None:
        given = [each.allocation for each in ledger.stopped] + [system.allocations[row] for row in rows]
        events = events_of_attempts(system.events, numbers[0])
        placements = Placements.of(system.cluster, [given[place] for place in order.tolist()], events)
    if partitioned:
        names = [each.partition for each in ledger.stopped] + [ledger.partition_of(row) for row in rows]
        partition = np.array(names, dtype=np.str_)[order]
    return replace(Attempts.of_numbers(numbers), placements=placements, partition=partition)


def _last(rows: Sequence[int], system: System, killed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the attempts in which some jobs ended, as numbers; see :class:`Attempts`."""
    ledger = system.ledger
    joined = ledger.submit_time.copy()
    work = system.workload.column("run_time").copy()
    for row in {each.job for each in ledger.stopped}:
        joined[row] = ledger.joined(row)
        work[row] = ledger.work_left(row) - ledger.done_before(row)
    columns: dict[str, NDArray[Any]] = {
        "job": np.arange(len(work)),
        "submit_time": joined,
        "start_time": ledger.start_time,
        "end_time": ledger.end_time,
        "mode": ledger.mode,
        "outcome": np.where(killed, int(Outcome.LIMIT), int(Outcome.COMPLETED)),
        "work": work,
        "lost": np.zeros_like(work),
    }
    return np.stack([columns[name][rows] for name in COLUMNS]).astype(np.int64)


def events_of_attempts(events: ArrayLike, jobs: ArrayLike) -> NDArray[np.int64]:
    """Return starts and ends of jobs as starts and ends of attempts, which follow each other.

    Parameters
    ----------
    events : sequence of int
        Starts (rows of jobs) and ends (complements of rows) in chronological order.
    jobs : sequence of int
        Rows of the jobs of all attempts, in the order of the jobs.

    Examples
    --------
    >>> events_of_attempts([4, ~4, 4, 7, ~4, ~7], [4, 4, 7]).tolist()
    [0, -1, 1, 2, -2, -3]
    """
    each, of_jobs = np.asarray(events, dtype=np.int64), np.asarray(jobs, dtype=np.int64)
    rows = np.where(each >= 0, each, ~each)
    # Starts and ends of a job alternate; its attempts follow each other, from the first one on.
    found = np.empty_like(each)
    for places in (np.flatnonzero(each >= 0), np.flatnonzero(each < 0)):
        by_job = places[np.argsort(rows[places], kind="stable")]
        of_rows = rows[by_job]
        number = np.arange(len(by_job)) - np.searchsorted(of_rows, of_rows)
        found[by_job] = np.searchsorted(of_jobs, of_rows) + number
    return np.where(each >= 0, found, ~found)


def downtime_of(down: Sequence[tuple[int, int, Allocation]]) -> Downtime | None:
    """Return the outages of a run as a table; None if there was none."""
    if not down:
        return None
    starts, ends, capacities = zip(*down, strict=True)
    machines = [getattr(capacity, "machines", (0,)) for capacity in capacities]
    amounts = [getattr(capacity, "amounts", [[capacity]]) for capacity in capacities]
    counts = [len(each) for each in machines]
    return Downtime(
        start=np.repeat(np.array(starts, dtype=np.int64), counts),
        end=np.repeat(np.array(ends, dtype=np.int64), counts),
        machine=np.array([*chain.from_iterable(machines)], dtype=np.int64),
        amounts=np.concatenate(amounts).astype(np.int64),
    )
