"""Plots of a schedule over time: queue length and utilisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.timeline import Steps
from hpcsimkit.reports.figures import INK, MUTED, PAPER, axes_of, count_axis, line_styles, style
from hpcsimkit.reports.given import Given, legend_if_own, only_result, results_of
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES, busy, unusable_gpus
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.local_time import Calendar, calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BINS", "Look", "bin_means", "draw_busy", "draw_queue", "plot_busy", "plot_queue", "plot_resource"]

Floats = NDArray[np.float64]

BINS = 240
"""Default number of bins of a step function over time."""

HATCH = "//////"


# --- queue and busy nodes ------------------------------------------------------------------------------


@style()
def plot_queue(results: Given, ax: Axes | None = None, *, edges: Floats | None = None) -> Axes:
    """Draw the number of waiting jobs over time: the exact mean in each bin.

    Parameters
    ----------
    results : Result, several, or mapping of str to Result
        Schedules to draw: one as an area, several as lines.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    edges : array of float, shape (bins + 1,), optional
        Edges of the bins [s]; the first is the origin of the axis. By default `BINS` bins over the whole
        time.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> plot_queue(Simulation(w, "fcfs").run()).get_ylabel()
    'jobs waiting'
    """
    return _each_over_time(results, ax, edges, lambda each, *place: draw_queue(each.timeline(), *place))


@style()
def plot_busy(results: Given, ax: Axes | None = None, *, edges: Floats | None = None) -> Axes:
    """Draw the share of the cluster that is busy [%] over time; parameters are those of :func:`plot_queue`.

    On machines, it is the share of their first resource.
    """

    def draw(each: Result, ax: Axes, edges: Floats, look: Look, calendar: Calendar | None) -> Axes:
        return draw_busy(each.timeline(), each.size, ax, edges, look, calendar, each.unit)

    return _each_over_time(results, ax, edges, draw)


def _each_over_time(given: Given, ax: Axes | None, edges: Floats | None, draw: Callable[..., Axes]) -> Axes:
    """Draw results over time on the same axes; several as lines, with a legend on new axes."""
    results, own = results_of(given), axes_of(ax, 7.5, 2.5)
    if edges is None:
        begin = min(int(result.submit_time.min()) for result in results.values())
        end = max(int(result.end_time.max()) for result in results.values())
        edges = np.linspace(begin, max(end, begin + 1), BINS + 1)
    top = 0.0
    for name, line in line_styles(results).items():
        look = Look(INK if len(results) == 1 else line.colour, line.dash, len(results) == 1, name)
        draw(results[name], own, edges, look, calendar_of(results[name].workload))
        top = max(top, own.get_ylim()[1])
    own.set_ylim(0, top)
    return legend_if_own(own, ax, results)


class Look(NamedTuple):
    """Look of a step function: colour and dash pattern, whether its area is filled, and its label."""

    colour: str = INK
    dash: Any = "solid"
    filled: bool = True
    label: str | None = None


def draw_queue(
    steps: Steps,
    ax: Axes,
    edges: Floats | None = None,
    look: Look = Look(),  # noqa: B008 - immutable
    calendar: Calendar | None = None,
) -> Axes:
    """Draw the number of waiting jobs of some steps, with the dates of a calendar, if any."""
    _step_means(steps.time, steps.waiting, edges, look, ax, calendar)
    ax.set_ylabel("jobs waiting")
    count_axis(ax.yaxis)
    return ax


def draw_busy(
    steps: Steps,
    size: int,
    ax: Axes,
    edges: Floats | None = None,
    look: Look = Look(),  # noqa: B008 - immutable
    calendar: Calendar | None = None,
    unit: str = "nodes",
) -> Axes:
    """Draw the share of `size` that is busy [%] in some steps; `unit` is what is counted."""
    _step_means(steps.time, 100 * steps.busy / size, edges, look, ax, calendar)
    return _percent_axis(ax, RESOURCE_NAMES.get(unit, unit))


@style()
def plot_resource(
    results: Given, resource: str, ax: Axes | None = None, *, edges: Floats | None = None, colour: str = INK
) -> Axes:
    """Draw the allocated share of a resource of machines [%] over time: the exact mean in each bin.

    The hatched area above the GPUs in use is the expected number of free but unusable GPUs, computed by
    :func:`~hpcsimkit.results.resource_metrics.unusable_gpus`. Other parameters are as in :func:`plot_queue`,
    with one result.

    Examples
    --------
    >>> from hpcsimkit import Machines, Simulation, Workload
    >>> w = Workload(
    ...     {"submit_time": [0, 0], "run_time": [10, 20], "nodes": [1, 1], "cpus": [4, 2]},
    ...     resources=("cpus",),
    ... )
    >>> result = Simulation(w, "fcfs", Machines.of(2, cpus=4)).run()
    >>> plot_resource(result, "cpus", edges=np.array([0.0, 10.0, 20.0])).get_ylabel()
    'CPUs busy [%]'
    """
    from matplotlib.patches import StepPatch

    ax, result = axes_of(ax, 7.5, 2.5), only_result(results).by_attempt
    total = 0 if result.placements is None else int(result.placements.cluster.amount(resource).sum())
    used = busy(result, resource)
    edges = _edges(used.time) if edges is None else edges
    share = 100 * used.value / max(total, 1)
    at, mean = _step_means(used.time, share, edges, Look(colour), ax, calendar_of(result.workload))
    if resource == "gpus" and total:
        wasted = unusable_gpus(result)
        top = mean + bin_means(wasted.time, 100 * wasted.value / total, edges)
        look: dict[str, Any] = {"facecolor": PAPER, "edgecolor": MUTED, "hatch": HATCH, "linewidth": 0}
        ax.add_artist(StepPatch(top, at, baseline=cast(float, mean), **look))  # the type stubs have no arrays
    return _percent_axis(ax, RESOURCE_NAMES.get(resource, resource))


def _percent_axis(ax: Axes, what: str) -> Axes:
    ax.set_ylabel(f"{what} busy [%]")
    ax.set_ylim(0, 105)
    ax.set_yticks([0, 50, 100])
    return ax


def _edges(time: NDArray[np.int64]) -> Floats:
    first, last = (int(time[0]), int(time[-1])) if len(time) else (0, 1)
    return np.linspace(first, max(last, first + 1), BINS + 1)


def _step_means(
    time: NDArray[np.int64],
    value: NDArray[Any],
    edges: Floats | None,
    look: Look,
    ax: Axes,
    calendar: Calendar | None,
) -> tuple[Floats, Floats]:
    """Draw means in bins; return the edges of the bins, in units of the axis, and the means."""
    from matplotlib.patches import StepPatch

    edges = _edges(time) if edges is None else edges
    axis = TimeAxis(float(edges[0]), float(edges[-1]), calendar)
    mean = bin_means(time, value, edges)
    at = axis.at(edges)
    if look.filled:
        ax.add_artist(StepPatch(mean, at, fill=True, color=look.colour, alpha=0.3, linewidth=0))
    line: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "label": look.label}
    ax.add_artist(StepPatch(mean, at, fill=False, linewidth=0.9, **line))
    axis.apply(ax)
    ax.set_ylim(0, 1.05 * float(mean.max(initial=0)) or 1)
    return at, mean


def bin_means(time: NDArray[np.int64], value: NDArray[Any], edges: Floats) -> Floats:
    """Return the exact mean of a step function between consecutive edges.

    >>> bin_means(np.array([0, 10]), np.array([4, 0]), np.array([0.0, 5.0, 20.0])).tolist()
    [4.0, 1.3333333333333333]
    """
    if not len(time):
        return np.zeros(len(edges) - 1)
    area = np.concatenate(([0.0], np.cumsum(value[:-1] * np.diff(time).astype(float))))
    beyond = max(float(edges[-1]), float(time[-1]) + 1)
    times = np.concatenate((time.astype(float), [beyond]))
    area = np.append(area, area[-1] + float(value[-1]) * (beyond - float(time[-1])))
    return np.diff(np.interp(edges, times, area)) / np.diff(edges)
