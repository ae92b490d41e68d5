"""Heat map of mean waits by hour and weekday of submission."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.reports import plots
from hpcsimkit.reports.figures import ROUND_DURATIONS, format_duration, style, title, wrapped
from hpcsimkit.reports.given import Given, draw_each, results_of
from hpcsimkit.reports.picture import Picture, grid_figure, without_time
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.describe import WEEKDAYS
from hpcsimkit.workloads.readers.local_time import Calendar, calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_waits", "draw_week", "plot_week", "weekly_waits"]

MOST = 12
"""Maximum number of policies with a panel."""

KNEE = 60
"""Wait up to which the logarithmic scale is nearly linear [s]."""


def weekly_waits(result: Result, calendar: Calendar) -> NDArray[np.float64]:
    """Return the mean wait [s] by weekday (from Monday) and hour of submission, shape (7, 24).

    Days and hours are those of the clock on the wall; cells without jobs that ran are NaN.
    """
    ran = result.finished
    dates = calendar.dates(result.submit_time[ran])
    cell = np.asarray(24 * dates.day_of_week + dates.hour)
    jobs = np.bincount(cell, minlength=7 * 24)
    total = np.bincount(cell, weights=result.wait_time[ran], minlength=7 * 24)
    return np.divide(total, jobs, out=np.full(7 * 24, np.nan), where=jobs > 0).reshape(7, 24)


@style()
def plot_week(results: Given, ax: Any = None) -> Any:
    """Draw the mean waits by weekday and hour of submission, with stronger colour for longer waits.

    The scale is logarithmic, and the same for all results.

    Parameters
    ----------
    results : Result, several, or mapping of str to Result
        Schedules of a log with dates, each on axes of its own.
    ax : Axes or sequence of Axes, optional
        Axes to draw on, one per schedule; by default those of a new figure.

    Raises
    ------
    UsageError
        The log has no dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from hpcsimkit import Simulation, Workload
    >>> dates = pd.date_range("2026-01-05 08:00", periods=14, freq="D")
    >>> table = pd.DataFrame({"submit_time": dates, "run_time": 100_000, "nodes": 1})
    >>> axes = plot_week(Simulation(Workload.from_frame(table, machine_size=1), "fcfs").run())
    """
    given = results_of(results)
    workload = next(iter(given.values())).workload
    calendar = calendar_of(workload)
    if calendar is None:
        raise UsageError(f"{workload.name}: a log with dates is needed, found none in its header")
    waits = {id(result): weekly_waits(result, calendar) for result in given.values()}
    limits = _limits(waits.values())
    return draw_each(given, ax, lambda result, each: draw_waits(waits[id(result)], each, limits), 5.0, 1.8)


def _limits(waits: Iterable[NDArray[np.float64]]) -> tuple[float, float]:
    every = np.stack(list(waits))
    return float(np.nanmin(every)), float(np.nanmax(every))


@style()
def draw_waits(waits: NDArray[np.float64], ax: Axes, limits: tuple[float, float]) -> Axes:
    """Draw a table of `weekly_waits`; `limits` have the weakest and the strongest colour."""
    least, most = limits
    plots.draw_shades(waits / KNEE, ax, limits=(least / KNEE, most / KNEE))
    ax.set_xticks(range(0, 25, 6))
    ax.set_yticks(np.arange(7) + 0.5, [day[:3] for day in WEEKDAYS])
    ax.set(xlabel="hour of submission", ylim=(7, 0))
    ax.grid(visible=False)
    ax.tick_params(axis="y", length=0)
    ax.spines[:].set_visible(False)
    return ax


def draw_week(results: plots.Results) -> Picture | None:
    """Return the heat maps of all policies with one scale; None for a log without dates."""
    calendar = calendar_of(next(iter(results.values())).workload)
    if calendar is None:
        return None
    waits = {name: weekly_waits(result, calendar) for name, result in list(results.items())[:MOST]}
    limits = _limits(waits.values())
    columns = min(2, len(waits))
    figure = grid_figure(-(-len(waits) // columns), columns, height=1.2, gap=0.32, left=0.5, between=0.5)
    for place, (name, table) in enumerate(waits.items()):
        title(draw_waits(table, figure.axes[place], limits), wrapped(name, 52, lines=1))
        if place + columns < len(waits):
            without_time(figure.axes[place])
    for ax in figure.axes[len(waits) :]:
        ax.remove()
    _scale(figure, limits)
    left_out = f" The first {MOST} of {len(results)} policies." if len(results) > MOST else ""
    return Picture(
        "week",
        "Mean wait by hour and weekday",
        "Each cell is the mean wait of the jobs submitted in that hour on that day of the week; stronger "
        "colour is longer, on one scale for all policies; blank cells have no jobs.",
        f"Hours are {calendar.label}. Mean waits from {format_duration(limits[0])} to "
        f"{format_duration(limits[1])}, logarithmic scale.{left_out}",
        figure,
    )


@style()
def _scale(figure: Figure, limits: tuple[float, float]) -> None:
    """Add the colours of round durations at the top."""
    from matplotlib.patches import Patch

    round_waits = {label: at for label, at in ROUND_DURATIONS.items() if at >= KNEE or not at}
    shown = {label: at for label, at in round_waits.items() if limits[0] <= at <= limits[1]}
    least, most = limits[0] / KNEE, limits[1] / KNEE
    handles = [
        Patch(facecolor=plots.shade(at / KNEE, least, most), label=label) for label, at in shown.items()
    ]
    place = (0.04, 1 - 0.02 / figure.get_size_inches()[1])
    if handles:
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=place, ncols=10, borderpad=0.2)
