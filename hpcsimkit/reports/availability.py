"""Picture of the capacity over time: what worked, what was lost, and what was out of order or reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.jobs.timeline import Curve
from hpcsimkit.reports import plots
from hpcsimkit.reports.figures import (
    INK,
    MUTED,
    PAPER,
    format_duration,
    line_styles,
    style,
    title,
    wrapped,
)
from hpcsimkit.reports.gantt import STOPPED, reserved
from hpcsimkit.reports.given import Given, draw_each, results_of
from hpcsimkit.reports.picture import Picture, grid_figure, without_time
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.reports.time_plots import BINS, HATCH, bin_means
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_availability", "plot_availability"]

Floats = NDArray[np.float64]


class Use(NamedTuple):
    """Mean use of the capacity in bins [%]: the parts are disjoint, and the rest is idle."""

    kept: Floats
    lost: Floats
    down: Floats
    reserved: Floats


@style()
def plot_availability(
    results: Given, ax: Any = None, *, edges: Floats | None = None, colour: str = INK
) -> Any:
    """Draw the use of the capacity over time [%]: the exact mean in each bin.

    From below: jobs at work whose work was kept, and, in red, work that was lost because a job was stopped.
    Hatched from above: nodes that were out of order or under maintenance. Below a dashed line is what was
    not reserved for some jobs. The rest is idle. On machines, shares are those of their first resource.

    Parameters
    ----------
    results : Result, several, or mapping of str to Result
        Schedules to draw, each on axes of its own.
    ax : Axes or sequence of Axes, optional
        Axes to draw on, one per schedule; by default those of a new figure.
    edges : array of float, shape (bins + 1,), optional
        Edges of the bins [s]. By default `BINS` bins over the whole time.

    Returns
    -------
    Axes or array of Axes
        The axes of one schedule, or those of several.
    """
    given = results_of(results)
    bins = _edges(given) if edges is None else edges
    return draw_each(given, ax, lambda result, each: _draw_use(result, each, bins, colour), 7.5, 2.5)


def _draw_use(result: Result, ax: Axes, edges: Floats, colour: str) -> None:
    """Draw the use of the capacity in one schedule."""
    from matplotlib.patches import StepPatch

    axis, use = TimeAxis(float(edges[0]), float(edges[-1]), calendar_of(result.workload)), _use(result, edges)
    at = axis.at(edges)

    def band(low: Floats, high: Floats, **look: Any) -> None:
        if (high > low).any():
            ax.add_artist(StepPatch(high, at, baseline=cast(float, low), linewidth=0, **look))

    nothing, busy = np.zeros_like(use.kept), use.kept + use.lost
    band(nothing, use.kept, facecolor=colour, alpha=0.35)
    band(use.kept, busy, facecolor=STOPPED, alpha=0.8)
    band(100 - use.down, nothing + 100, facecolor=PAPER, edgecolor=MUTED, hatch=HATCH)
    if use.reserved.any():
        open_to_all = 100 - use.down - use.reserved
        ax.stairs(open_to_all, at, baseline=None, color=INK, linestyle="--", linewidth=0.9)
    axis.apply(ax)
    ax.set(ylabel=f"{RESOURCE_NAMES.get(result.unit, result.unit)} [%]", ylim=(0, 105), yticks=[0, 50, 100])


def draw_availability(results: plots.Results) -> Picture | None:
    """Return the use of the capacity under every policy; None if nothing was lost or missing."""
    if not any(map(_changes, results.values())):
        return None
    figure, edges = grid_figure(len(results), 1, height=0.7, gap=0.28, left=0.55, between=0), _edges(results)
    for ax, (name, line) in zip(figure.axes, line_styles(results).items(), strict=True):
        plot_availability(results[name], ax, edges=edges, colour=line.colour)
        title(ax, wrapped(name, 100, lines=1))
        if ax is not figure.axes[-1]:
            without_time(ax)
    return Picture(
        "availability",
        "Capacity over time",
        "From below: jobs at work, and in red the work that was lost when jobs were stopped. Hatched from "
        "above: out of order or under maintenance. Above a dashed line: reserved for some jobs. White: idle.",
        f"Each step is the exact mean over {format_duration(edges[1] - edges[0])}. Overhead for checkpoints "
        "and restarts is part of the work.",
        figure,
    )


def _changes(result: Result) -> bool:
    """Return whether capacity was not there for all, or work was lost."""
    attempts = result.attempts
    lost = attempts is not None and bool(attempts.lost.any())
    return lost or result.downtime is not None or bool(_reserved(result))


def _reserved(result: Result) -> list[tuple[int, int, int]]:
    return reserved(result, int(result.submit_time.min()), int(result.end_time.max()))


def _edges(results: plots.Results) -> Floats:
    begin = min(int(result.submit_time.min()) for result in results.values())
    end = max(int(result.end_time.max()) for result in results.values())
    return np.linspace(begin, max(end, begin + 1), BINS + 1)


def _use(result: Result, edges: Floats) -> Use:
    """Return the use of the capacity in bins."""
    each, attempts, down = result.by_attempt, result.attempts, result.downtime
    ran = each.finished
    start, end, amount = each.start_time[ran], each.end_time[ran], each.amount[ran]
    until = end if attempts is None else end - attempts.lost[ran]
    none = _share(result, edges, [], [], [])
    return Use(
        _share(result, edges, start, until, amount),
        _share(result, edges, until, end, amount),
        none if down is None else _share(result, edges, down.start, down.end, down.amount),
        _reserved_share(result, edges),
    )


def _reserved_share(result: Result, edges: Floats) -> Floats:
    windows = np.array(_reserved(result), dtype=np.int64).reshape(-1, 3)
    machine, start, end = windows.T
    amounts = None if result.placements is None else result.placements.cluster.capacity[machine, 0]
    return _share(result, edges, start, end, [] if amounts is None else amounts)


def _share(result: Result, edges: Floats, start: Any, end: Any, amount: Any) -> Floats:
    """Return the mean share of the capacity that intervals take in each bin [%]."""
    change = np.concatenate([np.asarray(amount, dtype=float), -np.asarray(amount, dtype=float)])
    curve = Curve.of_changes(np.concatenate([start, end]), change)
    return 100 / result.size * bin_means(curve.time, curve.value, edges)
