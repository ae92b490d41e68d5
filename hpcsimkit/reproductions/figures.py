"""Figures shared by several reproductions: rewards of trainings, box plots over sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import MUTED, new_figure, style, title
from hpcsimkit.reports.learning_curve import Curve, plot_column
from hpcsimkit.reports.plots import plot_boxes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["apart", "draw_boxes", "draw_rewards", "panels"]

COLUMNS = 3


def panels(count: int, width: float, height: float, columns: int = COLUMNS) -> tuple[Figure, int]:
    """Return a figure with a grid of panels of a size [inches], and its number of columns."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = new_figure(width * columns + 0.8, 0.5 + height * rows, rows=rows, columns=columns)
    for ax in figure.axes[count:]:
        ax.set_axis_off()
    return figure, columns


def apart(count: int) -> NDArray[np.float64]:
    """Return vertical offsets within a row that keep neighbouring dots apart, by the golden ratio.

    >>> apart(3).round(3).tolist()
    [-0.3, 0.071, -0.158]
    """
    return np.asarray(-0.3 + 0.6 * (np.arange(count) * 0.618 % 1), dtype=np.float64)


@style()
def draw_rewards(curves: Mapping[str, Curve]) -> Figure:
    """Return a figure with a panel per training: the reward of a sequence over the training steps.

    Parameters
    ----------
    curves : mapping of str to curve
        Learning curves by the name of the panel; see :func:`~hpcsimkit.reports.learning_curve.read_curve`.
    """
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


@style()
def draw_boxes(values: Mapping[str, NDArray[np.float64]], label: str, *, logarithmic: bool = True) -> Figure:
    """Return a figure with a box per scheduler, over sequences or days, which are drawn as dots.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Values by scheduler.
    label : str
        Label of the axis.
    logarithmic : bool
        Whether the axis is logarithmic. Default: True.
    """
    figure = new_figure(7.5, 0.9 + 0.32 * len(values))
    ax = plot_boxes(values, figure.axes[0], dots=True, logarithmic=logarithmic)
    shown = np.concatenate([*values.values()])
    if logarithmic and (shown > 0).any():
        ax.set_xlim(left=0.8 * float(shown[shown > 0].min()))
    ax.set_xlabel(label)
    return figure
