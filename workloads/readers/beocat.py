"""Training sets and test days of the masked-PPO paper, from Beocat's logs.

The paper is from Kansas State University; its code and logs are at
https://github.com/shutchison/HPC_Scheduling_with_RL. It trains schedulers on sets of 2000 large jobs and some
GPU jobs, all submitted at once (section IV.A), and tests them on days with 1000 +- 100 jobs (IV.B). The logs
are job tables, one per month; each jumps back in time once, so merge the months before selecting days::

    march, april = read_job_table("2021-03.csv"), read_job_table("2021-04.csv")
    for date, day in days(march.merge(april)):
        ...
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.readers.cells import clock_of

__all__ = ["days", "in_queue_order", "training_set"]

LARGE = 20
"""Number of CPUs that a large job exceeds."""


def training_set(
    workload: Workload,
    rng: np.random.Generator,
    runnable: ArrayLike | None = None,
    *,
    large_jobs: int = 2000,
    gpu_jobs: int = 40,
    submit_time: int | None = None,
) -> Workload:
    """Return a random sample of large jobs and GPU jobs of a log, in random order, all submitted at once.

    The sample consists of jobs that request more than 20 CPUs, and of other jobs that request at least one
    GPU, drawn without replacement. (The paper does not specify whether jobs are replaced, and the sampling
    code is not published.)

    Parameters
    ----------
    workload : Workload
        A log with the resources ``cpus`` and ``gpus``.
    rng : numpy.random.Generator
        Random number generator.
    runnable : array of bool, shape (jobs,), optional
        Mask of the jobs that at least one machine can run; the paper's nine machines cannot run all jobs. By
        default all jobs count as runnable.
    large_jobs, gpu_jobs : int
        Number of large jobs and number of GPU jobs.
    submit_time : int, optional
        Submission time of all jobs [s of the log's clock]; by default the log's first submission.

    Raises
    ------
    WorkloadError
        If the log lacks these resources or has too few such jobs, or the mask has the wrong shape.

    Examples
    --------
    >>> columns = {"submit_time": [5, 7, 9], "run_time": [1, 2, 3], "nodes": [1, 1, 1],
    ...            "cpus": [32, 1, 64], "gpus": [0, 2, 1]}
    >>> log = Workload(columns, resources=("cpus", "gpus"))
    >>> w = training_set(log, np.random.default_rng(1), large_jobs=2, gpu_jobs=1)
    >>> sorted(w.id.tolist()), w.submit_time.tolist()
    ([1, 2, 3], [5, 5, 5])
    """
    for resource in ("cpus", "gpus"):
        if resource not in workload.resources:
            raise WorkloadError(
                f"{workload.name}: a training set needs the resource {resource}, "
                f"found {', '.join(workload.resources) or 'none'}"
            )
    fits = np.ones(len(workload), dtype=bool) if runnable is None else np.asarray(runnable)
    if fits.shape != (len(workload),) or fits.dtype != bool:
        raise WorkloadError(
            f"{workload.name}: runnable needs {len(workload)} truth values, "
            f"found {fits.dtype} of shape {fits.shape}"
        )
    large = _drawn(workload, rng, fits & (workload.column("cpus") > LARGE), large_jobs, "CPUs > 20")
    fits = fits.copy()
    fits[large] = False
    gpus = _drawn(workload, rng, fits & (workload.column("gpus") > 0), gpu_jobs, "GPUs > 0")
    rows = rng.permutation(np.concatenate((large, gpus)))
    chosen = workload.select(rows, f"training set: {large_jobs} large jobs and {gpu_jobs} with GPUs")
    if submit_time is None:
        submit_time = int(workload.submit_time.min())
    columns = {**chosen.columns, "submit_time": np.full(len(chosen), submit_time)}
    return replace(chosen, columns=columns, name=f"{workload.name}-training")


def _drawn(
    workload: Workload, rng: np.random.Generator, pool: NDArray[np.bool_], count: int, what: str
) -> NDArray[np.intp]:
    rows = np.flatnonzero(pool)
    if len(rows) < count:
        raise WorkloadError(
            f"{workload.name}: {count} runnable jobs with {what} needed to draw from, found {len(rows)}"
        )
    return rng.choice(rows, count, replace=False)


def days(
    workload: Workload, low: int = 900, high: int = 1100, timezone: str = "America/Chicago"
) -> list[tuple[date, Workload]]:
    """Return the calendar days with `low` to `high` submitted jobs, and the jobs of each day.

    Parameters
    ----------
    workload : Workload
        Jobs with Unix time as submit time, in any order.
    low, high : int
        Minimum and maximum number of jobs of a day, inclusive.
    timezone : str
        Time zone of the calendar days.

    Returns
    -------
    list of (date, Workload)
        The days in chronological order; jobs keep the order of the log.

    Raises
    ------
    UsageError
        If there is no such time zone.

    Examples
    --------
    >>> log = Workload({"submit_time": [0, 90_000, 100_000], "run_time": [1, 1, 1], "nodes": [1, 1, 1]})
    >>> [(str(date), len(day)) for date, day in days(log, low=2, high=9, timezone="UTC")]
    [('1970-01-02', 2)]
    """
    zone = clock_of(timezone)
    submit = workload.submit_time
    if not len(submit):
        return []
    first, last = (
        datetime.fromtimestamp(int(moment), zone).date() for moment in (submit.min(), submit.max())
    )
    dates = [first + timedelta(days=number) for number in range((last - first).days + 2)]
    midnights = [int(datetime.combine(day, time(), zone or UTC).timestamp()) for day in dates]
    day_of = np.searchsorted(midnights, submit, side="right") - 1
    counts = np.bincount(day_of, minlength=len(dates))
    found = []
    for number in np.flatnonzero((counts >= low) & (counts <= high)).tolist():
        day = workload.select(day_of == number, f"submitted on {dates[number]} ({timezone})")
        found.append((dates[number], replace(day, name=f"{workload.name}-{dates[number]}")))
    return found


def in_queue_order(workload: Workload) -> Workload:
    """Return the jobs in the order in which the published code queues them.

    The published code pops them from a binary heap keyed by submission, then requested time. Ties come out in
    the heap's order, which matters: two jobs in three share their submission time.
    >>> w = Workload({"submit_time": [5, 5], "run_time": [1, 1], "nodes": [1, 1], "requested_time": [9, 4]})
    >>> in_queue_order(w).requested_time.tolist()
    [4, 9]
    """
    heap: list[_Queued] = []
    for row, key in enumerate(
        zip(workload.submit_time.tolist(), workload.requested_time.tolist(), strict=True)
    ):
        heapq.heappush(heap, _Queued(key, row))
    rows = [heapq.heappop(heap).row for _ in range(len(workload))]
    return workload.select(rows, "by submission, then requested time, as from a heap")


class _Queued(NamedTuple):
    """A job in a heap, compared by its key only."""

    key: tuple[int, int]
    row: int

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return self.key < other[0]
