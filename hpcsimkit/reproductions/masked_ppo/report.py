"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpcsimkit.reproductions.figures import draw_boxes
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.learners import learning_curve_of
from hpcsimkit.reproductions.masked_ppo import tables
from hpcsimkit.reproductions.masked_ppo.contest import BASELINES, CONTROLS
from hpcsimkit.reproductions.masked_ppo.figures import draw_training_curves
from hpcsimkit.reproductions.masked_ppo.scores import UTILISATION, WAIT, Scores
from hpcsimkit.reproductions.masked_ppo.statistics import Verdict, judged
from hpcsimkit.reproductions.masked_ppo.targets import baseline_targets, family_targets
from hpcsimkit.reproductions.targets import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["MaskedPPOFindings"]

LABELS = {
    WAIT: "mean wait of a day [min], logarithmic",
    UTILISATION: "utilisation of a day, by snapshots [%]",
}
"""Axis labels of the box plots."""

OTHERS = (*BASELINES, *CONTROLS)


class MaskedPPOFindings(Findings):
    """Measurements of agents and baselines."""

    @cached_property
    def scores(self) -> Scores:
        """Scores on all days."""
        days = [str(day) for day in self.plan.beocat.all_days]
        return Scores.of(((play.contestant.row, self.store.outcome(play)) for play in self.plan.plays), days)

    @property
    def day_sets(self) -> dict[str, Scores]:
        """Scores on the test days, and on the unseen days."""
        beocat = self.plan.beocat
        sets = {"test": beocat.test_days, "unseen": beocat.unseen_days}
        return {name: self.scores.on([str(day) for day in days]) for name, days in sets.items()}

    def rows(self, measure: str) -> list[str]:
        """Return the rows of a table: untrained policies, and the agents trained for the measure."""
        return [
            *BASELINES,
            *CONTROLS,
            *(row for family in self.plan.families for row in family.rows(measure)),
        ]

    @property
    def all_rows(self) -> list[str]:
        """All rows, each once."""
        return list(dict.fromkeys((*self.rows(WAIT), *self.rows(UTILISATION))))

    def rows_of_days(self, measure: str) -> list[str]:
        """Return the rows of a table of single days."""
        return [*OTHERS, *(family.row(measure) for family in self.plan.families)]

    def verdicts(self, measure: str, model: str) -> dict[str, Verdict]:
        """Return the tests of a row against untrained policies, by set of days."""
        return {
            name: judged(scores, measure, model, tuple(BASELINES), OTHERS)
            for name, scores in self.day_sets.items()
        }

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        jobs = {str(day): workload for day, workload in self.plan.beocat.all_days.items()}
        return {"scale": self.plan.beocat.scale, "tables": tables, "jobs": jobs}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for measure, label in LABELS.items():
            for name, scores in self.day_sets.items():
                values = {row: scores.by_day(row, measure) for row in self.rows(measure)}
                yield f"{measure}-{name}", draw_boxes(values, label, logarithmic=measure == WAIT)
        for family in self.plan.families:
            curves = {
                metric: [learning_curve_of(self.store.place / learner.name) for learner in learners]
                for metric, learners in family.learners.items()
            }
            yield f"training-{family.name}", draw_training_curves(curves)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        test, unseen = self.day_sets.values()
        yield from baseline_targets(test)
        for family in self.plan.families:
            rows = family.row(WAIT), family.row(UTILISATION)
            yield from family_targets(family.name, rows, test, unseen, OTHERS)
