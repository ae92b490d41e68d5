"""What the masked-PPO paper made of Beocat's logs: training sets, and days of about a thousand jobs.

The paper comes from Kansas State University, its code and logs are at
https://github.com/shutchison/HPC_Scheduling_with_RL. It trains schedulers on sets of 2000 large jobs and some
GPU jobs that are all submitted at once (section IV.A), and tests them on days with 1000 +- 100 jobs (IV.B).
The logs are job tables, one a month; each jumps back in time once, so merge months before looking for days::

    march, april = read_job_table("2021-03.csv"), read_job_table("2021-04.csv")
    for date, day in days(march.merge(april)):
        ...
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.cells import clock_of

__all__ = ["days", "training_set"]

LARGE = 20
"""A large job asks for more CPUs than that."""


def training_set(
    workload: Workload,
    rng: np.random.Generator,
    runnable: ArrayLike | None = None,
    *,
    large_jobs: int = 2000,
    gpu_jobs: int = 40,
    submit_time: int | None = None,
) -> Workload:
    """Return large jobs and GPU jobs drawn from a log, in random order, all submitted at once.

    Drawn are jobs that ask for more than 20 CPUs, then of the others jobs that ask for at least one GPU; none
    twice. (The paper does not say whether jobs are put back; the code that drew them is not published.)

    Parameters
    ----------
    workload : Workload
        A log with the resources ``cpus`` and ``gpus``.
    rng : numpy.random.Generator
        Source of all randomness.
    runnable : array of bool, shape (jobs,), optional
        Which jobs some machine can run; the paper's nine machines cannot run all. None takes all.
    large_jobs, gpu_jobs : int
        How many of each.
    submit_time : int, optional
        When they are submitted [s of the log's clock]; None takes the log's first submission.

    Raises
    ------
    WorkloadError
        The log has no such resources, or not enough such jobs; or the mask has another shape.

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
    """Return the calendar days on which from `low` to `high` jobs were submitted, with the jobs of each.

    Parameters
    ----------
    workload : Workload
        Jobs with Unix time as submit time, in any order.
    low, high : int
        Fewest and most jobs of a day, both included.
    timezone : str
        Whose midnights part the days.

    Returns
    -------
    list of (date, Workload)
        In the order of time; jobs keep the order of the log.

    Raises
    ------
    UsageError
        There is no such time zone.

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
