"""Plots of schedules: each function draws results on axes and returns them.

Every function takes a result, several, or a mapping of them by name, and an `ax`, by default that of a new
figure of pyplot, which a notebook shows. Values are not smoothed; the docstrings describe where points are
thinned or binned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import (
    HEAT,
    INK,
    MODE_COLOURS,
    MUTED,
    ON_MODE,
    PAPER,
    Line,
    axes_of,
    duration_axis,
    format_duration,
    format_number,
    line_styles,
    new_figure,
    policy_rows,
    style,
    width_of,
)
from hpcsimkit.reports.gantt import busy_window, plot_gantt
from hpcsimkit.reports.given import Given, Results, legend_if_own, results_of
from hpcsimkit.reports.time_plots import draw_busy, draw_queue, plot_busy, plot_queue, plot_resource
from hpcsimkit.results.result import MODE_NAMES, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Results",
    "apart",
    "busy_window",
    "cumulative",
    "draw_boxes",
    "draw_busy",
    "draw_queue",
    "draw_shades",
    "plot_boxes",
    "plot_busy",
    "plot_fairness",
    "plot_gantt",
    "plot_heat_map",
    "plot_queue",
    "plot_resource",
    "plot_slowdown",
    "plot_start_modes",
    "plot_values",
    "plot_wait",
    "plot_wait_tail",
    "plot_waits",
    "shade",
    "user_slowdowns",
]

Floats = NDArray[np.float64]

POINTS = 400
"""Maximum number of points of a curve, more than the printed resolution of a column."""

CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
BESIDE: dict[str, Any] = {"xytext": (7, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}


# --- distributions -------------------------------------------------------------------------------------


@style()
def plot_wait(results: Given, ax: Axes | None = None) -> Axes:
    """Draw the cumulative distribution of wait times [% of jobs] on a logarithmic axis that includes zero.

    Curves are evaluated at no more than `POINTS` wait times; each point is exact.

    Parameters
    ----------
    results : Result, several, or mapping of str to Result
        Results, by the name of the policy.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> from hpcsimkit.reports import plots; from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.kernel.simulation import Simulation; from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 9], "nodes": [1, 1]}, machine_size=1)
    >>> ax = plots.plot_wait({"fcfs": Simulation(w, Pipeline()).run()})
    >>> ax.lines[0].get_ydata().tolist()
    [50.0, 100.0, 100.0]
    """
    given = results_of(results)
    drawn = plot_waits({name: _finite(result.wait_time) for name, result in given.items()}, given, ax)
    return legend_if_own(drawn, ax, given)


@style()
def plot_waits(waits: Mapping[str, Floats], names: Iterable[str], ax: Axes | None = None) -> Axes:
    """Draw the distributions of some wait times as :func:`plot_wait` does.

    Parameters
    ----------
    waits : mapping of str to array of float64
        Wait times [s] by the name of the policy, at least one each.
    names : iterable of str
        Names of all policies, by whose positions lines have their styles.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    """
    ax = axes_of(ax)
    styles = line_styles(names)
    for name in waits:
        line = styles[name]
        at, share = cumulative(waits[name])
        at, share = np.append(at, max(at[-1], 1)), np.append(share, share[-1])  # visible if no job waits
        ax.plot(at, 100 * share, drawstyle="steps-post", **_drawn(name, line))
    duration_axis(ax, _longest(waits))
    ax.set(xlabel="wait time", ylabel="jobs that wait no longer [%]", ylim=(0, 101))
    return ax


@style()
def plot_wait_tail(results: Given, ax: Axes | None = None) -> Axes:
    """Draw the share of jobs that wait longer than a time, on logarithmic axes: the tail of the distribution.

    Curves are evaluated at no more than `POINTS` wait times; each point is exact. A curve ends at the
    longest wait.
    """
    given, ax, own = results_of(results), axes_of(ax), ax
    waits = {name: _finite(result.wait_time) for name, result in given.items()}
    for name, line in line_styles(given).items():
        at, share = cumulative(waits[name])
        longer = 100 * np.maximum(1 - share, 1e-9)  # outside the axes at the longest wait, where it is 0
        ax.plot(at[at >= 1], longer[at >= 1], drawstyle="steps-post", **_drawn(name, line))
    duration_axis(ax, _longest(waits), zero=False)
    least = 100 / max(map(len, waits.values()), default=1)
    ax.set(xlabel="wait time", ylabel="jobs that wait longer [%]", ylim=(0.7 * least, 110), yscale="log")
    ticks = [tick for tick in (100, 10, 1, 0.1, 0.01, 0.001) if tick >= least / 2] or [100]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    if not _longest(waits):
        ax.text(0.5, 0.5, "no job waits", transform=ax.transAxes, ha="center", color=MUTED)
    return legend_if_own(ax, own, given)


@style()
def plot_slowdown(results: Given, ax: Axes | None = None) -> Axes:
    """Draw bounded slowdowns (threshold 10 s) as one box per policy on a logarithmic axis.

    The box is the interquartile range, its line the median; the whiskers extend from the 5th to the 95th
    percentile, the diamond is the mean and the cross the maximum.
    """
    values = {name: _finite(result.bounded_slowdown()) for name, result in results_of(results).items()}
    ax = plot_boxes(values, axes_of(ax, 7.5, 0.8 + 0.32 * len(values)))
    ax.set_xlabel("bounded slowdown (1 = no wait)")
    return ax


@style()
def plot_fairness(results: Given, ax: Axes | None = None) -> Axes:
    """Draw the mean bounded slowdown of each user: one box per policy, as in `plot_slowdown`.

    Users have equal weights, regardless of their numbers of jobs; at most `POINTS` users are drawn as dots.
    """
    values = {name: user_slowdowns(result) for name, result in results_of(results).items()}
    ax = plot_boxes(values, axes_of(ax, 7.5, 0.8 + 0.32 * len(values)), dots=True)
    ax.set_xlabel("mean bounded slowdown of a user's jobs (1 = no wait)")
    return ax


def user_slowdowns(result: Result) -> Floats:
    """Return the mean bounded slowdown of each known user, by ascending user number; possibly empty."""
    slowdown, user = result.bounded_slowdown(), result.workload.column("user")
    counted = np.isfinite(slowdown) & (user >= 0)
    _, of = np.unique(user[counted], return_inverse=True)
    return np.bincount(of, weights=slowdown[counted]) / np.maximum(np.bincount(of), 1)


def plot_boxes(
    values: Mapping[str, Floats], ax: Axes, *, dots: bool = False, logarithmic: bool = True
) -> Axes:
    """Draw horizontal boxes of percentiles, as in `plot_slowdown`, the first policy on top.

    Parameters
    ----------
    values : mapping of str to array of float
        Sample of each policy.
    ax : Axes
        Axes to draw on.
    dots : bool
        Whether at most `POINTS` values of the sample are drawn too. Default: False.
    logarithmic : bool
        Whether the axis is logarithmic; otherwise it has matplotlib's default scale. Default: True.
    """
    for place, (name, line) in enumerate(line_styles(values).items()):
        sample = values[name]
        if not len(sample):
            continue
        low, left, middle, right, high = np.percentile(sample, [5, 25, 50, 75, 95])
        ax.plot([low, high], [place, place], color=line.colour, linewidth=1, zorder=2)
        box: dict[str, Any] = {"y": place, "width": right - left, "left": left, "height": 0.55, "zorder": 3}
        ax.barh(**box, facecolor=PAPER, edgecolor=line.colour, linewidth=1.3)
        ax.barh(**box, color=line.colour, alpha=0.25)
        ax.plot([middle, middle], [place - 0.275, place + 0.275], color=line.colour, linewidth=2.2, zorder=4)
        if dots:
            _dots(sample, place, line, ax)
        marker: dict[str, Any] = {"markersize": 4.5, "zorder": 6}
        ax.plot([sample.max()], [place], marker="x", color=line.colour, **marker)
        ax.plot([sample.mean()], [place], marker="D", color=INK, markeredgecolor=PAPER, **marker)
    if logarithmic:
        from matplotlib.ticker import LogFormatter, LogLocator

        ax.set_xscale("log")
        ax.set_xlim(left=0.93)
        ax.xaxis.set_minor_formatter(LogFormatter())  # plain: pictures keep their words as text
        ax.xaxis.set_major_locator(LogLocator(numticks=max(3, int(1.6 * width_of(ax)))))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    policy_rows(ax, values)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    return ax


def _dots(sample: Floats, place: int, line: Line, ax: Axes) -> None:
    """Draw a sample as dots over the height of a box, spread by rank to avoid overlaps."""
    shown = np.sort(sample)[np.unique(np.linspace(0, len(sample) - 1, POINTS).astype(int))]
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 1.8, "markeredgewidth": 0}
    ax.plot(shown, place + apart(len(shown), 0.25), color=line.colour, alpha=0.55, zorder=5, **look)


def apart(count: int, most: float = 0.3) -> NDArray[np.float64]:
    """Return vertical offsets of at most `most` that keep neighbouring dots apart, by the golden ratio.

    >>> apart(3).round(3).tolist()
    [-0.3, 0.071, -0.158]
    """
    return np.asarray(most * (2 * (np.arange(count) * 0.618 % 1) - 1), dtype=np.float64)


@style()
def draw_boxes(values: Mapping[str, NDArray[np.float64]], label: str, *, logarithmic: bool = True) -> Figure:
    """Return a figure with a box per scheduler, over sequences or days, which are drawn as dots.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Values by scheduler.
    label : str
        Label of the axis.
    logarithmic : bool
        Whether the axis is logarithmic. Default: True.
    """
    figure = new_figure(7.5, 0.9 + 0.32 * len(values))
    ax = plot_boxes(values, figure.axes[0], dots=True, logarithmic=logarithmic)
    shown = np.concatenate([*values.values()])
    if logarithmic and (shown > 0).any():
        ax.set_xlim(left=0.8 * float(shown[shown > 0].min()))
    ax.set_xlabel(label)
    return figure


# --- classes and shares --------------------------------------------------------------------------------


@style()
def plot_heat_map(
    values: Mapping[str, Sequence[float]],
    classes: Sequence[str],
    ax: Axes | None = None,
    *,
    formatted: Callable[[float], str] = format_duration,
) -> Axes:
    """Draw a table of policies (rows) and classes of jobs (columns), with darker cells for larger values.

    The shade increases with the logarithm of the value, over the whole table; a class without jobs is empty.

    Parameters
    ----------
    values : mapping of str to sequence of float
        Values of each policy, one per class; NaN for missing ones.
    classes : sequence of str
        Names of the classes.
    formatted : callable
        Function that returns the text of a value's cell.
    """
    ax = axes_of(ax, 2.0 + 0.9 * len(classes), 0.9 + 0.3 * len(values))
    table = np.array([list(row) for row in values.values()], dtype=float).reshape(len(values), len(classes))
    draw_shades(table, ax, border=1.5)
    for (row, column), value in np.ndenumerate(table):
        ax.text(column + 0.5, row + 0.5, formatted(value), color=INK, **CENTRED)
    ax.set_xticks(np.arange(len(classes)) + 0.5, list(classes))
    if sum(map(len, classes)) > 90:  # labels would touch
        ax.tick_params(axis="x", labelrotation=35)
    policy_rows(ax, values, 0.5)
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def draw_shades(
    table: Floats, ax: Axes, *, limits: tuple[float, float] | None = None, border: float = 0.5
) -> None:
    """Draw the cells of a table, shaded by the logarithm of their values between two limits; NaN is blank.

    Limits are by default the extremes of the table, where NaN counts as 0.
    """
    least, most = limits or (float(np.nan_to_num(table).min()), float(np.nan_to_num(table).max()))
    mesh = ax.pcolormesh(table * 0, edgecolor=PAPER, linewidth=border)
    mesh.set_array(None)
    mesh.set_facecolor([shade(value, least, most) for value in table.ravel().tolist()])


def shade(value: float, least: float, most: float) -> tuple[float, float, float, float]:
    """Return the colour of a value between two limits, on a logarithmic scale; NaN is transparent."""
    low, at, high = (float(np.log10(1 + number)) for number in (least, value, most))
    return _see_through(HEAT, 0.0 if np.isnan(value) else 0.04 + 0.86 * (at - low) / ((high - low) or 1))


@style()
def plot_start_modes(results: Given, ax: Axes | None = None) -> Axes:
    """Draw the shares of jobs that started ready, reserved, backfilled and for a test: one bar per policy.

    Ready jobs fitted when they were first in the queue; reserved jobs had waited as the blocked job with a
    reservation; backfilled jobs started ahead of a blocked job.
    """
    given, own = results_of(results), ax
    ax = axes_of(ax, 7.5, 0.8 + 0.3 * len(given))
    left = np.zeros(len(given))
    for mode in MODE_NAMES[1:]:
        share = np.array([_mode_share(result, mode) for result in given.values()])
        if mode == "tested" and not share.any():
            continue
        ax.barh(range(len(given)), share, left=left, height=0.7, color=MODE_COLOURS[mode], label=mode)
        for place in np.flatnonzero(share >= 4):
            at = left[place] + share[place] / 2
            ax.text(at, float(place), f"{share[place]:.0f} %", color=ON_MODE[mode][0], **CENTRED)
        left += share
    policy_rows(ax, given)
    ax.set(xlabel="jobs started [%]", xlim=(0, 100), ylim=(len(given) - 0.4, -0.6))
    ax.grid(axis="y", visible=False)
    if own is None:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return ax


@style()
def plot_values(
    values: Mapping[str, float], ax: Axes | None = None, *, formatted: Callable[[float], str] = format_number
) -> Axes:
    """Draw one labelled value per policy, as bars from zero, or as dots on a logarithmic axis.

    If the largest value is more than ten times the smallest, the axis is logarithmic; since it has no zero,
    dots replace the bars.

    Parameters
    ----------
    values : mapping of str to float
        Values by the name of the policy, 0 or more.
    formatted : callable
        Function that returns the label of a value.
    """
    ax = axes_of(ax, 4.0, 0.8 + 0.3 * len(values))
    smallest, largest = min(values.values(), default=0.0), max(values.values(), default=0.0) or 1.0
    logarithmic = smallest > 0 and largest > 10 * smallest
    for place, (name, line) in enumerate(line_styles(values).items()):
        if logarithmic:
            ax.plot([values[name]], [place], marker="o", markersize=7, color=line.colour)
        else:
            ax.barh(place, values[name], height=0.7, color=line.colour)
        ax.annotate(formatted(values[name]), (values[name], place), **BESIDE)
    if logarithmic:
        ax.set_xscale("log")
        ax.set_xlim(0.6 * smallest, largest * (largest / smallest) ** 0.4)
    else:
        ax.set_xlim(0, 1.3 * largest)
    policy_rows(ax, values)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.set_xticks([], minor=True)
    ax.set_xticks([])
    ax.set_xlabel("logarithmic axis" if logarithmic else "")
    ax.grid(visible=False)
    ax.spines["bottom"].set_visible(False)
    return ax


def _mode_share(result: Result, mode: str) -> float:
    started = int(np.count_nonzero(result.mode))
    return 100 * int(np.count_nonzero(result.mode == MODE_NAMES.index(mode))) / max(started, 1)


def _see_through(colour: str, alpha: float) -> tuple[float, float, float, float]:
    from matplotlib.colors import to_rgba

    return to_rgba(colour, alpha)


# --- shared --------------------------------------------------------------------------------------------


def _longest(waits: Mapping[str, Floats]) -> float:
    return max((float(wait.max(initial=0)) for wait in waits.values()), default=0.0)


def _finite(values: Floats) -> Floats:
    """Return the values of the jobs that ran."""
    return values[np.isfinite(values)]


def cumulative(values: Floats) -> tuple[Floats, Floats]:
    """Return the empirical distribution function: values in ascending order from 0, and cumulative shares.

    If there are more than `POINTS` distinct values, half of the returned ones are evenly spaced on a
    logarithmic scale; for the other half, the numbers of larger values are, so that both tails are accurate.
    """
    ordered = np.sort(values)
    at = np.unique(np.concatenate(([0.0], ordered)))
    if len(at) > POINTS:
        even = np.geomspace(1, ordered[-1], POINTS // 2).round()
        largest = ordered[-np.unique(np.geomspace(1, len(ordered), POINTS // 2).astype(int))]
        at = np.unique(np.concatenate(([0.0], even, largest)))
    return at, np.searchsorted(ordered, at, side="right") / max(len(ordered), 1)


def _drawn(name: str, line: Line) -> dict[str, Any]:
    return {"label": name, "color": line.colour, "linestyle": line.dash}
