"""Rows of tables: the paper's beside ours, everywhere but at home."""

from __future__ import annotations

from collections.abc import Sequence

from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.schedinspector.contest import (
    BASE,
    INSPECTOR,
    NOT_COMMITTED,
    PROMPT,
    UNFIT,
    Contest,
    greedy,
    of_log,
)
from hpcsimkit.reproductions.schedinspector.published_numbers import TABLE_4, TABLE_5, Row4

__all__ = ["AGENTS", "OF_PAPER", "cross_table", "table_4", "table_5"]

AGENTS = (INSPECTOR, PROMPT)
"""Rows of agents on the log that they were trained on."""

OF_PAPER = "SDSC-SP2"
"""The log whose inspector the paper tries on all others, and which its figures are about."""


def table_4(contests: Sequence[Scores[Contest]], first: str) -> Table:
    """Return the mean bounded slowdown under SJF, the paper's in italics beside ours.

    Parameters
    ----------
    contests : sequence of Scores
        One for each log.
    first : str
        The log whose inspectors work on all others too; if it is not the paper's, the paper's numbers of such
        an inspector are left out.
    """
    theirs = [f"*of {first}*"] if first == OF_PAPER else []
    headings = ["log", "*base*", "base", *theirs, f"of {first}", "*own*", "own", "own, greedy",
                f"prompt, of {first}", "prompt", "prompt, greedy", "reject unfit", "no commit"]  # fmt: skip
    return headings, [_row_4(scores, first) for scores in contests]


def _row_4(scores: Scores[Contest], first: str) -> list[str]:
    name = scores.contest.trace.name
    paper = TABLE_4.get(name, Row4(*[float("nan")] * 3))
    (visitor, *own), prompt = (
        [
            number(scores.mean(each))
            for each in (row if name == first else of_log(row, first), row, greedy(row))
        ]
        for row in AGENTS
    )
    theirs = [number(paper.of_sdsc)] if first == OF_PAPER else []
    base, *others = (number(scores.mean(row)) for row in (BASE, UNFIT, NOT_COMMITTED))
    return [name, number(paper.base), base, *theirs, visitor, number(paper.own), *own, *prompt, *others]


def table_5(contests: Sequence[Scores[Contest]]) -> Table:
    """Return the utilisation of base and inspectors, the paper's in italics beside ours [%]."""
    headings = ["log", "order", "backfilling", "*base*", "base", "*inspector*", *AGENTS]
    lines = []
    for scores in contests:
        contest = scores.contest
        paper = TABLE_5.get((contest.trace.name, contest.order, contest.backfilling), (float("nan"),) * 2)
        base, *agents = (number(100 * scores.mean(row, "utilisation")) for row in (BASE, *AGENTS))
        which = [contest.trace.name, contest.order.upper(), "yes" if contest.backfilling else "no"]
        lines.append([*which, number(paper[0]), base, number(paper[1]), *agents])
    return headings, lines


def cross_table(contests: Sequence[Scores[Contest]], row: str) -> Table:
    """Return how agents do on other logs: a row a log tested on, a column a log trained on."""
    names = [scores.contest.trace.name for scores in contests]
    lines = []
    for scores in contests:
        home = scores.contest.trace.name
        means = [scores.mean(row if name == home else of_log(row, name)) for name in names]
        lines.append([home, number(scores.mean(BASE)), *map(number, means)])
    return ["tested on", "base", *(f"trained on {name}" for name in names)], lines
