"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpcsimkit.agents.dras.settings import LEARNERS, TRAINED, WINDOW
from hpcsimkit.reports.figures import DAY, POLICY_COLOURS, Line
from hpcsimkit.reports.likeness import draw_likeness
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.dras import behaviour, figures, methods, tables
from hpcsimkit.reproductions.dras.data import MONTH
from hpcsimkit.reproductions.dras.measured import Measured
from hpcsimkit.reproductions.dras.methods import ADDED_RULES, FAMILIES, FCFS, OPTIMIZATION, Contest
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.runs import kept
from hpcsimkit.reproductions.dras.statistics import LARGE, kiviat, weekly
from hpcsimkit.reproductions.dras.targets import speed_targets, waiting_targets
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.learners import Training, learning_curve_of
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.templates import rendered

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


__all__ = ["DRASFindings"]

IN_OPERATION = "DRAS-PPO"
DRAWING, LEARNING = "static, drawing", "dynamic"


class DRASFindings(Findings):
    """Measurements of DRAS and its rivals."""

    @cached_property
    def scores(self) -> list[Scores[Contest]]:
        """Scores of all comparisons."""
        return self.plan.scores(self.store)

    @cached_property
    def logs(self) -> list[Measured]:
        """Measurements by log, on the validation month and on the test part."""
        pairs = zip(self.scores[::2], self.scores[1::2], strict=True)
        return [Measured.of(validation, test, self.store) for validation, test in pairs]

    @property
    def habits(self) -> dict[str, behaviour.Watched]:
        """Measured use of slots, by log and learner."""
        return {
            log: {name: [self.store.outcome(task) for task in tasks] for name, tasks in of_log.items()}
            for log, of_log in self.plan.habits.items()
        }

    @cached_property
    def measured_overheads(self) -> list[tuple[Overhead, dict[str, float]]]:
        """Processor times of decisions and updates."""
        return [(task, self.store.outcome(task)) for task in self.plan.overheads]

    @cached_property
    def curves(self) -> dict[str, NDArray[np.float64]]:
        """Validation rewards of each agent, after each round of its training."""
        return {
            each.name: learning_curve_of(self.store.place / each.name)["validation"]
            for each in self.plan.trained
        }

    @property
    def order_curves(self) -> dict[str, NDArray[np.float64]]:
        """Validation rewards by order of job sets."""
        return {order: self.curves[learner.name] for order, learner in self.plan.orders.items()}

    @property
    def about_trainings(self) -> Iterator[tuple[str, int, float, NDArray[np.float64]]]:
        """Name, decisions, time [s] and validation rewards of each training."""
        for learner in self.plan.trained:
            steps = int(learning_curve_of(self.store.place / learner.name)["steps"][-1])
            yield learner.name, steps, self.store.seconds(Training(learner)), self.curves[learner.name]

    def in_operation(self, log: Measured) -> dict[str, Mapping[str, float]]:
        """Return the measures of the best agent in operation, and of baselines."""
        ppo = log.families[IN_OPERATION]
        best = max(ppo.validations, key=lambda row: ppo.validations[row])
        outcomes = [self.store.outcome(task) for task in self.plan.operations(log.trace)]
        drawing, learning = (
            {measure: value[0] for measure, value in outcome.items() if isinstance(value, list)}
            for outcome in outcomes
        )
        rules = {name: log.families[name].rows[name] for name in (FCFS, OPTIMIZATION)}
        return {**rules, "static": ppo.rows[best], DRAWING: drawing, LEARNING: learning}

    # --- the report ------------------------------------------------------------------------------------

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        return {
            "scale": self.plan.traces.scale,
            "tables": tables,
            "methods": methods,
            "behaviour": behaviour,
            "habits": self.habits,
            "trained": TRAINED,
            "window": WINDOW,
            "month": MONTH / DAY,
            "large": LARGE,
        }

    def behaviour_alone(self) -> Conclusion:
        """Return the report on the use of slots alone."""
        values = {"found": self, "plan": self.plan, **self.values()}
        return Conclusion([], rendered("dras/behaviour.md.jinja", **values))

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        for log in self.logs:
            for family in [*log.leaders, *log.added_agents]:
                yield from waiting_targets(log, family)
        of_dras = [learner for learner in self.plan.trained if learner.trainer in LEARNERS]
        longest = max(of_dras, key=lambda learner: self.store.seconds(Training(learner)))
        yield from speed_targets(longest, self.store.seconds(Training(longest)), self.measured_overheads)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        scaled = {log.trace.name: kiviat(log.means(FAMILIES)) for log in self.logs}
        yield "kiviat", figures.draw_kiviat(scaled)
        for log in self.logs:
            name = log.trace.name
            results = {family: log.families[family].shown for family in FAMILIES if family in log.families}
            yield f"{name}-sizes", figures.draw_sizes(results)
            yield f"{name}-modes", figures.draw_modes(results)
            yield f"{name}-learning", self._draw_learning(log)
            drawing, learning = (kept(self.store, task) for task in self.plan.operations(log.trace))
            ppo = log.families[IN_OPERATION].shown
            rules = {rule: log.families[rule].shown for rule in (FCFS, OPTIMIZATION)}
            shown = {**rules, "static": ppo, DRAWING: drawing, LEARNING: learning}
            yield f"{name}-weeks", figures.draw_weeks({mode: weekly(each) for mode, each in shown.items()})
            if sets := log.trace.job_sets["synthetic"]:
                yield f"{name}-synthetic", draw_likeness(log.trace.learned, sets[0])
        if self.plan.orders:
            looks = {
                order: Line(POLICY_COLOURS[1 + number], ("solid", "solid", "dashed")[number % 3], "")
                for number, order in enumerate(self.plan.orders)
            }
            curves = {order: [curve] for order, curve in self.order_curves.items()}
            yield "orders", figures.draw_learning(curves, {}, looks)

    def _draw_learning(self, log: Measured) -> Figure:
        contest = next(each.contest for each in self.scores[1::2] if each.contest.trace is log.trace)
        curves: dict[str, list[NDArray[np.float64]]] = {}
        for each in contest.contestants:
            if each.learner is not None and each.family in FAMILIES:  # other agents have other rewards
                curves.setdefault(each.family, []).append(self.curves[each.learner.name])
        others = {name: log.rewards[name] for name in (*FAMILIES, *ADDED_RULES) if name in log.rewards}
        looks = {each: figures.look_of(each) for each in (*curves, *others)}
        return figures.draw_learning(curves, others, looks)
