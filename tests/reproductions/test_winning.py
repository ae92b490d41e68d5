"""The measurement over logs: which load, which jobs, which ratios; and a small run of all of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.judged_logs import JudgedLog, lost_share
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.reproductions.reproduction_run import ReproductionRun
from hpcsimkit.reproductions.winning.statistics import Blocks, pooled
from hpcsimkit.results.attempts import Attempt, Attempts, Outcome
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import write_swf

DAY, WEEK = 86_400, 7 * 86_400


def log(folder: Path, every: int, *, known: bool = False, weeks: int = 10) -> Path:
    """Write a log of jobs of up to one hour, one after the other on four nodes, submitted three at a time; return its path."""
    submit = np.repeat(np.arange(0, weeks * WEEK + 1, every), 3)
    rng = np.random.default_rng(3)
    run_time = np.where(rng.random(len(submit)) < 0.2, 100, 3600)
    columns = {
        "submit_time": submit,
        "run_time": run_time,
        "requested_time": run_time if known else np.full(len(submit), 7200),
        "nodes": np.full(len(submit), 3),
        "user": rng.integers(0, 5, len(submit)),
    }
    path = folder / f"every-{every}{'-known' * known}.swf"
    write_swf(Workload(columns, machine_size=4), path)
    return path


def test_the_load_is_raised_until_jobs_wait(tmp_path: Path) -> None:
    """Three jobs of an hour come at once and run one after the other: at any load, they wait for an hour."""
    assert JudgedLog(log(tmp_path, DAY), 0).load == 1
    single = tmp_path / "single.swf"
    submit = np.arange(0, 10 * WEEK, 8000)
    columns = {"submit_time": submit, "run_time": submit * 0 + 3600, "nodes": submit * 0 + 4}
    columns["requested_time"] = submit * 0 + 4000
    write_swf(Workload(columns, machine_size=4), single)
    found = JudgedLog(single, 0)
    assert found.load == pytest.approx(1.1**9)  # 8000 s / 3600 s is 2.2; 1.1^8 is 2.14
    assert found.jobs.span < found.recorded.span / 2


def test_the_last_third_is_judged_in_weeks_or_in_days(tmp_path: Path) -> None:
    """Of 30 weeks, ten are judged, in ten blocks and one for the last instant; of ten, 28 days in threes."""
    long = JudgedLog(log(tmp_path, DAY, weeks=30), 0)
    assert long.jobs.submit_time[long.judged].min() == 20 * WEEK
    assert np.bincount(long.block).tolist() == [21] * 10 + [3]
    short = JudgedLog(log(tmp_path, DAY // 2), 0)
    assert short.jobs.submit_time[short.judged].min() == 6 * WEEK
    assert np.bincount(short.block).tolist() == [18] * 9 + [9]


def test_logs_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    assert JudgedLog(log(tmp_path, DAY), 0).reason_left_out == ""
    assert JudgedLog(log(tmp_path, 3600), 0).reason_left_out == "its queue does not drain"
    assert JudgedLog(log(tmp_path, DAY, known=True), 0).reason_left_out == "its requested times are run times"
    with pytest.raises(UsageError, match=r"9 weeks are needed, found 3\.0"):
        _ = JudgedLog(log(tmp_path, DAY, weeks=3), 0).jobs
    with pytest.raises(UsageError, match="found none with queues that drain"):
        list(reproduction_named("winning")([log(tmp_path, 3600)]).prepare())


def test_pooled_ratios_by_hand() -> None:
    """Ratios 1/2, 1/2 and 1/4: a geometric mean of 4^(-2/3), t = -4 with 2 degrees of freedom."""
    found = pooled([0.5, 0.5, 0.25])
    assert found.mean == pytest.approx(4 ** (-2 / 3))
    assert found.p == pytest.approx(0.0572, abs=1e-4)
    assert (found.won, found.logs) == (3, 3)
    assert not found.is_better


def test_intervals_are_of_blocks_within_logs() -> None:
    """Blocks with equal ratios leave no uncertainty; the ratio of a log is that of its sums."""
    same = Blocks(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    found = pooled([same.ratio] * 2, [same, same])
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    wide = Blocks(np.array([1.0, 9.0]), np.array([2.0, 2.0]))
    assert wide.ratio == 2.5
    found = pooled([2.5, 2.5], [wide, wide], seed=1)
    assert 0.5 <= found.low < 2.5 < found.high <= 4.5


def test_lost_work_is_a_share_of_the_work_of_the_same_jobs() -> None:
    """The second job of 2 nodes loses 30 s; the judged work is 2 x 300 node-seconds."""
    jobs = Workload({"submit_time": [0, 0], "run_time": [100, 300], "nodes": [4, 2]}, machine_size=4)
    attempts = Attempts.of(
        [
            Attempt(0, 0, 0, 100, 1, Outcome.COMPLETED, 100, 0, 4),
            Attempt(1, 0, 100, 130, 4, Outcome.TESTED, 0, 30, 2),
            Attempt(1, 130, 130, 430, 1, Outcome.COMPLETED, 300, 0, 2),
        ]
    )
    result = Result(
        jobs, "x", 4, *map(np.array, ([0, 0], [0, 130], [100, 430], [1, 1], [False] * 2)), attempts=attempts
    )
    assert lost_share(result, np.array([False, True])) == pytest.approx(60 / 600)
    assert lost_share(result, np.array([True, False])) == 0


@pytest.mark.slow
def test_a_small_run_of_the_measurement(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "found"
    measured = reproduction_named("winning")([log(tmp_path, DAY)])
    ReproductionRun(measured, out, "winning", 1).run(quiet=True, say=lambda line: None)
    report = (out / "report.md").read_text()
    assert "every-86400: 213 jobs at its own load" in report
    assert "`predicted-aging+tests(seconds=300)`" in report
    assert "`unicef+guarded-wait+easy+tests(seconds=300)`" in report
    targets = {each["what"]: each for each in json.loads((out / "targets.json").read_text())}
    assert targets["logs in a stable state [at least 8]"]["met"] is False
