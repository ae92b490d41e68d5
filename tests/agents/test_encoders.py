"""Encoders: every number of an observation worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Machines, Pipeline, Simulation, Workload
from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.machine_encoders import ExpectedFree, JobMachinePairs, MachineRows
from hpcsimkit.envs.interfaces import Encoder
from hpcsimkit.errors import UsageError
from hpcsimkit.policies.one_seat.dispatch import Dispatch

CLUSTER = Machines.of(1, cpus=8, memory="64 GB") + Machines.of(1, "gpu", cpus=4, gpus=2, memory="32 GB")
JOBS = Workload(
    {
        "submit_time": [0, 10, 20], "run_time": [100, 50, 50], "requested_time": [200, 60, 50],
        "nodes": [1, 1, 1], "cpus": [8, 2, 4], "gpus": [0, 1, 0],
        "memory": [16 * 10**9, 8 * 10**9, 32 * 10**9],
    },
    resources=("cpus", "gpus", "memory"),
)  # fmt: skip
NODES = Workload(
    {
        "submit_time": [0, 0, 30],
        "run_time": [100, 100, 5],
        "requested_time": [40, 100, 5],
        "nodes": [3, 2, 4],
    },
    machine_size=6,
)


def seen(encoder: Encoder, simulation: Simulation, decisions: int) -> Any:
    """Answer some decisions with the first option; returns what is seen at the next."""
    for _ in range(decisions):
        assert simulation.next_decision() is not None
        simulation.answer_position(0)
    decision = simulation.next_decision()
    assert decision is not None
    out = np.zeros(encoder.shape, dtype=np.float32)
    encoder.bind(simulation.system)(decision, out)
    return out


def dispatching() -> Simulation:
    return Simulation(JOBS, Dispatch(External(), slots=2), CLUSTER)


def test_requests_and_machines() -> None:
    # At t=10, job 1 runs on the first machine.
    observation = seen(RequestsAndMachines(2, 2), dispatching(), 1)
    assert observation[:8].tolist() == [8e6, 2, 1, 60, 0, 0, 0, 0]
    assert observation[8:].tolist() == [48e6, 0, 0, 32e6, 4, 2]


def test_machine_rows() -> None:
    rows = seen(MachineRows(2, 3), dispatching(), 1)
    assert rows[:, :3] == pytest.approx(np.array([[0, 0, 48 / 64], [1, 1, 1]]))
    assert rows[:, 3:] == pytest.approx(np.array([[1, 0, 1], [0.5, 1, 0.5]]))


def test_pairs_of_jobs_and_machines() -> None:
    pairs = seen(JobMachinePairs(2, 2, 3, time_scale=10), dispatching(), 1).reshape(2, 2, 10)
    assert not pairs[1].any()
    assert pairs[0, :, :7] == pytest.approx(
        np.array([[1, 0, 0, 6, 0.25, 0.5, 0.125], [1, 1, 0, 6, 0.25, 0.5, 0.125]])
    )
    assert pairs[0, 0, 7:].tolist() == [0, 0, 0]
    assert pairs[0, 1, 7:] == pytest.approx([0.5, 0.5, 0.75])


def test_the_wait_in_pairs() -> None:
    # Job 2 runs on the second machine from t=10; job 3 came at 20, waits until 60, when job 2 has ended.
    pairs = seen(JobMachinePairs(2, 2, 3, time_scale=10), dispatching(), 2).reshape(2, 2, 10)
    assert pairs[0, :, 1].tolist() == [0, 1]
    assert pairs[0, 1, 2:4] == pytest.approx([4, 5])


def test_what_is_expected_to_be_free() -> None:
    # At t=0 jobs of 3 and 2 nodes start, expected to end at 40 and 100. At t=30 the third is blocked.
    simulation = Simulation(NODES, Pipeline(order=External()))
    free = seen(ExpectedFree(steps=5, step=20), simulation, 2)
    assert simulation.system.now == 30
    assert free[:, 0] == pytest.approx(np.array([1, 4, 4, 4, 6]) / 6)


def test_a_job_past_its_estimate_is_expected_to_end_at_once() -> None:
    # The first job was expected to end at 40 and still runs at 50: now one second later.
    late = Workload({**NODES.columns, "submit_time": [0, 0, 50]}, machine_size=6)
    simulation = Simulation(late, Pipeline(order=External()))
    free = seen(ExpectedFree(steps=2, step=1), simulation, 2)
    assert simulation.system.now == 50
    assert free[:, 0] == pytest.approx([1 / 6, 4 / 6])


def test_expected_free_on_machines() -> None:
    free = seen(ExpectedFree(steps=2, step=190, resources=3), dispatching(), 1)
    assert free == pytest.approx(np.array([[4 / 12, 1, 80 / 96], [1, 1, 1]]))


def test_the_queue_window() -> None:
    simulation = Simulation(NODES, Pipeline(order=External(), window=3))
    rows = seen(QueueWindow(3, time_scale=10), simulation, 1)
    # The first job runs; the second, of 2 nodes, is asked about at once.
    assert rows[0] == pytest.approx([1, 10, 2 / 6, 0, 1])
    assert not rows[1:3].any()
    assert rows[3] == pytest.approx([0.5, 1 / 3, 1 / 3, 0, 0])


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            MachineRows(3, 3),
            r"MachineRows\(machines=3, resources=3\) needs 3 machines with 3 resources, found Mach",
        ),
        (JobMachinePairs(2, 2, 2), "needs 2 machines with 2 resources, found Machines"),
        (ExpectedFree(2, 1), "needs 2 machines with 1 resources, found Machines"),
        (RequestsAndMachines(2, 3), "needs 3 machines, found Machines"),
    ],
)
def test_encoders_of_other_clusters(encoder: Encoder, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        seen(encoder, dispatching(), 0)
