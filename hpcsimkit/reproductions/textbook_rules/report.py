"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.reproductions.figures import draw_rewards
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.textbook_rules import tables
from hpcsimkit.reproductions.textbook_rules.contest import EASY_PLUS_PLUS, RIVALS, row
from hpcsimkit.reproductions.textbook_rules.data import JOBS
from hpcsimkit.reproductions.textbook_rules.figures import draw_ratios
from hpcsimkit.reproductions.textbook_rules.seats import SLOTS
from hpcsimkit.reproductions.textbook_rules.targets import MINUTES, logs_target, training_targets
from hpcsimkit.reproductions.textbook_rules.verdicts import Judged, judged

__all__ = ["TextbookFindings"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES = {
    "inspector": "inspectors",
    "backfiller": "backfillers",
    "in-turn": "inspectors",
    "together": "both",
}
"""Suffix of a learner's name -> group in the target for training times."""


class TextbookFindings(Findings):
    """Measurements of agents and heuristics."""

    @cached_property
    def logs(self) -> list[Judged]:
        """Measurements and comparisons of each log."""
        return [judged(scores) for scores in self.plan.scores(self.store)]

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        return {
            "scale": self.plan.traces.scale,
            "logs": self.logs,
            "tables": tables,
            "jobs": JOBS,
            "rivals": RIVALS,
            "sjf_easy": row("sjf", "EASY"),
            "easy_plus_plus": EASY_PLUS_PLUS,
            "slots": SLOTS,
            "max_interval": MAX_INTERVAL,
            "max_rejections": MAX_REJECTIONS,
        }

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        yield "ratios", draw_ratios(self.logs)
        for kind in CLASSES:
            learners = {_panel(learner, kind): learner for learner in self._of(kind)}
            curves = {
                name: learning_curve_of(self.store.place / each.name) for name, each in learners.items()
            }
            yield f"curves-{kind}", draw_rewards(curves)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        yield logs_target(self.logs)
        yield from training_targets(self._seconds)

    def _of(self, kind: str) -> list[Learner]:
        """Return the learners of a class."""
        return [learner for learner in self.plan.trained if learner.name.endswith(f"-{kind}")]

    @property
    def _seconds(self) -> dict[str, list[float]]:
        """Training times [s of a core], grouped as in their targets."""
        found: dict[str, list[float]] = {who: [] for who in MINUTES}
        for kind, who in CLASSES.items():
            found[who] += [self.store.seconds(Training(learner)) for learner in self._of(kind)]
        return found


def _panel(learner: Learner, kind: str) -> str:
    log, _, order = learner.name.removesuffix(f"-{kind}").rpartition("-")
    return f"{log}, {order.upper()}"
