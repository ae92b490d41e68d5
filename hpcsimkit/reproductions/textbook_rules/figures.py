"""A figure of all sequences: each policy relative to the better heuristic, log by log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import INK, MUTED, PAPER, POLICY_COLOURS, new_figure, style, title
from hpcsimkit.reports.plots import apart
from hpcsimkit.results.statistics import Mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "RED", "Dots", "Panel", "draw_ratios"]

COLUMNS = 3
FARTHEST = 10.0
"""Largest ratio drawn; larger ratios, and ratios below its reciprocal, are drawn at the edge."""

BLUE, RED, GREEN = POLICY_COLOURS[1], POLICY_COLOURS[2], POLICY_COLOURS[3]


class Dots(NamedTuple):
    """Ratios of a row to the better heuristic, their geometric mean, and the colour of both."""

    ratios: NDArray[np.float64]
    mean: Mean
    colour: str


class Panel(NamedTuple):
    """Title and rows of a log; the row of the better heuristic itself has no dots."""

    title: str
    rows: Mapping[str, Dots | None]


@style()
def draw_ratios(logs: Sequence[Panel]) -> Figure:
    """Return a figure with a panel per log and a row per policy: a dot per sequence, and the mean.

    Dots are ratios of mean bounded slowdowns to those of the better heuristic on the same sequences, on a
    logarithmic axis; the diamond is their geometric mean, with its interval.
    """
    rows = logs[0].rows
    columns = min(COLUMNS, len(logs))
    lines = -(-len(logs) // columns)
    figure = new_figure(
        2.3 + 2.5 * columns,
        0.9 + lines * (0.35 + 0.21 * len(rows)),
        rows=lines,
        columns=columns,
        sharex=True,
        sharey=True,
    )
    for number, (ax, log) in enumerate(zip(figure.axes, logs, strict=False)):
        _draw_log(ax, log.rows)
        title(ax, log.title)
        if number >= len(logs) - columns:
            ax.tick_params(labelbottom=True)
    for ax in figure.axes[len(logs) :]:
        ax.set_axis_off()
    figure.supxlabel("mean bounded slowdown of a sequence over that of the better heuristic", fontsize=8.5)
    return figure


def _draw_log(ax: Axes, rows: Mapping[str, Dots | None]) -> None:
    ax.axvline(1, color=INK, linewidth=0.9, zorder=1)
    for place, dots in enumerate(rows.values()):
        if dots is None:
            ax.text(1.06, place, "the rival itself", va="center", fontsize=6.5, color=MUTED)
            continue
        shown = np.clip(np.sort(dots.ratios), 1 / FARTHEST, FARTHEST)
        ax.plot(shown, place + apart(len(shown)), color=dots.colour, alpha=0.4, **_look())
        _draw_mean(ax, dots, place)
    ax.set_xscale("log")
    ax.set_xlim(1 / FARTHEST / 1.15, FARTHEST * 1.15)
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)


def _draw_mean(ax: Axes, dots: Dots, place: int) -> None:
    low, high, middle = np.clip([dots.mean.low, dots.mean.high, dots.mean.mean], 1 / FARTHEST, FARTHEST)
    ax.plot([low, high], [place, place], color=dots.colour, linewidth=2.0, zorder=5)
    ax.plot([middle], [place], "D", color=dots.colour, markersize=4.6, markeredgecolor=PAPER, zorder=6)


def _look() -> Mapping[str, Any]:
    return {"linestyle": "none", "marker": "o", "markersize": 1.9, "markeredgewidth": 0, "zorder": 3}
