"""Metrics of machines: by hand, second by second, and equal to what others computed on real logs."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.locality import LOCALITIES
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.orders import SJF, FCFSShortest
from hpcsimkit.policies.placing.packing import DominantShare
from hpcsimkit.policies.placing.placements import BestFit, BreadthFirst, DepthFirst
from hpcsimkit.results.breakdown import breakdown
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.resource_metrics import busy, locality_penalty, normalised_turnaround, unusable_gpus
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.job_table import read_job_table

GB = 10**9
TWO = Machines(["gpu", "cpu"], ["cpus", "gpus", "memory"], [[4, 2, 8 * GB], [8, 0, 8 * GB]])


def test_homogeneous_nodes_have_no_resources_in_use() -> None:
    jobs = Workload({"submit_time": [0], "run_time": [10], "nodes": [1]}, machine_size=1)
    assert busy(Simulation(jobs, make("fcfs")).run(), "gpus").time.tolist() == []


@pytest.fixture
def result() -> Result:
    """Three jobs on two machines, and one that is rejected; machine ``gpu`` has 4 CPUs, 2 GPUs and 8 GB,
    machine ``cpu`` 8 CPUs and 8 GB.

    ==  ======  =====  ===  =======  ====  ====  ======
    id  submit  start  end  machine  cpus  gpus  memory
    ==  ======  =====  ===  =======  ====  ====  ======
    1        0      0   10  gpu         4     0    2 GB
    2        0     10   20  gpu         1     1    2 GB
    3        5      5   15  cpu         2     0    8 GB
    4        5      -    -              1     2    1 GB
    ==  ======  =====  ===  =======  ====  ====  ======
    """
    amounts = [[4, 0, 2 * GB], [1, 1, 2 * GB], [2, 0, 8 * GB], [1, 2, GB]]
    columns: dict[str, Any] = dict(zip(TWO.resources, np.array(amounts).T, strict=True))
    workload = Workload(
        {"submit_time": [0, 0, 5, 5], "run_time": [8, 10, 10, 9], "nodes": [1] * 4, **columns},
        resources=tuple(TWO.resources),
    )
    where = [Allocation([machine], [row]) for machine, row in zip([0, 0, 1], amounts, strict=False)]
    return Result(
        workload, "by hand", 12,
        submit_time=np.array([0, 0, 5, 5]), start_time=np.array([0, 10, 5, -1]),
        end_time=np.array([10, 20, 15, -1]), mode=np.array([1, 2, 3, 0], dtype=np.uint8),
        killed=np.zeros(4, dtype=bool), options={"service_time": "SlowStart()"},
        placements=Placements.of(TWO, [*where, None]),
    )  # fmt: skip


FIRST, SECOND, THIRD = (1 + 0 + 1 / 4) / 6, (1 / 4 + 1 / 2 + 1 / 4) / 6, (1 / 4 + 0 + 1) / 6
"""What each job adds to the mean utilisation of two machines with three resources."""

BY_HAND = {
    "utilisation": 70 / 240,
    "cpus_utilisation": (4 * 10 + 1 * 10 + 2 * 10) / (12 * 20),
    "gpus_utilisation": 10 / (2 * 20),
    "memory_utilisation": (2 * 10 + 2 * 10 + 8 * 10) / (16 * 20),
    # Until 10 no CPU is free for the two GPUs; then one GPU is free, of no use to job 4, half of the GPU jobs.
    "gpu_fragmentation": (2 * 10 + 1 * 10 / 2) / (2 * 20),
    # start 1, start 3, end 1, start 2, end 3, end 2
    "snapshot_utilisation": (FIRST + (FIRST + THIRD) + THIRD + (THIRD + SECOND) + SECOND + 0) / 6,
    "mean_ntat": (1 + 2 + 1) / 3,
    "mean_locality_penalty": 2 / 3,
    "locality_penalty_share": 2 / 28,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str, result: Result) -> None:
    assert measure(result, names=[name])[name] == pytest.approx(BY_HAND[name], rel=1e-12)


def test_trimming_by_hand(result: Result) -> None:
    values = measure(result, warmup=5)  # jobs 3 and 4; time 5 to 20
    assert values["gpus_utilisation"] == pytest.approx(10 / 30)
    assert values["gpu_fragmentation"] == pytest.approx((2 * 5 + 10 / 2) / 30)
    assert values["memory_utilisation"] == pytest.approx((2 * 5 + 2 * 10 + 8 * 10) / (16 * 15))
    snapshots = ((FIRST + THIRD) + THIRD + (THIRD + SECOND) + SECOND + 0) / 5
    assert values["snapshot_utilisation"] == pytest.approx(snapshots)
    assert (values["mean_ntat"], values["mean_locality_penalty"]) == (1, 0)


def test_over_time_by_hand(result: Result) -> None:
    curve = unusable_gpus(result)
    assert (curve.time.tolist(), curve.value.tolist()) == ([0, 10, 20], [2, 0.5, 0])
    memory = busy(result, "memory")
    expected = ([0, 5, 10, 15, 20], [2 * GB, 10 * GB, 10 * GB, 2 * GB, 0])
    assert (memory.time.tolist(), memory.value.tolist()) == expected


def test_single_jobs_by_hand(result: Result) -> None:
    assert normalised_turnaround(result).tolist() == pytest.approx([1, 2, 1, np.nan], nan_ok=True)
    assert locality_penalty(result).tolist() == pytest.approx([2, 0, 0, np.nan], nan_ok=True)
    without = dataclasses.replace(result, options={})
    assert np.isnan(locality_penalty(without)).all()
    assert np.isnan(measure(without)["locality_penalty_share"])


def test_jobs_of_no_length_count_as_one_second() -> None:
    columns = {"submit_time": [0, 0, 0], "run_time": [3, 0, 0], "nodes": [1, 1, 1]}
    ran = Simulation(Workload(columns, machine_size=1), Pipeline()).run()
    assert normalised_turnaround(ran).tolist() == [1, 4, 4]


def test_ends_of_an_instant_count_by_requested_time() -> None:
    columns = {
        "submit_time": [0, 0], "run_time": [5, 5], "requested_time": [9, 7], "nodes": [1, 1],
        "cpus": [1, 3],
    }  # fmt: skip
    workload = Workload(columns, resources=("cpus",))
    ran = Simulation(workload, Pipeline(), Machines.of(1, cpus=4)).run()
    shares = [1 / 4, 1, 1 / 4, 0]  # job 2 ends first
    assert measure(ran)["snapshot_utilisation"] == pytest.approx(np.mean(shares))


def machine_run(cluster: Machines, labels: Any = None, **columns: Any) -> Result:
    """Run jobs that are submitted at once and take 10 s each."""
    jobs = len(columns["cpus"])
    table = {"submit_time": [0] * jobs, "run_time": [10] * jobs, "nodes": [1] * jobs, **columns}
    workload = Workload(table, resources=("cpus", "gpus"), labels=labels or {})
    return Simulation(workload, Pipeline(), cluster).run()


TWINS = Machines.of(1, "a", cpus=4, gpus=2, features=["a100"]) + Machines.of(1, "b", cpus=4, gpus=2)


@pytest.mark.parametrize(
    ("columns", "useless"),
    [
        ({"cpus": [1, 1], "gpus": [0, 1]}, 0),  # both on a: one GPU is free there and two are on b
        ({"cpus": [4, 1], "gpus": [0, 1]}, 2),  # job 1 leaves no CPU of a
        ({"cpus": [1, 1], "gpus": [0, 1], "exclusive": [0, 1]}, 2),  # a is shared, b is job 2's
        ({"cpus": [1, 1], "gpus": [0, 1], "constraint": [-1, 0]}, 2),  # b is no a100
        ({"cpus": [4, 1], "gpus": [0, 1], "spread": [0, 1]}, 0),  # CPUs may be those of b
        ({"cpus": [1, 1], "gpus": [1, 2]}, 0.5),  # job 1 on a, job 2 on b: one GPU is too few for job 2
    ],
)
def test_why_gpus_are_of_no_use(columns: dict[str, Any], useless: float) -> None:
    result = machine_run(TWINS, {"constraint": ("a100",)}, **columns)
    assert result.start_time.tolist() == [0, 0]
    assert unusable_gpus(result).mean(0, 10) == useless


def test_not_defined_without_gpus_or_jobs_that_want_them() -> None:
    columns = {"cpus": [1], "gpus": [0]}
    for cluster in (Machines.of(1, cpus=4, gpus=2), Machines.of(1, cpus=4)):
        values = measure(machine_run(cluster, **columns))
        assert np.isnan(values["gpu_fragmentation"])
        assert values["cpus_utilisation"] == 0.25
        assert values["gpus_utilisation"] == pytest.approx(
            0 if "gpus" in cluster.resources else np.nan, nan_ok=True
        )
        assert np.isnan(values["memory_utilisation"])


# --- brute force -------------------------------------------------------------------------------------------


class Diary(Observer):
    """Writes down what starts and ends, in order: (time, is it an end, requested time, allocation)."""

    def on_begin(self, system: Any) -> None:
        self.entries: list[tuple[int, bool, int, Allocation]] = []

    def on_start(self, job: Any, allocation: Any, system: Any) -> None:
        self.entries.append((system.now, False, job.requested_time, allocation))

    def on_end(self, job: Any, system: Any) -> None:
        self.entries.append((system.now, True, job.requested_time, system.given(job.index)))

    def snapshots(self, capacity: Any) -> Iterator[float]:
        """The mean utilisation of the machines after each entry, ends of an instant by requested time."""
        used = np.zeros(capacity.shape)
        for (_, is_end), entries in groupby(self.entries, key=lambda entry: entry[:2]):
            for *_, allocation in sorted(entries, key=lambda entry: entry[2] * is_end):
                used[list(allocation.machines)] += allocation.amounts * (-1 if is_end else 1)
                shares = [
                    u / c if c else 0 for u, c in zip(used.flat, np.asarray(capacity).flat, strict=True)
                ]
                yield float(np.mean(shares))


@st.composite
def runs(draw: st.DrawFn) -> tuple[Result, Diary]:
    """A random run on a few machines; jobs may be spread, exclusive, on several machines, or want features."""
    row = st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 6))
    amounts = draw(st.lists(row, min_size=1, max_size=4))
    features = draw(st.lists(st.sampled_from([(), ("x",)]), min_size=len(amounts), max_size=len(amounts)))
    names = [f"m{number}" for number in range(len(amounts))]
    cluster = Machines(names, ["cpus", "gpus", "memory"], amounts, features)
    job = st.tuples(
        st.integers(0, 3), st.integers(0, 6), st.integers(1, 8), st.integers(1, 2), st.integers(0, 3),
        st.integers(0, 2), st.integers(0, 3), st.integers(0, 1), st.integers(0, 1), st.integers(-1, 0),
    )  # fmt: skip
    table = np.array(draw(st.lists(job, min_size=1, max_size=14))).T
    columns = ("gap", "run_time", "requested_time", "nodes", "cpus", "gpus", "memory", "spread", "exclusive")
    given_ = dict(zip((*columns, "constraint"), table, strict=True))
    given_["submit_time"] = np.cumsum(given_.pop("gap"))
    given_["requested_time"] = 10 + np.argsort(
        given_["requested_time"]
    )  # no two alike: ends are sorted by it
    workload = Workload(given_, resources=("cpus", "gpus", "memory"), labels={"constraint": ("x",)})
    workload = workload.without(cluster.misfits(workload), "too large")
    policies = [Pipeline(order=SJF(), fitting=True), Pipeline(backfiller=EASY(), placement=BestFit())]
    diary = Diary()
    return Simulation(workload, draw(st.sampled_from(policies)), cluster, observers=[diary]).run(), diary


@given(runs(), st.integers(0, 8), st.integers(0, 3))
def test_over_time_as_counted_second_by_second(run: tuple[Result, Diary], warmup: int, cooldown: int) -> None:
    result, _ = run
    placements, workload = result.placements, result.workload
    assert placements is not None
    cluster = placements.cluster
    if not len(workload) or warmup + cooldown > np.ptp(workload.submit_time):
        return
    first, last = int(workload.submit_time.min()), int(workload.submit_time.max())
    end = last - cooldown if cooldown else max(last, int(result.end_time.max()))
    used, useless = np.zeros(3), 0.0
    gpu_jobs = [job for job in workload.jobs if job.request is not None and job.request.amount("gpus")]
    for now in range(first + warmup, end):
        running = (result.start_time <= now) & (now < result.end_time)
        parts = running[placements.job]
        free = cluster.capacity.copy()
        np.subtract.at(free, placements.machine[parts], placements.amounts[parts])
        used += (cluster.capacity - free).sum(axis=0)
        for job in gpu_jobs:
            useless += free[~cluster.need(job).usable(free), 1].sum() / len(gpu_jobs)
    seconds = end - first - warmup
    whole = np.array(cluster.totals) * seconds
    values = measure(result, warmup=warmup, cooldown=cooldown)
    for place, name in enumerate(("cpus", "gpus", "memory")):
        expected = used[place] / whole[place] if whole[place] else np.nan
        assert values[f"{name}_utilisation"] == pytest.approx(expected, nan_ok=True)
    expected = useless / whole[1] if whole[1] and gpu_jobs else np.nan
    assert values["gpu_fragmentation"] == pytest.approx(expected, nan_ok=True, abs=1e-12)


@given(runs())
def test_snapshots_as_taken_during_the_run(run: tuple[Result, Diary]) -> None:
    result, diary = run
    assert result.placements is not None
    snapshots = list(diary.snapshots(result.placements.cluster.capacity))
    expected = np.mean(snapshots) if snapshots else np.nan
    assert measure(result)["snapshot_utilisation"] == pytest.approx(expected, nan_ok=True)


@given(runs())
def test_busy_unusable_and_usable_gpus_make_one(run: tuple[Result, Diary]) -> None:
    values = measure(run[0])
    if not np.isnan(values["gpu_fragmentation"]):
        assert 0 <= values["gpu_fragmentation"] <= 1 - values["gpus_utilisation"] + 1e-12


# --- what others computed --------------------------------------------------------------------------------

BEOCAT = {"fcfs": "fcfs", "sjf": "sjf+fitting", "oracle": "oracle-sjf+fitting", "bfbp": "bfbp"}


@pytest.mark.parametrize("algorithm", BEOCAT)
@pytest.mark.parametrize("file", ["20210603", "jobscsv", pytest.param("trainset1", marks=pytest.mark.slow)])
def test_masked_ppo_papers_metrics(file: str, algorithm: str, shared: Path) -> None:
    folder = shared / "refs" / "beocat"
    cluster = Machines.read(folder / "nine_machines.csv.gz")
    workload = read_job_table(folder / f"{file}_untied_jobs.csv.gz")
    workload = workload.without(cluster.misfits(workload), "fits no machine")
    values = measure(Simulation(workload, make(BEOCAT[algorithm]), cluster).run())
    runs = json.loads((folder / "beocat_summary.json").read_text())
    name = f"beocat_{file}_untied_jobs.csv"
    reference = next(run for run in runs if (run["input"], run["alg"]) == (name, algorithm))
    assert values["jobs"] == reference["completed"]
    assert values["mean_wait_time"] == pytest.approx(reference["avg_wait_s"], rel=1e-12)
    assert values["snapshot_utilisation"] == pytest.approx(reference["util"], rel=1e-12)


@pytest.mark.parametrize(("system", "gpus"), [("sierra", 4), ("summit", 6)])
def test_cush_papers_metrics(system: str, gpus: int, shared: Path) -> None:
    folder = shared / "refs" / "cush"
    cluster = Machines.of(128, cpus=2, gpus=gpus)
    orders = {"FCFS": FCFSShortest(), "SJF": SJF(), "DRF": DominantShare()}
    placements = {"DF": DepthFirst(), "BF": BreadthFirst()}
    jobs = rows(folder / f"cush_jobsets_{system}.csv")
    compared = 0
    for expected in rows(folder / f"cush_jobsets_{system}_summary.csv"):
        if expected["selector"] not in orders or expected["allocation"] not in placements:
            continue
        table = [row for row in jobs if row["jobset"] == expected["jobset"]]
        named = {
            "submit_time": "arrival", "run_time": "t", "cpus": "cpus", "gpus": "gpus",
            "kind": "type(0=dgemm 1=daxpy)",
        }  # fmt: skip
        columns = {column: [int(row[name]) for row in table] for column, name in named.items()}
        ones = {"nodes": [1] * len(table), "spread": [1] * len(table)}
        workload = Workload({**columns, **ones}, resources=("cpus", "gpus"))
        policy = Pipeline(
            order=orders[expected["selector"]], placement=placements[expected["allocation"]],
            fitting=True, window=5,
        )  # fmt: skip
        result = Simulation(workload, policy, cluster, service_time=LOCALITIES[system]).run()
        values = measure(result)
        assert values["mean_ntat"] == pytest.approx(float(expected["mean_NTAT"]), rel=1e-12)
        assert values["mean_wait_time"] == pytest.approx(float(expected["mean_wait"]), rel=1e-12)
        served = [float(row[f"st_{expected['allocation']}"]) - int(row["t"]) for row in table]
        assert values["mean_locality_penalty"] == pytest.approx(np.mean(served))
        assert values["gpu_fragmentation"] == 0  # what may be spread can use any GPU
        compared += 1
    assert compared == 60


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


# --- break-downs -------------------------------------------------------------------------------------------


def test_sizes_are_amounts_of_the_first_resource(result: Result) -> None:
    assert breakdown(result, "size").jobs.to_dict() == {"1": 1, "2": 1, "3-4": 1}
    assert breakdown(result, "size").area_share.tolist() == pytest.approx([10 / 70, 20 / 70, 40 / 70])


def test_jobs_without_the_first_resource_have_a_class_of_their_own() -> None:
    ran = machine_run(Machines.of(1, cpus=4, gpus=4), cpus=[0, 1], gpus=[2, 1])
    assert breakdown(ran, "size").jobs.to_dict() == {"0": 1, "1": 1}


def test_breakdown_by_gpus_and_kind(result: Result) -> None:
    table = breakdown(result, "gpus")
    assert table.jobs.to_dict() == {"without GPUs": 2, "with GPUs": 1}
    assert table.mean_wait_time.tolist() == [0, 10]
    assert breakdown(result, "kind").jobs.to_dict() == {"unknown": 3}
    columns = {**result.workload.columns, "kind": [1, 0, 1, 0]}
    labels = {"kind": ("dgemm", "daxpy")}
    kinds = Workload(columns, resources=result.workload.resources, labels=labels)
    named = breakdown(dataclasses.replace(result, workload=kinds), "kind")
    assert named.jobs.to_dict() == {"dgemm": 1, "daxpy": 2}
    assert named.mean_wait_time.tolist() == [10, 0]
