"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.learners import learning_curve_of
from hpcsimkit.reproductions.masked_ppo import tables
from hpcsimkit.reproductions.masked_ppo.contest import BASELINES, CONTROLS
from hpcsimkit.reproductions.masked_ppo.data import Beocat
from hpcsimkit.reproductions.masked_ppo.family import Family
from hpcsimkit.reproductions.masked_ppo.figures import draw_boxes, draw_training_curves
from hpcsimkit.reproductions.masked_ppo.scores import UTILISATION, WAIT, Scores
from hpcsimkit.reproductions.masked_ppo.statistics import Verdict, judged
from hpcsimkit.reproductions.masked_ppo.targets import baseline_targets, family_targets
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.templates import rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Findings"]

LABELS = {
    WAIT: "mean wait of a day [min], logarithmic",
    UTILISATION: "utilisation of a day, by snapshots [%]",
}
"""Axis labels of the box plots."""

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

    @property
    def all_rows(self) -> list[str]:
        """All rows, each once."""
        return list(dict.fromkeys((*self.rows(WAIT), *self.rows(UTILISATION))))

    def rows_of_days(self, measure: str) -> list[str]:
        """Return the rows of a table of single days."""
        return [*OTHERS, *(family.row(measure) for family in self.families)]

    def verdicts(self, measure: str, model: str) -> dict[str, Verdict]:
        """Return the tests of a row against untrained policies, by set of days."""
        return {
            name: judged(scores, measure, model, tuple(BASELINES), OTHERS)
            for name, scores in self.day_sets.items()
        }

    def conclusion(self, title: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the report and the targets; figures are written to a folder."""
        for name, figure in self._figures(shelf):
            save_figure(figure, pictures / f"{name}.png")
        report = rendered(
            "masked_ppo/report.md.jinja",
            title=title,
            found=self,
            scale=self.beocat.scale,
            tables=tables,
            jobs={str(day): workload for day, workload in self.beocat.all_days.items()},
        )
        return Conclusion(list(self._targets()), report)

    def _figures(self, shelf: Shelf) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for measure, label in LABELS.items():
            for name, scores in self.day_sets.items():
                values = {row: scores.by_day(row, measure) for row in self.rows(measure)}
                yield f"{measure}-{name}", draw_boxes(values, label, logarithmic=measure == WAIT)
        for family in self.families:
            curves = {
                metric: [learning_curve_of(shelf.place / learner.name) for learner in learners]
                for metric, learners in family.learners.items()
            }
            yield f"training-{family.name}", draw_training_curves(curves)

    def _targets(self) -> Iterator[Target]:
        test, unseen = self.day_sets.values()
        yield from baseline_targets(test)
        for family in self.families:
            rows = family.row(WAIT), family.row(UTILISATION)
            yield from family_targets(family.name, rows, test, unseen, OTHERS)
