"""Rows of tables: the paper's beside ours, everybody on the same sequences, everywhere but at home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reproductions.schedinspector.contest import (
    BASE,
    GREEDY,
    INSPECTOR,
    NOT_COMMITTED,
    UNFIT,
    Contest,
    of_log,
)
from hpcsimkit.reproductions.schedinspector.published_numbers import TABLE_4, TABLE_5, Row4
from hpcsimkit.reproductions.sequences import BSLD, standings

__all__ = ["Scores", "cross_table", "number", "standings_table", "table_4", "table_5"]

Floats = NDArray[np.float64]
Table = tuple[list[str], list[list[str]]]
"""Headings and rows."""

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Scores:
    """What was measured in a contest.

    Parameters
    ----------
    contest : Contest
        Which.
    values : mapping of str to mapping of str to array of float, shape (sequences,)
        By row and measure.
    """

    contest: Contest
    values: Mapping[str, Mapping[str, Floats]]

    def of(self, row: str, measure: str = BSLD) -> Floats:
        """Return a measure of a row on each sequence."""
        return self.values[row][measure]

    def mean(self, row: str, measure: str = BSLD) -> float:
        """Return its mean; not a number where the row is not there."""
        return float(self.of(row, measure).mean()) if row in self.values else float("nan")

    def beats(self, row: str, other: str, measure: str = BSLD) -> bool:
        """Tell whether a row has less than another for sure: the t-test's corrected p is below 0.05."""
        rows = {name: self.of(name, measure) for name in self.values}
        against = standings(rows, row)[other].against
        assert against is not None
        return bool(against.difference.mean < 0 and against.t_test_holm < SIGNIFICANT)


def number(value: float | None) -> str:
    """Return a mean with two digits after the point, as the paper has them.

    >>> number(333.1956), number(None), number(float("nan"))
    ('333.20', '', '')
    """
    return "" if value is None or value != value else f"{value:.2f}"


def table_4(contests: Sequence[Scores], first: str) -> Table:
    """Return the mean bounded slowdown under SJF, the paper's in italics beside ours.

    Parameters
    ----------
    contests : sequence of Scores
        One for each log.
    first : str
        The log whose inspector works on all others too.
    """
    headings = ["log", "*base*", "base", f"*of {first}*", f"of {first}", "*own*", "own", "own, greedy",
                "reject unfit", "no commit"]  # fmt: skip
    lines = []
    for scores in contests:
        name = scores.contest.trace.name
        paper = TABLE_4.get(name, Row4(*[float("nan")] * 3))
        of_first = INSPECTOR if name == first else of_log(first)
        ours = [scores.mean(row) for row in (BASE, of_first, INSPECTOR, GREEDY, UNFIT, NOT_COMMITTED)]
        pairs = [cell for each, own in zip(paper, ours, strict=False) for cell in (number(each), number(own))]
        lines.append([name, *pairs, *map(number, ours[3:])])
    return headings, lines


def table_5(contests: Sequence[Scores]) -> Table:
    """Return the utilisation of base and inspector, the paper's in italics beside ours [%]."""
    headings = ["log", "order", "backfilling", "*base*", "base", "*inspector*", "inspector", "difference"]
    lines = []
    for scores in contests:
        contest = scores.contest
        paper = TABLE_5.get((contest.trace.name, contest.order, contest.backfilling), (float("nan"),) * 2)
        base, own = (100 * scores.mean(row, "utilisation") for row in (BASE, INSPECTOR))
        lines.append([
            contest.trace.name, contest.order.upper(), "yes" if contest.backfilling else "no",
            number(paper[0]), number(base), number(paper[1]), number(own), f"{own - base:+.2f}",
        ])  # fmt: skip
    return headings, lines


def cross_table(contests: Sequence[Scores]) -> Table:
    """Return how inspectors do on other logs: a row a log tested on, a column a log trained on."""
    names = [scores.contest.trace.name for scores in contests]
    lines = []
    for scores in contests:
        home = scores.contest.trace.name
        means = [scores.mean(INSPECTOR if name == home else of_log(name)) for name in names]
        lines.append([home, number(scores.mean(BASE)), *map(number, means)])
    return ["tested on", "base", *(f"trained on {name}" for name in names)], lines


def standings_table(scores: Scores, one: str = INSPECTOR, measure: str = BSLD) -> Table:
    """Return everybody's mean with its interval, and what one of them has more or less, with p-values."""
    headings = [
        "scheduler",
        "mean",
        "95 % interval",
        f"{one} minus it",
        "relative",
        "p, paired t",
        "p, Wilcoxon",
    ]
    rows = standings({name: scores.of(name, measure) for name in scores.values}, one)
    lines = []
    for name, standing in rows.items():
        mean, against = standing.mean, standing.against
        line = [name, number(mean.mean), f"{number(mean.low)} to {number(mean.high)}"]
        if against is None:
            line += [""] * 4
        else:
            relative = f"{100 * against.relative:+.1f} %"
            line += [f"{against.difference.mean:+.2f}", relative]
            line += [_p_value(against.t_test_holm), _p_value(against.wilcoxon_holm)]
        lines.append(line)
    return headings, lines


def _p_value(value: float) -> str:
    """Return a p-value with three digits, and a star if it is below 0.05."""
    return f"{value:.3g}{'*' if value < SIGNIFICANT else ''}"
