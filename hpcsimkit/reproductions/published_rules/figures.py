"""Figures: rules and agents on logarithmic axes, seeds, and schedules of the minimal cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import (
    INK,
    MODE_COLOURS,
    MUTED,
    PAPER,
    POLICY_COLOURS,
    new_figure,
    style,
    title,
)
from hpcsimkit.reports.plots import apart
from hpcsimkit.results.result import MODE_NAMES, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Seeds", "draw_cases", "draw_means", "draw_seeds"]

BLUE, RED, GREEN, PURPLE, GOLD = POLICY_COLOURS[1:6]

MARKS = {
    "published rules": ("o", INK),
    "textbook": ("o", BLUE),
    "published agent": ("D", RED),
    "reject iff unfit": ("^", GOLD),
    "unguarded shortest": ("^", PURPLE),
    "guarded shortest": ("v", GREEN),
    "textbook, SJF candidates": ("s", BLUE),
}
"""Marker and colour of each series; the first is hollow."""

Means = Mapping[str, Mapping[str, float]]
"""Means by line and series."""


def _look(kind: str) -> dict[str, Any]:
    """Return the properties of a marker; hollow ones are larger, to be visible around others."""
    (marker, colour), filled = MARKS[kind], kind != "published rules"
    return {
        "marker": marker,
        "markersize": 5 if filled else 8,
        "linestyle": "none",
        "markerfacecolor": colour if filled else "none",
        "markeredgecolor": colour,
        "markeredgewidth": 0.5 if filled else 1.2,
    }


@style()
def draw_means(panels: Mapping[str, Means], *, stacked: bool) -> Figure:
    """Return a figure of means of the bounded slowdown: a panel for each title, a line for each scheduler.

    Parameters
    ----------
    panels : mapping of str to mapping
        Means by title, line and series; series are those of `MARKS`. NaN for what is not known.
    stacked : bool
        Whether panels with lines of their own are one above the other; otherwise they are side by side, have
        the same lines, and logs are separated.
    """
    heights = [len(lines) + 2 for lines in panels.values()]
    if stacked:
        grid: dict[str, Any] = {"rows": len(panels), "height_ratios": heights, "sharex": True}
        figure = new_figure(7.5, 0.9 + 0.2 * sum(heights), **grid)
    else:
        figure = new_figure(8.0, 0.72 + 0.19 * heights[0], columns=len(panels), sharey=True, sharex=True)
    for ax, (words, lines) in zip(figure.axes, panels.items(), strict=True):
        _draw_lines(lines, ax)
        title(ax, words)
        if not stacked:
            _separate(list(lines), ax)
    for ax in figure.axes[-1:] if stacked else figure.axes:
        ax.set_xlabel("mean bounded slowdown")
    _legend(figure, [values for lines in panels.values() for values in lines.values()])
    return figure


def _draw_lines(lines: Means, ax: Axes) -> None:
    """Draw rows of markers, each with a line from the smallest to the largest value."""
    for place, values in enumerate(lines.values()):
        known = {kind: value for kind, value in values.items() if np.isfinite(value)}
        ax.plot([min(known.values()), max(known.values())], [place] * 2, color=MUTED, linewidth=0.9, zorder=2)
        for kind, value in known.items():
            ax.plot([value], [place], zorder=3 + (kind == "published rules"), **_look(kind))
    _logarithmic(list(lines), ax, ticks=(1, 3))


def _logarithmic(names: Sequence[str], ax: Axes, ticks: Sequence[int]) -> None:
    """Set a logarithmic axis of values, and an axis of named lines from top to bottom."""
    from matplotlib.ticker import LogLocator

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=ticks))
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)


def _separate(names: Sequence[str], ax: Axes) -> None:
    """Draw a line between logs."""
    logs = [name.split()[0] for name in names]
    for place in range(1, len(logs)):
        if logs[place] != logs[place - 1]:
            ax.axhline(place - 0.5, color=MUTED, linewidth=0.5)


def _legend(figure: Figure, lines: Sequence[Mapping[str, float]]) -> None:
    from matplotlib.lines import Line2D

    shown = [kind for kind in MARKS if any(np.isfinite(values.get(kind, np.nan)) for values in lines)]
    handles = [Line2D([], [], label=kind, **_look(kind)) for kind in shown]
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(shown), 4))


class Seeds(NamedTuple):
    """Means of a test with many seeds, and the published one, NaN if there is none."""

    means: NDArray[np.float64]
    published: float


@style()
def draw_seeds(lines: Mapping[str, Seeds]) -> Figure:
    """Return a figure of tests with many seeds: a dot per seed, as a ratio to their mean."""
    figure = new_figure(7.5, 0.9 + 0.26 * len(lines))
    ax = figure.axes[0]
    for place, (means, published) in enumerate(lines.values()):
        ratios = np.sort(means) / means.mean()
        ax.plot(
            ratios, place + apart(len(ratios)), "o", color=BLUE, alpha=0.5, markersize=3, markeredgewidth=0
        )
        if np.isfinite(published):
            ratio = published / means.mean()
            ax.plot([ratio], [place], "D", color=RED, markeredgecolor=PAPER, markersize=6)
    ax.axvline(1, color=MUTED, linewidth=0.8, zorder=1)
    _logarithmic(list(lines), ax, ticks=(1, 2, 5))
    ax.set_xlabel("mean of a test, as a ratio to the mean of all seeds (diamond: the published one)")
    return figure


# --- cases ---------------------------------------------------------------------------------------------

STARTS = {
    "at once": MODE_COLOURS["ready"],
    "after a reservation": MODE_COLOURS["reserved"],
    "behind a blocked job": MODE_COLOURS["backfilled"],
}
"""Colours of jobs, by start type."""


@style()
def draw_cases(cases: Mapping[str, Sequence[Result]]) -> Figure:
    """Return a figure of minimal cases by title: schedules under published and textbook semantics."""
    from matplotlib.patches import Patch

    figure = new_figure(7.5, 1.45 * len(cases) + 0.5, rows=len(cases), columns=2, sharex="row")
    for number, (name, results) in enumerate(cases.items()):
        axes = figure.axes[2 * number : 2 * number + 2]
        for ax, result, words in zip(axes, results, (name, "textbook"), strict=True):
            _draw_schedule(result, ax)
            title(ax, words)
        axes[0].set_xlim(0, 1.02 * max(float(result.end_time.max()) for result in results))
    for ax in figure.axes[-2:]:
        ax.set_xlabel("time [s]")
    patches = [Patch(color=colour, label=f"starts {words}") for words, colour in STARTS.items()]
    figure.legend(handles=patches, loc="outside upper left", ncols=3)
    return figure


def _draw_schedule(result: Result, ax: Axes) -> None:
    """Draw each job as a rectangle with its letter."""
    from matplotlib.patches import Rectangle

    for job, low in enumerate(_lowest_nodes(result)):
        start, end = float(result.start_time[job]), float(result.end_time[job])
        height = float(result.workload.nodes[job])
        mode = MODE_NAMES[result.mode[job]]
        look: dict[str, Any] = {"facecolor": MODE_COLOURS[mode], "edgecolor": PAPER, "linewidth": 1.2}
        ax.add_patch(Rectangle((start, low), end - start, height, **look))
        colour = PAPER if mode == "reserved" else INK
        middle = (start + end) / 2, low + height / 2
        ax.text(*middle, "ABCDE"[job], ha="center", va="center", color=colour, fontsize=8)
    ax.set(ylim=(0, result.size), ylabel="nodes")
    ax.set_yticks([0, result.size])
    ax.grid(visible=False)


def _lowest_nodes(result: Result) -> list[int]:
    """Return the lowest node of each job: concurrent jobs do not overlap, the largest jobs are lowest."""
    nodes, starts, ends = (
        each.tolist() for each in (result.workload.nodes, result.start_time, result.end_time)
    )
    lowest: dict[int, int] = {}
    for job in sorted(range(len(nodes)), key=lambda job: -nodes[job]):
        beside = [other for other in lowest if starts[other] < ends[job] and starts[job] < ends[other]]
        lows = [0, *(lowest[other] + nodes[other] for other in beside)]
        lowest[job] = min(
            low
            for low in lows
            if all(
                low >= lowest[other] + nodes[other] or low + nodes[job] <= lowest[other] for other in beside
            )
        )
    return [lowest[job] for job in range(len(nodes))]
