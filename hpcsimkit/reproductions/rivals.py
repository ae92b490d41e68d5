"""Additional baselines: heuristics of hpcsimkit on the test sequences of the agents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.experiments.tables import Table
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import (
    EASY,
    F1,
    F2,
    F3,
    F4,
    FCFS,
    SAF,
    SJF,
    SQF,
    UNICEF,
    WFP3,
    Conservative,
    LastTwo,
    ShortestPredicted,
    XFactor,
)
from hpcsimkit.reproductions.cells import number
from hpcsimkit.reproductions.scores import means_of_parts
from hpcsimkit.reproductions.sequences import BSLD, Contestant, Meeting, SequenceSet
from hpcsimkit.results.statistics import Comparison, compared

RIVALS = "rivals"
"""Flag for running the baselines only, without training the paper's agents."""

RULES: Mapping[str, Pipeline] = {
    **{
        f"{order.__name__}/EASY": Pipeline(order(), backfiller=EASY())
        for order in (FCFS, SJF, SAF, SQF, XFactor, UNICEF, WFP3, F1, F2, F3, F4)
    },
    "FCFS/EASY(SJF)": Pipeline(backfiller=EASY(SJF())),
    "FCFS/EASY(predicted)": Pipeline(backfiller=EASY(ShortestPredicted()), estimates=LastTwo()),
    "FCFS/conservative": Pipeline(backfiller=Conservative()),
    "SJF/conservative": Pipeline(SJF(), backfiller=Conservative()),
}
"""Heuristics of hpcsimkit. EASY tries candidates in queue order, unless another order is given."""


def rules_without(names: Collection[str]) -> list[tuple[str, Pipeline]]:
    """Return the heuristics of hpcsimkit with their names, but for some.

    >>> len(rules_without(["FCFS/EASY", "SJF/EASY"])) == len(RULES) - 2
    True
    """
    return [(name, rule) for name, rule in RULES.items() if name not in names]


Floats = NDArray[np.float64]
Columns = Mapping[str, tuple[str, float]]
"""Measure and factor of each column of a table, by heading."""

Rows = Mapping[str, Sequence[Task]]
"""Tasks by row."""

USUAL: Columns = {
    "mean bounded slowdown": (BSLD, 1.0),
    "mean wait [h]": ("mean_wait_time", 1 / 3600),
    "maximum bounded slowdown": ("max_bounded_slowdown", 1.0),
}


@dataclass(frozen=True)
class Field:
    """Comparison of heuristics and agents on the same sequences.

    Parameters
    ----------
    name : str
        Heading of the table.
    known : mapping of str to sequence of Task
        Runs of the baselines of the reproduction, by row; several tasks of a row have different sequences.
    rules : mapping of str to sequence of Task
        Runs of additional baselines, by row.
    learned : mapping of str to sequence of Task
        Runs of agents, by row; left out if only the baselines run.
    columns : mapping of str to (str, float)
        Measure and factor of each column, by heading; the first measure determines the best row, lower is
        better.
    parts : sequence of int
        Numbers of sequences whose mean is a value; by default each is a value of its own.
    """

    name: str
    known: Rows
    rules: Rows
    learned: Rows
    columns: Columns
    parts: Sequence[int] = ()

    @property
    def tasks(self) -> list[Task]:
        """Runs of all heuristics."""
        return [task for rows in (self.known, self.rules) for tasks in rows.values() for task in tasks]

    def values(self, store: Store, rows: Rows) -> dict[str, dict[str, Floats]]:
        """Return the measured values of some rows, by row and measure."""
        measures = [measure for measure, _ in self.columns.values()]
        found: dict[str, dict[str, Floats]] = {}
        for row, tasks in rows.items():
            outcomes = [store.outcome(task) for task in tasks]
            found[row] = {
                name: np.concatenate([self._of(each[name]) for each in outcomes]) for name in measures
            }
        return found

    def _of(self, values: Sequence[float]) -> Floats:
        return means_of_parts(values, self.parts or [1] * len(values))

    @property
    def decisive(self) -> tuple[str, float]:
        """Measure that determines the best row, and its factor."""
        return next(iter(self.columns.values()))


def field_of(
    name: str,
    sequences: SequenceSet,
    seed: int,
    rows: Mapping[str, Meeting],
    *,
    rules: Mapping[str, Pipeline] = RULES,
) -> Field:
    """Return a comparison on sequences with the heuristics of hpcsimkit as additional baselines."""
    apart = SequenceSet(f"{sequences.name}-{RIVALS}", sequences.scenarios)  # separate folders
    added = {
        row: [Meeting(Contestant(row, rule, "textbook"), apart, seed)]
        for row, rule in rules.items()
        if row not in rows
    }
    known, learned = parted(rows)
    return Field(name, known, added, learned, USUAL)


def parted(rows: Mapping[str, Meeting]) -> tuple[dict[str, list[Meeting]], dict[str, list[Meeting]]]:
    """Return the rows of heuristics, and those of agents."""
    agents = {row for row, task in rows.items() if task.contestant.learner is not None}
    return (
        {row: [task] for row, task in rows.items() if row not in agents},
        {row: [task] for row, task in rows.items() if row in agents},
    )


def measured_fields(fields: Iterable[Field], store: Store, *, alone: bool) -> Iterator[dict[str, Any]]:
    """Yield the name, the sentences on the best policies and the table of each comparison."""
    for each in fields:
        known, rules = each.values(store, each.known), each.values(store, each.rules)
        learned = {} if alone else each.values(store, each.learned)
        said = sentences(each.decisive, known, rules, learned)
        yield {"name": each.name, "sentences": said, "table": field_table(each.columns, known, rules)}


Values = Mapping[str, Mapping[str, Floats]]
"""Values by row and measure."""


def best_row(values: Values, measure: str) -> str:
    """Return the row with the lowest mean."""
    return min(values, key=lambda row: float(values[row][measure].mean()))


def sentences(decisive: tuple[str, float], known: Values, rules: Values, learned: Values) -> Iterator[str]:
    """Yield sentences on the best heuristic of the page and of hpcsimkit, and on agents below both.

    >>> one = {"FCFS": {"wait": np.array([4.0])}}, {"SJF": {"wait": np.array([3.0])}}
    >>> for sentence in sentences(("wait", 1.0), *one, {"agent": {"wait": np.array([3.5])}}):
    ...     print(sentence)
    best of the page: FCFS (4.00); of the kit: SJF (3.00, -25.0 %).
    Below the lower of both in the mean: 0 of 1 rows of agents.
    """
    measure, by = decisive
    first, second = best_row(known, measure), best_row(rules, measure)
    ours, theirs = (float(of[row][measure].mean()) for of, row in ((rules, second), (known, first)))
    relative = f", {100 * (ours / theirs - 1):+.1f} %" if theirs else ""
    page, kit = f"{first} ({number(by * theirs)})", f"{second} ({number(by * ours)}{relative})"
    yield f"best of the page: {page}; of the kit: {kit}."
    if learned:
        below = [row for row, values in learned.items() if values[measure].mean() < min(ours, theirs)]
        names = f": {', '.join(below)}" if below else ""
        rows = f"{len(below)} of {len(learned)} rows of agents"
        yield f"Below the lower of both in the mean: {rows}{names}."


def field_table(columns: Columns, known: Values, rules: Values) -> Table:
    """Return a row for each heuristic; additional ones are compared with the best of the page."""
    measure = next(iter(columns.values()))[0]
    best = best_row(known, measure)
    against = compared(known[best][measure], {row: values[measure] for row, values in rules.items()})
    lines = []
    for row, values in [*known.items(), *rules.items()]:
        cells = [number(by * float(values[each].mean())) for each, by in columns.values()]
        beside = _beside(values[measure], known[best][measure], against[row]) if row in rules else ""
        lines.append([f"*{row}*" if row in rules else row, *cells, beside])
    return Table(["", *columns, f"beside {best}"], lines)


def _beside(values: Floats, best: Floats, against: Comparison) -> str:
    """Return the relative difference between a mean and the best; a star marks a significantly lower one."""
    if not best.mean():
        return ""
    below = against.difference.mean > 0 and against.is_significant
    return f"{100 * (float(values.mean()) / float(best.mean()) - 1):+.1f} %{'*' * below}"
