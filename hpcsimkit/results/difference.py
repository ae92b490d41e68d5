"""Difference of two schedules of the same jobs: the jobs that start earlier, later, or at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.results.breakdown import By, classes_of
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas

__all__ = ["MOVES", "compare_results", "summarize_moves"]

MOVES = ("earlier", "same", "later", "one only")
"""Outcomes for a job; the last one is that of a job that did not run in both schedules."""


def compare_results(first: Result, second: Result) -> pandas.DataFrame:
    """Compare the start times of each job in two schedules.

    Parameters
    ----------
    first, second : Result
        Results of the same jobs, in the same order.

    Returns
    -------
    pandas.DataFrame
        One row per job, in log order. Columns: ``job_id``; ``first_start, second_start`` [s of the log's
        clock] and ``change``, the second minus the first [s], NaN for jobs that did not run in both;
        ``move``, one of `MOVES`.

    Raises
    ------
    UsageError
        The results are of different jobs.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload, make
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 5], "nodes": [2, 4, 1]}, machine_size=4)
    >>> fcfs, easy = (Simulation(w, make(name)).run() for name in ("fcfs", "fcfs+easy"))
    >>> compare_results(fcfs, easy)[["job_id", "change", "move"]].to_dict("list")
    {'job_id': [1, 2, 3], 'change': [0.0, 0.0, -16.0], 'move': ['same', 'same', 'earlier']}
    """
    import pandas

    ids = first.workload.column("id")
    if not np.array_equal(ids, second.workload.column("id")):
        raise UsageError(
            f"results of the same jobs are needed, found {first.workload.name} and {second.workload.name} "
            f"with {len(first)} and {len(second)} jobs"
        )
    starts = [np.where(result.finished, result.start_time, np.nan) for result in (first, second)]
    change = starts[1] - starts[0]
    move = np.select([change < 0, change == 0, change > 0], MOVES[:3], MOVES[3])
    return pandas.DataFrame(
        {"job_id": ids, "first_start": starts[0], "second_start": starts[1], "change": change, "move": move}
    )


def summarize_moves(
    first: Result, second: Result, by: By = "size", *, top: int | None = None
) -> pandas.DataFrame:
    """Count the jobs that start earlier, later, or at the same time, in each class of jobs.

    Parameters
    ----------
    first, second : Result
        Results of the same jobs, in the same order.
    by : str
        Criterion of the classes, as in :func:`~hpcsimkit.results.breakdown.breakdown`; of the first result.
        Default: ``"size"``.
    top : int, optional
        Maximum number of classes, as in :func:`~hpcsimkit.results.breakdown.breakdown`.

    Returns
    -------
    pandas.DataFrame
        One row per class, labels as the index (named `by`), and a last row ``all``. Columns: ``jobs``; the
        numbers of jobs of each of `MOVES`; ``mean_change, least_change, largest_change``, of the start time
        [s], negative for earlier starts.

    Raises
    ------
    UsageError
        The results are of different jobs, or `by` or `top` is invalid.
    """
    import pandas

    jobs = compare_results(first, second)
    number, label = classes_of(first, by, top)
    tables = [_summary(jobs, number), _summary(jobs, np.zeros(len(jobs)))]
    tables[0].index = pandas.Index([label(int(each)) for each in tables[0].index], name=by, dtype=object)
    tables[1].index = pandas.Index(["all"], name=by, dtype=object)
    return pandas.concat(tables)


def _summary(jobs: pandas.DataFrame, number: np.ndarray) -> pandas.DataFrame:
    """Return the numbers of jobs by move, and changes, for each class number."""
    import pandas

    groups = jobs.groupby(number)
    moves = pandas.crosstab(number, jobs.move).reindex(columns=list(MOVES), fill_value=0)
    changes = groups.change.agg(mean_change="mean", least_change="min", largest_change="max")
    return pandas.concat([groups.size().rename("jobs"), moves, changes], axis=1)
