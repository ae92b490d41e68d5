"""Tables of a sweep as text: numbers with intervals in the cells, for pages, LaTeX and the console."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcsimkit.reports.figures import format_count, format_number
from hpcsimkit.reports.sweep.summaries import (
    differences,
    direction_of,
    mean_ratios,
    means,
    ranks,
    ratios,
)
from hpcsimkit.reports.sweep.table import POLICY, SweepTable
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.statistics import CONFIDENCE, SIGNIFICANT, Ranking, p_value_text

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "INTERVAL",
    "Table",
    "file_name",
    "headline",
    "headline_table",
    "joined",
    "metric_label",
    "rank_note",
    "tables_of",
    "value_text",
]

INTERVAL = f"{100 * CONFIDENCE:.0f} % interval"

TESTED = ("t_test_holm", "wilcoxon_holm")
"""Columns of p-values."""

UNDEFINED = "undefined"
"""Text in place of a ratio to 0."""

ONE_REPLICATE = "one replicate"
"""Text in place of a p-value that a single replicate cannot give."""

LONGEST = 36
"""Largest length of the value of an axis in headings [characters]."""


class Table(NamedTuple):
    """Table of the report."""

    name: str
    title: str
    note: str
    data: DataFrame
    shown: DataFrame


def headline(table: SweepTable) -> str:
    """Return the headline table as plain text for the console, with its note if it shows ratios.

    The text is empty if no metric has a value.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"policy": ["fcfs", "fcfs+easy"], "seed": [1, 1], "makespan": [120.0, 90.0]})
    >>> print(headline(SweepTable.of(cells, {"policy": ["fcfs", "fcfs+easy"]})))
    policy    makespan [s]
    fcfs               120
    fcfs+easy           90
    """
    if not table.metrics:
        return ""
    found = headline_table(table)
    shown = found.shown.copy()
    width = max(map(len, [POLICY, *shown[POLICY]]))
    shown[POLICY] = shown[POLICY].str.ljust(width)
    lines = shown.rename(columns={POLICY: POLICY.ljust(width)}).to_string(index=False)
    return f"{lines}\n{found.note}" if table.conditions else lines


def headline_table(table: SweepTable) -> Table:
    """Return a row for each policy: means of all chosen metrics, or ratios under several conditions."""
    return _ratios_of_metrics(table) if table.conditions else _means_of_metrics(table)


def _ratios_of_metrics(table: SweepTable) -> Table:
    """Return geometric means of ratios to the baseline, with average ranks."""
    import pandas as pd

    found = {metric: mean_ratios(table, metric) for metric in table.metrics}
    note = f"{_ratio_note(table)} Geometric means over them, and average ranks in brackets."
    shown = {
        f"{metric.replace('_', ' ')}, ratio (rank)": [_ratio(row) for row in data.itertuples()]
        for metric, data in found.items()
    }
    return Table(
        "ratios",
        f"Ratios to {table.baseline}",
        f"{note}{_undefined(table, table.metrics)}",
        pd.concat(found, names=["metric"]).reset_index("metric") if found else pd.DataFrame(),
        pd.DataFrame({POLICY: table.policies, **shown}),
    )


def _ratio_note(table: SweepTable) -> str:
    number = len(table.cells.drop_duplicates(list(table.conditions)))
    return f"Ratios to {table.baseline} under each of {number} values of {joined(table.conditions)}."


def _undefined(table: SweepTable, metrics: Sequence[str]) -> str:
    """Return in how many conditions the ratios of metrics are undefined, as a sentence."""
    texts = []
    for metric in metrics:
        data = ratios(table, metric)
        where = data[data["undefined"]].drop_duplicates(list(table.conditions)) if len(data) else data
        texts += [f"{len(where)} for the {metric.replace('_', ' ')}"] if len(where) else []
    if not texts:
        return ""
    return f" Undefined, and left out of the means, where {table.baseline} has 0: {joined(texts)}."


def _means_of_metrics(table: SweepTable) -> Table:
    """Return means with their intervals."""
    import pandas as pd

    found = {metric: means(table, metric) for metric in table.metrics}
    shown = {metric_label(metric): list(map(_mean, data.itertuples())) for metric, data in found.items()}
    over = f" over {joined(table.settings)}" if table.settings else ""
    spread = f", with {INTERVAL}s over {joined(table.replicates)} (BCa bootstrap)"
    return Table(
        "means",
        "Means",
        f"Means{over}{spread if table.repetitions > 1 else ''}.",
        pd.concat(found, names=["metric"]).reset_index("metric") if found else pd.DataFrame(),
        pd.DataFrame({POLICY: table.policies, **shown}),
    )


def tables_of(table: SweepTable, metric: str) -> Iterator[Table]:
    """Yield the tables of a metric: ratios, differences, means by axis and by all settings, ranks.

    Differences and means over several logs are not among them: seconds of different machines.
    """
    import pandas as pd

    label, name, title = (
        metric_label(metric),
        f"{metric}_differences",
        f"Paired differences to {table.baseline}",
    )
    if table.conditions and len(data := ratios(table, metric)):
        under = f"Ratios to {table.baseline} by {joined(table.conditions)}"
        yield _table(f"{metric}_ratios", under, _note_of_ratios(table, metric), data)
    data = differences(table, metric)
    if len(data) and not table.logs:  # some policy and the baseline have a value in the same replicate
        yield _table(name, title, _difference_note(table, metric), data)
    data = differences(table, metric, table.settings) if table.settings else data[:0]
    if len(data):
        corrected = "" if _is_alone(data) else " p-values are corrected for all rows of this table."
        note = f"The same for each setting.{corrected}"
        if table.logs:
            note = _difference_note(table, metric)
        yield _table(f"{name}_by_setting", f"{title} by {joined(table.settings)}", note, data)
    for axis in table.settings:
        others = [name for name in table.settings if name != axis]
        if set(table.logs) & {*others}:
            continue
        note = f"{label}, averaged over {joined(others)}." if others else f"{label}."
        yield _table(
            f"{metric}_by_{file_name(axis)}", f"Means by {axis}", note, means(table, metric, (axis,))
        )
    if len(table.settings) > 1:
        data = means(table, metric, table.settings)
        yield _table(f"{metric}_by_setting", f"Means by {joined(table.settings)}", f"{label}.", data)
    if ranking := ranks(table, metric):
        data = pd.DataFrame(ranking.ranks.items(), columns=[POLICY, "rank"])
        yield _table(f"{metric}_ranks", "Average ranks", rank_note(ranking, table), data)


def _table(name: str, title: str, note: str, data: DataFrame) -> Table:
    """Return a table with its numbers as texts, the policy first; columns without a text are left out."""
    import pandas as pd

    shown, alone = {}, _is_alone(data)
    for column in [POLICY, *data.columns.drop(POLICY)]:
        if alone and column in ("wins", "replicates"):
            continue
        label, form = FORMS.get(column, (str(column), value_text))
        texts = [form(value) for value in data[column]]
        if column in TESTED:
            pairs = zip(texts, data["replicates"], strict=True)
            texts = [text if number > 1 else ONE_REPLICATE for text, number in pairs]
        elif column == "low":
            texts = [_interval(*ends) for ends in zip(data["low"], data["high"], strict=True)]
        elif column == "wins":
            counts = data[["wins", "ties", "losses"]].astype(str)
            texts = counts.agg(", ".join, axis=1).tolist()
        if any(texts) and label:
            shown[label] = texts
    return Table(name, title, note, data, pd.DataFrame(shown))


def _is_alone(data: DataFrame) -> bool:
    """Return whether no row of a table has a second replicate."""
    return "replicates" in data and data["replicates"].max() <= 1


def _note_of_ratios(table: SweepTable, metric: str) -> str:
    better = {"lower": "Below 1 is better.", "higher": "Above 1 is better."}.get(direction_of(metric), "")
    return (
        f"{metric_label(metric)}: means over the replicates, divided. {better}{_undefined(table, [metric])}"
    )


def _difference_note(table: SweepTable, metric: str) -> str:
    less = {"lower": " Negative is better.", "higher": " Positive is better."}
    words = f"{metric_label(metric)}, policy minus {table.baseline}.{less.get(direction_of(metric), '')}"
    if table.settings and not table.logs:
        words += f" Differences are averaged over {joined(table.settings)}."
    if _is_alone(differences(table, metric, table.settings if table.logs else ())):
        return f"{words} There is one replicate: no interval and no test."
    return (
        f"{words} p-values are of the paired t-test and of Wilcoxon's signed-rank test, corrected for all "
        f"rows (Holm); * below {SIGNIFICANT}. Replicates with a missing value are left out, and copies of a "
        "schedule count once."
    )


def rank_note(ranking: Ranking, table: SweepTable) -> str:
    """Return the explanation of average ranks: tests, and what is left out."""
    words = (
        f"Rank 1 is best; averages over {ranking.replicates} replicates. Friedman's test: p = "
        f"{format_number(ranking.friedman, 2)}. Critical difference of Nemenyi's test at {SIGNIFICANT}: "
        f"{ranking.critical_difference:.2f}."
    )
    if ranking.friedman >= SIGNIFICANT:
        words += " Friedman's test does not reject that all policies are equal: no pair should be compared."
    if ranking.left_out:
        words += f" Left out: {format_count(ranking.left_out, 'replicate')} with a missing value."
    if unranked := [policy for policy in table.policies if policy not in ranking.ranks]:
        words += f" Without any value: {', '.join(unranked)}."
    return words


# --- words and numbers -----------------------------------------------------------------------------------


def metric_label(metric: str) -> str:
    """Return the name of a metric with its unit.

    >>> metric_label("mean_wait_time"), metric_label("utilisation"), metric_label("episode_return")
    ('mean wait time [s]', 'utilisation', 'episode return')
    """
    unit = METRICS[metric].unit if metric in METRICS else "1"
    return metric.replace("_", " ") + ("" if unit == "1" else f" [{unit}]")


def file_name(axis: str) -> str:
    """Return the name of an axis as a part of a file name.

    >>> file_name("policy.window")
    'policy_window'
    """
    return "".join(letter if letter.isalnum() else "_" for letter in axis)


def joined(names: Sequence[str]) -> str:
    """Return names as the words of a sentence.

    >>> joined(["log"]), joined(["log", "seed", "window"])
    ('log', 'log, seed and window')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def value_text(value: Any) -> str:
    """Return the value of an axis, or the name of a policy, as text: a long one without its middle.

    >>> value_text(0.8), value_text("a/very/long/path/to/the/logs/KTH-SP2.swf.gz")
    ('0.8', 'a/very/long/pat ... /KTH-SP2.swf.gz')
    """
    text = value if isinstance(value, str) else format_number(value, 6)
    half = (LONGEST - 5) // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"


def _mean(row: Any) -> str:
    ends = _interval(row.low, row.high)
    return f"{format_number(row.mean)} ({ends})" if ends else format_number(row.mean)


def _ratio(row: Any) -> str:
    """Return the geometric mean of ratios, of how many if not of all, and the average rank.

    >>> from types import SimpleNamespace as Row
    >>> _ratio(Row(geometric_mean=0.5, rank=1.5, conditions=2, undefined=1, left_out=0))
    '0.5 of 2 in 3 (1.50)'
    """
    number = row.conditions + row.undefined + row.left_out
    text = format_number(row.geometric_mean) if row.conditions else UNDEFINED
    if 0 < row.conditions < number:
        text += f" of {row.conditions} in {number}"
    return text if math.isnan(row.rank) else f"{text} ({row.rank:.2f})"


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"{format_number(low)} to {format_number(high)}"


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %" if math.isfinite(share) else ""


FORMS: dict[Any, tuple[str, Callable[[Any], str]]] = {
    POLICY: (POLICY, str),
    "mean": ("mean", format_number),
    "difference": ("difference", format_number),
    "low": (INTERVAL, str),
    "high": ("", str),
    "relative": ("relative", _percent),
    "t_test": ("", str),
    "wilcoxon": ("", str),
    "t_test_holm": ("p, t", p_value_text),
    "wilcoxon_holm": ("p, Wilcoxon", p_value_text),
    "wins": ("wins, ties, losses", str),
    "ties": ("", str),
    "losses": ("", str),
    "left_out": ("left out", lambda count: str(count) if count else ""),
    "rank": ("average rank", lambda rank: "" if math.isnan(rank) else f"{rank:.2f}"),
    "ratio": ("ratio", lambda ratio: UNDEFINED if math.isnan(ratio) else format_number(ratio)),
    "undefined": ("", str),
}
"""Heading and format of each column; columns with an empty heading are only in files."""
