"""Restart = continue: each reference schedule, begun at three of its busiest instants, remains the same.

Conservative backfilling is left out: its plan is a memory, which a snapshot keeps and a begun run does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import begun_at, begun_in
from hpcsimkit.kernel.simulation import Simulation
from tests.kernel.test_references import CASES, load
from tests.kernel.test_small_references import COUNTED, FOLDER, columns, jobs_of, jobs_on_gpus, schedules

Starts = np.ndarray[Any, np.dtype[np.int64]]

MEMORYLESS = [case for case in schedules(*COUNTED) if "conservative" not in case[1]]
ON_MACHINES = [case for case in schedules("gpu_cluster") if "conservative" not in case[1]]
OF_LOGS = [
    pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
    for case in CASES
    if "conservative" not in str(case.values[1])
]


def busiest(jobs: Workload, starts: Starts, count: int = 3) -> list[int]:
    """Instants at which most jobs wait, of different thirds of the log."""
    times = np.unique(jobs.submit_time)
    waiting = np.searchsorted(jobs.submit_time[jobs.arrival_order], times, side="right") - np.searchsorted(
        np.sort(starts), times, side="right"
    )
    thirds = np.array_split(np.arange(len(times)), count)
    return [int(times[third[waiting[third].argmax()]]) for third in thirds]


def assert_continues(
    jobs: Workload, policy: str, mode: str, starts: Starts, cluster: Machines | None = None
) -> None:
    whole = Simulation(jobs, make(policy), cluster, walltime=mode).run()
    np.testing.assert_array_equal(whole.start_time, starts)
    for at in busiest(jobs, starts):
        remaining, begun = begun_at(whole, at)
        result = Simulation(remaining, make(policy), cluster, walltime=mode, begun=begun).run()
        np.testing.assert_array_equal(result.start_time, starts[whole.end_time > at], f"{policy} from {at} s")
        result = Simulation(jobs, make(policy), cluster, walltime=mode, begun=begun_in(whole, at)).run()
        np.testing.assert_array_equal(result.start_time, starts, f"{policy} from {at} s, with its past")


@pytest.mark.parametrize(("name", "policy", "mode"), MEMORYLESS)
def test_restart_is_continue(name: str, policy: str, mode: str) -> None:
    jobs = Workload(jobs_of(name, "nodes"), machine_size=COUNTED[name])
    assert_continues(jobs, policy, mode, columns(name)[f"{policy}.{mode}"])


@pytest.mark.parametrize(("name", "policy", "mode"), ON_MACHINES)
def test_restart_is_continue_on_machines(name: str, policy: str, mode: str) -> None:
    cluster = Machines.read(FOLDER / "machines.csv")
    assert_continues(jobs_on_gpus(name), policy, mode, columns(name)[f"{policy}.{mode}"], cluster)


@pytest.mark.parametrize(("log", "policy", "mode"), OF_LOGS)
def test_restart_is_continue_on_logs(log: str, policy: str, mode: str, shared: Path) -> None:
    file = shared / "refs" / f"{log}.{policy}.{mode}.csv.gz"
    expected = np.loadtxt(file, dtype=np.int64, delimiter=",", skiprows=1)
    assert_continues(load(shared / "traces", log), policy, mode, expected[:, 1])
