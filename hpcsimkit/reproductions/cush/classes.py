"""Classes of jobs by requested time, by resource demand, and by job type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH
from hpcsimkit.results.resource_metrics import locality_penalty, normalised_turnaround
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.models.cush import CUSH_KINDS

__all__ = ["LENGTHS", "SIZES", "SUMS", "class_sums", "mean_of_class", "share_suited"]

Floats = NDArray[np.float64]

LENGTHS: Mapping[str, float] = {"short": 5, "medium short": 10, "medium long": 15, "long": np.inf}
"""Maximum requested time of each class [steps]."""

SIZES: Mapping[str, float] = {"small": 0.25, "medium small": 0.5, "medium large": 0.75, "large": np.inf}
"""Maximum share of all CPUs, or of all GPUs, of each class."""

JOBS, WAIT, NTAT, PENALTY, SUITED = "jobs", "wait", "ntat", "penalty", "suited"
"""Quantities to sum."""


def key(quantity: str, name: str) -> str:
    """Return the key of the sum of a quantity over a class.

    >>> key("wait", "short")
    'wait, short'
    """
    return f"{quantity}, {name}"


def _keys() -> Iterator[str]:
    for names, quantities in (
        (LENGTHS, (JOBS, WAIT, NTAT)),
        (SIZES, (JOBS, PENALTY)),
        (CUSH_KINDS, (JOBS, SUITED)),
    ):
        for name in names:
            yield from (key(quantity, name) for quantity in quantities)


SUMS = tuple(_keys())
"""Keys of all sums."""


def class_sums(result: Result, styles: Sequence[str]) -> dict[str, float]:
    """Return sums over the jobs of each class, and their numbers.

    Parameters
    ----------
    result : Result
        Result of a run on machines, with a locality model.
    styles : sequence of str, shape (jobs,)
        Placement style of each job: :data:`~hpcsimkit.kernel.locality.DEPTH` or
        :data:`~hpcsimkit.kernel.locality.BREADTH`.
    """
    workload, ones = result.workload, np.ones(len(result))
    length = np.searchsorted(list(LENGTHS.values()), workload.requested_time)
    size = np.searchsorted(list(SIZES.values()), dominant_shares(result))
    kind = workload.column("kind")
    suited = np.array(styles) == np.where(kind == COMPUTE_BOUND, DEPTH, BREADTH)
    of = (
        (LENGTHS, length, {JOBS: ones, WAIT: result.wait_time, NTAT: normalised_turnaround(result)}),
        (SIZES, size, {JOBS: ones, PENALTY: locality_penalty(result)}),
        (CUSH_KINDS, kind, {JOBS: ones, SUITED: suited}),
    )
    return {
        key(quantity, name): float(values[which == number].sum())
        for names, which, sums in of
        for number, name in enumerate(names)
        for quantity, values in sums.items()
    }


def dominant_shares(result: Result) -> Floats:
    """Return the larger of each job's shares of all CPUs and all GPUs; r_m of CuSH, shape (jobs,)."""
    assert result.placements is not None
    cluster = result.placements.cluster
    shares = [result.workload.column(name) / cluster.amount(name).sum() for name in ("cpus", "gpus")]
    found: Floats = np.max(shares, axis=0)
    return found


def mean_of_class(values: Mapping[str, Floats], quantity: str, name: str) -> float:
    """Return the mean over all jobs of a class; NaN if there are none.

    Parameters
    ----------
    values : mapping of str to array of float, shape (job sets,)
        Sums by their keys, `SUMS`.
    quantity, name : str
        Quantity and class.

    Examples
    --------
    >>> values = {"jobs, short": np.array([1.0, 3.0]), "wait, short": np.array([6.0, 2.0])}
    >>> mean_of_class(values, "wait", "short")
    2.0
    """
    jobs = values[key(JOBS, name)].sum()
    return float(values[key(quantity, name)].sum() / jobs) if jobs else float("nan")


def share_suited(values: Mapping[str, Floats], kind: str) -> float:
    """Return the share of a type's jobs with the suitable placement style."""
    return mean_of_class(values, SUITED, kind)
