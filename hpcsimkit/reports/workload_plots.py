"""Plots of a workload: arrivals, sizes, run times and accuracy of user estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.io.printable import printable
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.figures import (
    DAY,
    HOUR,
    INK,
    MUTED,
    POLICY_COLOURS,
    axes_of,
    duration_axis,
    format_count,
    format_duration,
    format_number,
    new_figure,
    style,
    title,
)
from hpcsimkit.reports.plots import cumulative
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.workloads.describe import describe
from hpcsimkit.workloads.models.mimic import size_class
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIRST, SECOND = POLICY_COLOURS[1], POLICY_COLOURS[5]

BIN_LENGTHS = (60, 600, HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY)
MOST_BINS = 150


@style()
def draw_workload(workload: Workload, machine_size: int | None = None) -> Figure:
    """Return a figure with all plots of a workload.

    `machine_size` is the number of nodes for the offered load, or the amount of the first resource; by
    default that of the workload. Without any, the offered load is not drawn.

    >>> w = Workload({"submit_time": [0, 3600], "run_time": [60, 30], "nodes": [1, 4]}, machine_size=4)
    >>> [ax.get_title(loc="left") for ax in draw_workload(w).axes][:3]
    ['Arrivals by hour', 'Arrivals by weekday', 'Sizes']
    """
    size = machine_size or workload.machine_size
    figure = new_figure(12, 6.6, rows=2, columns=3)
    hours, weekdays, sizes, durations, accuracy, load = figure.axes
    title(plot_hours(workload, hours), "Arrivals by hour")
    title(plot_weekdays(workload, weekdays), "Arrivals by weekday")
    title(plot_sizes(workload, sizes), "Sizes")
    title(plot_durations(workload, durations), "Run and requested times")
    title(plot_accuracy(workload, accuracy), "Accuracy of the requested times")
    title(load, "Offered load over time")
    if size and workload.span:
        plot_offered_load(workload, load, machine_size=size)
    else:
        reason = "all jobs come\nat one instant" if size else "the workload names\nno machine size"
        load.text(0.5, 0.5, f"not defined: {reason}", ha="center", va="center", color=MUTED)
        load.set_axis_off()
    jobs, unit = format_count(len(workload), "job"), _unit(workload)
    machine = "" if not size else f", {format_count(size, 'node') if unit == 'nodes' else f'{size:,} {unit}'}"
    figure.suptitle(f"{workload.name}: {jobs}{machine}", x=0.01, ha="left", fontsize=11)
    if understood := _understood(workload):
        figure.supxlabel(understood, x=0.01, ha="left", fontsize=8, color=MUTED)
    return figure


def _understood(workload: Workload) -> str:
    """Return in a line what was understood of a log: its format, resources, jobs left out, and oddities."""
    sections = describe(workload).sections
    about = sections["log"]
    if not about:
        return ""
    parts = [str(about["format"]), *([str(about["resources"])] if "resources" in about else [])]
    parts.append(f"{format_count(int(about['jobs left out']), 'job')} left out")
    odd = [label if label != "waits" else "waits do not show the load" for label in sections["stands out"]]
    return "; ".join(printable(part) for part in [*parts, *odd])


@style()
def plot_hours(workload: Workload, ax: Axes | None = None) -> Axes:
    """Draw the share of jobs submitted in each hour of the day [%], in local time if known."""
    description = describe(workload)
    ax = axes_of(ax)
    ax.bar(np.arange(24) + 0.5, _percent(description.by_hour), width=0.9, color=FIRST)
    ax.set_xticks(range(0, 25, 6))
    clock = "hour of the day" if description.calendar else "hour of the day, counted from the log's second 0"
    ax.set(xlabel=clock, ylabel="jobs [%]", xlim=(0, 24))
    ax.grid(axis="x", visible=False)
    return ax


@style()
def plot_weekdays(workload: Workload, ax: Axes | None = None) -> Axes:
    """Draw the share of jobs submitted on each day of the week [%]."""
    description = describe(workload)
    ax = axes_of(ax)
    ax.bar(range(7), _percent(description.by_weekday), width=0.8, color=FIRST)
    calendar = description.calendar
    ax.set_xticks(range(7), [name[:3] if calendar else name[-1] for name in description.day_names])
    ax.set(xlabel="" if calendar else "day, counted from the log's second 0", ylabel="jobs [%]")
    ax.grid(axis="x", visible=False)
    return ax


@style()
def plot_sizes(workload: Workload, ax: Axes | None = None) -> Axes:
    """Draw the shares of jobs and of node-seconds [%] by size class, in powers of two.

    If jobs request resources, their size is the total request of the first resource.
    """
    ax = axes_of(ax)
    power = size_class(workload)
    place = np.arange(power.max() + 1)
    jobs, work = np.bincount(power), np.bincount(power, weights=_area(workload))
    ax.bar(place - 0.2, _percent(jobs), width=0.4, color=FIRST, label="of the jobs")
    ax.bar(place + 0.2, _percent(work), width=0.4, color=SECOND, label="of the work")
    label_sizes(workload, place, ax)
    ax.set_ylabel("share [%]")
    ax.grid(axis="x", visible=False)
    ax.legend()
    return ax


@style()
def plot_durations(workload: Workload, ax: Axes | None = None) -> Axes:
    """Draw the cumulative distributions of run times and requested times on a logarithmic axis with zero."""
    ax = axes_of(ax)
    for column, label, colour, dash in (
        ("run_time", "run time", FIRST, "solid"),
        ("requested_time", "requested time", SECOND, "dashed"),
    ):
        at, share = cumulative(workload.column(column).astype(float))
        ax.plot(at, 100 * share, drawstyle="steps-post", label=label, color=colour, linestyle=dash)
    duration_axis(ax, float(max(workload.run_time.max(), workload.requested_time.max())))
    ax.set(xlabel="duration", ylabel="jobs not longer [%]", ylim=(0, 101))
    ax.legend(loc="upper left")
    return ax


@style()
def plot_accuracy(workload: Workload, ax: Axes | None = None) -> Axes:
    """Draw a histogram of run time over requested time; the last bar has the jobs at or above 1."""
    ax = axes_of(ax)
    ratio = workload.run_time / workload.requested_time
    share = _percent(np.histogram(np.minimum(ratio, 1.025), bins=np.linspace(0, 1.05, 22))[0])
    ax.bar(np.arange(20) * 0.05 + 0.025, share[:20], width=0.045, color=FIRST)
    ax.bar([1.025], share[20:], width=0.045, color=SECOND)
    ax.set(xlabel="run time / requested time (last bar: 1 and more)", ylabel="jobs [%]", xlim=(0, 1.06))
    ax.grid(axis="x", visible=False)
    return ax


@style()
def plot_offered_load(workload: Workload, ax: Axes | None = None, *, machine_size: int | None = None) -> Axes:
    """Draw the offered load over time: the submitted over the available node-seconds in each bin.

    If jobs request resources, it is that of the first resource, with the amount `machine_size`. The dashed
    line is full load: work above it has to wait for later bins. By default `machine_size` is that of the
    workload.
    """
    machine_size = machine_size or workload.machine_size
    if not machine_size:
        raise UsageError(f"{workload.name}: the offered load needs a machine_size, found none")
    ax = axes_of(ax)
    first = int(workload.submit_time.min())
    submit = workload.submit_time - first
    span = max(int(submit.max()), 1)
    length = next((length for length in BIN_LENGTHS if span / length <= MOST_BINS), span / MOST_BINS)
    bins = max(int(np.ceil(span / length)), 1)
    bin_of = np.minimum(submit // length, bins - 1).astype(int)
    work = np.bincount(bin_of, weights=_area(workload), minlength=bins)
    covered = np.minimum(np.arange(1, bins + 1) * length, span) - np.arange(bins) * length
    edges = first + np.arange(bins + 1) * length
    axis = TimeAxis(first, float(edges[-1]), calendar_of(workload))
    ax.stairs(work / (machine_size * covered), axis.at(edges), fill=True, color=FIRST)
    ax.axhline(1, color=INK, linewidth=0.8, linestyle="dashed")
    axis.apply(ax)
    ax.set_ylabel(f"offered load (bins of {format_duration(length)})")
    ax.grid(axis="x", visible=False)
    return ax


def label_sizes(workload: Workload, classes: NDArray[np.int64], ax: Axes) -> None:
    """Label an axis of size classes: at most nine classes by their largest sizes, and the unit of sizes."""
    shown = classes[:: -(-len(classes) // 9)]
    ax.set_xticks(shown, [format_number(2 ** int(power)) for power in shown])
    ax.set_xlabel(f"{_unit(workload)} (classes by powers of two)")


def _unit(workload: Workload) -> str:
    """Return the unit of the sizes of jobs: nodes, or the first resource that jobs request."""
    first = (*workload.resources, "nodes")[0]
    return RESOURCE_NAMES.get(first, first)


def _area(workload: Workload) -> NDArray[np.float64]:
    return workload.run_time.astype(float) * workload.size


def _percent(counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    return 100 * counts / (counts.sum() or 1)
