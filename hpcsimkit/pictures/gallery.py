"""The pictures of a report: which there are, what each shows, and how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from hpcsimkit.breakdown import breakdown
from hpcsimkit.pictures import plots
from hpcsimkit.pictures.figures import (
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
)
from hpcsimkit.pictures.time_plots import BINS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

__all__ = ["Picture", "draw_comparison", "draw_pictures"]

WIDTH = 10.0
"""Width of every picture [inches], so that letters are equally large in all of them."""

GANTT_JOBS = 300
GANTT_POLICIES = 12


class Picture(NamedTuple):
    """One figure of the report.

    Attributes
    ----------
    name : str
        A word: the file is called so.
    title : str
        What is shown.
    reading : str
        How to read it, in a sentence or two.
    caption : str
        Units, and what was left out, thinned or binned.
    figure : Figure
        The picture itself.
    """

    name: str
    title: str
    reading: str
    caption: str
    figure: Figure


def draw_pictures(results: plots.Results) -> Iterator[Picture]:
    """Yield the pictures of results by policy, in the order of the report; what says nothing is left out."""
    if not all(result.finished.any() for result in results.values()):
        return
    for draw in (_waits, _slowdowns, _classes, _over_time, _gantt, _start_modes, _fairness):
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


def _classes(results: plots.Results) -> Picture:
    figure = new_figure(WIDTH, 1.5 + 2 * 0.27 * len(results), rows=2)
    upper, lower = figure.axes
    tables_of: tuple[tuple[Axes, Literal["size", "run_time"], str], ...] = (
        (upper, "size", "By size of the job [nodes]"),
        (lower, "run_time", "By run time of the job"),
    )
    for ax, by, heading in tables_of:
        tables = {name: breakdown(result, by).mean_wait_time for name, result in results.items()}
        classes = list(max(tables.values(), key=len).index)
        values = {name: [table.get(label, np.nan) for label in classes] for name, table in tables.items()}
        plots.plot_heat_map(values, classes, ax, formatted=lambda value: format_duration(value, 2))
        title(ax, heading)
    return Picture(
        "classes",
        "Mean wait by class of job",
        "Each cell is the mean wait of the jobs of a class (column) under a policy (row); stronger "
        "colour is longer. Read down a column to compare policies, along a row to see whom a policy "
        "favours.",
        "Colours are logarithmic within each table. Run times are those that jobs really had, not the "
        "requested ones.",
        figure,
    )


def _over_time(results: plots.Results) -> Picture:
    figure = _grid(len(results), 2, height=0.55, gap=0.28, left=0.55, between=0.55)
    begin = min(int(result.submit_time[result.finished].min()) for result in results.values())
    end = max(int(result.end_time.max()) for result in results.values())
    edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    for row, (name, line) in enumerate(line_styles(results).items()):
        left, right = figure.axes[2 * row : 2 * row + 2]
        steps, size = results[name].timeline(), results[name].size
        plots.plot_queue(steps, left, edges=edges, colour=line.colour).set_ylabel("")
        plots.plot_busy(steps, size, right, edges=edges, colour=line.colour).set_ylabel("")
        title(left, name)
        if row < len(results) - 1:
            _without_time(left)
            _without_time(right)
    logarithmic = _same_scale(figure.axes[::2])
    _head(figure, ("Jobs waiting", "Nodes busy [%]"))
    scale = "one logarithmic scale" if logarithmic else "one scale"
    return Picture(
        "over_time",
        "Queue and utilisation over time",
        f"Left: how many jobs wait ({scale} for all policies). Right: how many of the nodes are busy. "
        "Idle nodes beside a long queue are what backfilling is there to avoid.",
        f"Each step is the exact mean over {format_duration(edges[1] - edges[0])}.",
        figure,
    )


def _gantt(results: plots.Results) -> Picture:
    shown = dict(list(results.items())[:GANTT_POLICIES])
    columns = min(2, len(shown))
    left = 0.4 + 0.065 * max(len(f"{result.size:,}") for result in shown.values())
    figure = _grid(-(-len(shown) // columns), columns, height=1.45, gap=0.32, left=left, between=left)
    begin, end = plots.busy_window(results, GANTT_JOBS)
    for place, (name, result) in enumerate(shown.items()):
        ax = figure.axes[place]
        title(plots.plot_gantt(result, (begin, end), ax), name)
        if place % columns:
            ax.set_ylabel("")
        if place + columns < len(shown):
            _without_time(ax)
    for ax in figure.axes[len(shown) :]:
        ax.remove()
    _mode_legend(figure)
    left_out = f" The first {len(shown)} of {len(results)} policies." if len(shown) < len(results) else ""
    submit = next(iter(results.values())).submit_time
    jobs = int(np.count_nonzero((submit >= begin) & (submit <= end)))
    return Picture(
        "gantt",
        "A busy window",
        "Each rectangle is a job: as wide as its time, as high as its nodes; blank is idle. Ready jobs "
        "started when their turn came, reserved ones after having been the blocked job, backfilled ones "
        "past it.",
        f"Seconds {begin:,} to {end:,} of the log's clock, in which {jobs} jobs are submitted: of all "
        "such stretches the one at 90 % by mean wait over the policies, the same for each. Nodes are "
        "only counted in a run; their numbers are given afterwards. Jobs shorter than a 400th of the "
        f"window are drawn that long.{left_out}",
        figure,
    )


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


# --- one picture of everything -------------------------------------------------------------------------


@style()
def draw_comparison(results: plots.Results, metrics: Mapping[str, Mapping[str, float | None]]) -> Figure:
    """Return one wide figure: waits, the busy window under two policies, and two metrics of all policies.

    The two policies of the Gantt charts are the first one and the one with the shortest mean wait.

    Parameters
    ----------
    results : mapping of str to Result
        Results by the name of the policy.
    metrics : mapping of str to mapping of str to float or None
        For each policy at least ``mean_wait_time`` and ``mean_bounded_slowdown``.
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
        title(plots.plot_gantt(results[name], window, ax), f"A busy window: {name}")
    _without_time(upper)
    with style():
        upper.legend(
            handles=_mode_handles(),
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


def _grid(rows: int, columns: int, *, height: float, gap: float, left: float, between: float) -> Figure:
    """Return a figure of many small axes, all lengths in inches: a solver of layouts is slow with so many."""
    top, bottom, right = 0.55, 0.5, 0.12
    total = top + rows * height + (rows - 1) * gap + bottom
    width = (WIDTH - left - right - (columns - 1) * between) / columns
    place = {
        "left": left / WIDTH,
        "right": 1 - right / WIDTH,
        "top": 1 - top / total,
        "bottom": bottom / total,
        "wspace": between / width,
        "hspace": gap / height,
    }
    return new_figure(WIDTH, total, rows, columns, layout="none", gridspec_kw=place)


@style()
def _head(figure: Figure, headings: Sequence[str]) -> None:
    """Write headings above the columns of a grid."""
    height = figure.get_size_inches()[1]
    for ax, heading in zip(figure.axes, headings, strict=False):
        left = ax.get_position().x0
        figure.text(left, 1 - 0.16 / height, heading, fontsize=10, fontweight="bold", va="center", color=INK)


def _without_time(ax: Axes) -> None:
    """Leave the numbers and the name of the time axis to the axes below."""
    ax.set_xlabel("")
    ax.tick_params(labelbottom=False)


def _same_scale(axes: Sequence[Axes]) -> bool:
    """Give axes of counts one scale; return whether it is logarithmic, as the lower ones need it to be."""
    tops = [ax.get_ylim()[1] for ax in axes]
    logarithmic = bool(max(tops) > 6 * min(tops) and max(tops) > 10)
    for ax in axes:
        if logarithmic:
            symlog_axis(ax, max(tops))
        else:
            ax.set_ylim(0, max(tops))
    return logarithmic


@style()
def _mode_legend(figure: Figure) -> None:
    """Write what the colours of Gantt charts mean, at the top."""
    place = (0.04, 1 - 0.02 / figure.get_size_inches()[1])
    figure.legend(handles=_mode_handles(), loc="upper left", bbox_to_anchor=place, ncols=3, borderpad=0.2)


def _mode_handles() -> list[Patch]:
    from matplotlib.patches import Patch

    return [Patch(color=colour, label=mode) for mode, colour in MODE_COLOURS.items()]
