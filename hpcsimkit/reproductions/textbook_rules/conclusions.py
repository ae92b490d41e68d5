"""Results page: tables, significance tests, figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.figures import draw_rewards
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.textbook_rules.contest import Contest
from hpcsimkit.reproductions.textbook_rules.data import Traces
from hpcsimkit.reproductions.textbook_rules.explanations import (
    COLUMNS,
    CURVES,
    GLANCE,
    JUDGED,
    PICTURE,
    PROMISES,
    QUICK,
    TYPICAL,
    method,
)
from hpcsimkit.reproductions.textbook_rules.figures import draw_ratios
from hpcsimkit.reproductions.textbook_rules.tables import (
    log_table,
    matrix,
    per_cent,
    promises_table,
    typical_matrix,
)
from hpcsimkit.reproductions.textbook_rules.targets import MINUTES, logs_target, training_targets
from hpcsimkit.reproductions.textbook_rules.verdicts import Judged, judged

__all__ = ["Findings", "summary"]

CLASSES = {
    "inspector": ("inspectors", "Inspectors"),
    "backfiller": ("backfillers", "Backfillers"),
    "in-turn": ("inspectors", "Inspectors beside a trained backfiller"),
    "together": ("both", "Inspectors that learn together with a backfiller"),
}
"""Suffix of a learner's name -> (group in the target for training times, heading on the page)."""


@dataclass(frozen=True)
class Findings:
    """All measurements, with the logs and agents that they belong to.

    Parameters
    ----------
    traces : Traces
        Logs.
    learners : sequence of Learner
        Trained agents.
    scores : sequence of Scores
        Scores of each log.
    quick : bool
        Whether this is the quick version.
    """

    traces: Traces
    learners: Sequence[Learner]
    scores: Sequence[Scores[Contest]]
    quick: bool

    @cached_property
    def logs(self) -> list[Judged]:
        """Measurements and comparisons of each log."""
        return [judged(scores) for scores in self.scores]

    def conclusion(self, heading: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the page and the targets; figures are written to a folder."""
        page = Page(heading)
        self._write_answer(page, pictures)
        self._write_method(page)
        self._write_logs(page)
        self._write_promises(page)
        self._write_curves(page, shelf, pictures)
        return Conclusion([logs_target(self.logs), *training_targets(self._seconds(shelf))], str(page))

    def _of(self, kind: str) -> list[Learner]:
        """Return the learners of a class."""
        return [learner for learner in self.learners if learner.name.endswith(f"-{kind}")]

    def _seconds(self, shelf: Shelf) -> dict[str, list[float]]:
        """Return training times [s of a core], grouped as in their targets."""
        found: dict[str, list[float]] = {who: [] for who in MINUTES}
        for kind, (who, _) in CLASSES.items():
            found[who] += [shelf.seconds(Training(learner)) for learner in self._of(kind)]
        return found

    # --- sections --------------------------------------------------------------------------------------

    def _write_answer(self, page: Page, pictures: Path) -> None:
        if self.quick:
            page.text(QUICK)
        page.text(*summary(self.logs))
        page.heading("All logs at a glance")
        page.text(GLANCE)
        page.table(*matrix(self.logs))
        page.text(TYPICAL)
        page.table(*typical_matrix(self.logs))
        save_figure(draw_ratios(self.logs), pictures / "ratios.png")
        page.picture("ratios.png", PICTURE)

    def _write_method(self, page: Page) -> None:
        page.heading("Who meets, and how it is judged")
        page.items(list(self.traces.lines()))
        page.items(method(self.traces.scale))
        page.text(JUDGED)

    def _write_logs(self, page: Page) -> None:
        for log in self.logs:
            page.heading(log.name)
            page.table(*log_table(log))
        page.text(COLUMNS)

    def _write_promises(self, page: Page) -> None:
        page.heading("Promises")
        page.text(PROMISES)
        page.table(*promises_table(self.logs))

    def _write_curves(self, page: Page, shelf: Shelf, pictures: Path) -> None:
        page.heading("How they learned")
        page.text(CURVES)
        for kind, (_, words) in CLASSES.items():
            curves = {
                _panel(learner, kind): learning_curve_of(shelf.place / learner.name)
                for learner in self._of(kind)
            }
            save_figure(draw_rewards(curves), pictures / f"curves-{kind}.png")
            page.picture(f"curves-{kind}.png", words)


def summary(logs: Sequence[Judged]) -> Iterator[str]:
    """Yield the summary of all logs, for any outcome."""
    better, worse = [log for log in logs if log.better], [log for log in logs if log.worse]
    if better:
        yield (
            f"**On {len(better)} of {len(logs)} logs somebody who has learned has a lower mean bounded "
            "slowdown than the better heuristic, for sure.**"
        )
    else:
        yield (
            f"**On none of {len(logs)} logs does anybody who has learned have a lower mean bounded slowdown "
            "than the better heuristic for sure.** Where a mean is lower, it may be chance."
        )
    for log in logs:
        yield f"{log.name}: {_about(log)}"
    rows = sum(len(log.learned) for log in logs)
    yield (
        f"Of all {rows} comparisons of learned rows with their rival {sum(len(log.better) for log in logs)} "
        f"are lower for sure, {sum(len(log.worse) for log in logs)} higher for sure (on {len(worse)} logs), "
        "the others may be chance."
    )


def _about(log: Judged) -> str:
    """Return the sentence on a log: the significantly better rows, or the gap of the best learned row."""
    best = min(log.learned, key=lambda row: log.learned[row].mean.mean)
    verdict, rival = log.learned[best], log.scores.mean(log.rival)
    known = f"{log.rival} has {rival:.2f}; the lowest who has learned is *{best}* with "
    found = f"{verdict.mean.mean:.2f} ({per_cent(verdict.relative)})"
    if log.better:
        who = ", ".join(f"*{row}* ({per_cent(log.learned[row].relative)})" for row in log.better)
        return f"{known}{found}. Lower for sure: {who}."
    ps = f"p = {verdict.t_test:.2g} and {verdict.wilcoxon:.2g}"
    return f"{known}{found}, which may be chance ({ps})."


def _panel(learner: Learner, kind: str) -> str:
    log, _, order = learner.name.removesuffix(f"-{kind}").rpartition("-")
    return f"{log}, {order.upper()}"
