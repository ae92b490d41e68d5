"""The pictures of the reports, beside boxes: curves of trainings, and bars of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import MUTED, POLICY_COLOURS, new_figure, panels, policy_rows, style, title
from hpcsimkit.reports.learning_curve import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 60
"""Maximum number of points of a line, the means of as many parts of a curve."""


@style()
def draw_curves(groups: Mapping[str, Sequence[Curve]], columns: Sequence[str]) -> Figure:
    """Return a figure with a panel for each group of trainings: a line for each of them and each column.

    Columns after the first have an axis of their own, on the right.
    """
    figure, across = panels(len(groups), 3.2, 2.2)
    for number, (ax, (name, curves)) in enumerate(zip(list(figure.axes), groups.items(), strict=False)):
        last = number % across == across - 1 or number == len(groups) - 1
        for place, column in enumerate(columns):
            axis = ax.twinx() if place else ax
            for curve in curves:
                axis.plot(*_binned(curve, column), color=POLICY_COLOURS[1 + place], linewidth=1.2)
            if last if place else number % across == 0:
                axis.set_ylabel(column.replace("_", " "), color=POLICY_COLOURS[1 + place])
        ax.axhline(0, color=MUTED, linewidth=0.8, linestyle="dashed")
        title(ax, name)
        if number >= len(groups) - across:
            ax.set_xlabel("thousands of steps")
    return figure


def _binned(curve: Curve, column: str) -> tuple[list[float], list[float]]:
    """Return the steps [thousands] and the means of a column in at most `BINS` parts of a curve.

    >>> curve = {"steps": np.array([1000.0, 2000.0, 3000.0]), "reward": np.array([1.0, np.nan, 3.0])}
    >>> _binned(curve, "reward"), _binned(curve, "rejected")
    (([1.0, 3.0], [1.0, 3.0]), ([], []))
    """
    values = curve.get(column, np.full(len(curve["steps"]), np.nan))
    known = np.flatnonzero(np.isfinite(values))
    parts = [part for part in np.array_split(known, min(BINS, len(known) or 1)) if len(part)]
    steps = [float(curve["steps"][part].mean()) / 1000 for part in parts]
    return steps, [float(values[part].mean()) for part in parts]


@style()
def draw_bars(lines: Mapping[str, Mapping[str, float]], label: str, *, logarithmic: bool = False) -> Figure:
    """Return a figure with a row for each line of a table, and a marker for each of its numbers."""
    columns = list(dict.fromkeys(column for numbers in lines.values() for column in numbers))
    figure = new_figure(7.5, 1.2 + 0.2 * len(lines) * max(len(columns), 1) ** 0.5)
    ax, height = figure.axes[0], 0.8 / max(len(columns), 1)
    for place, column in enumerate(columns):
        found: list[tuple[float, float]] = [
            (row + (place + 0.5) * height - 0.4, numbers[column])
            for row, numbers in enumerate(lines.values())
            if np.isfinite(numbers.get(column, np.nan))
        ]
        at: NDArray[np.float64] = np.array(found).reshape(-1, 2)
        colour = POLICY_COLOURS[place % len(POLICY_COLOURS)]
        if logarithmic:
            ax.plot(at[:, 1], at[:, 0], "o", color=colour, label=column, markersize=4)
        else:
            ax.barh(at[:, 0], at[:, 1], height, color=colour, label=column)
    if logarithmic:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    policy_rows(ax, lines)
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(label)
    ax.legend(loc="best")
    return figure
