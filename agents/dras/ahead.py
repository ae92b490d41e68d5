"""Encoder of waiting jobs on homogeneous nodes: predicted run times, and the nodes that become free ahead."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.holes import longest
from hpcsimkit.kernel.system import System

__all__ = ["JobsAhead"]

Floats = NDArray[np.float64]

AGED, XFACTOR, LENGTH, SIZE, AREA, DOUBT, FITS, UNTIL = range(8)
QUEUE, FREE, AHEAD, COLUMNS = 8, 9, 10, 13
TEST, ENDS, HOLE, WITH_TESTS = 13, 14, 15, 16

HORIZONS = np.array([1.0, 4.0, 16.0])
"""Times ahead at which free nodes are shown, in units of the geometric mean of predicted run times."""


class JobsAhead(Encoder):
    """The jobs that have waited longest, a row each, beside a summary of queue and machine in every row.

    No column has a unit, so that the weights of a network that scores rows fit any number of slots, any
    machine, and jobs of seconds as well as of days. ``log`` is the natural logarithm, and ``log1p(x) =
    log(1 + x)``.

    ====== ====== =======================================================================================
    row    column meaning
    ====== ====== =======================================================================================
    job    0      log1p of the wait time over the predicted run time
    job    1      log1p of the wait time over the requested time
    job    2      log of the predicted run time over the geometric mean of those of the visible jobs
    job    3      log of the share of the machine's nodes
    job    4      log of predicted run time x nodes, over its geometric mean
    job    5      log of the requested time over the predicted run time
    job    6      1 if the job fits now
    job    7      log1p of the time until the job would fit, over its predicted run time
    all    8      log1p of the number of waiting jobs, visible or not
    all    9      share of the nodes that are free
    all    10-12  share of the nodes that are free after 1, 4 and 16 times the mean predicted run time
    test   13     1
    test   14     share of the predicted quantiles of the run time that are not longer than the test
    test   15     log of the longest time that the hole allows over that of the test
    ====== ====== =======================================================================================

    With `tests`, there are columns for decisions on tests at the same seat
    (:class:`~hpcsimkit.policies.one_seat.order_and_tests.OrderAndTests`), which are 0 in all others. In such
    a decision, the first row is the job in question, as the only visible one, and a row of zeros stands for
    no test.

    Predictions are those of the estimator of the pipeline, as they are now: with
    :class:`~hpcsimkit.policies.Live`, from the history of each user. Running jobs are expected to end by
    their estimates; the time until a job would fit is that for it alone. Rows of empty slots are zero.

    Parameters
    ----------
    slots : int
        Number of visible waiting jobs.
    tests : bool
        Whether there are columns for decisions on tests. Default: False.

    Raises
    ------
    UsageError
        When a run begins: the machine does not consist of homogeneous nodes.

    Examples
    --------
    One of 2 nodes is in use for another 8 s. The first job needs both, the second one:

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 1, 1], "run_time": [9, 2, 8], "nodes": [1, 2, 1]}
    >>> simulation = Simulation(Workload(columns, machine_size=2), Pipeline(order=External(), window=3))
    >>> simulation.next_decision(); simulation.answer_position(0)
    Decision('order', t=0 s, 1 options)
    >>> decision, seen = simulation.next_decision(), np.zeros((3, 13), dtype=np.float32)
    >>> JobsAhead(3).bind(simulation.system)(decision, seen)
    >>> print(seen[:, 2:].round(2))
    [[-0.69  0.   -0.35  0.    0.    1.61  1.1   0.5   0.5   1.    1.  ]
     [ 0.69 -0.69  0.35  0.    1.    0.    1.1   0.5   0.5   1.    1.  ]
     [ 0.    0.    0.    0.    0.    0.    0.    0.    0.    0.    0.  ]]
    """

    def __init__(self, slots: int = 64, *, tests: bool = False) -> None:
        self.slots = slots
        self.tests = tests

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots, 13), with `tests` (slots, 16)."""
        return (self.slots, WITH_TESTS if self.tests else COLUMNS)

    def bind(self, system: System) -> Encode:
        """Precompute what does not change during the run."""
        cluster, slots = system.cluster, self.slots
        if not isinstance(cluster, Nodes):
            raise UsageError(f"{self!r} needs homogeneous nodes, found {cluster!r}")
        jobs = _Ahead(system, cluster)

        def encode(decision: Decision, out: Observation) -> None:
            jobs.write(decision.rows[:slots], out)

        def encode_both(decision: Decision, out: Observation) -> None:
            job, seconds = decision.job, decision.seconds
            if job is None or seconds is None:
                encode(decision, out)
                return
            jobs.write(np.array([job.index]), out)
            quantiles = system.estimator.prediction(job).quantiles
            allowed = longest(decision.hole, job, job.requested_time)
            out[0, TEST] = 1
            out[0, ENDS] = bisect_right(quantiles, seconds) / len(quantiles)
            out[0, HOLE] = np.log(max(allowed / seconds, 1))

        return encode_both if self.tests else encode


class _Ahead:
    """The columns of jobs that do not depend on the question."""

    def __init__(self, system: System, cluster: Nodes) -> None:
        self._system, self._total = system, cluster.size
        self._sizes = np.array([cluster.asked(job) for job in system.jobs], dtype=np.int64)
        self._requested = np.maximum(system.workload.requested_time.astype(np.float64), 1.0)
        self._submitted, self._predicted = system.column("submit_time"), _Predicted(system)

    def write(self, rows: NDArray[np.intp], out: Observation) -> None:
        """Write the first columns of some waiting jobs."""
        system, total = self._system, self._total
        times, asked, free = self._predicted.means(rows), self._sizes[rows], system.free
        waited = (system.now - self._submitted[rows]).astype(np.float64)
        ends, levels = _levels(system.running.entries, system.now, free)
        until = ends[np.minimum(levels.searchsorted(asked), len(ends) - 1)]
        logs, shares = np.log(times), np.log(np.maximum(asked, 1) / total)
        areas, mean = logs + shares, logs.sum() / len(rows)
        of_jobs, requested = out[: len(rows)], self._requested[rows]
        of_jobs[:, AGED] = np.log1p(waited / times)
        of_jobs[:, XFACTOR] = np.log1p(waited / requested)
        of_jobs[:, LENGTH] = logs - mean
        of_jobs[:, SIZE] = shares
        of_jobs[:, AREA] = areas - areas.sum() / len(rows)
        of_jobs[:, DOUBT] = np.log(requested) - logs
        of_jobs[:, FITS] = asked <= free
        of_jobs[:, UNTIL] = np.log1p(until / times)
        of_jobs[:, QUEUE] = np.log1p(len(system.queue))
        of_jobs[:, FREE] = free / total
        ahead = ends.searchsorted(HORIZONS * np.exp(mean), side="right") - 1
        of_jobs[:, AHEAD:COLUMNS] = levels[ahead] / total


class _Predicted:
    """Predicted mean run times of waiting jobs, updated when predictions change."""

    def __init__(self, system: System) -> None:
        self._estimator, self._jobs = system.estimator, system.jobs
        self._means = np.ones(len(system.jobs))
        self._seen = np.full(len(system.jobs), -1, dtype=np.int64)

    def means(self, rows: NDArray[np.intp]) -> Floats:
        """Return the predicted mean run times of jobs [s], at least 1."""
        revisions = self._estimator.revisions(rows)
        for row in rows[revisions != self._seen[rows]].tolist():
            self._means[row] = max(self._estimator.prediction(self._jobs[row]).mean, 1.0)
        self._seen[rows] = revisions
        return self._means[rows]


def _levels(entries: list[tuple[int, int, int]], now: int, free: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return the times from now on at which nodes become free [s], and the numbers that are free from then.

    A job past its expected end is expected to end in a second.

    >>> [each.tolist() for each in _levels([(3, 0, 2), (9, 1, 4)], 5, 1)]
    [[0.0, 1.0, 4.0], [1, 3, 7]]
    """
    ends = np.array([0, *(max(end - now, 1) for end, _, _ in entries)], dtype=np.float64)
    return ends, np.cumsum([free, *(width for _, _, width in entries)])
