"""Picture of a validation: queue and utilisation over time, and what explains the errors of the starts."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.reports.figures import INK, MODE_COLOURS, count_axis, new_figure, style, title
from hpcsimkit.reports.picture import WIDTH
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.reports.time_plots import BINS, bin_means
from hpcsimkit.results.residue import CAUSES, Residue
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS: Mapping[str, Mapping[str, Any]] = {
    "recorded": {"color": INK, "fill": True, "alpha": 0.3, "linewidth": 0},
    "simulated": {"color": MODE_COLOURS["backfilled"], "baseline": None, "linewidth": 1.2},
}
"""Area of the recorded schedule, and line of the simulated one."""

LETTERS = 90
"""Number of letters in a line of the title."""


@style()
def draw_validation(residue: Residue, heading: str = "") -> Figure:
    """Return a figure of the waiting jobs and the busy share over time, and of the causes of the errors.

    An area (recorded) and a line (simulated) of means in `BINS` bins. Jobs without a recorded wait are in
    neither.
    """
    result, timelines = residue.validation.result, residue.validation.timelines
    begin = min(int(steps.time[0]) for steps in timelines.values())
    end = max(int(steps.time[-1]) for steps in timelines.values())
    edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    axis = TimeAxis(float(edges[0]), float(edges[-1]), calendar_of(result.workload))
    figure = new_figure(WIDTH, 6.4, rows=3)
    queue, busy, causes = figure.axes
    for name, steps in timelines.items():
        for ax, value in ((queue, steps.waiting), (busy, 100 * steps.busy / result.size)):
            mean = bin_means(steps.time, value, edges)
            ax.stairs(mean, axis.at(edges), label=name, **LOOKS[name])
    for ax in (queue, busy):
        axis.apply(ax)
        ax.set_ylim(bottom=0)
    queue.set_ylabel("jobs waiting")
    count_axis(queue.yaxis)
    busy.set_ylabel(f"{RESOURCE_NAMES.get(result.unit, result.unit)} busy [%]")
    queue.legend(loc="upper right", ncols=2)
    title(queue, textwrap.fill(heading, LETTERS))
    names = [CAUSES.get(cause, cause) for cause in residue.table.cause]
    bars = causes.barh(names, 100 * residue.table.share, color=MODE_COLOURS["backfilled"])
    causes.bar_label(bars, fmt="%.1f %%", padding=3, fontsize=8)
    causes.invert_yaxis()
    causes.set(xlim=(0, 110), xlabel="share of the start-time error [%]")
    return figure
