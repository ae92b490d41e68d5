"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.taught import TaughtSettings
from hpcsimkit.agents.cush.trainer import CushSettings
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.cush import figures, methods, tables
from hpcsimkit.reproductions.cush.contest import Contest, Part
from hpcsimkit.reproductions.cush.data import label_of
from hpcsimkit.reproductions.cush.learners import FARTHER, FASTER, CushTraining, Learners, farther
from hpcsimkit.reproductions.cush.measured import Measured, both_ways, drawing
from hpcsimkit.reproductions.cush.methods import CUSH, FRESH, TAUGHT
from hpcsimkit.reproductions.cush.targets import file_targets, gain_targets, placement_targets, time_target
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.learners import Training, learning_curve_of
from hpcsimkit.reproductions.targets import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["CuSHFindings"]

Both = tuple[Measured, Measured]
"""Measurements on the training job sets, and on unseen ones."""


class CuSHFindings(Findings):
    """Measurements of CuSH and its rivals."""

    @cached_property
    def scores(self) -> list[Scores[Contest]]:
        """Scores of all comparisons."""
        return self.plan.scores(self.store)

    @cached_property
    def ways(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Mean NTAT of CuSH's agents on the validation sets, greedy and sampled, by system."""
        found = [each for each in self.scores if each.contest.part == "validation"]
        return {each.contest.problem.system: both_ways(each) for each in found}

    @cached_property
    def systems(self) -> dict[str, Both]:
        """Measurements by system."""
        return {
            system: (self._measured("learned", problem), self._measured("unseen", problem))
            for system in self.plan.job_sets.scale.systems
            for problem in [CushProblem(system=system)]
        }

    @cached_property
    def given(self) -> dict[str, Measured]:
        """Measurements on the job sets from files, by file name."""
        found = [each for each in self.scores if each.contest.part == "given"]
        return {each.contest.sequences.name: self._of([each]) for each in found}

    def swept(self, **changes: int) -> Both:
        """Return the measurements on Sierra with another cluster or horizon."""
        problem = CushProblem(**changes)  # type: ignore[arg-type]
        return self._measured("swept learned", problem), self._measured("swept unseen", problem)

    def _measured(self, part: Part, problem: CushProblem) -> Measured:
        return self._of(
            [each for each in self.scores if each.contest.part == part and each.contest.problem == problem]
        )

    def _of(self, scores: Sequence[Scores[Contest]]) -> Measured:
        ways = self.ways.get(scores[0].contest.problem.system, {})
        return Measured.of(scores, drawing(ways))

    def _curves(self, problem: CushProblem, kind: str = "cush") -> list[Curve]:
        """Return the learning curves of CuSH, seed by seed."""
        prefix = f"{label_of(problem)}-{kind}-"
        return [
            learning_curve_of(self.store.folder(task))
            for task in self.plan.trainings
            if task.name.startswith(prefix)
        ]

    @cached_property
    def sizes(self) -> dict[str, dict[int, Measured]]:
        """Measurements by number of nodes, on training job sets and on unseen ones."""
        found = {nodes: self.swept(nodes=nodes) for nodes in self.plan.job_sets.scale.nodes}
        parts = ("job sets learned from", "unseen job sets") if found else ()
        return {
            part: {nodes: both[place] for nodes, both in found.items()} for place, part in enumerate(parts)
        }

    @property
    def horizons(self) -> dict[int, Both]:
        """Measurements by horizon."""
        return {steps: self.swept(horizon=steps) for steps in self.plan.job_sets.scale.horizons}

    @property
    def unseen(self) -> list[Measured]:
        """Measurements on unseen job sets, by system."""
        return [unseen for _, unseen in self.systems.values()]

    @property
    def about_trainings(self) -> list[tuple[str, int, float, float, float]]:
        """Name, epochs, time [s] and NTAT at the beginning and at the end of each training."""
        return [self._about(task) for task in self.plan.trainings]

    def _about(self, task: CushTraining | Training) -> tuple[str, int, float, float, float]:
        seconds = self.store.seconds(task)
        if isinstance(task, Training):
            return task.name, task.size, seconds, float("nan"), float("nan")
        values = learning_curve_of(self.store.folder(task))["normalised_turnaround"]
        tenth = max(1, len(values) // 10)
        return task.name, len(values), seconds, float(values[:tenth].mean()), float(values[-tenth:].mean())

    # --- the report ------------------------------------------------------------------------------------

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        scale = self.plan.job_sets.scale
        return {
            "tables": tables,
            "methods": methods,
            "problem": CushProblem(),
            "scale": scale,
            "paper": CushSettings(),
            "published": Learners(scale, seed=0).published,
            "taught": TaughtSettings(epochs=scale.taught_epochs),
            "farther": FARTHER,
            "faster": FASTER,
        }

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for learned, unseen in self.systems.values():
            curves = {
                CUSH: self._curves(learned.problem),
                FRESH: self._curves(farther(learned.problem), "fresh"),
                TAUGHT: self._curves(farther(learned.problem), "taught"),
            }
            shown = {family: runs for family, runs in curves.items() if runs}
            yield f"{learned.title}-learning", figures.draw_learning(shown, learned)
            parts = {"on the job sets learned from": learned, "on unseen job sets": unseen}
            yield f"{learned.title}-lengths", figures.draw_lengths(parts)
        systems = {unseen.title: unseen for unseen in self.unseen}
        yield (
            "placements",
            figures.draw_placements({name: self._curves(of.problem) for name, of in systems.items()}),
        )
        yield "penalties", figures.draw_penalties(systems)
        if self.sizes:
            ratios = {
                part: {nodes: tables.ratios(of) for nodes, of in sizes.items()}
                for part, sizes in self.sizes.items()
            }
            yield "sizes", figures.draw_sizes(ratios)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        for name, measured in self.given.items():
            yield from file_targets(name, measured)
        for _, unseen in self.systems.values():
            yield from gain_targets(unseen)
            yield from placement_targets(unseen)
        longest = max(self.plan.trainings, key=self.store.seconds)
        yield time_target(longest.name, self.store.seconds(longest))
