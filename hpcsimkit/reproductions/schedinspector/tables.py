"""Tables: the paper's numbers beside the measured ones, and agents on other logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.explanation import HEADINGS, Explanation
from hpcsimkit.reports.learning_curve import Curve
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

__all__ = [
    "AGENTS",
    "OF_PAPER",
    "cross_table",
    "explanation_table",
    "gain",
    "study_table",
    "table_4",
    "table_5",
]

Floats = NDArray[np.float64]

LAST_ROUNDS = 10
"""Number of updates at the end of a training over which its table averages."""

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


def study_table(curves: Mapping[str, Curve], paper: Mapping[str, float]) -> Table:
    """Return rewards and shares of rejections at the end of trainings, with the paper's in italics."""
    lines = []
    for name, curve in curves.items():
        reward, rejected = (_at_the_end(curve[column]) for column in ("reward", "rejected"))
        published, discarded = number(paper.get(name.lower())), number(_thrown_away(curve))
        lines.append([name, f"{reward:.3f}", f"{100 * rejected:.1f} %", published, discarded])
    at_the_end = ["reward at the end", "rejected at the end", "*paper* [%]"]
    return Table(["agent", *at_the_end, "thrown away, of all decisions [%]"], lines)


def _at_the_end(values: Floats) -> float:
    """Return the mean over the last updates with a finite value.

    >>> _at_the_end(np.array([9.0] + 9 * [1.0] + [2.0, np.nan]))
    1.1
    """
    learned = values[np.isfinite(values)][-LAST_ROUNDS:]
    return float(learned.mean()) if len(learned) else float("nan")


def _thrown_away(curve: Curve) -> float | None:
    """Return the share of decisions discarded in training [%], or None if the curve has no such column.

    >>> _thrown_away({"steps": np.array([100.0, 400.0]), "thrown_away": np.array([0.0, 0.5])})
    37.5
    """
    if "thrown_away" not in curve:
        return None
    played = np.diff(curve["steps"], prepend=0.0)
    return float(100 * played @ curve["thrown_away"] / played.sum())


def explanation_table(found: Explanation) -> Table:
    """Return the medians and distances of the features that an inspector observes."""
    return Table(HEADINGS, found.rows())


def gain(scores: Scores[Contest], agent: str) -> float:
    """Return the reduction of the mean bounded slowdown relative to the base scheduler [%]."""
    return 100 * (1 - scores.mean(agent) / scores.mean(BASE))
