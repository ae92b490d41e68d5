"""Results page: tables, significance tests, figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.schedinspector.settings import RATIO
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.explanation import HEADINGS
from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.explanation import draw_explanation
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.cells import BOTH_TESTS, number, standings_table
from hpcsimkit.reproductions.contests import Scores, learners_of
from hpcsimkit.reproductions.figures import draw_boxes
from hpcsimkit.reproductions.learners import Training, learning_curve_of
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.schedinspector.contest import BASE, Contest
from hpcsimkit.reproductions.schedinspector.data import Traces
from hpcsimkit.reproductions.schedinspector.explaining import Explaining
from hpcsimkit.reproductions.schedinspector.figures import draw_curves
from hpcsimkit.reproductions.schedinspector.learners import Learners, Study
from hpcsimkit.reproductions.schedinspector.published_numbers import REJECTION_RATIOS
from hpcsimkit.reproductions.schedinspector.tables import AGENTS, OF_PAPER, cross_table, table_4, table_5
from hpcsimkit.reproductions.schedinspector.targets import published_targets, training_target
from hpcsimkit.reproductions.targets import Target

__all__ = ["Findings"]

Floats = NDArray[np.float64]

LAST_ROUNDS = 10
"""Number of updates at the end of a training over which its table averages."""


@dataclass(frozen=True)
class Findings:
    """All measurements, with the logs and agents that they belong to.

    Parameters
    ----------
    traces : Traces
        Logs.
    learners : Learners
        Trained agents.
    scores : sequence of Scores
        Scores of all comparisons.
    explaining : Explaining
        Task of figure 13.
    quick : bool
        Whether this is the quick version.
    """

    traces: Traces
    learners: Learners
    scores: Sequence[Scores[Contest]]
    explaining: Explaining
    quick: bool

    def conclusion(self, heading: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the page and the targets; figures are written to a folder."""
        page = Page(heading)
        self._introduce(page)
        for protocol in ("whole", "rest"):
            self._write_table_4(page, protocol)
        self._write_rivals(page, pictures)
        self._write_table_5(page)
        self._write_cross(page)
        for study in self.learners.studies:
            self._write_study(page, study, shelf, pictures)
        if self.traces.scale.study_steps:
            page.text(
                f"From figure 5 on agents learn from {grouped(self.traces.scale.study_steps)} decisions "
                "each, as published; the paper's curves have 100 rounds of about 25 000. They show how "
                "learning begins, not where it ends."
            )
        self._write_explanation(page, shelf, pictures)
        return Conclusion(list(self._targets(shelf)), str(page))

    def of(
        self, protocol: str, order: str | None = None, *, backfilling: bool | None = None
    ) -> list[Scores[Contest]]:
        """Return the scores of some comparisons, by log."""
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
        seconds: dict[str, dict[str, float]] = {}
        for learner in learners_of(each.contest for each in self.scores):
            seconds.setdefault(learner.trainer, {})[learner.name] = shelf.seconds(Training(learner))
        for trainer, of_agents in seconds.items():
            yield training_target(f"{trainer} agents", list(of_agents.values()))

    # --- sections --------------------------------------------------------------------------------------

    def _introduce(self, page: Page) -> None:
        scale = self.traces.scale
        if self.quick:
            page.text(
                f"**The quick version** (`--quick`): {grouped(scale.steps)} decisions an agent, "
                f"{scale.sequences} sequences a set or fewer, SJF only, without the published test and the "
                "studies."
            )
        page.items(list(self.traces.lines()))
        page.text(
            f"An inspector learns from {grouped(scale.steps)} decisions, in sequences of 128 jobs, as "
            "published: rounds of 100 sequences, 80 passes over each round, networks of 938 and 929 weights, "
            "paid at the end by (base - inspector) / max(base, inspector, 1). In training, as published too, "
            "nothing bounds rejections, but a sequence that has not ended with 1 280 decisions is *thrown "
            "away*: nothing of it is learned, and another one is played (its decisions count all the same). "
            "In tests a job is rejected 72 times at most, and actions are drawn, unless it says *greedy*.",
            "A *prompt inspector* has the same networks and sees the same. It is paid while jobs wait, by "
            "what -log(1 + mean bounded slowdown) falls from one decision to the next: each halving is worth "
            f"the same. It learns from {grouped(scale.prompt_steps)} decisions: rounds of {RATIO.episodes} "
            f"sequences, {RATIO.n_epochs} passes in batches of {RATIO.batch_size}; {RATIO.ent_coef} of the "
            "entropy is taken off the loss. In curves and tables of rewards 0 is the base; those of prompt "
            "inspectors are -log(1 + mean bounded slowdown), -0.69 where nobody waits.",
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
            "Jobs that nobody has learned from, no job in two sequences of a set. Differences are an "
            f"agent's from each row, sequence by sequence. {BOTH_TESTS}"
        )
        for scores in self.of("rest"):
            for agent in (each for each in AGENTS if each in scores.values):
                page.text(f"**{_words(scores, agent)}**")
                page.table(*standings_table(scores.standings(agent), agent))
            self._draw(page, scores, pictures)

    def _draw(self, page: Page, scores: Scores[Contest], pictures: Path) -> None:
        contest = scores.contest
        file = f"{contest.protocol}-{contest.trace.name}-{contest.order}{'-bf' * contest.backfilling}.png"
        values = {row: scores.of(row) for row in scores.values}
        label = "mean bounded slowdown of a sequence, logarithmic"
        save_figure(draw_boxes(values, label), pictures / file)
        page.picture(file, f"{_about(contest)}: a dot a sequence")

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
            for agent in AGENTS if len(scores) > 1 else ():
                page.heading(f"Trained here, tested there: {order.upper()}, {agent}")
                page.table(*cross_table(scores, agent))

    def _write_study(self, page: Page, study: Study, shelf: Shelf, pictures: Path) -> None:
        page.heading(f"{study.name.replace('-', ' ').capitalize()}: {study.about}")
        curves = {name: learning_curve_of(shelf.place / each.name) for name, each in study.learners.items()}
        save_figure(draw_curves(curves), pictures / f"{study.name}.png")
        page.picture(f"{study.name}.png", study.about)
        rows, of_paper = [], self._rejection_ratios(study)
        for name, curve in curves.items():
            paper = of_paper.get(name.lower())
            reward, rejected = (_at_the_end(curve[column]) for column in ("reward", "rejected"))
            rows.append(
                [name, f"{reward:.3f}", f"{100 * rejected:.1f} %", number(paper), number(_thrown_away(curve))]
            )
        headings = [
            "agent",
            "reward at the end",
            "rejected at the end",
            "*paper* [%]",
            "thrown away, of all decisions [%]",
        ]
        page.table(headings, rows)

    def _rejection_ratios(self, study: Study) -> Mapping[str, float]:
        """Return the paper's ratios for its figure 7, if the study uses the same log."""
        the_same = study.name == "figure-7" and self.traces.first.name == OF_PAPER
        return REJECTION_RATIOS if the_same else {}

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


def _about(contest: Contest) -> str:
    behind = " with backfilling" if contest.backfilling else ""
    return f"{contest.trace.name}, {contest.order.upper()}{behind}"


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


def _words(scores: Scores[Contest], agent: str) -> str:
    gain = 100 * (1 - scores.mean(agent) / scores.mean(BASE))
    return f"{_about(scores.contest)}: {agent} below base by {gain:.1f} %"
