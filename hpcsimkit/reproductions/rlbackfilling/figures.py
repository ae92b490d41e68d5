"""Pictures like the paper's: what wrong estimates do, and how training goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hpcsimkit.pictures.figures import MUTED, POLICY_COLOURS, format_number, new_figure, style, title
from hpcsimkit.pictures.learning_curve import Curve, plot_column
from hpcsimkit.reproductions.rlbackfilling.contest import row
from hpcsimkit.reproductions.rlbackfilling.noise import ORDERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_curves", "draw_noise"]

COLUMNS = 3


@style()
def draw_curves(curves: Mapping[str, Curve]) -> Figure:
    """Return a figure with a panel a training: what a sequence was paid, by decisions learned from.

    Parameters
    ----------
    curves : mapping of str to curve
        By the name of the panel; see :func:`~hpcsimkit.pictures.learning_curve.read_curve`.
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
def draw_noise(
    values: Mapping[tuple[str, str], float], levels: Sequence[str], rules: Sequence[str]
) -> Figure:  # fmt: skip
    """Return a figure with a panel a kind of EASY: the mean bounded slowdown by where estimates come from.

    Parameters
    ----------
    values : mapping of (str, str) to float
        By level and row.
    levels : sequence of str
        From left to right.
    rules : sequence of str
        Kinds of EASY.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = new_figure(3.6 * len(rules) + 0.8, 3.2, columns=len(rules), sharey=True)
    for ax, kind in zip(figure.axes, rules, strict=True):
        for number, order in enumerate(ORDERS):
            heights = [values[level, row(order, kind)] for level in levels]
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
