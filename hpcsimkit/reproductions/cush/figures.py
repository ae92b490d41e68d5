"""Figures in the style of the paper: learning curves, classes of jobs, placements, cluster sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.classes import LENGTHS, SIZES, mean_of_class
from hpcsimkit.reports.figures import (
    INK,
    POLICY_COLOURS,
    Line,
    count_axis,
    legend_above,
    new_figure,
    style,
    title,
)
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.workloads.models.cush import CUSH_KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ALLOCATIONS",
    "BEST_ALLOCATION",
    "CUSH",
    "HEURISTICS",
    "NTAT",
    "REWARD",
    "SELECTORS",
    "WAIT",
    "draw_learning",
    "draw_lengths",
    "draw_penalties",
    "draw_placements",
    "draw_sizes",
]

Floats = NDArray[np.float64]
Values = Mapping[str, Mapping[str, Floats]]
"""Values by row and measure."""

NTAT, WAIT, REWARD = "mean_ntat", "mean_wait_time", "reward"
CUSH, BEST_ALLOCATION = "CuSH", "SJF (best allocation)"
SELECTORS, ALLOCATIONS = ("FCFS", "SJF", "DRF", "Rand"), ("DF", "BF")
"""Parts of the names of the paper's heuristics."""

POINTS = 40
"""Maximum number of points of a curve; each is the mean of an equal interval of the training."""

PANELS: Mapping[str, tuple[str, str]] = {
    "turnaround [steps]": ("turnaround", "mean_response_time"),
    "normalised turnaround": ("normalised_turnaround", NTAT),
    "wait [steps]": ("wait", WAIT),
    "rewards": ("reward", REWARD),
}
"""Panels of figure 4: labels, columns of learning curves, and measures of other policies."""

TAUGHT = "CuSH (taught, T = 10)"
SHOWN = (CUSH, "CuSH (fresh job sets, T = 10)", TAUGHT, "Evolved (best allocation)")
"""Groups of agents in the figures."""

HEURISTICS = tuple(f"{selector} {allocation}" for selector in SELECTORS for allocation in ALLOCATIONS)

COLOURS = dict(
    zip(
        (*SHOWN, BEST_ALLOCATION, *SELECTORS),
        (1, 4, 6, 3, 2, 0, 2, 5, 7),
        strict=True,
    )
)
"""Colour indices; the best allocation has that of SJF."""

DASHES = dict(zip(ALLOCATIONS, ("dotted", "dashed"), strict=True))


def look_of(name: str) -> Line:
    """Return the line style of a row or a selector: agents solid, depth-first dotted, breadth-first dashed.

    >>> look_of("CuSH").dash, look_of("SJF DF").dash, look_of("SJF").dash
    ('solid', 'dotted', 'solid')
    """
    selector, _, allocation = name.partition(" ") if name in HEURISTICS else (name, "", "")
    dash = "dashdot" if name == BEST_ALLOCATION else DASHES.get(allocation, "solid")
    return Line(POLICY_COLOURS[COLOURS[selector]], dash, "")


def stretches(values: Floats) -> Floats:
    """Return means over `POINTS` equal intervals; fewer values are returned unchanged.

    >>> stretches(np.arange(4.0)).tolist(), stretches(np.arange(120.0))[:2].tolist()
    ([0.0, 1.0, 2.0, 3.0], [1.0, 4.0])
    """
    return np.array([part.mean() for part in np.array_split(values, min(POINTS, len(values)))])


@style()
def draw_learning(curves: Mapping[str, Sequence[Curve]], rivals: Values) -> Figure:
    """Return a figure of metrics of jobs in training, epoch by epoch; horizontal lines are heuristics.

    Parameters
    ----------
    curves : mapping of str to sequence of curve
        Learning curves by group, one for each seed: the line is their mean, the band their range.
    rivals : mapping of str to mapping of str to array of float
        Values on the training job sets, by row and measure.
    """
    figure = new_figure(9.0, 6.2, rows=2, columns=2)
    others = [*HEURISTICS, BEST_ALLOCATION]
    for place, (ax, (label, (column, measure))) in enumerate(zip(figure.axes, PANELS.items(), strict=True)):
        for name in others:
            look = look_of(name)
            ax.axhline(rivals[name][measure].mean(), color=look.colour, linestyle=look.dash, linewidth=1.0)
        for family, runs in reversed(list(curves.items())):
            if measure == REWARD and family == TAUGHT:  # its reward differs
                continue
            _plot_runs(runs, column, look_of(family), ax)
        ax.set_ylabel(label)
        if place > 1:
            ax.set_xlabel("epoch")
        count_axis(ax.xaxis)
    legend_above(figure, {name: look_of(name) for name in (*curves, *others)}, most=6)
    figure.align_ylabels()
    return figure


def _plot_runs(
    curves: Sequence[Curve], column: str, look: Line, ax: Axes, of: Callable[[Floats], Floats] = np.asarray
) -> None:
    """Draw the mean of curves over their epochs, and the band of all."""
    count = min(len(curve["steps"]) for curve in curves)
    values = np.array([stretches(of(curve[column][:count])) for curve in curves])
    epochs = stretches(curves[0]["steps"][:count])
    ax.plot(epochs, values.mean(axis=0), color=look.colour, linestyle=look.dash, linewidth=1.6)
    if len(curves) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        ax.fill_between(epochs, low, high, color=look.colour, alpha=0.15, linewidth=0)


@style()
def draw_placements(systems: Mapping[str, Sequence[Curve]]) -> Figure:
    """Return a figure with a panel per system: shares of placement styles by job type, in training.

    Parameters
    ----------
    systems : mapping of str to sequence of curve
        Learning curves by system, one for each seed.
    """
    figure = new_figure(max(7.5, 4.4 * len(systems)), 3.4, columns=len(systems), sharey=True)
    looks = {
        f"{kind}, {words}": Line(POLICY_COLOURS[colour], dash, "")
        for kind, colour in zip(CUSH_KINDS, (2, 1), strict=True)
        for words, dash in (("breadth-first", "dashed"), ("depth-first", "solid"))
    }
    for ax, (system, curves) in zip(figure.axes, systems.items(), strict=True):
        for kind in CUSH_KINDS:
            column = f"{kind}_breadth_first"
            _plot_runs(curves, column, looks[f"{kind}, breadth-first"], ax, lambda share: 100 * share)
            _plot_runs(curves, column, looks[f"{kind}, depth-first"], ax, lambda share: 100 * (1 - share))
        title(ax, system)
        ax.set_ylim(-3, 103)
        ax.set_xlabel("epoch")
        count_axis(ax.xaxis)
    figure.axes[0].set_ylabel("jobs of the kind [%]")
    legend_above(figure, looks)
    return figure


Bars = Mapping[str, Sequence[float]]
"""Heights of bars by policy, one for each class."""


@style()
def draw_lengths(parts: Mapping[str, Values]) -> Figure:
    """Return a figure of waits and NTAT by class of requested time; heuristics average both allocations.

    Parameters
    ----------
    parts : mapping of str to mapping
        Values by row and measure of each row of panels, by its title.
    """
    figure = new_figure(9.5, 0.9 + 2.5 * len(parts), rows=len(parts), columns=2)
    names: dict[str, Line] = {}
    for number, (part, values) in enumerate(parts.items()):
        for ax, quantity, label in zip(
            figure.axes[2 * number :],
            ("wait", "ntat"),
            ("wait [steps]", "normalised turnaround"),
            strict=False,
        ):
            bars = _by_length(values, quantity)
            _plot_bars(bars, list(LENGTHS), ax)
            ax.set_ylabel(label)
            title(ax, part)
            names |= {name: _bar_look(name) for name in bars}
    legend_above(figure, names)
    return figure


def _by_length(values: Values, quantity: str) -> dict[str, list[float]]:
    def of(family: str) -> Floats:
        return np.array([mean_of_class(values[family], quantity, name) for name in LENGTHS])

    found = {
        selector: np.mean([of(f"{selector} {each}") for each in ALLOCATIONS], axis=0).tolist()
        for selector in SELECTORS
    }
    shown = [family for family in (BEST_ALLOCATION, *SHOWN) if family in values]
    return {**found, **{family: of(family).tolist() for family in shown}}


@style()
def draw_penalties(systems: Mapping[str, Values]) -> Figure:
    """Return a figure with a panel per system: locality penalties by size of jobs."""
    figure = new_figure(max(7.5, 4.9 * len(systems)), 3.4, columns=len(systems), sharey=True)
    names: dict[str, Line] = {}
    for ax, (system, values) in zip(figure.axes, systems.items(), strict=True):
        bars = {row: [mean_of_class(each, "penalty", size) for size in SIZES] for row, each in values.items()}
        _plot_bars(bars, list(SIZES), ax)
        title(ax, system)
        names |= {name: _bar_look(name) for name in bars}
    figure.axes[0].set_ylabel("locality penalty [steps]")
    legend_above(figure, names, most=3)
    return figure


def _bar_look(name: str) -> Line:
    """Return the style of bars: solid, or hollow and dashed for breadth-first and best allocation."""
    look = look_of(name)
    return look._replace(dash="solid") if look.dash == DASHES["DF"] else look


def _plot_bars(bars: Bars, classes: Sequence[str], ax: Axes) -> None:
    """Draw groups of bars, a group per class."""
    width = 0.84 / len(bars)
    places = np.arange(len(classes)) - 0.42 + width / 2
    for number, (name, heights) in enumerate(bars.items()):
        look = _bar_look(name)
        ax.bar(
            places + number * width,
            heights,
            width=0.9 * width,
            edgecolor=look.colour,
            linestyle=look.dash,
            facecolor=look.colour if look.dash == "solid" else "none",
            linewidth=1.0,
        )
    ax.set_xticks(range(len(classes)), classes)
    ax.grid(axis="x", visible=False)


@style()
def draw_sizes(parts: Mapping[str, Mapping[int, Mapping[str, float]]]) -> Figure:
    """Return a figure of NTAT relative to CuSH's by the size of the cluster: below 1 CuSH is worse.

    Parameters
    ----------
    parts : mapping of str to mapping of int to mapping of str to float
        Ratios by panel title, number of nodes and selector.
    """
    figure = new_figure(4.4 * len(parts) + 0.4, 3.4, columns=len(parts), sharey=True)
    names: list[str] = []
    for ax, (part, sizes) in zip(figure.axes, parts.items(), strict=True):
        names = list(next(iter(sizes.values())))
        for name in names:
            look = look_of(name)
            ratios = [each[name] for each in sizes.values()]
            ax.plot(list(sizes), ratios, color=look.colour, linestyle=look.dash, marker="o", markersize=3.5)
        ax.axhline(1, color=INK, linewidth=0.9)
        ax.set_xscale("log", base=2)
        ax.set_xticks(list(sizes), [str(nodes) for nodes in sizes])
        ax.set_xticks([], minor=True)
        ax.set_xlabel("nodes")
        title(ax, part)
    figure.axes[0].set_ylabel("NTAT over that of CuSH")
    legend_above(figure, {name: look_of(name) for name in names}, most=5)
    return figure
