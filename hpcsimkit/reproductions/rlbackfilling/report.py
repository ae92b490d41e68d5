"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.figures import draw_boxes, draw_rewards
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rlbackfilling import tables
from hpcsimkit.reproductions.rlbackfilling.contest import (
    PUBLISHED_EASY,
    TEXTBOOK_EASY,
    Contest,
    Protocol,
    agent_row,
    row,
)
from hpcsimkit.reproductions.rlbackfilling.data import JOBS, PUBLISHED_SLICE, WAYS_AS_PUBLISHED, Traces, Way
from hpcsimkit.reproductions.rlbackfilling.figures import draw_noise
from hpcsimkit.reproductions.rlbackfilling.noise import ACTUAL, ORDERS, Noise
from hpcsimkit.reproductions.rlbackfilling.targets import (
    agent_targets,
    base_targets,
    fair_duels,
    training_target,
)
from hpcsimkit.reproductions.sequences import SIGNIFICANT, Standing
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.templates import rendered

__all__ = ["Findings"]

KINDS = (PUBLISHED_EASY, TEXTBOOK_EASY)
"""Panels of figure 1."""

TESTS: Mapping[Protocol, str] = {"published": "as published", "rest": "on jobs that nobody has learned from"}
BOXES = "mean bounded slowdown of a sequence, logarithmic"


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
        Scores of all comparisons.
    noise : Noise
        Runs of figure 1.
    noises : mapping of (str, str) to float
        Mean bounded slowdowns of figure 1, by level of noise and row.
    quick : bool
        Whether this is the quick version.
    """

    traces: Traces
    learners: Sequence[Learner]
    scores: Sequence[Scores[Contest]]
    noise: Noise
    noises: Mapping[tuple[str, str], float]
    quick: bool

    def conclusion(self, title: str, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return the report and the targets; figures are written to a folder."""
        for scores in self.scores:
            contest = scores.contest
            for order in self.traces.scale.orders:
                boxes = draw_boxes({name: scores.of(name) for name in contest.rows(order)}, BOXES)
                save_figure(boxes, pictures / f"{contest.protocol}-{contest.trace.name}-{order}.png")
        save_figure(draw_noise(self.noises, self.noise.levels, KINDS), pictures / "figure-1.png")
        curves = {learner.name: learning_curve_of(shelf.place / learner.name) for learner in self.learners}
        save_figure(draw_rewards(curves), pictures / "figure-4.png")
        report = rendered(
            "rlbackfilling/report.md.jinja",
            title=title,
            found=self,
            scale=self.traces.scale,
            tables=tables,
            tests=TESTS,
            kinds=KINDS,
            orders=ORDERS,
            jobs=JOBS,
            slice=PUBLISHED_SLICE,
            significant=SIGNIFICANT,
            digits=[target for scores in self.of("published") for target in base_targets(scores)],
            trainings={
                each.name: (curves[each.name], shelf.seconds(Training(each))) for each in self.learners
            },
        )
        return Conclusion(list(self._targets(shelf)), report)

    def of(self, protocol: Protocol) -> list[Scores[Contest]]:
        """Return the scores of a protocol, by log."""
        return [scores for scores in self.scores if scores.contest.protocol == protocol]

    def ways(self, protocol: Protocol) -> Sequence[Way]:
        """Return the training protocols of agents, the one of all tables first."""
        return WAYS_AS_PUBLISHED if protocol == "published" else self.traces.scale.ways

    def _targets(self, shelf: Shelf) -> Iterator[Target]:
        for scores in self.of("published"):
            yield from base_targets(scores)
        for scores in self.scores:
            for way in self.ways(scores.contest.protocol):
                yield from agent_targets(scores, self.traces.scale.orders, way)
        yield training_target([shelf.seconds(Training(learner)) for learner in self.learners])

    def about(self, scores: Scores[Contest]) -> str:
        """Return the log and the protocol of a comparison."""
        return f"{scores.contest.trace.name}, {TESTS[scores.contest.protocol]}"

    def duels(self, scores: Scores[Contest]) -> dict[str, dict[str, Standing]]:
        """Return the comparisons of agents with baselines under the same restrictions."""
        return {
            agent: rivals
            for order in self.traces.scale.orders
            for way in self.ways(scores.contest.protocol)
            for agent, rivals in fair_duels(scores, order, way).items()
        }

    def standings(self, scores: Scores[Contest], order: str) -> dict[str, Standing]:
        """Compare the agent of a base scheduler with all rows."""
        agent = row(order, agent_row(self.ways(scores.contest.protocol)[0]))
        return scores.standings(agent, scores.contest.rows(order))

    def best_with_run_times(self, kind: str) -> list[str]:
        """Return the rows of an EASY variant for which no estimates are better than run times."""
        names = [row(order, kind) for order in ORDERS]
        least = {name: min(self.noises[level, name] for level in self.noise.levels) for name in names}
        return [name for name in names if self.noises[ACTUAL, name] == least[name]]
