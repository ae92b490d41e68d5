"""Rows of tables: table 1 beside ours, both ways to act, placements, clusters, horizons, trainings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpcsimkit.campaigns.console import grouped
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
from hpcsimkit.reproductions.dras.statistics import spread_of
from hpcsimkit.reproductions.dras.tables import spread_cell
from hpcsimkit.workloads.cush import CUSH_KINDS

__all__ = [
    "best_of_selector", "horizons_table", "in_short_table", "nodes_table", "placements_table", "ratios",
    "table_1", "trainings_table", "ways_table",
]  # fmt: skip

COLUMNS = {"NTAT": NTAT, "wait": WAIT, "rewards": REWARD}


def in_short_table(learned: Measured, unseen: Measured) -> Table:
    """Return a row a family of agents: its NTAT, and how it stands beside both who are to be beaten."""
    headings = [""]
    for words in ("learned from", "unseen"):
        headings += [f"NTAT, {words}", "to the best heuristic", f"to {BEST_ALLOCATION}"]
    return headings, [
        [family, *_beside_rivals(learned, family), *_beside_rivals(unseen, family)]
        for family in unseen.learned
    ]


def _beside_rivals(measured: Measured, family: str) -> Iterator[str]:
    yield number(measured.mean(family))
    standings = measured.against(family)
    for rival in measured.rivals:
        against = standings[rival].against
        assert against is not None
        yield f"{100 * against.relative:+.1f} %{'*' * standings[rival].is_beaten}"


def table_1(measured: Measured) -> Table:
    """Return a row a family, the paper's numbers in italics beside ours; the least NTAT and wait are bold.

    Of agents of several seeds means, and from which to which they reach.
    """
    paper = TABLE_1[measured.problem.system]
    headings, lines = [""], []
    for name in COLUMNS:
        headings += [f"*{name}, paper*", name]
    for family in measured.values:
        cells = [f"*{family}*" if family in ADDED else family]
        for place, measure in enumerate(COLUMNS.values()):
            cells += [
                number(paper[family][place]) if family in paper else "",
                _cell(measured, family, measure),
            ]
        lines.append(cells)
    return headings, lines


def _cell(measured: Measured, family: str, measure: str) -> str:
    cell = spread_cell(spread_of(measured.agents[family][measure]))
    least = min(measured.mean(each, measure) for each in measured.values)
    is_best = measure != REWARD and number(measured.mean(family, measure)) == number(least)
    return f"**{cell}**" if is_best else cell


def ways_table(systems: Mapping[str, Mapping[str, tuple[float, float]]]) -> Table:
    """Return the mean NTAT on the sets to choose by of those who take the best action, and who draw."""
    return ["", "best action", "drawn", "judged"], [
        [f"{title_of(system)}: {family}", number(best), number(drawn),
         "drawn" if drawn < best else "best action"]
        for system, families in systems.items()
        for family, (best, drawn) in families.items()
    ]  # fmt: skip


def placements_table(systems: Sequence[Measured]) -> Table:
    """Return which share of the jobs of each kind CuSH places as suits it [%]."""
    return ["", *CUSH_KINDS], [
        [f"{title_of(measured.problem.system)}: {family}",
         *(number(100 * share_suited(measured.values[family], kind)) for kind in CUSH_KINDS)]
        for measured in systems
        for family in measured.learned
        if family in TRAINED
    ]  # fmt: skip


def best_of_selector(measured: Measured, selector: str) -> float:
    """Return the mean NTAT of a selector with that allocation which is better for it."""
    return min(measured.mean(row(selector, allocation)) for allocation in ALLOCATIONS)


def ratios(measured: Measured) -> dict[str, float]:
    """Return the NTAT of each selector with the better allocation, and SJF's with the best, over CuSH's."""
    cush = measured.mean(CUSH)
    found = {selector: best_of_selector(measured, selector) / cush for selector in SELECTORS}
    return {**found, BEST_ALLOCATION: measured.mean(BEST_ALLOCATION) / cush}


def nodes_table(sizes: Mapping[int, Measured]) -> Table:
    """Return by the size of the cluster CuSH's NTAT, and the others' over it: below 1 they are better."""
    names = [*SELECTORS, BEST_ALLOCATION]
    headings = ["nodes", "NTAT of CuSH", *(f"{name} / CuSH" for name in names)]
    return headings, [
        [str(nodes), number(measured.mean(CUSH)), *(f"{ratio:.3f}" for ratio in ratios(measured).values())]
        for nodes, measured in sizes.items()
    ]


def horizons_table(horizons: Mapping[int, tuple[Measured, Measured]]) -> Table:
    """Return by how many steps are seen the NTAT of CuSH and others, on sets learned from and unseen."""
    rivals = (BEST_ALLOCATION, EVOLVED_IN_SIGHT)
    there = [f"{rival}, there" for rival in rivals]
    return ["T", "*NTAT, paper*", "learned from", *there, "unseen", *there], [
        [str(steps), number(HORIZONS.get(steps)),
         *(number(each.mean(who)) for each in both for who in (CUSH, *rivals))]
        for steps, both in horizons.items()
    ]  # fmt: skip


def trainings_table(rows: Sequence[tuple[str, int, float, float, float]]) -> Table:
    """Return a row a training: name, epochs, seconds of a core, NTAT at first and at last."""
    headings = ["training", "epochs", "time [min of a core]", "NTAT of the first tenth", "of the last tenth"]
    return headings, [
        [name, grouped(epochs), f"{seconds / 60:.1f}", number(first), number(last)]
        for name, epochs, seconds, first, last in rows
    ]
