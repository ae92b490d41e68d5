"""Figures in the style of the paper: training curves with rejection ratios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import MUTED, POLICY_COLOURS, panels, style, title
from hpcsimkit.reports.learning_curve import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_curves"]

COLUMNS = 4
SMOOTHED = 5
"""Number of updates in the moving average of a curve."""


@style()
def draw_curves(curves: Mapping[str, Curve]) -> Figure:
    """Return a figure with a panel per training: reward and share of rejections of each update.

    Parameters
    ----------
    curves : mapping of str to curve
        Learning curves by panel title; see :func:`~hpcsimkit.reports.learning_curve.read_curve`.
    """
    figure, columns = panels(len(curves), 2.6, 2.2, COLUMNS)
    for number, (ax, (name, curve)) in enumerate(zip(figure.axes, curves.items(), strict=False)):
        played = curve["steps"] / 1e6
        ax.plot(played, curve["reward"], color=POLICY_COLOURS[1], linewidth=0.5, alpha=0.5)
        ax.plot(played, _smoothed(curve["reward"]), color=POLICY_COLOURS[1], label="reward of an episode")
        ax.axhline(0, color=MUTED, linewidth=0.8)
        other = ax.twinx()
        other.plot(played, curve["rejected"], color=POLICY_COLOURS[2], linewidth=1.0, label="rejected")
        other.set_ylim(0, 1)
        title(ax, name)
        if number % columns == 0:
            ax.set_ylabel("reward", color=POLICY_COLOURS[1])
        if number % columns == columns - 1 or number == len(curves) - 1:
            other.set_ylabel("share rejected", color=POLICY_COLOURS[2])
        if number >= len(curves) - columns:
            ax.set_xlabel("decisions [millions]")
    return figure


def _smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return moving averages, over fewer updates at the beginning.

    >>> _smoothed(np.array([1.0, 3.0, 5.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    import pandas

    return pandas.Series(values).rolling(SMOOTHED, min_periods=1).mean().to_numpy()
