"""What comes out of a run: columns, tables, files, timelines and node numbers."""

from __future__ import annotations

import gc
import io
import json
import tempfile
import weakref
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.timeline import Steps, Sweep
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.node_numbers import assign_nodes
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.swf import read_swf


class RejectsLarge(Policy):
    """Starts in order what fits; refuses what needs more than half of the machine."""

    def schedule(self, system: System) -> None:
        for job in system.queue:
            if 2 * job.nodes > system.cluster.size:
                system.reject(job)
            elif system.fits(job):
                system.start(job)


WORKLOAD = Workload(
    {
        "id": [11, 12, 13, 14],
        "submit_time": [100, 101, 102, 103],
        "run_time": [20, 5, 0, 2],
        "requested_time": [20, 4, 10, 5],
        "nodes": [2, 2, 3, 1],
        "user": [1, 2, 2, 3],
        "queue": [1, 1, 1, 1],
        "status": [1, 0, 1, 1],
    },
    machine_size=4,
    name="four",
)
"""By RejectsLarge: 11 runs 100-120, 12 runs 101-106, 13 is refused, 14 waits 103-106 and runs until 108."""


@pytest.fixture
def result() -> Result:
    return Simulation(WORKLOAD, RejectsLarge(), name="<refuse & go>").run()


@st.composite
def workloads(draw: st.DrawFn, machine_size: int = 6) -> Workload:
    jobs = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 12), st.integers(1, machine_size)),
            min_size=1,
            max_size=25,
        )
    )
    gaps, run_time, requested_time, nodes = np.array(jobs).T
    columns = {"submit_time": gaps.cumsum(), "run_time": run_time, "nodes": nodes}
    return Workload({**columns, "requested_time": requested_time}, machine_size=machine_size)


# --- columns ---------------------------------------------------------------------------------------------


def test_times_by_hand(result: Result) -> None:
    nan = np.nan
    assert result.finished.tolist() == [True, True, False, True]
    np.testing.assert_array_equal(result.wait_time, [0, 0, nan, 3])
    np.testing.assert_array_equal(result.run_time, [20, 5, nan, 2])
    np.testing.assert_array_equal(result.response_time, [20, 5, nan, 5])
    np.testing.assert_array_equal(result.slowdown, [1, 1, nan, 2.5])
    np.testing.assert_array_equal(result.bounded_slowdown(), [1, 1, nan, 1])
    np.testing.assert_array_equal(result.bounded_slowdown(threshold=4), [1, 1, nan, 1.25])
    assert result.makespan == 20


def test_zero_length_job_has_slowdown_of_one_second() -> None:
    columns = map(np.array, ([0], [7], [7], [1], [False]))
    result = Result(Workload({"submit_time": [0], "run_time": [0], "nodes": [1]}), "p", 1, *columns)
    assert (result.slowdown[0], result.bounded_slowdown()[0]) == (7.0, 1.0)


def test_outcome_is_frozen(result: Result) -> None:
    for name in ("submit_time", "start_time", "end_time", "mode", "killed"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(result, name)[0] = 1


def test_hash_tells_schedules_apart() -> None:
    workload = Workload({"submit_time": [0, 0, 1], "run_time": [9, 9, 1], "nodes": [3, 2, 1]}, machine_size=4)
    policies = (Pipeline(), Pipeline(), Pipeline(backfiller=EASY()))
    plain, again, easy = (Simulation(workload, policy).run() for policy in policies)
    assert plain.hash == again.hash != easy.hash


def test_nothing_happened() -> None:
    empty = Simulation(Workload({"submit_time": [], "run_time": [], "nodes": []}), Pipeline(), 4).run()
    assert (len(empty), empty.makespan, len(empty.timeline()), empty.node_numbers()) == (0, 0, 0, [])
    assert len(empty.to_frame()) == 0
    assert "0 jobs" in repr(empty)


# --- tables ----------------------------------------------------------------------------------------------


def test_frame(result: Result) -> None:
    frame = result.to_frame()
    assert list(frame) == [
        "job_id", "submit_time", "start_time", "end_time", "wait_time", "run_time", "requested_time", "nodes",
        "mode", "killed", "user", "queue",
    ]  # fmt: skip
    assert frame.job_id.tolist() == [11, 12, 13, 14]
    assert frame["mode"].tolist() == ["ready", "ready", "none", "ready"]
    assert frame.loc[3, ["start_time", "end_time", "wait_time", "run_time"]].tolist() == [106, 108, 3, 2]
    assert frame.loc[2, ["start_time", "end_time", "wait_time", "run_time"]].isna().all()


def test_frame_as_csv_leaves_rejected_cells_empty(result: Result) -> None:
    text = result.to_frame().to_csv(index=False)
    assert text.splitlines()[3] == "13,102,,,,,10,3,none,False,2,1"
    assert text.splitlines()[4] == "14,103,106,108,3,2,5,1,ready,False,3,1"
    again = pandas.read_csv(io.StringIO(text))
    assert again.wait_time.sum() == 3


def test_frame_as_parquet(result: Result, tmp_path: Path) -> None:
    frame = result.to_frame()
    frame.to_parquet(tmp_path / "jobs.parquet")
    again = pandas.read_parquet(tmp_path / "jobs.parquet")
    pandas.testing.assert_frame_equal(again, frame)


@pytest.mark.parametrize("kind", ["rejected", "empty", "machines"])
def test_table_of_arrow_is_that_of_the_frame(kind: str, result: Result, shared_machines: Result) -> None:
    """Also its metadata, from which pandas restores the types."""
    nothing = Workload({"submit_time": [], "run_time": [], "nodes": []})
    found = {
        "rejected": result, "empty": Simulation(nothing, Pipeline(), 4).run(), "machines": shared_machines
    }[kind]  # fmt: skip
    expected = pyarrow.Table.from_pandas(found.to_frame(), preserve_index=False)
    assert found.to_arrow().equals(expected)
    assert found.to_arrow().schema.equals(expected.schema, check_metadata=True)


def test_killed_jobs_are_marked() -> None:
    result = Simulation(WORKLOAD, RejectsLarge(), walltime="kill").run()
    assert result.killed.tolist() == [False, True, False, False]
    assert result.to_frame().run_time.tolist()[:2] == [20, 4]


def test_notebook_table_is_escaped(result: Result) -> None:
    html = result._repr_html_()
    assert "&lt;refuse &amp; go&gt;" in html
    assert "<refuse" not in html
    assert "4, 1 of them rejected" in html


# --- timeline --------------------------------------------------------------------------------------------


def test_timeline_by_hand(result: Result) -> None:
    steps = result.timeline()
    assert steps.time.tolist() == [100, 101, 103, 106, 108, 120]
    assert steps.waiting.tolist() == [0, 0, 1, 0, 0, 0]
    assert steps.busy.tolist() == [2, 4, 4, 3, 2, 0]


@given(workloads())
def test_timeline_agrees_with_counting_second_by_second(workload: Workload) -> None:
    result = Simulation(workload, Pipeline(backfiller=EASY())).run()
    steps = result.timeline()
    assert (np.diff(steps.time) > 0).all()
    for now in range(int(result.end_time.max()) + 2):
        at = int(np.searchsorted(steps.time, now, side="right")) - 1
        waiting, busy = (int(steps.waiting[at]), int(steps.busy[at])) if at >= 0 else (0, 0)
        assert waiting == np.count_nonzero((result.submit_time <= now) & (now < result.start_time))
        assert busy == workload.nodes[(result.start_time <= now) & (now < result.end_time)].sum()


def test_steps_that_change_nothing_are_left_out() -> None:
    steps = Steps.of([0, 1, 2, 3], waiting=[0, 1, 1, 1], busy=[0, 2, 2, 0])
    assert steps.time.tolist() == [1, 3]
    assert len(Sweep.of([], [], [], []).steps) == 0


# --- node numbers ----------------------------------------------------------------------------------------


def numbers(start: list[int], end: list[int], nodes: list[int], size: int) -> list[list[int]]:
    assigned = assign_nodes(np.array(start), np.array(end), np.array(nodes), size)
    return [[node for interval in intervals for node in interval] for intervals in assigned]


def test_first_hole_that_is_large_enough() -> None:
    # 0 takes node 0, 1 takes 1-2; node 0 is free from t=1: 2 needs two and goes to 3-4, 3 takes node 0
    assert numbers([0, 0, 1, 2], [1, 9, 9, 9], [1, 2, 2, 1], 5) == [[0], [1, 2], [3, 4], [0]]


@pytest.mark.parametrize("ends", [(1, 2), (2, 1)])
def test_holes_that_touch_become_one(ends: tuple[int, int]) -> None:
    intervals = assign_nodes(np.array([0, 0, 3]), np.array([*ends, 4]), np.array([1, 2, 3]), 3)
    assert intervals == [(range(1),), (range(1, 3),), (range(3),)]


def test_scattered_when_no_hole_is_large_enough() -> None:
    assert numbers([0, 0, 0, 1], [1, 9, 1, 9], [1, 1, 1, 2], 3) == [[0], [1], [2], [0, 2]]


def test_zero_length_job_takes_nodes_before_those_that_start_after_it() -> None:
    assert numbers([0, 5, 5, -1], [5, 5, 9, -1], [4, 4, 4, 4], 4) == [[0, 1, 2, 3]] * 3 + [[]]


def test_each_attempt_has_nodes_of_its_own() -> None:
    """The first job is stopped for the second one, and goes on behind it."""
    columns = {"submit_time": [0, 5], "run_time": [20, 4], "nodes": [2, 2], "queue": [1, 2]}
    result = Simulation(Workload(columns, machine_size=3), make("fcfs+preempt")).run()
    assert result.by_attempt.node_numbers() == [(range(2),), (range(2),), (range(2),)]
    with pytest.raises(UsageError, match=r"^node_numbers\(\) needs one attempt of each job, .*by_attempt"):
        result.node_numbers()


@given(workloads())
def test_no_node_is_given_twice(workload: Workload) -> None:
    result = Simulation(workload, Pipeline(backfiller=EASY())).run()
    owners: dict[int, list[tuple[int, int]]] = {}
    for row, intervals in enumerate(result.node_numbers()):
        given_nodes = [node for interval in intervals for node in interval]
        assert len(set(given_nodes)) == workload.nodes[row]
        assert set(given_nodes) <= set(range(6))
        for node in given_nodes:
            owners.setdefault(node, []).append((int(result.start_time[row]), int(result.end_time[row])))
    for times in owners.values():
        lasting = sorted((start, end) for start, end in times if start < end)
        assert all(end <= start for (_, end), (start, _) in pairwise(lasting))


# --- files -----------------------------------------------------------------------------------------------


def test_swf_by_hand(result: Result, tmp_path: Path) -> None:
    result.to_swf(tmp_path / "out.swf")
    lines = (tmp_path / "out.swf").read_text().splitlines()
    header = [line for line in lines if line.startswith(";")]
    assert "; Policy: <refuse & go>" in header
    assert "; Seed: 0" in header
    assert "; MaxProcs: 4" in header
    assert any(line.startswith("; Simulator: hpcsimkit ") for line in header)
    assert [" ".join(line.split()[:11]) for line in lines[len(header) :]] == [
        "11 100 0 20 2 -1 -1 2 20 -1 1",
        "12 101 0 5 2 -1 -1 2 4 -1 0",
        "13 102 -1 -1 3 -1 -1 3 10 -1 5",
        "14 103 3 2 1 -1 -1 1 5 -1 1",
    ]


def test_swf_read_back(result: Result, tmp_path: Path) -> None:
    result.to_swf(tmp_path / "out.swf.gz")
    log = read_swf(tmp_path / "out.swf.gz")
    assert log.machine_size == 4
    assert log.recorded_wait_time.tolist() == [0, 0, 3]
    assert sum(log.skipped.values()) == 1
    for name in ("id", "submit_time", "run_time", "requested_time", "nodes", "user", "queue"):
        assert log.column(name).tolist() == WORKLOAD.column(name)[[0, 1, 3]].tolist()


@given(workloads())
def test_schedule_read_back_gives_the_schedule_again(workload: Workload) -> None:
    result = Simulation(workload, Pipeline(backfiller=EASY())).run()
    with tempfile.TemporaryDirectory() as folder:
        result.to_swf(Path(folder) / "out.swf")
        log = read_swf(Path(folder) / "out.swf")
    assert log.recorded_wait_time.tolist() == result.wait_time.tolist()
    assert Simulation(log, Pipeline(backfiller=EASY())).run().hash == result.hash


def test_swf_of_another_machine_says_its_size(tmp_path: Path) -> None:
    Simulation(WORKLOAD, Pipeline(), 9).run().to_swf(tmp_path / "out.swf")
    assert read_swf(tmp_path / "out.swf").machine_size == 9


def test_saved_and_loaded(tmp_path: Path) -> None:
    simulation = Simulation(
        WORKLOAD, Pipeline(order=External(decline=True)), seed=5, walltime="kill", name="by hand", period=2
    )
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(decision.options[-1])
    result = simulation.result()
    result.save(tmp_path / "run.npz")
    again = Result.load(tmp_path / "run.npz")
    assert result.choices
    assert len({position for _, position in result.choices}) > 1
    for name in ("policy", "size", "seed", "options", "choices", "seconds", "passes", "hash"):
        assert getattr(again, name) == getattr(result, name), name
    for name in ("submit_time", "start_time", "end_time", "mode", "killed"):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
        assert getattr(again, name).dtype == getattr(result, name).dtype
    for name in ("machine_size", "name", "header", "skipped", "notes", "provenance", "hash"):
        assert getattr(again.workload, name) == getattr(result.workload, name), name
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_saving_twice_gives_the_same_bytes(result: Result, tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz"):
        result.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def pickled(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, about=np.array({"format": "hpcsimkit result 1"}, dtype=object), allow_pickle=True)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("no archive"),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"PK\x03\x04 cut short"),
        lambda path: np.savez(path, start_time=np.zeros(3)),
        lambda path: path.write_bytes(np.zeros(3).dumps()),
        pickled,
    ],
)
def test_loading_something_else_is_one_clear_line(write, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write(path)
    with pytest.raises(WorkloadError, match=r"x\.npz: a saved result is needed") as caught:
        Result.load(path)
    assert "\n" not in str(caught.value)


def test_cut_short(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    result.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(WorkloadError, match="a saved result is needed"):
        Result.load(path)


def test_another_format(result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpcsimkit.results.result_file.FORMAT", "hpcsimkit result 9")
    result.save(tmp_path / "x.npz")
    monkeypatch.undo()
    with pytest.raises(WorkloadError, match="'hpcsimkit result 2' is needed, found 'hpcsimkit result 9'"):
        Result.load(tmp_path / "x.npz")


def test_format_before_there_were_machines(tmp_path: Path) -> None:
    """A file as version 0.1.0 wrote it."""
    workload = {"machine_size": 4, "name": "old", "header": {}, "skipped": {"no run time": 2}, "notes": {}}
    about = {
        "format": "hpcsimkit result 1", "kit": "0.1.0", "policy": "fcfs", "size": 4, "seed": 3, "options": {},
        "seconds": 0.5, "passes": 2, "stages": ["order"], "workload": {**workload, "provenance": ["read"]},
    }  # fmt: skip
    columns = {
        "id": [7, 8],
        "submit_time": [0, 1],
        "run_time": [9, 4],
        "requested_time": [9, 5],
        "nodes": [3, 2],
    }
    outcome = {"submit_time": [0, 1], "start_time": [0, 9], "end_time": [9, 13]}
    np.savez_compressed(
        tmp_path / "old.npz", about=np.array(json.dumps(about)), mode=np.array([1, 1], dtype=np.uint8),
        killed=np.zeros(2, dtype=bool), choice_stage=np.array([0], dtype=np.uint8), choice_position=np.array([1]),
        **{f"workload.{name}": np.array(values) for name, values in columns.items()},
        **{name: np.array(values) for name, values in outcome.items()},
    )  # fmt: skip
    result = Result.load(tmp_path / "old.npz")
    assert repr(result) == "<Result of fcfs on old: 2 jobs on 4 nodes, mean wait 4 s>"
    assert (result.choices, result.placements, result.workload.resources) == ((("order", 1),), None, ())
    assert dict(result.workload.labels) == {}


def test_files_that_are_not_there(result: Result, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no such file"):
        Result.load(tmp_path / "x.npz")
    for write in (result.save, result.to_swf):
        with pytest.raises(WorkloadError, match="cannot be written"):
            write(tmp_path / "nowhere" / "x")


def test_dependencies_write_the_submission_of_the_run(tmp_path: Path) -> None:
    columns = {"id": [1, 2], "submit_time": [0, 1], "run_time": [10, 5], "nodes": [1, 1]}
    workload = Workload({**columns, "preceding": [-1, 1], "think_time": [-1, 7]}, machine_size=2)
    result = Simulation(workload, Pipeline(), dependencies=True).run()
    result.to_swf(tmp_path / "x.swf")
    assert read_swf(tmp_path / "x.swf").submit_time.tolist() == [0, 17]
    assert result.wait_time.tolist() == [0, 0]


# --- machines --------------------------------------------------------------------------------------------

CLUSTER = Machines.of(2, cpus=4, memory="8 GB") + Machines.of(1, "gpu", cpus=4, gpus=2, features=["a100"])
SHARED = Workload(
    {
        "id": [0, 1, 2, 3],
        "submit_time": [0, 0, 1, 2],
        "run_time": [10, 5, 3, 4],
        "nodes": [2, 1, 1, 1],
        "cpus": [3, 2, 0, 9],
        "gpus": [0, 1, 1, 0],
        "memory": [0, 0, 0, 0],
        "spread": [0, 0, 0, 1],
        "constraint": [-1, 0, 0, -1],
        "kind": [1, 0, -1, 5],
        "user": [0, 1, -1, 0],
        "queue": [2, 2, 2, 2],
    },
    name="shared",
    resources=("cpus", "gpus", "memory"),
    labels={"id": ("a", "b", "c", "d"), "constraint": ("a100",), "kind": ("x", "y"), "user": ("ann", "bob")},
)
"""By FCFS: a has node1 and node2 until 10, b and c share gpu1; d needs 9 CPUs in all and waits for a."""


@pytest.fixture
def shared_machines() -> Result:
    return Simulation(SHARED, Pipeline(), CLUSTER, name="fcfs").run()


def test_machines_in_the_frame(shared_machines: Result) -> None:
    frame = shared_machines.to_frame()
    assert list(frame) == [
        "job_id", "job_name", "submit_time", "start_time", "end_time", "wait_time", "run_time", "requested_time",
        "nodes", "cpus", "gpus", "memory", "spread", "constraint", "kind", "machines", "mode", "killed", "user", "queue",
    ]  # fmt: skip
    assert frame.start_time.tolist() == [0, 0, 1, 10]
    assert frame.machines.tolist() == ["node1 node2", "gpu1", "gpu1", "node1 node2 gpu1"]
    assert frame.job_name.tolist() == ["a", "b", "c", "d"]
    words = frame[["constraint", "kind", "user"]].astype(object).where(frame.notna(), None)
    assert words.constraint.tolist() == [None, "a100", "a100", None]
    assert words.kind.tolist() == ["y", "x", None, "5"]  # 5 has no name
    assert words.user.tolist() == ["ann", "bob", None, "ann"]
    assert frame["queue"].tolist() == [2, 2, 2, 2]
    assert frame.cpus.tolist() == [3, 2, 0, 9]


def test_machines_in_words(shared_machines: Result) -> None:
    # mean of the waits 0, 0, 0 and 8
    assert repr(shared_machines) == (
        "<Result of fcfs on shared: 4 jobs on 3 machines (12 cpus, 2 gpus, 16 GB memory), mean wait 2 s>"
    )
    html = shared_machines._repr_html_()
    assert "Machine</th><td style='text-align:left'>3 machines (12 cpus, 2 gpus, 16 GB memory)<" in html
    one = Simulation(SHARED.select([1]), Pipeline(), Machines.of(1, cpus=4, gpus=2, features=["a100"])).run()
    assert "1 jobs on 1 machine (4 cpus, 2 gpus)" in repr(one)


def test_schedule_of_machines_as_swf(shared_machines: Result, tmp_path: Path) -> None:
    """Processors are what was had of the first resource: also of two machines, also none."""
    shared_machines.to_swf(tmp_path / "x.swf")
    lines = (tmp_path / "x.swf").read_text().splitlines()
    header = [line for line in lines if line.startswith(";")]
    assert "; Processors: cpus of 3 machines (12 cpus, 2 gpus, 16 GB memory)" in header
    assert "; MaxProcs: 12" in header
    assert [" ".join(line.split()[:8]) for line in lines[len(header) :]] == [
        "0 0 0 10 6 -1 -1 6", "1 0 0 5 2 -1 -1 2", "2 1 0 3 0 -1 -1 0", "3 2 8 4 9 -1 -1 9",
    ]  # fmt: skip
    log = read_swf(tmp_path / "x.swf")
    assert (log.nodes.tolist(), sum(log.skipped.values())) == ([6, 2, 9], 1)


def test_machines_saved_and_loaded(shared_machines: Result, tmp_path: Path) -> None:
    shared_machines.save(tmp_path / "run.npz")
    again = Result.load(tmp_path / "run.npz")
    assert again.hash == shared_machines.hash
    assert again.workload.hash == SHARED.hash
    assert (again.workload.resources, dict(again.workload.labels)) == (SHARED.resources, dict(SHARED.labels))
    assert again.workload.requests == SHARED.requests
    before, after = shared_machines.placements, again.placements
    assert before is not None and after is not None
    assert (after.cluster, after.jobs) == (CLUSTER, 4)
    assert after.cluster.features == CLUSTER.features
    for name in ("job", "machine", "amounts"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        assert getattr(after, name).dtype == np.int64
    pandas.testing.assert_frame_equal(again.to_frame(), shared_machines.to_frame())
    assert repr(again) == repr(shared_machines)


def test_rejected_jobs_have_no_machines(tmp_path: Path) -> None:
    class Refuses(Policy):
        def schedule(self, system: System) -> None:
            for job in system.queue:
                if job.index == 0:
                    system.reject(job)
                elif system.fits(job):
                    system.start(job)

    result = Simulation(SHARED, Refuses(), CLUSTER).run()
    assert result.to_frame().machines.tolist()[0] == ""
    result.save(tmp_path / "run.npz")
    again = Result.load(tmp_path / "run.npz").placements
    assert again is not None and again.machine_count.tolist() == [0, 1, 1, 3]
    result.to_swf(tmp_path / "x.swf")
    assert read_swf(tmp_path / "x.swf").nodes.tolist() == [2, 9]


def test_a_measured_result_is_freed_without_the_garbage_collector() -> None:
    """Of ten million jobs, each result that waited for it would hold 300 MB."""
    gc.disable()
    try:
        result = Simulation(WORKLOAD, RejectsLarge(), 4).run()
        measure(result)
        assert result.hash and len(result.timeline().time)
        seen = weakref.ref(result)
        del result
        assert seen() is None
    finally:
        gc.enable()
