"""Statistics of an evaluation, and their tables for the console and the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped, metric_heading, number_text, plain_table
from hpcsimkit.experiments.evaluation.choices import OF_JOB
from hpcsimkit.experiments.evaluation.evaluation import AGENT, Contest
from hpcsimkit.experiments.evaluation.where import Outcomes, Part, by_choice, by_class, measure_of
from hpcsimkit.experiments.tables import Table
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.replicates import distinct, numbered, replicate_of
from hpcsimkit.results.statistics import CONFIDENCE, SIGNIFICANT, Comparison, Mean, mean_of, paired

INTERVAL = f"{CONFIDENCE:.0%} interval".replace("%", " %")

ONE_REPLICATE = "one replicate"
"""Text in place of a p-value that a single sequence cannot give."""

TOP = 2
"""Number of classes of each criterion on the console: those with the largest shares of the difference."""


class Verdict(NamedTuple):
    """Statistics of one metric over the sequences.

    Parameters
    ----------
    metric : str
        Name of the metric.
    means : mapping of str to Mean
        Mean of each policy.
    comparisons : mapping of str to Comparison
        Differences between the agent and each other policy.
    best : str
        Name of the best heuristic compared, by its mean.
    behind : str
        Name of the heuristic behind the seat.
    where : mapping of str to list of Part
        Differences between the agent and those two heuristics by class of jobs.
    choices : mapping of str to int
        Number of ``decisions``, of ``differing`` ones, and of those in which the agent ``declined`` all jobs.
    features : list of Part
        Features of the agent's choices beside those of the heuristic behind the seat.
    """

    metric: str
    means: Mapping[str, Mean]
    comparisons: Mapping[str, Comparison]
    best: str
    behind: str
    where: Mapping[str, list[Part]]
    choices: Mapping[str, int]
    features: list[Part]


def verdict_of(metric: str, contest: Contest, outcomes: Outcomes) -> Verdict:
    """Compare the agent with the other policies by a metric; a sequence sampled twice counts once."""
    values = {name: _values(metric, name, outcomes) for name in contest.policies}
    schedules = {name: _schedules(name, outcomes) for name in contest.policies}

    def sample(*names: str) -> Any:
        columns = (np.array([table[name] for name in names]) for table in (values, schedules))
        return distinct(*columns)

    def apart(*names: str) -> Outcomes:
        replicate = replicate_of(np.array([schedules[name] for name in names]))
        return [outcomes[place] for place in np.unique(replicate, return_index=True)[1]]

    means = {name: mean_of(sample(name)[0]) for name in values}
    rivals = [name for name in values if name != AGENT]
    sign = {"lower": 1, "higher": -1}.get(METRICS[metric].direction, 0)
    best = min(contest.heuristics, key=lambda name: sign * means[name].mean)
    others = dict.fromkeys([best, contest.behind])
    counts = ("decisions", "differing", "declined")
    return Verdict(
        metric,
        means,
        dict(zip(rivals, paired([sample(AGENT, name) for name in rivals]), strict=True)),
        best,
        contest.behind,
        {name: by_class(apart(AGENT, name), AGENT, name, measure_of(metric)) for name in others},
        {name: sum(outcome["choices"][name] for outcome in apart(AGENT)) for name in counts},
        by_choice(apart(AGENT, contest.behind)),
    )


def _schedules(policy: str, outcomes: Outcomes) -> NDArray[np.int64]:
    """Return the number of the schedule of a policy on each sequence, equal for the same jobs and starts."""
    return numbered([(outcome["first_job"], outcome["schedules"][policy]) for outcome in outcomes])


def _values(metric: str, policy: str, outcomes: Outcomes) -> Any:
    values = [outcome["metrics"][policy][metric] for outcome in outcomes]
    if None in values:
        raise UsageError(f"{metric} of {policy} is not defined on sequence {values.index(None)}")
    return np.array(values, dtype=np.float64)


# --- tables ----------------------------------------------------------------------------------------------


def verdict_table(verdict: Verdict) -> Table:
    """Return a row for each policy; p-values are corrected by Holm's method, a star marks significance."""
    direction = METRICS[verdict.metric].direction
    counts = ["wins, ties, losses"] * (direction != "none")
    rows = []
    for name, mean in verdict.means.items():
        comparison = verdict.comparisons.get(name)
        cells = [name, number_text(mean.mean), _interval(mean), *_cells(comparison)]
        if counts:
            cells.append("" if comparison is None else _counts(comparison, direction))
        rows.append(cells)
    tests = ["agent minus it", INTERVAL, "t-test", "Wilcoxon"]
    return Table([metric_heading(verdict.metric), "mean", INTERVAL, *tests, *counts], rows)


def where_table(verdict: Verdict, other: str, top: int | None = None) -> Table:
    """Return a row for each class of jobs, or for the `top` classes of each criterion."""
    parts = verdict.where[other]
    if top is not None:
        ranked = sorted(parts, key=lambda part: -abs(part.share))
        kept = [
            part for by in {part.by for part in parts} for part in [p for p in ranked if p.by == by][:top]
        ]
        parts = [part for part in parts if part in kept]
    rows = [
        [
            f"{part.by.replace('_', ' ')} {part.label}",
            grouped(part.jobs),
            *map(number_text, (part.own, part.other)),
            *_difference(part.difference, part.relative),
            "-" if math.isnan(part.share) else f"{100 * part.share:.0f} %",
        ]
        for part in parts
    ]
    heading = f"{metric_heading(measure_of(verdict.metric))} by"
    return Table([heading, "jobs", AGENT, other, "difference", INTERVAL, "share of it"], rows)


def choices_table(verdict: Verdict) -> Table:
    """Return a row for each feature of the agent's choices and of those of the heuristic behind the seat."""
    rows = [
        [part.label, *map(number_text, (part.own, part.other)), *_difference(part.difference, part.relative)]
        for part in verdict.features
    ]
    jobs_given = len(rows) > OF_JOB
    columns = ["where they differ", "elsewhere"] if jobs_given else [f"{AGENT}'s job", "heuristic's job"]
    return Table(["choices", *columns, "difference", INTERVAL], rows)


def choices_text(verdict: Verdict) -> str:
    """Return a sentence with the numbers of decisions."""
    decisions, differing, declined = verdict.choices.values()
    share = f" ({differing / decisions:.1%})".replace("%", " %") if decisions else ""
    hold = f"; it declines all jobs {grouped(declined)} times" if declined else ""
    return (
        f"the agent differs from {verdict.behind}, behind its seat, in {grouped(differing)} of "
        f"{grouped(decisions)} decisions{share}{hold}"
    )


def console_text(verdicts: Sequence[Verdict]) -> str:
    """Return all tables as plain text; of the classes, those with the largest shares of the difference."""
    blocks, shown = [], set()
    for verdict in verdicts:
        roles = f"best heuristic: {verdict.best}; behind the seat: {verdict.behind}"
        blocks.append(f"{plain_table(*verdict_table(verdict))}\n{roles}")
        key = (verdict.best, measure_of(verdict.metric))
        if key not in shown and verdict.where[verdict.best]:
            blocks.append(plain_table(*where_table(verdict, verdict.best, TOP)))
        shown.add(key)
    verdict = verdicts[0]
    blocks.append(choices_text(verdict))
    if verdict.features:
        blocks[-1] += f"\n{plain_table(*choices_table(verdict))}"
    return "\n\n".join(blocks)


def _cells(comparison: Comparison | None) -> Iterator[str]:
    """Yield the cells of a comparison; the agent is not compared with itself."""
    if comparison is None:
        yield from [""] * 4
        return
    yield from _difference(comparison.difference, comparison.relative)
    yield _p_value(comparison.t_test_holm)
    yield _p_value(comparison.wilcoxon_holm)


def _difference(mean: Mean, relative: float) -> tuple[str, str]:
    share = "" if math.isnan(relative) else f" ({relative:+.1%})"
    return f"{number_text(mean.mean)}{share}".replace("%", " %"), _interval(mean)


def _counts(comparison: Comparison, direction: str) -> str:
    return ", ".join(map(str, comparison.counts(direction).values()))


def _interval(mean: Mean) -> str:
    return "-" if math.isnan(mean.low) else f"{number_text(mean.low)} to {number_text(mean.high)}"


def _p_value(p: float) -> str:
    if math.isnan(p):
        return ONE_REPLICATE
    star = "*" if p < SIGNIFICANT else " "
    return f"{star}{p:.1e}" if p < 0.001 else f"{star}{p:.3f}"
