"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpcsimkit.agents.schedinspector.settings import RATIO
from hpcsimkit.experiments.explanation import Explanation
from hpcsimkit.reports.explanation import draw_explanation
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.contests import Scores, learners_of
from hpcsimkit.reproductions.figures import draw_boxes
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.learners import Training, learning_curve_of
from hpcsimkit.reproductions.schedinspector import tables
from hpcsimkit.reproductions.schedinspector.contest import Contest
from hpcsimkit.reproductions.schedinspector.figures import draw_curves
from hpcsimkit.reproductions.schedinspector.learners import Study
from hpcsimkit.reproductions.schedinspector.published_numbers import REJECTION_RATIOS
from hpcsimkit.reproductions.schedinspector.targets import published_targets, training_target
from hpcsimkit.reproductions.targets import Target

__all__ = ["SchedInspectorFindings"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOXES = "mean bounded slowdown of a sequence, logarithmic"


class SchedInspectorFindings(Findings):
    """Measurements of inspectors and their rivals."""

    @cached_property
    def scores(self) -> list[Scores[Contest]]:
        """Scores of all comparisons."""
        return self.plan.scores(self.store)

    @cached_property
    def curves(self) -> dict[str, dict[str, Curve]]:
        """Learning curves by study and panel."""
        return {
            study.name: {
                name: learning_curve_of(self.store.place / each.name) for name, each in study.learners.items()
            }
            for study in self.plan.learning.studies
        }

    @cached_property
    def explanation(self) -> Explanation:
        """Features of rejected jobs (figure 13)."""
        task = self.plan.explaining
        return task.explanation(self.store.folder(task), self.store.outcome(task))

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        traces = self.plan.traces
        return {"scale": traces.scale, "first": traces.first.name, "tables": tables, "ratio": RATIO}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        yield "figure-13", draw_explanation(self.explanation)
        for scores in self.of("rest"):
            yield scores.contest.label, draw_boxes({row: scores.of(row) for row in scores.values}, BOXES)
        for name, curves in self.curves.items():
            yield name, draw_curves(curves)

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

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        for protocol in ("whole", "rest"):
            for scores in self.of(protocol, "sjf", backfilling=False):
                yield from published_targets(scores)
        seconds: dict[str, dict[str, float]] = {}
        for learner in learners_of(each.contest for each in self.scores):
            seconds.setdefault(learner.trainer, {})[learner.name] = self.store.seconds(Training(learner))
        for trainer, of_agents in seconds.items():
            yield training_target(f"{trainer} agents", list(of_agents.values()))

    def rejection_ratios(self, study: Study) -> Mapping[str, float]:
        """Return the paper's ratios for its figure 7, if the study uses the same log."""
        the_same = study.name == "figure-7" and self.plan.traces.first.name == tables.OF_PAPER
        return REJECTION_RATIOS if the_same else {}
