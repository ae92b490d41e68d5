"""Plots of a schedule over time: queue length and utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.timeline import Steps
from hpcsimkit.reports.figures import INK, MUTED, PAPER, axes_of, count_axis, style
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES, busy, unusable_gpus
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.local_time import Calendar, calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BINS", "bin_means", "plot_busy", "plot_queue", "plot_resource"]

Floats = NDArray[np.float64]

BINS = 240
"""Default number of bins of a step function over time."""

HATCH = "//////"


# --- queue and busy nodes ------------------------------------------------------------------------------


@style()
def plot_queue(
    steps: Steps,
    ax: Axes | None = None,
    *,
    edges: Floats | None = None,
    colour: str = INK,
    calendar: Calendar | None = None,
) -> Axes:
    """Draw the number of waiting jobs over time: the exact mean in each bin.

    Parameters
    ----------
    steps : Steps
        Step functions returned by :meth:`Result.timeline`.
    edges : array of float, shape (bins + 1,), optional
        Edges of the bins [s]; the first is the origin of the axis. By default `BINS` bins over the whole
        time.
    calendar : Calendar, optional
        Dates of the log's clock, as returned by
        :func:`~hpcsimkit.workloads.readers.local_time.calendar_of`; by default the axis shows the time since
        the first edge.
    """
    ax = axes_of(ax, 7.5, 2.5)
    _step_means(steps.time, steps.waiting, edges, colour, ax, calendar)
    ax.set_ylabel("jobs waiting")
    count_axis(ax.yaxis)
    return ax


@style()
def plot_busy(
    steps: Steps,
    size: int,
    ax: Axes | None = None,
    *,
    edges: Floats | None = None,
    colour: str = INK,
    unit: str = "nodes",
    calendar: Calendar | None = None,
) -> Axes:
    """Draw the share of `size` nodes that are busy [%] over time; other parameters as in :func:`plot_queue`.

    For machines, `unit` is the name of the resource counted by `size` and the steps: their first one.
    """
    ax = axes_of(ax, 7.5, 2.5)
    _step_means(steps.time, 100 * steps.busy / size, edges, colour, ax, calendar)
    return _percent_axis(ax, unit)


@style()
def plot_resource(
    result: Result, resource: str, ax: Axes | None = None, *, edges: Floats | None = None, colour: str = INK
) -> Axes:
    """Draw the allocated share of a resource of machines [%] over time: the exact mean in each bin.

    The hatched area above the GPUs in use is the expected number of free but unusable GPUs, computed by
    :func:`~hpcsimkit.results.resource_metrics.unusable_gpus`. Other parameters are as in :func:`plot_queue`.
    """
    from matplotlib.patches import StepPatch

    ax, result = axes_of(ax, 7.5, 2.5), result.by_attempt
    total = 0 if result.placements is None else int(result.placements.cluster.amount(resource).sum())
    used = busy(result, resource)
    edges = _edges(used.time) if edges is None else edges
    share = 100 * used.value / max(total, 1)
    at, mean = _step_means(used.time, share, edges, colour, ax, calendar_of(result.workload))
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
    colour: str,
    ax: Axes,
    calendar: Calendar | None,
) -> tuple[Floats, Floats]:
    """Draw means in bins; return the edges of the bins, in units of the axis, and the means."""
    from matplotlib.patches import StepPatch

    edges = _edges(time) if edges is None else edges
    axis = TimeAxis(float(edges[0]), float(edges[-1]), calendar)
    mean = bin_means(time, value, edges)
    at = axis.at(edges)
    ax.add_artist(StepPatch(mean, at, fill=True, color=colour, alpha=0.3, linewidth=0))
    ax.add_artist(StepPatch(mean, at, fill=False, color=colour, linewidth=0.9))
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
