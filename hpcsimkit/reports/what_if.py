"""Picture of a changed cluster: queue and utilisation over time, and the differences of the mean waits."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hpcsimkit.reports.answers import LETTERS, plot_load
from hpcsimkit.reports.figures import line_styles, new_figure, style, title
from hpcsimkit.reports.picture import WIDTH
from hpcsimkit.reports.sweep.plots import plot_intervals
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import Mean
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["draw_what_if"]

GROUPS = 12
"""Maximum number of groups in the picture, the first ones of the table."""


@style()
def draw_what_if(results: Mapping[str, Result], table: pandas.DataFrame, heading: str = "") -> Figure:
    """Return a figure of the waiting jobs and the busy share over time, and of differences of mean waits.

    Parameters
    ----------
    results : mapping of str to Result
        Results before and after the change, by name.
    table : pandas.DataFrame
        Rows ``by, group, difference, low, high`` [s] for all jobs and for groups of them.
    heading : str
        Title of the figure. Default: none.
    """
    rows = table.head(GROUPS)
    names = rows["group"].where(rows["by"] == "all", rows["by"] + " " + rows["group"])
    means = [Mean(*map(float, row)) for row in rows[["difference", "low", "high"]].to_numpy()]
    differences = dict(zip(names, means, strict=True))
    figure = new_figure(
        WIDTH,
        5.0 + 0.24 * len(differences),
        rows=3,
        gridspec_kw={"height_ratios": [2, 2, 0.4 + 0.24 * len(differences)]},
    )
    queue, busy, waits = figure.axes
    first = next(iter(results.values()))
    timelines = {name: result.timeline() for name, result in results.items()}
    sizes = {name: result.size for name, result in results.items()}
    unit = RESOURCE_NAMES.get(first.unit, first.unit)
    plot_load(timelines, sizes, calendar_of(first.workload), queue, busy, unit)
    title(queue, textwrap.fill(heading, LETTERS))
    plot_intervals(differences, waits, styles=dict.fromkeys(differences, line_styles([""])[""]), zero=True)
    waits.set_xlabel("difference of the mean wait, after minus before [s]")
    return figure
