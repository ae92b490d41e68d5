"""A model of user run-time estimates, for workloads without estimates.

The model uses these findings of D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates",
Job Scheduling Strategies for Parallel Processing (JSSPP), 2005:

1. Estimates are modal: about 20 round values account for about 90 % of the jobs.
2. The maximum that a site allows is itself popular; it carries no information on the run time.
3. Estimates are upper bounds: a job that reaches its estimate is killed.
4. Except for jobs at the maximum, accuracy (run time / estimate) is approximately uniform on (0, 1].

The model is a simplification: the paper assigns a joint distribution of estimates to the jobs, while here
each job gets an estimate independently, from its run time. All estimates are round values, and no job is
killed: run times do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.swf import NO_ESTIMATE

__all__ = ["POPULAR_ESTIMATES", "with_estimates", "with_noise"]

MINUTE, HOUR, DAY = 60, 3600, 86_400

POPULAR_ESTIMATES = (
    *(minutes * MINUTE for minutes in (5, 10, 15, 20, 30, 45)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 20, 24, 36, 48)),
)
"""Round values that users request [s], from 5 minutes to 2 days."""


def with_estimates(
    workload: Workload,
    rng: np.random.Generator,
    *,
    popular: Sequence[int] = POPULAR_ESTIMATES,
    maximum: int | None = None,
    at_maximum: float = 0.1,
) -> Workload:
    """Return the workload with modelled requested times and unchanged run times.

    A share `at_maximum` of the jobs request the maximum. For each other job, an accuracy u is sampled
    uniformly from (0, 1], and the job requests the popular value nearest to ``run_time / u`` (on a
    logarithmic scale) that is not below its run time. Accuracy is thus approximately uniform for jobs of
    medium length; jobs much shorter than the smallest popular value necessarily have a low accuracy.

    Parameters
    ----------
    workload : Workload
        Jobs with run times; their requested times are replaced.
    rng : numpy.random.Generator
        Random number generator; equal generators give equal estimates.
    popular : sequence of int
        Popular values [s], increasing.
    maximum : int or None
        Maximum request [s], added to `popular`. None for the smallest popular value not below the longest run
        time or, if there is none, the longest run time rounded up to whole days.
    at_maximum : float
        Share of the jobs that request the maximum independent of their run time, in [0, 1].

    Raises
    ------
    WorkloadError
        If a job runs longer than `maximum`, or a parameter is out of range.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [10, 1700, 7000], "nodes": [1, 1, 1]})
    >>> w = with_estimates(w, np.random.default_rng(0), at_maximum=0)
    >>> bool((w.requested_time >= w.run_time).all()), set(w.requested_time.tolist()) <= set(POPULAR_ESTIMATES)
    (True, True)
    """
    _check(popular, at_maximum)
    values = _allowed(workload, popular, maximum)
    count = len(workload)
    accuracy = 1.0 - rng.random(count)  # (0, 1]
    lazy = rng.random(count) < at_maximum
    wanted = np.maximum(workload.run_time, 1) / accuracy
    choice = np.maximum(_nearest(values, wanted), np.searchsorted(values, workload.run_time))
    requested = np.where(lazy, values[-1], values[choice])
    notes = {note: jobs for note, jobs in workload.notes.items() if note != NO_ESTIMATE}
    step = f"modelled estimates up to {values[-1]} s, {at_maximum:.0%} of the jobs at the maximum"
    return replace(
        workload,
        columns={**workload.columns, "requested_time": requested},
        notes={**notes, "estimate modelled": count},
        provenance=(*workload.provenance, step),
    )


def _check(popular: Sequence[int], at_maximum: float) -> None:
    if not popular or popular[0] < 1 or any(b <= a for a, b in pairwise(popular)):
        raise WorkloadError(f"popular estimates need increasing values of 1 s or more, found {list(popular)}")
    if not 0 <= at_maximum <= 1:
        raise WorkloadError(f"at_maximum needs a share from 0 to 1, found {at_maximum}")


def _allowed(workload: Workload, popular: Sequence[int], maximum: int | None) -> NDArray[np.int64]:
    """Return the permitted values, the maximum last."""
    longest = int(workload.run_time.max(initial=1))
    if maximum is None:
        maximum = next((value for value in popular if value >= longest), -(-longest // DAY) * DAY)
    if longest > maximum:
        raise WorkloadError(
            f"{workload.name}: estimates up to {longest} s or more needed (the longest job), "
            f"found a maximum of {maximum} s"
        )
    return np.array([*(value for value in popular if value < maximum), maximum], dtype=np.int64)


def _nearest(values: NDArray[np.int64], wanted: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the index of the value nearest to each wanted value, by ratio."""
    borders = np.sqrt(values[:-1].astype(float) * values[1:])
    return np.searchsorted(borders, wanted)


def with_noise(workload: Workload, rng: np.random.Generator, noise: float) -> Workload:
    """Return the workload with run times plus a random share of them as requested times.

    Shares are uniform between 0 and `noise`. With equal generators, errors grow in proportion to `noise`.

    Parameters
    ----------
    workload : Workload
        Jobs with run times; their requested times are replaced.
    rng : numpy.random.Generator
        Random number generator.
    noise : float
        Maximum share, >= 0.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 1], "run_time": [100, 0], "nodes": [1, 1]}, machine_size=1)
    >>> with_noise(w, np.random.default_rng(1), 0.2).requested_time.tolist()  # the first draw is 0.51
    [110, 1]
    """
    times = np.rint(workload.run_time * (1 + noise * rng.random(len(workload)))).astype(np.int64)
    return replace(workload, columns={**workload.columns, "requested_time": np.maximum(times, 1)})
