"""Plots of a sweep on axes: means along a numeric axis, values with intervals, critical differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.reports.figures import (
    INK,
    MUTED,
    Line,
    axes_of,
    format_number,
    line_styles,
    policy_rows,
    style,
    wrapped,
)
from hpcsimkit.reports.sweep.texts import value_text
from hpcsimkit.results.statistics import Mean, Ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOGARITHMIC = 100.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""

DODGE = 2.5
"""Horizontal distance of the intervals of neighbouring policies at one value of an axis [points]."""

MOST_TICKS = 7
"""Largest number of values of an axis that all have ticks."""


@style()
def plot_means(means: Mapping[str, Sequence[Mean]], values: Sequence[float], ax: Axes | None = None) -> Axes:
    """Draw means with intervals along a numeric axis: one line for each policy.

    Intervals at one value are drawn side by side.

    There is a mean of each policy for each of `values`, which are ascending; NaN for missing ones.

    >>> ax = plot_means({"fcfs": [Mean(5, 4, 6), Mean(9, 8, 11)]}, [0.8, 1.0])
    >>> ax.lines[0].get_ydata().tolist()
    [5.0, 9.0]
    """
    from matplotlib.transforms import offset_copy

    ax = axes_of(ax)
    places = np.array(values, dtype=float)
    heights = np.array([[(m.mean, m.low, m.high) for m in line] for line in means.values()], dtype=float)
    for number, (name, line) in enumerate(line_styles(means).items()):
        shift = DODGE * (number - (len(means) - 1) / 2)
        beside = offset_copy(ax.transData, cast("Figure", ax.figure), x=shift, units="points")
        look: dict[str, Any] = {"color": line.colour, "transform": beside}
        mean, low, high = heights[number].T
        ax.plot(places, mean, label=wrapped(name), linestyle=line.dash, marker="o", markersize=3.5, **look)
        ax.vlines(places, low, high, linewidth=1, **look)
    points = np.column_stack([np.tile(np.repeat(places, 3), len(means)), heights.ravel()])
    ax.update_datalim(points[np.isfinite(points[:, 1])])  # shifted lines do not count by themselves
    scale_axis(ax, "x", places)
    scale_axis(ax, "y", heights)
    ax.autoscale_view()
    _ticks_at(ax, places)
    return ax


@style()
def plot_intervals(
    means: Mapping[str, Mean],
    ax: Axes | None = None,
    *,
    styles: Mapping[str, Line] | None = None,
    zero: bool = False,
) -> Axes:
    """Draw a value with its interval for each policy: one row each, the first on top.

    Missing values are NaN. The axis of differences is linear, with a line at `zero`.
    """
    ax = axes_of(ax, 7.5, 0.8 + 0.3 * len(means))
    styles = styles or line_styles(means)
    for place, (name, mean) in enumerate(means.items()):
        ax.hlines(place, mean.low, mean.high, color=styles[name].colour, linewidth=1.6)
        ax.plot([mean.mean], [place], marker="o", markersize=5, color=styles[name].colour)
    if zero:
        ax.axvline(0, color=MUTED, linewidth=1, zorder=0)
    scale_axis(ax, "x", [[mean.mean, mean.low, mean.high] for mean in means.values()] + [[0, 0, 0]] * zero)
    policy_rows(ax, map(value_text, means))
    ax.set_ylim(len(means) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    return ax


@style()
def plot_ranks(ranking: Ranking, ax: Axes | None = None) -> Axes:
    """Draw a critical-difference diagram: average ranks, with bars that join policies without difference.

    The names are on the left, best first, so that they never collide. The bar at the top shows the length of
    the critical difference.

    Examples
    --------
    >>> from hpcsimkit.results.statistics import ranking_of
    >>> ranking = ranking_of({"fcfs": np.arange(9.0) + 2, "sjf": np.arange(9.0), "saf": np.arange(9.0) + 1})
    >>> [text.get_text() for text in plot_ranks(ranking).texts]
    ['critical difference 1.10']
    """
    groups = ranking.groups
    ax = axes_of(ax, 7.5, 1.0 + 0.22 * (len(ranking.ranks) + len(groups)))
    first, last = 1.0, float(len(ranking.ranks))
    ax.set_xlim(first - 0.02 * (last - first), last + 0.02 * (last - first))
    rows = {name: 0.6 * (len(groups) + 1) + place for place, name in enumerate(ranking.ranks)}
    for name, rank in ranking.ranks.items():
        ax.plot([ax.get_xlim()[0], rank, rank], [rows[name], rows[name], 0], color=INK, linewidth=0.9)
    for place, group in enumerate(groups):
        ends = [ranking.ranks[group[0]] - 0.04, ranking.ranks[group[-1]] + 0.04]
        ax.plot(ends, [0.6 * (place + 0.8)] * 2, color=INK, linewidth=3.2, solid_capstyle="butt")
    end = first + ranking.critical_difference
    ax.plot([first, end], [-1.5, -1.5], color=INK, linewidth=1.2, marker="|", markersize=6, clip_on=False)
    above: dict[str, Any] = {"xytext": (0, 4), "textcoords": "offset points", "annotation_clip": False}
    ax.annotate(f"critical difference {ranking.critical_difference:.2f}", (first, -1.5), fontsize=8, **above)
    ax.set_yticks(list(rows.values()), [wrapped(value_text(name), 40) for name in rows])
    ax.set_ylim(max(rows.values()) + 0.5, 0)
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(first, last + 1, max(1, round(last / 12))))
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.spines["top"].set_visible(True)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    return ax


def scale_axis(ax: Axes, name: Literal["x", "y"], values: ArrayLike) -> None:
    """Label an axis with plain numbers; make it logarithmic if its positive values span two decades."""
    from matplotlib.ticker import NullLocator

    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if len(known) and known.min() > 0 and known.max() > LOGARITHMIC * known.min():
        ax.set(**{f"{name}scale": "log"})
    axis = ax.xaxis if name == "x" else ax.yaxis
    axis.set_major_formatter(lambda value, _: format_number(value))
    axis.set_minor_locator(NullLocator())


def _ticks_at(ax: Axes, values: NDArray[np.float64]) -> None:
    """Set the ticks of the horizontal axis at the values, if these are few and their labels do not touch."""
    places = 72 / ax.figure.dpi * ax.transData.transform([(value, 1) for value in values])[:, 0]
    longest = max(len(format_number(value)) for value in values)
    if len(values) <= MOST_TICKS and (np.diff(places) > 5.5 * longest).all():
        ax.set_xticks(values, [format_number(value) for value in values])
