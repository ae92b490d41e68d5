"""Pictures of a sweep, with their titles, explanations and captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.reports.figures import (
    legend_above,
    legend_columns,
    line_styles,
    new_figure,
    style,
    title,
)
from hpcsimkit.reports.picture import WIDTH, Picture
from hpcsimkit.reports.sweep.plots import plot_intervals, plot_means, plot_ranks, scale_axis
from hpcsimkit.reports.sweep.summaries import differences, direction_of, means, ranks
from hpcsimkit.reports.sweep.table import POLICY, SweepTable
from hpcsimkit.reports.sweep.texts import INTERVAL, file_name, joined, metric_label, rank_note, value_text
from hpcsimkit.results.statistics import Mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

COLUMN, TWO_COLUMNS = 3.5, 7.16
"""Widths of figures for papers with two columns: in one column, and over both [inches]."""

PANEL = 3.2
"""Least width of a panel [inches]."""

LETTERS = 11.5
"""Letters of a heading in an inch."""

MOST_PANELS = 12
"""Largest number of panels of a picture."""


def draw_metric(table: SweepTable, metric: str, *, paper: bool = False) -> Iterator[Picture]:
    """Yield the pictures of a metric: means, differences to the baseline and ranks, as far as defined.

    If `paper`, pictures are as wide as one column of a paper, or as two if they have several panels;
    otherwise as wide as a page on a screen.
    """
    for picture in _pictures(table, metric, paper):
        with style():
            picture.figure.draw_without_rendering()
        picture.figure.set_layout_engine("none")  # the layout is slow, and the same for all formats
        yield picture


def _pictures(table: SweepTable, metric: str, paper: bool) -> Iterator[Picture]:
    if means(table, metric, table.settings)["mean"].count() > 1:
        for axis in table.numeric or [None]:
            yield _means(table, metric, axis, paper)
    yield from _differences(table, metric, paper)
    yield from _ranks(table, metric, paper)


def _means(table: SweepTable, metric: str, axis: str | None, paper: bool) -> Picture:
    """Draw means along a numeric axis, or as dots without one: a panel for each of the other settings."""
    found, words = means(table, metric, table.settings), _heading(metric)
    others = [name for name in table.settings if name != axis]
    groups = list(found.groupby(others, observed=True)) if others else [((), found)]
    width = _width(min(len(groups), MOST_PANELS), paper)
    columns = max(min(len(groups), int(width / PANEL)), 1)
    rows = -(-min(len(groups), MOST_PANELS) // columns)
    names = {value_text(name): line for name, line in line_styles(table.policies).items()}
    height = 2.5 if axis else 0.6 + 0.24 * len(names)
    legend = 0.17 * -(-len(names) // legend_columns(names, width)) if axis else 0
    size = (width, 0.45 + rows * height + legend, rows, columns)
    figure = new_figure(*size, sharex=True, sharey=True)
    for ax in figure.axes[len(groups) :]:
        ax.remove()
    for ax, (key, group) in zip(figure.axes, groups, strict=False):
        if axis:
            plot_means(_lines(table, group, axis), table.axes[axis], ax)
        else:
            plot_intervals(_by_policy(group, "mean"), ax)
        title(ax, fill(_setting(others, key), int(LETTERS * (width / columns - 0.6))))
    scale_axis(figure.axes[0], "y" if axis else "x", found[["mean", "low", "high"]])  # shared by all panels
    _label(figure.axes, columns, axis or metric_label(metric), metric_label(metric) if axis else "")
    if axis:
        legend_above(figure, names)
    bars = "Without replicates there are no intervals."
    if table.repetitions > 1:
        bars = f"Bars are {INTERVAL}s over {joined(table.replicates)} (BCa bootstrap)."
    each = f", a panel for each {joined(others)}" if others else ""
    shown = len(figure.axes)
    cut = f" The first {shown} of {len(groups)} combinations; the tables have all of them."
    return Picture(
        f"{metric}_along_{file_name(axis)}" if axis else f"{metric}_means",
        f"{words} along {axis}" if axis else words,
        f"{_better(metric)} {bars}",
        f"{words}{each}.{cut if shown < len(groups) else ''}",
        figure,
    )


def _differences(table: SweepTable, metric: str, paper: bool) -> Iterator[Picture]:
    """Draw the paired differences to the baseline on one log, if they have intervals."""
    found = differences(table, metric)
    if table.logs or found.empty or found["replicates"].max() == 1:
        return
    figure = new_figure(_width(1, paper), 1.05 + 0.24 * len(found))
    styles = line_styles(table.policies)
    ax = plot_intervals(_by_policy(found, "difference"), figure.axes[0], styles=styles, zero=True)
    ax.set_xlabel(f"{metric_label(metric)}, minus that of {value_text(table.baseline)}")
    over = f" Means over {joined(table.settings)}." if table.settings else ""
    yield Picture(
        f"{metric}_differences",
        f"{_heading(metric)}: differences to {table.baseline}",
        f"{_better(metric)} An interval that contains 0 does not tell a policy from the baseline.",
        f"Paired by {joined(table.replicates)}, {INTERVAL}s (BCa bootstrap), not corrected for their number."
        f"{over}",
        figure,
    )


def _ranks(table: SweepTable, metric: str, paper: bool) -> Iterator[Picture]:
    """Draw the critical-difference diagram, if ranks are defined."""
    ranking = ranks(table, metric)
    if ranking is None:
        return
    figure = new_figure(_width(1, paper), 1.0 + 0.22 * (len(ranking.ranks) + len(ranking.groups)))
    plot_ranks(ranking, figure.axes[0])
    yield Picture(
        f"{metric}_ranks",
        f"{_heading(metric)}: average ranks",
        "A critical-difference diagram: a lower rank is better. Thick bars join policies without a "
        "significant difference between any two of them.",
        rank_note(ranking, table),
        figure,
    )


def _width(panels: int, paper: bool) -> float:
    return (COLUMN if panels == 1 else TWO_COLUMNS) if paper else WIDTH


def _label(axes: Sequence[Axes], columns: int, horizontal: str, vertical: str) -> None:
    """Label the lowest axes of each column and the first of each row."""
    for place, ax in enumerate(axes):
        lowest = place + columns >= len(axes)
        ax.tick_params(labelbottom=lowest, labelleft=place % columns == 0)
        ax.set_xlabel(horizontal if lowest else "")
        ax.set_ylabel("" if place % columns else vertical)


def _setting(names: Sequence[str], values: Sequence[Any]) -> str:
    """Return the heading of a panel; lines do not break at the equals signs."""
    return ", ".join(
        f"{name}\u00a0=\u00a0{value_text(value)}" for name, value in zip(names, values, strict=True)
    )


def _lines(table: SweepTable, rows: DataFrame, axis: str) -> dict[str, list[Mean]]:
    """Return the means of each policy at each value of an axis; NaN where there is no cell."""
    columns = rows.set_index([POLICY, axis])[["mean", "low", "high"]]
    missing = (np.nan, np.nan, np.nan)
    known = dict(zip(columns.index, columns.itertuples(index=False), strict=True))
    return {
        policy: [Mean(*known.get((policy, value), missing)) for value in table.axes[axis]]
        for policy in table.policies
    }


def _by_policy(rows: DataFrame, column: str) -> dict[str, Mean]:
    columns = rows[[POLICY, column, "low", "high"]]
    return {policy: Mean(*values) for policy, *values in columns.itertuples(index=False)}


def _heading(metric: str) -> str:
    words = metric.replace("_", " ")
    return words[:1].upper() + words[1:]


def _better(metric: str) -> str:
    better = {"lower": "Lower is better.", "higher": "Higher is better."}
    return better.get(direction_of(metric), "")
