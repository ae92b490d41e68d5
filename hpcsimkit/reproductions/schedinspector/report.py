"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.agents.schedinspector.settings import RATIO
from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.explanation import draw_explanation
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.contests import Scores, learners_of
from hpcsimkit.reproductions.figures import draw_boxes
from hpcsimkit.reproductions.learners import Training, learning_curve_of
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.schedinspector import tables
from hpcsimkit.reproductions.schedinspector.contest import Contest
from hpcsimkit.reproductions.schedinspector.data import Traces
from hpcsimkit.reproductions.schedinspector.explaining import Explaining
from hpcsimkit.reproductions.schedinspector.figures import draw_curves
from hpcsimkit.reproductions.schedinspector.learners import Learners, Study
from hpcsimkit.reproductions.schedinspector.published_numbers import REJECTION_RATIOS
from hpcsimkit.reproductions.schedinspector.targets import published_targets, training_target
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.templates import rendered

__all__ = ["Findings"]

BOXES = "mean bounded slowdown of a sequence, logarithmic"


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

    def conclusion(self, title: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the report and the targets; figures are written to a folder."""
        task = self.explaining
        explanation = task.explanation(shelf.folder(task), shelf.outcome(task))
        save_figure(draw_explanation(explanation), pictures / "figure-13.png")
        for scores in self.of("rest"):
            boxes = draw_boxes({row: scores.of(row) for row in scores.values}, BOXES)
            save_figure(boxes, pictures / f"{scores.contest.label}.png")
        curves = {
            study.name: {
                name: learning_curve_of(shelf.place / each.name) for name, each in study.learners.items()
            }
            for study in self.learners.studies
        }
        for name, of_study in curves.items():
            save_figure(draw_curves(of_study), pictures / f"{name}.png")
        report = rendered(
            "schedinspector/report.md.jinja",
            title=title,
            found=self,
            scale=self.traces.scale,
            first=self.traces.first.name,
            tables=tables,
            ratio=RATIO,
            curves=curves,
            explanation=explanation,
        )
        return Conclusion(list(self._targets(shelf)), report)

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

    def rejection_ratios(self, study: Study) -> Mapping[str, float]:
        """Return the paper's ratios for its figure 7, if the study uses the same log."""
        the_same = study.name == "figure-7" and self.traces.first.name == tables.OF_PAPER
        return REJECTION_RATIOS if the_same else {}
