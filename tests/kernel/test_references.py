"""Start times equal, job for job, to schedules made by two independent simulators of real and modelled logs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.workloads import read_swf

LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
    "HPC2N": ("HPC2N-2002-2.2-cln.swf.gz", 240),
    "lublin-1": ("lublin-1.swf", 256),
    "lublin-2": ("lublin-2.swf", 256),
    "ALCF-Theta-2022": ("ALCF-Theta-2022.swf.gz", 4360),
}
SCHEDULES = {
    "KTH-SP2": (
        "fcfs.run fcfs.kill fcfs+easy.run fcfs+easy.kill fcfs+conservative.kill fcfs+greedy.run sjf+easy.run "
        "ljf+easy.run saf+easy.run laf+easy.run spf+easy.run wfp3+easy.run unicep+easy.run f1+easy.run "
        "f2+easy.run f3+easy.run f4+easy.run"
    ),
    "SDSC-SP2": "fcfs.run fcfs.kill fcfs+easy.run fcfs+easy.kill",
    "HPC2N": "fcfs+easy.run fcfs+easy.kill",
    "lublin-1": "fcfs.run fcfs+easy.run fcfs+conservative.run",
    "lublin-2": "fcfs.run fcfs+easy.run sjf+easy.run fcfs+conservative.run",
    "ALCF-Theta-2022": "fcfs.run fcfs.kill fcfs+easy.run fcfs+easy.kill",
}
FAST = ("KTH-SP2", "lublin-2")
TWINS = ("KTH-SP2.unicep+easy.run", "KTH-SP2.f2+easy.run", "KTH-SP2.f3+easy.run", "KTH-SP2.f4+easy.run")
"""Of two kinds, one of each stays: scores that change as time passes, and those of F1 to F4."""

CASES = [
    pytest.param(log, *schedule.rsplit(".", 1), id=f"{log}.{schedule}", marks=marks)
    for log, schedules in SCHEDULES.items()
    for schedule in schedules.split()
    for marks in [() if log in FAST and f"{log}.{schedule}" not in TWINS else pytest.mark.slow]
]


@cache
def load(traces: Path, log: str) -> Workload:
    name, procs = LOGS[log]
    return read_swf(traces / name).fitting(procs)


@pytest.mark.parametrize(("log", "policy", "mode"), CASES)
def test_equals_the_reference(log: str, policy: str, mode: str, shared: Path) -> None:
    jobs = load(shared / "traces", log)
    expected = np.loadtxt(
        shared / "refs" / f"{log}.{policy}.{mode}.csv.gz", dtype=np.int64, delimiter=",", skiprows=1
    )
    result = Simulation(jobs, make(policy), walltime=mode).run()
    np.testing.assert_array_equal(result.workload.id, expected[:, 0])
    np.testing.assert_array_equal(result.start_time, expected[:, 1])


@pytest.mark.slow
def test_no_reference_is_left_out(shared: Path) -> None:
    files = {path.name.removesuffix(".csv.gz") for path in (shared / "refs").glob("*.csv.gz")}
    assert files == {f"{log}.{schedule}" for log in LOGS for schedule in SCHEDULES[log].split()}


def test_mean_wait_and_slowdown_of_the_readme(shared: Path) -> None:
    """KTH fcfs+easy run: 6847.503 s and 91.5151, as the references' README gives them."""
    result = Simulation(load(shared / "traces", "KTH-SP2"), make("fcfs+easy")).run()
    assert round(float(result.wait_time.mean()), 3) == 6847.503
    assert round(float(result.bounded_slowdown().mean()), 4) == 91.5151


@pytest.mark.parametrize(
    ("logs", "mode"),
    [
        (("KTH-SP2", "lublin-2"), "run"),
        pytest.param(("KTH-SP2", "SDSC-SP2", "HPC2N"), "run", marks=pytest.mark.slow),
        pytest.param(("KTH-SP2", "SDSC-SP2", "HPC2N"), "kill", marks=pytest.mark.slow),
    ],
)
def test_logs_side_by_side_equal_their_references(logs: tuple[str, ...], mode: str, shared: Path) -> None:
    """Each log in a partition of its own: the schedules are those of the logs alone."""
    parts = []
    for number, log in enumerate(logs):
        jobs = load(shared / "traces", log)
        columns = {**jobs.columns, "partition": np.full(len(jobs), number)}
        parts.append(Workload(columns, labels={"partition": logs}))
    together = parts[0].merge(*parts[1:])
    cluster = Partitions([Partition(log, nodes=LOGS[log][1]) for log in logs])
    result = Simulation(together, make("fcfs+easy"), cluster, walltime=mode).run()
    for number, log in enumerate(logs):
        expected = np.loadtxt(
            shared / "refs" / f"{log}.fcfs+easy.{mode}.csv.gz", dtype=np.int64, delimiter=",", skiprows=1
        )
        assert np.array_equal(result.start_time[together.partition == number], expected[:, 1]), log
