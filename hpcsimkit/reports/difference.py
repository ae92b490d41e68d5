"""Pictures of the differences between schedules: each policy against the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.reports.classes import TOP, groups_of
from hpcsimkit.reports.figures import (
    DAY,
    GRID,
    HEAT,
    HOUR,
    INK,
    MINUTE,
    MODE_COLOURS,
    ON_MODE,
    Line,
    axes_of,
    format_duration,
    legend_above,
    legend_columns,
    line_styles,
    new_figure,
    policy_rows,
    style,
    title,
    wrapped,
)
from hpcsimkit.reports.given import Given, results_of
from hpcsimkit.reports.picture import WIDTH, Picture
from hpcsimkit.reports.plots import CENTRED, POINTS, Results
from hpcsimkit.results.breakdown import By
from hpcsimkit.results.difference import MOVES, compare_results, summarize_moves
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["draw_difference", "plot_changes", "plot_moves"]

Moves: TypeAlias = Mapping[str, Any]
"""Tables of :func:`~hpcsimkit.results.difference.compare_results` by the name of the second policy."""

COLOURS = {
    "earlier": (HEAT, INK),
    "same": (GRID, INK),
    "later": (MODE_COLOURS["backfilled"], ON_MODE["backfilled"][0]),
}
"""Colours of bars, and of texts on them."""

LENGTHS = {"1 min": MINUTE, "1 h": HOUR, "1 d": DAY, "100 d": 100 * DAY}


def draw_difference(results: Results) -> Picture | None:
    """Return the changes of start times from the first policy to each other one; None for one policy."""
    first, *others = results
    moves = {name: compare_results(results[first], results[name]) for name in others}
    if not any(table.change.notna().any() for table in moves.values()):
        return None
    styles = {name: line for name, line in line_styles(results).items() if name in moves}
    rows = -(-len(others) // legend_columns(others, WIDTH))
    figure = new_figure(WIDTH, 1.8 + 0.17 * rows + 0.3 * max(len(others), 4), columns=2)
    changes, shares = figure.axes
    title(plot_changes(moves, changes, styles=styles), "Change of the start time")
    title(plot_moves(moves, shares), "Jobs that moved")
    legend_above(figure, styles)
    first_result = results[first]
    ways: dict[By, str] = {"size": f"size [{first_result.unit}]", **groups_of(first_result)}
    return Picture(
        "difference",
        f"Difference from {first}",
        f"Jobs that start earlier or later than under {first}. Left: a curve left of 0 has jobs that start "
        "earlier, one right of it jobs that start later. Right: the shares of both. The tables below show "
        "which jobs moved: earlier / same / later [%], and the mean change of the start time.",
        f"Start time under a policy minus that under {first}, jobs that ran under both; logarithmic axes "
        f"beyond 1 minute on both sides of 0. A curve has at most {POINTS} points.",
        figure,
        tuple((f"By {name}", _table(results, by)) for by, name in ways.items()),
    )


def _moves_of(given: Given | Moves) -> Moves:
    """Return the tables of moves that a plot is given, or those of its results against the first one."""
    kept = list(given.values()) if isinstance(given, Mapping) else []
    if kept and not any(isinstance(each, Result) for each in kept):
        return cast("Moves", given)
    (_, first), *others = results_of(cast("Given", given)).items()
    if not others:
        raise UsageError("differences need two results, found one")
    return {name: compare_results(first, result) for name, result in others}


@style()
def plot_changes(
    results: Given | Moves,
    ax: Axes | None = None,
    *,
    styles: Mapping[str, Line] | None = None,
) -> Axes:
    """Draw the cumulative distributions of changes of start times [% of jobs].

    Parameters
    ----------
    results : mapping of str to Result or to DataFrame
        Results, each compared with the first one; or tables of
        :func:`~hpcsimkit.results.difference.compare_results` by the name of the second policy.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    styles : mapping of str to Line, optional
        Styles of the curves; by default those of `line_styles`.
    """
    moves, ax = _moves_of(results), axes_of(ax)
    for name, table in moves.items():
        colour, dash, _ = (styles or line_styles(moves))[name]
        change = np.sort(table.change.dropna().to_numpy())
        if len(change):
            rows = np.unique(np.linspace(0, len(change) - 1, POINTS).astype(int))
            share = 100 * (rows + 1) / len(change)
            ax.plot(
                change[rows], share, color=colour, linestyle=dash, label=wrapped(name), drawstyle="steps-post"
            )
    largest = max(float(table.change.abs().max()) for table in moves.values())
    shown = {label: at for label, at in LENGTHS.items() if at <= max(largest, HOUR)}
    before = {f"-{label}": -at for label, at in reversed(shown.items())}
    ticks = {**before, "0": 0, **shown}
    ax.set_xscale("symlog", linthresh=MINUTE, linscale=1)
    ax.set_xticks(list(ticks.values()), list(ticks))
    ax.set_xticks([], minor=True)
    limit = 1.3 * max(largest, HOUR)
    ax.set(xlabel="change of the start time", ylabel="jobs with at most this change [%]")
    ax.set(xlim=(-limit, limit), ylim=(0, 101))
    ax.axvline(0, color=INK, linewidth=0.7)
    return ax


@style()
def plot_moves(results: Given | Moves, ax: Axes | None = None) -> Axes:
    """Draw the shares of jobs that start earlier, at the same time and later [%]: one bar per policy.

    Parameters are those of :func:`plot_changes`.
    """
    moves = _moves_of(results)
    ax = axes_of(ax, 5.0, 0.8 + 0.3 * len(moves))
    left = np.zeros(len(moves))
    for move, (colour, text) in COLOURS.items():
        share = np.array([100 * (table.move == move).mean() for table in moves.values()])
        ax.barh(range(len(moves)), share, left=left, height=0.7, color=colour, label=move)
        for place in np.flatnonzero(share >= 6):
            ax.text(
                left[place] + share[place] / 2, float(place), f"{share[place]:.0f} %", color=text, **CENTRED
            )
        left += share
    policy_rows(ax, moves)
    ax.set(xlabel="jobs [%]", xlim=(0, 100), ylim=(len(moves) - 0.4, -0.6))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4.5, ncols=3, handlelength=1.2)
    return ax


def _table(results: Results, by: By) -> pandas.DataFrame:
    """Return the moves of each class under each policy as texts."""
    first, *others = results
    top = None if by == "size" else TOP
    summaries = {name: summarize_moves(results[first], results[name], by, top=top) for name in others}
    frame = next(iter(summaries.values()))[["jobs"]].map("{:,}".format)
    return frame.assign(**{name: table.apply(_cell, axis=1) for name, table in summaries.items()})


def _cell(row: pandas.Series) -> str:
    """Return the shares of moves and the mean change of a class."""
    shares = " / ".join(f"{100 * row[move] / row.jobs:.0f}" for move in MOVES[:3])
    return f"{shares}, {'+' if row.mean_change > 0 else ''}{format_duration(row.mean_change)}"
