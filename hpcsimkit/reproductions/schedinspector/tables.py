"""Tables: the paper's numbers beside the measured ones, and agents on other logs."""

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
"""Log of the inspector that the paper tests on all other logs, and of its figures."""


def table_4(contests: Sequence[Scores[Contest]], first: str) -> Table:
    """Return the mean bounded slowdown under SJF, with the paper's numbers in italics.

    Parameters
    ----------
    contests : sequence of Scores
        Scores, one for each log.
    first : str
        Log of the inspectors tested on all other logs too; if the paper uses another log, its numbers for
        such an inspector are left out.
    """
    theirs = [f"*of {first}*"] if first == OF_PAPER else []
    headings = [
        "log",
        "*base*",
        "base",
        *theirs,
        f"of {first}",
        "*own*",
        "own",
        "own, greedy",
        f"prompt, of {first}",
        "prompt",
        "prompt, greedy",
        "reject unfit",
        "no commit",
    ]
    return Table(headings, [_row_4(scores, first) for scores in contests])


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
    """Return the utilisation of base and inspectors [%], with the paper's numbers in italics."""
    headings = ["log", "order", "backfilling", "*base*", "base", "*inspector*", *AGENTS]
    lines = []
    for scores in contests:
        contest = scores.contest
        paper = TABLE_5.get((contest.trace.name, contest.order, contest.backfilling), (float("nan"),) * 2)
        base, *agents = (number(100 * scores.mean(row, "utilisation")) for row in (BASE, *AGENTS))
        which = [contest.trace.name, contest.order.upper(), "yes" if contest.backfilling else "no"]
        lines.append([*which, number(paper[0]), base, number(paper[1]), *agents])
    return Table(headings, lines)


def cross_table(contests: Sequence[Scores[Contest]], row: str) -> Table:
    """Return the results of agents on other logs: a row per test log, a column per training log."""
    names = [scores.contest.trace.name for scores in contests]
    lines = []
    for scores in contests:
        home = scores.contest.trace.name
        means = [scores.mean(row if name == home else of_log(row, name)) for name in names]
        lines.append([home, number(scores.mean(BASE)), *map(number, means)])
    return Table(["tested on", "base", *(f"trained on {name}" for name in names)], lines)
