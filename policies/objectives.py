"""What a schedule is rewarded for: the two objectives of DRAS, as whole rewards and as values of jobs.

(Fan, Li, Rich, Allcock, Papka & Lan, IEEE TPDS 2022: equation 1 for machines that run large jobs, and
equation 2 for those that run many small ones.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["EQUAL_WEIGHTS", "capability", "capability_values", "capacity", "capacity_values"]

Values = NDArray[np.float64]

EQUAL_WEIGHTS = (1 / 3, 1 / 3, 1 / 3)
"""Of waiting, size and utilisation: the paper's choice for Theta."""


def capability(
    waits: ArrayLike, nodes: ArrayLike, selected: Sequence[int], used: int, total: int, *,
    weights: Sequence[float] = EQUAL_WEIGHTS, least_longest: float = 0,
) -> float:  # fmt: skip
    """Return the reward of equation 1 for a selection: let nobody starve, favour large jobs, leave no gaps.

    ``w1 mean(wait) / longest wait + w2 mean(nodes) / total + w3 used / total``, means over the selection.

    Parameters
    ----------
    waits : array, shape (jobs,)
        How long each waiting job has waited [s], the selected ones included.
    nodes : array, shape (jobs,)
        Nodes that each asks for.
    selected : sequence of int
        Positions of the selected jobs; the first two terms are 0 if there are none.
    used : int
        Nodes occupied once the selection has been acted upon.
    total : int
        Nodes of the cluster.
    weights : sequence of float
        w1, w2 and w3.
    least_longest : float
        The longest wait counts as at least this [s]; the published code has 21600. Where it is 0, so is the
        first term.

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
    waits: ArrayLike, nodes: ArrayLike, total: int, *,
    weights: Sequence[float] = EQUAL_WEIGHTS, least_longest: float = 0,
) -> Values:  # fmt: skip
    """Return what starting each job adds to equation 1 in its additive form.

    ``w1 wait / longest wait + (w2 + w3) nodes / total``: what :func:`capability` gives a job that starts
    alone, without what was occupied before. The means of the literal form are no sum over jobs, so no
    knapsack, and favour selections of one or two jobs.

    Parameters
    ----------
    waits, nodes : array, shape (jobs,)
        Of all jobs that wait; see :func:`capability`, also for the other parameters.

    Returns
    -------
    array of float, shape (jobs,)
        >= 0 for weights >= 0.

    Examples
    --------
    >>> capability_values([50, 100], [2, 6], 8, weights=(1, 1, 0)).tolist()
    [0.75, 1.75]
    """
    aged, large, busy = weights
    ages = np.asarray(waits, dtype=np.float64) / _longest(waits, least_longest)
    return aged * ages + (large + busy) * np.asarray(nodes, dtype=np.float64) / total


def capacity(times: ArrayLike) -> float:
    """Return the reward of equation 2: minus the mean of 1 / t over the jobs that wait, 0 if none does.

    Parameters
    ----------
    times : array, shape (jobs,)
        t of each waiting job [s], at least 1 in effect. The paper does not say what t is: the requested
        time makes sense, since then few waiting jobs, and no short ones, are best. (With the wait so far
        the reward would grow as jobs wait.)

    Examples
    --------
    >>> capacity([4, 2, 0]), capacity([])
    (-0.5833333333333334, 0.0)
    """
    values = capacity_values(times)
    return -float(values.mean()) if len(values) else 0.0


def capacity_values(times: ArrayLike) -> Values:
    """Return what starting each job takes out of the sum of equation 2: 1 / t, t as in :func:`capacity`.

    >>> capacity_values([4, 2, 0]).tolist()
    [0.25, 0.5, 1.0]
    """
    return 1.0 / np.maximum(np.asarray(times, dtype=np.float64), 1.0)


def _longest(waits: ArrayLike, least: float) -> float:
    """Return the longest wait [s]; 1 where nobody has waited, which leaves all shares 0."""
    return max(float(np.max(waits, initial=0)), least) or 1.0
