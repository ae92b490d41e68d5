"""Statistics behind tables and figures: scaled measures, weeks and classes of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.results.result import MODE_NAMES, Result

__all__ = [
    "AXES",
    "LARGE",
    "Weeks",
    "kiviat",
    "longest_large_wait",
    "waits_by_mode",
    "weekly",
]

Floats = NDArray[np.float64]

WEEK = 7 * 86_400

LARGE = 0.2
"""Share of the nodes from which a job counts as one of the largest."""

AXES: Mapping[str, str] = {
    "mean_wait_time": "mean wait",
    "max_wait_time": "maximum wait",
    "mean_response_time": "mean response",
    "mean_slowdown": "mean slowdown",
    "utilisation": "utilisation",
}
"""Axes of the Kiviat graph: measures and labels; for utilisation more is better."""

MORE_IS_BETTER = ("utilisation",)


def kiviat(values: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the scaled measures of each policy, from 0, the worst of all, to 1, the best.

    Parameters
    ----------
    values : mapping of str to mapping of str to float
        Measures by policy and key of `AXES`. (If all are equal, all are scaled to 1.)

    Examples
    --------
    >>> worst = dict.fromkeys(AXES, 5.0) | {"utilisation": 0.5}
    >>> good = dict.fromkeys(AXES, 1.0) | {"utilisation": 0.5}
    >>> middle = dict.fromkeys(AXES, 2.0) | {"utilisation": 0.5}
    >>> kiviat({"worst": worst, "good": good, "middle": middle})["middle"]
    [0.75, 0.75, 0.75, 0.75, 1.0]
    """
    columns = []
    for measure in AXES:
        column = np.array([each[measure] for each in values.values()])
        good = column if measure in MORE_IS_BETTER else -column
        width = good.max() - good.min()
        columns.append((good - good.min()) / width if width > 0 else np.ones(len(good)))
    return dict(zip(values, np.transpose(columns).tolist(), strict=True))


def longest_large_wait(result: Result) -> float:
    """Return the maximum wait of jobs that request a fifth of the nodes or more [s].

    NaN if there are none.
    """
    waits = result.wait_time[result.amount >= LARGE * result.size]
    return float(waits.max()) if len(waits) else float("nan")


def waits_by_mode(result: Result) -> dict[str, Floats]:
    """Return the waits of jobs [s] by start mode, without modes that do not occur."""
    found = {name: result.wait_time[result.mode == number] for number, name in enumerate(MODE_NAMES)}
    return {name: waits for name, waits in found.items() if len(waits)}


class Weeks(NamedTuple):
    """A schedule week by week, by submission of the jobs.

    Parameters
    ----------
    load : array of float, shape (weeks,)
        Submitted node-seconds as a share of the machine's capacity in a week.
    mean, longest : array of float, shape (weeks,)
        Mean and longest waits [s]; NaN in weeks without jobs.
    """

    load: Floats
    mean: Floats
    longest: Floats


def weekly(result: Result) -> Weeks:
    """Return load and waits of the jobs of each week, counted from the first submission.

    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 0, 2 * WEEK], "run_time": [WEEK // 2, 10, WEEK], "nodes": [1, 1, 1]}
    >>> found = weekly(Simulation(Workload(columns, machine_size=1), Pipeline()).run())
    >>> found.load.round(3).tolist(), found.mean.tolist(), found.longest.tolist()
    ([0.5, 0.0, 1.0], [151200.0, nan, 0.0], [302400.0, nan, 0.0])
    """
    week = (result.submit_time - result.submit_time.min()) // WEEK
    count = int(week.max()) + 1
    jobs, waits = np.bincount(week, minlength=count), result.wait_time
    area = np.bincount(week, result.amount * result.run_time, minlength=count)
    longest = np.full(count, -np.inf)
    np.maximum.at(longest, week, waits)
    nobody = jobs == 0
    longest[nobody] = np.nan
    totals = np.bincount(week, waits, minlength=count)
    mean = np.divide(totals, jobs, out=np.full(count, np.nan), where=~nobody)
    return Weeks(area / (WEEK * result.size), mean, longest)
