"""Goodness of fit of a statistical clone of a log, as in figure 4 of DRAS.

Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in High Performance Computing", IEEE
TPDS 2022, figure 4: arrivals by weekday and hour, sizes, and the accuracy of user estimates. Run times are
added here, and interarrival times, which show bursts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.figures import (
    DAY,
    HOUR,
    Line,
    duration_axis,
    format_count,
    legend_above,
    new_figure,
    style,
    title,
)
from hpcsimkit.reports.plots import cumulative
from hpcsimkit.reports.workload_plots import FIRST, SECOND, label_sizes
from hpcsimkit.workloads.describe import WEEKDAYS
from hpcsimkit.workloads.models.mimic import size_class
from hpcsimkit.workloads.models.weekly_arrivals import weekly_counts
from hpcsimkit.workloads.readers.local_time import local_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = NDArray[np.float64]

COLOURS, DASHES = (FIRST, SECOND), ("solid", "dashed")

ACCURACIES = 21
"""Number of classes of run over requested time, each 0.05 wide; the last has all jobs at or above 1."""


@style()
def draw_likeness(original: Workload, other: Workload) -> Figure:
    """Return a figure that compares two workloads by properties that a clone preserves, and by others.

    >>> from hpcsimkit.workloads import Mimic, default_workload
    >>> log = default_workload(np.random.default_rng(1), jobs=100)
    >>> figure = draw_likeness(log, Mimic(log).generate(100, np.random.default_rng(2)))
    >>> [ax.get_title(loc="left") for ax in figure.axes][:3]
    ['Arrivals by weekday', 'Arrivals by hour', 'Sizes']
    """
    pair = (original, other)
    figure = new_figure(12, 6.6, rows=2, columns=3)
    weekdays, hours, sizes, durations, accuracy, gaps = figure.axes
    _plot_weekdays(pair, weekdays)
    _plot_hours(pair, hours)
    _plot_sizes(pair, sizes)
    _plot_accuracy(pair, accuracy)
    _plot_cumulative([w.run_time for w in pair], "run time", durations)
    _plot_cumulative([np.diff(np.sort(w.submit_time)) for w in pair], "time to the next submission", gaps)
    headings = (
        "Arrivals by weekday",
        "Arrivals by hour",
        "Sizes",
        "Run times",
        "Accuracy of the requested times",
        "Times between submissions",
    )
    for ax, heading in zip(figure.axes, headings, strict=True):
        title(ax, heading)
    names = [f"{w.name}: {format_count(len(w), 'job')}" for w in pair]
    looks = (Line(FIRST, "solid", ""), Line(SECOND, "dashed", ""))
    legend_above(figure, dict(zip(names, looks, strict=True)))
    return figure


def _plot_weekdays(pair: Sequence[Workload], ax: Axes) -> None:
    """Draw the mean number of arrivals on each weekday, over the weekdays in the log."""
    rates = [_rates(workload, axis=1) * DAY for workload in pair]
    _plot_bars(rates, range(7), ax)
    calendar = local_time(pair[0]).start is not None
    names = [day[:3] for day in WEEKDAYS] if calendar else [str(number) for number in range(1, 8)]
    ax.set_xticks(range(7), names)
    ax.set(xlabel="" if calendar else "day, counted from the log's second 0", ylabel="jobs per day")


def _plot_hours(pair: Sequence[Workload], ax: Axes) -> None:
    """Draw the mean number of arrivals in each hour of the day, over the hours in the log."""
    rates = [_rates(workload, axis=0) * HOUR for workload in pair]
    _plot_bars(rates, np.arange(24) + 0.5, ax)
    ax.set_xticks(range(0, 25, 6))
    calendar = local_time(pair[0]).start is not None
    clock = "hour of the day" if calendar else "hour of the day, counted from the log's second 0"
    ax.set(xlabel=clock, ylabel="jobs per hour", xlim=(0, 24))


def _plot_sizes(pair: Sequence[Workload], ax: Axes) -> None:
    """Draw the share of jobs by size class, in powers of two [%]."""
    powers = [size_class(workload) for workload in pair]
    first, last = (int(of([of(power) for power in powers])) for of in (min, max))
    place = np.arange(first, last + 1)
    _plot_bars([_shares(power - first, len(place)) for power in powers], place, ax)
    label_sizes(pair[0], place, ax)
    ax.set_ylabel("jobs [%]")


def _plot_accuracy(pair: Sequence[Workload], ax: Axes) -> None:
    """Draw the share of jobs by run time over requested time [%]."""
    classes = [
        np.minimum(20 * workload.run_time // workload.requested_time, ACCURACIES - 1) for workload in pair
    ]
    place = np.arange(ACCURACIES) * 0.05 + 0.025
    _plot_bars([_shares(number, ACCURACIES) for number in classes], place, ax)
    ax.set(xlabel="run time / requested time (last bars: 1 and more)", ylabel="jobs [%]", xlim=(0, 1.06))


def _plot_cumulative(pair: Sequence[NDArray[Any]], name: str, ax: Axes) -> None:
    """Draw cumulative distributions of durations on a logarithmic axis that includes zero."""
    for values, colour, dash in zip(pair, COLOURS, DASHES, strict=True):
        at, share = cumulative(values.astype(float))
        ax.plot(at, 100 * share, drawstyle="steps-post", color=colour, linestyle=dash)
    duration_axis(ax, float(max(values.max() for values in pair)))
    ax.set(xlabel=name, ylabel="jobs not longer [%]", ylim=(0, 101))


def _plot_bars(pair: Sequence[Numbers], place: ArrayLike, ax: Axes) -> None:
    """Draw the bars of both workloads side by side at each position."""
    at = np.asarray(place, dtype=float)
    width = 0.42 * (at[1] - at[0] if len(at) > 1 else 1.0)
    for values, colour, side in zip(pair, COLOURS, (-0.5, 0.5), strict=True):
        ax.bar(at + side * width, values, width=width, color=colour)
    ax.grid(axis="x", visible=False)


def _rates(workload: Workload, axis: int) -> Numbers:
    """Return jobs per second of weekdays (axis 1) or hours (axis 0); 0 for those not in the log."""
    jobs, seconds = (counts.sum(axis=axis) for counts in weekly_counts(workload))
    return np.divide(jobs, seconds, out=np.zeros(len(jobs)), where=seconds > 0)


def _shares(number: NDArray[np.int64], classes: int) -> Numbers:
    """Return the share of each class [%]."""
    return 100 * np.bincount(number, minlength=classes) / len(number)
