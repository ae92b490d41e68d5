"""Learning curves of a sweep of trainings: means over seeds with bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.reports.figures import (
    axes_of,
    count_axis,
    legend_above,
    line_styles,
    new_figure,
    style,
    wrapped,
)
from hpcsimkit.reports.learning_curve import read_curve
from hpcsimkit.reports.picture import WIDTH, Picture
from hpcsimkit.reports.sweep.summaries import direction_of
from hpcsimkit.reports.sweep.table import POLICY, SweepTable
from hpcsimkit.reports.sweep.texts import metric_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

MOST_LINES = 8
"""Maximum number of settings in one picture."""


def draw_curves(place: Path, file: str, table: SweepTable, *, width: float = WIDTH) -> Iterator[Picture]:
    """Yield the picture of the learning curves of a sweep, if there are any.

    `file` is the path of a learning curve in the folder of a cell; the width is in inches.
    """
    metric = table.metrics[0] if table.metrics else ""
    sign = -1.0 if direction_of(metric) == "lower" else 1.0
    found = {policy: list(_curves(place, file, table, policy, sign)) for policy in table.policies}
    curves = dict([item for item in found.items() if item[1]][:MOST_LINES])
    if not curves:
        return
    with style():
        figure = new_figure(width, 3.4)
        ax = figure.axes[0]
        plot_curves(curves, ax)
        legend_above(figure, line_styles(curves))
        ax.set_xlabel("training steps")
        ax.set_ylabel(metric_label(metric))
    left_out = len(found) - len(curves)
    yield Picture(
        "learning_curves",
        "Learning curves",
        "Lines are means over the trainings that differ only in the seed; bands are their range.",
        f"Validation metric of the agent.{f' {left_out} settings are not shown.' if left_out else ''}",
        figure,
    )


@style()
def plot_curves(curves: Mapping[str, Sequence[tuple[Floats, Floats]]], ax: Axes | None = None) -> Axes:
    """Draw the means of learning curves, with bands from the lowest to the highest of them.

    Curves are steps and values of each training, by settings. Trainings with the same settings are compared
    validation by validation, as far as the shortest of them goes.

    >>> steps = np.array([10.0, 20.0])
    >>> ax = plot_curves({"ppo": [(steps, np.array([5.0, 3.0])), (steps, np.array([7.0, 4.0]))]})
    >>> ax.lines[0].get_ydata().tolist()
    [6.0, 3.5]
    """
    ax = axes_of(ax)
    for name, line in line_styles(curves).items():
        length = min(len(steps) for steps, _ in curves[name])
        steps = np.mean([each[:length] for each, _ in curves[name]], axis=0)
        values = np.array([each[:length] for _, each in curves[name]])
        ax.fill_between(
            steps, values.min(axis=0), values.max(axis=0), color=line.colour, alpha=0.15, linewidth=0
        )
        ax.plot(steps, values.mean(axis=0), label=wrapped(name), color=line.colour, linestyle=line.dash)
    count_axis(ax.xaxis)
    return ax


def _curves(
    place: Path, file: str, table: SweepTable, policy: str, sign: float
) -> Iterator[tuple[Floats, Floats]]:
    """Yield steps and values of the validations of each training with some settings."""
    for cell in table.cells.loc[table.cells[POLICY] == policy, "cell"]:
        try:
            curve = read_curve(place / "cells" / str(cell) / file)
        except HpcsimkitError:  # a failed cell
            continue
        known = np.isfinite(curve["validation"])
        if known.any():
            yield curve["steps"][known], sign * curve["validation"][known]
