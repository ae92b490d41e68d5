"""Logs as the published code bases load them, by hand: what is changed and dropped is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.dirlab import published_starts, read_published


def line(number: int, submit: int, run: int, allocated: int, requested: int, estimate: int) -> str:
    return f"{number} {submit} 7 {run} {allocated} -1 -1 {requested} {estimate}" + " -1" * 9 + "\n"


ROWS = (
    line(2, 5, 50, 4, 8, 60)  # the larger of 4 and 8 processors; second by number
    + line(1, 5, 100, 6, -1, 20)  # runs beyond its request
    + line(3, 6, -1, 2, 2, -1)  # neither run time nor estimate
    + line(4, 7, 0, 1, 1, 30)  # ran no time at all
    + line(5, 8, 9, 20, 20, 9)  # larger than the machine
    + line(6, 9, 9, -1, -1, 9)  # no processors
)


def read(folder: Path, code: str, header: str = "; MaxNodes: 16\n; MaxProcs: 16\n") -> Workload:
    log = folder / "log.swf"
    log.write_text(header + ROWS)
    return read_published(log, code)


def columns(log: Workload) -> dict[str, list[int]]:
    names = ("id", "submit_time", "run_time", "requested_time", "nodes")
    return {name: log.column(name).tolist() for name in names}


def test_rlscheduler(tmp_path: Path) -> None:
    log = read(tmp_path, "rlscheduler")
    assert columns(log) == {"id": [1, 2, 3], "submit_time": [5, 5, 6], "run_time": [100, 50, 10],
                            "requested_time": [20, 60, 10], "nodes": [6, 8, 2]}  # fmt: skip
    assert dict(log.skipped) == {
        "no processors (first: line 8)": 1,
        "run time 0: dropped as published": 1,
        "larger than the machine of 16 nodes": 1,
    }
    assert log.notes["run time unknown: 10 s taken as published"] == 1
    assert log.machine_size == 16
    assert log.recorded_wait_time.tolist() == [7, 7, 7]


def test_schedinspector_knows_run_times_and_keeps_those_of_zero(tmp_path: Path) -> None:
    log = read(tmp_path, "schedinspector")
    assert columns(log) == {"id": [1, 2, 3, 4], "submit_time": [5, 5, 6, 7], "run_time": [100, 50, 10, 0],
                            "requested_time": [100, 50, 10, 1], "nodes": [6, 8, 2, 1]}  # fmt: skip
    assert log.notes["requested time replaced by the run time as published"] == 3


def test_rlbackfilling_believes_no_run_beyond_its_request_and_clips(tmp_path: Path) -> None:
    log = read(tmp_path, "rlbackfilling")
    assert columns(log) == {"id": [1, 2, 3, 5], "submit_time": [5, 5, 6, 8], "run_time": [100, 50, 10, 9],
                            "requested_time": [100, 60, 10, 9], "nodes": [6, 8, 2, 16]}  # fmt: skip
    assert log.notes["requested time replaced by the run time as published"] == 1
    assert log.notes["larger than the machine: cut down as published"] == 1


def test_jobs_take_whole_nodes_and_are_ordered_by_processors(tmp_path: Path) -> None:
    log = read(tmp_path, "rlscheduler", "; MaxNodes: 4\n; MaxProcs: 16\n")
    assert log.machine_size == 4
    assert log.nodes.tolist() == [2, 2, 1]
    assert [job.size for job in log.jobs] == [6, 8, 2]


def test_without_the_number_of_processors_nodes_have_one(tmp_path: Path) -> None:
    log = read(tmp_path, "rlbackfilling", "; MaxNodes: 16\n")
    assert log.machine_size == 16
    assert log.nodes.tolist() == [6, 8, 2]
    assert "larger than the machine of 16 nodes" in log.skipped


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one of rlscheduler, schedinspector, rlbackfilling, found 'rls'"):
        read(tmp_path, "rls")
    with pytest.raises(WorkloadError, match=r"absent\.swf"):
        read_published(tmp_path / "absent.swf", "rlscheduler")


def test_starts_are_in_their_ranges_and_follow_the_seed() -> None:
    for code, first, last in (("schedinspector", 0, 9744), ("rlbackfilling", 1024, 8975)):
        starts = published_starts(code, 10_000, seed=3, count=4000)
        assert first <= starts.min() < first + 50
        assert last - 50 < starts.max() < last
        assert np.array_equal(starts, published_starts(code, 10_000, seed=3, count=4000))
        assert not np.array_equal(starts, published_starts(code, 10_000, seed=4, count=4000))
