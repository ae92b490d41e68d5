"""Validation: numbers by hand, grades, and what cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Pipeline, Simulation, Workload, make
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.reports.validation import draw_validation
from hpcsimkit.results.residue import CAUSES, Residue
from hpcsimkit.results.validation import Validation


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
    assert found.grade == "fair"


@pytest.mark.parametrize(
    ("waits", "grade"),
    [
        ([0, 990, 1980, 2970], "good"),
        ([0, 0, 0, 0], "poor"),
        ([0, 990, 1980, 4000], "fair"),
        ([0, 990, 1980, 40_000], "poor"),
    ],
)
def test_grades(waits: list[int], grade: str) -> None:
    assert Validation(Simulation(jobs(waits), Pipeline()).run()).grade == grade


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
