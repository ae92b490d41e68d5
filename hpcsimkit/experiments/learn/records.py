"""The tables and texts of a study: weekly differences, classes of jobs, model card and report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.console import plain_table
from hpcsimkit.experiments.learn.front_picture import front_figure
from hpcsimkit.experiments.learn.goal import COMPARED, FAIRNESS, LONGEST, REFERENCE, REPORTED, Figures
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.experiments.learn.tasks import LOST
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import write_bytes
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reports.page import rendered_page
from hpcsimkit.results.breakdown import By, classes_of
from hpcsimkit.results.metrics import METRICS, Selection
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import Mean, ratio_of_means

if TYPE_CHECKING:
    import pandas

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
    place: Path, periods: Periods, result_of: Callable[[str], Result], outcome: dict[str, Any]
) -> None:
    """Write the tables, the picture, the model card and the report; differences are added to the outcome.

    `result_of` returns the schedule of a policy on the whole log.
    """
    chosen = [name for name in (outcome["policy"], outcome["with_tests"]) if name]
    names = dict.fromkeys([*chosen, *outcome["beside"], outcome["rival"], REFERENCE])
    results = {name: result_of(name) for name in names}
    workload = results[outcome["policy"]].workload
    mask = periods.masks(workload)["test"]
    outcome["differences"] = {name: _differences(name, results, mask) for name in chosen}
    outcome["utilisation"] = {name: _utilisation(result, mask) for name, result in results.items()}
    frames = {"weeks": _weeks(results, mask)}
    frames |= {by: _classes(results[chosen[-1]], results[outcome["rival"]], mask, by) for by in GROUPS}
    for name, frame in frames.items():
        text = frame.to_csv(index=False, lineterminator="\n")
        write_bytes(place / f"{name}.csv", text.encode())
    for part in ("past", "test"):
        write_bytes(place / f"{part}.csv", _figures_table(outcome[part]).encode())
    drawn = front_figure({"past": outcome["past"], "last part": outcome["test"]})
    save_figure(drawn, place / "front.png")
    result = results[outcome["policy"]]
    write_bytes(place / "model_card.md", _model_card(periods, result, outcome).encode())
    write_bytes(place / "report.md", _report(outcome, chosen[-1], frames).encode())


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
    "longest wait [d]",
    "mean bounded slowdown",
    "mean wait [h]",
    "95 % of waits [h]",
    "fairness",
    "lost work",
]


def figures_cells(figures: Figures) -> list[str]:
    """Return longest wait [d], slowdown, mean wait and 95 % quantile [h], fairness and lost work as texts."""
    slowdown, wait, quantile, longest = (figures[name] for name in REPORTED)
    fairness = f"{figures[FAIRNESS]:.3f}" if FAIRNESS in figures else "-"
    lost = f"{100 * figures[LOST]:.2f} %" if figures[LOST] else "-"
    times = [f"{wait / 3600:.3f}", f"{quantile / 3600:.2f}"]
    return [f"{longest / 86_400:.2f}", f"{slowdown:.2f}", *times, fairness, lost]


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


def _report(outcome: Mapping[str, Any], shown: str, frames: Mapping[str, pandas.DataFrame]) -> str:
    """Return the report; `shown` is the policy whose jobs are shown by class."""
    roles = _roles_of(outcome)
    page = rendered_page(
        "learned.md.jinja",
        **outcome,
        shown=shown,
        ratios={
            name: outcome["test"][name][LONGEST] / max(outcome["test"][REFERENCE][LONGEST], 1.0)
            for name in outcome["differences"]
        },
        headings=HEADINGS,
        front_rows=_figure_rows({name: outcome["past"][name] for name in outcome["front"]}, roles),
        test_rows=_figure_rows(outcome["test"], roles),
        utilisation_rows=[(f"`{name}`", f"{value:.4f}") for name, value in outcome["utilisation"].items()],
        class_tables="\n\n".join(str(_class_table(frames[by], by)) for by in GROUPS),
        table=Table,
        figure_rows=_figure_rows,
        share_rows=[
            (f"{float(share):.0%}".replace("%", " %"), *figures_cells(each))
            for share, each in outcome["sensitivity"]["users"].items()
        ],
        difference_rows=_difference_rows,
    )
    return page + "\n"


def lines_of(outcome: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables for the terminal: the front of the past, and the policies that were tested."""
    roles = _roles_of(outcome)
    for title, part, names in (
        ("front of the past", "past", outcome["front"]),
        ("last part, not used for the choice", "test", outcome["test"]),
    ):
        yield f"{title}:"
        rows = [[name, *figures_cells(outcome[part][name]), roles.get(name, "")] for name in names]
        yield plain_table([*HEADINGS, "role"], rows)


def _roles_of(outcome: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of each policy of the study that has one."""
    return {
        **dict.fromkeys(outcome["front"], "front of the past"),
        REFERENCE: "reference",
        outcome["rival"]: "best plain rule on the past",
        **dict.fromkeys(outcome["beside"], "beside"),
        **({outcome["with_tests"]: "chosen, with tests"} if outcome["with_tests"] else {}),
        outcome["policy"]: "chosen, without tests",
    }


def _class_table(frame: pandas.DataFrame, by: str) -> Table:
    """Return the table of one criterion."""
    headings = (by, "jobs", "wait [h]", "baseline [h]", "slowdown", "baseline", "longest [d]", "baseline [d]")
    hours = [frame[f"{who}_wait"] / 3600 for who in WHO]
    slowdowns = [frame[f"{who}_slowdown"] for who in WHO]
    days = [frame[f"{who}_longest_wait"] / 86_400 for who in WHO]
    columns = [frame[by].astype(str), frame["jobs"].astype(str)]
    columns += [column.map("{:.2f}".format) for column in (*hours, *slowdowns, *days)]
    return Table(headings, list(zip(*columns, strict=True)))


def _model_card(periods: Periods, result: Result, outcome: Mapping[str, Any]) -> str:
    """Return the model card."""
    card = rendered_page(
        "model_card.md.jinja",
        **outcome,
        machine=result.machine,
        hash=result.workload.hash,
        week=(periods.test - periods.past) // WEEK,
        tried=len(outcome["past"]),
    )
    return card + "\n"


def _figures_table(found: Mapping[str, Figures]) -> str:
    """Return the metrics of policies as CSV."""
    columns = (*REPORTED, FAIRNESS, LOST)
    lines = [",".join(("policy", *columns))]
    for policy, figures in found.items():
        lines.append(",".join([f'"{policy}"', *(repr(figures.get(name, "")).strip("'") for name in columns)]))
    return "\n".join(lines) + "\n"
