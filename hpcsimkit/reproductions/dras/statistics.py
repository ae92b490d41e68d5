"""What tables and pictures are made of: who is how good on which scale, week by week, class by class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.result import MODE_NAMES, Result

__all__ = [
    "AXES", "LARGE", "Spread", "Weeks", "kiviat", "longest_large_wait", "spread_of", "waits_by_mode",
    "weekly",
]  # fmt: skip

Floats = NDArray[np.float64]

WEEK = 7 * 86_400

LARGE = 0.2
"""Jobs that ask for this share of the nodes, or more, are the largest ones."""

AXES: Mapping[str, str] = {
    "mean_wait_time": "mean wait",
    "max_wait_time": "maximum wait",
    "mean_response_time": "mean response",
    "mean_slowdown": "mean slowdown",
    "utilisation": "utilisation",
}
"""Of the Kiviat graph: measures, and what they are called there; of the last one more is better."""

MORE_IS_BETTER = ("utilisation",)


class Spread(NamedTuple):
    """A measure over seeds: its mean, least and most."""

    mean: float
    least: float
    most: float


def spread_of(values: Floats) -> Spread:
    """Return mean, least and most.

    >>> spread_of(np.array([1.0, 2.0, 6.0]))
    Spread(mean=3.0, least=1.0, most=6.0)
    """
    return Spread(float(values.mean()), float(values.min()), float(values.max()))


def kiviat(values: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """Return for each method how good it is on each axis, from 0, the worst of all, to 1, the best.

    Parameters
    ----------
    values : mapping of str to mapping of str to float
        By method and measure, the keys of `AXES`. (Where all are the same, all are 1.)

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
    """Return how long those jobs wait at most that ask for a fifth of the nodes or more [s].

    Not a number if there are none.
    """
    waits = result.wait_time[result.amount >= LARGE * result.size]
    return float(waits.max()) if len(waits) else float("nan")


def waits_by_mode(result: Result) -> dict[str, Floats]:
    """Return how long jobs have waited [s], by how they started; modes that no job has are not there."""
    found = {name: result.wait_time[result.mode == number] for number, name in enumerate(MODE_NAMES)}
    return {name: waits for name, waits in found.items() if len(waits)}


class Weeks(NamedTuple):
    """A schedule week by week, by when jobs were submitted.

    Parameters
    ----------
    load : array of float, shape (weeks,)
        Node-seconds that were submitted, as a share of what the machine has in a week.
    mean, longest : array of float, shape (weeks,)
        Of their waits [s]; not a number in weeks without jobs.
    """

    load: Floats
    mean: Floats
    longest: Floats


def weekly(result: Result) -> Weeks:
    """Return what happened to the jobs of each week, counted from the first submission.

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
