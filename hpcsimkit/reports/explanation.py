"""Plots of the rejections of an inspector: distributions of its features (figure 13 of SchedInspector)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.figures import INK, POLICY_COLOURS, new_figure, style, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS, POINTS = 4, 401


class Distributions(Protocol):
    """Protocol of the data; see :class:`~hpcsimkit.experiments.evaluation.explanation.Explanation`."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the features."""

    @property
    def seen(self) -> NDArray[np.float64]:
        """Values of the features at each decision, shape (decisions, features)."""

    @property
    def ratio(self) -> float:
        """Share of rejections among all decisions."""

    def distributions(
        self, feature: int, at: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distribution functions of a feature at some values, over all and rejected decisions."""


@style()
def draw_explanation(explanation: Distributions, heading: str = "") -> Figure:
    """Return a figure with the distributions of each feature over all decisions and over the rejected ones.

    Where the line of the rejected ones is steeper than the other, the share of rejections is above average.
    """
    names = explanation.names
    rows = -(-(len(names) + 1) // COLUMNS)
    figure = new_figure(9.0, 0.6 + 2.1 * rows, rows=rows, columns=COLUMNS, sharey=True)
    for number, (name, ax) in enumerate(zip(names, figure.axes, strict=False)):
        largest = max(float(np.quantile(explanation.seen[:, number], 0.999)), 1e-6)
        at = np.linspace(0, largest, POINTS)
        every, refused = explanation.distributions(number, at)
        ax.plot(at, every, color=INK, label="all decisions")
        ax.plot(at, refused, color=POLICY_COLOURS[1], label=f"rejected: {explanation.ratio:.0%} of them")
        ax.set_ylim(0, 1.02)
        ax.set_xlim(0, largest)
        title(ax, name)
        if number % COLUMNS == 0:
            ax.set_ylabel("share of decisions")
    for ax in figure.axes[len(names) :]:
        ax.set_axis_off()
    figure.axes[len(names)].legend(*figure.axes[0].get_legend_handles_labels(), loc="center left")
    if heading:
        figure.suptitle(heading, fontsize="medium")
    return figure
