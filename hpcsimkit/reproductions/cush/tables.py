"""Tables: table 1 beside ours, sampled and greedy actions, placements, clusters, horizons, trainings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpcsimkit.experiments.console import grouped
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.cush.classes import share_suited
from hpcsimkit.reproductions.cush.data import title_of
from hpcsimkit.reproductions.cush.measured import Measured
from hpcsimkit.reproductions.cush.methods import (
    ADDED,
    ALLOCATIONS,
    BEST_ALLOCATION,
    CUSH,
    EVOLVED_IN_SIGHT,
    SELECTORS,
    TRAINED,
    row,
)
from hpcsimkit.reproductions.cush.published_numbers import HORIZONS, TABLE_1
from hpcsimkit.reproductions.cush.runs import NTAT, REWARD, WAIT
from hpcsimkit.reproductions.spread import spread_cell, spread_of
from hpcsimkit.workloads.models.cush import CUSH_KINDS

__all__ = [
    "best_of_selector",
    "horizons_table",
    "in_short_table",
    "nodes_table",
    "placements_table",
    "ratios",
    "table_1",
    "trainings_table",
    "ways_table",
]

COLUMNS = {"NTAT": NTAT, "wait": WAIT, "rewards": REWARD}


def in_short_table(learned: Measured, unseen: Measured) -> Table:
    """Return a row per group of agents: its NTAT, and its difference from the baselines."""
    headings = [""]
    for words in ("learned from", "unseen"):
        headings += [f"NTAT, {words}", "to the paper's best", f"to {BEST_ALLOCATION}", "to the kit's best"]
    lines = [
        [family, *_beside_rivals(learned, family), *_beside_rivals(unseen, family)]
        for family in unseen.learned
    ]
    return Table(headings, lines)


def _beside_rivals(measured: Measured, family: str) -> Iterator[str]:
    yield number(measured.mean(family))
    standings = measured.against(family)
    for rival in measured.rivals:
        against = standings[rival].against
        assert against is not None
        yield f"{100 * against.relative:+.1f} %{'*' * standings[rival].is_beaten}"


def table_1(measured: Measured) -> Table:
    """Return a row per group, with the paper's numbers in italics; the lowest NTAT and wait are bold.

    For agents with several seeds, cells show the mean and the range.
    """
    paper = TABLE_1[measured.problem.system]
    headings, lines = [""], []
    for name in COLUMNS:
        headings += [f"*{name}, paper*", name]
    for family in measured.values:
        cells = [f"*{family}*" if family in ADDED else family]
        for place, measure in enumerate(COLUMNS.values()):
            cells.append(number(paper[family][place]) if family in paper else "")
            cells.append(_cell(measured, family, measure))
        lines.append(cells)
    return Table(headings, lines)


def _cell(measured: Measured, family: str, measure: str) -> str:
    cell = spread_cell(spread_of(measured.agents[family][measure]))
    least = min(measured.mean(each, measure) for each in measured.values)
    is_best = measure != REWARD and number(measured.mean(family, measure)) == number(least)
    return f"**{cell}**" if is_best else cell


def ways_table(systems: Mapping[str, Mapping[str, tuple[float, float]]]) -> Table:
    """Return the mean NTAT on the validation sets with greedy and with sampled actions."""
    lines = []
    for system, families in systems.items():
        for family, (best, drawn) in families.items():
            way = "drawn" if drawn < best else "best action"
            lines.append([f"{title_of(system)}: {family}", number(best), number(drawn), way])
    return Table(["", "best action", "drawn", "judged"], lines)


def placements_table(systems: Sequence[Measured]) -> Table:
    """Return the share of jobs of each type with the suitable placement style, for CuSH's agents [%]."""
    lines = []
    for measured in systems:
        for family in (family for family in measured.learned if family in TRAINED):
            shares = (100 * share_suited(measured.values[family], kind) for kind in CUSH_KINDS)
            lines.append([f"{measured.title}: {family}", *map(number, shares)])
    return Table(["", *CUSH_KINDS], lines)


def best_of_selector(measured: Measured, selector: str) -> float:
    """Return the mean NTAT of a selector with its better allocation."""
    return min(measured.mean(row(selector, allocation)) for allocation in ALLOCATIONS)


def ratios(measured: Measured) -> dict[str, float]:
    """Return the ratios to CuSH's NTAT of each selector, and of SJF with the best allocation."""
    cush = measured.mean(CUSH)
    found = {selector: best_of_selector(measured, selector) / cush for selector in SELECTORS}
    return {**found, BEST_ALLOCATION: measured.mean(BEST_ALLOCATION) / cush}


def nodes_table(sizes: Mapping[int, Measured]) -> Table:
    """Return CuSH's NTAT by cluster size, and the ratios of others to it: below 1 CuSH is worse."""
    names = [*SELECTORS, BEST_ALLOCATION]
    headings = ["nodes", "NTAT of CuSH", *(f"{name} / CuSH" for name in names)]
    lines = [
        [str(nodes), number(measured.mean(CUSH)), *(f"{ratio:.3f}" for ratio in ratios(measured).values())]
        for nodes, measured in sizes.items()
    ]
    return Table(headings, lines)


def horizons_table(horizons: Mapping[int, tuple[Measured, Measured]]) -> Table:
    """Return the NTAT of CuSH and others by horizon, on training and on unseen job sets."""
    rivals = (BEST_ALLOCATION, EVOLVED_IN_SIGHT)
    there = [f"{rival}, there" for rival in rivals]
    lines = []
    for steps, both in horizons.items():
        means = (each.mean(family) for each in both for family in (CUSH, *rivals))
        lines.append([str(steps), number(HORIZONS.get(steps)), *map(number, means)])
    return Table(["T", "*NTAT, paper*", "learned from", *there, "unseen", *there], lines)


def trainings_table(rows: Sequence[tuple[str, int, float, float, float]]) -> Table:
    """Return a row per training: name, epochs, minutes of a core, NTAT at the beginning and at the end."""
    headings = ["training", "epochs", "time [min of a core]", "NTAT of the first tenth", "of the last tenth"]
    lines = [
        [name, grouped(epochs), f"{seconds / 60:.1f}", number(first), number(last)]
        for name, epochs, seconds, first, last in rows
    ]
    return Table(headings, lines)
