"""What CuSH's decisions were worth: local rewards at every step, one global reward, a baseline a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.returns import discounted_returns
from hpcsimkit.system import System

__all__ = ["Fared", "Floats", "fared", "job_selector_returns", "local_rewards"]

Floats = NDArray[np.float64]


def local_rewards(system: System) -> Floats:
    """Return minus how long jobs have waited, per step that they requested, summed up, at each decision.

    A decision starts a job, or starts nothing more, whereupon time goes on by a step of 1 s: there are as
    many decisions as jobs, and one for each second from 0 to the end. Those that somebody had no choice about
    count as well. What counts is who waits, in slots or behind them, after the decision and before time goes
    on. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.2; it leaves open whether before or after.)

    Parameters
    ----------
    system : System
        Of a run that is over, which began at 0 s or later.

    Returns
    -------
    array of float64, shape (decisions,)
        Not positive.

    Examples
    --------
    On one node, two jobs of 2 s and 4 s: at 0 s one starts, then nothing more; the other has waited a
    quarter of its time at 1 s, and starts at 2 s.

    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> from hpcsimkit.machines import Machines
    >>> w = Workload({"submit_time": [0, 0], "run_time": [2, 4], "nodes": [1, 1], "cpus": [1, 1]},
    ...              resources=("cpus",))
    >>> simulation = Simulation(w, Pipeline(), Machines.of(1, cpus=1))
    >>> _ = simulation.run()
    >>> local_rewards(simulation.system).tolist()
    [0.0, 0.0, -0.25, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    started = [row for row in system.events if row >= 0]
    starts, submitted = np.array(system.starts), system.column("submit_time")
    step_of = np.empty(len(starts), dtype=np.int64)
    step_of[started] = starts[started] + np.arange(len(started))  # a step for each second and start before
    end = max(system.finishes, default=0)
    per_second = 1 + np.bincount(starts[started], minlength=end)[:end]
    now = np.repeat(np.arange(end), per_second)
    waits = now[:, None] - submitted
    waiting = (waits > 0) & (np.arange(len(now))[:, None] < step_of)
    return -(waits * waiting / system.workload.requested_time).sum(axis=1) + 0.0


class Fared(NamedTuple):
    """How the jobs of a run fared, on average.

    Parameters
    ----------
    turnaround : float
        From submission to end: TAT [s].
    normalised_turnaround : float
        Turnaround over service time, the penalty of the placement being part of both: NTAT, at least 1.
    wait : float
        From submission to start [s].
    """

    turnaround: float
    normalised_turnaround: float
    wait: float


def fared(system: System) -> Fared:
    """Return how the jobs of a run that is over fared. (CuSH, section 4.1.)"""
    starts, finishes = np.array(system.starts), np.array(system.finishes)
    submitted = system.column("submit_time")
    turnaround = finishes - submitted
    means = (each.mean() for each in (turnaround, turnaround / (finishes - starts), starts - submitted))
    return Fared(*map(float, means))


def job_selector_returns(
    rewards: Sequence[Floats], turnarounds: Floats, discount: float
) -> NDArray[np.float32]:
    """Return what each decision was worth: discounted local rewards from it on, times the NTAT at the end.

    Both are larger, in size, the worse it went: more is better, and nothing is above 0. (Equation 1; the text
    around it speaks of a reward to be minimised.)

    Parameters
    ----------
    rewards : sequence of array of float64, shape (decisions,)
        Local rewards, an array for each episode.
    turnarounds : array of float64, shape (episodes,)
        Normalised.
    discount : float
        gamma, in [0, 1].

    Returns
    -------
    array of float32, shape (longest, episodes)
        0 behind the end of an episode.

    Examples
    --------
    >>> job_selector_returns([np.array([-1.0, -2.0]), np.array([-4.0])], np.array([2.0, 1.5]), 0.5).tolist()
    [[-4.0, -6.0], [-4.0, 0.0]]
    """
    padded = np.zeros((max(map(len, rewards)), len(rewards)), dtype=np.float32)
    for episode, each in enumerate(rewards):
        padded[: len(each), episode] = each
    nothing = np.zeros(len(rewards), dtype=np.float32)
    returns = discounted_returns(padded, np.zeros(padded.shape, dtype=np.bool_), nothing, discount)
    return (returns * turnarounds).astype(np.float32)
