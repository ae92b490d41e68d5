"""Report of an evaluation: one page with tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hpcsimkit.experiments.evaluation.evaluation import AGENT, Contest
from hpcsimkit.experiments.evaluation.tables import (
    INTERVAL,
    Verdict,
    choices_table,
    choices_text,
    verdict_table,
    where_table,
)
from hpcsimkit.experiments.tables import Table
from hpcsimkit.experiments.training.data import RANDOM
from hpcsimkit.reports.figures import line_styles, new_figure, title
from hpcsimkit.reports.page import rendered_page, shown_picture
from hpcsimkit.reports.picture import WIDTH, Picture
from hpcsimkit.reports.sweep.plots import plot_intervals
from hpcsimkit.results.metrics import METRICS

SPREAD = f"{INTERVAL}s over the sequences are of the BCa bootstrap"
TESTS = (
    f"{SPREAD}; p-values of paired t-tests and of Wilcoxon's signed-rank tests are corrected by Holm's method"
)


def evaluation_page(contest: Contest, verdicts: Sequence[Verdict]) -> str:
    """Return the HTML page of an evaluation."""
    evaluation, first = contest.evaluation, verdicts[0]
    tiles = [
        (contest.workload.name, "log"),
        (f"{evaluation.sequences}", f"sequences of {evaluation.jobs} jobs"),
        (first.best, f"best heuristic by {first.metric.replace('_', ' ')}"),
        (first.behind, "heuristic behind the seat"),
    ]
    return rendered_page(
        "sweep.html.jinja",
        title=contest.about,
        tiles=tiles,
        remarks=list(filter(None, [contest.warning])),
        headline=_shown(verdict_table(first), title="Means", note=f"{TESTS}; * below 0.05."),
        swatches={},
        sections=[*(_section(verdict, means=verdict is not first) for verdict in verdicts), _choices(first)],
        failed=None,
        failures=0,
        facts=[(name, repr(policy)) for name, policy in contest.policies.items()],
    )


def _shown(table: Table, **texts: str) -> dict[str, Any]:
    return {**table._asdict(), "left_out": 0, **texts}


def _section(verdict: Verdict, *, means: bool) -> dict[str, Any]:
    """Return the section of a metric, with the table of means if the page does not begin with it."""
    title = "Means and differences"
    tables = [_shown(verdict_table(verdict), files="evaluation.json", title=title, note=f"{TESTS}.")] * means
    tables += [
        _shown(
            where_table(verdict, other),
            files="where.csv",
            title=f"Differences from {other} by class of jobs",
            note=f"Means over the sequences with such jobs; {SPREAD}. Among many classes, some differ by "
            "chance. The last column is the part of the difference over all jobs that is due to the class. "
            "Hours are those of the submission.",
        )
        for other in verdict.where
    ]
    return {
        "name": verdict.metric,
        "title": verdict.metric.replace("_", " "),
        "about": METRICS[verdict.metric],
        "remark": f"The {RANDOM} chooses any valid action of the same seat.",
        "pictures": list(map(shown_picture, pictures_of(verdict))),
        "tables": tables,
    }


def _choices(verdict: Verdict) -> dict[str, Any]:
    text = choices_text(verdict)
    table = _shown(
        choices_table(verdict),
        files="where.csv",
        title="Features of its choices",
        note=f"Means over the sequences of the mean in each; {SPREAD}.",
    )
    return {
        "name": "choices",
        "title": "choices",
        "about": None,
        "remark": f"{text[0].upper()}{text[1:]}.",
        "pictures": [],
        "tables": [table] * bool(verdict.features),
    }


def pictures_of(verdict: Verdict) -> Iterator[Picture]:
    """Yield the differences from each policy, and those from the best heuristic by class of jobs."""
    words, differences = verdict.metric.replace("_", " "), {}
    for name, comparison in verdict.comparisons.items():
        differences[name] = comparison.difference
    caption = f"{INTERVAL}s over the sequences (BCa bootstrap), not corrected for their number."
    figure = new_figure(WIDTH, 0.8 + 0.3 * len(differences))
    plot_intervals(differences, figure.axes[0], zero=True)
    reading = f"{AGENT.capitalize()} minus each policy. An interval that contains 0 does not tell them apart."
    yield Picture(f"{verdict.metric}_differences", f"Differences in {words}", reading, caption, figure)
    parts = verdict.where[verdict.best]
    criteria = list(dict.fromkeys(part.by for part in parts))
    if not criteria:
        return
    longest = max(sum(part.by == by for part in parts) for by in criteria)
    figure = new_figure(WIDTH, 0.8 + 0.24 * longest, columns=len(criteria))
    for ax, by in zip(figure.axes, criteria, strict=True):
        means = {part.label: part.difference for part in parts if part.by == by}
        plot_intervals(means, ax, styles=dict.fromkeys(means, line_styles([by])[by]), zero=True)
        ax.locator_params(axis="x", nbins=4)
        title(ax, by.replace("_", " "))
    reading = (
        f"Where the {AGENT} differs from {verdict.best}: {AGENT} minus {verdict.best} in each class of jobs."
    )
    yield Picture(
        f"{verdict.metric}_where", f"Differences from {verdict.best} by class", reading, caption, figure
    )
