"""Results page: tables, significance tests, figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.learners import learning_curve_of
from hpcsimkit.reproductions.masked_ppo.contest import BASELINES, CONTROLS
from hpcsimkit.reproductions.masked_ppo.data import Beocat
from hpcsimkit.reproductions.masked_ppo.family import Family
from hpcsimkit.reproductions.masked_ppo.figures import draw_boxes, draw_training_curves
from hpcsimkit.reproductions.masked_ppo.published_numbers import NOTE_ON_18
from hpcsimkit.reproductions.masked_ppo.scores import UTILISATION, WAIT, WEIGHTED, Scores
from hpcsimkit.reproductions.masked_ppo.statistics import Verdict, judged
from hpcsimkit.reproductions.masked_ppo.tables import days_table, means_table, p_value, tests_table
from hpcsimkit.reproductions.masked_ppo.targets import baseline_targets, family_targets
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.targets import Target

__all__ = ["Findings"]

MEASURES = {
    WAIT: ("Table I: mean wait", "mean wait of a day [min], logarithmic"),
    UTILISATION: ("Table II: the paper's utilisation", "utilisation of a day, by snapshots [%]"),
    WEIGHTED: ("Utilisation weighted by time and capacity", ""),
}
"""Headings of the sections, and axis labels of the box plots."""

OTHERS = (*BASELINES, *CONTROLS)


@dataclass(frozen=True)
class Findings:
    """All measurements, with the data and agents that they belong to.

    Parameters
    ----------
    beocat : Beocat
        Data of the experiment.
    families : sequence of Family
        Groups of agents; the first is that of the paper.
    scores : Scores
        Scores on all days.
    quick : bool
        Whether this is the quick version.
    """

    beocat: Beocat
    families: Sequence[Family]
    scores: Scores
    quick: bool

    @property
    def day_sets(self) -> dict[str, Scores]:
        """Scores on the test days, and on the unseen days."""
        beocat = self.beocat
        sets = {"test": beocat.test_days, "unseen": beocat.unseen_days}
        return {name: self.scores.on([str(day) for day in days]) for name, days in sets.items()}

    def rows(self, measure: str) -> list[str]:
        """Return the rows of a table: untrained policies, and the agents trained for the measure."""
        return [*BASELINES, *CONTROLS, *(row for family in self.families for row in family.rows(measure))]

    def conclusion(self, heading: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the page and the targets; figures are written to a folder."""
        page = Page(heading)
        self._introduce(page)
        for measure in (WAIT, UTILISATION):
            self._write_measure(page, measure, pictures)
        self._write_weighted(page)
        self._write_training(page, shelf, pictures)
        self._write_days(page)
        return Conclusion(list(self._targets()), str(page))

    def _targets(self) -> Iterator[Target]:
        test, unseen = self.day_sets.values()
        yield from baseline_targets(test)
        for family in self.families:
            rows = family.row(WAIT), family.row(UTILISATION)
            yield from family_targets(family.name, rows, test, unseen, OTHERS)

    # --- sections --------------------------------------------------------------------------------------

    def _introduce(self, page: Page) -> None:
        scale = self.beocat.scale
        if self.quick:
            page.text(
                f"**The quick version** (`--quick`): {scale.sets} training sets instead of 20, "
                f"{grouped(scale.steps)} decisions an agent instead of 300 000, {scale.random_seeds} runs of "
                "random schedulers instead of 10. All days are simulated."
            )
        page.items([line.strip() for line in self.beocat.lines()])
        page.items([f"Agents *{family.name}*: {family.about}." for family in self.families])
        page.text(
            "The days of the test are those of the paper's kind in these logs (the paper has 23, of months "
            "that are not published). Nobody is trained on jobs of either set of days. Beside the paper's "
            "baselines stand the rows that it lacks: SJF that places by best fit, and *any valid action*, "
            "drawn by chance, which is what an agent of K slots does before it has learned anything."
        )

    def _write_measure(self, page: Page, measure: str, pictures: Path) -> None:
        heading, label = MEASURES[measure]
        page.heading(heading)
        model = self.families[0].row(measure)
        page.table(*means_table(measure, model, self.rows(measure), **self.day_sets))
        page.text("± is the standard deviation over agents, or over runs of a random scheduler.")
        if measure == WAIT:
            page.text(NOTE_ON_18)
        for family in self.families:
            self._write_tests(page, measure, family.row(measure))
        for name, scores in self.day_sets.items():
            file = f"{measure}-{name}.png"
            values = {row: scores.by_day(row, measure) for row in self.rows(measure)}
            save_figure(draw_boxes(values, label, logarithmic=measure == WAIT), pictures / file)
            page.picture(file, f"{heading}, {name} days")
        page.text(
            "A dot is a day, of agents and random schedulers their mean; the box holds the middle half of "
            "the days, its line is the median, the whiskers reach from the 5th to the 95th percentile, the "
            "diamond is the mean and the cross the maximum."
        )

    def _write_tests(self, page: Page, measure: str, model: str) -> None:
        verdicts = {
            name: judged(scores, measure, model, tuple(BASELINES), OTHERS)
            for name, scores in self.day_sets.items()
        }
        page.text(f"Tests of *{model}* against the others, a difference below zero meaning less:")
        page.table(*tests_table(measure, verdicts))
        page.items([_about_variance(name, verdict) for name, verdict in verdicts.items()])

    def _write_weighted(self, page: Page) -> None:
        page.heading(MEASURES[WEIGHTED][0])
        page.text(
            "The paper's utilisation weighs each start and each end the same, whatever time passes between "
            "them, and each machine the same, whatever it has. This one is the share of all CPUs, all GPUs "
            "and all memory in use from the first submission to the last end; the mean of the three."
        )
        rows = dict.fromkeys((*self.rows(WAIT), *self.rows(UTILISATION)))
        page.table(*means_table(WEIGHTED, "", list(rows), **self.day_sets))

    def _write_training(self, page: Page, shelf: Shelf, pictures: Path) -> None:
        page.heading("Training")
        for family in self.families:
            file = f"training-{family.name}.png"
            curves = {
                metric: [learning_curve_of(shelf.place / learner.name) for learner in learners]
                for metric, learners in family.learners.items()
            }
            save_figure(draw_training_curves(curves), pictures / file)
            page.picture(file, f"Reward of an episode, agents {family.name}")

    def _write_days(self, page: Page) -> None:
        jobs = {str(day): workload for day, workload in self.beocat.all_days.items()}
        for measure in (WAIT, UTILISATION):
            rows = [*BASELINES, *CONTROLS, *(family.row(measure) for family in self.families)]
            for name, scores in self.day_sets.items():
                page.heading(f"Single days: {measure}, {name} days")
                page.table(*days_table(scores, measure, rows, jobs))


def _about_variance(name: str, verdict: Verdict) -> str:
    return (
        f"Analysis of variance, {name} days, the agents and the paper's four baselines: p = "
        f"{p_value(verdict.anova)} as in the paper (unpaired, n = {verdict.samples} a group, the days of "
        f"each baseline repeated for each agent), p = {p_value(verdict.anova_of_days)} with one value a day"
    )
