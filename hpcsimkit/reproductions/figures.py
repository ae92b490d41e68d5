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

__all__ = ["draw_boxes", "draw_rewards"]

COLUMNS = 3


@style()
def draw_rewards(curves: Mapping[str, Curve]) -> Figure:
    """Return a figure with a panel per training: the reward of a sequence over the training steps.

    Parameters
    ----------
    curves : mapping of str to curve
        Learning curves by the name of the panel; see :func:`~hpcsimkit.reports.learning_curve.read_curve`.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    columns = min(COLUMNS, len(curves))
    rows = -(-len(curves) // columns)
    figure = new_figure(3.2 * columns + 0.8, 0.5 + 2.2 * rows, rows=rows, columns=columns)
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
    for ax in figure.axes[len(curves) :]:
        ax.set_axis_off()
    return figure


@style()
def draw_boxes(values: Mapping[str, NDArray[np.float64]], label: str) -> Figure:
    """Return a figure with a box per scheduler over sequences, drawn as dots, on a logarithmic axis.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Values by scheduler.
    label : str
        Label of the axis.
    """
    figure = new_figure(7.5, 0.9 + 0.32 * len(values))
    ax = plot_boxes(values, figure.axes[0], dots=True, logarithmic=True)
    ax.set_xlim(left=0.8 * min(float(each.min()) for each in values.values()))
    ax.set_xlabel(label)
    return figure
