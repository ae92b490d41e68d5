"""Picture of the partitions of a cluster: waits and busy nodes of the jobs of each, under every policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.timeline import Sweep
from hpcsimkit.reports import plots
from hpcsimkit.reports.figures import legend_above, legend_columns, line_styles, new_figure, style, title
from hpcsimkit.reports.picture import WIDTH, Picture
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.reports.time_plots import BINS, bin_means
from hpcsimkit.results.breakdown import classes_of
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 8
"""Maximum number of partitions with a row of their own: those with the most node-seconds."""


@style()
def draw_partitions(results: plots.Results) -> Picture | None:
    """Return the waits and the busy share of the cluster by partition; None if there are not several."""
    first = next(iter(results.values()))
    jobs_in = {name: _jobs_in(result) for name, result in results.items()}
    attempts = {name: result.by_attempt for name, result in results.items()}
    attempts_in = {name: _jobs_in(each) for name, each in attempts.items()}
    names = list(next(iter(jobs_in.values())))
    if len(names) < 2:
        return None
    shown, unit = names[:MOST], RESOURCE_NAMES.get(first.unit, first.unit)
    legend = 0.2 * -(-len(results) // legend_columns(results, WIDTH))
    figure = new_figure(WIDTH, 0.4 + legend + 1.7 * len(shown), rows=len(shown), columns=2)
    for row, name in enumerate(shown):
        waits, busy = figure.axes[2 * row : 2 * row + 2]
        rows = {policy: partitions[name] for policy, partitions in jobs_in.items() if name in partitions}
        times = {policy: results[policy].wait_time[here] for policy, here in rows.items()}
        plots.plot_waits(times, results, waits)
        waits.set_ylabel("jobs [%]")
        title(waits, name)
        _plot_busy(attempts, {policy: each.get(name) for policy, each in attempts_in.items()}, busy)
        busy.set_ylabel(f"{unit} [%]")
    legend_above(figure, line_styles(results))
    left_out = f" The {MOST} partitions with the most node-seconds of {len(names)}." * (len(names) > MOST)
    return Picture(
        "partitions",
        "Partitions",
        "Left, higher is better: how many jobs of the partition wait no longer than the time below. Right: "
        f"how much of all {unit} of the cluster the jobs of the partition keep busy.",
        f"Jobs by the partition in which they started, else by that of the log.{left_out}",
        figure,
    )


def _jobs_in(result: Result) -> dict[str, NDArray[np.intp]]:
    """Return the rows of the jobs that ran in each partition, those with the most node-seconds first."""
    number, label = classes_of(result, "partition", len(result))
    ran = result.finished
    return {label(int(each)): np.flatnonzero(ran & (number == each)) for each in np.unique(number[ran])}


def _plot_busy(results: plots.Results, rows: Mapping[str, NDArray[np.intp] | None], ax: Axes) -> None:
    """Draw the share of the cluster that some attempts keep busy over time, a line for each policy."""
    begin = min(int(result.submit_time.min()) for result in results.values())
    end = max(int(result.end_time.max()) for result in results.values())
    edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    axis = TimeAxis(float(begin), float(edges[-1]), calendar_of(next(iter(results.values())).workload))
    for name, line in line_styles(results).items():
        result, here = results[name], rows[name]
        if here is not None:
            columns = (result.submit_time, result.start_time, result.end_time, result.amount)
            steps = Sweep.of(*(column[here] for column in columns)).steps
            mean = bin_means(steps.time, 100 * steps.busy / result.size, edges)
            ax.stairs(
                mean, axis.at(edges), baseline=None, color=line.colour, linestyle=line.dash, linewidth=1
            )
    axis.apply(ax)
    ax.set_ylim(bottom=0)
