"""Constant orders of jobs as columns of keys, equal to the keys of :mod:`hpcsimkit.policies.orders`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Order
from hpcsimkit.policies import orders
from hpcsimkit.policies.dirlab import orders as published
from hpcsimkit.policies.oracles import OracleSAF, OracleSJF
from hpcsimkit.policies.predicting.bounded import KeyColumn

Column = NDArray[Any]


def logarithms(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return decimal logarithms equal to those of :func:`math.log10`, which numpy's may not be."""
    return np.fromiter(map(log10, values.tolist()), dtype=np.float64, count=len(values))


def _age(jobs: Workload) -> NDArray[np.float64]:
    return logarithms(np.maximum(jobs.submit_time, 1))


def _one_by_one(order: type[Order], jobs: Workload) -> tuple[NDArray[np.float64], ...]:
    """Return the keys that an order gives each job, which numpy might round differently."""
    keys = np.array(list(map(order().key, jobs.jobs)), dtype=np.float64)
    return tuple(keys.reshape(len(jobs), -1).T)


AGED_ONE_BY_ONE: tuple[type[Order], ...] = (
    published.InvertedWFP3,
    published.InvertedUNICEF,
    published.ShortestExpansion,
    published.LongestExpansion,
    published.PublishedF1,
    published.PublishedF2,
    published.PublishedF3,
    published.PublishedF4,
)
ONE_BY_ONE: tuple[type[Order], ...] = (published.SmallestSJF, published.LRF, *AGED_ONE_BY_ONE)
"""Orders of the published simulators, whose sequences of jobs are short; some keys depend on submissions."""

BY_SUBMISSION = (
    *(orders.FCFS, orders.LCFS, orders.FCFSShortest, orders.F1, orders.F2, orders.F3, orders.F4),
    *AGED_ONE_BY_ONE,
)
"""Constant orders whose keys depend on times of submission."""

KEYS: dict[type[Order], Callable[[Workload], tuple[Column, ...]]] = {
    orders.FCFS: lambda jobs: (jobs.submit_time,),
    orders.LCFS: lambda jobs: (-jobs.submit_time,),
    orders.FCFSShortest: lambda jobs: (jobs.submit_time, jobs.requested_time),
    orders.SJF: lambda jobs: (jobs.requested_time,),
    orders.LJF: lambda jobs: (-jobs.requested_time,),
    orders.SAF: lambda jobs: (jobs.requested_time * jobs.size,),
    orders.LAF: lambda jobs: (-jobs.requested_time * jobs.size,),
    orders.SQF: lambda jobs: (jobs.size,),
    orders.LargestFirst: lambda jobs: (-jobs.size,),
    orders.SRF: lambda jobs: (jobs.requested_time / np.maximum(jobs.size, 1),),
    orders.F1: lambda jobs: (logarithms(jobs.requested_time) * jobs.size + 870 * _age(jobs),),
    orders.F2: lambda jobs: (np.sqrt(jobs.requested_time) * jobs.size + 25_600 * _age(jobs),),
    orders.F3: lambda jobs: (jobs.requested_time * jobs.size + 6_860_000 * _age(jobs),),
    orders.F4: lambda jobs: (jobs.requested_time * np.sqrt(jobs.size) + 530_000 * _age(jobs),),
    OracleSJF: lambda jobs: (jobs.run_time,),
    OracleSAF: lambda jobs: (jobs.run_time * jobs.size,),
    **{order: partial(_one_by_one, order) for order in ONE_BY_ONE},
}
"""Keys by class of order: columns of shape (jobs,), the most significant first."""


def keys_of(order: Order, workload: Workload) -> tuple[Column, ...]:
    """Return the keys of the jobs of a workload by a constant order."""
    return (order.keys,) if isinstance(order, KeyColumn) else KEYS[type(order)](workload)


def dense_ranks(keys: tuple[Column, ...]) -> NDArray[np.int64]:
    """Return the rank of each job by its keys, from 0; jobs with equal keys have equal ranks.

    >>> dense_ranks((np.array([5, 3, 5]),)).tolist()
    [1, 0, 1]
    """
    order = np.lexsort(keys[::-1])
    differs = np.zeros(len(order), dtype=bool)
    for key in keys:
        differs[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(differs)
    return ranks
