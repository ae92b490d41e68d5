"""Operations on workloads: by hand and as laws."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from tests.kernel.helpers import rows_and_size, run, workload

JOBS = workload(
    [(30, 5, 9, 2), (10, 6, 9, 1), (20, 7, 3, 4), (10, 8, 9, 3)], 4, id=[5, 6, 7, 8], user=[1, 2, 1, 3]
)
"""Submitted at 30, 10, 20, 10: out of order."""


def test_first_goes_by_submission_and_keeps_log_order() -> None:
    assert JOBS.first(2).id.tolist() == [6, 8]
    assert JOBS.first(3).id.tolist() == [6, 7, 8]
    assert JOBS.first(2, skip=1).id.tolist() == [7, 8]
    assert JOBS.first(9, skip=3).id.tolist() == [5]
    assert JOBS.first(9, skip=9).id.tolist() == []


def test_window_and_split() -> None:
    assert JOBS.window(10, 30).id.tolist() == [6, 7, 8]
    assert JOBS.window(11, 31).id.tolist() == [5, 7]
    before, after = JOBS.split(20)
    assert (before.id.tolist(), after.id.tolist()) == ([6, 8], [5, 7])


def test_scale_load_by_hand() -> None:
    """Origin 10: distances 20, 0, 10, 0 become 13.33, 0, 6.67, 0 at 1.5 times the load."""
    assert JOBS.scale_load(1.5).submit_time.tolist() == [23, 10, 17, 10]
    assert JOBS.scale_load(0.5).submit_time.tolist() == [50, 10, 30, 10]


def test_merge_sorts_by_submission_and_keeps_numbers_that_are_unique() -> None:
    other = workload([(15, 1, 1, 1), (10, 2, 2, 1)], 9, id=[1, 2], preceding=[2, -1])
    merged = JOBS.merge(other)
    assert merged.id.tolist() == [6, 8, 2, 1, 7, 5]
    assert merged.machine_size == 9
    assert merged.user.tolist() == [2, 3, -1, -1, 1, 1]
    assert merged.preceding.tolist() == [-1, -1, -1, 2, -1, -1]


def test_merge_numbers_anew_where_numbers_collide_and_drops_dependencies() -> None:
    other = workload([(15, 1, 1, 1)], 4, id=[7], preceding=[6])
    merged = JOBS.merge(other)
    assert sorted(merged.id.tolist()) == [1, 2, 3, 4, 5]
    assert merged.preceding.tolist() == [-1] * 5


def test_killed_at_limit() -> None:
    assert JOBS.killed_at_limit.run_time.tolist() == [5, 6, 3, 8]
    assert JOBS.run_time.tolist() == [5, 6, 7, 8]


def test_fitting_counts_what_it_leaves_out() -> None:
    small = JOBS.fitting(2)
    assert small.id.tolist() == [5, 6]
    assert small.machine_size == 2
    assert dict(small.skipped) == {"larger than the machine of 2 nodes": 2}
    assert dict(small.fitting(1).skipped) == {
        "larger than the machine of 2 nodes": 2, "larger than the machine of 1 nodes": 1,
    }  # fmt: skip


def test_offered_load() -> None:
    """5*2 + 6 + 7*4 + 8*3 = 68 node-seconds, 20 s on 4 nodes."""
    assert JOBS.offered_load() == 68 / 80


@given(drawn=rows_and_size(), at=st.integers(-1, 32), factor=st.sampled_from([0.3, 1.0, 1.7, 10.0]))
def test_laws(drawn: Any, at: int, factor: float) -> None:
    jobs = workload(*drawn)
    before, after = jobs.split(at)
    assert len(before) + len(after) == len(jobs)
    assert before.merge(after).hash == jobs.select(jobs.arrival_order).hash
    assert jobs.window(0, at if at > 0 else 0).hash == before.hash
    assert jobs.scale_load(1.0).hash == jobs.hash
    scaled = jobs.scale_load(factor)
    assert (np.diff(scaled.submit_time[jobs.arrival_order]) >= 0).all()
    assert scaled.submit_time.min() == jobs.submit_time.min()
    assert jobs.first(3).merge(jobs.first(len(jobs), skip=3)).hash == before.merge(after).hash
    assert Workload.from_jobs(jobs.jobs, machine_size=jobs.machine_size).hash == jobs.hash
    assert len(scaled.provenance) == len(jobs.provenance) + 1


def test_operations_leave_the_original_alone_and_columns_cannot_be_written() -> None:
    before = JOBS.hash
    JOBS.scale_load(3), JOBS.fitting(2), JOBS.first(1), JOBS.merge(JOBS), JOBS.killed_at_limit
    assert JOBS.hash == before
    with pytest.raises(ValueError, match="read-only"):
        JOBS.nodes[0] = 9


@pytest.mark.parametrize(
    "copied", [lambda w: pickle.loads(pickle.dumps(w)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_workloads_travel_to_other_processes(copied: Any) -> None:
    """Campaigns send them to workers; policies may hold one and are copied for each run."""
    other = copied(JOBS)
    assert other.hash == JOBS.hash
    assert run(other, "fcfs").hash == run(JOBS, "fcfs").hash


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("submit_time", [0, -1], "job 2: submit_time needs 0"),
        ("run_time", [-1, 0], "job 1: run_time needs 0"),
        ("requested_time", [1, 0], "job 2: requested_time needs 1"),
        ("nodes", [1, 0], "job 2: nodes needs 1"),
        ("nodes", [1, 10**18], "job 2: nodes needs 1"),
        ("nodes", [1.5, 1], "whole numbers, found 1.5 in row 0"),
        ("nodes", [1, float("nan")], "whole numbers, found nan in row 1"),
        ("nodes", ["a", "b"], "needs whole numbers"),
        ("nodes", [1], r"needs shape \(2,\), found \(1,\)"),
        ("nodes", [[1, 2], [3, 4]], r"needs shape \(2,\), found \(2, 2\)"),
        ("cores", [1, 1], "unknown column 'cores'"),
    ],
)
def test_columns_that_cannot_be_a_workload(column: str, values: Any, message: str) -> None:
    columns = {"submit_time": [0, 0], "run_time": [1, 1], "requested_time": [1, 1], "nodes": [1, 1]}
    with pytest.raises(WorkloadError, match=message):
        Workload({**columns, column: values})


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf")])
def test_load_factors_that_make_no_sense(factor: float) -> None:
    with pytest.raises(WorkloadError, match="load factor must be a positive number"):
        JOBS.scale_load(factor)


def test_merging_names_resources_and_counts() -> None:
    def log(kinds: tuple[str, ...], number: int, cpus: int) -> Workload:
        columns = {"id": [number], "submit_time": [number], "run_time": [1], "nodes": [1], "cpus": [cpus]}
        return Workload(
            {**columns, "kind": [len(kinds) - 1]}, resources=("cpus",), labels={"kind": kinds},
            skipped={"too large": 1, f"log {number}": 2}, notes={"run time 0": number},
        )  # fmt: skip

    merged = log(("dgemm", "daxpy"), 5, 8).merge(log(("stream", "dgemm"), 3, 16))
    assert merged.id.tolist() == [3, 5]
    assert [job.request.amounts for job in merged.jobs if job.request] == [(16,), (8,)]
    assert [merged.label("kind", kind) for kind in merged.kind.tolist()] == ["dgemm", "daxpy"]
    assert merged.skipped == {"too large": 2, "log 5": 2, "log 3": 2}
    assert merged.notes == {"run time 0": 8}


def test_logs_with_different_resources_are_not_merged() -> None:
    columns = {"submit_time": [0], "run_time": [1], "nodes": [1], "cpus": [1]}
    one, other = (
        Workload(columns, resources=("cpus",)),
        Workload({**columns, "gpus": [1]}, resources=("cpus", "gpus")),
    )
    with pytest.raises(
        WorkloadError, match=r"resources .'cpus',. is needed to merge with, found .'cpus', 'gpus'."
    ):
        one.merge(other)


def test_modelled_estimates_keep_requests() -> None:
    from hpcsimkit.workloads import with_estimates

    columns = {"submit_time": [0], "run_time": [100], "nodes": [1], "cpus": [4]}
    made = with_estimates(Workload(columns, resources=("cpus",)), np.random.default_rng(0))
    assert made.jobs[0].request is not None
    assert made.jobs[0].request.amounts == (4,)


def frame(**columns: Any) -> Any:
    import pandas

    return pandas.DataFrame({"submit_time": [0, 5, 9], "run_time": [1, 2, 3], "nodes": [1, 2, 4], **columns})


def test_a_data_frame_with_dates_durations_and_names() -> None:
    import pandas

    table = frame(
        submit_time=pandas.to_datetime(["2026-01-05 08:01", "2026-01-05 08:00", "2026-01-06 08:00"]),
        run_time=pandas.to_timedelta(["1min", "2h", "1D"]),
        user=["ann", None, "ann"],
        group=[3, None, 4],
    )
    workload = Workload.from_frame(table, 4, "mine")
    assert workload.submit_time.tolist() == [60, 0, 86_400]
    assert workload.header["UnixStartTime"] == str(int(pandas.Timestamp("2026-01-05 08:00").timestamp()))
    assert workload.run_time.tolist() == [60, 7200, 86_400]
    assert workload.user.tolist() == [0, -1, 0]
    assert workload.head()["user"].tolist() == ["ann", "", "ann"]
    assert workload.group.tolist() == [3, -1, 4]
    assert (workload.machine_size, workload.name) == (4, "mine")
    zoned = table.assign(submit_time=table["submit_time"].dt.tz_localize("Europe/Berlin"))
    shifted = Workload.from_frame(zoned)
    assert shifted.submit_time.tolist() == [60, 0, 86_400]
    assert int(shifted.header["UnixStartTime"]) == int(workload.header["UnixStartTime"]) - 3600


def test_columns_of_a_data_frame_under_other_names_and_its_resources() -> None:
    table = frame(gpus=[0, 1, 2]).rename(columns={"nodes": "NNodes"})
    workload = Workload.from_frame(table, nodes="NNodes", resources=["gpus"])
    assert workload.nodes.tolist() == [1, 2, 4]
    assert workload.resources == ("gpus",)


def test_a_workload_comes_back_from_its_frame() -> None:
    workload = Workload.from_frame(frame(user=["b", "a", "b"]), 4)
    assert Workload.from_frame(workload.to_frame(), 4).hash == Workload(workload.columns, 4).hash


@pytest.mark.parametrize(
    ("table", "renamed", "message"),
    [
        (lambda: frame(colour=[1, 2, 3]), {}, "jobs: unknown column 'colour'"),
        (lambda: frame().drop(columns="nodes"), {}, "jobs: column 'nodes' is needed"),
        (frame, {"nodes": "NNodes"}, "jobs: no column 'NNodes'; there are submit_time, run_time, nodes"),
        (
            lambda: frame(run_time=[1, None, 3]),
            {},
            "jobs: column 'run_time' needs a value in each row, .* row 1",
        ),
        (
            lambda: frame(run_time=["1", "2", "x"]),
            {},
            "jobs: column 'run_time' needs whole numbers, found texts",
        ),
        (
            lambda: frame(nodes=[1.5, 2, 3]),
            {},
            "jobs: column 'nodes' needs whole numbers, found 1.5 in row 0",
        ),
    ],
)
def test_data_frames_that_are_no_jobs(table: Any, renamed: dict[str, str], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        Workload.from_frame(table(), **renamed)


def test_parts_of_a_workload_by_brackets() -> None:
    workload = Workload({"submit_time": [0, 5, 9], "run_time": [1, 2, 3], "nodes": [1, 2, 4]}, machine_size=4)
    assert workload["run_time"].tolist() == [1, 2, 3]
    assert workload[1] is workload.jobs[1]
    assert [job.nodes for job in workload] == [1, 2, 4]
    assert workload[1:].nodes.tolist() == workload[workload["nodes"] > 1].nodes.tolist() == [2, 4]
    assert workload[[0, 2]].nodes.tolist() == [1, 4]
    with pytest.raises(WorkloadError, match="no column 'colour'"):
        workload["colour"]
