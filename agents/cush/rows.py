"""What starting a job now does to the others: a row for each job that is seen, and one for starting none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.machines import Machines
from hpcsimkit.policies.packing import DominantShare
from hpcsimkit.system import System

__all__ = ["StartOrHold", "delays"]

Times = NDArray[np.float64]
Amounts = NDArray[np.int64]

LOG_TIME, AREA, WAITED, HARM_TO_FITTING, HARM_TO_BLOCKED, NOTHING, WAITING = range(7)


class StartOrHold(Encoder):
    """The jobs that have waited longest, a row each, and in a last row what speaks for starting nothing.

    ====== =========== ======== ==============================================================================
    row    column      range    what
    ====== =========== ======== ==============================================================================
    job    0           >= 0     logarithm of the requested time [s]
    job    1           >= 0     requested time [`time_scale`] x dominant share of the cluster
    job    2           >= 0     waited so far, of the requested time
    job    3           >= 0     harm to jobs that could start now: by how long it would delay each of them,
                                of the time which that one requested, summed up; 0 if it does not fit itself
    job    4           >= 0     harm to jobs that could not start now
    job    5, 6        0
    last   0 to 4      0
    last   5           1
    last   6           >= 0     jobs that wait, seen or not, of `slots`
    ====== =========== ======== ==============================================================================

    Harm is what a start adds to the normalised turnaround of the other jobs that are seen, as far as can be
    known now: each by itself is expected to start as soon as there is enough for it in all, and running jobs
    to end after what they requested. Nothing is known of jobs that are not seen but how many they are, and
    nothing of those to come. Rows are actions of :class:`~hpcsimkit.agents.masks.QueueSlots` with `decline`.

    Parameters
    ----------
    slots : int
        Waiting jobs that are seen: those that have waited longest.
    time_scale : float
        Seconds that count as one in column 1.
    horizon : int, optional
        How far it sees [s]: what takes longer, of waiting and of running jobs, is taken to take so long. By
        default all is seen.

    Raises
    ------
    UsageError
        When a run begins: the horizon is out of its range, or the cluster is not one of machines.

    Examples
    --------
    Of 2 GPUs one is taken for 4 s more. A job of 2 s needs both; behind it wait one of 10 s and one of 1 s
    that need one each. The long one would delay the blocked one by 6 s, three times its time, and the short
    one by 4 s; the short one would delay the long one by 1 s, and the blocked one not at all:

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

    def __init__(self, slots: int = 5, time_scale: float = 10.0, horizon: int | None = None) -> None:
        self.slots = slots
        self.time_scale = time_scale
        self.horizon = horizon

    @property
    def shape(self) -> tuple[int, ...]:
        """(slots + 1, 7)."""
        return (self.slots + 1, WAITING + 1)

    def bind(self, system: System) -> Encode:
        """Lay out what never changes of all jobs, once for the run."""
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
            free, ends, released = _releases(system)
            fitting = (asked[rows] <= free).all(axis=1)
            harm = delays(asked[rows], time, free, np.minimum(ends, farthest), released) / time
            of_jobs[:, : AREA + 1] = known[rows]
            of_jobs[:, WAITED] = (system.now - submitted[rows]) / time
            of_jobs[:, HARM_TO_FITTING] = harm[:, fitting].sum(axis=1)
            of_jobs[:, HARM_TO_BLOCKED] = harm[:, ~fitting].sum(axis=1)
            out[slots, NOTHING:] = 1.0, len(queue) / slots

        return encode

    def _known(self, system: System, times: Times) -> Times:
        """Return what never changes of each job, shape (jobs, 2)."""
        share = DominantShare()
        share.reset(system)
        areas = times / self.time_scale * [share.key(job) for job in system.jobs]
        return np.stack([np.log(times), areas], axis=1)


def _releases(system: System) -> tuple[Amounts, Times, Amounts]:
    """Return what is free in all, in how many seconds running jobs are expected to end, and what they hold.

    Who is expected to have ended is expected to end in a second.
    """
    free = system.free.sum(axis=0)
    entries = system.running.entries
    ends = np.array([max(end - system.now, 1) for end, _, _ in entries], dtype=np.float64)
    held = np.array([allocation.totals for _, _, allocation in entries], dtype=np.int64)
    return free, ends, held.reshape(-1, len(free))


def delays(asked: Amounts, times: Times, free: Amounts, ends: Times, released: Amounts) -> Times:
    """Return by how long each of some waiting jobs would delay each other one by starting now [s].

    That one alone is expected to start as soon as there is enough for it. Nobody delays himself, and who does
    not fit delays nobody.

    Parameters
    ----------
    asked : array of int64, shape (jobs, resources)
        How much each needs.
    times : array of float64, shape (jobs,)
        How long each would run [s].
    free : array of int64, shape (resources,)
        What is free now.
    ends : array of float64, shape (running,)
        In how many seconds each running job ends [s].
    released : array of int64, shape (running, resources)
        What it holds.

    Returns
    -------
    array of float64, shape (jobs, jobs)
        In row *i* what job *i* does.

    Examples
    --------
    Of 4 units 3 are free, and the other one in 5 s. The first job can start now, the second in 5 s; if the
    first one starts, in 9 s.

    >>> delays(np.array([[2], [4]]), np.array([9.0, 2.0]), np.array([3]), np.array([5.0]), np.array([[1]]))
    array([[0., 4.],
           [0., 0.]])
    """
    instants = np.concatenate([[0.0], ends, times])
    order = instants.argsort(kind="stable")
    instants = instants[order]
    changes = np.concatenate([free[None], released, np.zeros_like(asked)])  # what waits now may end then
    levels = changes[order].cumsum(axis=0)
    alone = _first(levels[None], asked, instants)[0]
    fitting = np.flatnonzero((asked <= free).all(axis=1))
    taken = (instants < times[fitting, None])[:, :, None] * asked[fitting, None]
    found = np.zeros((len(asked), len(asked)))
    found[fitting] = _first(levels - taken, asked, instants) - alone
    np.fill_diagonal(found, 0.0)
    return found


def _first(levels: Amounts, asked: Amounts, instants: Times) -> Times:
    """Return the first instant at which each job fits, shape (cases, jobs).

    Parameters
    ----------
    levels : array of int64, shape (cases, instants, resources)
        What is free from each instant on, in each case.
    asked : array of int64, shape (jobs, resources)
        How much each job needs.
    instants : array of float64, shape (instants,)
        Ascending.
    """
    enough = (levels[:, None] >= asked[:, None]).all(axis=3)
    return instants[enough.argmax(axis=2)]
