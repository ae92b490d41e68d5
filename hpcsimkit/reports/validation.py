"""Picture of a validation: queue and utilisation over time, and what explains the errors of the starts."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.jobs.timeline import Steps
from hpcsimkit.reports.figures import INK, MODE_COLOURS, count_axis, new_figure, style, title
from hpcsimkit.reports.picture import WIDTH
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.reports.time_plots import BINS, bin_means
from hpcsimkit.results.residue import CAUSES, Residue
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.workloads.readers.local_time import Calendar, calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_validation", "plot_load"]

LOOKS: Sequence[Mapping[str, Any]] = (
    {"color": INK, "fill": True, "alpha": 0.3, "linewidth": 0},
    {"color": MODE_COLOURS["backfilled"], "baseline": None, "linewidth": 1.2},
)
"""Area of the first schedule, the recorded one, and line of the second."""

LETTERS = 90
"""Number of letters in a line of the title."""


@style()
def draw_validation(residue: Residue, heading: str = "") -> Figure:
    """Return a figure of the waiting jobs and the busy share over time, and of the causes of the errors.

    An area (recorded) and a line (simulated) of means in `BINS` bins. Jobs without a recorded wait are in
    neither.

    Parameters
    ----------
    residue : Residue
        Causes of the errors, with the validation.
    heading : str
        Title of the figure. Default: none.
    """
    result, timelines = residue.validation.result, residue.validation.timelines
    figure = new_figure(WIDTH, 6.4, rows=3)
    queue, busy, causes = figure.axes
    unit = RESOURCE_NAMES.get(result.unit, result.unit)
    plot_load(
        timelines, dict.fromkeys(timelines, result.size), calendar_of(result.workload), queue, busy, unit
    )
    title(queue, textwrap.fill(heading, LETTERS))
    names = [CAUSES.get(cause, cause) for cause in residue.table.cause]
    bars = causes.barh(names, 100 * residue.table.share, color=MODE_COLOURS["backfilled"])
    causes.bar_label(bars, fmt="%.1f %%", padding=3, fontsize=8)
    causes.invert_yaxis()
    causes.set(xlim=(0, 110), xlabel="share of the start-time error [%]")
    return figure


def plot_load(
    timelines: Mapping[str, Steps],
    sizes: Mapping[str, int],
    calendar: Calendar | None,
    queue: Axes,
    busy: Axes,
    unit: str,
) -> None:
    """Draw the waiting jobs and the busy share of two schedules over time: an area, and a line.

    Parameters
    ----------
    timelines : mapping of str to Steps
        Waiting jobs and busy amounts over time, by the name of the schedule.
    sizes : mapping of str to int
        Sizes of the clusters, in the unit of the busy amounts.
    calendar : Calendar, optional
        Dates of the clock.
    queue, busy : Axes
        Axes to draw on.
    unit : str
        Name of the unit of the busy amounts.
    """
    begin = min(int(steps.time[0]) for steps in timelines.values())
    end = max(int(steps.time[-1]) for steps in timelines.values())
    edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    axis = TimeAxis(float(edges[0]), float(edges[-1]), calendar)
    for (name, steps), look in zip(timelines.items(), LOOKS, strict=True):
        for ax, value in ((queue, steps.waiting), (busy, 100 * steps.busy / sizes[name])):
            mean = bin_means(steps.time, value, edges)
            ax.stairs(mean, axis.at(edges), label=name, **look)
    for ax in (queue, busy):
        axis.apply(ax)
        ax.set_ylim(bottom=0)
    queue.set_ylabel("jobs waiting")
    count_axis(queue.yaxis)
    busy.set_ylabel(f"{unit} busy [%]")
    queue.legend(loc="upper right", ncols=2)
