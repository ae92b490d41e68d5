"""Start times equal to those of AccaSim and pybatsim, on workloads that the repository carries.

``tests/references/README.md`` says how they were made. Larger ones, of real logs: ``test_references.py``.
"""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.simulation import Simulation

FOLDER = Path(__file__).parents[1] / "references"
COUNTED = {"lublin_256": 256, "rounded_64": 64}
GB = 10**9


@cache
def columns(name: str) -> dict[str, np.ndarray]:
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, np.array(rows, dtype=np.int64).T, strict=True))


def schedules(*names: str) -> list[tuple[str, str, str]]:
    return [(name, *label.rsplit(".", 1)) for name in names for label in columns(name) if "." in label]


def jobs_of(name: str, *requests: str) -> dict[str, np.ndarray]:
    table = columns(name)
    times = {"submit_time": "submit", "run_time": "run", "requested_time": "requested"}
    return {"id": table["job"], **{ours: table[theirs] for ours, theirs in times.items()}} | {
        request: table[request] for request in requests
    }


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "policy", "mode"), schedules(*COUNTED))
def test_counted_nodes(name: str, policy: str, mode: str) -> None:
    jobs = Workload(jobs_of(name, "nodes"), machine_size=COUNTED[name])
    found = Simulation(jobs, make(policy), walltime=mode).run().start_time
    np.testing.assert_array_equal(found, columns(name)[f"{policy}.{mode}"])


@pytest.mark.parametrize("policy", ["fcfs", "sjf+easy", "fcfs+conservative", "sjf+greedy"])
def test_one_machine_of_so_many_cpus(policy: str) -> None:
    jobs = Workload(jobs_of("rounded_64", "nodes"), machine_size=64)
    mode = "kill" if f"{policy}.kill" in columns("rounded_64") else "run"
    found = Simulation(jobs, make(policy), cluster=Machines.of(1, cpus=64), walltime=mode).run().start_time
    np.testing.assert_array_equal(found, columns("rounded_64")[f"{policy}.{mode}"])


def jobs_on_gpus(name: str) -> Workload:
    table = jobs_of(name, "cpus", "gpus", "memory")
    table |= {"memory": table["memory"] * GB, "nodes": np.ones_like(table["cpus"])}
    return Workload(table, resources=("cpus", "gpus", "memory"))


@pytest.mark.parametrize(("name", "policy", "mode"), schedules("gpu_cluster"))
def test_machines_with_cpus_gpus_and_memory(name: str, policy: str, mode: str) -> None:
    found = Simulation(
        jobs_on_gpus(name), make(policy), cluster=Machines.read(FOLDER / "machines.csv"), walltime=mode
    ).run()
    np.testing.assert_array_equal(found.start_time, columns(name)[f"{policy}.{mode}"])


def test_policies_differ_on_these_workloads() -> None:
    """Schedules that were all the same would show nothing."""
    for name in (*COUNTED, "gpu_cluster"):
        starts = [tuple(values) for label, values in columns(name).items() if "." in label]
        assert len(set(starts)) == len(starts)
