"""A picture of what an inspector rejects: distributions of what it saw (figure 13 of SchedInspector)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.pictures.figures import INK, POLICY_COLOURS, new_figure, style, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_explanation"]

COLUMNS, POINTS = 4, 401


class Distributions(Protocol):
    """What is drawn; see :class:`~hpcsimkit.campaigns.explanation.Explanation`."""

    @property
    def names(self) -> Sequence[str]:
        """Of the features."""

    @property
    def seen(self) -> NDArray[np.float64]:
        """Their values at each decision, shape (decisions, features)."""

    @property
    def ratio(self) -> float:
        """Rejections, as a share of all decisions."""

    def distributions(
        self, feature: int, at: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of all decisions, and of the rejected ones, with a feature up to some values."""


@style()
def draw_explanation(explanation: Distributions, heading: str = "") -> Figure:
    """Return a figure of a panel for each feature: how all decisions, and the rejected ones, are distributed.

    Where the line of the rejected ones climbs faster than the other, more is rejected than elsewhere.

    Parameters
    ----------
    explanation : Explanation
        What an inspector saw and did.
    heading : str
        Stands above all.
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
