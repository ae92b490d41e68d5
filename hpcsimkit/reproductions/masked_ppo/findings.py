"""Measurements behind the report: its tables, figures and targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.figures import draw_boxes
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.learners import learning_curve_of
from hpcsimkit.reproductions.masked_ppo.contest import BASELINES, CONTROLS
from hpcsimkit.reproductions.masked_ppo.figures import draw_training_curves
from hpcsimkit.reproductions.masked_ppo.scores import UTILISATION, WAIT, Scores, Verdict, judged
from hpcsimkit.reproductions.plans.plan import Published
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.statistics import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "MaskedPPOFindings",
    "baseline_targets",
    "days_table",
    "family_targets",
    "means_table",
    "p_value",
    "tests_table",
]

PUBLISHED = Published.of_toml(Path(__file__).with_name("published.toml")).tables
"""Numbers of the paper's tables, by measure."""

MODEL = "RL model"
"""Row of the paper's agents."""

POINTS = 0.1
"""Allowed deficit of utilisation relative to BFBP's [percentage points]."""

BEATEN = ("SJF", *CONTROLS)
"""Baselines that a trained agent must beat in mean wait."""

LABELS = {
    WAIT: "mean wait of a day [min], logarithmic",
    UTILISATION: "utilisation of a day, by snapshots [%]",
}
"""Axis labels of the box plots."""

OTHERS = (*BASELINES, *CONTROLS)


def means_table(measure: str, model: str, rows: Sequence[str], **scores: Scores) -> Table:
    """Return the mean of each row beside the paper's, with the spread over agents or seeds.

    Parameters
    ----------
    measure : str
        Measure to show.
    model : str
        Row of the paper's model.
    rows : sequence of str
        All rows to show.
    **scores : Scores
        Columns: scores by the name of a set of days.
    """
    paper = PUBLISHED.get(measure)
    headings = [f"{measure} [{'min' if measure == WAIT else '%'}]", *(["paper, 23 days"] if paper else [])]
    headings += [f"{name} days ({len(each.days)})" for name, each in scores.items()]
    lines = []
    for row in rows:
        published = [] if paper is None else [number(paper.number(MODEL if row == model else row, "mean"))]
        cells = [_with_spread(each, row, measure) for each in scores.values()]
        lines.append([row, *published, *cells])
    return Table(headings, lines)


def _with_spread(scores: Scores, row: str, measure: str) -> str:
    spread = scores.spread(row, measure)
    mean = number(scores.mean(row, measure))
    return mean if spread is None else f"{mean} ± {number(spread)}"


def tests_table(measure: str, verdicts: Mapping[str, Verdict]) -> Table:
    """Return the significance tests of a row against all others.

    Parameters
    ----------
    measure : str
        Measure of the comparison.
    verdicts : mapping of str to Verdict
        Comparisons on each set of days.
    """
    headings = ["against", "paper: p"]
    for name in verdicts:
        headings += [f"{name}: difference", "relative", "p as in the paper", "p paired", "p Holm"]
        headings.append("Wilcoxon, Holm")
    lines = []
    for other in next(iter(verdicts.values())).paired:
        line = [other, p_value(PUBLISHED[measure].number(other, "p"))]
        for verdict in verdicts.values():
            found = verdict.paired[other]
            line += [f"{found.difference.mean:+.4g}", f"{100 * found.relative:+.1f} %"]
            ps = verdict.t_tests[other], found.t_test, found.t_test_holm, found.wilcoxon_holm
            line += [p_value(p) for p in ps]
        lines.append(line)
    return Table(headings, lines)


def days_table(scores: Scores, measure: str, rows: Sequence[str], jobs: Mapping[str, Workload]) -> Table:
    """Return a line for each day: its jobs, and the mean of each row."""
    lines = [
        [day, str(len(jobs[day])), *(number(scores.by_day(row, measure)[place]) for row in rows)]
        for place, day in enumerate(scores.days)
    ]
    return Table(["day", "jobs", *rows], lines)


def p_value(value: float) -> str:
    """Return a p-value with three digits.

    >>> p_value(0.0371234), p_value(3.2e-12), p_value(float("nan"))
    ('0.0371', '3.2e-12', '')
    """
    return "" if not math.isfinite(value) else f"{value:.3g}"


def baseline_targets(scores: Scores) -> Iterator[Target]:
    """Yield the paper's baselines beside ours; days differ, so only their order can be reproduced."""
    for measure, unit in ((WAIT, "min"), (UTILISATION, "%")):
        paper = PUBLISHED[measure]
        for row in BASELINES:
            ours = scores.mean(row, measure)
            yield Target(
                f"{row}: {measure} [{unit}], {len(scores.days)} days (paper: 23 others)",
                paper.number(row, "mean"),
                ours,
                None,
                None,
            )
    waits = {row: scores.mean(row, WAIT) for row in BASELINES}
    in_order = sorted(BASELINES, key=lambda row: waits[row])
    as_published = sorted(BASELINES, key=lambda row: PUBLISHED[WAIT].number(row, "mean"))
    agree = sum(one == other for one, other in zip(in_order, as_published, strict=True))
    what = f"baselines in the order {' < '.join(as_published)} by wait [places]"
    yield Target(what, float(len(as_published)), float(agree), None, agree == len(as_published))


def family_targets(
    name: str, rows: tuple[str, str], test: Scores, unseen: Scores, others: Sequence[str]
) -> Iterator[Target]:
    """Yield the targets of a group of agents.

    Parameters
    ----------
    name : str
        Name of the group.
    rows : tuple of two str
        Rows of its agents for wait and for utilisation.
    test, unseen : Scores
        Scores on the two sets of days.
    others : sequence of str
        Rows to compare the agents with; p-values are corrected for their number.
    """
    for_wait, for_utilisation = rows
    published = PUBLISHED["reduction"].number("BFBP", WAIT)
    for days, scores in (("test", test), ("unseen", unseen)):
        below = _below_bfbp(scores, for_wait)
        yield Target(
            f"{name}: wait below BFBP's by 16.9 %, {days} days [%]",
            published,
            below[0],
            below[1],
            below[0] >= published,
        )
    verdict = judged(unseen, WAIT, for_wait, tuple(BASELINES), others)
    for other in BEATEN:
        found = verdict.paired[other]
        less = found.difference.mean < 0
        what = f"{name}: wait below that of {other}, unseen days [%]"
        yield Target(what, None, -100 * found.relative, None, less)
        tests = {"paired t-test": found.t_test_holm, "Wilcoxon's test": found.wilcoxon_holm}
        for test_name, p in tests.items():
            what = f"{name}: p < {SIGNIFICANT} against {other}, {test_name}, Holm"
            yield Target(what, None, p, None, less and p < SIGNIFICANT)
    for days, scores in (("test", test), ("unseen", unseen)):
        gap = scores.mean(for_utilisation, UTILISATION) - scores.mean("BFBP", UTILISATION)
        yield Target(
            f"{name}: utilisation at most {POINTS} points below BFBP's, {days} days [points]",
            -0.02,
            gap,
            scores.spread(for_utilisation, UTILISATION),
            gap >= -POINTS,
        )


def _below_bfbp(scores: Scores, row: str) -> tuple[float, float | None]:
    """Return the reduction of mean wait relative to BFBP's, and its spread between agents [%]."""
    bfbp, spread = scores.mean("BFBP", WAIT), scores.spread(row, WAIT)
    return 100 * (1 - scores.mean(row, WAIT) / bfbp), None if spread is None else 100 * spread / bfbp


class MaskedPPOFindings(Findings):
    """Measurements of agents and baselines."""

    @cached_property
    def scores(self) -> Scores:
        """Scores on all days."""
        days = [str(day) for day in self.plan.beocat.all_days]
        return Scores.of(((play.contestant.row, self.store.outcome(play)) for play in self.plan.plays), days)

    @property
    def day_sets(self) -> dict[str, Scores]:
        """Scores on the test days, and on the unseen days."""
        beocat = self.plan.beocat
        sets = {"test": beocat.test_days, "unseen": beocat.unseen_days}
        return {name: self.scores.on([str(day) for day in days]) for name, days in sets.items()}

    def rows(self, measure: str) -> list[str]:
        """Return the rows of a table: untrained policies, and the agents trained for the measure."""
        return [
            *BASELINES,
            *CONTROLS,
            *(row for family in self.plan.families for row in family.rows(measure)),
        ]

    @property
    def all_rows(self) -> list[str]:
        """All rows, each once."""
        return list(dict.fromkeys((*self.rows(WAIT), *self.rows(UTILISATION))))

    def rows_of_days(self, measure: str) -> list[str]:
        """Return the rows of a table of single days."""
        return [*OTHERS, *(family.row(measure) for family in self.plan.families)]

    def verdicts(self, measure: str, model: str) -> dict[str, Verdict]:
        """Return the tests of a row against untrained policies, by set of days."""
        return {
            name: judged(scores, measure, model, tuple(BASELINES), OTHERS)
            for name, scores in self.day_sets.items()
        }

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        jobs = {str(day): workload for day, workload in self.plan.beocat.all_days.items()}
        tables = {each.__name__: each for each in (means_table, tests_table, days_table, p_value)}
        return {"scale": self.plan.beocat.scale, "jobs": jobs, **tables}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for measure, label in LABELS.items():
            for name, scores in self.day_sets.items():
                values = {row: scores.by_day(row, measure) for row in self.rows(measure)}
                yield f"{measure}-{name}", draw_boxes(values, label, logarithmic=measure == WAIT)
        for family in self.plan.families:
            curves = {
                metric: [learning_curve_of(self.store.place / learner.name) for learner in learners]
                for metric, learners in family.learners.items()
            }
            yield f"training-{family.name}", draw_training_curves(curves)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        test, unseen = self.day_sets.values()
        yield from baseline_targets(test)
        for family in self.plan.families:
            rows = family.row(WAIT), family.row(UTILISATION)
            yield from family_targets(family.name, rows, test, unseen, OTHERS)
