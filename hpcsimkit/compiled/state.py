"""The jobs, the rules and the state of a run as arrays, which compiled functions share."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

NONE, GREEDY, FITTING, EASY, PLANNED = range(5)
"""Codes of backfilling, from `EASY` on with reservations.

`FITTING` is greedy, but every job counts as started in its turn. `PLANNED` reserves slots in a profile: if
there is a plan, for each job on its arrival (conservative backfilling), else for several jobs at each pass.
"""

READY, RESERVED, BACKFILLED = cast(tuple[int, ...], tuple(map(np.int64, (1, 2, 3))))
"""Start modes, as in :class:`~hpcsimkit.kernel.system.Mode`; no literals, see :mod:`.compilation`."""

ZERO = cast(int, np.int64(0))
"""Zero with the type of a variable."""

NO_LIMIT = cast(int, np.int64(2**62))
"""A time that no estimate exceeds [s]."""


Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]

FREE, RUNNING, STARTED, PASSES, ARRIVED = range(5)
"""Positions in :attr:`Run.counters`."""

START, END = range(2)
"""Rows of :attr:`Run.positions`."""


class Jobs(NamedTuple):
    """Columns of the workload, each of shape (jobs,), by row.

    Attributes
    ----------
    submit_time, run_time, requested_time, nodes : array of int64
        Columns of the workload; run times are limited if jobs are killed at their requested times.
    user : array of int64
        Users as consecutive numbers, -1 if unknown.
    arrival_order : array of int64
        Rows in the order in which they join the queue, without the jobs that run when the run begins.
    rank : array of int64
        Position of each row in the order of the queue: that of the policy, or that of submission if scores
        decide which job is next.
    due : array of int64
        Time at which each job joins the queue [s]: its submission, or later.
    weight : array of float64, shape (2, jobs)
        Keys, or factors of the formulas, of the order of the policy and of the candidates of backfilling, see
        :mod:`~hpcsimkit.compiled.listing`.
    """

    submit_time: Integers
    run_time: Integers
    requested_time: Integers
    nodes: Integers
    user: Integers
    arrival_order: Integers
    rank: Integers
    due: Integers
    weight: Numbers


class Rules(NamedTuple):
    """The rules of a pipeline as numbers.

    Attributes
    ----------
    nodes : int
        Number of nodes of the cluster.
    begin : int
        Instant before which there are no events [s]; jobs submitted before it are submitted then.
    order : int
        Order of the policy: one of the codes of :mod:`~hpcsimkit.compiled.listing`.
    backfilling : int
        One of the codes of :mod:`~hpcsimkit.compiled.passes`.
    candidates : int
        Order of the candidates of backfilling, a code as for `order`.
    reservations : int
        Maximum number of reservations, if they are made anew at each pass.
    window : int
        Maximum number of jobs from which the order selects; 0 if unlimited.
    placement : int
        One of the codes of :mod:`~hpcsimkit.compiled.placing`.
    """

    nodes: int
    begin: int
    order: int
    backfilling: int
    candidates: int
    reservations: int
    window: int
    placement: int


class Run(NamedTuple):
    """The state of a run.

    Attributes
    ----------
    start_time, mode : array of int64 and uint8, shape (jobs,)
        The schedule; -1 and 0 for jobs that have not started.
    estimate : array of int64, shape (jobs,)
        Estimates of the total run times [s].
    reserved : array of uint8, shape (jobs,)
        Whether each job has ever been the first one that did not fit (with reservations).
    ends : array of int64, shape (3, jobs that can run at once)
        Binary heap of the running jobs by end: end [s], number of the start, row.
    expected : array of int64, shape (2, jobs that can run at once)
        Expected end [s] and row of the running jobs, in this order.
    positions : array of int32, shape (2, jobs)
        Positions of the start and of the end of each job among all starts and ends, on homogeneous nodes.
    counters : array of int64
        Number of free nodes, running jobs, starts, passes and submissions, at the positions named above.
    """

    start_time: Integers
    mode: NDArray[np.uint8]
    estimate: Integers
    reserved: NDArray[np.uint8]
    ends: Integers
    expected: Integers
    positions: NDArray[np.int32]
    counters: Integers


class Tests(NamedTuple):
    """The tester of a pipeline.

    Attributes
    ----------
    seconds : array of int64, shape (levels,)
        Longest time of a test at each level [s], ascending.
    left : array of int64, shape (jobs,)
        Number of levels at which each job may still be tested: the last ones.
    asked : array of int64, shape (jobs,)
        Estimate of each job that keeps its reservation while it is in a test, or not yet back from one [s];
        -1 of a job that has ended in its test, 0 of others.
    reserved : array of int64, shape (jobs,)
        Start of the reservation of each waiting job in the last pass [s], after all others if it has none; if
        reservations are made anew at each pass.
    delay : int
        Time from a stop until the job joins the queue again [s].
    """

    seconds: Integers
    left: Integers
    asked: Integers
    reserved: Integers
    delay: int


def new_run(jobs: Jobs, estimate: Integers, nodes: int) -> Run:
    """Return the state before the first event: all nodes are free."""
    count = len(jobs.submit_time)
    at_once = min(count, nodes) + 1
    return Run(
        start_time=np.full(count, -1, dtype=np.int64),
        mode=np.zeros(count, dtype=np.uint8),
        estimate=estimate.copy(),
        reserved=np.zeros(count, dtype=np.uint8),
        ends=np.empty((3, at_once), dtype=np.int64),
        expected=np.empty((2, at_once), dtype=np.int64),
        positions=np.empty((2, count), dtype=np.int32),
        counters=np.array([nodes, 0, 0, 0, 0], dtype=np.int64),
    )


def contiguous(column: Integers) -> Integers:
    """Return a column as a read-only array of its own: for the view of an absent one, numba compiles anew."""
    found = np.ascontiguousarray(column)
    found.flags.writeable = False  # as those of a workload: it is a part of the type
    return found
