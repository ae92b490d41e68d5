"""Encoder of waiting jobs relative to one another, beside a summary of queue and cluster in every row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.rows import delays, releases
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System

__all__ = ["JobsInContext"]

Times = NDArray[np.float64]

LENGTH, SHARE, TIGHTNESS, AREA, WAITED, HARM_TO_FITTING, HARM_TO_BLOCKED, HARM, NEXT_END = range(9)
QUEUE, FREE, RUNNING, FITTING, MEAN_HARM, LEAST_HARM = range(9, 15)
NOTHING, IN_LAST, COLUMNS = 15, 16, 22

LOGARITHMIC = [WAITED, HARM_TO_FITTING, HARM_TO_BLOCKED, NEXT_END]
"""Columns with the logarithm of 1 plus a value."""

LEAST_SHARE = 1e-4
"""Lower bound of the share in the logarithm of an area."""


class Seen(NamedTuple):
    """What is known at a decision of the visible jobs and of the cluster.

    Parameters
    ----------
    time : array of float64, shape (jobs,)
        Requested times [s].
    waited : array of float64, shape (jobs,)
        Wait times so far [s].
    asked, free, total : array of int64
        Requested, free and all resources, in the order of the cluster's resources.
    ends : array of float64, shape (running,)
        Expected remaining times of the running jobs [s].
    harm : array of float64, shape (jobs, jobs)
        Delays that each job causes each other, in units of the requested time of the other.
    """

    time: Times
    waited: Times
    asked: NDArray[np.int64]
    free: NDArray[np.int64]
    total: NDArray[np.int64]
    ends: Times
    harm: Times

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether each job fits now."""
        return np.all(self.asked <= self.free, axis=1)


class JobsInContext(Encoder):
    """The jobs that have waited longest, a row each, and a last row for starting no job.

    No column has a unit: times are relative to one another, and amounts to the cluster. The weights of a
    network that scores rows therefore fit any number of slots, any cluster, and jobs of seconds as well as of
    days. ``log`` is the natural logarithm, ``log1p(x) = log(1 + x)``.

    ====== ====== =======================================================================================
    row    column meaning
    ====== ====== =======================================================================================
    job    0      log of the requested time over the geometric mean of the visible jobs' requested times
    job    1      dominant share: the largest requested share of a resource
    job    2      largest requested share of a free resource, at most 2
    job    3      log of requested time x dominant share (at least 0.0001), over its geometric mean
    job    4      log1p of the wait time over the requested time
    job    5, 6   log1p of the summed delays of the jobs that could start now, and of those that could not, by
                  a start of this job, each over the requested time of the delayed job; see
                  :class:`~hpcsimkit.agents.cush.rows.StartOrHold`
    job    7      sum of these delays, over 1 + the number of visible jobs
    job    8      log1p of the time until the next expected end of a job, over the requested time
    all    9      log1p of the number of waiting jobs, visible or not
    all    10     smallest free share of a resource
    all    11     log1p of the mean remaining time of running jobs, over the geometric mean of requested times
    all    12     share of the visible jobs that fit
    all    13, 14 log1p of the delays caused by a fitting job: mean, and least
    last   15     1
    last   16-21  columns 9 to 14 again, so that a weighted sum can decide by them whether to start a job
    ====== ====== =======================================================================================

    Rows are the actions of :class:`~hpcsimkit.agents.spaces.masks.QueueSlots` with `decline`. Columns of job
    rows are 0 in the last row, and the reverse.

    Parameters
    ----------
    slots : int
        Number of visible waiting jobs: those that have waited longest.

    Raises
    ------
    UsageError
        When a run begins: the cluster does not consist of machines.

    Examples
    --------
    One of 2 GPUs is in use for another 4 s. A job of 2 s needs both; jobs of 10 s and 1 s behind it need one
    each. In any other unit of time the rows are the same:

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> def rows(unit):
    ...     times = {name: np.multiply(times, unit) for name, times in
    ...              {"submit_time": [0, 1, 1, 1], "run_time": [5, 2, 10, 1]}.items()}
    ...     columns = {**times, "gpus": [1, 2, 1, 1], "nodes": [1] * 4, "spread": [1] * 4}
    ...     policy = Pipeline(order=External(decline=True), fitting=True, window=3)
    ...     workload = Workload(columns, resources=("gpus",))
    ...     simulation = Simulation(workload, policy, Machines.of(1, gpus=2))
    ...     simulation.answer(simulation.next_decision().options[0])
    ...     decision, seen = simulation.next_decision(), np.zeros((4, 22), dtype=np.float32)
    ...     JobsInContext(3).bind(simulation.system)(decision, seen)
    ...     return seen
    >>> print(rows(1)[:3, :7].round(2))
    [[-0.31  1.    2.    0.16  0.    0.    0.  ]
     [ 1.3   0.5   1.    1.07  0.    1.61  1.39]
     [-1.    0.5   1.   -1.23  0.    0.1   0.  ]]
    >>> bool(np.allclose(rows(1), rows(3600)))
    True
    """

    low, high = -np.inf, np.inf

    def __init__(self, slots: int = 20) -> None:
        self.slots = slots

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots + 1, 22)."""
        return (self.slots + 1, COLUMNS)

    def bind(self, system: System) -> Encode:
        """Precompute what does not change during the run."""
        cluster, queue, slots = system.cluster, system.queue, self.slots
        if not isinstance(cluster, Machines):
            raise UsageError(f"{self!r} needs machines, found {cluster!r}")
        total = cluster.capacity.sum(axis=0)
        asked = np.array([cluster.need(job).totals() for job in system.jobs])
        times = np.maximum(system.workload.requested_time.astype(np.float64), 1.0)
        submitted = system.column("submit_time")

        def encode(decision: Decision, out: Observation) -> None:
            rows = [job.index for job in queue.oldest(slots)]
            time, waited = times[rows], (system.now - submitted[rows]).astype(np.float64)
            free, ends, released = releases(system)
            harm = delays(asked[rows], time, free, ends, released) / time
            _write(Seen(time, waited, asked[rows], free, total, ends, harm), len(queue), out)

        return encode


def _write(seen: Seen, waiting: int, out: Observation) -> None:
    """Write the rows of the visible jobs, and the last row."""
    count, fits = len(seen.time), seen.fits
    caused = seen.harm.sum(axis=1)
    to_fitting = seen.harm @ fits
    share = (seen.asked / np.maximum(seen.total, 1)).max(axis=1)
    lengths = np.log(seen.time)
    areas = lengths + np.log(np.maximum(share, LEAST_SHARE))
    mean, running = lengths.sum() / count, len(seen.ends)
    next_end, later = (seen.ends.min(), seen.ends.sum() / running) if running else (0.0, 0.0)
    fitting = fits.sum()
    harm = caused[fits] if fitting else np.zeros(1)
    of_jobs = out[:count]
    of_jobs[:, LENGTH] = lengths - mean
    of_jobs[:, SHARE] = share
    of_jobs[:, TIGHTNESS] = np.minimum((seen.asked / np.maximum(seen.free, 1)).max(axis=1), 2)
    of_jobs[:, AREA] = areas - areas.sum() / count
    of_jobs[:, WAITED] = seen.waited / seen.time
    of_jobs[:, HARM_TO_FITTING] = to_fitting
    of_jobs[:, HARM_TO_BLOCKED] = np.maximum(caused - to_fitting, 0)
    of_jobs[:, HARM] = caused / (1 + count)
    of_jobs[:, NEXT_END] = next_end / seen.time
    of_jobs[:, LOGARITHMIC] = np.log1p(of_jobs[:, LOGARITHMIC])
    whole = np.array([waiting, later / np.exp(mean), harm.sum() / len(harm), harm.min()])
    whole = np.log1p(whole)
    free = (seen.free / np.maximum(seen.total, 1)).min()
    summary = (whole[0], free, whole[1], fitting / count, whole[2], whole[3])
    of_jobs[:, QUEUE:NOTHING] = out[-1, QUEUE:NOTHING] = summary
    out[-1, NOTHING] = 1.0
    out[-1, IN_LAST:] = summary
