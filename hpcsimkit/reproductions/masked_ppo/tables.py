"""Tables: means beside the paper's, significance tests, single days."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.masked_ppo.published_numbers import MODEL, P_VALUES, TABLES
from hpcsimkit.reproductions.masked_ppo.scores import WAIT, Scores
from hpcsimkit.reproductions.masked_ppo.statistics import Verdict

__all__ = ["days_table", "means_table", "p_value", "tests_table"]


def means_table(measure: str, model: str, rows: Sequence[str], **scores: Scores) -> Table:
    """Return the mean of each row beside the paper's, with the spread over agents or seeds.

    Parameters
    ----------
    measure : str
        Measure to show.
    model : str
        Row of the paper's model.
    rows : sequence of str
        All rows to show.
    **scores : Scores
        Columns: scores by the name of a set of days.
    """
    paper = TABLES.get(measure, {})
    headings = [f"{measure} [{'min' if measure == WAIT else '%'}]", *(["paper, 23 days"] if paper else [])]
    headings += [f"{name} days ({len(each.days)})" for name, each in scores.items()]
    lines = []
    for row in rows:
        published = paper.get(MODEL if row == model else row)
        cells = [_with_spread(each, row, measure) for each in scores.values()]
        lines.append([row, *([number(published)] if paper else []), *cells])
    return Table(headings, lines)


def _with_spread(scores: Scores, row: str, measure: str) -> str:
    spread = scores.spread(row, measure)
    mean = number(scores.mean(row, measure))
    return mean if spread is None else f"{mean} ± {number(spread)}"


def tests_table(measure: str, verdicts: Mapping[str, Verdict]) -> Table:
    """Return the significance tests of a row against all others.

    Parameters
    ----------
    measure : str
        Measure of the comparison.
    verdicts : mapping of str to Verdict
        Comparisons on each set of days.
    """
    headings = ["against", "paper: p"]
    for name in verdicts:
        headings += [f"{name}: difference", "relative", "p as in the paper", "p paired", "p Holm"]
        headings.append("Wilcoxon, Holm")
    lines = []
    for other in next(iter(verdicts.values())).paired:
        line = [other, p_value(P_VALUES[measure].get(other))]
        for verdict in verdicts.values():
            found = verdict.paired[other]
            line += [f"{found.difference.mean:+.4g}", f"{100 * found.relative:+.1f} %"]
            ps = verdict.t_tests[other], found.t_test, found.t_test_holm, found.wilcoxon_holm
            line += [p_value(p) for p in ps]
        lines.append(line)
    return Table(headings, lines)


def days_table(scores: Scores, measure: str, rows: Sequence[str], jobs: Mapping[str, Workload]) -> Table:
    """Return a line for each day: its jobs, and the mean of each row."""
    lines = [
        [day, str(len(jobs[day])), *(number(scores.by_day(row, measure)[place]) for row in rows)]
        for place, day in enumerate(scores.days)
    ]
    return Table(["day", "jobs", *rows], lines)


def p_value(value: float | None) -> str:
    """Return a p-value with three digits.

    >>> p_value(0.0371234), p_value(3.2e-12), p_value(None)
    ('0.0371', '3.2e-12', '')
    """
    return "" if value is None or not math.isfinite(value) else f"{value:.3g}"
