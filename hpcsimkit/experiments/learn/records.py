"""The tables and texts of a study: weekly differences, classes of jobs, model card and report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.learn.goal import FAIRNESS, LONGEST, REFERENCE, REPORTED, figures_of
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.experiments.learn.sensitivity import TITLES
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import write_bytes
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

    Parameters
    ----------
    place : Path
        Path of the results folder.
    periods : Periods
        Parts of the log.
    result_of : callable
        Function that returns the schedule of a policy on the whole log.
    changed : mapping of str to Schedules
        Schedules under changed conditions, by condition.
    outcome : dict
        Outcome of the study.
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

    Parameters
    ----------
    policy, rival : Result
        Schedules of the same jobs.
    jobs : array of bool, shape (jobs,)
        Jobs that count; they are resampled by week of submission.
    metric : {"mean_bounded_slowdown", "mean_wait_time"}
        Metric to compare.
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


def markdown(headings: Row, rows: Iterable[Row]) -> str:
    """Return a table in Markdown, numbers to the right.

    >>> print(markdown(("policy", "wait"), [("fcfs", "3")]), end="")
    | policy | wait |
    |---|---:|
    | fcfs | 3 |
    """
    return f"{Table(headings, list(rows))}\n"


def figures_cells(figures: Mapping[str, float]) -> list[str]:
    """Return slowdown, mean wait [h], 95 % quantile [h], longest wait [d] and fairness as texts."""
    slowdown, wait, quantile, longest = (figures[name] for name in REPORTED)
    fairness = f"{figures[FAIRNESS]:.3f}" if FAIRNESS in figures else "-"
    times = [f"{wait / 3600:.3f}", f"{quantile / 3600:.2f}", f"{longest / 86_400:.2f}"]
    return [f"{slowdown:.2f}", *times, fairness]


HEADINGS = (
    "policy",
    "mean bounded slowdown",
    "mean wait [h]",
    "95 % of waits [h]",
    "longest wait [d]",
    "fairness",
)


def _test_table(outcome: Mapping[str, Any]) -> str:
    """Return the metrics of all policies on the last part as CSV."""
    lines = [",".join(("policy", *REPORTED, FAIRNESS))]
    for policy, figures in outcome["test"].items():
        fairness = repr(figures[FAIRNESS]) if FAIRNESS in figures else ""
        lines.append(",".join([f'"{policy}"', *(repr(figures[name]) for name in REPORTED), fairness]))
    return "\n".join(lines) + "\n"


def difference_text(difference: Mapping[str, float], unit: float = 1.0) -> str:
    """Return a difference with its interval, and a star if the interval excludes zero.

    >>> difference_text({"mean": -2.0, "low": -3.0, "high": -1.0})
    '-2.00 [-3.00, -1.00] *'
    """
    mean, low, high = (difference[name] / unit for name in ("mean", "low", "high"))
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]{' *' if low * high > 0 else ''}"


def _report(outcome: Mapping[str, Any], periods: Periods, frames: Mapping[str, pandas.DataFrame]) -> str:
    """Return the report."""
    policy, rival, limited = outcome["policy"], outcome["rival"], outcome["limited_rival"]
    ratio = outcome["test"][policy][LONGEST] / max(outcome["test"][REFERENCE][LONGEST], 1.0)
    guarded = ", with its guard" if outcome["guarded"] else ""
    roles = {
        outcome["refined"]: "learned, without its guard",
        policy: f"learned{guarded}"
        if outcome["learned"]
        else "chosen heuristic: no candidate was better on the past",
        rival: "best heuristic on the past",
        limited: "best heuristic on the past within the limit",
        outcome["clairvoyant"]: "reads run times",
    }
    roles |= dict.fromkeys(outcome["beside"], "beside")
    if outcome["perfect"]:
        roles[outcome["perfect"]["policy"]] = "learned with perfect predictions: reads run times"
    rows = [
        (f"`{name}`", *figures_cells(each), roles.get(name, "")) for name, each in outcome["test"].items()
    ]
    jobs = outcome["jobs"]
    chosen = (
        f"The policy `{policy}` was chosen on the first {jobs['learn']} + {jobs['choose']} jobs, and "
        f"simulated once on the last {jobs['test']}, the end of the whole log. Its longest wait there is "
        f"{ratio:.2f} times that of FCFS with EASY (limit {outcome['longest_wait']:g}).\n"
    )
    intervals = (
        "Chosen policy minus other, with 95 % intervals from a bootstrap of whole weeks; a star marks "
        "intervals that exclude zero.\n"
    )
    parts = [
        f"# A scheduler learned from {outcome['log']}\n",
        chosen,
        "## The last part\n",
        "Fairness is Jain's index of the users' mean bounded slowdowns: 1 if they are equal.\n",
        markdown((*HEADINGS, "role"), rows),
        "## Differences\n",
        intervals,
        _difference_table(outcome["differences"]),
        *_perfect(outcome),
        *_guard(outcome, periods),
        "## Utilisation\n",
        markdown(
            ("policy", "utilisation"),
            [(f"`{name}`", f"{value:.4f}") for name, value in outcome["utilisation"].items()],
        ),
        "## Sensitivity\n",
        "Jobs of the last part, when the whole log is simulated under changed conditions.\n",
        *_sensitivity(outcome["sensitivity"]),
        "## Who wins and who loses\n",
        f"The chosen policy and `{rival}`, by class of jobs; weekly means are in `weeks.csv`.\n",
    ]
    for by in GROUPS:
        parts.append(_class_table(frames[by], by))
    return "\n".join(parts)


def _difference_table(differences: Mapping[str, Any]) -> str:
    """Return the table of the differences from other policies."""
    slowdown, wait = COMPARED
    rows = [
        (f"`{other}`", difference_text(each[slowdown]), difference_text(each[wait], 3600))
        for other, each in differences.items()
    ]
    return markdown(("other", "mean bounded slowdown", "mean wait [h]"), rows)


def _perfect(outcome: Mapping[str, Any]) -> list[str]:
    """Return the section on perfect predictions, if they were asked for."""
    if not outcome["perfect"]:
        return []
    text = (
        "The same search and the same order with actual run times as predictions, which no scheduler knows, "
        "minus other: no better predictor can be expected to gain more.\n"
    )
    return ["## Perfect predictions\n", text, _difference_table(outcome["perfect"]["differences"])]


def _sensitivity(sensitivity: Mapping[str, Any]) -> Iterator[str]:
    """Yield the title and the tables of each condition."""
    for condition, found in sensitivity.items():
        yield f"### {TITLES[condition]}\n"
        yield markdown(
            HEADINGS, [(f"`{name}`", *figures_cells(each)) for name, each in found["figures"].items()]
        )
        yield "Chosen policy minus other:\n"
        yield _difference_table(found["differences"])


def _guard(outcome: Mapping[str, Any], periods: Periods) -> list[str]:
    """Return the section on the changes of the guard, if there is one."""
    if not outcome["guarded"]:
        return []
    begin = (periods.test - periods.learn) // WEEK
    text = (
        "What was followed from which week of the log on, counted from 0; the last part begins with week "
        f"{begin}.\n"
    )
    changes = [("0.0", "order"), *((f"{week:.1f}", which) for week, which in outcome["followed"])]
    return ["## The guard\n", text, markdown(("followed", "from week"), [row[::-1] for row in changes])]


def _class_table(frame: pandas.DataFrame, by: str) -> str:
    """Return the table of one criterion."""
    headings = (by, "jobs", "wait [h]", "rival's [h]", "slowdown", "rival's", "longest [d]", "rival's [d]")
    hours, days = (
        [frame[f"{who}_wait"] / 3600 for who in WHO],
        [frame[f"{who}_longest_wait"] / 86_400 for who in WHO],
    )
    slowdowns = [frame[f"{who}_slowdown"] for who in WHO]
    columns = [frame[by].astype(str), frame["jobs"].astype(str)]
    columns += [column.map("{:.2f}".format) for column in (*hours, *slowdowns, *days)]
    return markdown(headings, zip(*columns, strict=True))


def _limit(fairness: float | None) -> str:
    """Return the limit of the fairness in words."""
    return "no limit" if fairness is None else f"at least {fairness:g} times that of FCFS with EASY"


def _calibration(shares: Mapping[str, float]) -> str:
    """Return the share of jobs within predicted quantiles.

    >>> _calibration({"0.5": 0.613, "0.9": 0.875})
    'run times within the predicted quantile, on the second part: of 50 %, 61.3 %; of 90 %, 87.5 %'
    """
    found = (f"of {float(level):.0%}, {share:.1%}".replace("%", " %") for level, share in shares.items())
    return f"run times within the predicted quantile, on the second part: {'; '.join(found)}"


def _model_card(periods: Periods, result: Result, outcome: Mapping[str, Any]) -> str:
    """Return the model card."""
    first, second, third = (begin - periods.learn for begin in periods)
    weeks = [f"{begin // WEEK}" for begin in (first, second, third)]
    return f"""# Model card

| | |
|---|---|
| Policy | `{outcome["policy"]}` |
| Log | {outcome["log"]}, {result.machine}, hash of the jobs {result.workload.hash[:16]} |
| Parts | learned from week {weeks[0]}, chosen from week {weeks[1]}, tested from week {weeks[2]} on |
| Objective | {" and ".join(outcome["objective"]).replace("_", " ")}, relative to FCFS with EASY |
| Limit | longest wait at most {outcome["longest_wait"]:g} times that of FCFS with EASY |
| Fairness between users | {_limit(outcome["fairness"])} |
| Kept on the last part | {"yes" if outcome["keeps_limit"] else "no"} |
| Learned order | {"used" if outcome["learned"] else "not used: a heuristic was better before"} |
| Guard | {"falls back to the order after `fallback=` while it is better" if outcome["guarded"] else "none"} |
| Sees | submission, requested time, size, and run times of ended jobs by user, request and size |
| Calibration | {_calibration(outcome["calibration"])} |
| Does not see | the run time of a job before its end, the log's later jobs, names of logs |

Use it with `-p learned:FOLDER/policy.json`, where FOLDER is that of this card.

## Limits

- The parameters suit the load and the users of the log. Learn again when they change.
- With a bounded order, nobody is behind a job submitted more than `bound` seconds later. The wait itself
  depends on the load: the limit above was kept on the past, and is a goal for the future.
- Reservations go by requested times unless the name says `reservations=true`.
"""
