"""Plots of a training: validation metric, reward and entropy."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.reports.figures import (
    INK,
    MUTED,
    POLICY_COLOURS,
    axes_of,
    count_axis,
    format_number,
    new_figure,
    panels,
    style,
    title,
    wrapped,
)
from hpcsimkit.results.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Curve = Mapping[str, Floats]
"""Columns of a learning curve: ``steps``, ``validation``, ``reward`` and those logged by the algorithm."""

BINS = 60
"""Number of bins of the line through a noisy column, which is drawn over the column itself."""

LOGARITHMIC = 20.0
"""Ratio of the largest to the smallest value above which the axis of a metric is logarithmic."""

LAST_ROUNDS = 10
"""Number of rounds at the end of a training over which its numbers are averaged."""

AGENT = POLICY_COLOURS[1]

COLUMNS = {
    "reward": "reward",
    "entropy": "entropy [nats]",
    "entropy_loss": "entropy loss",
    "exploration": "share of random actions",
    "agreement": "share as\nthe heuristic",
    "commonest": "share of the\ncommonest action",
}
"""Columns to draw, if present, with the labels of their axes."""

BESIDE: Mapping[str, Mapping[str, str]] = {
    "agreement": {"constant": "best constant action", "chance": "chance"},
    "commonest": {f"action_{number}": f"action {number}" for number in range(10)},
}
"""Columns that are drawn beside others, if present, with their names."""

SELDOM = 0.05
"""Share of choices that an action must have once to be drawn."""


def read_curve(path: str | os.PathLike[str]) -> dict[str, Floats]:
    """Read the learning curve written by a trainer."""
    rows = list(csv.DictReader(read_bytes(path, Format.CURVE).decode("utf-8", errors="replace").splitlines()))
    try:
        curve = {
            name: np.array([float(row[name] or "nan") for row in rows]) for name in (rows[0] if rows else ())
        }
    except (KeyError, TypeError, ValueError):
        curve = {}
    if not {"steps", "validation"} <= curve.keys():
        raise UsageError(f"{path}: a learning curve with the columns steps and validation is needed")
    return curve


# --- numbers of a curve ------------------------------------------------------------------------------------


class Judgement(NamedTuple):
    """A snapshot in validation: decisions of its training so far, and its score."""

    steps: int
    score: float


def first_and_best(curve: Curve) -> tuple[Judgement, Judgement]:
    """Return the first snapshot of a training that was validated, and the best one.

    >>> first, best = first_and_best({"steps": np.arange(4), "validation": np.array([np.nan, 1.0, 3.0, 2.0])})
    >>> first.score, best.steps
    (1.0, 2)
    """
    known = ~np.isnan(curve["validation"])
    steps, scores = (curve[name][known] for name in ("steps", "validation"))
    best = int(scores.argmax())
    return (Judgement(int(steps[0]), float(scores[0])), Judgement(int(steps[best]), float(scores[best])))


def at_the_end(values: Floats) -> float:
    """Return the mean over the last rounds with a finite value.

    >>> at_the_end(np.array([9.0] + 9 * [1.0] + [2.0, np.nan]))
    1.1
    """
    learned = values[np.isfinite(values)][-LAST_ROUNDS:]
    return float(learned.mean()) if len(learned) else float("nan")


def thrown_away(curve: Curve) -> float | None:
    """Return the share of decisions discarded in training [%], or None if the curve has no such column.

    >>> thrown_away({"steps": np.array([100.0, 400.0]), "thrown_away": np.array([0.0, 0.5])})
    37.5
    """
    if "thrown_away" not in curve:
        return None
    played = np.diff(curve["steps"], prepend=0.0)
    return float(100 * played @ curve["thrown_away"] / played.sum())


# --- pictures ----------------------------------------------------------------------------------------------


def draw_learning_curve(
    curve: Curve, metric: str | None, baselines: Mapping[str, float] | None = None, *, unit: str = "decisions"
) -> Figure:
    """Return a figure of a training: the validation metric, and below it reward and entropy of every round.

    Without validation, `metric` is None; `baselines` are its means under other policies, drawn as horizontal
    lines. `unit` is that of the steps.

    >>> curve = {"steps": np.array([10, 20]), "validation": np.array([-9, -4]), "reward": np.array([-8, -5])}
    >>> figure = draw_learning_curve(curve, "mean_wait_time", {"fcfs": 6.0})
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['mean wait time [s]', 'reward']
    """
    shown = [name for name in COLUMNS if name in curve and np.isfinite(curve[name]).any()]
    ratios = [*([] if metric is None else [2.2]), *[1.0] * len(shown)]
    figure = new_figure(
        7.5,
        (0.4 if metric is None else 2.6) + 1.3 * len(shown),
        rows=len(ratios),
        sharex=True,
        gridspec_kw={"height_ratios": ratios},
    )
    if metric is not None:
        plot_validation(curve, metric, figure.axes[0], baselines=baselines)
    for name, ax in zip(shown, figure.axes[len(ratios) - len(shown) :], strict=True):
        plot_column(curve, name, ax)
        ax.set_ylabel(COLUMNS[name])
        plot_beside(curve, BESIDE.get(name, {}), ax)
    figure.axes[-1].set_xlabel(f"training {unit}")
    count_axis(figure.axes[-1].xaxis)
    figure.align_ylabels()
    return figure


@style()
def plot_validation(
    curve: Curve, metric: str, ax: Axes | None = None, *, baselines: Mapping[str, float] | None = None
) -> Axes:
    """Draw the metric at every validation, the best one marked; parameters as for `draw_learning_curve`."""
    ax = axes_of(ax)
    about = METRICS[metric]
    asked = np.isfinite(curve["validation"])
    steps, values = curve["steps"][asked], curve["validation"][asked]
    values = -values if about.direction == "lower" else values
    ax.plot(steps, values, color=AGENT, marker="o", markersize=3, label="agent")
    known = dict(baselines or {})
    for number, (name, value) in enumerate(known.items()):
        colour = POLICY_COLOURS[(2 + number) % len(POLICY_COLOURS)]
        label = f"{wrapped(name)}: {format_number(value)}"
        ax.axhline(value, color=colour, linestyle="dashed", linewidth=1.2, label=label)
    if len(values):
        best = int(np.argmin(values) if about.direction == "lower" else np.argmax(values))
        label = f"best: {format_number(float(values[best]))}"
        ax.plot(
            steps[best], values[best], "o", markersize=8, markerfacecolor="none", color=AGENT, label=label
        )
    drawn = [*values.tolist(), *known.values()]
    if drawn and min(drawn) > 0 and max(drawn) / min(drawn) > LOGARITHMIC:
        from matplotlib.ticker import LogFormatter

        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        ax.yaxis.set_minor_formatter(LogFormatter())
    unit = f" [{about.unit}]" if about.unit != "1" else ""
    ax.set_ylabel(f"{metric.replace('_', ' ')}{unit}")
    title(ax, f"validation ({about.direction} is better)")
    ax.legend(loc="best")
    return ax


@style()
def plot_column(curve: Curve, name: str, ax: Axes | None = None) -> Axes:
    """Draw a column over the rounds; with many rounds, also the means of `BINS` bins."""
    ax = axes_of(ax)
    known = np.isfinite(curve[name])
    steps, values = curve["steps"][known], curve[name][known]
    noisy = len(values) > 2 * BINS
    ax.plot(steps, values, color=MUTED if noisy else INK, linewidth=0.6 if noisy else 1.2)
    if noisy:
        parts = np.array_split(np.arange(len(values)), BINS)
        means = [(steps[part].mean(), values[part].mean()) for part in parts]
        ax.plot(*np.transpose(means), color=INK, linewidth=1.5)
    return ax


@style()
def plot_beside(curve: Curve, names: Mapping[str, str], ax: Axes) -> None:
    """Draw further columns of shares, each with its name; none of those that are small throughout."""
    drawn = {name: label for name, label in names.items() if (curve.get(name, np.zeros(1)) > SELDOM).any()}
    for number, (name, label) in enumerate(drawn.items()):
        known = np.isfinite(curve[name])
        colour = POLICY_COLOURS[1 + number % (len(POLICY_COLOURS) - 1)]  # without that of the agent's line
        ax.plot(curve["steps"][known], curve[name][known], color=colour, linewidth=1.0, label=label)
    if drawn:
        ax.legend(loc="best", ncols=5, fontsize="x-small")


@style()
def draw_rewards(curves: Mapping[str, Curve]) -> Figure:
    """Return a figure with a panel per training: the reward of a sequence over the training steps."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure, columns = panels(len(curves), 3.2, 2.2)
    for number, (ax, (name, curve)) in enumerate(zip(figure.axes, curves.items(), strict=False)):
        plot_column(curve, "reward", ax)
        ax.axhline(0, color=MUTED, linewidth=0.8, linestyle="dashed")
        title(ax, name)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
        if number % columns == 0:
            ax.set_ylabel("reward of a sequence")
        if number >= len(curves) - columns:
            ax.set_xlabel("thousands of decisions")
    return figure
