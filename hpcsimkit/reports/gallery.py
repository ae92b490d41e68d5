"""Figures of a report, with their titles, explanations and captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports import plots
from hpcsimkit.reports.availability import draw_availability
from hpcsimkit.reports.classes import draw_classes, draw_groups
from hpcsimkit.reports.difference import draw_difference
from hpcsimkit.reports.figures import (
    INK,
    MODE_COLOURS,
    format_duration,
    format_number,
    legend_above,
    legend_columns,
    line_styles,
    new_figure,
    style,
    symlog_axis,
    title,
    wrapped,
)
from hpcsimkit.reports.held_plots import draw_held
from hpcsimkit.reports.partition_plots import draw_partitions
from hpcsimkit.reports.picture import WIDTH, Picture, grid_figure, without_time
from hpcsimkit.reports.time_plots import BINS, Look
from hpcsimkit.reports.week import draw_week
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.results.result import MODE_NAMES, Result
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

GANTT_JOBS = 300
GANTT_POLICIES = 12
MOST_RESOURCES = 4

UNUSABLE = (
    " Hatched above the GPUs in use are those that are free where a GPU job could not start: how many are to "
    "be expected for a GPU job drawn from the workload."
)
LANES = "in the band of its machine as high as the largest share of a resource that it takes there"
COMPLEMENTS = (
    "Jobs that complement each other (one takes the GPUs, another the memory) may add up to more than their "
    "machine; all its lanes are then as much lower as it takes."
)
STRETCH = "the window of this length at the 90th percentile of mean wait over the policies, the same for each"
COUNTED = "Nodes are only counted in a run; their numbers are given afterwards."


def draw_pictures(results: plots.Results) -> Iterator[Picture]:
    """Yield the figures of results by policy, in the order of the report, without uninformative ones."""
    if not all(result.finished.any() for result in results.values()):
        return
    for draw in (
        _waits,
        _slowdowns,
        draw_classes,
        draw_groups,
        draw_partitions,
        draw_held,
        draw_week,
        draw_difference,
        _over_time,
        draw_availability,
        _gantt,
        _start_modes,
        _fairness,
    ):
        picture = draw(results)
        if picture is not None:
            yield picture


def _waits(results: plots.Results) -> Picture:
    rows = -(-len(results) // legend_columns(results, WIDTH))
    figure = new_figure(WIDTH, 3.9 + 0.17 * rows, columns=2)
    body, tail = figure.axes
    title(plots.plot_wait(results, body), "All jobs")
    title(plots.plot_wait_tail(results, tail), "The jobs that wait longest")
    legend_above(figure, line_styles(results))
    return Picture(
        "wait_time",
        "Wait time",
        "Left, higher is better: how many jobs wait no longer than the time below; at 0 stand the jobs "
        "that start at once. Right, lower is better: how many wait longer, with the unlucky few drawn "
        "large; a curve falls off at the longest wait.",
        "Time from submission to start, all jobs that ran, logarithmic axes. Each point is exact; a "
        f"curve has about {plots.POINTS} of them at most.",
        figure,
    )


def _slowdowns(results: plots.Results) -> Picture:
    figure = new_figure(WIDTH, 0.8 + 0.32 * len(results))
    plots.plot_slowdown(results, figure.axes[0])
    return Picture(
        "slowdown",
        "Bounded slowdown",
        "Further left is better. The box holds the middle half of the jobs, its line is the median; "
        "whiskers reach from the 5th to the 95th percentile, the diamond is the mean, the cross the "
        "worst job.",
        "Time from submission to end over run time, run times below 10 s counted as 10 s, at least 1; "
        "all jobs that ran, logarithmic axis.",
        figure,
    )


def _over_time(results: plots.Results) -> Picture:
    first = next(iter(results.values()))
    resources = _resources(first)
    figure = grid_figure(len(results), 1 + len(resources), height=0.55, gap=0.28, left=0.55, between=0.55)
    begin = min(int(result.submit_time[result.finished].min()) for result in results.values())
    end = max(int(result.end_time.max()) for result in results.values())
    edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    columns, calendar = len(figure.axes) // len(results), calendar_of(first.workload)
    for row, (name, line) in enumerate(line_styles(results).items()):
        queue, *busy = figure.axes[columns * row : columns * (row + 1)]
        steps, size = results[name].timeline(), results[name].size
        look = Look(line.colour)
        plots.draw_queue(steps, queue, edges, look, calendar)
        for ax, resource in zip(busy, resources, strict=True):
            if first.placements is None:
                plots.draw_busy(steps, size, ax, edges, look, calendar)
            else:
                plots.plot_resource(results[name], resource, ax, edges=edges, colour=line.colour)
        title(queue, wrapped(name, 100, lines=1))
        for ax in (queue, *busy):
            ax.set_ylabel("")
            if row < len(results) - 1:
                without_time(ax)
            elif columns > 2 and ax is not queue:
                ax.set_xlabel("")
    logarithmic = _same_scale(figure.axes[::columns])
    words = [f"{name[:1].upper()}{name[1:]} busy [%]" for name in resources.values()]
    _head(figure, ["Jobs waiting", *words])
    return Picture(
        "over_time",
        "Queue and utilisation over time",
        f"Left: how many jobs wait ({'one logarithmic' if logarithmic else 'one'} scale for all policies). "
        f"Right: how much of the {first.unit if first.placements is None else 'machines'} is busy. "
        "What is idle beside a long queue is what backfilling is there to avoid."
        f"{UNUSABLE if 'gpus' in resources else ''}",
        f"Each step is the exact mean over {format_duration(edges[1] - edges[0])}.",
        figure,
    )


def _resources(result: Result) -> dict[str, str]:
    """Return the names and display names of the resources of a cluster."""
    if result.placements is None:
        return {result.unit: "nodes"}
    cluster = result.placements.cluster
    there = [name for name, total in zip(cluster.resources, cluster.totals, strict=True) if total]
    return {name: RESOURCE_NAMES.get(name, name) for name in there[:MOST_RESOURCES]}


STOPS = " A red line is where a job was stopped; hatched parts are out of order."


def _stops(result: Result) -> bool:
    """Return whether jobs were stopped, or nodes were out of order."""
    return result.attempts is not None or result.downtime is not None


def _gantt(results: plots.Results) -> Picture:
    shown = dict(list(results.items())[:GANTT_POLICIES])
    columns = min(2, len(shown))
    first = next(iter(results.values()))
    names = () if first.placements is None else first.placements.cluster.names
    figure = _gantt_grid(shown, names, columns)
    begin, end = plots.busy_window(results, max(GANTT_JOBS, 10 * len(names)))
    for place, (name, result) in enumerate(shown.items()):
        ax = figure.axes[place]
        title(plots.plot_gantt(result, ax, window=(begin, end)), wrapped(name, 52, lines=1))
        if place % columns:
            ax.set_ylabel("")
            ax.tick_params(axis="y", left=not names, labelleft=not names)
        if place + columns < len(shown):
            without_time(ax)
    for ax in figure.axes[len(shown) :]:
        ax.remove()
    _mode_legend(figure, shown)
    left_out = f" The first {len(shown)} of {len(results)} policies." if len(shown) < len(results) else ""
    last = max(int(result.end_time.max()) for result in results.values())
    jobs = int(np.count_nonzero((first.submit_time >= begin) & (first.submit_time <= end)))
    return Picture(
        "gantt",
        "A busy window",
        f"Each rectangle is a job: as wide as its time, {LANES if names else 'as high as its nodes'}; "
        "blank is idle. Ready jobs started when their turn came, reserved ones after having been the blocked "
        f"job, backfilled ones past it.{STOPS if any(map(_stops, shown.values())) else ''}",
        f"{_time_span(first.workload, begin, end)}, in which {jobs:,} jobs are submitted: "
        f"{'the whole run' if end >= last else STRETCH}. "
        f"{COMPLEMENTS if names else COUNTED} Jobs shorter than a 400th of the window are drawn that long."
        f"{left_out}",
        figure,
    )


def _gantt_grid(results: plots.Results, machines: Sequence[str], columns: int) -> Figure:
    """Return a figure for Gantt charts, with space on the left for the names of machines, if any."""
    rows = -(-len(results) // columns)
    if machines:
        left = 0.25 + 0.075 * max(map(len, machines))
        height = min(max(1.45, 0.17 * len(machines)), 3.0)
        return grid_figure(rows, columns, height=height, gap=0.32, left=left, between=0.2)
    left = 0.4 + 0.065 * max(len(f"{result.size:,}") for result in results.values())
    return grid_figure(rows, columns, height=1.45, gap=0.32, left=left, between=left)


@style()
def _start_modes(results: plots.Results) -> Picture:
    figure = new_figure(WIDTH, 0.9 + 0.3 * len(results))
    ax = plots.plot_start_modes(results, figure.axes[0])
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return Picture(
        "start_modes",
        "How jobs started",
        "Ready: started when its turn came and it fitted. Reserved: had been the blocked job that holds "
        "a reservation. Backfilled: passed a blocked job.",
        "Shares of the jobs that started, each job counted once whatever its size.",
        figure,
    )


def _fairness(results: plots.Results) -> Picture | None:
    users = max(len(plots.user_slowdowns(result)) for result in results.values())
    if users < 2:
        return None
    figure = new_figure(WIDTH, 0.8 + 0.32 * len(results))
    plots.plot_fairness(results, figure.axes[0])
    thinned = f"; {plots.POINTS} of them drawn as dots, evenly by rank" if users > plots.POINTS else ""
    return Picture(
        "fairness",
        "Fairness between users",
        "Each dot is a user's mean bounded slowdown. Further left is better, a narrow box is fairer; "
        "box, whiskers, diamond and cross as for the bounded slowdown above, but over users.",
        f"{users:,} users, each counted once however many jobs they have{thinned}.",
        figure,
    )


def _time_span(workload: Workload, begin: int, end: int) -> str:
    """Return a time span of a log's clock as the beginning of a sentence: dates, or seconds."""
    calendar = calendar_of(workload)
    if calendar is None:
        return f"Seconds {begin:,} to {end:,} of the log's clock"
    return f"From {calendar.text(begin)} to {calendar.text(end)}"


# --- one picture of everything -------------------------------------------------------------------------


@style()
def draw_comparison(results: plots.Results, metrics: Mapping[str, Mapping[str, float | None]]) -> Figure:
    """Return one wide figure: wait times, a busy window under two policies, and two metrics of all policies.

    The two policies of the Gantt charts are the first one and the one with the shortest mean wait time.

    Metrics are at least ``mean_wait_time`` and ``mean_bounded_slowdown``.
    """
    shape = {"width_ratios": [1.05, 1.25, 0.85]}
    figure = new_figure(13.0, 5.6, rows=2, columns=3, gridspec_kw=shape)
    waits, upper, mean_wait, spare, lower, mean_slowdown = figure.axes
    spare.remove()
    if (place := waits.get_subplotspec()) is not None:
        waits.set_subplotspec(place.get_gridspec()[:, 0])
    title(plots.plot_wait(results, waits), "Wait time of all jobs")
    first = next(iter(results))
    best = min(results, key=lambda name: metrics[name]["mean_wait_time"] or 0.0)
    window = plots.busy_window(results, GANTT_JOBS)
    for ax, name in ((upper, first), (lower, best)):
        title(
            plots.plot_gantt(results[name], ax, window=window), wrapped(f"A busy window: {name}", 60, lines=1)
        )
    without_time(upper)
    with style():
        upper.legend(
            handles=_mode_handles({each: results[each] for each in (first, best)}),
            loc="lower right",
            bbox_to_anchor=(1.02, 0.975),
            ncols=3,
            handlelength=1.2,
        )
    for ax, metric, heading, formatted in (
        (mean_wait, "mean_wait_time", "Mean wait", format_duration),
        (mean_slowdown, "mean_bounded_slowdown", "Mean bounded slowdown", format_number),
    ):
        values = {name: metrics[name][metric] or 0.0 for name in results}
        title(plots.plot_values(values, ax, formatted=formatted), heading)
    legend_above(figure, line_styles(results), most=8)
    return figure


# --- laying out ----------------------------------------------------------------------------------------


@style()
def _head(figure: Figure, headings: Sequence[str]) -> None:
    """Write headings above the columns of a grid."""
    height = figure.get_size_inches()[1]
    for ax, heading in zip(figure.axes, headings, strict=False):
        left = ax.get_position().x0
        figure.text(left, 1 - 0.16 / height, heading, fontsize=10, fontweight="bold", va="center", color=INK)


def _same_scale(axes: Sequence[Axes]) -> bool:
    """Set one scale for axes of counts; return whether it is logarithmic, to keep low curves readable."""
    tops = [ax.get_ylim()[1] for ax in axes]
    logarithmic = bool(max(tops) > 6 * min(tops) and max(tops) > 10)
    for ax in axes:
        if logarithmic:
            symlog_axis(ax, max(tops))
        else:
            ax.set_ylim(0, max(tops))
    return logarithmic


@style()
def _mode_legend(figure: Figure, results: plots.Results) -> None:
    """Add the legend of the colours of Gantt charts at the top."""
    place = (0.04, 1 - 0.02 / figure.get_size_inches()[1])
    figure.legend(
        handles=_mode_handles(results), loc="upper left", bbox_to_anchor=place, ncols=4, borderpad=0.2
    )


def _mode_handles(results: plots.Results) -> list[Patch]:
    from matplotlib.patches import Patch

    tested = any((result.by_attempt.mode == MODE_NAMES.index("tested")).any() for result in results.values())
    modes = [mode for mode in MODE_COLOURS if mode != "tested" or tested]
    return [Patch(color=MODE_COLOURS[mode], label=mode) for mode in modes]
