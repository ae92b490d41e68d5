"""Metrics: numbers computed by hand, by brute force, and known for real logs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.breakdown import breakdown
from hpcsimkit.results.metrics import METRICS, measure, select
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.swf import read_swf


@pytest.fixture
def result() -> Result:
    """Five jobs on 4 nodes; the last one is rejected.

    ==  ======  =====  ===  =====  ====  ====  ========  ================
    id  submit  start  end  nodes  user  wait  response  bounded slowdown
    ==  ======  =====  ===  =====  ====  ====  ========  ================
    1        0      0   10      3     1     0        10  1
    2        2     10   30      4     2     8        28  1.4
    3        4      4    4      1     1     0         0  1
    4        5     30   31      1     2    25        26  2.6
    5        6      -    -      2     3
    ==  ======  =====  ===  =====  ====  ====  ========  ================
    """
    workload = Workload(
        {
            "submit_time": [0, 2, 4, 5, 6],
            "run_time": [10, 20, 0, 1, 3],
            "nodes": [3, 4, 1, 1, 2],
            "user": [1, 2, 1, 2, 3],
        },
        machine_size=4,
    )
    return Result(
        workload, "by hand", 4,
        submit_time=np.array([0, 2, 4, 5, 6]), start_time=np.array([0, 10, 4, 30, -1]),
        end_time=np.array([10, 30, 4, 31, -1]), mode=np.array([1, 2, 3, 1, 0], dtype=np.uint8),
        killed=np.array([False, True, False, False, True]),
    )  # fmt: skip


BY_HAND = {
    "jobs": 5,
    "restarts": 0,
    "lost_area_share": 0,
    "overhead_area_share": 0,
    "down_area_share": 0,
    "held_share": 0,
    "rejected": 1,
    "killed": 1,
    "mean_wait_time": 8.25,
    "median_wait_time": 4,
    "p95_wait_time": 8 + 0.85 * 17,
    "p99_wait_time": 8 + 0.97 * 17,
    "max_wait_time": 25,
    "mean_response_time": 16,
    "max_response_time": 28,
    "mean_slowdown": (1 + 1.4 + 1 + 26) / 4,
    "max_slowdown": 26,
    "mean_bounded_slowdown": 1.5,
    "median_bounded_slowdown": 1.2,
    "p95_bounded_slowdown": 1.4 + 0.85 * 1.2,
    "max_bounded_slowdown": 2.6,
    "mean_ntat": (1 + 28 / 20 + 1 + 26) / 4,
    "utilisation": 111 / 124,
    "makespan": 31,
    "loss_of_capacity": 5 / 124,  # from 5 to 10 job 4 would fit the one idle node
    "user_fairness": 0.9,  # users fare 1 and 2: (1 + 2)^2 / (2 (1 + 4))
    "ready_job_share": 0.5,
    "ready_area_share": 31 / 111,
    "reserved_job_share": 0.25,
    "reserved_area_share": 80 / 111,
    "backfilled_job_share": 0.25,
    "backfilled_area_share": 0,
    "tested_job_share": 0,
    "tested_area_share": 0,
}


ON_MACHINES = {
    "mean_locality_penalty", "locality_penalty_share", "cpus_utilisation", "gpus_utilisation",
    "memory_utilisation", "gpu_fragmentation", "snapshot_utilisation",
}  # fmt: skip
"""Not defined where nodes are only counted; tests/results/test_resource_metrics.py has them."""


@pytest.mark.parametrize("name", METRICS)
def test_by_hand(name: str, result: Result) -> None:
    expected = np.nan if name in ON_MACHINES else BY_HAND[name]
    assert measure(result, names=[name])[name] == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_table_says_what_it_means() -> None:
    assert list(METRICS) == list(evaluate_nothing())
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.unit in ("s", "jobs", "1")
        assert metric.direction in ("lower", "higher", "none")
        assert metric.formula
        assert not metric.summary[0].islower()
        assert not metric.summary.endswith(".")
    assert METRICS["mean_wait_time"].direction == "lower"
    assert METRICS["utilisation"].direction == "higher"
    assert METRICS["p95_bounded_slowdown"].formula == (
        "95th percentile_i (max(1, response_i / max(run_i, 10 s)))"
    )


def evaluate_nothing() -> dict[str, float]:
    empty = Workload({"submit_time": [], "run_time": [], "nodes": []}, machine_size=4)
    return measure(Simulation(empty, Pipeline()).run())


def test_nothing_to_measure_is_not_a_number() -> None:
    values = evaluate_nothing()
    counts = [values.pop(name) for name in ("jobs", "rejected", "killed", "restarts")]
    assert counts == [0, 0, 0, 0]
    assert np.isnan(list(values.values())).all()


def test_all_rejected(result: Result) -> None:
    never = np.full(5, -1)
    none = Result(result.workload, "p", 4, result.submit_time, never, never, result.mode * 0, result.killed)
    values = measure(none)
    assert (values["jobs"], values["rejected"], values["killed"], values["utilisation"]) == (5, 5, 0, 0)
    assert np.isnan(values["mean_wait_time"])


def test_makespan_begins_with_a_rejected_job(result: Result) -> None:
    start, end = result.start_time.copy(), result.end_time.copy()
    start[0] = end[0] = -1
    first_rejected = dataclasses.replace(result, start_time=start, end_time=end)
    assert measure(first_rejected)["makespan"] == first_rejected.makespan == 31


def test_fairness_with_numbers_that_stand_for_no_user(result: Result) -> None:
    """Whether users are counted from 0, with gaps or far apart, and whether some are unknown."""
    for users in ([1, 2, 1, 2, 3], [0, 4, 0, 4, -1], [10**12, 7, 10**12, 7, 0]):
        workload = dataclasses.replace(result.workload, columns={**result.workload.columns, "user": users})
        assert measure(dataclasses.replace(result, workload=workload))["user_fairness"] == 0.9


def test_fairness_without_users_is_not_a_number() -> None:
    workload = Workload({"submit_time": [0], "run_time": [5], "nodes": [1]}, machine_size=1)
    assert np.isnan(measure(Simulation(workload, Pipeline()).run())["user_fairness"])


# --- trimming --------------------------------------------------------------------------------------------


def test_warmup_and_cooldown(result: Result) -> None:
    values = measure(result, warmup=2, cooldown=1)  # jobs 2, 3, 4; time 2 to 5
    assert values["jobs"] == 3
    assert values["rejected"] == 0
    assert values["mean_wait_time"] == 11
    assert values["makespan"] == 29
    assert values["utilisation"] == 9 / 12
    assert values["loss_of_capacity"] == 0
    assert values["user_fairness"] == pytest.approx((1 + 2) ** 2 / (2 * (1 + 4)))
    assert values["ready_job_share"] == pytest.approx(1 / 3)


def test_without_cooldown_time_goes_on_to_the_last_end(result: Result) -> None:
    values = measure(result, warmup=2)  # jobs 2, 3, 4, 5; time 2 to 31
    assert values["jobs"] == 4
    assert values["utilisation"] == pytest.approx(105 / (4 * 29))
    assert values["loss_of_capacity"] == pytest.approx(5 / (4 * 29))
    late = measure(result, warmup=5.5)  # job 5; time 6 to 31
    assert (late["jobs"], late["rejected"]) == (1, 1)
    assert late["loss_of_capacity"] == pytest.approx(4 / (4 * 25))


def test_trimming_errors(result: Result) -> None:
    with pytest.raises(UsageError, match="warmup needs 0 s or more, found -1"):
        select(result, warmup=-1)
    with pytest.raises(UsageError, match="cooldown needs 0 s or more, found nan"):
        select(result, cooldown=float("nan"))
    with pytest.raises(UsageError, match="warmup 4 s and cooldown 3 s leave nothing of the 6 s"):
        select(result, warmup=4, cooldown=3)
    assert select(result, warmup=3, cooldown=3).jobs.sum() == 0


def test_unknown_metric_names_the_nearest(result: Result) -> None:
    with pytest.raises(UsageError, match=r"unknown metric 'mean_wait'; nearest: .*mean_wait_time"):
        measure(result, names=["mean_wait"])


def test_chosen_metrics_come_in_the_order_asked_for(result: Result) -> None:
    assert list(measure(result, names=["makespan", "jobs"])) == ["makespan", "jobs"]


# --- loss of capacity by brute force ---------------------------------------------------------------------


@st.composite
def results(draw: st.DrawFn) -> Result:
    job = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 6))
    gaps, run_time, nodes = np.array(draw(st.lists(job, min_size=1, max_size=20))).T
    workload = Workload({"submit_time": gaps.cumsum(), "run_time": run_time, "nodes": nodes}, machine_size=6)
    return Simulation(workload, draw(st.sampled_from([Pipeline(), Pipeline(backfiller=EASY())]))).run()


@given(results(), st.integers(0, 10), st.integers(0, 10))
def test_system_metrics_agree_with_counting_second_by_second(
    result: Result, warmup: int, cooldown: int
) -> None:
    try:
        selection = select(result, warmup=warmup, cooldown=cooldown)
    except UsageError:
        return
    nodes = result.workload.nodes
    lost = used = 0
    for now in range(selection.begin, selection.end):
        busy = nodes[(result.start_time <= now) & (now < result.end_time)].sum()
        waiting = nodes[(result.submit_time <= now) & (now < result.start_time)]
        used += busy
        lost += (6 - busy) if (waiting <= 6 - busy).any() else 0
    values = measure(result, warmup=warmup, cooldown=cooldown)
    whole = 6 * (selection.end - selection.begin)
    expected = [used / whole, lost / whole] if whole else [np.nan, np.nan]
    found = [values["utilisation"], values["loss_of_capacity"]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_200_000_jobs_are_measured() -> None:
    rng = np.random.default_rng(1)
    jobs = 200_000
    submit = np.sort(rng.integers(0, 10**7, jobs))
    run_time, nodes = rng.integers(0, 10_000, jobs), rng.integers(1, 100, jobs)
    start = submit + rng.integers(0, 100_000, jobs)
    workload = Workload({"submit_time": submit, "run_time": run_time, "nodes": nodes}, machine_size=240)
    mode, killed = np.ones(jobs, dtype=np.uint8), np.zeros(jobs, dtype=bool)
    result = Result(workload, "p", 240, submit, start, start + run_time, mode, killed)
    assert measure(result)["mean_wait_time"] == pytest.approx(float((start - submit).mean()))


# --- break-downs -----------------------------------------------------------------------------------------


def test_breakdown_by_size(result: Result) -> None:
    table = breakdown(result, "size")
    assert table.index.tolist() == ["1", "3-4"]
    assert table.jobs.tolist() == [2, 2]
    assert table.mean_wait_time.tolist() == [12.5, 4]
    assert table.max_wait_time.tolist() == [25, 8]
    assert table.mean_bounded_slowdown.tolist() == pytest.approx([1.8, 1.2])
    assert table.area_share.tolist() == pytest.approx([1 / 111, 110 / 111])


def test_size_classes_are_powers_of_two() -> None:
    sizes = [1, 2, 3, 4, 5, 8, 9, 1024, 1025]
    workload = Workload({"submit_time": [0] * 9, "run_time": [1] * 9, "nodes": sizes}, machine_size=4096)
    table = breakdown(Simulation(workload, Pipeline()).run(), "size")
    assert table.jobs.to_dict() == {
        "1": 1, "2": 1, "3-4": 2, "5-8": 2, "9-16": 1, "513-1024": 1, "1025-2048": 1
    }  # fmt: skip


def test_run_time_classes() -> None:
    runs = [0, 599, 600, 3599, 3600, 21599, 21600, 86399, 86400]
    workload = Workload({"submit_time": [0] * 9, "run_time": runs, "nodes": [1] * 9}, machine_size=9)
    table = breakdown(Simulation(workload, Pipeline()).run(), "run_time")
    assert table.jobs.to_dict() == {"< 10 min": 2, "< 1 h": 2, "< 6 h": 2, "< 24 h": 2, "longer": 1}


def test_breakdown_by_mode_and_user(result: Result) -> None:
    assert breakdown(result, "mode").jobs.to_dict() == {"ready": 2, "reserved": 1, "backfilled": 1}
    assert breakdown(result, "user").max_wait_time.to_dict() == {"1": 0, "2": 25}
    assert breakdown(result, "user", warmup=5).jobs.to_dict() == {"2": 1}
    with pytest.raises(UsageError, match=r"by must be one of 'size', .*, found 'colour'"):
        breakdown(result, "colour")  # type: ignore[arg-type]


def test_breakdown_by_columns_of_the_log() -> None:
    columns = {
        "submit_time": [0] * 6,
        "run_time": [10, 20, 30, 40, 50, 7],
        "nodes": [1] * 6,
        "queue": [0, 1, 1, 2, 3, -1],
        "qos": [4, 4, 4, 4, 4, 5],
    }
    workload = Workload(columns, machine_size=1, labels={"queue": ("debug", "short", "long", "night")})
    result = Simulation(workload, Pipeline()).run()  # waits 0, 10, 30, 60, 100, 150
    table = breakdown(result, "queue")
    assert table.jobs.to_dict() == {"unknown": 1, "debug": 1, "short": 2, "long": 1, "night": 1}
    largest = breakdown(result, "queue", top=2)
    assert largest.jobs.to_dict() == {"short": 2, "night": 1, "other (3 groups)": 3}
    assert largest.mean_wait_time.tolist() == [20, 100, 70]
    assert largest.area_share.tolist() == pytest.approx([50 / 157, 50 / 157, 57 / 157])
    all_but_one = breakdown(result, "queue", top=4)  # the fifth stands alone
    assert all_but_one.index.tolist() == ["short", "night", "long", "debug", "unknown"]
    assert breakdown(result, "qos").jobs.to_dict() == {"4": 5, "5": 1}
    assert breakdown(result, "partition").jobs.to_dict() == {"unknown": 6}
    with pytest.raises(UsageError, match="top must be 1 or more, found 0"):
        breakdown(result, "queue", top=0)


@given(results(), st.sampled_from(["size", "run_time", "mode", "user", "queue"]))
def test_classes_add_up_to_the_whole(result: Result, by: str) -> None:
    table, values = breakdown(result, by), measure(result)  # type: ignore[arg-type]
    assert table.jobs.sum() == len(result)
    assert np.average(table.mean_wait_time, weights=table.jobs) == pytest.approx(values["mean_wait_time"])
    slowdown = np.average(table.mean_bounded_slowdown, weights=table.jobs)
    assert slowdown == pytest.approx(values["mean_bounded_slowdown"])
    assert table.max_wait_time.max() == values["max_wait_time"]
    if result.run_time.sum():
        assert table.area_share.sum() == pytest.approx(1)


def test_one_class_has_the_statistics_of_the_whole(result: Result) -> None:
    columns = {**result.workload.columns, "user": np.full(5, 7)}
    alike = Result(
        Workload(columns),
        "p",
        4,
        result.submit_time,
        result.start_time,
        result.end_time,
        result.mode,
        result.killed,
    )
    row = breakdown(alike, "user").loc["7"]
    values = measure(alike)
    for name in row.index.difference(["jobs", "area_share"]):
        assert row[name] == pytest.approx(values[name]), name


# --- real logs -------------------------------------------------------------------------------------------

KNOWN = {
    "KTH-SP2-1996-2.1-cln.swf.gz": (100, 6847.503, 91.5151),
    "SDSC-SP2-1998-4.2-cln.swf.gz": (128, 22844.418, 103.3865),
    "lublin-2.swf": (256, 9703.562, 256.6287),
}
"""Nodes, mean wait time [s] and mean bounded slowdown of FCFS with EASY."""


@pytest.mark.parametrize("log", KNOWN)
def test_known_values_of_real_logs(log: str, shared: Path) -> None:
    nodes, wait_time, slowdown = KNOWN[log]
    workload = read_swf(shared / "traces" / log).fitting(nodes)
    result = Simulation(workload, Pipeline(backfiller=EASY())).run()
    values = measure(result)
    assert values["mean_wait_time"] == pytest.approx(wait_time, abs=5e-4)
    assert values["mean_bounded_slowdown"] == pytest.approx(slowdown, abs=5e-5)
    assert values["ready_job_share"] + values["reserved_job_share"] + values["backfilled_job_share"] == 1
    assert 0 < values["loss_of_capacity"] < 1 - values["utilisation"]
