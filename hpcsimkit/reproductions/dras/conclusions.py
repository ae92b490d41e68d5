"""Results page: tables, figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpcsimkit.agents.dras.settings import LEARNERS
from hpcsimkit.experiments.tasks import Shelf
from hpcsimkit.reports.figures import POLICY_COLOURS, Line, save_figure
from hpcsimkit.reports.likeness import draw_likeness
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.dras import behaviour
from hpcsimkit.reproductions.dras import explanations as words
from hpcsimkit.reproductions.dras.data import Traces
from hpcsimkit.reproductions.dras.figures import (
    draw_kiviat,
    draw_learning,
    draw_modes,
    draw_sizes,
    draw_weeks,
    look_of,
)
from hpcsimkit.reproductions.dras.habits import Habits
from hpcsimkit.reproductions.dras.measured import Measured
from hpcsimkit.reproductions.dras.methods import ADDED_RULES, FAMILIES, FCFS, OPTIMIZATION, Contest
from hpcsimkit.reproductions.dras.operation import Operation
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.published_numbers import TABLE_4_SLIP
from hpcsimkit.reproductions.dras.runs import kept
from hpcsimkit.reproductions.dras.statistics import kiviat, weekly
from hpcsimkit.reproductions.dras.tables import (
    large_table,
    metrics_table,
    modes_table,
    operation_table,
    orders_table,
    overhead_table,
    trainings_table,
)
from hpcsimkit.reproductions.dras.targets import speed_targets, waiting_targets
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.targets import Target

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Findings"]

DRAWING, LEARNING = "static, drawing", "dynamic"

AllHabits = Mapping[str, Mapping[str, Sequence[Habits]]]
"""Tasks by log and learner, seed by seed."""


def measured_logs(scores: Sequence[Scores[Contest]], shelf: Shelf) -> list[Measured]:
    """Return the measurements by log, on the validation month and on the test part."""
    pairs = zip(scores[::2], scores[1::2], strict=True)
    return [Measured.of(validation, test, shelf) for validation, test in pairs]


def write_behaviour(page: Page, log: Measured, habits: Mapping[str, Sequence[Habits]], shelf: Shelf) -> None:
    """Write the section on the use of slots, and on evidence of learning."""
    watched = {name: [shelf.outcome(task) for task in tasks] for name, tasks in habits.items()}
    page.heading(f"{log.trace.name}: best action, drawn, constant slot")
    page.text(behaviour.WORDS, behaviour.verdict(log))
    page.table(*behaviour.behaviour_table(log, watched))


def behaviour_alone(
    title: str, traces: Traces, scores: Sequence[Scores[Contest]], habits: AllHabits, shelf: Shelf
) -> Conclusion:
    """Return the page on the use of slots alone."""
    page = Page(f"{title.partition(':')[0]}: what the learners do with their slots")
    page.items(list(traces.lines()))
    for log in measured_logs(scores, shelf):
        write_behaviour(page, log, habits[log.trace.name], shelf)
    return Conclusion([], str(page))


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
    orders : mapping of str to Learner
        Learners of figure 5, on the first log.
    operations : mapping of str to sequence of Operation
        Tasks by log: an agent that samples its actions, and one that also learns from them.
    habits : mapping of str to mapping of str to sequence of Habits
        Tasks on the use of slots by log and learner, seed by seed.
    overheads : sequence of Overhead
        Tasks that measure processor times.
    quick : bool
        Whether this is the quick version.
    shelf : Shelf
        Store of the tasks' outcomes.
    """

    traces: Traces
    learners: Sequence[Learner]
    scores: Sequence[Scores[Contest]]
    orders: Mapping[str, Learner]
    operations: Mapping[str, Sequence[Operation]]
    habits: AllHabits
    overheads: Sequence[Overhead]
    quick: bool
    shelf: Shelf

    @cached_property
    def logs(self) -> list[Measured]:
        """Measurements by log."""
        return measured_logs(self.scores, self.shelf)

    @cached_property
    def measured_overheads(self) -> list[tuple[Overhead, dict[str, float]]]:
        """Processor times of decisions and updates."""
        return [(task, self.shelf.outcome(task)) for task in self.overheads]

    def conclusion(self, heading: str, pictures: Path) -> Conclusion:
        """Return the page and the targets; figures are written to a folder."""
        page = Page(heading)
        self._introduce(page)
        self._write_summary(page, pictures)
        for log in self.logs:
            self._write_log(page, log, pictures)
        self._write_figure_4(page, pictures)
        if self.orders:
            self._write_figure_5(page, pictures)
        self._write_trainings(page)
        self._write_overhead(page)
        return Conclusion(list(self._targets()), str(page))

    def _targets(self) -> Iterator[Target]:
        for log in self.logs:
            for family in [*log.leaders, *log.added_agents]:
                yield from waiting_targets(log, family)
        of_dras = [learner for learner in self.learners if learner.trainer in LEARNERS]
        longest = max(of_dras, key=lambda learner: self.shelf.seconds(Training(learner)))
        yield from speed_targets(longest, self.shelf.seconds(Training(longest)), self.measured_overheads)

    # --- sections --------------------------------------------------------------------------------------

    def _introduce(self, page: Page) -> None:
        if self.quick:
            page.text(words.QUICK)
        page.heading("In short")
        page.text(*map(words.in_short, self.logs))
        page.heading("How it was done")
        page.items(list(self.traces.lines()))
        page.items(words.method(self.traces.scale))
        page.heading("What is not as in the paper")
        page.text(words.differences())

    def _write_summary(self, page: Page, pictures: Path) -> None:
        page.heading("Figure 7: everything at a glance")
        scaled = {log.trace.name: kiviat(log.means(FAMILIES)) for log in self.logs}
        save_figure(draw_kiviat(scaled), pictures / "kiviat.png")
        page.picture("kiviat.png", words.KIVIAT)
        page.text(words.GAIN)

    def _write_log(self, page: Page, log: Measured, pictures: Path) -> None:
        name = log.trace.name
        page.heading(f"{name}: metrics")
        page.table(*metrics_table(log))
        page.heading(f"{name}: who waits longest (figure 8)")
        page.text(words.LARGEST)
        page.table(*large_table(log))
        results = {family: log.families[family].shown for family in FAMILIES if family in log.families}
        save_figure(draw_sizes(results), pictures / f"{name}-sizes.png")
        page.picture(f"{name}-sizes.png", words.DOTS)
        page.heading(f"{name}: how jobs start (table 4, figure 9)")
        page.text(words.MODES, *[words.TABLE_4, TABLE_4_SLIP] * log.trace.is_theta)
        page.table(*modes_table(log))
        save_figure(draw_modes(results), pictures / f"{name}-modes.png")
        page.picture(f"{name}-modes.png", words.BOXES)
        write_behaviour(page, log, self.habits[name], self.shelf)
        self._write_curves(page, log, pictures)
        self._write_operation(page, log, pictures)

    def _write_curves(self, page: Page, log: Measured, pictures: Path) -> None:
        name = log.trace.name
        page.heading(f"{name}: learning (figure 6)")
        page.text(words.CURVES)
        curves = {
            family: [self._validations(row) for row in rows]
            for family, rows in self._learners_of(log).items()
            if family in FAMILIES  # other agents have other rewards
        }
        page.text(words.who_earns_most(log), words.like_fcfs(log))
        others = {name: log.rewards[name] for name in (*FAMILIES, *ADDED_RULES) if name in log.rewards}
        looks = {each: look_of(each) for each in (*curves, *others)}
        save_figure(draw_learning(curves, others, looks), pictures / f"{name}-learning.png")
        page.picture(f"{name}-learning.png", "Reward on the month to choose by")

    def _learners_of(self, log: Measured) -> dict[str, list[Learner]]:
        """Return the learners of a log, by name in the tables."""
        contest = next(each.contest for each in self.scores[1::2] if each.contest.trace is log.trace)
        found: dict[str, list[Learner]] = {}
        for who in contest.contestants:
            if who.learner is not None:
                found.setdefault(who.family, []).append(who.learner)
        return found

    def _validations(self, learner: Learner) -> NDArray[np.float64]:
        return learning_curve_of(self.shelf.place / learner.name)["validation"]

    def _write_operation(self, page: Page, log: Measured, pictures: Path) -> None:
        name = log.trace.name
        page.heading(f"{name}: static and dynamic (figure 10)")
        page.text(words.in_operation(self.traces.scale.update_every))
        drawing, learning = self.operations[name]
        ppo = next(family for family in log.families.values() if family.name == "DRAS-PPO")
        static = max(ppo.validations, key=lambda row: ppo.validations[row])
        rows = {
            FCFS: log.families[FCFS].rows[FCFS],
            OPTIMIZATION: log.families[OPTIMIZATION].rows[OPTIMIZATION],
            "static": ppo.rows[static],
            DRAWING: self._outcome(drawing),
            LEARNING: self._outcome(learning),
        }
        page.table(*operation_table(rows))
        weeks = {
            FCFS: weekly(log.families[FCFS].shown),
            OPTIMIZATION: weekly(log.families[OPTIMIZATION].shown),
            "static": weekly(ppo.shown),
            DRAWING: weekly(kept(self.shelf, drawing)),
            LEARNING: weekly(kept(self.shelf, learning)),
        }
        save_figure(draw_weeks(weeks), pictures / f"{name}-weeks.png")
        page.picture(f"{name}-weeks.png", words.WEEKS)

    def _outcome(self, task: Operation) -> dict[str, float]:
        outcome = self.shelf.outcome(task)
        return {measure: value[0] for measure, value in outcome.items() if isinstance(value, list)}

    def _write_figure_4(self, page: Page, pictures: Path) -> None:
        page.heading("Figure 4: synthetic jobs")
        for log in self.logs:
            sets, name = log.trace.job_sets["synthetic"], log.trace.name
            if not sets:
                continue
            save_figure(draw_likeness(log.trace.learned, sets[0]), pictures / f"{name}-synthetic.png")
            page.picture(f"{name}-synthetic.png", f"{name}: to learn from, and the first set like it")

    def _write_figure_5(self, page: Page, pictures: Path) -> None:
        page.heading("Figure 5: the order of job sets")
        page.text(words.ORDERED)
        curves = {order: self._validations(learner) for order, learner in self.orders.items()}
        looks = {
            order: Line(POLICY_COLOURS[1 + number], ("solid", "solid", "dashed")[number % 3], "")
            for number, order in enumerate(self.orders)
        }
        figure = draw_learning({order: [curve] for order, curve in curves.items()}, {}, looks)
        save_figure(figure, pictures / "orders.png")
        page.picture("orders.png", "Reward on the month to choose by, by the order of job sets")
        page.table(
            *orders_table(
                {
                    order: (float(curve[-1]), float(curve.max()), int(curve.argmax()) + 1)
                    for order, curve in curves.items()
                }
            )
        )

    def _write_trainings(self, page: Page) -> None:
        page.heading("Trainings")
        page.text(words.TRAININGS)
        rows = []
        for learner in self.learners:
            curve = self._validations(learner)
            task = Training(learner)
            steps = int(learning_curve_of(self.shelf.place / learner.name)["steps"][-1])
            best, at = float(curve.max()), int(curve.argmax()) + 1
            rows.append((learner.name, steps, self.shelf.seconds(task), best, at, float(curve[-1])))
        page.table(*trainings_table(rows))

    def _write_overhead(self, page: Page) -> None:
        page.heading("Overhead (section 6.7)")
        page.text(words.OVERHEAD)
        page.table(*overhead_table(self.measured_overheads))
