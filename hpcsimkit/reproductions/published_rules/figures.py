"""Figures: comparison of rules, agents beside untrained rules, seeds, and minimal cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcsimkit.reports.figures import (
    INK,
    MODE_COLOURS,
    MUTED,
    PAPER,
    POLICY_COLOURS,
    new_figure,
    style,
    title,
)
from hpcsimkit.reproductions.published_rules.effects import Floats, Measured
from hpcsimkit.reproductions.published_rules.minimal_cases import CASES, DRAWN, Case
from hpcsimkit.reproductions.published_rules.published_numbers import BASES, SOURCES
from hpcsimkit.reproductions.published_rules.rules import (
    EASY_SJF,
    GUARDED,
    PUBLISHED,
    TEXTBOOK,
    UNFIT,
    UNGUARDED,
)
from hpcsimkit.reproductions.published_rules.runs import Cell
from hpcsimkit.reproductions.published_rules.tables import agents_of, least_of
from hpcsimkit.results.result import MODE_NAMES, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_agents", "draw_cases", "draw_rules", "draw_seeds"]

BLUE, RED, GREEN, PURPLE, GOLD = POLICY_COLOURS[1:6]


class Mark(NamedTuple):
    """Marker style of a series."""

    marker: str
    colour: str
    filled: bool = True

    @property
    def look(self) -> dict[str, Any]:
        """Matplotlib properties; hollow markers are larger, to be visible around others."""
        return {
            "marker": self.marker,
            "markersize": 5 if self.filled else 8,
            "linestyle": "none",
            "markerfacecolor": self.colour if self.filled else "none",
            "markeredgecolor": self.colour,
            "markeredgewidth": 0.5 if self.filled else 1.2,
        }


MARKS = {
    "published rules": Mark("o", INK, filled=False),
    "textbook": Mark("o", BLUE),
    "published agent": Mark("D", RED),
    "reject iff unfit": Mark("^", GOLD),
    "unguarded shortest": Mark("^", PURPLE),
    "guarded shortest": Mark("v", GREEN),
    "textbook EASY, SJF candidates": Mark("s", BLUE),
}


class Line(NamedTuple):
    """Row of a figure: its name, and values by name of their marker."""

    name: str
    values: Mapping[str, float]


# --- dots on a logarithmic axis --------------------------------------------------------------------------


def _draw_lines(lines: Sequence[Line], ax: Axes) -> None:
    """Draw rows of markers, each with a line from the smallest to the largest value."""
    from matplotlib.ticker import LogLocator

    for place, (_, values) in enumerate(lines):
        known = {kind: value for kind, value in values.items() if np.isfinite(value)}
        ax.plot([min(known.values()), max(known.values())], [place] * 2, color=MUTED, linewidth=0.9, zorder=2)
        for kind, value in known.items():
            ax.plot([value], [place], zorder=3 + (not MARKS[kind].filled), **MARKS[kind].look)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.set_yticks(range(len(lines)), [line.name for line in lines])
    ax.set_ylim(len(lines) - 0.4, -0.6)


def _legend(figure: Figure, kinds: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=kind, **MARKS[kind].look) for kind in kinds]
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(kinds), 4))


def _shown(lines: Sequence[Line]) -> list[str]:
    """Return the series of the rows, in the order of the legend."""
    return [kind for kind in MARKS if any(np.isfinite(line.values.get(kind, np.nan)) for line in lines)]


@style()
def draw_rules(measured: Measured) -> Figure:
    """Return a figure of SchedInspector's test: orders under published and textbook semantics."""
    panels = [
        [
            Line(
                f"{cell.log} {cell.order.upper()}",
                {
                    "published rules": measured.mean(cell),
                    "textbook": measured.mean(cell, TEXTBOOK),
                },
            )
            for cell in measured.cells("schedinspector", backfilling=backfilling)
        ]
        for backfilling in (False, True)
    ]
    figure = new_figure(8.0, 1.1 + 0.19 * len(panels[0]), columns=2, sharey=True, sharex=True)
    for ax, lines, words in zip(
        figure.axes, panels, ("without backfilling", "with EASY backfilling"), strict=True
    ):
        _draw_lines(lines, ax)
        _separate(lines, ax)
        title(ax, words)
        ax.set_xlabel("mean bounded slowdown")
    _legend(figure, _shown(panels[0]))
    return figure


def _separate(lines: Sequence[Line], ax: Axes) -> None:
    """Draw a line between logs."""
    logs = [line.name.split()[0] for line in lines]
    for place in range(1, len(logs)):
        if logs[place] != logs[place - 1]:
            ax.axhline(place - 0.5, color=MUTED, linewidth=0.5)


@style()
def draw_agents(measured: Measured) -> Figure:
    """Return a figure of the published agents beside rules without training."""
    panels = {code: list(_lines_of_agents(measured, code)) for code in SOURCES}
    panels = {code: lines for code, lines in panels.items() if lines}
    heights = [len(lines) + 2 for lines in panels.values()]
    figure = new_figure(7.5, 0.9 + 0.2 * sum(heights), rows=len(panels), height_ratios=heights, sharex=True)
    for ax, (code, lines) in zip(figure.axes, panels.items(), strict=True):
        _draw_lines(lines, ax)
        title(ax, SOURCES[code])
    figure.axes[-1].set_xlabel("mean bounded slowdown")
    _legend(figure, _shown([line for lines in panels.values() for line in lines]))
    return figure


def _lines_of_agents(measured: Measured, code: str) -> Iterator[Line]:
    for (log, order, backfilling), agent in agents_of(code).items():
        cell = Cell(code, log, order or "f1", backfilling)
        if cell not in measured.runs:
            continue
        values = {"published rules": measured.mean(cell), "published agent": agent}
        if code == "schedinspector":
            values |= {
                "reject iff unfit": measured.mean(cell, UNFIT),
                "textbook": measured.mean(cell, TEXTBOOK),
            }
        elif code == "rlbackfilling":
            values |= {
                "unguarded shortest": measured.mean(cell, UNGUARDED),
                "guarded shortest": measured.mean(cell, GUARDED),
                "textbook EASY, SJF candidates": measured.mean(cell, EASY_SJF),
            }
        else:
            for kind, row in (("published rules", PUBLISHED), ("textbook", TEXTBOOK)):
                values[kind] = least_of(measured, log, row, backfilling=backfilling)[0]
        name = f"{log} {order.upper() or 'best of five'}"
        yield Line(name + " + EASY" * (backfilling and code == "rlscheduler"), values)


# --- seeds ---------------------------------------------------------------------------------------------


@style()
def draw_seeds(measured: Measured) -> Figure:
    """Return a figure of tests with many seeds: a dot per seed, as a ratio to their mean."""
    from matplotlib.ticker import LogLocator

    figure = new_figure(7.5, 0.9 + 0.26 * len(measured.seeds))
    ax = figure.axes[0]
    known = {(base.code, base.log, base.order): base.value for base in BASES if not base.run_times}
    names = []
    for place, (cell, values) in enumerate(measured.seeds.items()):
        ratios = np.sort(values[PUBLISHED]) / values[PUBLISHED].mean()
        ax.plot(ratios, place + _spread(ratios), "o", color=BLUE, alpha=0.5, markersize=3, markeredgewidth=0)
        paper = known.get((cell.code, cell.log, cell.order))
        if paper is not None:
            ratio = paper / values[PUBLISHED].mean()
            ax.plot([ratio], [place], "D", color=RED, markeredgecolor=PAPER, markersize=6)
        names.append(f"{cell.log} {cell.order.upper()}{' + EASY' * cell.backfilling}")
    ax.axvline(1, color=MUTED, linewidth=0.8, zorder=1)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_formatter(lambda value, _: "")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel("mean of a test, as a ratio to the mean of all seeds (diamond: the published one)")
    return figure


def _spread(ratios: Floats) -> Floats:
    """Return vertical offsets within a row that keep neighbouring dots apart.

    >>> _spread(np.zeros(3)).round(3).tolist()
    [-0.3, 0.071, -0.158]
    """
    return np.asarray(-0.3 + 0.6 * (np.arange(len(ratios)) * 0.618 % 1), dtype=np.float64)


# --- cases ---------------------------------------------------------------------------------------------


@style()
def draw_cases() -> Figure:
    """Return a figure of some minimal cases: schedules under published and textbook semantics."""
    from matplotlib.patches import Patch

    cases = [case for case in CASES if case.name in DRAWN]
    figure = new_figure(7.5, 1.45 * len(cases) + 0.5, rows=len(cases), columns=2, sharex="row")
    for number, case in enumerate(cases):
        left, right = figure.axes[2 * number : 2 * number + 2]
        results = case.by_published_rules, case.by_the_textbook
        for ax, result, words in (
            (left, results[0], f"{case.name}: {case.rule}"),
            (right, results[1], "textbook"),
        ):
            _draw_schedule(case, result, ax)
            title(ax, words)
        left.set_xlim(0, 1.02 * max(float(result.end_time.max()) for result in results))
    for ax in figure.axes[-2:]:
        ax.set_xlabel("time [s]")
    patches = [Patch(color=colour, label=f"starts {words}") for words, colour in STARTS.items()]
    figure.legend(handles=patches, loc="outside upper left", ncols=3)
    return figure


STARTS = {
    "at once": MODE_COLOURS["ready"],
    "after a reservation": MODE_COLOURS["reserved"],
    "behind a blocked job": MODE_COLOURS["backfilled"],
}
"""Colours of jobs, by start type."""


def _draw_schedule(case: Case, result: Result, ax: Axes) -> None:
    """Draw each job as a rectangle with its letter."""
    from matplotlib.patches import Rectangle

    for job, low in enumerate(_lowest_nodes(result)):
        start, end = float(result.start_time[job]), float(result.end_time[job])
        height = float(result.workload.nodes[job])
        mode = MODE_NAMES[result.mode[job]]
        look: dict[str, Any] = {"facecolor": MODE_COLOURS[mode], "edgecolor": PAPER, "linewidth": 1.2}
        ax.add_patch(Rectangle((start, low), end - start, height, **look))
        colour = PAPER if mode == "reserved" else INK
        middle = (start + end) / 2, low + height / 2
        ax.text(*middle, "ABCDE"[job], ha="center", va="center", color=colour, fontsize=8)
    ax.set(ylim=(0, case.nodes), ylabel="nodes")
    ax.set_yticks([0, case.nodes])
    ax.grid(visible=False)


def _lowest_nodes(result: Result) -> list[int]:
    """Return the lowest node of each job: concurrent jobs do not overlap, the largest jobs are lowest."""
    nodes, starts, ends = (
        each.tolist() for each in (result.workload.nodes, result.start_time, result.end_time)
    )
    lowest: dict[int, int] = {}
    for job in sorted(range(len(nodes)), key=lambda job: -nodes[job]):
        beside = [other for other in lowest if starts[other] < ends[job] and starts[job] < ends[other]]
        lows = [0, *(lowest[other] + nodes[other] for other in beside)]
        lowest[job] = min(
            low
            for low in lows
            if all(
                low >= lowest[other] + nodes[other] or low + nodes[job] <= lowest[other] for other in beside
            )
        )
    return [lowest[job] for job in range(len(nodes))]
