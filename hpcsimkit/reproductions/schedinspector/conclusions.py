"""What the runs say: the page with all tables, tests and pictures, and the targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.campaigns.console import grouped
from hpcsimkit.campaigns.explanation import HEADINGS
from hpcsimkit.pictures.explanation import draw_explanation
from hpcsimkit.pictures.figures import save_figure
from hpcsimkit.reproductions.learners import learning_curve_of
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.schedinspector.contest import BASE, INSPECTOR
from hpcsimkit.reproductions.schedinspector.data import Traces
from hpcsimkit.reproductions.schedinspector.explaining import Explaining
from hpcsimkit.reproductions.schedinspector.figures import draw_boxes, draw_curves
from hpcsimkit.reproductions.schedinspector.learners import Learners, Study
from hpcsimkit.reproductions.schedinspector.published_numbers import REJECTION_RATIOS
from hpcsimkit.reproductions.schedinspector.tables import (
    Scores,
    cross_table,
    number,
    standings_table,
    table_4,
    table_5,
)
from hpcsimkit.reproductions.schedinspector.targets import honest_targets, published_targets, training_target
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.tasks import Shelf

__all__ = ["Findings"]

LAST_ROUNDS = 10
"""Rounds at the end of a training that its table is about."""


@dataclass(frozen=True)
class Findings:
    """All that was measured, and about whom.

    Parameters
    ----------
    traces : Traces
        The logs.
    learners : Learners
        The agents.
    scores : sequence of Scores
        Of all contests.
    explaining : Explaining
        The task whose outcome is figure 13.
    quick : bool
        It is the small version.
    """

    traces: Traces
    learners: Learners
    scores: Sequence[Scores]
    explaining: Explaining
    quick: bool

    def conclusion(self, heading: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the page and the targets; pictures are drawn into a folder."""
        page = Page(heading)
        self._introduce(page)
        for protocol in ("whole", "rest"):
            self._write_table_4(page, protocol)
        self._write_rivals(page, pictures)
        self._write_table_5(page)
        self._write_cross(page)
        self._write_honest(page, pictures)
        for study in self.learners.studies:
            self._write_study(page, study, shelf, pictures)
        self._write_explanation(page, shelf, pictures)
        return Conclusion(list(self._targets(shelf)), page)

    def of(self, protocol: str, order: str | None = None, *, backfilling: bool | None = None) -> list[Scores]:
        """Return the scores of some contests, by log."""
        return [
            scores
            for scores in self.scores
            if scores.contest.protocol == protocol
            and order in (None, scores.contest.order)
            and backfilling in (None, scores.contest.backfilling)
        ]

    def _targets(self, shelf: Shelf) -> Iterator[Target]:
        for protocol in ("whole", "rest"):
            for scores in self.of(protocol, "sjf", backfilling=False):
                yield from published_targets(scores)
        yield from honest_targets(self.of("honest"))
        trained = [
            contestant.learner
            for scores in self.scores
            for contestant in scores.contest.contestants
            if contestant.learner is not None
        ]
        names = {learner.name for learner in trained}
        yield training_target([_seconds(shelf, name) for name in names])

    # --- sections --------------------------------------------------------------------------------------

    def _introduce(self, page: Page) -> None:
        scale = self.traces.scale
        if self.quick:
            page.text(
                f"**The quick version** (`--quick`): {grouped(scale.steps)} decisions an agent, "
                f"{scale.sequences} sequences a set, SJF only, without the published test and the studies."
            )
        page.items(list(self.traces.lines()))
        page.text(
            f"An agent learns from {grouped(scale.steps)} decisions, in sequences of 128 jobs, as published: "
            "rounds of 100 sequences, 80 passes over each round, networks of 938 and 929 weights, paid at "
            "the end by (base - inspector) / max(base, inspector, 1). A job is rejected 72 times at most, "
            "also in training. Unless it says *greedy*, actions are drawn, as published.",
            "By the published rules requested times are run times, a scheduler keeps to the job that it has "
            "selected until that starts, and time goes on event by event. *Base that does not commit* is the "
            "same order without that, by the textbook's rules, with the same knowledge: what an inspector "
            "gains over the base but not over it needs no learning.",
        )

    def _write_table_4(self, page: Page, protocol: str) -> None:
        scores = self.of(protocol, "sjf", backfilling=False)
        if not scores:
            return
        published = protocol == "whole"
        page.heading(f"Table 4, {'as published' if published else 'on jobs that nobody has learned from'}")
        page.text(
            "Mean bounded slowdown under SJF; the paper's numbers in italics. "
            + (
                "Trained on the first 10 000 jobs, tested on sequences from all of the log with the "
                "published seed: jobs that were learned from are among them."
                if published
                else "Trained on the first fifth of each log, tested on the rest."
            )
        )
        page.table(*table_4(scores, self.traces.first.name))

    def _write_rivals(self, page: Page, pictures: Path) -> None:
        page.heading("Everybody on the same sequences")
        page.text(
            "Jobs that nobody has learned from; p-values for the differences from the inspector, corrected "
            "by Holm's method, * below 0.05."
        )
        for scores in self.of("rest"):
            page.text(f"**{_words(scores)}**")
            page.table(*standings_table(scores))
            self._draw(page, scores, pictures)

    def _draw(self, page: Page, scores: Scores, pictures: Path) -> None:
        contest = scores.contest
        bf = "-bf" * (contest.backfilling and contest.protocol != "honest")
        file = f"{contest.protocol}-{contest.trace.name}-{contest.order}{bf}.png"
        values = {row: scores.of(row) for row in scores.values}
        label = "mean bounded slowdown of a sequence, logarithmic"
        save_figure(draw_boxes(values, label), pictures / file)
        page.picture(file, f"{_words(scores)}: a dot a sequence")

    def _write_table_5(self, page: Page) -> None:
        page.heading("Table 5: utilisation [%]")
        page.table(*table_5(self.of("rest")))
        page.text(
            "The paper's rows with and without backfilling cannot be of the same sequences: with the same "
            "jobs and the same machine, utilisation differs only by when the last job ends."
        )

    def _write_cross(self, page: Page) -> None:
        for order in self.traces.scale.orders:
            scores = self.of("rest", order, backfilling=False)
            if len(scores) > 1:
                page.heading(f"Trained here, tested there: {order.upper()}")
                page.table(*cross_table(scores))

    def _write_honest(self, page: Page, pictures: Path) -> None:
        page.heading("By the textbook's rules")
        page.text(
            "Requested times are those of users, nobody commits to a job, and the base is the best heuristic "
            "of its class: EASY that tries the shortest candidate first. Is there anything left for an "
            "inspector to gain?"
        )
        for scores in self.of("honest"):
            page.text(f"**{_words(scores)}**")
            page.table(*standings_table(scores))
            self._draw(page, scores, pictures)

    def _write_study(self, page: Page, study: Study, shelf: Shelf, pictures: Path) -> None:
        page.heading(f"{study.name.replace('-', ' ').capitalize()}: {study.about}")
        curves = {name: learning_curve_of(shelf.place / each.name) for name, each in study.learners.items()}
        save_figure(draw_curves(curves), pictures / f"{study.name}.png")
        page.picture(f"{study.name}.png", study.about)
        rows = []
        for name, curve in curves.items():
            paper = REJECTION_RATIOS.get(name.lower()) if study.name == "figure-7" else None
            reward, rejected = (curve[column][-LAST_ROUNDS:].mean() for column in ("reward", "rejected"))
            rows.append([name, f"{reward:.3f}", f"{100 * rejected:.1f} %", number(paper)])
        page.table(["agent", "reward at the end", "rejected at the end", "*paper* [%]"], rows)

    def _write_explanation(self, page: Page, shelf: Shelf, pictures: Path) -> None:
        task = self.explaining
        found = task.explanation(shelf.folder(task), shelf.outcome(task))
        page.heading("Figure 13: what is rejected")
        save_figure(draw_explanation(found), pictures / "figure-13.png")
        page.picture("figure-13.png", "distributions of what the inspector saw")
        page.table(HEADINGS, found.rows())
        page.text(
            f"{task.learner.name} on all of {task.log.name}: {grouped(len(found.rejected))} decisions, "
            f"{100 * found.ratio:.1f} % rejected. (The paper: 24 044 629 and 30 %, which cannot be: a job is "
            "accepted once and rejected 72 times at most.)"
        )


def _words(scores: Scores) -> str:
    contest = scores.contest
    behind = " with backfilling" if contest.backfilling and contest.protocol != "honest" else ""
    gain = 100 * (1 - scores.mean(INSPECTOR) / scores.mean(BASE))
    return f"{contest.trace.name}, {contest.order.upper()}{behind}: inspector below base by {gain:.1f} %"


def _seconds(shelf: Shelf, name: str) -> float:
    """Return how long a training took by its curve: checkpoints may have interrupted it."""
    curve = learning_curve_of(shelf.place / name)
    steps, rates = curve["steps"], curve["steps_per_second"]
    return float(steps[-1] / rates[-1])
