"""Measurements of a finished reproduction: tables, figures and targets from its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.engine.store import Store
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.documents import csv_text
from hpcsimkit.io.files import single_name, write_bytes
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reports.plots import draw_boxes
from hpcsimkit.reproductions.cells import number
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.papers import PAPERS
from hpcsimkit.reproductions.pictures import draw_bars, draw_curves
from hpcsimkit.reproductions.plans.parts import Parts
from hpcsimkit.reproductions.plans.plan import (
    ColumnPlan,
    Each,
    PicturePlan,
    TablePlan,
    TargetPlan,
    TimePlan,
    When,
    comparisons_of,
)
from hpcsimkit.reproductions.plans.quantities import Quantities, variables_of
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.targets import Conclusion, Target, same_digits
from hpcsimkit.reproductions.templates import rendered
from hpcsimkit.results.statistics import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOXES = "mean bounded slowdown of a sequence, logarithmic"


@dataclass(frozen=True)
class PaperFindings:
    """Measurements of a finished reproduction: the values of its report, its figures and its targets.

    The report knows the measurements as `found` and the reproduction as `plan`.
    """

    plan: Any  # a reproduction, whose module makes this one's objects
    store: Store

    @property
    def template(self) -> str | Path:
        """Template of the report: ``report.md.jinja`` in the folder, or that of all papers without one.

        A side study has its own.
        """
        study = self.plan.side_study
        own = self.plan.folder / ("report.md.jinja" if study is None else study.template)
        if not own.is_file():
            return "paper.md.jinja"
        return f"{own.parent.name}/{own.name}" if own.parent in PAPERS.values() else own

    @cached_property
    def scores(self) -> list[Scores]:
        """Scores of all comparisons."""
        return self.plan.scores(self.store)

    @cached_property
    def curves(self) -> dict[str, dict[str, Curve]]:
        """Learning curves by study and panel."""
        return {
            study.name: {name: self.curve(each) for name, each in study.learners.items()}
            for study in self.plan.studies
        }

    def curve(self, learner: Learner) -> Curve:
        """Return the learning curve of an agent."""
        return learning_curve_of(self.store.place / learner.name)

    def seconds(self, learner: Learner) -> float:
        """Return the processor time of a training [s]."""
        return self.store.seconds(Training(learner))

    def of(self, protocol: str, **variables: Any) -> list[Scores]:
        """Return the scores of a table of comparisons with some values of its variables, by log."""
        return [
            scores
            for scores in self.scores
            if scores.contest.protocol == protocol
            and all(scores.contest.variables.get(name) == value for name, value in variables.items())
        ]

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name; `own` is the module of the paper."""
        traces = self.plan.traces
        about = {"scale": traces.scale, "first": traces.first.name, "published": self.plan.published}
        return {**about, "own": self.plan.own}

    # --- expressions ----------------------------------------------------------------------------------------

    def places(
        self,
        comparison: str | list[str],
        when: When,
        each: Each,
        among: Sequence[Scores] | None = None,
        **variables: Any,
    ) -> Iterator[tuple[Scores, Parts]]:
        """Yield the scores of comparisons with the variables of expressions, for each value of `each`."""
        named = comparisons_of(comparison) if among is None else []
        contests = [*(among or ()), *(scores for name in named for scores in self.of(name))]
        for scores in contests:
            parts = variables_of(scores, scores.contest.parts, contests)
            parts = parts.beside({"first": self.plan.traces.first, **variables})
            yield from ((scores, inner) for inner in parts.each(each) if inner.meet(when))

    def _with(self, let: Mapping[str, str], scores: Scores, parts: Parts) -> Parts:
        """Return parts with further variables, each an expression that knows those before it."""
        for name, expression in let.items():
            value = self.quantities(scores).value(expression, parts.variables)
            parts = parts.beside({name: value})
        return parts

    def quantities(self, scores: Scores) -> Quantities:
        """Return the functions of the expressions on a comparison."""
        return Quantities(scores, self.plan.published, lambda: self.scores)

    def tabulated(self, name: str, among: Sequence[Scores] | None = None, **variables: Any) -> Table:
        """Return a table of the plan: of all of its comparisons or of some, with further variables."""
        plan = self.plan.paper.tables[name]
        lines = [list(self._cells(plan, *place, among)) for place in self._lines(plan, among, variables)]
        if not lines:
            return Table([], [])
        columns = [_column(column, [text for _, _, text in cells]) for column, cells in _turned(lines)]
        return Table(
            [heading for _, heading, _ in lines[0]], [list(line) for line in zip(*columns, strict=True)]
        )

    def _lines(
        self, plan: TablePlan, among: Sequence[Scores] | None, variables: Mapping[str, Any]
    ) -> Iterator[tuple[Scores, Parts]]:
        """Yield a line for each comparison, or only those of the first one if the others are columns."""
        first = None
        for scores, parts in self.places(plan.comparison, plan.when, plan.each, among, **variables):
            first, parts = scores if first is None else first, self._with(plan.let, scores, parts)
            shown = scores is first or not any(column.each_log for column in plan.columns)
            if shown and self.quantities(scores).value(plan.given, parts.variables):
                yield scores, parts

    def _cells(
        self, plan: TablePlan, scores: Scores, parts: Parts, among: Sequence[Scores] | None
    ) -> Iterator[tuple[ColumnPlan, str, str]]:
        """Yield the cells of a line, with their columns and headings."""
        for column in plan.columns:
            for inner in filter(lambda inner: inner.meet(column.when), parts.each(column.each)):
                if not column.each_log:
                    yield from self._cell(column, scores, inner)
                    continue
                for other, there in self.places(plan.comparison, plan.when, {}, among):
                    known = self._with(plan.let, other, inner.beside(there.variables))
                    yield from self._cell(column, other, known)

    def _cell(
        self, column: ColumnPlan, scores: Scores, parts: Parts
    ) -> Iterator[tuple[ColumnPlan, str, str]]:
        found, heading = self.quantities(scores), f"{parts.made(column.name)}"
        if column.paper:
            paper = column.model_copy(update={"best": ""})
            yield paper, f"*{heading}*", found.text(column.paper, parts.variables)
        yield column, heading, found.text(column.value, parts.variables)

    # --- figures --------------------------------------------------------------------------------------------

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the pictures of the plan; by default boxes of all comparisons, and curves of the studies."""
        if self.plan.paper.pictures:
            for picture in self.plan.paper.pictures:
                yield from getattr(self, f"_{picture.kind}")(picture)
            return
        for scores in self.scores:
            yield scores.contest.label, draw_boxes({row: scores.of(row) for row in scores.values}, BOXES)
        for name, curves in self.curves.items():
            yield name, draw_curves({panel: [curve] for panel, curve in curves.items()}, ["reward"])

    def _boxes(self, plan: PicturePlan) -> Iterator[tuple[str, Figure]]:
        for scores, parts in self.places(plan.comparison, plan.when, plan.each):
            found, known = self.quantities(scores), self._with(plan.let, scores, parts).variables
            rows, over = found.value(plan.rows, known), found.value(plan.over, known)
            by = plan.by if over is None else plan.by / scores.of(over, plan.measure)
            values = {row: by * scores.of(row, plan.measure) for row in rows}
            label = plan.label or BOXES
            yield parts.made(plan.name), draw_boxes(values, label, logarithmic=plan.logarithmic)

    def _curves(self, plan: PicturePlan) -> Iterator[tuple[str, Figure]]:
        for name, curves in self.curves.items() if not plan.comparison else ():
            if plan.study in ("", name) and not plan.name:
                yield name, draw_curves({panel: [each] for panel, each in curves.items()}, plan.columns)
        if plan.name and not plan.comparison:
            yield (
                plan.name,
                draw_curves({each.name: [self.curve(each)] for each in self.plan.trained}, plan.columns),
            )
        for scores, parts in self.places(plan.comparison, plan.when, plan.each):
            groups: dict[str, list[Curve]] = {}
            shown = self.quantities(scores).value(plan.rows, parts.variables)
            for family, rows in scores.contest.families().items():
                if family not in shown:
                    continue
                learners = {row.learner.name: row.learner for row in rows if row.learner is not None}
                curves_of = [self.curve(each) for each in learners.values()]
                if known := [each for each in curves_of if plan.columns[0] in each]:
                    groups[family] = known
            if groups:
                yield parts.made(plan.name), draw_curves(groups, plan.columns)

    def _bars(self, plan: PicturePlan) -> Iterator[tuple[str, Figure]]:
        headings, lines = self.tabulated(plan.table)
        numbers = {
            line[0]: {
                heading: float(text.strip("*"))
                for heading, text in zip(headings[1:], line[1:], strict=True)
                if text.strip("*")
            }
            for line in lines
        }
        if numbers:
            yield plan.name, draw_bars(numbers, plan.label or BOXES, logarithmic=plan.logarithmic)

    # --- tables that a report may have without a plan of them -----------------------------------------------

    def table(self, protocol: str, rows: Sequence[str], published: str = "") -> Table:
        """Return mean bounded slowdowns, a row for each log; the numbers of a published table in italics."""
        paper = self.plan.published.get(published)
        known = set(paper.columns) if paper else set()
        headings = [cell for row in rows for cell in ([f"*{row}*"] if row in known else []) + [row]]
        lines = []
        for scores in self.of(protocol):
            line = [scores.contest.about]
            for row in rows:
                if paper is not None and row in known:
                    line.append(number(paper.number(scores.contest.about, row)))
                line.append(number(scores.mean(row)))
            lines.append(line)
        return Table(["log", *headings], lines)

    def published_table(self, name: str) -> Table:
        """Return a published table of numbers."""
        table = self.plan.published[name]
        return Table(["", *table.columns], [[row, *map(number, each)] for row, each in table.rows.items()])

    # --- targets --------------------------------------------------------------------------------------------

    def digits(self) -> list[Target]:
        """Return the targets of published means, reproduced to the digit or not."""
        return [target for target in self.targets() if target.what.endswith("mean bounded slowdown")]

    def targets(self) -> Iterator[Target]:
        """Yield the targets of the plan, then those of training times."""
        for plan in self.plan.paper.targets:
            found = [
                target
                for scores, parts in self.places(plan.comparison, plan.when, plan.each)
                for target in (
                    self._target(plan, scores, parts) if plan.what else self._targets(plan, scores)
                )
            ]
            yield from self._totals(plan, found) if plan.total else found
        times = self.plan.paper.times
        if self.plan.paper.minutes is not None:
            what = "longest training [min of a core]"
            times = [TimePlan(what=what, compared=True, at_most=self.plan.paper.minutes), *times]
        for each in times:
            yield from self._time(each)

    def _target(self, plan: TargetPlan, scores: Scores, parts: Parts) -> Iterator[Target]:
        parts = self._with(plan.let, scores, parts)
        found, known = self.quantities(scores), dict(parts.variables)
        if not found.value(plan.given, known):
            return
        paper, ours, spread = (
            None if value is None or value != value else float(value)
            for value in (found.value(each, known) for each in (plan.paper, plan.ours, plan.spread))
        )
        target = Target(f"{parts.made(plan.what)}", paper, math.nan if ours is None else ours, spread, None)
        yield target._replace(met=self._is_met(plan, target, known, found))

    def _is_met(
        self, plan: TargetPlan, target: Target, known: Mapping[str, Any], found: Quantities
    ) -> bool | None:
        met = found.value(plan.met, {**known, "paper": target.paper, "ours": target.ours})
        return None if met is None else bool(met)

    def _totals(self, plan: TargetPlan, targets: Sequence[Target]) -> Iterator[Target]:
        for what in dict.fromkeys(target.what for target in targets):
            same = [target for target in targets if target.what == what]
            papers = [target.paper for target in same if target.paper is not None]
            total = Target(what, sum(papers) if papers else None, sum(each.ours for each in same), None, None)
            found = Quantities(Scores(None, {}), {})
            yield total._replace(met=self._is_met(plan, total, vars(self.plan.traces.scale), found))

    def _targets(self, plan: TargetPlan, scores: Scores) -> Iterator[Target]:
        contest = scores.contest
        where = f"{contest.about}, {contest.plan.words}"
        for row in plan.rows:
            if plan.published:
                yield from self._published_target(plan, scores, row, where)
            for other in plan.below:
                rival = scores.standings(row, [other])[other]
                assert rival.against is not None
                what = f"{where}: {row}, below {other} by [%], p < {SIGNIFICANT} by both tests"
                yield Target(what, None, -100 * rival.against.relative, None, rival.is_beaten)

    def _published_target(self, plan: TargetPlan, scores: Scores, row: str, where: str) -> Iterator[Target]:
        """Yield the target of a published mean, which is tested on as many sequences as published only."""
        theirs = self.plan.published[plan.published].number(scores.contest.about, row)
        ours, whole = scores.mean(row), len(scores.of(row)) == plan.sequences
        if theirs == theirs:
            met = same_digits(ours, theirs) if whole else None
            yield Target(f"{where}: {row}, mean bounded slowdown", theirs, ours, None, met)

    def _time(self, plan: TimePlan) -> Iterator[Target]:
        learners = self.plan.compared if plan.compared else self.plan.trained
        chosen = [each for each in learners if not plan.trainers or each.trainer in plan.trainers]
        if chosen:
            learner = max(chosen, key=self.seconds)
            longest = self.seconds(learner) / (60 if plan.unit == "min" else 3600)
            met = None if plan.at_most is None else longest <= plan.at_most
            about = {"agent": learner.name, "decisions": grouped(learner.size)}
            yield Target(f"{Parts(about).made(plan.what)}", plan.paper, longest, None, met)

    def conclusion(self, pictures: Path) -> Conclusion:
        """Return the targets and the report; figures are written to a folder."""
        for name, table in self.plan.paper.tables.items():
            if table.file:
                text = csv_text(*self.tabulated(name))
                write_bytes(pictures / single_name(table.file), text.encode())
        for name, figure in self.figures():
            save_figure(figure, pictures / f"{single_name(name)}.png")
        report = rendered(self.template, title=self.plan.title, found=self, plan=self.plan, **self.values())
        return Conclusion(list(self.targets()), report)


def _turned(lines: Sequence[Sequence[tuple[ColumnPlan, str, str]]]) -> Iterator[tuple[ColumnPlan, Any]]:
    """Yield the columns of some lines, each with its cells."""
    for cells in zip(*lines, strict=True):
        yield cells[0][0], cells


def _column(column: ColumnPlan, texts: list[str]) -> list[str]:
    """Return the cells of a column; the best numbers are bold, unless all are equal.

    >>> _column(ColumnPlan(name="", value="", best="lowest"), ["3.00 (1.00 to 5.00)", "2.00", ""])
    ['3.00 (1.00 to 5.00)', '**2.00**', '']
    """
    numbers = [float(text.partition(" ")[0]) for text in texts if text and column.best]
    if len(set(numbers)) < 2:
        return texts
    best = min(numbers) if column.best == "lowest" else max(numbers)
    return [f"**{text}**" if text and float(text.partition(" ")[0]) == best else text for text in texts]
