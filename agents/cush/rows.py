"""Encoder of the effects of starting a job now on the other jobs, with one row to start no job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.packing import DominantShare

__all__ = ["StartOrHold", "delays", "releases"]

Times = NDArray[np.float64]
Amounts = NDArray[np.int64]

LOG_TIME, AREA, WAITED, HARM_TO_FITTING, HARM_TO_BLOCKED, NOTHING, WAITING = range(7)


class StartOrHold(Encoder):
    """The jobs that have waited longest, one row each, and a last row for starting no job.

    ====== =========== ======== ==============================================================================
    row    column      range    meaning
    ====== =========== ======== ==============================================================================
    job    0           >= 0     logarithm of the requested time [s]
    job    1           >= 0     requested time [`time_scale`] x dominant share of the cluster
    job    2           >= 0     wait time so far, over the requested time
    job    3           >= 0     delay of the jobs that could start now: the sum of the delays of each of them
                                over its requested time; 0 if the job itself does not fit
    job    4           >= 0     delay of the jobs that could not start now, likewise
    job    5, 6        0        unused
    last   0 to 4      0        unused
    last   5           1
    last   6           >= 0     number of waiting jobs, visible or not, over `slots`
    ====== =========== ======== ==============================================================================

    Delay is the expected increase of the normalised turnaround of the other visible jobs by a start, with the
    information available now: each of them, considered alone, is expected to start as soon as the total free
    resources suffice, and running jobs to end after their requested times. Of jobs that are not visible only
    the number is used, and future jobs are ignored. Rows are the actions of
    :class:`~hpcsimkit.agents.spaces.masks.QueueSlots` with `decline`.

    Parameters
    ----------
    slots : int
        Number of visible waiting jobs: those that have waited longest.
    time_scale : float
        Unit of time in column 1 [s].
    horizon : int, optional
        Upper bound of all waiting and running jobs' requested and remaining times [s]; by default no bound.

    Raises
    ------
    UsageError
        When a run begins: the horizon is out of range, or the cluster does not consist of machines.

    Examples
    --------
    One of 2 GPUs is in use for another 4 s. A job of 2 s needs both; jobs of 10 s and 1 s behind it need one
    each. The long one would delay the blocked job by 6 s, three times its requested time, and the short one
    by 4 s; the short one would delay the long one by 1 s, and the blocked job not at all:

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 1, 1, 1], "run_time": [5, 2, 10, 1], "gpus": [1, 2, 1, 1],
    ...            "nodes": [1] * 4, "spread": [1] * 4}
    >>> policy = Pipeline(order=External(decline=True), fitting=True, window=3)
    >>> simulation = Simulation(Workload(columns, resources=("gpus",)), policy, Machines.of(1, gpus=2))
    >>> simulation.answer(simulation.next_decision().options[0])
    >>> decision, seen = simulation.next_decision(), np.zeros((4, 7), dtype=np.float32)
    >>> StartOrHold(3).bind(simulation.system)(decision, seen)
    >>> print(seen.round(2))
    [[0.69 0.2  0.   0.   0.   0.   0.  ]
     [2.3  0.5  0.   4.   3.   0.   0.  ]
     [0.   0.05 0.   0.1  0.   0.   0.  ]
     [0.   0.   0.   0.   0.   1.   1.  ]]
    """

    low, high = 0.0, np.inf

    def __init__(self, slots: int = 5, time_scale: Positive = 10.0, horizon: int | None = None) -> None:
        self.slots = slots
        self.time_scale = time_scale
        self.horizon = horizon

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots + 1, 7)."""
        return (self.slots + 1, WAITING + 1)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run."""
        cluster, queue, slots = system.cluster, system.queue, self.slots
        if self.horizon is not None and self.horizon < 1:
            raise UsageError(f"{self!r}: horizon needs a number of at least 1, found {self.horizon!r}")
        farthest = float("inf") if self.horizon is None else float(self.horizon)
        if not isinstance(cluster, Machines):
            raise UsageError(f"{self!r} needs machines, found {cluster!r}")
        asked = np.array([cluster.need(job).totals() for job in system.jobs])
        times = np.clip(system.workload.requested_time.astype(np.float64), 1.0, farthest)
        submitted, known = system.column("submit_time"), self._known(system, times)

        def encode(decision: Decision, out: Observation) -> None:
            rows = [job.index for job in queue.oldest(slots)]
            of_jobs, time = out[: len(rows)], times[rows]
            free, ends, released = releases(system)
            fitting = (asked[rows] <= free).all(axis=1)
            harm = delays(asked[rows], time, free, np.minimum(ends, farthest), released) / time
            of_jobs[:, : AREA + 1] = known[rows]
            of_jobs[:, WAITED] = (system.now - submitted[rows]) / time
            of_jobs[:, HARM_TO_FITTING] = harm[:, fitting].sum(axis=1)
            of_jobs[:, HARM_TO_BLOCKED] = harm[:, ~fitting].sum(axis=1)
            out[slots, NOTHING:] = 1.0, len(queue) / slots

        return encode

    def _known(self, system: System, times: Times) -> Times:
        """Return the constant job features, shape (jobs, 2)."""
        share = DominantShare()
        share.reset(system)
        areas = times / self.time_scale * [share.key(job) for job in system.jobs]
        return np.stack([np.log(times), areas], axis=1)


def releases(system: System) -> tuple[Amounts, Times, Amounts]:
    """Return the total free resources, and the expected remaining times and resources of the running jobs.

    A job past its expected end is expected to end in a second.
    """
    free = system.free.sum(axis=0)
    entries = system.running.entries
    ends = np.array([max(end - system.now, 1) for end, _, _ in entries], dtype=np.float64)
    held = np.array([allocation.totals for _, _, allocation in entries], dtype=np.int64)
    return free, ends, held.reshape(-1, len(free))


def delays(asked: Amounts, times: Times, free: Amounts, ends: Times, released: Amounts) -> Times:
    """Return by how much a start of each waiting job now would delay each of the others [s].

    Each of the others, considered alone, is expected to start as soon as the resources suffice. A job does
    not delay itself, and a job that does not fit delays no job.

    Parameters
    ----------
    asked : array of int64, shape (jobs, resources)
        Resource demands of the waiting jobs.
    times : array of float64, shape (jobs,)
        Run times of the waiting jobs [s].
    free : array of int64, shape (resources,)
        Resources free now.
    ends : array of float64, shape (running,)
        Remaining times of the running jobs [s].
    released : array of int64, shape (running, resources)
        Resources of the running jobs.

    Returns
    -------
    array of float64, shape (jobs, jobs)
        Delays; row *i* has those caused by job *i*.

    Examples
    --------
    Three of 4 units are free now, the other one in 5 s. The first job can start now, the second in 5 s; if
    the first one starts, in 9 s.

    >>> delays(np.array([[2], [4]]), np.array([9.0, 2.0]), np.array([3]), np.array([5.0]), np.array([[1]]))
    array([[0., 4.],
           [0., 0.]])
    """
    order = ends.argsort(kind="stable")
    instants = np.concatenate([[0.0], ends[order]])
    levels = np.concatenate([free[None], released[order]]).cumsum(axis=0)
    fitting = np.flatnonzero((asked <= free).all(axis=1))
    alone, found = np.zeros(len(asked)), np.zeros((len(asked), len(asked)))
    for of_resource, level in zip(asked.T, levels.T, strict=True):
        before = _first(level, of_resource, instants)
        beside = _first(level, of_resource[fitting, None] + of_resource, instants)
        after = np.maximum(before, times[fitting, None])  # as soon as the job has ended, or without waiting
        alone = np.maximum(alone, before)
        found[fitting] = np.maximum(found[fitting], np.minimum(beside, after))
    found[fitting] -= alone
    np.fill_diagonal(found, 0.0)
    return found


def _first(level: NDArray[np.int64], asked: NDArray[np.int64], instants: Times) -> Times:
    """Return the first instant at which an amount of a resource is available, infinity if never.

    Parameters
    ----------
    level : array of int64, shape (instants,)
        Available amount from each instant on, ascending.
    asked : array of int64
        Requested amounts.
    instants : array of float64, shape (instants,)
        Instants, ascending [s].
    """
    return np.append(instants, np.inf)[level.searchsorted(asked)]
