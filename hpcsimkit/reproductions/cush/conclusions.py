"""Results page: tables, significance tests, figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.cells import BOTH_TESTS, standings_table
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.cush import explanations as words
from hpcsimkit.reproductions.cush.contest import Contest, Part
from hpcsimkit.reproductions.cush.data import JobSets, label_of, title_of
from hpcsimkit.reproductions.cush.figures import (
    draw_learning,
    draw_lengths,
    draw_penalties,
    draw_placements,
    draw_sizes,
)
from hpcsimkit.reproductions.cush.learners import CushTraining, farther
from hpcsimkit.reproductions.cush.measured import Measured, both_ways, drawing
from hpcsimkit.reproductions.cush.methods import CUSH, FRESH, TAUGHT
from hpcsimkit.reproductions.cush.tables import (
    horizons_table,
    in_short_table,
    nodes_table,
    placements_table,
    ratios,
    table_1,
    trainings_table,
    ways_table,
)
from hpcsimkit.reproductions.cush.targets import (
    Longest,
    file_targets,
    gain_targets,
    placement_targets,
    time_target,
)
from hpcsimkit.reproductions.learners import Training, learning_curve_of
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.targets import Target

__all__ = ["Findings"]

Both = tuple[Measured, Measured]
"""Measurements on the training job sets, and on unseen ones."""


@dataclass(frozen=True)
class Findings:
    """All measurements, with the job sets and agents that they belong to.

    Parameters
    ----------
    job_sets : JobSets
        Data of the experiment.
    trainings : sequence of Task
        Trainings of all agents.
    scores : sequence of Scores
        Scores of all comparisons.
    quick : bool
        Whether this is the quick version.
    shelf : Shelf
        Store of the tasks' outcomes.
    """

    job_sets: JobSets
    trainings: Sequence[CushTraining | Training]
    scores: Sequence[Scores[Contest]]
    quick: bool
    shelf: Shelf

    # --- measurements ---------------------------------------------------------------------------------------

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
            for system in self.job_sets.scale.systems
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
            learning_curve_of(self.shelf.folder(task))
            for task in self.trainings
            if task.name.startswith(prefix)
        ]

    # --- the page --------------------------------------------------------------------------------------

    def conclusion(self, heading: str, pictures: Path) -> Conclusion:
        """Return the page and the targets; figures are written to a folder."""
        page = Page(heading)
        self._introduce(page)
        for system, both in self.systems.items():
            self._write_system(page, title_of(system), both, pictures)
        self._write_placements(page, pictures)
        self._write_given(page)
        if self.job_sets.scale.nodes:
            self._write_sizes(page, pictures)
        if self.job_sets.scale.horizons:
            self._write_horizons(page)
        self._write_trainings(page)
        return Conclusion(list(self._targets()), page)

    def _introduce(self, page: Page) -> None:
        if self.quick:
            page.text(words.QUICK)
        page.heading("In short")
        page.text(words.IN_SHORT)
        for both in self.systems.values():
            page.text(words.in_short(*both))
            page.table(*in_short_table(*both))
        page.heading("How it was done")
        page.items(list(self.job_sets.lines()))
        page.items(words.method(self.job_sets.scale))
        page.text(BOTH_TESTS)
        page.heading("What is not as in the paper")
        page.text(words.differences(self.job_sets.scale))
        page.heading("To draw, or to take the best action")
        page.text(words.WAYS)
        page.table(*ways_table(self.ways))

    def _write_system(self, page: Page, name: str, both: Both, pictures: Path) -> None:
        learned, unseen = both
        for measured, what, about in (
            (learned, "on the job sets learned from", words.ON_LEARNED),
            (unseen, "on unseen job sets", words.ON_UNSEEN),
        ):
            page.heading(f"{name}: table 1 {what}")
            page.text(about)
            page.table(*table_1(measured))
            self._write_tests(page, measured)
        page.heading(f"{name}: learning (figure 4)")
        page.text(words.CURVES)
        curves = {
            CUSH: self._curves(learned.problem),
            FRESH: self._curves(farther(learned.problem), "fresh"),
            TAUGHT: self._curves(farther(learned.problem), "taught"),
        }
        shown = {family: runs for family, runs in curves.items() if runs}
        save_figure(draw_learning(shown, learned), pictures / f"{name}-learning.png")
        page.picture(f"{name}-learning.png", f"{name}: how jobs fared in training")
        page.heading(f"{name}: who waits (figure 5)")
        parts = {"on the job sets learned from": learned, "on unseen job sets": unseen}
        save_figure(draw_lengths(parts), pictures / f"{name}-lengths.png")
        page.picture(f"{name}-lengths.png", words.LENGTHS)

    def _write_tests(self, page: Page, measured: Measured) -> None:
        for family in measured.learned:
            page.text(f"NTAT of *{family}* on {measured.sets} job sets:")
            page.table(*standings_table(measured.against(family), family))

    def _write_placements(self, page: Page, pictures: Path) -> None:
        unseen = {title_of(system): both[1] for system, both in self.systems.items()}
        page.heading("Placements (figures 6 and 7)")
        curves = {name: self._curves(measured.problem) for name, measured in unseen.items()}
        save_figure(draw_placements(curves), pictures / "placements.png")
        page.picture("placements.png", words.PLACEMENTS)
        page.text("Jobs of each kind that are placed as suits them, on unseen job sets [%]:")
        page.table(*placements_table(list(unseen.values())))
        save_figure(draw_penalties(unseen), pictures / "penalties.png")
        page.picture("penalties.png", words.PENALTIES)

    def _write_given(self, page: Page) -> None:
        for name, measured in self.given.items():
            page.heading(f"{name}: table 1 on {measured.sets} job sets of a file")
            page.text(words.GIVEN)
            page.table(*table_1(measured))

    def _write_sizes(self, page: Page, pictures: Path) -> None:
        page.heading("The size of the cluster (figure 8)")
        page.text(words.SIZES)
        found = {nodes: self.swept(nodes=nodes) for nodes in self.job_sets.scale.nodes}
        parts = {}
        for place, part in enumerate(("job sets learned from", "unseen job sets")):
            sizes: Mapping[int, Measured] = {nodes: both[place] for nodes, both in found.items()}
            parts[part] = {nodes: ratios(measured) for nodes, measured in sizes.items()}
            page.text(f"On {part}:")
            page.table(*nodes_table(sizes))
        save_figure(draw_sizes(parts), pictures / "sizes.png")
        page.picture("sizes.png", "NTAT of heuristics over that of CuSH, by the size of the cluster")

    def _write_horizons(self, page: Page) -> None:
        page.heading("How far CuSH sees (section 4.2.2)")
        page.text(words.HORIZONS)
        horizons = self.job_sets.scale.horizons
        page.table(*horizons_table({steps: self.swept(horizon=steps) for steps in horizons}))

    def _write_trainings(self, page: Page) -> None:
        page.heading("Trainings")
        page.text(words.TRAININGS)
        page.table(*trainings_table([self._about(task) for task in self.trainings]))

    def _about(self, task: CushTraining | Training) -> tuple[str, int, float, float, float]:
        seconds = self.shelf.seconds(task)
        if isinstance(task, Training):
            return task.name, task.size, seconds, float("nan"), float("nan")
        values = learning_curve_of(self.shelf.folder(task))["normalised_turnaround"]
        tenth = max(1, len(values) // 10)
        return task.name, len(values), seconds, float(values[:tenth].mean()), float(values[-tenth:].mean())

    # --- the targets -----------------------------------------------------------------------------------

    def _targets(self) -> Iterator[Target]:
        for name, measured in self.given.items():
            yield from file_targets(name, measured)
        for _, unseen in self.systems.values():
            yield from gain_targets(unseen)
            yield from placement_targets(unseen)
        longest = max(self.trainings, key=self.shelf.seconds)
        yield time_target(Longest(longest.name, self.shelf.seconds(longest)))
