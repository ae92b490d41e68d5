"""Gantt charts: allocations of nodes, or of shares of machines, over time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.reports.figures import INK, MODE_COLOURS, MUTED, PAPER, count_axis, style
from hpcsimkit.reports.given import Given, draw_each, results_of
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.results.attempts import Downtime, Outcome
from hpcsimkit.results.node_numbers import assign_nodes, most_at_once
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.local_time import calendar_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

__all__ = ["Parts", "busy_window", "plot_gantt", "rectangles", "reserved"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MACHINE = 1_000_000
"""Number of units of a machine; heights of lanes are multiples of a unit."""

BAND = 0.92
"""Share of the height of a machine used by its lanes if machines are few; the rest is a gap."""

OUTAGE = -1
"""Row of an outage among those of attempts."""

ENDED = (Outcome.COMPLETED, Outcome.LIMIT)
"""Ends of attempts that are ends of jobs."""

STOPPED = "#c0392b"
"""Colour of the line where an attempt was stopped."""

HEIGHT = 200
"""Approximate height of a chart [points]."""

NAMED = 24
"""Maximum number of machine names beside the chart."""


def busy_window(results: Mapping[str, Result], jobs: int = 300) -> tuple[int, int]:
    """Return the begin and end [s] of a busy window, in which `jobs` consecutive jobs are submitted.

    Candidate windows start every `jobs` / 4 submissions. The returned one is the 90th percentile by the mean
    wait of its jobs over all policies: busy, but not the worst. A window shorter than twice the mean run time
    of its jobs is extended to that length, or until the first policy has started 4 `jobs`. For a log of no
    more than `jobs` / 4 jobs, it is the whole run.
    """
    first = next(iter(results.values()))
    submitted = np.flatnonzero(first.submit_time >= 0)
    if len(submitted) <= jobs / 4:
        begin = int(first.submit_time[submitted].min())
        return begin, max(begin + 1, *(int(result.end_time.max()) for result in results.values()))
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
    """Return the time at which a number of jobs, or all, have started since a time."""
    starts = np.sort(result.start_time[result.start_time >= begin])
    return int(starts[min(jobs, len(starts)) - 1]) if len(starts) else begin


@style()
def plot_gantt(results: Given, ax: Any = None, *, window: tuple[int, int] | None = None) -> Any:
    """Draw the allocations of jobs as rectangles, coloured by start mode.

    For homogeneous nodes, node numbers are assigned after the run by a sweep (`assign_nodes`); a job has a
    rectangle for each range of consecutive nodes. Machines have a band each, the first on top, and jobs that
    share one have lanes in it. The height of a lane is the largest share of the machine's resources that its
    job takes, so that the blank share is free of each resource. Jobs that complement each other (one takes
    the GPUs, another the memory) may exceed the band; all lanes of that machine are then scaled down. Jobs
    shorter than a 400th of the window are drawn with that length, to be visible. A job that was stopped has a
    rectangle for each attempt, with a red line where it was stopped. Outages and maintenance are hatched;
    machines that are reserved for some jobs have a dashed outline.

    Parameters
    ----------
    results : Result, several, or mapping of str to Result
        Schedules to draw, each on axes of its own.
    ax : Axes or sequence of Axes, optional
        Axes to draw on, one per schedule; by default those of a new figure.
    window : (int, int), optional
        Begin and end of the window [s of the log's clock]; by default `busy_window`.

    Returns
    -------
    Axes or array of Axes
        The axes of one schedule, or those of several.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload
    >>> w = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> plot_gantt(Simulation(w, "fcfs").run()).get_ylim()
    (np.float64(0.0), np.float64(4.0))
    """
    given = results_of(results)
    window = window or busy_window(given)
    height = 3.0 if len(given) == 1 else 2.4
    return draw_each(given, ax, lambda result, each: _draw_schedule(result, window, each), 7.5, height)


def _draw_schedule(result: Result, window: tuple[int, int], ax: Axes) -> None:
    """Draw the allocations of one schedule."""
    begin, end = window
    axis = TimeAxis(begin, end, calendar_of(result.workload), "in the window")
    axis.apply(ax)
    ax.grid(visible=False)
    parts = rectangles(result, begin, end)
    if result.placements is None:
        ax.set(ylim=(0, result.size), ylabel="node")
        count_axis(ax.yaxis)
    else:
        _machine_axis(result.placements, ax)
    points = HEIGHT * (parts.high - parts.low) / abs(np.subtract(*ax.get_ylim()))
    corners = parts.corners(begin, end)
    corners[..., 0] = axis.at(begin + corners[..., 0])
    each = result.by_attempt
    _draw(np.append(each.mode, 0)[parts.job], corners, points, ax)
    _hatch(corners[parts.job == OUTAGE], ax)
    _outline(reserved(result, begin, end), axis, ax)
    if result.attempts is not None:
        stopped = np.append(~np.isin(result.attempts.outcome, ENDED), False)[parts.job]
        stopped &= (np.append(each.end_time, end)[parts.job] < end) & (parts.job != OUTAGE)
        right = corners[stopped, 2, 0]
        ax.vlines(right, parts.low[stopped], parts.high[stopped], color=STOPPED, linewidth=0.9)


def _hatch(corners: Floats, ax: Axes) -> None:
    """Draw outages."""
    from matplotlib.patches import PathPatch

    if len(corners):
        path = _path_of(corners)
        ax.add_artist(PathPatch(path, facecolor="none", edgecolor=MUTED, hatch="/////", linewidth=0.4))


def reserved(result: Result, begin: int, end: int) -> list[tuple[int, int, int]]:
    """Return the machines that are reserved in a window: number, start and end [s]."""
    placements, windows = result.placements, result.options.get("calendar", ())
    if placements is None or not windows:
        return []
    found = []
    for window in Calendar([Window.of(each) for each in windows]).on(result.workload).windows:
        if window.reserved and window.start < end and window.end > begin:
            machines = {number for name in window.machines for number in placements.cluster.matching(name)}
            found += [(each, max(window.start, begin), min(window.end, end)) for each in sorted(machines)]
    return found


def _outline(windows: list[tuple[int, int, int]], axis: TimeAxis, ax: Axes) -> None:
    """Draw the outlines of machines that are reserved for some jobs."""
    from matplotlib.patches import Rectangle

    for machine, start, end in windows:
        left, right = (float(axis.at(time)) for time in (start, end))
        outline = Rectangle((left, machine), right - left, 1, fill=False, edgecolor=INK, linestyle="--")
        outline.set_linewidth(0.6)
        ax.add_artist(outline)


def _draw(mode: NDArray[np.uint8], corners: Floats, points: Floats, ax: Axes) -> None:
    """Draw rectangles, one path per start mode and height class, so that borders do not hide low ones."""
    from matplotlib.patches import PathPatch

    for number, colour in enumerate(MODE_COLOURS.values(), start=1):
        for least, most, border in ((1.5, np.inf, 0.25), (0.4, 1.5, 0.06), (0, 0.4, 0)):
            path = _path_of(corners[(mode == number) & (points >= least) & (points < most)])
            if len(path):
                ax.add_artist(PathPatch(path, facecolor=colour, edgecolor=PAPER, linewidth=border))


def _path_of(corners: Floats) -> Path:
    """Return one path of many closed quadrilaterals; `corners` has the shape (quadrilaterals, 4, 2)."""
    from matplotlib.path import Path

    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(corners))
    return Path(np.concatenate((corners, corners[:, :1]), axis=1).reshape(-1, 2), codes.astype(np.uint8))


# --- rectangles ------------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """Rectangles of jobs: row of the job, start and stop [s], low and high end; each of shape (parts,)."""

    job: Integers
    start: Integers
    stop: Integers
    low: Floats
    high: Floats

    def corners(self, begin: int, end: int) -> Floats:
        """Return the corners of rectangles (seconds from `begin`, height), shape (parts, 4, 2)."""
        left = (self.start - begin).astype(float)
        right = np.maximum(self.stop - begin, left + (end - begin) / 400)
        corners = [left, self.low, left, self.high, right, self.high, right, self.low]
        return np.stack(corners, axis=1).reshape(-1, 4, 2)


def rectangles(result: Result, begin: int, end: int) -> Parts:
    """Return the rectangles of the attempts of jobs, and of outages, in a window [s of the log's clock].

    Heights are numbers of nodes, or of machines (those of machine k between k and k + 1). The rows are those
    of :attr:`Result.by_attempt`; that of an outage is `OUTAGE`.
    """
    each = result.by_attempt
    if each.placements is None:
        return _nodes_of(each, begin, end)
    return _lanes_of(each, each.placements, begin, end)


class Items(NamedTuple):
    """What occupies nodes: row of the attempt, start and end [s], and amount; each of shape (items,)."""

    job: Integers
    start: Integers
    end: Integers
    amount: Integers

    @classmethod
    def of(cls, result: Result, job: Integers, amount: Integers) -> Items:
        return cls(job, result.start_time[job], result.end_time[job], amount)

    def at(self, rows: NDArray[Any]) -> Items:
        return Items(*(column[rows] for column in self))

    def beside(self, downtime: Downtime | None, amount: Integers) -> Items:
        """Return these items after those of outages, which so keep their place."""
        if downtime is None:
            return self
        outages = np.full(len(downtime.start), OUTAGE), downtime.start, downtime.end, amount
        return Items(*(np.concatenate(pair) for pair in zip(outages, self, strict=True)))


def _packed(items: Items, size: int, begin: int, end: int) -> Parts:
    """Return non-overlapping positions of the items in a window, within `size` or a larger size if needed."""
    job, start, stop, amount = items.at((items.start < end) & (items.end > begin))
    start, stop = np.maximum(start, begin), np.minimum(stop, end)
    size = max(size, most_at_once(start, stop, amount))
    places = assign_nodes(start, stop, amount, size)
    of = np.repeat(np.arange(len(job)), [len(intervals) for intervals in places])
    low = np.array([interval.start for intervals in places for interval in intervals], dtype=float)
    high = np.array([interval.stop for intervals in places for interval in intervals], dtype=float)
    return Parts(job[of], start[of], stop[of], low / size, high / size)


def _nodes_of(result: Result, begin: int, end: int) -> Parts:
    """Return the rectangles in a window on homogeneous nodes, with heights in nodes."""
    ran, down = np.flatnonzero(result.finished), result.downtime
    items = Items.of(result, ran, result.workload.column("nodes")[ran])
    items = items.beside(down, np.zeros(0, dtype=np.int64) if down is None else down.amount)
    parts = _packed(items, result.size, begin, end)
    return parts._replace(low=parts.low * result.size, high=parts.high * result.size)


def _lanes_of(result: Result, placements: Placements, begin: int, end: int) -> Parts:
    """Return the rectangles in a window on machines, those of machine k between the heights k and k + 1."""
    down = result.downtime
    items = Items.of(result, placements.job, _heights(placements, placements.machine, placements.amounts))
    machine = placements.machine
    if down is not None:
        items = items.beside(down, _heights(placements, down.machine, down.amounts))
        machine = np.concatenate([down.machine, machine])
    band = BAND if len(placements.cluster) <= NAMED else 1.0
    order = np.argsort(machine, kind="stable")
    bounds = np.searchsorted(machine[order], np.arange(len(placements.cluster) + 1))
    found = []
    for number, (first, stop) in enumerate(pairwise(bounds.tolist())):
        parts = _packed(items.at(order[first:stop]), MACHINE, begin, end)
        low, high = (number + (1 - band) / 2 + band * at for at in (parts.low, parts.high))
        found.append(parts._replace(low=low, high=high))
    return Parts(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _heights(placements: Placements, machine: Integers, amounts: Integers) -> Integers:
    """Return the heights of lanes: the largest share of a machine's resources, in units of `MACHINE`."""
    capacity = placements.cluster.capacity[machine]
    share = np.divide(amounts, capacity, out=np.zeros(capacity.shape), where=capacity > 0)
    return np.maximum((share.max(axis=1) * MACHINE).astype(np.int64), 1)


def _machine_axis(placements: Placements, ax: Axes) -> None:
    """Set an axis with a band for each machine, the first on top, with lines and at least some names."""
    names = placements.cluster.names
    machines = len(names)
    step = -(-machines // NAMED)
    ax.set(ylim=(machines, 0), ylabel="")
    ax.set_yticks(np.arange(0, machines, step) + 0.5, names[::step])
    ax.tick_params(axis="y", length=0 if step == 1 else 3)
    if step == 1:
        across = ax.get_yaxis_transform()
        ax.hlines(np.arange(1, machines), 0, 1, transform=across, color=MUTED, linewidth=0.5)
