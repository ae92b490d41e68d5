"""Gantt charts: who had which nodes when, in a window of a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.figures import MODE_COLOURS, PAPER, axes_of, time_unit
from hpcsimkit.node_numbers import assign_nodes
from hpcsimkit.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

__all__ = ["busy_window", "plot_gantt"]

Floats = NDArray[np.float64]


def busy_window(results: Mapping[str, Result], jobs: int = 300) -> tuple[int, int]:
    """Return the time [s] from the first to the last of `jobs` consecutive submissions of a busy stretch.

    Of all stretches (a new one every `jobs` / 4 submissions) it is the one at 90 % when they are sorted by
    the mean wait of their jobs over all policies: busy, but not the worst there is.
    """
    first = next(iter(results.values()))
    submitted = np.flatnonzero(first.submit_time >= 0)
    order = submitted[np.argsort(first.submit_time[submitted], kind="stable")]
    wait = np.nansum([np.nan_to_num(result.wait_time) for result in results.values()], axis=0)[order]
    submit = first.submit_time[order]
    begins = np.arange(0, max(len(order) - jobs, 0) + 1, max(jobs // 4, 1))
    total = np.concatenate(([0.0], np.cumsum(wait)))
    means = total[np.minimum(begins + jobs, len(order))] - total[begins]
    begin = begins[np.argsort(means, kind="stable")[int(0.9 * (len(begins) - 1))]]
    end = min(begin + jobs, len(order)) - 1
    return int(submit[begin]), max(int(submit[end]), int(submit[begin]) + 1)


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
    for number, colour in enumerate(MODE_COLOURS.values(), start=1):  # one path a mode, however many jobs
        path = _path_of(corners[mode == number] / (length, 1))
        ax.add_artist(PathPatch(path, facecolor=colour, edgecolor=PAPER, linewidth=0.25))
    ax.set(xlim=(0, (end - begin) / length), ylim=(0, result.size))
    ax.set(xlabel=f"time in the window [{unit}]", ylabel="node")
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
