"""Rows of tables: everybody against the better heuristic, log by log, and all logs at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from hpcsimkit.campaigns.console import grouped
from hpcsimkit.reproductions.cells import Table, number, p_value
from hpcsimkit.reproductions.sequences import OF_PROMISES
from hpcsimkit.reproductions.textbook_rules.verdicts import Judged, Verdict

__all__ = ["LESS", "MORE", "log_table", "mark", "matrix", "per_cent", "promises_table", "typical_matrix"]

LESS, MORE = "▼", "▲"
"""Marks of who has less than the rival for sure, and more."""

RIVAL = "rival"
"""What stands where a row is compared with itself."""


def per_cent(share: float) -> str:
    """Return a relative difference.

    >>> per_cent(-0.1234), per_cent(0.5)
    ('-12.3 %', '+50.0 %')
    """
    return f"{100 * share:+.1f} %"


def mark(verdict: Verdict) -> str:
    """Return the mark of who differs from the rival for sure, after a space; of the others nothing."""
    return f" {LESS}" * verdict.is_better + f" {MORE}" * verdict.is_worse


def log_table(log: Judged) -> Table:
    """Return a row a contestant of a log, each compared with the better heuristic."""
    headings = ["", "mean", "95 % interval", f"minus {log.rival}", "relative", "ratio", "p, paired t",
                "p, Wilcoxon", "below : above"]  # fmt: skip
    lines = []
    for row in log.scores.values:
        verdict = log.verdicts.get(row)
        if verdict is None:
            lines.append([f"**{row}**", *_mean(log, row), RIVAL, *[""] * 5])
        else:
            lines.append([f"{_name(log, row)}{mark(verdict)}", *_mean(log, row), *_cells(verdict)])
    return headings, lines


def _mean(log: Judged, row: str) -> list[str]:
    from hpcsimkit.campaigns.evaluation_statistics import mean_of

    mean = mean_of(log.scores.of(row))
    return [number(mean.mean), f"{number(mean.low)} to {number(mean.high)}"]


def _cells(verdict: Verdict) -> list[str]:
    return [
        f"{verdict.difference.mean:+.2f}", per_cent(verdict.relative), f"{verdict.ratio.mean:.3f}",
        p_value(verdict.t_test), p_value(verdict.wilcoxon), f"{verdict.below} : {verdict.above}",
    ]  # fmt: skip


def _name(log: Judged, row: str) -> str:
    """Return a row's name; learned rows are in italics."""
    return f"*{row}*" if row in log.learned else row


def matrix(logs: Sequence[Judged]) -> Table:
    """Return all logs at a glance: each row's mean, relative to that of the better heuristic of the log."""
    headings = ["", *(log.name for log in logs), f"{LESS} : {MORE}"]
    lines = []
    for row in logs[0].scores.values:
        found = [log.verdicts.get(row) for log in logs]
        cells = [RIVAL if each is None else f"{per_cent(each.relative)}{mark(each)}" for each in found]
        known = [each for each in found if each is not None]
        count = f"{sum(each.is_better for each in known)} : {sum(each.is_worse for each in known)}"
        lines.append([_name(logs[0], row), *cells, count])
    return headings, lines


def typical_matrix(logs: Sequence[Judged]) -> Table:
    """Return the same by geometric means of ratios, with their intervals: what a typical sequence has."""
    lines = []
    for row in logs[0].scores.values:
        found = [log.verdicts.get(row) for log in logs]
        cells = [RIVAL if each is None else _ratio(each) for each in found]
        lines.append([_name(logs[0], row), *cells])
    return ["", *(log.name for log in logs)], lines


def _ratio(verdict: Verdict) -> str:
    ratio = verdict.ratio
    return f"{ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def promises_table(logs: Sequence[Judged]) -> Table:
    """Return which share of the promises that blocked jobs were given was broken, by row and log."""
    headings = ["", *(log.name for log in logs)]
    return headings, [
        [_name(logs[0], row), *(_promises(log, row) for log in logs)] for row in logs[0].scores.values
    ]


def _promises(log: Judged, row: str) -> str:
    made, broken = (int(log.scores.of(row, measure).sum()) for measure in OF_PROMISES[:2])
    share = 100 * broken / made if made else 0.0
    return f"{grouped(broken)} of {grouped(made)} ({share:.1f} %)"
