"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.figures import draw_boxes, draw_rewards
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.learners import Training, learning_curve_of
from hpcsimkit.reproductions.rlbackfilling import tables
from hpcsimkit.reproductions.rlbackfilling.contest import (
    PUBLISHED_EASY,
    TEXTBOOK_EASY,
    Contest,
    Protocol,
    agent_row,
    row,
)
from hpcsimkit.reproductions.rlbackfilling.data import JOBS, PUBLISHED_SLICE, WAYS_AS_PUBLISHED, Way
from hpcsimkit.reproductions.rlbackfilling.figures import draw_noise
from hpcsimkit.reproductions.rlbackfilling.noise import ACTUAL, ORDERS
from hpcsimkit.reproductions.rlbackfilling.targets import (
    agent_targets,
    base_targets,
    fair_duels,
    training_target,
)
from hpcsimkit.reproductions.sequences import BSLD, Standing
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.statistics import SIGNIFICANT

__all__ = ["RLBackfillingFindings"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (PUBLISHED_EASY, TEXTBOOK_EASY)
"""Panels of figure 1."""

TESTS: Mapping[Protocol, str] = {"published": "as published", "rest": "on unseen jobs"}
BOXES = "mean bounded slowdown of a sequence, logarithmic"


class RLBackfillingFindings(Findings):
    """Measurements of backfilling agents and their rivals."""

    @cached_property
    def scores(self) -> list[Scores[Contest]]:
        """Scores of all comparisons."""
        return self.plan.scores(self.store)

    @cached_property
    def noises(self) -> dict[tuple[str, str], float]:
        """Mean bounded slowdowns of figure 1, by level of noise and row."""
        meetings = self.plan.noise.meetings
        return {place: float(np.mean(self.store.outcome(task)[BSLD])) for place, task in meetings.items()}

    @cached_property
    def trainings(self) -> dict[str, tuple[Curve, float]]:
        """Learning curve and time [s] of each agent."""
        return {
            each.name: (learning_curve_of(self.store.place / each.name), self.store.seconds(Training(each)))
            for each in self.plan.trained
        }

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        return {
            "scale": self.plan.traces.scale,
            "tables": tables,
            "tests": TESTS,
            "kinds": KINDS,
            "orders": ORDERS,
            "jobs": JOBS,
            "slice": PUBLISHED_SLICE,
            "significant": SIGNIFICANT,
            "digits": [target for scores in self.of("published") for target in base_targets(scores)],
        }

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for scores in self.scores:
            contest = scores.contest
            for order in self.plan.traces.scale.orders:
                boxes = draw_boxes({name: scores.of(name) for name in contest.rows(order)}, BOXES)
                yield f"{contest.protocol}-{contest.trace.name}-{order}", boxes
        yield "figure-1", draw_noise(self.noises, self.plan.noise.levels, KINDS)
        yield "figure-4", draw_rewards({name: curve for name, (curve, _) in self.trainings.items()})

    def of(self, protocol: Protocol) -> list[Scores[Contest]]:
        """Return the scores of a protocol, by log."""
        return [scores for scores in self.scores if scores.contest.protocol == protocol]

    def ways(self, protocol: Protocol) -> Sequence[Way]:
        """Return the training protocols of agents, the one of all tables first."""
        return WAYS_AS_PUBLISHED if protocol == "published" else self.plan.traces.scale.ways

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        for scores in self.of("published"):
            yield from base_targets(scores)
        for scores in self.scores:
            for way in self.ways(scores.contest.protocol):
                yield from agent_targets(scores, self.plan.traces.scale.orders, way)
        yield training_target([seconds for _, seconds in self.trainings.values()])

    def about(self, scores: Scores[Contest]) -> str:
        """Return the log and the protocol of a comparison."""
        return f"{scores.contest.trace.name}, {TESTS[scores.contest.protocol]}"

    def duels(self, scores: Scores[Contest]) -> dict[str, dict[str, Standing]]:
        """Return the comparisons of agents with baselines under the same restrictions."""
        return {
            agent: rivals
            for order in self.plan.traces.scale.orders
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
        least = {name: min(self.noises[level, name] for level in self.plan.noise.levels) for name in names}
        return [name for name in names if self.noises[ACTUAL, name] == least[name]]
