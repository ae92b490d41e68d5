"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.figures import draw_rewards
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.templates import rendered
from hpcsimkit.reproductions.textbook_rules import tables
from hpcsimkit.reproductions.textbook_rules.contest import EASY_PLUS_PLUS, RIVALS, Contest, row
from hpcsimkit.reproductions.textbook_rules.data import JOBS, Traces
from hpcsimkit.reproductions.textbook_rules.figures import draw_ratios
from hpcsimkit.reproductions.textbook_rules.seats import SLOTS
from hpcsimkit.reproductions.textbook_rules.targets import MINUTES, logs_target, training_targets
from hpcsimkit.reproductions.textbook_rules.verdicts import Judged, judged

__all__ = ["Findings"]

CLASSES = {
    "inspector": "inspectors",
    "backfiller": "backfillers",
    "in-turn": "inspectors",
    "together": "both",
}
"""Suffix of a learner's name -> group in the target for training times."""


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

    def conclusion(self, title: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the report and the targets; figures are written to a folder."""
        save_figure(draw_ratios(self.logs), pictures / "ratios.png")
        for kind in CLASSES:
            learners = {_panel(learner, kind): learner for learner in self._of(kind)}
            curves = {name: learning_curve_of(shelf.place / each.name) for name, each in learners.items()}
            save_figure(draw_rewards(curves), pictures / f"curves-{kind}.png")
        report = rendered(
            "textbook_rules/report.md.jinja",
            title=title,
            quick=self.quick,
            traces=self.traces,
            scale=self.traces.scale,
            logs=self.logs,
            tables=tables,
            jobs=JOBS,
            rivals=RIVALS,
            sjf_easy=row("sjf", "EASY"),
            easy_plus_plus=EASY_PLUS_PLUS,
            slots=SLOTS,
            max_interval=MAX_INTERVAL,
            max_rejections=MAX_REJECTIONS,
        )
        return Conclusion([logs_target(self.logs), *training_targets(self._seconds(shelf))], report)

    def _of(self, kind: str) -> list[Learner]:
        """Return the learners of a class."""
        return [learner for learner in self.learners if learner.name.endswith(f"-{kind}")]

    def _seconds(self, shelf: Shelf) -> dict[str, list[float]]:
        """Return training times [s of a core], grouped as in their targets."""
        found: dict[str, list[float]] = {who: [] for who in MINUTES}
        for kind, who in CLASSES.items():
            found[who] += [shelf.seconds(Training(learner)) for learner in self._of(kind)]
        return found


def _panel(learner: Learner, kind: str) -> str:
    log, _, order = learner.name.removesuffix(f"-{kind}").rpartition("-")
    return f"{log}, {order.upper()}"
