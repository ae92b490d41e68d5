"""The tables and texts of a study: weekly differences, classes of jobs, model card and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.learn.goal import FAIRNESS, LONGEST, REFERENCE, REPORTED, Figures, figures_of
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.experiments.learn.sensitivity import TITLES
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import write_bytes
from hpcsimkit.reports.page import rendered_page
from hpcsimkit.results.breakdown import By, classes_of
from hpcsimkit.results.metrics import METRICS, Selection
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import Mean, ratio_of_means

if TYPE_CHECKING:
    import pandas

COMPARED = ("mean_bounded_slowdown", "mean_wait_time")
"""Metrics whose differences are tested."""

GROUPS: tuple[By, ...] = ("size", "run_time", "user")
"""Criteria of the classes in the report."""

MOST_USERS = 15
"""Maximum number of users in the report, those with most work."""

WHO = ("policy", "rival")
"""Prefixes of the columns of the policy and of the heuristic."""

Row = Sequence[str]

Schedules = Mapping[str, Result]
"""Schedules of the same jobs by policy."""


def write_records(
    place: Path,
    periods: Periods,
    result_of: Callable[[str], Result],
    changed: Mapping[str, Schedules],
    outcome: dict[str, Any],
) -> None:
    """Write the tables, the model card and the report; differences and sensitivity are added to the outcome.

    `result_of` returns the schedule of a policy on the whole log; `changed` are schedules by condition.
    """
    policy = outcome["policy"]
    rivals = dict.fromkeys((*outcome["beside"], outcome["rival"], outcome["limited_rival"], REFERENCE))
    results = {name: result_of(name) for name in dict.fromkeys((policy, *rivals))}
    workload = results[policy].workload
    mask = periods.masks(workload)["test"]
    outcome["differences"] = _differences(policy, results, mask)
    if outcome["perfect"]:
        perfect = outcome["perfect"]["policy"]
        known = {perfect: result_of(perfect)} | {name: results[name] for name in rivals}
        outcome["perfect"]["differences"] = _differences(perfect, known, mask)
    outcome["sensitivity"] = {
        condition: {
            "figures": {name: figures_of(result, mask) for name, result in schedules.items()},
            "differences": _differences(policy, schedules, mask),
        }
        for condition, schedules in changed.items()
    }
    outcome["utilisation"] = {name: _utilisation(result, mask) for name, result in results.items()}
    frames = {"weeks": _weeks(results, mask)}
    frames |= {by: _classes(results[policy], results[outcome["rival"]], mask, by) for by in GROUPS}
    for name, frame in frames.items():
        text = frame.to_csv(index=False, lineterminator="\n")
        write_bytes(place / f"{name}.csv", text.encode())
    write_bytes(place / "test.csv", _test_table(outcome).encode())
    write_bytes(place / "model_card.md", _model_card(periods, results[policy], outcome).encode())
    write_bytes(place / "report.md", _report(outcome, periods, frames).encode())


# --- numbers ---------------------------------------------------------------------------------------------


def _values(result: Result, metric: str) -> NDArray[np.float64]:
    """Return the quantity of each job whose mean is a metric."""
    return result.wait_time if metric == "mean_wait_time" else result.bounded_slowdown()


def weekly_difference(policy: Result, rival: Result, jobs: NDArray[np.bool_], metric: str) -> Mean:
    """Return the difference of the means of two policies, with an interval from a bootstrap of whole weeks.

    The jobs that count are resampled by week of submission.
    """
    difference = (_values(policy, metric) - _values(rival, metric))[jobs]
    week = _week(policy, jobs)
    sums = np.bincount(week, weights=difference).astype(np.float64)
    return ratio_of_means(sums, np.bincount(week).astype(np.float64))


def _differences(
    policy: str, results: Schedules, jobs: NDArray[np.bool_]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the weekly differences of a policy from all others, by policy and metric."""
    return {
        rival: {
            metric: asdict(weekly_difference(results[policy], result, jobs, metric)) for metric in COMPARED
        }
        for rival, result in results.items()
        if rival != policy
    }


def _week(result: Result, jobs: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the week of submission of each selected job, from 0; weeks without jobs do not count."""
    submit = result.submit_time[jobs]
    return np.unique((submit - submit.min()) // WEEK, return_inverse=True)[1]


def _utilisation(result: Result, jobs: NDArray[np.bool_]) -> float:
    """Return the utilisation from the first to the last submission of some jobs."""
    submit = result.submit_time[jobs]
    selection = Selection(jobs, int(submit.min()), int(submit.max()))
    return float(METRICS["utilisation"].function(result, selection))


def _weeks(results: Mapping[str, Result], jobs: NDArray[np.bool_]) -> pandas.DataFrame:
    """Return a row for each week: number of jobs, and means of each policy."""
    import pandas

    week = _week(next(iter(results.values())), jobs)
    counts = np.bincount(week)
    columns: dict[str, Any] = {"week": np.arange(len(counts)), "jobs": counts}
    for name, result in results.items():
        for metric in COMPARED:
            sums = np.bincount(week, weights=_values(result, metric)[jobs])
            columns[f"{name} {metric}"] = sums / counts
    return pandas.DataFrame(columns)


def _classes(policy: Result, rival: Result, jobs: NDArray[np.bool_], by: By) -> pandas.DataFrame:
    """Return the means of two policies in each class of jobs, and the longest waits."""
    import pandas

    number, label = classes_of(policy, by, MOST_USERS if by == "user" else None)
    table = pandas.DataFrame({"class": number[jobs]})
    for who, result in (("policy", policy), ("rival", rival)):
        table[f"{who}_wait"] = result.wait_time[jobs]
        table[f"{who}_slowdown"] = result.bounded_slowdown()[jobs]
    groups = table.groupby("class")
    means = groups.mean()
    means.insert(0, "jobs", groups.size())
    means.insert(0, by, [label(int(each)) for each in means.index])
    for who in WHO:
        means[f"{who}_longest_wait"] = groups[f"{who}_wait"].max()
    return means.reset_index(drop=True)


# --- texts -----------------------------------------------------------------------------------------------

HEADINGS = [
    "policy",
    "mean bounded slowdown",
    "mean wait [h]",
    "95 % of waits [h]",
    "longest wait [d]",
    "fairness",
]


def figures_cells(figures: Figures) -> list[str]:
    """Return slowdown, mean wait [h], 95 % quantile [h], longest wait [d] and fairness as texts."""
    slowdown, wait, quantile, longest = (figures[name] for name in REPORTED)
    fairness = f"{figures[FAIRNESS]:.3f}" if FAIRNESS in figures else "-"
    times = [f"{wait / 3600:.3f}", f"{quantile / 3600:.2f}", f"{longest / 86_400:.2f}"]
    return [f"{slowdown:.2f}", *times, fairness]


def _figure_rows(figures: Mapping[str, Figures], roles: Mapping[str, str] | None = None) -> list[Row]:
    """Return a row of `HEADINGS` for each policy, with its role if there are roles."""
    return [
        [f"`{name}`", *figures_cells(each), *([] if roles is None else [roles.get(name, "")])]
        for name, each in figures.items()
    ]


def difference_text(difference: Mapping[str, float], unit: float = 1.0) -> str:
    """Return a difference with its interval, and a star if the interval excludes zero.

    >>> difference_text({"mean": -2.0, "low": -3.0, "high": -1.0})
    '-2.00 [-3.00, -1.00] *'
    """
    mean, low, high = (difference[name] / unit for name in ("mean", "low", "high"))
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]{' *' if low * high > 0 else ''}"


def _difference_rows(differences: Mapping[str, Any]) -> list[Row]:
    """Return a row for each other policy: differences of the slowdown, and of the wait [h]."""
    slowdown, wait = COMPARED
    return [
        (f"`{other}`", difference_text(each[slowdown]), difference_text(each[wait], 3600))
        for other, each in differences.items()
    ]


def _report(outcome: Mapping[str, Any], periods: Periods, frames: Mapping[str, pandas.DataFrame]) -> str:
    """Return the report."""
    policy, reference = outcome["test"][outcome["policy"]], outcome["test"][REFERENCE]
    followed = [(which, f"{week:.1f}") for week, which in [(0.0, "order"), *outcome["followed"]]]
    page = rendered_page(
        "learned.md.jinja",
        **outcome,
        ratio=policy[LONGEST] / max(reference[LONGEST], 1.0),
        headings=HEADINGS,
        roles=_roles(outcome),
        titles=TITLES,
        test_week=(periods.test - periods.learn) // WEEK,
        followed_rows=followed,
        utilisation_rows=[(f"`{name}`", f"{value:.4f}") for name, value in outcome["utilisation"].items()],
        class_tables="\n\n".join(str(_class_table(frames[by], by)) for by in GROUPS),
        table=Table,
        figure_rows=_figure_rows,
        difference_rows=_difference_rows,
    )
    return page + "\n"


def _roles(outcome: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of each policy of the study that has one."""
    learned = f"learned{', with its guard' if outcome['guarded'] else ''}"
    chosen = "chosen heuristic: no candidate was better on the past"
    roles = {
        outcome["refined"]: "learned, without its guard",
        outcome["policy"]: learned if outcome["learned"] else chosen,
        outcome["rival"]: "best heuristic on the past",
        outcome["limited_rival"]: "best heuristic on the past within the limit",
        outcome["clairvoyant"]: "reads run times",
        **dict.fromkeys(outcome["beside"], "beside"),
    }
    if outcome["perfect"]:
        roles[outcome["perfect"]["policy"]] = "learned with perfect predictions: reads run times"
    return roles


def _class_table(frame: pandas.DataFrame, by: str) -> Table:
    """Return the table of one criterion."""
    headings = (by, "jobs", "wait [h]", "baseline [h]", "slowdown", "baseline", "longest [d]", "baseline [d]")
    hours = [frame[f"{who}_wait"] / 3600 for who in WHO]
    slowdowns = [frame[f"{who}_slowdown"] for who in WHO]
    days = [frame[f"{who}_longest_wait"] / 86_400 for who in WHO]
    columns = [frame[by].astype(str), frame["jobs"].astype(str)]
    columns += [column.map("{:.2f}".format) for column in (*hours, *slowdowns, *days)]
    return Table(headings, list(zip(*columns, strict=True)))


def _calibrated(shares: Mapping[str, float]) -> str:
    """Return the share of jobs within predicted quantiles.

    >>> _calibrated({"0.5": 0.613, "0.9": 0.875})
    'of 50 %, 61.3 %; of 90 %, 87.5 %'
    """
    found = (f"of {float(level):.0%}, {share:.1%}".replace("%", " %") for level, share in shares.items())
    return "; ".join(found)


def _model_card(periods: Periods, result: Result, outcome: Mapping[str, Any]) -> str:
    """Return the model card."""
    card = rendered_page(
        "model_card.md.jinja",
        **outcome,
        machine=result.machine,
        hash=result.workload.hash,
        weeks=[(begin - periods.learn) // WEEK for begin in periods],
        calibrated=_calibrated(outcome["calibration"]),
    )
    return card + "\n"


def _test_table(outcome: Mapping[str, Any]) -> str:
    """Return the metrics of all policies on the last part as CSV."""
    lines = [",".join(("policy", *REPORTED, FAIRNESS))]
    for policy, figures in outcome["test"].items():
        fairness = repr(figures[FAIRNESS]) if FAIRNESS in figures else ""
        lines.append(",".join([f'"{policy}"', *(repr(figures[name]) for name in REPORTED), fairness]))
    return "\n".join(lines) + "\n"
