"""Conservative backfilling equal, start for start, to an independent simulator that is written from the page.

Above all beside jobs that exceed their requests, which no other simulator knows: random workloads, the committed
reference (``tests/references/README.md`` says how it was made), and real logs.
"""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.policy import Inspector
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import Conservative, Pipeline
from hpcsimkit.workloads import default_workload, read_swf
from tests.kernel.helpers import workload
from tests.kernel.naive_conservative import SCORES, NaiveConservative, Row, Schedule

SIMULATORS = ["simpy", "compiled"]
REFERENCE = Path(__file__).parents[1] / "references" / "overruns_64.csv.gz"


# --- random workloads ---------------------------------------------------------------------------------------


def crowd(seed: int) -> tuple[list[Row], int]:
    """Return jobs on a few nodes: equal instants, zero-length jobs, a third that exceed their requests."""
    numbers = np.random.default_rng(seed)
    size, last, longest = numbers.integers(1, 7), numbers.choice([0, 5, 30, 60]), numbers.choice([3, 12, 40])
    rows = []
    for submit in sorted(numbers.integers(0, last + 1, numbers.integers(1, 15)).tolist()):
        run = int(numbers.integers(0, longest + 1))
        requested = int(numbers.choice([max(run, 1), run + 5, 4, 9, max(run // 2, 1)]))
        rows.append((submit, run, requested, int(numbers.integers(1, size + 1))))
    return rows, int(size)


AFTERWARDS = (10110, 10208)
"""Crowds whose schedule shows whether the plan is rebuilt in the first pass after a job exceeded its request."""


def holds(row: int, now: int) -> bool:
    """Return whether a job is held at an instant: two in five, as by chance."""
    return (row * 7 + now * 3) % 5 < 2


class Holds(Inspector):
    """Holds jobs by :func:`holds`, and records when it was asked about which job."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def __deepcopy__(self, memo: object) -> Holds:
        return self  # the run's own copy records here

    def accept(self, job: Job, system: System) -> bool:
        self.asked.append((system.now, job.index))
        return not (holds(job.index, system.now) and system.anything_ahead)


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("order", SCORES)
def test_random_workloads(order: str, simulator: str) -> None:
    exceeding = [same_as_naive(seed, order, simulator) for seed in (*range(100), *AFTERWARDS)]
    assert sum(map(bool, exceeding)) > 30


@pytest.mark.slow
@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("order", SCORES)
def test_thousands_of_random_workloads(order: str, simulator: str) -> None:
    for seed in range(1000, 4000):
        same_as_naive(seed, order, simulator)


def same_as_naive(seed: int, order: str, simulator: str) -> int:
    """Compare a run, and return the number of passes beside a job that exceeds its request."""
    rows, size = crowd(seed)
    expected = NaiveConservative(rows, size, SCORES[order]).run()
    found = Simulation(workload(rows, size), make(f"{order}+conservative"), simulator=simulator).run()
    assert found.start_time.tolist() == expected.starts, seed
    assert [Mode(mode).name.lower() for mode in found.mode.tolist()] == expected.modes, seed
    assert found.passes == len(expected.passes), seed
    return expected.exceeded


@pytest.mark.parametrize("interval", [None, 3])
@pytest.mark.parametrize("period", [1, 4])
def test_random_workloads_with_an_inspector(period: int, interval: int | None) -> None:
    """It is asked about the same jobs at the same instants, not only do the same jobs start."""
    held = exceeded = 0
    for seed in range(60):
        (rows, size), order = crowd(seed), sorted(SCORES)[seed % len(SCORES)]
        expected = NaiveConservative(rows, size, SCORES[order], holds, interval, period).run()
        inspector = Holds()
        policy = Pipeline(make(order).order, inspector, backfiller=Conservative(), max_interval=interval)
        found = Simulation(workload(rows, size), policy, period=period).run()
        assert found.start_time.tolist() == expected.starts, seed
        assert inspector.asked == expected.asked, seed
        assert found.passes == len(expected.passes), seed
        held += len(expected.asked) > len(rows)
        exceeded += expected.exceeded > 0
    assert min(held, exceeded) > 20


# --- whole workloads ----------------------------------------------------------------------------------------


def naive(jobs: Workload, mode: str, order: str = "fcfs") -> Schedule:
    """Return the schedule by the independent simulator."""
    limited = jobs.killed_at_limit if mode == "kill" else jobs
    columns = (limited.submit_time, limited.run_time, limited.requested_time, limited.nodes)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return NaiveConservative(rows, jobs.machine_size, SCORES[order]).run()


@cache
def committed() -> dict[str, np.ndarray]:
    with gzip.open(REFERENCE, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, np.array(rows, dtype=np.int64).T, strict=True))


@pytest.mark.parametrize(
    ("schedule", "simulator"),
    [
        *(("fcfs.run", simulator) for simulator in SIMULATORS),
        *(("fcfs.kill", simulator) for simulator in SIMULATORS),
        *((f"{order}.run", "compiled") for order in ("sjf", "wfp3")),
        *(pytest.param(f"{order}.run", "simpy", marks=pytest.mark.slow) for order in ("sjf", "wfp3")),
    ],
)
def test_committed_reference(schedule: str, simulator: str) -> None:
    table, (order, mode) = committed(), schedule.split(".")
    names = {"id": "job", "submit_time": "submit", "run_time": "run", "requested_time": "requested"}
    columns = {ours: table[theirs] for ours, theirs in names.items()} | {"nodes": table["nodes"]}
    jobs = Workload(columns, machine_size=64)
    assert np.count_nonzero(jobs.run_time > jobs.requested_time) > 200
    policy = make(f"{order}+conservative")
    found = Simulation(jobs, policy, walltime=mode, simulator=simulator).run().start_time
    np.testing.assert_array_equal(found, table[f"{order}+conservative.{mode}"])


LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln.swf.gz", 338),
    "HPC2N": ("HPC2N-2002-2.2-cln.swf.gz", 240),
    "LANL-CM5": ("LANL-CM5-1994-4.1-cln.swf.gz", 1024),
    "Theta": ("ALCF-Theta-2022.swf.gz", 4360),
}


def assert_as_naive(jobs: Workload, mode: str, simulators: list[str]) -> None:
    expected = naive(jobs, mode)
    assert (expected.exceeded > 0) == (mode == "run")
    for simulator in simulators:
        found = Simulation(jobs, make("fcfs+conservative"), walltime=mode, simulator=simulator).run()
        np.testing.assert_array_equal(found.start_time, expected.starts)
        assert found.passes == len(expected.passes)


@pytest.mark.parametrize(
    ("log", "mode", "simulators"),
    [("KTH-SP2", "run", SIMULATORS), ("KTH-SP2", "kill", SIMULATORS), ("LANL-CM5", "run", ["compiled"])],
)
def test_slices_of_real_logs(log: str, mode: str, simulators: list[str], shared: Path) -> None:
    """LANL-CM5's users often exceed their requests, so that it takes longer."""
    name, nodes = LOGS[log]
    jobs = read_swf(shared / "traces" / name).fitting(nodes).first(2000)
    assert_as_naive(jobs, mode, simulators)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["run", "kill"])
@pytest.mark.parametrize(
    ("log", "count"),
    [("KTH-SP2", 10**9), ("CTC-SP2", 20_000), ("HPC2N", 20_000), ("LANL-CM5", 6000), ("Theta", 8000)],
)
def test_whole_logs(log: str, count: int, mode: str, shared: Path) -> None:
    name, nodes = LOGS[log]
    jobs = read_swf(shared / "traces" / name).fitting(nodes).first(count)
    assert_as_naive(jobs, mode, SIMULATORS)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["run", "kill"])
def test_a_long_lublin_log_with_overruns(mode: str) -> None:
    rng = np.random.default_rng(23)
    jobs = default_workload(rng, jobs=10_000, nodes=256, load=0.8)
    exceeds = rng.random(len(jobs)) < 0.3
    shorter = np.maximum(jobs.run_time // rng.uniform(1, 4, len(jobs)), 60).astype(np.int64)
    requested = np.where(exceeds, shorter, jobs.requested_time)
    jobs = Workload({**jobs.columns, "requested_time": requested}, machine_size=256)
    assert_as_naive(jobs, mode, SIMULATORS)
