"""Replicates: values of policies on repetitions of an experiment, where copies of a schedule count once.

A schedule is repeated if nothing that differs between two repetitions has an effect: a log with another
random seed under a policy that draws no random numbers, or a sequence of jobs that was sampled twice. Tests
on copies are tests on a larger sample than there is, and their p-values have no meaning.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["distinct", "numbered", "replicate_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def numbered(keys: Sequence[Hashable | None]) -> Integers:
    """Return a number for each key, equal for equal keys; an unknown key (None) equals no other.

    >>> numbered(["a", "b", None, "a", None]).tolist()
    [0, 1, 2, 0, 4]
    """
    first: dict[Hashable, int] = {}
    numbers = (place if key is None else first.setdefault(key, place) for place, key in enumerate(keys))
    return np.fromiter(numbers, dtype=np.int64, count=len(keys))


def replicate_of(schedules: Integers) -> Integers:
    """Return the number of the replicate to which each repetition belongs, in the order of the first ones.

    Repetitions with the same schedule of some policy are one replicate, also through a third one.

    Parameters
    ----------
    schedules : array of int64, shape (policies, repetitions)
        Numbers of the schedules: equal numbers in a row are equal schedules of the policy.

    Examples
    --------
    One policy has the same schedule in the first two repetitions, another one in the last two:

    >>> replicate_of(np.array([[0, 0, 1, 2, 3], [0, 1, 2, 3, 3]])).tolist()
    [0, 0, 1, 2, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    policies, repetitions = schedules.shape
    labels = np.array([np.unique(row, return_inverse=True)[1] for row in schedules]).reshape(schedules.shape)
    if all(len(np.unique(row)) == repetitions for row in labels):
        return np.arange(repetitions)
    # A graph of repetitions and schedules, with an edge wherever a repetition has a schedule.
    nodes = repetitions * (1 + np.arange(policies))[:, None] + labels
    edges = (np.tile(np.arange(repetitions), policies), nodes.ravel())
    size = repetitions * (1 + policies)
    graph = coo_array((np.ones(policies * repetitions), edges), shape=(size, size))
    _, component = connected_components(graph)
    _, first, inverse = np.unique(component[:repetitions], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def distinct(values: Floats, schedules: Integers) -> Floats:
    """Return values of policies on replicates, of which no two share the schedule of a policy.

    A replicate of several repetitions has the mean of their values: of a policy that has one schedule in all
    of them this is its value, and of a policy that draws random numbers the mean over its draws.

    Parameters
    ----------
    values : array of float64, shape (policies, repetitions)
        Values of a metric.
    schedules : array of int64, shape (policies, repetitions)
        Numbers of the schedules, see :func:`replicate_of`.

    Returns
    -------
    array of float64, shape (policies, replicates)

    Examples
    --------
    >>> distinct(np.array([[5.0, 5.0, 5.0], [1.0, 2.0, 6.0]]), np.array([[0, 0, 0], [0, 1, 2]])).tolist()
    [[5.0], [3.0]]
    """
    if values.shape[1] < 2:
        return values
    _, first = np.unique(schedules, axis=1, return_index=True)  # exact, where all policies are repeated
    first.sort()
    values, replicate = values[:, first], replicate_of(schedules[:, first])
    count = np.bincount(replicate)
    if len(count) == values.shape[1]:
        return values
    return np.array([np.bincount(replicate, row) for row in values]) / count
