"""Figures in the style of the paper: Kiviat graphs, waits by size and mode, weeks, learning curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import (
    DAY,
    HOUR,
    INK,
    MINUTE,
    MODE_COLOURS,
    MUTED,
    POLICY_COLOURS,
    Line,
    count_axis,
    legend_above,
    new_figure,
    panels,
    style,
    title,
)
from hpcsimkit.reports.plots import plot_boxes
from hpcsimkit.results.result import MODE_NAMES, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ADDED_RULES",
    "AXES",
    "CHANCE",
    "DRAS",
    "FAMILIES",
    "FCFS",
    "LARGE",
    "OPTIMIZATION",
    "SJF_EASY",
    "Weeks",
    "draw_kiviat",
    "draw_learning",
    "draw_modes",
    "draw_sizes",
    "draw_weeks",
    "kiviat",
    "look_of",
    "waits_by_mode",
    "weekly",
]

Floats = NDArray[np.float64]

FCFS, OPTIMIZATION, SJF_EASY, CHANCE = "FCFS/EASY", "Optimization", "SJF/EASY", "Random, two levels"
ADDED_RULES = (SJF_EASY, CHANCE, "Shortest, two levels", "Largest, two levels")
DRAS = ("DRAS-DQL", "DRAS-PG", "DRAS-A2C", "DRAS-PPO")
FAMILIES = (FCFS, OPTIMIZATION, "BinPacking", "Random", "Decima-PG", *DRAS)
"""Rows of the paper."""

LARGE = 0.2
"""Share of the nodes from which a job counts as one of the largest."""

WEEK = 7 * DAY

AXES: Mapping[str, str] = {
    "mean_wait_time": "mean wait",
    "max_wait_time": "maximum wait",
    "mean_response_time": "mean response",
    "mean_slowdown": "mean slowdown",
    "utilisation": "utilisation",
}
"""Axes of the Kiviat graph: measures and labels; for utilisation more is better."""

MORE_IS_BETTER = ("utilisation",)

POINTS = 3000
"""Maximum number of evenly spaced jobs in a panel; the longest waits are always included."""

LONGEST_SHOWN = 100

COLOURS = dict(zip(FAMILIES, (0, 5, 6, 7, 2, 4, 2, 3, 1), strict=True))
"""Colour indices of policies. Decima-PG has that of DRAS-PG, but is dashed."""


GREY_DASHES: tuple[Any, ...] = ("dotted", "dashdot", (0, (1, 4)), (0, (7, 4)))
"""Line styles of rules that the paper lacks."""


def look_of(family: str) -> Line:
    """Return the line style of a policy.

    Policies of the paper have solid lines with reservations and dashed lines without; all others are grey.
    >>> look_of("DRAS-PPO").dash, look_of("Optimization").dash
    ('solid', 'dashed')
    """
    if family in ADDED_RULES:
        return Line(MUTED, GREY_DASHES[ADDED_RULES.index(family)], "")
    return Line(POLICY_COLOURS[COLOURS[family]], "solid" if family in (FCFS, *DRAS) else "dashed", "")


def kiviat(values: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the scaled measures of each policy, from 0, the worst of all, to 1, the best.

    Parameters
    ----------
    values : mapping of str to mapping of str to float
        Measures by policy and key of `AXES`. (If all are equal, all are scaled to 1.)

    Examples
    --------
    >>> worst = dict.fromkeys(AXES, 5.0) | {"utilisation": 0.5}
    >>> good = dict.fromkeys(AXES, 1.0) | {"utilisation": 0.5}
    >>> middle = dict.fromkeys(AXES, 2.0) | {"utilisation": 0.5}
    >>> kiviat({"worst": worst, "good": good, "middle": middle})["middle"]
    [0.75, 0.75, 0.75, 0.75, 1.0]
    """
    columns = []
    for measure in AXES:
        column = np.array([each[measure] for each in values.values()])
        good = column if measure in MORE_IS_BETTER else -column
        width = good.max() - good.min()
        columns.append((good - good.min()) / width if width > 0 else np.ones(len(good)))
    return dict(zip(values, np.transpose(columns).tolist(), strict=True))


@style()
def draw_kiviat(logs: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Return a figure with a Kiviat graph per log; 1, at the rim, is the best of all policies, 0 the worst.

    Parameters
    ----------
    logs : mapping of str to mapping of str to sequence of float
        Values by log and policy, as returned by :func:`kiviat`.
    """
    figure = new_figure(5.0 * len(logs) + 0.6, 5.2, columns=len(logs), subplot_kw={"projection": "polar"})
    angles = np.linspace(0, 2 * np.pi, len(AXES), endpoint=False)
    for ax, (log, families) in zip(figure.axes, logs.items(), strict=True):
        polar: Any = ax
        polar.set_theta_offset(np.pi / 2)
        polar.set_theta_direction(-1)
        for family, values in families.items():
            look = look_of(family)
            around = np.append(angles, angles[0])
            ax.plot(around, [*values, values[0]], color=look.colour, linestyle=look.dash, linewidth=1.6)
        ax.set_xticks(angles, list(AXES.values()))
        ax.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"])
        ax.set_ylim(-0.12, 1.03)
        ax.tick_params(axis="x", pad=10)
        ax.set_title(log, loc="left", fontsize=9, fontweight="bold", pad=22)
    shown = dict.fromkeys(family for families in logs.values() for family in families)
    legend_above(figure, {family: look_of(family) for family in shown}, most=5)
    return figure


@style()
def draw_sizes(results: Mapping[str, Result]) -> Figure:
    """Return a figure with a panel per policy: waits over sizes, coloured by start mode.

    Each panel has its own scale; the vertical line marks the size from which jobs count as large.
    """
    figure, columns = panels(len(results), 3.1, 2.3)
    for number, (ax, (family, result)) in enumerate(zip(figure.axes, results.items(), strict=False)):
        rows = _shown(result.wait_time)
        for mode, colour in MODE_COLOURS.items():
            mine = rows[result.mode[rows] == MODE_NAMES.index(mode)]
            ax.plot(result.amount[mine], result.wait_time[mine] / DAY, color=colour, **_dots())
        ax.axvline(LARGE * result.size, color=MUTED, linewidth=0.8, linestyle="dotted")
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        ax.set_ylim(bottom=0)
        title(ax, family)
        if number % columns == 0:
            ax.set_ylabel("wait [d]")
        if number >= len(results) - columns:
            ax.set_xlabel("nodes")
    legend_above(figure, {mode: Line(colour, "solid", "") for mode, colour in MODE_COLOURS.items()})
    return figure


def _shown(waits: Floats) -> NDArray[np.intp]:
    """Return the rows of the jobs in a panel: every n-th job of the log, and the longest waits."""
    step = max(1, math.ceil(len(waits) / POINTS))
    return np.union1d(np.arange(0, len(waits), step), np.argsort(waits)[-LONGEST_SHOWN:])


def _dots() -> Mapping[str, Any]:
    return {"linestyle": "none", "marker": "o", "markersize": 2.2, "markeredgewidth": 0, "alpha": 0.6}


def waits_by_mode(result: Result) -> dict[str, Floats]:
    """Return the waits of jobs [s] by start mode, without modes that do not occur."""
    found = {name: result.wait_time[result.mode == number] for number, name in enumerate(MODE_NAMES)}
    return {name: waits for name, waits in found.items() if len(waits)}


@style()
def draw_modes(results: Mapping[str, Result]) -> Figure:
    """Return a figure with a panel per start mode: boxes of waits [min, at least 1], one policy per row."""
    found = {family: waits_by_mode(result) for family, result in results.items()}
    panels = {
        mode: {
            family: np.maximum(waits.get(mode, np.zeros(0)) / MINUTE, 1.0) for family, waits in found.items()
        }
        for mode in MODE_COLOURS
    }
    figure = new_figure(7.5, 1.2 + 0.7 * len(results), rows=len(panels), sharex=True)
    for ax, (mode, waits) in zip(figure.axes, panels.items(), strict=True):
        plot_boxes(waits, ax)
        title(ax, mode)
    figure.axes[-1].set_xlabel("wait [min], logarithmic")
    return figure


class Weeks(NamedTuple):
    """A schedule week by week, by submission of the jobs.

    Parameters
    ----------
    load : array of float, shape (weeks,)
        Submitted node-seconds as a share of the machine's capacity in a week.
    mean, longest : array of float, shape (weeks,)
        Mean and longest waits [s]; NaN in weeks without jobs.
    """

    load: Floats
    mean: Floats
    longest: Floats


def weekly(result: Result) -> Weeks:
    """Return load and waits of the jobs of each week, counted from the first submission.

    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 0, 2 * WEEK], "run_time": [WEEK // 2, 10, WEEK], "nodes": [1, 1, 1]}
    >>> found = weekly(Simulation(Workload(columns, machine_size=1), Pipeline()).run())
    >>> found.load.round(3).tolist(), found.mean.tolist(), found.longest.tolist()
    ([0.5, 0.0, 1.0], [151200.0, nan, 0.0], [302400.0, nan, 0.0])
    """
    import pandas

    week = (result.submit_time - result.submit_time.min()) // WEEK
    count = int(week.max()) + 1
    area = np.bincount(week, result.amount * result.run_time, minlength=count)
    waits = pandas.Series(result.wait_time).groupby(week).agg(["mean", "max"]).reindex(range(count))
    return Weeks(area / (WEEK * result.size), *waits.to_numpy(dtype=float).T)


@style()
def draw_weeks(results: Mapping[str, Result]) -> Figure:
    """Return a figure over the weeks of a test: load, and mean and longest waits of several policies."""
    weeks = {name: weekly(result) for name, result in results.items()}
    figure = new_figure(8.5, 6.2, rows=3, sharex=True, gridspec_kw={"height_ratios": [1.0, 1.6, 1.6]})
    load, mean, longest = figure.axes
    first = next(iter(weeks.values()))
    number = np.arange(1, len(first.load) + 1)
    load.bar(number, 100 * first.load, width=0.85, color=MUTED)
    load.axhline(100, color=INK, linewidth=0.8)
    looks = _looks_of_weeks(weeks)
    for name, each in weeks.items():
        look: dict[str, Any] = {"color": looks[name].colour, "linestyle": looks[name].dash, "linewidth": 1.3}
        mean.plot(number, each.mean / HOUR, **look)
        longest.plot(number, each.longest / DAY, **look)
    for ax, label in zip(figure.axes, ("load [%]", "mean wait [h]", "longest wait [d]"), strict=True):
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
    longest.set_xlim(0.3, len(number) + 0.7)
    longest.set_xlabel("week of submission")
    legend_above(figure, looks)
    figure.align_ylabels()
    return figure


def _looks_of_weeks(weeks: Mapping[str, Weeks]) -> dict[str, Line]:
    """Return distinguishable lines: two baselines, and a static, a sampling and a learning agent."""
    looks = ((0, "solid"), (5, "dashed"), (1, "solid"), (4, "dotted"), (2, "solid"))
    return {
        name: Line(POLICY_COLOURS[colour], dash, "")
        for name, (colour, dash) in zip(weeks, looks, strict=False)
    }


@style()
def draw_learning(
    curves: Mapping[str, Sequence[Floats]], rivals: Mapping[str, float], looks: Mapping[str, Line]
) -> Figure:
    """Return a figure of the validation rewards of agents after each episode.

    Parameters
    ----------
    curves : mapping of str to sequence of array of float, shape (episodes,)
        Validation rewards by type of agent, one curve for each seed: the line is their mean, the band their
        range.
    rivals : mapping of str to float
        Validation rewards of baselines, drawn as horizontal lines.
    looks : mapping of str to Line
        Line styles of agents and baselines.
    """
    figure = new_figure(8.0, 4.2)
    ax = figure.axes[0]
    for name, runs in curves.items():
        count = min(map(len, runs))
        values, look = np.array([run[:count] for run in runs]), looks[name]
        episodes = np.arange(1, count + 1)
        ax.plot(episodes, values.mean(axis=0), color=look.colour, linestyle=look.dash, linewidth=1.5)
        if len(runs) > 1:
            ax.fill_between(
                episodes, values.min(axis=0), values.max(axis=0), color=look.colour, alpha=0.15, linewidth=0
            )
    for name, value in rivals.items():
        ax.axhline(value, color=looks[name].colour, linestyle=looks[name].dash, linewidth=1.1)
    ax.set_xlabel("episode")
    ax.set_ylabel("reward on the month to choose by")
    count_axis(ax.xaxis)
    legend_above(figure, {name: looks[name] for name in (*curves, *rivals)}, most=4)
    return figure
