"""Figures in the style of the paper: the effect of inaccurate estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hpcsimkit.reports.figures import POLICY_COLOURS, format_number, new_figure, style, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_noise"]


@style()
def draw_noise(
    values: Mapping[tuple[str, str], float],
    levels: Sequence[str],
    rules: Sequence[str],
    orders: Sequence[str],
) -> Figure:
    """Return a figure with a panel per EASY variant: mean bounded slowdown by source of estimates.

    Parameters
    ----------
    values : mapping of (str, str) to float
        Mean bounded slowdowns by level of noise and row.
    levels : sequence of str
        Levels of noise, from left to right.
    rules : sequence of str
        EASY variants.
    orders : sequence of str
        Base schedulers.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = new_figure(3.6 * len(rules) + 0.8, 3.2, columns=len(rules), sharey=True)
    for ax, kind in zip(figure.axes, rules, strict=True):
        for number, order in enumerate(orders):
            heights = [values[level, f"{order.upper()} + {kind}"] for level in levels]
            colour = POLICY_COLOURS[number % len(POLICY_COLOURS)]
            ax.plot(levels, heights, color=colour, marker="o", markersize=3, label=order.upper())
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.tick_params(axis="x", rotation=45)
        ax.set_xlabel("estimates")
        title(ax, kind)
    figure.axes[0].set_ylabel("mean bounded slowdown, logarithmic")
    figure.axes[-1].legend(loc="best")
    return figure
