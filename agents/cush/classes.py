"""Sums over classes of jobs: by requested time, by size, and by type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH
from hpcsimkit.results.resource_metrics import locality_penalty, normalised_turnaround
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.models.cush import CUSH_KINDS

__all__ = ["LENGTHS", "SIZES", "SUMS", "class_sums", "mean_of_class"]

LENGTHS: Mapping[str, float] = {"short": 5, "medium short": 10, "medium long": 15, "long": np.inf}
"""Maximum requested time of each class [steps]."""

SIZES: Mapping[str, float] = {"small": 0.25, "medium small": 0.5, "medium large": 0.75, "large": np.inf}
"""Maximum share of all CPUs, or of all GPUs, of each class."""

SUMS = tuple(
    f"{quantity}, {name}"
    for names, quantities in (
        (LENGTHS, ("jobs", "wait", "ntat")),
        (SIZES, ("jobs", "penalty")),
        (CUSH_KINDS, ("jobs", "suited")),
    )
    for name in names
    for quantity in quantities
)
"""Keys of the sums over the jobs of each class."""


def class_sums(result: Result, styles: Sequence[str]) -> dict[str, float]:
    """Return sums over the jobs of each class, and their numbers, by `SUMS`.

    Parameters
    ----------
    result : Result
        Result of a run on machines, with a locality model.
    styles : sequence of str, shape (jobs,)
        Placement style of each job: :data:`~hpcsimkit.kernel.locality.DEPTH` or
        :data:`~hpcsimkit.kernel.locality.BREADTH`.
    """
    workload, ones = result.workload, np.ones(len(result))
    assert result.placements is not None
    total = result.placements.cluster.amount
    shares = np.max([workload.column(name) / total(name).sum() for name in ("cpus", "gpus")], axis=0)
    length = np.searchsorted(list(LENGTHS.values()), workload.requested_time)
    size, kind = np.searchsorted(list(SIZES.values()), shares), workload.column("kind")
    suited = np.array(styles) == np.where(kind == COMPUTE_BOUND, DEPTH, BREADTH)
    of = (
        (LENGTHS, length, {"jobs": ones, "wait": result.wait_time, "ntat": normalised_turnaround(result)}),
        (SIZES, size, {"jobs": ones, "penalty": locality_penalty(result)}),
        (CUSH_KINDS, kind, {"jobs": ones, "suited": suited}),
    )
    return {
        f"{quantity}, {name}": float(values[which == place].sum())
        for names, which, sums in of
        for place, name in enumerate(names)
        for quantity, values in sums.items()
    }


def mean_of_class(values: Mapping[str, NDArray[np.float64]], quantity: str, name: str) -> float:
    """Return the mean over all jobs of a class; NaN if there are none.

    >>> values = {"jobs, short": np.array([1.0, 3.0]), "wait, short": np.array([6.0, 2.0])}
    >>> mean_of_class(values, "wait", "short")
    2.0
    """
    jobs = values[f"jobs, {name}"].sum()
    return float(values[f"{quantity}, {name}"].sum() / jobs) if jobs else float("nan")
