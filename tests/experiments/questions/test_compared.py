"""Comparisons and sweeps of objects keep their results, and draw and test them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import hpcsimkit as hk
from hpcsimkit.engine.engines import Processes
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.progress import show_tasks
from hpcsimkit.policies import EASY, SJF

WORKLOADS = [
    replace(hk.default_workload(np.random.default_rng(seed), jobs=60), name=f"jobs {seed}")
    for seed in range(4)
]
NAMES = ["fcfs", "fcfs+easy", "sjf+easy"]


@pytest.fixture(scope="module")
def compared() -> Any:
    return hk.compare(WORKLOADS, NAMES)


def test_all_results_are_kept(compared: Any) -> None:
    for jobs in WORKLOADS:
        for name in NAMES:
            expected = hk.Simulation(jobs, name).run()
            assert compared.result(name, jobs.name).hash == expected.hash
    assert list(compared.results) == NAMES
    assert compared.results["fcfs"].workload.name == "jobs 0"
    with pytest.raises(UsageError, match=r"no result of .'jobs 0', 'sjf', 0.; there are "):
        compared.result("sjf")


def test_only_the_first_results_are_kept_on_demand() -> None:
    compared = hk.compare(WORKLOADS[:2], NAMES[:2], keep_results=False)
    assert list(compared.results) == NAMES[:2]
    with pytest.raises(UsageError, match="no result of"):
        compared.result("fcfs", "jobs 1")


def test_statistics_count_workloads_as_repetitions(compared: Any) -> None:
    tests = compared.tests("mean_wait_time")
    wide = compared.table.pivot(index="workload", columns="policy", values="mean_wait_time")
    for row in tests.itertuples():
        assert row.difference == pytest.approx((wide[row.policy] - wide["fcfs"]).mean())
        assert row.replicates == len(WORKLOADS)
    assert list(compared.means()["policy"]) == NAMES
    assert set(compared.ranks().ranks) == set(NAMES)
    assert list(compared.summary()["policy"]) == NAMES


def test_copies_are_no_repetitions() -> None:
    """Seeds without effect give no test, in a comparison and in a sweep of objects."""
    compared = hk.compare(WORKLOADS[0], NAMES, seeds=range(5))
    assert (compared.tests()["replicates"] == 1).all()
    assert compared.tests()["t_test"].isna().all()
    swept = hk.Sweep.of(WORKLOADS[0], NAMES, {"seed": range(5)}).run()
    assert (swept.tests()["replicates"] == 1).all()
    assert any("copies" in remark for remark in swept.remarks())


def test_pictures_of_a_comparison(compared: Any) -> None:
    assert isinstance(compared.plot("wait"), Axes)
    assert len(compared.plot("gantt")) == len(NAMES)
    assert all(isinstance(ax, Axes) for ax in compared.plot())


def test_objects_stages_and_names_are_compared_alike() -> None:
    pipeline = hk.Pipeline(order=SJF(), backfiller=EASY())
    table = hk.compare(
        WORKLOADS[0], {"name": "sjf+easy", "object": pipeline, "stage": SJF(), "other": "sjf"}
    ).table
    hashes = table.set_index("policy")["schedule_sha256"]
    assert hashes["name"] == hashes["object"] != hashes["stage"] == hashes["other"]


def test_a_sweep_of_objects_is_the_runs_of_its_cells() -> None:
    policies = {"fcfs": "fcfs", "mine": SJF()}
    sweep = hk.Sweep.of(
        WORKLOADS[:2], policies, {"load_factor": [0.5, 2.0], "period": [60]}, metrics=["makespan"]
    )
    swept = sweep.run(engine=Processes(2))
    assert len(sweep) == len(swept.table) == 8
    for row in swept.table.itertuples():
        jobs = next(each for each in WORKLOADS if each.name == row.workload).scale_load(row.load_factor)
        expected = hk.Simulation(jobs, policies[row.policy], period=60).run()
        assert row.schedule_sha256 == expected.hash
        assert row.makespan == expected.makespan
    assert len(swept.plot()) >= 1
    assert isinstance(swept.plot("makespan")[0], Axes)


def test_a_sweep_of_settings_runs_without_a_folder(tmp_path: Any) -> None:
    sweep = hk.Sweep(jobs=50, policies=["fcfs", "sjf"], sweep={"seed": [0, 1, 2]})
    here, kept = sweep.run(), sweep.run(tmp_path / "kept")
    assert here.table["schedule_sha256"].tolist() == kept.table["schedule_sha256"].tolist()
    assert (here.tests()["replicates"] == 3).all()
    assert (tmp_path / "kept" / "report.html").is_file()


@pytest.mark.parametrize(
    ("axes", "options", "message"),
    [
        ({"colour": [1]}, {}, "no axis 'colour'"),
        ({"periods": [1]}, {}, "no axis 'periods'; nearest: period"),
        ({"period": []}, {}, "axis 'period' needs values"),
        ({"period": [60]}, {"period": 60}, "axis 'period' needs values, and no option of its name"),
    ],
)
def test_axes_that_are_none(axes: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hk.Sweep.of(WORKLOADS[0], NAMES, axes, **options)


def test_two_workloads_of_one_name() -> None:
    with pytest.raises(UsageError, match="two workloads have the name 'jobs 0'"):
        hk.Sweep.of([WORKLOADS[0]] * 2, NAMES)


def test_progress_is_shown_on_demand_only(capsys: pytest.CaptureFixture[str]) -> None:
    hk.compare(WORKLOADS[0], NAMES)
    assert capsys.readouterr() == ("", "")
    hk.compare(WORKLOADS[0], NAMES, progress=True)
    assert "180/180" in capsys.readouterr().err


def test_progress_counts_what_is_done_once(capsys: pytest.CaptureFixture[str]) -> None:
    with show_tasks({"a": 10, "b": 5}, progress=True) as tell:
        for done in (3, 3, 10, 0, 10):  # a task that begins again
            tell("a", done)
    assert "10/15" in capsys.readouterr().err.splitlines()[-1]
