"""CuSH's rewards: local rewards at every step, and a global reward at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.training.returns import discounted_returns
from hpcsimkit.kernel.system import System

__all__ = ["Fared", "Floats", "fared", "job_selector_returns", "local_rewards"]

Floats = NDArray[np.float64]


def local_rewards(system: System) -> Floats:
    """Return minus the sum of the waits in units of the requested times, at each decision.

    A decision starts a job, or starts no further job, in which case the clock advances by a step of 1 s.
    There are thus as many decisions as jobs, and one for each second from 0 to the end; decisions without an
    alternative count as well. The sum is over all waiting jobs, in slots or behind them, after the decision
    and before the clock advances. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.2; the paper does not say
    whether before or after the decision.)

    Parameters
    ----------
    system : System
        State of a finished run that began at 0 s or later.

    Returns
    -------
    array of float64, shape (decisions,)
        Local rewards, at most 0.

    Examples
    --------
    Two jobs of 2 s and 4 s on one node: at 0 s the first job starts, then no further one; the other has
    waited a quarter of its requested time at 1 s, and starts at 2 s.

    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> from hpcsimkit.cluster.machines import Machines
    >>> w = Workload({"submit_time": [0, 0], "run_time": [2, 4], "nodes": [1, 1], "cpus": [1, 1]},
    ...              resources=("cpus",))
    >>> simulation = Simulation(w, Pipeline(), Machines.of(1, cpus=1))
    >>> _ = simulation.run()
    >>> local_rewards(simulation.system).tolist()
    [0.0, 0.0, -0.25, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    started = [row for row in system.events if row >= 0]
    starts, submitted = system.ledger.start_time, system.ledger.submit_time
    step_of = np.empty(len(starts), dtype=np.int64)
    step_of[started] = starts[started] + np.arange(len(started))  # a step per second and per earlier start
    end = int(system.ledger.end_time.max(initial=0))
    per_second = 1 + np.bincount(starts[started], minlength=end)[:end]
    now = np.repeat(np.arange(end), per_second)
    waits = now[:, None] - submitted
    waiting = (waits > 0) & (np.arange(len(now))[:, None] < step_of)
    return -(waits * waiting / system.workload.requested_time).sum(axis=1) + 0.0


class Fared(NamedTuple):
    """Mean results of the jobs of a run.

    Parameters
    ----------
    turnaround : float
        Mean time from submission to end: TAT [s].
    normalised_turnaround : float
        Mean turnaround over service time, both including the penalty of the placement: NTAT, at least 1.
    wait : float
        Mean time from submission to start [s].
    """

    turnaround: float
    normalised_turnaround: float
    wait: float


def fared(system: System) -> Fared:
    """Return the mean results of the jobs of a finished run. (CuSH, section 4.1.)"""
    starts, finishes = system.ledger.start_time, system.ledger.end_time
    submitted = system.ledger.submit_time
    turnaround = finishes - submitted
    means = (each.mean() for each in (turnaround, turnaround / (finishes - starts), starts - submitted))
    return Fared(*map(float, means))


def job_selector_returns(rewards: Sequence[Floats], turnarounds: Floats, gamma: float) -> NDArray[np.float32]:
    """Return the return of each decision: its discounted local rewards times the final NTAT.

    Both factors grow in magnitude the worse the run is, so larger is better, and no return is above 0.
    (Equation 1; the surrounding text speaks of a reward to minimise.)

    Parameters
    ----------
    rewards : sequence of array of float64, shape (decisions,)
        Local rewards, one array per episode.
    turnarounds : array of float64, shape (episodes,)
        Normalised turnarounds.
    gamma : float
        Discount factor gamma, in [0, 1].

    Returns
    -------
    array of float32, shape (longest, episodes)
        Returns; 0 after the end of an episode.

    Examples
    --------
    >>> job_selector_returns([np.array([-1.0, -2.0]), np.array([-4.0])], np.array([2.0, 1.5]), 0.5).tolist()
    [[-4.0, -6.0], [-4.0, 0.0]]
    """
    padded = np.zeros((max(map(len, rewards)), len(rewards)), dtype=np.float32)
    for episode, each in enumerate(rewards):
        padded[: len(each), episode] = each
    nothing = np.zeros(len(rewards), dtype=np.float32)
    returns = discounted_returns(padded, np.zeros(padded.shape, dtype=np.bool_), nothing, gamma)
    return (returns * turnarounds).astype(np.float32)
