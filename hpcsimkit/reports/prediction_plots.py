"""Picture of the quality of predictions: calibration of the quantiles, and errors by class of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.kernel.prediction import LEVELS
from hpcsimkit.reports.figures import MUTED, legend_above, line_styles, new_figure, style, title
from hpcsimkit.reports.picture import WIDTH

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@style()
def draw_predictions(table: pandas.DataFrame) -> Figure:
    """Return a figure of the calibration and the errors of predictors.

    On the left, the share of jobs within each predicted quantile over its level; the grey line is perfect
    calibration. On the right, the mean absolute error for each class of users.

    The table is that of :func:`~hpcsimkit.policies.predicting.quality.quality_table`.
    """
    figure = new_figure(WIDTH, 3.6, columns=2, width_ratios=(2, 3))
    calibration, errors = figure.axes
    styles = line_styles(table["predictor"].unique())
    _plot_calibration(table, calibration)
    _plot_errors(table, errors)
    legend_above(figure, styles, most=6)
    return figure


def _plot_calibration(table: pandas.DataFrame, ax: Axes) -> None:
    """Draw the coverage of the quantiles of each predictor for all jobs."""
    everyone = table[table["users"] == "all"].set_index("predictor")
    levels = 100 * np.array(LEVELS)
    ax.plot([0, 100], [0, 100], color=MUTED, linewidth=0.8)
    for name, line in line_styles(everyone.index).items():
        covered = 100 * everyone.loc[name].iloc[-len(LEVELS) :].astype(float)
        ax.plot(levels, covered, color=line.colour, linestyle=line.dash, marker="o", markersize=3)
    ax.set(xlabel="level of the quantile [%]", ylabel="jobs within the quantile [%]")
    ax.set(xlim=(0, 100), ylim=(0, 101))
    title(ax, "Calibration")


def _plot_errors(table: pandas.DataFrame, ax: Axes) -> None:
    """Draw a group of bars for each class of users, a bar for each predictor."""
    classes = list(table["users"].unique())
    styles = line_styles(table["predictor"].unique())
    width = 0.8 / len(styles)
    for place, (name, line) in enumerate(styles.items()):
        hours = table[table["predictor"] == name].set_index("users")["mean absolute error [s]"] / 3600
        at = np.arange(len(classes)) + (place - (len(styles) - 1) / 2) * width
        ax.bar(at, hours[classes], width=0.9 * width, color=line.colour)
    share = table[table["predictor"] == table["predictor"].iloc[0]].set_index("users")["jobs"]
    labels = [f"{users}\n{100 * share[users] / share['all']:.0f} % of jobs" for users in classes]
    ax.set_xticks(range(len(classes)), labels)
    ax.set(xlabel="users", ylabel="mean absolute error [h]")
    ax.grid(axis="x", visible=False)
    title(ax, "Error by class of users")
