"""Rows of tables: metrics, modes beside the paper's, the largest jobs, trainings, time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hpcsimkit.campaigns.console import grouped
from hpcsimkit.pictures.figures import DAY, HOUR
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.dras.measured import Family, Measured
from hpcsimkit.reproductions.dras.methods import ADDED, RESERVING, family_of
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.published_numbers import LONGEST_WAITS, SECONDS_OF_UPDATE, TABLE_4
from hpcsimkit.reproductions.dras.runs import REWARD
from hpcsimkit.reproductions.dras.statistics import Spread, spread_of

__all__ = [
    "large_table", "metrics_table", "modes_table", "operation_table", "orders_table", "overhead_table",
    "spread_cell", "trainings_table",
]  # fmt: skip

MODES = ("backfilled", "ready", "reserved")
SHARES = {"jobs": "job", "core hours": "area"}

METRICS: Mapping[str, tuple[str, float]] = {
    "mean wait [h]": ("mean_wait_time", 1 / HOUR),
    "maximum wait [d]": ("max_wait_time", 1 / DAY),
    "mean response [h]": ("mean_response_time", 1 / HOUR),
    "mean slowdown": ("mean_slowdown", 1.0),
    "utilisation [%]": ("utilisation", 100.0),
}
"""Headings, measures, and what these are multiplied by."""


def spread_cell(spread: Spread, by: float = 1.0, form: Callable[[float], str] = number) -> str:
    """Return a mean, and what it is of: least and most; of one seed the number alone.

    >>> spread_cell(Spread(3.0, 1.0, 6.0)), spread_cell(Spread(3.0, 3.0, 3.0), by=2)
    ('3.00 (1.00 to 6.00)', '6.00')
    """
    mean, least, most = (form(each * by) for each in spread)
    return mean if least == most else f"{mean} ({least} to {most})"


def name_of(family: Family) -> str:
    """Return what a row is called: in italics if the paper does not have it."""
    return f"*{family.name}*" if family.name in ADDED else family.name


def metrics_table(measured: Measured) -> Table:
    """Return a row a method: means over seeds, and least and most; the best mean of each column is bold."""
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
    return ["", *METRICS, "reward", "reservations"], lines


def modes_table(measured: Measured) -> Table:
    """Return shares of jobs and core hours by mode [%], the paper's of Theta in italics (table 4)."""
    columns = [(mode, words, share) for mode in MODES for words, share in SHARES.items()]
    headings, lines = [""], [[name_of(family)] for family in measured.families.values()]
    for place, (mode, words, share) in enumerate(columns):
        headings += [f"*{mode}: {words}*"] * measured.trace.is_theta + [f"{mode}: {words}"]
        for line, family in zip(lines, measured.families.values(), strict=True):
            ours = number(100 * family.spread(f"{mode}_{share}_share").mean)
            paper = TABLE_4.get(family.name)
            line += [number(paper[place] if paper else None)] * measured.trace.is_theta + [ours]
    return headings, lines


def large_table(measured: Measured) -> Table:
    """Return the longest waits of the largest jobs, and of all, the paper's of Theta in italics [d]."""
    headings = ["", "largest jobs: maximum wait [d]", "all jobs: maximum wait [d]"]
    lines = []
    for family in measured.families.values():
        waits = spread_of(family.large_waits), family.spread("max_wait_time")
        line = [name_of(family), *(spread_cell(each, 1 / DAY) for each in waits)]
        lines.append(line + [LONGEST_WAITS.get(family.name, "")] * measured.trace.is_theta)
    return headings + ["*the paper: all jobs [d]*"] * measured.trace.is_theta, lines


def operation_table(rows: Mapping[str, Mapping[str, float]]) -> Table:
    """Return metrics of the best agent in operation, by how it works."""
    lines = [
        [name, *(number(values[measure] * by) for measure, by in METRICS.values())]
        for name, values in rows.items()
    ]
    return ["", *METRICS], lines


def orders_table(rows: Mapping[str, tuple[float, float, int]]) -> Table:
    """Return what an agent earned on the month to choose by: at its end, and at best, after which episode."""
    lines = [[name, f"{last:.1f}", f"{best:.1f}", str(at)] for name, (last, best, at) in rows.items()]
    return ["job sets", "reward after the last episode", "best", "after episode"], lines


def trainings_table(rows: Sequence[tuple[str, int, float, float, int, float]]) -> Table:
    """Return how trainings went: agent, decisions, seconds, best reward, after which round, and the last."""
    lines = [
        [name, grouped(decisions), f"{seconds / 60:.1f}", f"{best:.4g}", str(at), f"{last:.4g}"]
        for name, decisions, seconds, best, at, last in rows
    ]
    return ["agent", "decisions", "minutes", "best reward", "after round", "last reward"], lines


def overhead_table(rows: Sequence[tuple[Overhead, Mapping[str, float]]]) -> Table:
    """Return how long decisions and updates take [ms], the paper's bound in italics."""
    headings = ["", "nodes", "weights", "a decision [ms]", "an update [ms]", "*the paper, at most [ms]*"]
    return headings, [
        [family_of(task.algorithm), grouped(task.nodes), grouped(int(found["weights"])),
         number(1000 * found["decision"]), number(1000 * found["update"]),
         f"{1000 * SECONDS_OF_UPDATE[task.algorithm]:.0f}"]
        for task, found in rows
    ]  # fmt: skip
