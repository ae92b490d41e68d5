"""Attempts of jobs that are stopped and come back, and the rules of their restarts."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.state import NO_LIMIT, Integers
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.results import attempts as results
from hpcsimkit.results.attempts import COLUMNS, Outcome

STOPPED, RETURNS, RETURNED = range(3)
"""Positions in :attr:`Attempts.counters`."""

PREEMPTED, FAILED, CANCELLED, TESTED = cast(
    tuple[int, ...],
    tuple(map(np.int64, (Outcome.PREEMPTED, Outcome.FAILED, Outcome.CANCELLED, Outcome.TESTED))),
)
"""Reasons of stops; no literals, see :mod:`.compilation`."""


class RestartRules(NamedTuple):
    """A :class:`~hpcsimkit.kernel.restart.Restart` as numbers.

    Attributes
    ----------
    continues : int
        Whether a preempted job continues where it was stopped.
    delay, cost, checkpoint_cost : int
        Parameters of the same names [s].
    limit : int
        Number of failures from which a job does not start again; more than any job has if there is none.
    checkpoint : int
        Work between two checkpoints [s]; 0 for none.
    """

    continues: int
    delay: int
    limit: int
    checkpoint: int
    checkpoint_cost: int
    cost: int


class Attempts(NamedTuple):
    """The attempts of all jobs.

    Attributes
    ----------
    kept : array of int64, shape (jobs,)
        Work of earlier attempts that each job need not do again [s].
    again : array of uint8, shape (jobs,)
        Whether each job has been stopped.
    joined : array of int64, shape (jobs,)
        Time at which each job joined the queue for its current attempt [s].
    log : array of int64, shape (8, stops)
        The attempts that were stopped, in the order of their ends; its rows are
        :data:`~hpcsimkit.results.attempts.COLUMNS`.
    returning : array of int64, shape (2, jobs)
        Ring of the jobs that may not start again yet: time at which they may [s], and row, by the time.
    counters : array of int64
        Number of stopped attempts, of jobs that entered the ring and of those that left it, at the positions
        named above.
    """

    kept: Integers
    again: NDArray[np.uint8]
    joined: Integers
    log: Integers
    returning: Integers
    counters: Integers


def restart_rules(restart: Restart) -> RestartRules:
    """Return the rules of restarts as numbers."""
    return RestartRules(
        int(restart.preempted == "continue"),
        restart.delay,
        NO_LIMIT if restart.limit is None else restart.limit,
        restart.checkpoint or 0,
        restart.checkpoint_cost,
        restart.cost,
    )


def new_attempts(submit_time: Integers, stops: int) -> Attempts:
    """Return the record of jobs none of which has started, with space for a number of stops."""
    jobs = len(submit_time)
    return Attempts(
        kept=np.zeros(jobs, dtype=np.int64),
        again=np.zeros(jobs, dtype=np.uint8),
        joined=submit_time.copy(),
        log=np.empty((len(COLUMNS), stops), dtype=np.int64),
        returning=np.empty((2, jobs), dtype=np.int64),
        counters=np.zeros(3, dtype=np.int64),
    )


def with_space(attempts: Attempts) -> Attempts:
    """Return the same record with space for more stops."""
    return attempts._replace(log=np.concatenate([attempts.log, np.empty_like(attempts.log)], axis=1))


@machine_code
def duration(restart: RestartRules, work: int, again: int) -> int:
    """Return the time that an attempt needs for its work [s]; mirrors ``Restart.duration``."""
    needed = work + again * restart.cost
    if restart.checkpoint:
        needed += max(-(-work // restart.checkpoint) - 1, 0) * restart.checkpoint_cost
    return needed


@machine_code
def progress(restart: RestartRules, elapsed: int, work: int, again: int, why: int) -> tuple[int, int]:
    """Return the work that a stopped attempt keeps, and that it loses [s]; mirrors ``Restart.progress``."""
    elapsed = max(elapsed - again * restart.cost, 0)
    saved, done = 0, elapsed
    if restart.checkpoint:
        cycle = restart.checkpoint + restart.checkpoint_cost
        saved = (elapsed // cycle) * restart.checkpoint
        done = saved + min(elapsed % cycle, restart.checkpoint)
    saved, done = min(saved, work), min(done, work)
    if why not in (FAILED, TESTED) and restart.continues:
        saved = done
    return saved, done - saved


@machine_code
def record_stop(
    attempts: Attempts, restart: RestartRules, row: int, work: int, start: int, now: int, mode: int, why: int
) -> None:
    """Enter that an attempt with some work to do [s] was stopped; mirrors ``Ledger.stop``."""
    kept, lost = progress(restart, now - start, work, attempts.again[row], why)
    log, place = attempts.log, attempts.counters[STOPPED]
    log[0, place], log[1, place], log[2, place], log[3, place] = row, attempts.joined[row], start, now
    log[4, place], log[5, place], log[6, place], log[7, place] = mode, why, kept, lost
    attempts.counters[STOPPED] = place + 1
    attempts.kept[row] += kept
    attempts.again[row] = 1


@machine_code
def last_stop(attempts: Attempts, row: int) -> tuple[int, int, int]:
    """Return start and end [s] and the mode of the last attempt of a job that has been stopped."""
    log, place = attempts.log, attempts.counters[STOPPED] - 1
    while log[0, place] != row:
        place -= 1
    return log[2, place], log[3, place], log[4, place]


@machine_code
def return_later(attempts: Attempts, row: int, at: int) -> None:
    """Enter a job that may start again from a time on [s], which is not before that of any other."""
    returning, place = attempts.returning, attempts.counters[RETURNS] % attempts.returning.shape[1]
    returning[0, place], returning[1, place] = at, row
    attempts.counters[RETURNS] += 1


@machine_code
def next_return(attempts: Attempts) -> int:
    """Return the time at which the next job may start again [s], after all others if there is none."""
    returned = attempts.counters[RETURNED]
    if returned == attempts.counters[RETURNS]:
        return NO_LIMIT
    return int(attempts.returning[0, returned % attempts.returning.shape[1]])


@machine_code
def take_return(attempts: Attempts) -> int:
    """Remove the next job that may start again, and return its row."""
    returned = attempts.counters[RETURNED]
    attempts.counters[RETURNED] = returned + 1
    return int(attempts.returning[1, returned % attempts.returning.shape[1]])


def table_of(
    attempts: Attempts,
    restart: Restart,
    workload: Workload,
    last: dict[str, NDArray[Any]],
    killed: NDArray[np.bool_],
    ended: NDArray[np.bool_],
) -> results.Attempts | None:
    """Return all attempts of a run; None if each job ran once, for as long as its work takes.

    Mirrors ``attempts_of``.

    Parameters
    ----------
    attempts : Attempts
        The record at the end of the run.
    restart : Restart
        The rules of stopped jobs.
    workload : Workload
        The jobs of the run.
    last : dict of str to array, shape (jobs,)
        Start, end and mode of the last attempts, by the names of the columns of a result.
    killed, ended : array of bool, shape (jobs,)
        Whether each job was killed at its requested time, and whether it was not given up.
    """
    stopped = attempts.log[:, : attempts.counters[STOPPED]]
    if restart.plain and not stopped.size:
        return None
    rows = np.flatnonzero(ended)
    columns = {
        "job": rows,
        "submit_time": attempts.joined[rows],
        **{name: values[rows] for name, values in last.items()},
        "outcome": np.where(killed[rows], int(Outcome.LIMIT), int(Outcome.COMPLETED)),
        "work": workload.column("run_time")[rows] - attempts.kept[rows],
        "lost": np.zeros(len(rows), dtype=np.int64),
    }
    both = np.concatenate([stopped, np.stack([columns[name] for name in COLUMNS])], axis=1)
    both = both[:, np.argsort(both[0], kind="stable")]
    return results.Attempts.of_numbers(both)
