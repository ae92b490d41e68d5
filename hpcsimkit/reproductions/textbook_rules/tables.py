"""Tables of all policies against the better heuristic, for each log and for all logs at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from hpcsimkit.experiments.console import grouped
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.sequences import OF_PROMISES
from hpcsimkit.reproductions.textbook_rules.verdicts import Judged, Verdict
from hpcsimkit.results.statistics import p_value_text

__all__ = ["LESS", "MORE", "log_table", "mark", "matrix", "per_cent", "promises_table", "typical_matrix"]

LESS, MORE = "▼", "▲"
"""Marks of values significantly below and above the baseline."""

RIVAL = "rival"
"""Entry in the baseline's own row."""


def per_cent(share: float) -> str:
    """Return a relative difference as a percentage.

    >>> per_cent(-0.1234), per_cent(0.5)
    ('-12.3 %', '+50.0 %')
    """
    return f"{100 * share:+.1f} %"


def mark(verdict: Verdict) -> str:
    """Return the mark of a significant difference, after a space; an empty string otherwise."""
    return f" {LESS}" * verdict.is_better + f" {MORE}" * verdict.is_worse


def log_table(log: Judged) -> Table:
    """Return the table of a log: one row per policy, each compared with the better heuristic."""
    headings = [
        "",
        "mean",
        "95 % interval",
        f"minus {log.rival}",
        "relative",
        "ratio",
        "p, paired t",
        "p, Wilcoxon",
        "below : above",
    ]
    lines = []
    for row in log.scores.values:
        verdict = log.verdicts.get(row)
        if verdict is None:
            lines.append([f"**{row}**", *_mean(log, row), RIVAL, *[""] * 5])
        else:
            lines.append([f"{_name(log, row)}{mark(verdict)}", *_mean(log, row), *_cells(verdict)])
    return Table(headings, lines)


def _mean(log: Judged, row: str) -> list[str]:
    from hpcsimkit.results.statistics import mean_of

    mean = mean_of(log.scores.of(row))
    return [number(mean.mean), f"{number(mean.low)} to {number(mean.high)}"]


def _cells(verdict: Verdict) -> list[str]:
    return [
        f"{verdict.difference.mean:+.2f}",
        per_cent(verdict.relative),
        f"{verdict.ratio.mean:.3f}",
        p_value_text(verdict.t_test),
        p_value_text(verdict.wilcoxon),
        f"{verdict.below} : {verdict.above}",
    ]


def _name(log: Judged, row: str) -> str:
    """Return the name of a row, in italics for learned rows."""
    return f"*{row}*" if row in log.learned else row


def matrix(logs: Sequence[Judged]) -> Table:
    """Return the table of all logs: each row's mean relative to that of the better heuristic of the log."""
    headings = ["", *(log.name for log in logs), f"{LESS} : {MORE}"]
    lines = []
    for row in logs[0].scores.values:
        found = [log.verdicts.get(row) for log in logs]
        cells = [RIVAL if each is None else f"{per_cent(each.relative)}{mark(each)}" for each in found]
        known = [each for each in found if each is not None]
        count = f"{sum(each.is_better for each in known)} : {sum(each.is_worse for each in known)}"
        lines.append([_name(logs[0], row), *cells, count])
    return Table(headings, lines)


def typical_matrix(logs: Sequence[Judged]) -> Table:
    """Return the table of all logs by geometric means of ratios, with their intervals."""
    lines = []
    for row in logs[0].scores.values:
        found = [log.verdicts.get(row) for log in logs]
        cells = [RIVAL if each is None else _ratio(each) for each in found]
        lines.append([_name(logs[0], row), *cells])
    return Table(["", *(log.name for log in logs)], lines)


def _ratio(verdict: Verdict) -> str:
    ratio = verdict.ratio
    return f"{ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def promises_table(logs: Sequence[Judged]) -> Table:
    """Return the share of reservation violations, by row and log."""
    headings = ["", *(log.name for log in logs)]
    return Table(
        headings,
        [[_name(logs[0], row), *(_promises(log, row) for log in logs)] for row in logs[0].scores.values],
    )


def _promises(log: Judged, row: str) -> str:
    made, broken = (int(log.scores.of(row, measure).sum()) for measure in OF_PROMISES[:2])
    share = 100 * broken / made if made else 0.0
    return f"{grouped(broken)} of {grouped(made)} ({share:.1f} %)"
