"""Pictures of the answers to questions: validation, explanation of an inspector, predictions."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.timeline import Steps
from hpcsimkit.kernel.prediction import LEVELS
from hpcsimkit.reports.figures import (
    INK,
    MODE_COLOURS,
    MUTED,
    POLICY_COLOURS,
    count_axis,
    legend_above,
    line_styles,
    new_figure,
    style,
    title,
)
from hpcsimkit.reports.picture import WIDTH
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.reports.time_plots import BINS, bin_means
from hpcsimkit.results.residue import CAUSES, Residue
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.workloads.readers.local_time import Calendar, calendar_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS: Sequence[Mapping[str, Any]] = (
    {"color": INK, "fill": True, "alpha": 0.3, "linewidth": 0},
    {"color": MODE_COLOURS["backfilled"], "baseline": None, "linewidth": 1.2},
)
"""Area of the first schedule, the recorded one, and line of the second."""

LETTERS = 90
"""Number of letters in a line of the title."""


@style()
def draw_validation(residue: Residue, heading: str = "") -> Figure:
    """Return a figure of the waiting jobs and the busy share over time, and of the causes of the errors.

    An area (recorded) and a line (simulated) of means in `BINS` bins. Jobs without a recorded wait are in
    neither.
    """
    result, timelines = residue.validation.result, residue.validation.timelines
    figure = new_figure(WIDTH, 6.4, rows=3)
    queue, busy, causes = figure.axes
    unit = RESOURCE_NAMES.get(result.unit, result.unit)
    plot_load(
        timelines, dict.fromkeys(timelines, result.size), calendar_of(result.workload), queue, busy, unit
    )
    title(queue, textwrap.fill(heading, LETTERS))
    names = [CAUSES.get(cause, cause) for cause in residue.table.cause]
    bars = causes.barh(names, 100 * residue.table.share, color=MODE_COLOURS["backfilled"])
    causes.bar_label(bars, fmt="%.1f %%", padding=3, fontsize=8)
    causes.invert_yaxis()
    causes.set(xlim=(0, 110), xlabel="share of the start-time error [%]")
    return figure


def plot_load(
    timelines: Mapping[str, Steps],
    sizes: Mapping[str, int],
    calendar: Calendar | None,
    queue: Axes,
    busy: Axes,
    unit: str,
) -> None:
    """Draw the waiting jobs and the busy share of two schedules over time: an area, and a line.

    Busy amounts and the sizes of the clusters have the same unit.
    """
    begin = min(int(steps.time[0]) for steps in timelines.values())
    end = max(int(steps.time[-1]) for steps in timelines.values())
    edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    axis = TimeAxis(float(edges[0]), float(edges[-1]), calendar)
    for (name, steps), look in zip(timelines.items(), LOOKS, strict=True):
        for ax, value in ((queue, steps.waiting), (busy, 100 * steps.busy / sizes[name])):
            mean = bin_means(steps.time, value, edges)
            ax.stairs(mean, axis.at(edges), label=name, **look)
    for ax in (queue, busy):
        axis.apply(ax)
        ax.set_ylim(bottom=0)
    queue.set_ylabel("jobs waiting")
    count_axis(queue.yaxis)
    busy.set_ylabel(f"{unit} busy [%]")
    queue.legend(loc="upper right", ncols=2)


COLUMNS, POINTS = 4, 401


class Distributions(Protocol):
    """Protocol of the data; see :class:`~hpcsimkit.experiments.evaluation.explanation.Explanation`."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the features."""

    @property
    def seen(self) -> NDArray[np.float64]:
        """Values of the features at each decision, shape (decisions, features)."""

    @property
    def ratio(self) -> float:
        """Share of rejections among all decisions."""

    def distributions(
        self, feature: int, at: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distribution functions of a feature at some values, over all and rejected decisions."""


@style()
def draw_explanation(explanation: Distributions, heading: str = "") -> Figure:
    """Return a figure with the distributions of each feature over all decisions and over the rejected ones.

    Where the line of the rejected ones is steeper than the other, the share of rejections is above average.
    """
    names = explanation.names
    rows = -(-(len(names) + 1) // COLUMNS)
    figure = new_figure(9.0, 0.6 + 2.1 * rows, rows=rows, columns=COLUMNS, sharey=True)
    for number, (name, ax) in enumerate(zip(names, figure.axes, strict=False)):
        largest = max(float(np.quantile(explanation.seen[:, number], 0.999)), 1e-6)
        at = np.linspace(0, largest, POINTS)
        every, refused = explanation.distributions(number, at)
        ax.plot(at, every, color=INK, label="all decisions")
        ax.plot(at, refused, color=POLICY_COLOURS[1], label=f"rejected: {explanation.ratio:.0%} of them")
        ax.set_ylim(0, 1.02)
        ax.set_xlim(0, largest)
        title(ax, name)
        if number % COLUMNS == 0:
            ax.set_ylabel("share of decisions")
    for ax in figure.axes[len(names) :]:
        ax.set_axis_off()
    figure.axes[len(names)].legend(*figure.axes[0].get_legend_handles_labels(), loc="center left")
    if heading:
        figure.suptitle(heading, fontsize="medium")
    return figure


@style()
def draw_calibration(waits: Mapping[str, NDArray[np.float64]], heading: str = "") -> Figure:
    """Return a figure of the distributions of waits [s], by name, each up to its longest 1 %."""
    figure = new_figure(WIDTH, 3.6)
    (ax,) = figure.axes
    styles = line_styles(list(waits))
    longest = max(float(np.quantile(each, 0.99)) for each in waits.values())
    for name, line in styles.items():
        hours, share = np.sort(waits[name]) / 3600, np.arange(1, len(waits[name]) + 1) / len(waits[name])
        ax.step(hours, 100 * share, where="post", color=line.colour, linestyle=line.dash)
    ax.set(xlabel="wait [h]", ylabel="jobs with a shorter wait [%]")
    ax.set(xlim=(0, max(longest / 3600, 1e-3)), ylim=(0, 101))
    title(ax, textwrap.shorten(heading, 110) if heading else "Waits")
    legend_above(figure, styles, most=3)
    return figure


def draw_predictions(table: pandas.DataFrame) -> Figure:
    """Return a figure of the calibration and the errors of predictors.

    On the left, the share of jobs within each predicted quantile over its level; the grey line is perfect
    calibration. On the right, the mean absolute error for each class of users.

    The table is that of :func:`~hpcsimkit.policies.predicting.quality.quality_table`.
    """
    figure = new_figure(WIDTH, 3.6, columns=2, width_ratios=(2, 3))
    calibration, errors = figure.axes
    styles = line_styles(table["predictor"].unique())
    _plot_calibration(table, calibration)
    _plot_errors(table, errors)
    legend_above(figure, styles, most=6)
    return figure


def _plot_calibration(table: pandas.DataFrame, ax: Axes) -> None:
    """Draw the coverage of the quantiles of each predictor for all jobs."""
    everyone = table[table["users"] == "all"].set_index("predictor")
    levels = 100 * np.array(LEVELS)
    ax.plot([0, 100], [0, 100], color=MUTED, linewidth=0.8)
    for name, line in line_styles(everyone.index).items():
        covered = 100 * everyone.loc[name].iloc[-len(LEVELS) :].astype(float)
        ax.plot(levels, covered, color=line.colour, linestyle=line.dash, marker="o", markersize=3)
    ax.set(xlabel="level of the quantile [%]", ylabel="jobs within the quantile [%]")
    ax.set(xlim=(0, 100), ylim=(0, 101))
    title(ax, "Calibration")


def _plot_errors(table: pandas.DataFrame, ax: Axes) -> None:
    """Draw a group of bars for each class of users, a bar for each predictor."""
    classes = list(table["users"].unique())
    styles = line_styles(table["predictor"].unique())
    width = 0.8 / len(styles)
    for place, (name, line) in enumerate(styles.items()):
        hours = table[table["predictor"] == name].set_index("users")["mean absolute error [s]"] / 3600
        at = np.arange(len(classes)) + (place - (len(styles) - 1) / 2) * width
        ax.bar(at, hours[classes], width=0.9 * width, color=line.colour)
    share = table[table["predictor"] == table["predictor"].iloc[0]].set_index("users")["jobs"]
    labels = [f"{users}\n{100 * share[users] / share['all']:.0f} % of jobs" for users in classes]
    ax.set_xticks(range(len(classes)), labels)
    ax.set(xlabel="users", ylabel="mean absolute error [h]")
    ax.grid(axis="x", visible=False)
    title(ax, "Error by class of users")


# --- windows of start times ----------------------------------------------------------------------------

MOST_WINDOWS = 40
"""Maximum number of jobs in a figure of windows."""


@style()
def draw_windows(table: pandas.DataFrame, requests: pandas.DataFrame, at: int, heading: str = "") -> Figure:
    """Return a figure of the windows of start times of waiting jobs and of requests, a row for each.

    Bars are windows and their marks the middles; crosses are starts as requested, dots the known ones.

    Parameters
    ----------
    table, requests : DataFrame
        Tables of :class:`~hpcsimkit.experiments.questions.advise.Advice`.
    at : int
        Time of the advice [s].
    """
    import pandas

    possible = requests[requests["high"] >= at].rename(columns={"request": "job_id"})
    shown = pandas.concat([possible, table]).head(MOST_WINDOWS)
    figure = new_figure(WIDTH, 1.3 + 0.2 * max(len(shown), 3))
    ax = figure.axes[0]
    low, middle, high, requested = (
        (shown[name].to_numpy(float) - at) / 3600 for name in ("low", "middle", "high", "as_requested")
    )
    rows = np.arange(len(shown))
    ax.barh(
        rows, high - low, left=low, height=0.6, color=POLICY_COLOURS[1], alpha=0.35, label="window (80 %)"
    )
    ax.plot(middle, rows, "|", color=POLICY_COLOURS[1], markersize=9, markeredgewidth=2, label="middle")
    ax.plot(requested, rows, "x", color=MUTED, markersize=5, label="as requested")
    if "start_time" in shown:
        known = shown["start_time"].fillna(-1).to_numpy(float)
        there = known >= 0
        ax.plot(
            (known[there] - at) / 3600, rows[there], "o", color=INK, markersize=3.5, label="start in the log"
        )
    ax.set_yticks(
        rows, [f"{name} ({nodes} nodes)" for name, nodes in zip(shown.job_id, shown.nodes, strict=True)]
    )
    ax.set(ylim=(len(shown) - 0.4, -0.6), xlim=(0, None), xlabel="start [h from now]")
    ax.grid(axis="y", visible=False)
    left_out = len(table) + len(possible) - len(shown)
    title(
        ax, "\n".join(textwrap.wrap(heading, LETTERS)) + (f" ({left_out} further jobs)" if left_out else "")
    )
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
