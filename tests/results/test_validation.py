"""Validation: numbers by hand, grades, and what cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hpcsimkit import Pipeline, Simulation, Workload, make
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.reports.answers import draw_validation
from hpcsimkit.results.residue import CAUSES, Residue
from hpcsimkit.results.validation import GRADES, Validation, ks_distance


def jobs(waits: list[int], **columns: Any) -> Workload:
    """Return jobs of 1000 s on the whole machine at 0, 10, ..., which FCFS starts at 0, 1000, 2000, ..."""
    count = len(waits)
    given = {
        "submit_time": 10 * np.arange(count),
        "run_time": np.full(count, 1000),
        "nodes": np.full(count, 4),
        "recorded_wait_time": waits,
        **columns,
    }
    return Workload(given, machine_size=4, labels={"partition": ("a", "b"), "qos": ("high", "low")})


def test_numbers_by_hand() -> None:
    found = Validation(Simulation(jobs([0, 990, 980, 5970], qos=[0, 0, 1, 1]), Pipeline()).run())
    assert found.error.tolist() == [0, 0, 1000, -3000]  # simulated waits: 0, 990, 1980, 2970
    assert found.summary == {"median [s]": 500, "90 % [s]": pytest.approx(2400), "within 10 min": 0.5}
    rows = found.table.set_index("group")
    assert rows.jobs.to_dict() == {"all jobs": 4, "high": 2, "low": 2}
    assert rows.recorded["all jobs"] == 1985
    assert rows.simulated["all jobs"] == 1485
    assert rows.ratio["low"] == pytest.approx(2475 / 3475)
    assert rows.wasserstein["low"] == (1000 + 3000) / 2  # 980 and 5970 against 1980 and 2970
    assert rows.ks.to_dict() == {"all jobs": 0.25, "high": 0, "low": 0.5}
    assert found.grades == {"starts": "poor", "waits": "fair", "use": "poor"}
    assert found.grade == "poor"


@pytest.mark.parametrize(
    ("waits", "grades"),
    [
        ([0, 990, 1980, 2970], ["good", "good", "good"]),
        ([0, 0, 0, 0], ["poor", "poor", "poor"]),
        ([0, 990, 1980, 3500], ["good", "fair", "fair"]),  # 530 of 4000 s are used later
        ([0, 990, 1980, 40_000], ["fair", "poor", "poor"]),
    ],
)
def test_grades(waits: list[int], grades: list[str]) -> None:
    found = Validation(Simulation(jobs(waits), Pipeline()).run())
    assert list(found.grades.values()) == grades
    assert found.grade == max(grades, key=GRADES.index)


def test_measures_by_hand() -> None:
    """Ten jobs as simulated, and then with a last one that waits 495 s longer: 45 s in the mean."""
    found = Validation(Simulation(jobs([990 * number for number in range(10)]), Pipeline()).run())
    assert [mark.value for mark in found.marks] == [1, 0, 1, 0]
    waits = [990 * number + 495 * (number == 9) for number in range(10)]
    result = Simulation(jobs(waits), Pipeline()).run()
    assert Validation(result).marks[2].value == 1, "the means are within 60 s"
    late = Validation(result, tolerance=10)
    started, distance, factor, moved = (mark.value for mark in late.marks)
    assert (started, distance) == (1, pytest.approx(0.1))
    cut = 8910 - 0.09 * 990, 9405 - 0.09 * 1485  # the 99 % quantile, between the last two of ten waits
    assert factor == pytest.approx((990 * 36 + cut[1]) / (990 * 36 + cut[0]))
    assert moved == pytest.approx(495 / 10_000), "495 of 10 000 s at other times"


def test_a_wait_of_seconds_is_none() -> None:
    """As on Eagle: all jobs find a free machine, and wait 1 to 4 s on record."""
    waits = [1, 4, 4, 1, 0]
    result = Simulation(
        jobs(waits, nodes=[1] * 5, submit_time=[0, 5000, 9000, 15_000, 20_000]), Pipeline()
    ).run()
    assert Validation(result).grade == "good"
    exact = Validation(result, tolerance=0)
    assert exact.grades == {"starts": "good", "waits": "poor", "use": "good"}
    assert exact.table.ks[0] == 0.8, "four of five waits are not 0"
    assert Validation(result, tolerance=4).grade == "good" and Validation(result, tolerance=3).grade == "poor"


def test_one_held_job_decides_no_grade() -> None:
    """Of 200 jobs, one waits 50 days on record: the mean is 6 h, the median and nearly all others are 0."""
    waits = np.zeros(200, dtype=int)
    waits[100] = 50 * 86_400
    result = Simulation(jobs(waits.tolist(), submit_time=2000 * np.arange(200)), Pipeline()).run()
    found = Validation(result)
    assert found.table.recorded[0] == 21_600 and found.table.simulated[0] == 0
    assert found.grade == "good"


SAMPLES = st.lists(st.integers(0, 50), min_size=1, max_size=12).map(
    lambda sample: np.array(sample, dtype=float)
)


@pytest.mark.filterwarnings("ignore")  # about its p-value, which is not asked for
@given(SAMPLES, SAMPLES)
def test_without_tolerance_the_distance_is_the_usual_one(one: Any, other: Any) -> None:
    assert ks_distance(one, other) == pytest.approx(stats.ks_2samp(one, other, method="asymp").statistic)


@given(SAMPLES, st.lists(st.integers(-6, 6), min_size=12, max_size=12), SAMPLES)
def test_shifts_within_the_tolerance_do_not_count(one: Any, shifts: list[int], other: Any) -> None:
    assert ks_distance(one, one + shifts[: len(one)], 6) == 0
    assert ks_distance(one, other, 6) == ks_distance(other, one, 6)
    distances = [ks_distance(one, other, tolerance) for tolerance in (0, 3, 6, 50)]
    assert distances == sorted(distances, reverse=True) and distances[-1] == 0


def test_no_job_waits() -> None:
    workload = jobs([0, 0], submit_time=[0, 5000])
    found = Validation(Simulation(workload, Pipeline()).run())
    assert found.grade == "good"
    assert np.isnan(found.table.ratio[0])


def test_partitions_are_those_in_which_jobs_started() -> None:
    cluster = Partitions([Partition("a", nodes=4), Partition("b", nodes=4)])
    result = Simulation(jobs([0, 0, 0, 0], partition=[0, 1, 1, 0]), Pipeline(), cluster).run()
    table = Validation(result).table.set_index("group")
    assert table.simulated[["a", "b"]].tolist() == [(0 + 970) / 2, (0 + 990) / 2]


def test_jobs_without_recorded_wait_are_left_out() -> None:
    found = Validation(Simulation(jobs([0, -1, 1980]), Pipeline()).run())
    assert found.error.tolist() == [0, 0]
    steps = found.timelines
    assert steps["recorded"].busy.tolist() == steps["simulated"].busy.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: replace(w, columns={**w.columns, "recorded_wait_time": [-1, -1]}), "found none"),
        (lambda w: w.scale_load(2.0), "not those of a scaled load"),
    ],
)
def test_what_cannot_be_compared(change: Any, message: str) -> None:
    result = Simulation(change(jobs([0, 5])), make("fcfs")).run()
    with pytest.raises(UsageError, match=message):
        Validation(result)


def test_the_picture_has_both_lines_and_the_causes() -> None:
    found = Residue(Validation(Simulation(jobs([0, 990, 2500]), Pipeline()).run()))
    queue, busy, causes = draw_validation(found, "fcfs").axes
    assert [patch.get_label() for patch in queue.patches] == ["recorded", "simulated"]
    recorded, simulated = (patch.get_data().values for patch in busy.patches)
    assert not np.array_equal(recorded, simulated)
    assert max(simulated) == pytest.approx(100)
    assert [patch.get_width() for patch in causes.patches] == [100 * share for share in found.table.share]
    assert len(causes.get_yticklabels()) == len(CAUSES) + 1
