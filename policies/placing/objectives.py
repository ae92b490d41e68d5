"""The two objectives of DRAS, as rewards of a selection and as additive values of jobs.

(Fan, Li, Rich, Allcock, Papka & Lan, IEEE TPDS 2022: equation 1 for capability systems, which run large jobs,
and equation 2 for capacity systems, which run many small jobs.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["EQUAL_WEIGHTS", "capability", "capability_values", "capacity", "capacity_values"]

Values = NDArray[np.float64]

EQUAL_WEIGHTS = (1 / 3, 1 / 3, 1 / 3)
"""Weights of waiting time, size and utilisation: the paper's choice for Theta."""


def capability(
    waits: ArrayLike,
    nodes: ArrayLike,
    selected: Sequence[int],
    used: int,
    total: int,
    *,
    weights: Sequence[float] = EQUAL_WEIGHTS,
    least_longest: float = 0,
) -> float:
    """Return the reward of equation 1, which rewards long waits, large jobs and utilisation.

    ``w1 mean(wait) / longest wait + w2 mean(nodes) / total + w3 used / total``, means over the selection.

    Parameters
    ----------
    waits : array, shape (jobs,)
        Waiting time so far of each waiting job [s], the selected jobs included.
    nodes : array, shape (jobs,)
        Number of nodes requested by each waiting job.
    selected : sequence of int
        Positions of the selected jobs; the first two terms are 0 for an empty selection.
    used : int
        Number of occupied nodes after the selected jobs have started.
    total : int
        Number of nodes of the cluster.
    weights : sequence of float
        The weights w1, w2 and w3.
    least_longest : float
        Lower bound of the longest wait [s], 0 by default and 21600 in the published code. If the longest wait
        is 0, so is the first term.

    Examples
    --------
    >>> round(capability([50, 100], [2, 6], [0], used=4, total=8), 6) == round((1/2 + 2/8 + 4/8) / 3, 6)
    True
    """
    chosen = np.asarray(selected, dtype=np.intp)
    aged, large, busy = weights
    if not len(chosen):
        return busy * used / total
    longest = _longest(waits, least_longest)
    mean_wait = float(np.asarray(waits)[chosen].mean())
    mean_nodes = float(np.asarray(nodes)[chosen].mean())
    return aged * mean_wait / longest + large * mean_nodes / total + busy * used / total


def capability_values(
    waits: ArrayLike,
    nodes: ArrayLike,
    total: int,
    *,
    weights: Sequence[float] = EQUAL_WEIGHTS,
    least_longest: float = 0,
) -> Values:
    """Return the contribution of each job to equation 1 in its additive form.

    ``w1 wait / longest wait + (w2 + w3) nodes / total``: the value of :func:`capability` for a job that is
    selected alone on an empty cluster. The means of the original form are not a sum over jobs, so they define
    no knapsack, and they favour selections of one or two jobs.

    Parameters
    ----------
    waits, nodes : array, shape (jobs,)
        Waiting times [s] and nodes of all waiting jobs; see :func:`capability`, also for the other
        parameters.

    Returns
    -------
    array of float, shape (jobs,)
        The contributions, >= 0 for weights >= 0.

    Examples
    --------
    >>> capability_values([50, 100], [2, 6], 8, weights=(1, 1, 0)).tolist()
    [0.75, 1.75]
    """
    aged, large, busy = weights
    ages = np.asarray(waits, dtype=np.float64) / _longest(waits, least_longest)
    return aged * ages + (large + busy) * np.asarray(nodes, dtype=np.float64) / total


def capacity(times: ArrayLike) -> float:
    """Return the reward of equation 2: minus the mean of 1 / t over the waiting jobs, 0 if there are none.

    Parameters
    ----------
    times : array, shape (jobs,)
        The time t of each waiting job [s]; values below 1 count as 1. The paper does not define t. The
        requested time is a sensible choice, since the reward is then largest if few jobs wait and none of
        them is short. (With the waiting time so far, the reward would increase as jobs wait.)

    Examples
    --------
    >>> capacity([4, 2, 0]), capacity([])
    (-0.5833333333333334, 0.0)
    """
    values = capacity_values(times)
    return -float(values.mean()) if len(values) else 0.0


def capacity_values(times: ArrayLike) -> Values:
    """Return the term of each job in the sum of equation 2: 1 / t, with t as in :func:`capacity`.

    >>> capacity_values([4, 2, 0]).tolist()
    [0.25, 0.5, 1.0]
    """
    return 1.0 / np.maximum(np.asarray(times, dtype=np.float64), 1.0)


def _longest(waits: ArrayLike, least: float) -> float:
    """Return the longest wait [s], or 1 if all waits are 0, so that all ratios are 0."""
    return max(float(np.max(waits, initial=0)), least) or 1.0
