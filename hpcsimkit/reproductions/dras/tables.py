"""Tables: metrics, modes beside the paper's, the largest jobs, trainings, processor times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.console import grouped
from hpcsimkit.reports.figures import DAY, HOUR
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.dras.measured import Family, Measured
from hpcsimkit.reproductions.dras.methods import ADDED, OUTSIDE, RESERVING, SLOTS, family_of
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.runs import REWARD
from hpcsimkit.reproductions.plans.plan import Published
from hpcsimkit.reproductions.spread import spread_cell, spread_of

__all__ = [
    "PUBLISHED",
    "large_table",
    "metrics_table",
    "modes_table",
    "operation_table",
    "orders_table",
    "overhead_table",
    "trainings_table",
]

Floats = NDArray[np.float64]

PUBLISHED = Published.of_toml(Path(__file__).with_name("published.toml")).tables
"""Numbers of the paper, by table."""

LONGEST_WAITS: Mapping[str, str] = {
    "FCFS/EASY": "13",
    "Optimization": "twice DRAS",
    "BinPacking": "95",
    "Random": "170",
    "Decima-PG": "170",
    **dict.fromkeys(("DRAS-DQL", "DRAS-PG", "DRAS-A2C", "DRAS-PPO"), "14 to 20"),
}
"""Longest waits on Theta [d], as stated in the paper's text."""

MODES = ("backfilled", "ready", "reserved")
SHARES = {"jobs": "job", "core hours": "area"}

METRICS: Mapping[str, tuple[str, float]] = {
    "mean wait [h]": ("mean_wait_time", 1 / HOUR),
    "maximum wait [d]": ("max_wait_time", 1 / DAY),
    "mean response [h]": ("mean_response_time", 1 / HOUR),
    "mean slowdown": ("mean_slowdown", 1.0),
    "utilisation [%]": ("utilisation", 100.0),
}
"""Headings, measures and their factors."""


def name_of(family: Family) -> str:
    """Return the name of a row, in italics if the paper lacks it."""
    return f"*{family.name}*" if family.name in ADDED else family.name


def metrics_table(measured: Measured) -> Table:
    """Return a row per policy: means over seeds with their range; the best mean of each column is bold."""
    families = list(measured.families.values())
    lines = [[name_of(family)] for family in families]
    for measure, by in METRICS.values():
        spreads = [family.spread(measure) for family in families]
        means = [number(spread.mean * by) for spread in spreads]
        best = max(spreads) if measure == "utilisation" else min(spreads)
        for line, spread, mean in zip(lines, spreads, means, strict=True):
            is_best = mean == number(best.mean * by) and len(set(means)) > 1
            line.append(f"**{spread_cell(spread, by)}**" if is_best else spread_cell(spread, by))
    for line, family in zip(lines, families, strict=True):
        line.append(spread_cell(family.spread(REWARD), form=lambda value: f"{value:.1f}"))
        line.append("yes" if family.name in RESERVING else "no")
    return Table(["", *METRICS, "reward", "reservations"], lines)


def modes_table(measured: Measured) -> Table:
    """Return shares of jobs and core hours by mode [%], the paper's of Theta in italics (table 4)."""
    columns = [(mode, words, share) for mode in MODES for words, share in SHARES.items()]
    families = [family for name, family in measured.families.items() if name not in (*SLOTS, *OUTSIDE)]
    headings, lines = [""], [[name_of(family)] for family in families]
    for mode, words, share in columns:
        headings += [f"*{mode}: {words}*"] * measured.trace.is_theta + [f"{mode}: {words}"]
        for line, family in zip(lines, families, strict=True):
            ours = number(100 * family.spread(f"{mode}_{share}_share").mean)
            paper = PUBLISHED["table_4"].number(family.name, f"{mode}, {share}")
            line += [number(paper)] * measured.trace.is_theta + [ours]
    return Table(headings, lines)


def large_table(measured: Measured) -> Table:
    """Return the longest waits of the largest jobs, and of all, the paper's of Theta in italics [d]."""
    headings = ["", "largest jobs: maximum wait [d]", "all jobs: maximum wait [d]"]
    lines = []
    for family in measured.families.values():
        waits = spread_of(family.large_waits), family.spread("max_wait_time")
        line = [name_of(family), *(spread_cell(each, 1 / DAY) for each in waits)]
        lines.append(line + [LONGEST_WAITS.get(family.name, "")] * measured.trace.is_theta)
    return Table(headings + ["*the paper: all jobs [d]*"] * measured.trace.is_theta, lines)


def operation_table(rows: Mapping[str, Mapping[str, float]]) -> Table:
    """Return the metrics of the best agent in operation, by mode of operation."""
    lines = [
        [name, *(number(values[measure] * by) for measure, by in METRICS.values())]
        for name, values in rows.items()
    ]
    return Table(["", *METRICS], lines)


def orders_table(curves: Mapping[str, Floats]) -> Table:
    """Return validation rewards by order of job sets: the last, the best, and the best one's episode."""
    lines = [
        [name, f"{curve[-1]:.1f}", f"{curve.max():.1f}", str(int(curve.argmax()) + 1)]
        for name, curve in curves.items()
    ]
    return Table(["job sets", "reward after the last episode", "best", "after episode"], lines)


def trainings_table(rows: Iterable[tuple[str, int, float, Floats]]) -> Table:
    """Return the trainings: agent, decisions, minutes, best reward and its round, last reward."""
    lines = [
        [
            name,
            grouped(decisions),
            f"{seconds / 60:.1f}",
            f"{curve.max():.4g}",
            str(int(curve.argmax()) + 1),
            f"{curve[-1]:.4g}",
        ]
        for name, decisions, seconds, curve in rows
    ]
    return Table(["agent", "decisions", "minutes", "best reward", "after round", "last reward"], lines)


def overhead_table(rows: Sequence[tuple[Overhead, Mapping[str, float]]]) -> Table:
    """Return the processor times of decisions and updates [ms], the paper's bound in italics."""
    headings = ["", "nodes", "weights", "a decision [ms]", "an update [ms]", "*the paper, at most [ms]*"]
    return Table(
        headings,
        [
            [
                family_of(task.algorithm),
                grouped(task.nodes),
                grouped(int(found["weights"])),
                number(1000 * found["decision"]),
                number(1000 * found["update"]),
                f"{1000 * PUBLISHED['update'].number(task.algorithm, 'seconds'):.0f}",
            ]
            for task, found in rows
        ],
    )
