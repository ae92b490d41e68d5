"""The report of a sweep: means, differences and ranks by hand, pictures without warnings, the page, odd sweeps."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.reports.sweep.pictures import draw_metric
from hpcsimkit.reports.sweep.plots import plot_intervals, plot_means, plot_ranks
from hpcsimkit.reports.sweep.report import write_sweep_report
from hpcsimkit.reports.sweep.summaries import differences, mean_ratios, means, ranks, ratios
from hpcsimkit.reports.sweep.table import SweepTable
from hpcsimkit.reports.sweep.texts import headline, rank_note, tables_of
from hpcsimkit.results.statistics import Mean, Ranking, compared, mean_of

POLICIES = ["fcfs", "fcfs+easy", "sjf+easy"]
WAIT = "mean_wait_time"
Axes = dict[str, Sequence[Any]]


def cells_of(axes: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """All combinations of some axes, with a wait of 100 s a seed and load, 10 s less for each policy after the first."""
    rows = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    for row in rows:
        place = list(axes["policy"]).index(row["policy"])
        row[WAIT] = 100.0 * (1 + row.get("seed", 0)) * row.get("load_factor", 1) - 10 * place
    return pd.DataFrame(rows).assign(status="done", reason="", utilisation=0.5)


def table_of(axes: Mapping[str, Sequence[Any]], *replicates: str, **options: Any) -> SweepTable:
    return SweepTable.of(cells_of(axes), axes, replicates, **options)


def written(folder: Path, cells: pd.DataFrame, axes: Mapping[str, Sequence[Any]], **about: Any) -> Path:
    """The folder of a finished sweep."""
    folder.mkdir()
    cells.to_parquet(folder / "cells.parquet", index=False)
    (folder / "sweep.json").write_text(json.dumps({"axes": axes, **about}))
    return folder


SEEDS: Axes = {"policy": POLICIES, "seed": [0, 1, 2, 3]}
LOADS: Axes = {**SEEDS, "load_factor": [0.5, 1.5]}

# --- numbers -------------------------------------------------------------------------------------------


def test_means_and_intervals_by_hand() -> None:
    found = means(table_of(SEEDS, "seed"), WAIT).set_index("policy")
    expected = mean_of(np.array([100.0, 200, 300, 400]))
    assert list(found.loc["fcfs", ["mean", "low", "high"]]) == [250, expected.low, expected.high]
    assert found.loc["sjf+easy", "mean"] == 230 and (found["replicates"] == 4).all()


def test_statistics_count_replicates_not_cells() -> None:
    """A load of 0.5 and one of 1.5 have the mean of a load of 1; the interval is that of four values, not eight."""
    alone, both = table_of(SEEDS, "seed"), table_of(LOADS, "seed")
    pd.testing.assert_frame_equal(means(alone, WAIT), means(both, WAIT))
    pd.testing.assert_frame_equal(differences(alone, WAIT), differences(both, WAIT))
    by = means(both, WAIT, ("load_factor",))
    assert by["mean"].tolist() == [125, 115, 105, 375, 365, 355]


def test_periods_belong_to_one_log_each() -> None:
    axes: Axes = {"policy": ["a", "b"], "log": ["x", "y"], "period": ["x1", "x2", "y1"]}
    cells = cells_of(axes).query("period.str[0] == log")
    table = SweepTable.of(cells, axes, ["period"])
    assert means(table, WAIT)["replicates"].tolist() == [3, 3]
    assert means(table, WAIT, ("log",))["replicates"].tolist() == [2, 2, 1, 1]


def test_differences_are_paired() -> None:
    rng = np.random.default_rng(1)
    cells = cells_of({"policy": ["a", "b", "c"], "seed": range(12)})
    cells[WAIT] += rng.normal(0, 5, len(cells))
    table = SweepTable.of(cells, {"policy": ["a", "b", "c"], "seed": list(range(12))}, ["seed"], baseline="b")
    found = differences(table, WAIT).set_index("policy")
    wide = cells.pivot(index="seed", columns="policy", values=WAIT)
    for name in "ac":
        gap = wide[name] - wide["b"]
        assert found.loc[name, "difference"] == pytest.approx(gap.mean())
        assert list(found.loc[name, ["wins", "ties", "losses"]]) == [(gap < 0).sum(), 0, (gap > 0).sum()]
    expected = compared(wide["c"].to_numpy(), {"b": wide["b"].to_numpy()})["b"]
    assert found.loc["c", "t_test"] == pytest.approx(expected.t_test)
    assert (found["low"]["c"], found["high"]["c"]) == pytest.approx(
        (expected.difference.low, expected.difference.high)
    )
    assert sorted(found["t_test_holm"] / found["t_test"])[-1] == pytest.approx(2)


def test_a_replicate_with_a_failed_cell_is_left_out_where_it_is_needed() -> None:
    cells = cells_of(LOADS)
    failed = (cells["policy"] == "fcfs+easy") & (cells["seed"] == 3) & (cells["load_factor"] == 1.5)
    cells.loc[failed, ["status", "reason"]] = "failed", "out of time"
    table = SweepTable.of(cells, LOADS, ["seed"])
    found = means(table, WAIT).set_index("policy")
    assert found["mean"].tolist() == [250, 190, 230], "a mean of other loads would be none of the loads"
    assert found["left_out"].tolist() == [0, 1, 0]
    paired = differences(table, WAIT).set_index("policy")
    assert paired["difference"].tolist() == pytest.approx([-10, -20])
    assert paired["left_out"].tolist() == [1, 0]
    assert means(table, WAIT, ("load_factor",))["left_out"].sum() == 1
    assert table.failed["reason"].tolist() == ["out of time"]
    ranked = ranks(table, WAIT)
    assert ranked is not None and ranked.replicates == 3
    assert "Left out: 1 replicate with" in rank_note(ranked, table)


@pytest.mark.parametrize("failing", ["sjf+easy", "fcfs", "*"])
def test_policies_that_fail_everywhere(failing: str, tmp_path: Path) -> None:
    """Two policies of which one has no value at all; then none has any."""
    axes: Axes = {"policy": ["fcfs", "sjf+easy"], "seed": [0, 1], "load_factor": [0.5, 1.5]}
    cells = cells_of(axes)
    failed = cells["policy"].isin([failing] if failing != "*" else axes["policy"])
    cells.loc[failed, ["status", "reason"]] = "failed", "no luck"
    page = write_sweep_report(written(tmp_path / "out", cells, axes, replicates=["seed"]))[-1].read_text()
    assert "no luck" in page
    assert ("in no replicate have the baseline, fcfs, and another policy" in page) is (failing != "*")
    table = SweepTable.read(tmp_path / "out")
    names = [each.name for metric in table.metrics for each in tables_of(table, metric)]
    assert not [name for name in names if "differences" in name]
    assert bool(headline(table)) is (failing != "*")


def test_differences_of_one_setting_alone() -> None:
    """A policy that fails at one load has no value over all loads, and still one at the others."""
    cells = cells_of(LOADS)
    failed = (cells["policy"] != "fcfs") & (cells["load_factor"] == 1.5)
    cells.loc[failed, ["status", "reason"]] = "failed", "out of time"
    names = [each.name for each in tables_of(SweepTable.of(cells, LOADS, ["seed"]), WAIT)]
    assert f"{WAIT}_differences_by_setting" in names and f"{WAIT}_differences" not in names


def test_ranks_know_the_better_direction() -> None:
    table = table_of(SEEDS, "seed")
    found = ranks(table, WAIT)
    assert found is not None and list(found.ranks.items()) == [
        ("sjf+easy", 1),
        ("fcfs+easy", 2),
        ("fcfs", 3),
    ]
    cells = cells_of(SEEDS).assign(utilisation=lambda frame: frame[WAIT] / 1000)
    higher = ranks(SweepTable.of(cells, SEEDS, ["seed"]), "utilisation")
    assert higher is not None and next(iter(higher.ranks)) == "fcfs"


def test_a_policy_without_values_does_not_cost_the_others_theirs() -> None:
    cells = cells_of({**SEEDS, "policy": [*POLICIES, "broken"]})
    cells.loc[cells["policy"] == "broken", "status"] = "failed"
    found = ranks(SweepTable.of(cells, {**SEEDS, "policy": [*POLICIES, "broken"]}, ["seed"]), WAIT)
    assert found is not None and (set(found.ranks), found.replicates) == (set(POLICIES), 4)


def test_headline() -> None:
    table = table_of({"policy": POLICIES, "seed": [0, 0.5]}, "seed", metrics=[WAIT, "utilisation"])
    assert headline(table).splitlines() == [
        "policy    mean wait time [s]      utilisation",
        "fcfs        125 (100 to 150) 0.5 (0.5 to 0.5)",
        "fcfs+easy    115 (90 to 140) 0.5 (0.5 to 0.5)",
        "sjf+easy     105 (80 to 130) 0.5 (0.5 to 0.5)",
    ]


# --- copies --------------------------------------------------------------------------------------------


def hashed(cells: pd.DataFrame, *without: str) -> pd.DataFrame:
    """Cells with hashes: the value of the metric is the schedule, but for policies whose seed has no effect."""
    changed = cells.copy()
    for policy in without:
        own = changed["policy"] == policy
        changed.loc[own, WAIT] = changed.loc[own].groupby([n for n in ("load_factor", "period") if n in cells])[
            WAIT
        ].transform("first") if {"load_factor", "period"} & {*cells} else changed.loc[own, WAIT].iloc[0]  # fmt: skip
    return changed.assign(workload_sha256="jobs", schedule_sha256=changed[WAIT].map("{:.3f}".format))


def test_copies_count_once() -> None:
    """Twelve seeds of a log without effect are one replicate, with loads as well as without."""
    for axes in ({**SEEDS, "seed": range(12)}, {**LOADS, "seed": range(12)}):
        table = SweepTable.of(hashed(cells_of(axes), *POLICIES), axes, ["seed"])
        one = {**axes, "seed": [0]}
        alone = SweepTable.of(cells_of(one), one, ["seed"])
        assert table.repetitions == 1 and len(table.copies) == len(table.cells) * 11 / 12
        for by in ((), table.settings):
            pd.testing.assert_frame_equal(means(table, WAIT, by), means(alone, WAIT, by))
            pd.testing.assert_frame_equal(differences(table, WAIT, by), differences(alone, WAIT, by))
        assert ranks(table, WAIT) is None
        assert headline(table).splitlines()[1].split()[:2] == headline(alone).splitlines()[1].split()[:2]
        assert not [each for each in draw_metric(table, WAIT) if each.name.endswith(("differences", "ranks"))]


def test_equal_starts_of_other_jobs_are_no_copies() -> None:
    cells = cells_of(SEEDS).assign(schedule_sha256="all start at once", workload_sha256=range(12))
    assert SweepTable.of(cells, SEEDS, ["seed"]).repetitions == 4
    assert SweepTable.of(cells.drop(columns="workload_sha256"), SEEDS, ["seed"]).repetitions == 1


def test_a_policy_that_draws_among_others() -> None:
    """Alone it has twelve replicates, beside a policy that has one schedule in each window as many as windows."""
    axes: Axes = {"policy": ["fcfs", "random"], "seed": range(3), "period": ["a", "b", "c", "d"]}
    cells = cells_of(axes)
    cells[WAIT] += 1000 * cells["period"].map("abcd".index)
    cells = hashed(cells, "fcfs")
    table = SweepTable.of(cells, axes, ["seed", "period"])
    assert means(table, WAIT).set_index("policy")["replicates"].to_dict() == {"fcfs": 4, "random": 12}
    (row,) = differences(table, WAIT).to_dict("records")
    assert row["replicates"] == 4
    assert row["difference"] == (90 + 190 + 290) / 3 - 100, "in each window"
    once = cells[(cells["policy"] == "random") | (cells["seed"] == 0)].copy()
    once["seed"] = once["seed"].where(once["policy"] == "random")  # planned once, without a seed
    planned = SweepTable.of(once, axes, ["seed", "period"], without_seed=["fcfs"])
    pd.testing.assert_frame_equal(differences(planned, WAIT), differences(table, WAIT))
    pd.testing.assert_frame_equal(means(planned, WAIT), means(table, WAIT))
    assert len(planned.cells) == 4 + 12 and planned.copies.empty


def test_a_failed_cell_is_no_copy() -> None:
    cells = hashed(cells_of(SEEDS), *POLICIES)
    failed = cells["seed"] == 1
    cells.loc[failed, ["status", "reason", "schedule_sha256"]] = "failed", "no luck", None
    found = means(SweepTable.of(cells, SEEDS, ["seed"]), WAIT)
    assert found["replicates"].tolist() == [1, 1, 1] and found["left_out"].tolist() == [1, 1, 1]


def test_all_outputs_say_one_replicate(tmp_path: Path) -> None:
    place = written(
        tmp_path / "out", hashed(cells_of(SEEDS), *POLICIES), SEEDS, replicates=["seed"], metrics=[WAIT]
    )
    page = write_sweep_report(place)[-1].read_text()
    remark = "copies: 9 cells of 12 repeat the schedule of another one and do not count"
    assert remark in page and "One replicate: no axis of this sweep" in page
    assert page.count("<td>one replicate</td>") == 4, "both p-values of two policies"
    latex = (place / "tables" / f"{WAIT}_differences.tex").read_text()
    assert r"fcfs+easy & -10 & -10.0 \% & one replicate & one replicate \\" in latex
    assert rf"\footnotesize {remark}" in latex and "*" not in latex
    table = pd.read_csv(place / "tables" / f"{WAIT}_differences.csv")
    assert table["replicates"].tolist() == [1, 1] and table["wilcoxon_holm"].isna().all()
    assert table["remarks"].str.startswith(remark).all()
    assert pd.read_csv(place / "tables" / "means.csv")["low"].isna().all()


# --- ratios --------------------------------------------------------------------------------------------


def logs_of(waits: Mapping[str, Sequence[float]]) -> SweepTable:
    """Waits of policies on logs."""
    rows = [
        {"policy": policy, "log": f"log {place}", WAIT: wait}
        for policy, values in waits.items()
        for place, wait in enumerate(values)
    ]
    axes = {name: list(dict.fromkeys(row[name] for row in rows)) for name in ("policy", "log")}
    return SweepTable.of(pd.DataFrame(rows), axes, metrics=[WAIT])


def test_logs_are_compared_by_ratios() -> None:
    """An hour on one machine and a second on another count alike: 2 and 1/8 have the geometric mean 1/2."""
    table = logs_of({"a": [3600, 8], "b": [7200, 1], "c": [3600, 16]})
    found = ratios(table, WAIT)
    assert found["ratio"].tolist() == [1, 2, 1, 1, 1 / 8, 2]
    assert found["rank"].tolist() == [1.5, 3, 1.5, 2, 1, 3]
    summary = mean_ratios(table, WAIT).set_index("policy")
    assert summary["geometric_mean"].tolist() == pytest.approx([1, 0.5, 2**0.5])
    assert summary["rank"].tolist() == [1.75, 2, 2.25]
    assert headline(table).splitlines() == [
        "policy mean wait time, ratio (rank)",
        "a                          1 (1.75)",
        "b                        0.5 (2.00)",
        "c                      1.414 (2.25)",
        "Ratios to a under each of 2 values of log. Geometric means over them, and average ranks in brackets.",
    ]
    names = [each.name for each in tables_of(table, WAIT)]
    assert names == [f"{WAIT}_ratios", f"{WAIT}_differences_by_setting", f"{WAIT}_by_log", f"{WAIT}_ranks"]


def test_a_ratio_to_zero_is_undefined_and_counted() -> None:
    table = logs_of({"a": [0, 4, 2], "b": [3, 2, 1], "c": [0, 0, 2]})
    found = ratios(table, WAIT).set_index(["log", "policy"])
    assert found.loc["log 0", "undefined"].all() and found.loc["log 0", "ratio"].isna().all()
    summary = mean_ratios(table, WAIT).set_index("policy")
    assert summary["geometric_mean"].tolist() == [1, 0.5, 0], "a ratio of 0 is one"
    assert summary[["conditions", "undefined", "left_out"]].drop_duplicates().values.tolist() == [[2, 1, 0]]
    lines = headline(table).splitlines()
    assert lines[2].endswith(" 0.5 of 2 in 3 (2.00)"), "ranks count all logs: 3, 2 and 1"
    assert lines[-1].endswith(
        "Undefined, and left out of the means, where a has 0: 1 for the mean wait time."
    )
    shown = next(tables_of(table, WAIT)).shown
    assert shown["ratio"].tolist()[:3] == ["undefined"] * 3
    nothing = logs_of({"a": [0, 0], "b": [1, 2]})
    assert headline(nothing).splitlines()[2].split()[1:] == ["undefined", "(2.00)"]


def test_a_log_that_failed_is_left_out() -> None:
    table = logs_of({"a": [4, 4], "b": [2, np.nan]})
    summary = mean_ratios(table, WAIT).set_index("policy")
    assert summary.loc["b", ["geometric_mean", "left_out"]].tolist() == [0.5, 1]
    assert headline(table).splitlines()[2].endswith("0.5 of 1 in 2 (1.00)")


def test_loads_are_conditions_and_parameters_of_policies_are_none() -> None:
    axes: Axes = {"policy": ["a", "b"], "seed": [0, 1], "load_factor": [0.5, 1.5], "policy.window": [1, 2]}
    table = table_of(axes, "seed", metrics=[WAIT])
    assert table.conditions == ("load_factor",)
    assert ratios(table, WAIT)["ratio"].tolist() == [1, 65 / 75, 1, 215 / 225]
    alone: Axes = {"policy": ["a", "b"], "seed": [0, 1], "policy.window": [1, 2]}
    assert "interval" not in headline(table_of(alone, "seed", metrics=[WAIT])) and "ratio" not in headline(
        table_of(alone, "seed", metrics=[WAIT])
    )


def test_ranks_of_several_logs_are_those_of_their_windows() -> None:
    axes: Axes = {"policy": POLICIES, "log": ["x", "y"], "period": ["day 1", "day 5"]}
    cells = cells_of(axes)
    cells.loc[cells["log"] == "y", WAIT] *= 1000
    found = ranks(SweepTable.of(cells, axes, ["period"]), WAIT)
    assert found is not None and found.replicates == 4, "windows of the same name are of different logs"


# --- reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"axes": SEEDS, "replicates": ["day"]}, "'day' is no column"),
        ({"axes": SEEDS, "replicates": ["status"]}, "'status' is no column of cells.parquet, or no axis"),
        ({"axes": {**SEEDS, "day": [1]}}, "'day' is no column"),
        ({"axes": SEEDS, "metrics": ["median"]}, "'median' is no column"),
        ({"axes": SEEDS, "metrics": ["status"]}, "not the table of a sweep"),
        ({"axes": SEEDS, "baseline": "saf"}, "the baseline 'saf' is not among fcfs, fcfs"),
        ({}, "not the table of a sweep"),
        ([], "not the table of a sweep"),
    ],
)
def test_tables_that_do_not_fit(about: Any, message: str, tmp_path: Path) -> None:
    cells_of(SEEDS).to_csv(tmp_path / "cells.csv", index=False)
    (tmp_path / "sweep.json").write_text(json.dumps(about))
    with pytest.raises(UsageError, match=message):
        SweepTable.read(tmp_path)


def test_a_folder_without_cells(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"found no cells\.parquet"):
        SweepTable.read(tmp_path)


def test_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    place = written(tmp_path / "sweep", cells_of(LOADS), LOADS, replicates=["seed"])
    first = headline(SweepTable.read(place))
    cells_of(LOADS).to_csv(place / "cells.csv", index=False)
    (place / "cells.parquet").unlink()
    assert headline(SweepTable.read(place)) == first


def test_values_of_an_axis_keep_their_order() -> None:
    table = table_of(
        {"policy": ["b", "a"], "log": ["z", "y"], "load_factor": [1, 0.8], "machines": ["10", "9"]}
    )
    assert table.axes["log"] == ["z", "y"] and table.axes["machines"] == ["10", "9"]
    assert table.axes["load_factor"] == [0.8, 1.0], "numbers ascend"
    assert table.numeric == ("load_factor",) and table.settings == ("log", "load_factor", "machines")
    assert means(table, WAIT, ("log",))["log"].tolist() == ["z", "z", "y", "y"]


@pytest.mark.parametrize("named", [False, True])
def test_a_sweep_without_policies(named: bool, tmp_path: Path) -> None:
    """Trainings as cells: the metrics are any columns."""
    axes: Axes = {"learning_rate": [0.1, 0.001], "seed": [0, 1, 2]}
    cells = cells_of({**axes, "policy": ["ppo"]}).assign(episode_return=[1.0, 2, 3, 4, 5, 6])
    if not named:
        del cells["policy"]
    place = written(tmp_path / "sweep", cells, axes, replicates=["seed"], metrics=["episode_return"])
    page = write_sweep_report(place)[-1].read_text(encoding="utf-8")
    found = means(SweepTable.read(place), "episode_return", ("learning_rate",))
    assert found["mean"].tolist() == [5, 2] and set(found["policy"]) == {"ppo" if named else "all cells"}
    assert "episode return along learning_rate".capitalize() in page and "differences" not in page


# --- pictures ------------------------------------------------------------------------------------------

MARKUP = "mine.py:<b>&_$x$%\\Smallest+easy"
SHAPES: dict[str, tuple[dict[str, Sequence[Any]], list[str]]] = {
    "one cell": ({"policy": ["fcfs"]}, []),
    "policies only": ({"policy": POLICIES}, []),
    "no replicates": ({"policy": POLICIES, "load_factor": [0.5, 1, 2]}, []),
    "one policy": ({"policy": ["fcfs"], "seed": [0, 1, 2], "load_factor": [0.5, 1]}, ["seed"]),
    "seeds": (SEEDS, ["seed"]),
    "decades": ({**SEEDS, "load_factor": [0.01, 1, 100]}, ["seed"]),
    "words": ({**SEEDS, "log": ["x" * 90, "<i>", "c"]}, ["seed"]),
    "many panels": (
        {**SEEDS, "log": list("abcdefg"), "load_factor": [1, 2], "policy.window": [1, 2, 3]},
        ["seed"],
    ),
    "markup": ({"policy": ["fcfs", MARKUP, "x" * 70], "seed": [0, 1, 2]}, ["seed"]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("paper", [False, True])
def test_pictures_of_all_shapes(shape: str, paper: bool) -> None:
    axes, replicates = SHAPES[shape]
    pictures = {p.name: p for p in draw_metric(table_of(axes, *replicates), WAIT, paper=paper)}
    settings = [axis for axis in ("load_factor", "policy.window") if axis in axes]
    names = {f"{WAIT}_along_{axis.replace('.', '_')}" for axis in settings} or {f"{WAIT}_means"}
    if replicates and len(axes["policy"]) > 1:
        names.add(f"{WAIT}_ranks")
    if replicates and len(axes["policy"]) > 1 and "log" not in axes:
        names.add(f"{WAIT}_differences")
    assert set(pictures) == (names if shape != "one cell" else set())
    for picture in pictures.values():
        width = picture.figure.get_size_inches()[0]
        panels = len(picture.figure.axes)
        assert width == ((3.5 if panels == 1 else 7.16) if paper else 10) and panels <= 12
    if shape == "many panels":
        assert "The first 12 of 21 combinations" in pictures[f"{WAIT}_along_load_factor"].caption


def test_axes_of_decades_are_logarithmic() -> None:
    axes, replicates = SHAPES["decades"]
    picture = next(draw_metric(table_of(axes, *replicates), "utilisation"))
    assert (picture.figure.axes[0].get_xscale(), picture.figure.axes[0].get_yscale()) == ("log", "linear")


def test_lines_are_what_they_show() -> None:
    lines = {
        "a": [Mean(5, 4, 6), Mean(9, 8, 11)],
        "b": [Mean(1, np.nan, np.nan), Mean(np.nan, np.nan, np.nan)],
    }
    ax = plot_means(lines, [0.8, 1.0])
    assert ax.lines[0].get_xydata().tolist() == [[0.8, 5], [1, 9]]  # type: ignore[union-attr]
    bottom, top = ax.get_ylim()
    assert bottom < 1 and top > 11
    ax = plot_intervals({"a": Mean(5, 4, 6)})
    assert ax.get_xlim()[0] < 4 < 6 < ax.get_xlim()[1]
    far_apart = {"a": Mean(5, 4, 6), "b": Mean(5000, 4000, 6000)}
    assert plot_intervals(far_apart).get_xscale() == "log"
    ax = plot_intervals(far_apart, zero=True)
    assert ax.get_xscale() == "linear" and ax.get_xlim()[0] < 0, "differences are not ratios"


def test_names_of_ranks_do_not_collide() -> None:
    """Even where ranks are equal: rows differ."""
    ax = plot_ranks(Ranking(dict.fromkeys("abcdef", 3.5), 5, 1.0, 3.4))
    assert len(set(ax.get_yticks())) == 6
    assert sum(line.get_linewidth() > 3 for line in ax.lines) == 1, "one group of all"


# --- the report ----------------------------------------------------------------------------------------


def test_report_stands_alone_and_is_escaped(tmp_path: Path) -> None:
    axes: Axes = {"policy": ["fcfs", MARKUP, "sjf"], "seed": [0, 1, 2], "load_factor": [1, 2]}
    cells = cells_of(axes)
    cells.loc[4, ["status", "reason"]] = "failed", "<script>alert(1)</script>"
    cells["user_fairness"] = [np.nan, *[0.5] * (len(cells) - 1)]
    metrics = [WAIT, "user_fairness", "makespan"]
    place = written(
        tmp_path / "sweep", cells.assign(makespan=np.nan), axes, replicates=["seed"], metrics=metrics
    )
    files = write_sweep_report(place)
    assert all(file.is_file() for file in files) and files[-1] == place / "report.html"
    assert {file.suffix for file in files} == {".html", ".png", ".svg", ".pdf", ".csv", ".tex"}
    text = files[-1].read_text(encoding="utf-8")
    assert not re.search(r"https?:|src=|@import|<script|<link|url\((?!#)", text)
    assert "&lt;script&gt;alert(1)" in text and "mine.py:&lt;b&gt;&amp;_$x$%" in text
    assert "Undefined in 1 cell of 18." in text and "makespan" not in text
    assert "Wilcoxon" in text and "a p-value below 0.25" in text
    latex = (place / "tables" / f"{WAIT}_differences.tex").read_text(encoding="utf-8")
    assert r"<b>\&\_\$x\$\%" in latex and r"\toprule" in latex
    assert pd.read_csv(place / "tables" / "ratios.csv")["metric"].unique().tolist() == [WAIT, "user_fairness"]


def test_report_says_why_there_are_no_differences(tmp_path: Path) -> None:
    cells = cells_of(SEEDS)
    cells.loc[cells["policy"] == "fcfs", "status"] = "failed"
    place = written(tmp_path / "sweep", cells, SEEDS, replicates=["seed"], metrics=[WAIT])
    text = write_sweep_report(place)[-1].read_text(encoding="utf-8")
    assert (
        "in no replicate have the baseline, fcfs, and another policy all" in text
        and "Paired differences" not in text
    )


def test_report_says_why_there_are_no_intervals(tmp_path: Path) -> None:
    axes: Axes = {"policy": POLICIES, "load_factor": [0.5, 1]}
    page = write_sweep_report(written(tmp_path / "sweep", cells_of(axes), axes, metrics=[WAIT]))[-1]
    text = page.read_text(encoding="utf-8")
    assert "One replicate: no axis" in text and "interval</th>" not in text and "Holm" not in text


@pytest.mark.slow
def test_thousands_of_rows_are_cut_on_the_page_only() -> None:
    axes: Axes = {
        "policy": POLICIES[:2],
        "seed": [0, 1],
        "load_factor": range(1, 21),
        "policy.window": range(25),
    }
    table = table_of(axes, "seed")
    assert len(table.cells) == 2000
    shown = {each.name: each for each in tables_of(table, WAIT)}
    assert len(shown[f"{WAIT}_by_setting"].data) == 1000
    assert len(next(draw_metric(table, WAIT)).figure.axes) == 12
