"""The picture of a study: the longest wait of each policy against its slowdown and its wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hpcsimkit.experiments.learn.candidates import front
from hpcsimkit.experiments.learn.goal import LONGEST, Figures
from hpcsimkit.reports.figures import INK, MODE_COLOURS, MUTED, new_figure, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TESTS = "+tests("
"""Part of the names of policies with tests."""

DAY, HOUR = 86_400, 3600
"""Lengths of a day and an hour [s]."""

LABELS = {"mean_bounded_slowdown": ("mean bounded slowdown", 1), "mean_wait_time": ("mean wait [h]", HOUR)}
"""Labels of the metrics, and the units in which they are shown."""


KINDS = {False: ("without tests", INK), True: ("with tests", MODE_COLOURS["tested"])}
"""Labels and colours of the points."""


def front_figure(parts: Mapping[str, Mapping[str, Figures]]) -> Figure:
    """Return a row of panels for each part of the log: a point for each policy, and the line of the front.

    `parts` has the metrics of policies in each part, by its title.
    """
    figure = new_figure(7.2, 2.8 * len(parts), rows=len(parts), columns=len(LABELS))
    for number, axes in enumerate(figure.axes):
        part, metric = list(parts)[number // len(LABELS)], list(LABELS)[number % len(LABELS)]
        label, unit = LABELS[metric]
        points = {name: (found[LONGEST] / DAY, found[metric] / unit) for name, found in parts[part].items()}
        for tested, (kind, colour) in KINDS.items():
            shown = [point for name, point in points.items() if (TESTS in name) is tested]
            if shown:
                longest, values = zip(*shown, strict=True)
                axes.scatter(longest, values, s=14, color=colour, label=kind)
        places = list(points.values())
        line = [places[each] for each in front(places)]
        axes.step(*zip(*line, strict=True), where="post", color=MUTED, linewidth=0.9, zorder=0)
        axes.set_xlabel("longest wait [d]")
        axes.set_ylabel(label)
        title(axes, part)
    figure.axes[0].legend()
    return figure
