"""Pictures of a schedule over time: its queue, its busy nodes, and who had which nodes when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.node_numbers import assign_nodes
from hpcsimkit.pictures.figures import INK, MODE_COLOURS, PAPER, axes_of, count_axis, style, time_unit
from hpcsimkit.result import Result
from hpcsimkit.timeline import Steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

__all__ = ["BINS", "bin_means", "busy_window", "plot_busy", "plot_gantt", "plot_queue"]

Floats = NDArray[np.float64]

BINS = 240
"""Bins of a step function over time."""


# --- queue and busy nodes ------------------------------------------------------------------------------


@style()
def plot_queue(
    steps: Steps, ax: Axes | None = None, *, edges: Floats | None = None, colour: str = INK
) -> Axes:
    """Draw how many jobs wait over time: the exact mean in each bin.

    Parameters
    ----------
    steps : Steps
        What :meth:`Result.timeline` returns.
    edges : array of float, shape (bins + 1,), optional
        Borders of the bins [s]; the first is the zero of the axis. By default `BINS` bins over all of it.
    """
    ax = axes_of(ax, 7.5, 2.5)
    _step_means(steps.time, steps.waiting, edges, colour, ax)
    ax.set_ylabel("jobs waiting")
    count_axis(ax.yaxis)
    return ax


@style()
def plot_busy(
    steps: Steps, size: int, ax: Axes | None = None, *, edges: Floats | None = None, colour: str = INK
) -> Axes:
    """Draw the share of `size` nodes that are busy [%] over time; the rest is as for :func:`plot_queue`."""
    ax = axes_of(ax, 7.5, 2.5)
    _step_means(steps.time, 100 * steps.busy / size, edges, colour, ax)
    ax.set_ylabel("nodes busy [%]")
    ax.set_ylim(0, 105)
    ax.set_yticks([0, 50, 100])
    return ax


def _step_means(
    time: NDArray[np.int64], value: NDArray[Any], edges: Floats | None, colour: str, ax: Axes
) -> None:
    from matplotlib.patches import StepPatch

    if edges is None:
        first, last = (int(time[0]), int(time[-1])) if len(time) else (0, 1)
        edges = np.linspace(first, max(last, first + 1), BINS + 1)
    unit, length = time_unit(edges[-1] - edges[0])
    mean = bin_means(time, value, edges)
    at = (edges - edges[0]) / length
    ax.add_artist(StepPatch(mean, at, fill=True, color=colour, alpha=0.3, linewidth=0))
    ax.add_artist(StepPatch(mean, at, fill=False, color=colour, linewidth=0.9))
    ax.set(xlim=(at[0], at[-1]), xlabel=f"time since the first submission [{unit}]")
    ax.set_ylim(0, 1.05 * float(mean.max(initial=0)) or 1)


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


# --- Gantt charts --------------------------------------------------------------------------------------


def busy_window(results: Mapping[str, Result], jobs: int = 300) -> tuple[int, int]:
    """Return when [s] to look at a busy stretch: while `jobs` consecutive jobs are submitted.

    Of all such stretches (a new one every `jobs` / 4 submissions) it is the one at 90 % when they are sorted
    by the mean wait of their jobs over all policies: busy, but not the worst there is. If it is shorter than
    twice the mean run time of its jobs it goes on until then, or until the first policy has started 4 `jobs`.
    """
    first = next(iter(results.values()))
    submitted = np.flatnonzero(first.submit_time >= 0)
    order = submitted[np.argsort(first.submit_time[submitted], kind="stable")]
    wait = np.sum([np.nan_to_num(result.wait_time) for result in results.values()], axis=0)[order]
    starts = np.arange(0, max(len(order) - jobs, 0) + 1, max(jobs // 4, 1))
    total = np.concatenate(([0.0], np.cumsum(wait)))
    waited = total[np.minimum(starts + jobs, len(order))] - total[starts]
    place = int(starts[np.argsort(waited, kind="stable")[int(0.9 * (len(starts) - 1))]])
    rows = order[place : place + jobs]
    begin, end = int(first.submit_time[rows[0]]), int(first.submit_time[rows[-1]])
    wanted = begin + 2 * int(first.workload.run_time[rows].mean())
    return begin, max(end, min(wanted, _when_started(first, begin, 4 * jobs)), begin + 1)


def _when_started(result: Result, begin: int, jobs: int) -> int:
    """Return when so many jobs have started since a time, or the last one."""
    starts = np.sort(result.start_time[result.start_time >= begin])
    return int(starts[min(jobs, len(starts)) - 1]) if len(starts) else begin


@style()
def plot_gantt(result: Result, window: tuple[int, int] | None = None, ax: Axes | None = None) -> Axes:
    """Draw who had which nodes when: a rectangle a job and run of nodes, coloured by how the job started.

    Nodes are only counted in a run; their numbers are given by a sweep (`assign_nodes`). Jobs shorter than a
    400th of the window are drawn that long, so that they can be seen.

    Parameters
    ----------
    result : Result
        One schedule.
    window : (int, int), optional
        From when to when [s of the log's clock]; by default `busy_window`.
    """
    from matplotlib.patches import PathPatch

    ax = axes_of(ax, 7.5, 3.0)
    begin, end = window or busy_window({result.policy: result})
    unit, length = time_unit(end - begin)
    mode, corners = _rectangles(result, begin, end)
    border = min(0.25, 40 / result.size)  # or it would hide jobs of one node on a large machine
    for number, colour in enumerate(MODE_COLOURS.values(), start=1):  # one path a mode, however many jobs
        path = _path_of(corners[mode == number] / (length, 1))
        ax.add_artist(PathPatch(path, facecolor=colour, edgecolor=PAPER, linewidth=border))
    ax.set(xlim=(0, (end - begin) / length), ylim=(0, result.size))
    ax.set(xlabel=f"time in the window [{unit}]", ylabel="node")
    count_axis(ax.yaxis)
    ax.grid(visible=False)
    return ax


def _rectangles(result: Result, begin: int, end: int) -> tuple[NDArray[np.uint8], Floats]:
    """Return the start modes and the corners of all that ran in a window.

    Corners have the shape (rectangles, 4, 2): seconds from the beginning of the window, and node numbers.
    """
    inside = (result.start_time >= 0) & (result.start_time < end) & (result.end_time > begin)
    rows = np.flatnonzero(inside)
    start, stop = np.maximum(result.start_time[rows], begin), np.minimum(result.end_time[rows], end)
    numbers = assign_nodes(start, stop, result.workload.column("nodes")[rows], result.size)
    of = np.repeat(np.arange(len(rows)), [len(intervals) for intervals in numbers])
    low = np.array([interval.start for intervals in numbers for interval in intervals], dtype=float)
    high = np.array([interval.stop for intervals in numbers for interval in intervals], dtype=float)
    left = (start[of] - begin).astype(float)
    right = np.maximum(stop[of] - begin, left + (end - begin) / 400)
    corners = np.stack([left, low, left, high, right, high, right, low], axis=1).reshape(-1, 4, 2)
    return result.mode[rows][of], corners


def _path_of(corners: Floats) -> Path:
    """Return one path of many closed four-cornered shapes; `corners` has the shape (shapes, 4, 2)."""
    from matplotlib.path import Path

    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(corners))
    return Path(np.concatenate((corners, corners[:, :1]), axis=1).reshape(-1, 2), codes.astype(np.uint8))
