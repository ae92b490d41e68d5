"""Figures in the style of the paper: training curves (figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import POLICY_COLOURS, count_axis, new_figure, style, title
from hpcsimkit.reports.learning_curve import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_training_curves"]

Floats = NDArray[np.float64]

POINTS = 60
"""Number of points of a curve: agents' curves are averaged over equal intervals of the training."""


def draw_training_curves(curves: Mapping[str, Sequence[Curve]]) -> Figure:
    """Return a figure of reward per episode over decisions: the median agent, and the band of all.

    Parameters
    ----------
    curves : mapping of str to sequence of curves
        Learning curves of all agents, by training metric; see
        :func:`~hpcsimkit.reports.learning_curve.read_curve`.
    """
    figure = new_figure(7.5, 2.9, columns=len(curves))
    for ax, (name, of_agents) in zip(figure.axes, curves.items(), strict=True):
        _plot_band(of_agents, ax)
        title(ax, f"trained for {name}")
        ax.set_xlabel("decisions learned from")
    return figure


@style()
def _plot_band(curves: Sequence[Curve], ax: Axes) -> None:
    """Draw the median of curves and, if there are several, the middle half and the band of all."""
    end = max(float(curve["steps"][-1]) for curve in curves)
    edges = np.linspace(0, end, POINTS + 1)
    table = np.array([_averaged(curve["steps"], curve["reward"], edges) for curve in curves])
    seen = np.isfinite(table).all(axis=0)
    at, table = ((edges[1:] + edges[:-1]) / 2)[seen], table[:, seen]
    power = 3 * (int(np.floor(np.log10(np.abs(table).max(initial=1.0)))) // 3)
    table = table / 10.0**power
    colour = POLICY_COLOURS[1]
    low, left, middle, right, high = np.percentile(table, [0, 25, 50, 75, 100], axis=0)
    if len(curves) > 1:
        ax.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0, label="all agents")
        ax.fill_between(at, left, right, color=colour, alpha=0.3, linewidth=0, label="middle half")
    ax.plot(at, middle, color=colour, label=f"median of {len(curves)}" if len(curves) > 1 else "agent")
    unit = f" [1e{power}]" if power else ""
    ax.set_ylabel(f"reward of an episode{unit}")
    count_axis(ax.xaxis)
    ax.locator_params(axis="x", nbins=4)
    ax.legend(loc="best")


def _averaged(steps: Floats, values: Floats, edges: Floats) -> Floats:
    """Return the mean of the values between edges, or NaN for an interval without values.

    >>> steps, values = np.array([1.0, 2.0, 9.0]), np.array([4.0, 6.0, np.nan])
    >>> _averaged(steps, values, np.array([0.0, 5.0, 10.0])).tolist()
    [5.0, nan]
    """
    known = np.isfinite(values)
    bins = np.clip(np.searchsorted(edges, steps[known], side="left") - 1, 0, len(edges) - 2)
    sums = np.bincount(bins, values[known], len(edges) - 1)
    counts = np.bincount(bins, minlength=len(edges) - 1)
    return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
