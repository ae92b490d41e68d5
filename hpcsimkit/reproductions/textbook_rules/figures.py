"""A figure of all sequences: each policy relative to the better heuristic, log by log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.reports.figures import INK, MUTED, PAPER, POLICY_COLOURS, new_figure, style, title
from hpcsimkit.reproductions.textbook_rules.verdicts import Judged, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["colour_of", "draw_ratios"]

COLUMNS = 3
FARTHEST = 10.0
"""Largest ratio drawn; larger ratios, and ratios below its reciprocal, are drawn at the edge."""

BLUE, RED, GREEN = POLICY_COLOURS[1], POLICY_COLOURS[2], POLICY_COLOURS[3]


@style()
def draw_ratios(logs: Sequence[Judged]) -> Figure:
    """Return a figure with a panel per log and a row per policy: a dot per sequence, and the mean.

    Dots are ratios of mean bounded slowdowns to those of the better heuristic on the same sequences, on a
    logarithmic axis; the diamond is their geometric mean, with its interval. Learned rows are blue, or green
    if significantly below the baseline, or red if significantly above it; other rows are grey.
    """
    rows = list(logs[0].scores.values)
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
        _draw_log(ax, log, rows)
        title(ax, f"{log.name}, over {log.rival}")
        if number >= len(logs) - columns:
            ax.tick_params(labelbottom=True)
    for ax in figure.axes[len(logs) :]:
        ax.set_axis_off()
    figure.supxlabel("mean bounded slowdown of a sequence over that of the better heuristic", fontsize=8.5)
    return figure


def _draw_log(ax: Axes, log: Judged, rows: Sequence[str]) -> None:
    ratios, verdicts = log.ratios(), log.verdicts
    ax.axvline(1, color=INK, linewidth=0.9, zorder=1)
    for place, row in enumerate(rows):
        if row not in ratios:
            ax.text(1.06, place, "the rival itself", va="center", fontsize=6.5, color=MUTED)
            continue
        verdict, colour = verdicts[row], colour_of(log, row)
        shown = np.clip(np.sort(ratios[row]), 1 / FARTHEST, FARTHEST)
        spread = np.arange(len(shown)) * 0.618 % 1  # golden ratio: keeps neighbouring dots apart
        ax.plot(shown, place - 0.3 + 0.6 * spread, color=colour, alpha=0.4, **_dots())
        _draw_mean(ax, verdict, place, colour)
    ax.set_xscale("log")
    ax.set_xlim(1 / FARTHEST / 1.15, FARTHEST * 1.15)
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)


def _draw_mean(ax: Axes, verdict: Verdict, place: int, colour: str) -> None:
    ratio = verdict.ratio
    ends = np.clip([ratio.low, ratio.high], 1 / FARTHEST, FARTHEST)
    ax.plot(ends, [place, place], color=colour, linewidth=2.0, zorder=5)
    middle = float(np.clip(ratio.mean, 1 / FARTHEST, FARTHEST))
    ax.plot([middle], [place], "D", color=colour, markersize=4.6, markeredgecolor=PAPER, zorder=6)


def _dots() -> Mapping[str, Any]:
    return {"linestyle": "none", "marker": "o", "markersize": 1.9, "markeredgewidth": 0, "zorder": 3}


def colour_of(log: Judged, row: str) -> str:
    """Return the colour of a row, by learned or not, and by the significance of its difference."""
    if row not in log.learned:
        return MUTED
    verdict = log.learned[row]
    return GREEN if verdict.is_better else RED if verdict.is_worse else BLUE
