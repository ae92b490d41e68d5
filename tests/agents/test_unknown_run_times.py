"""No encoder shows the true run times of jobs that have not ended: neither how long they run, nor how long still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hpcsimkit import EASY, FCFS, External, Machines, Pipeline, Simulation, Workload
from hpcsimkit.agents.catalogue import ENCODERS
from hpcsimkit.agents.spaces.seat_encoders import Flat
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.envs.interfaces import Encoder
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import BestFit, HoleTests
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers

NODES, MACHINES = 4, Machines.of(4, cpus=4, gpus=2, memory="16 B")

BEGUN = Begun(50, {0: 0, 1: 5})
"""Two jobs run, four wait. All of them have a long time to run, whatever it is."""

RUN_TIMES = [(100, 100, 100, 100, 100, 100), (299, 60, 170, 51, 299, 3), (55, 290, 1, 199, 2, 250)]
"""Run times [s] by which the workloads differ, and by nothing else."""


def jobs(run_time: Sequence[int], nodes: Sequence[int]) -> Workload:
    columns: dict[str, Any] = {
        "submit_time": [0, 0, 10, 20, 30, 40], "run_time": run_time, "requested_time": [300, 300, 300, 200, 300, 300],
        "nodes": nodes, "cpus": [3] * 6, "gpus": [1] * 6, "memory": [8] * 6, "user": [1, 2, 1, 2, 1, 2],
        "queue": [0, 0, 1, 1, 1, 1], "kind": [0, 1, 0, 1, 0, 1],
    }  # fmt: skip
    return Workload(columns, machine_size=4, resources=("cpus", "gpus", "memory"))


class Idle(EASY):
    """A backfiller that leaves all jobs to the tester."""

    def fill(self, head: Job, system: System) -> tuple[Job, ...]:
        return ()


ORDER = Pipeline(order=External(), backfiller=EASY(), window=4)
SEATS: dict[str, tuple[Policy, AnyCluster | int]] = {
    "order": (ORDER, NODES),
    "order on machines": (ORDER, MACHINES),
    "inspector": (Pipeline(FCFS(), inspector=External(), backfiller=EASY()), NODES),
    "gate": (Pipeline(FCFS(), gate=External(), backfiller=EASY()), NODES),
    "placement": (Pipeline(FCFS(), placement=External(base=BestFit())), MACHINES),
    "backfiller": (Pipeline(FCFS(), backfiller=External(base=EASY())), NODES),
    "tester": (Pipeline(FCFS(), backfiller=Idle(), tester=External(HoleTests(5))), NODES),
    "preemptor": (Pipeline(FCFS(), preemptor=External(PreemptLowerTiers())), NODES),
    "dispatch": (Dispatch(External(), slots=4), MACHINES),
    "two-level": (TwoLevel(External(), window=4), NODES),
}

SEEN: dict[str, tuple[str, dict[str, Any]]] = {
    "Candidates": ("backfiller", {"slots": 4}),
    "ClusterImage": ("order on machines", {"nodes": 4, "units": (4, 2, 16)}),
    "ExpectedFree": ("order on machines", {"steps": 4, "step": 20, "resources": 3}),
    "InspectorFeatures": ("inspector", {}),
    "JobAndHole": ("tester", {}),
    "JobKind": ("placement", {}),
    "JobMachinePairs": ("dispatch", {"slots": 4, "machines": 4, "resources": 3}),
    "JobsAhead": ("order", {"slots": 4}),
    "JobsInContext": ("order on machines", {"slots": 4}),
    "JobsAndNodes": ("two-level", {"slots": 4, "nodes": 4}),
    "MachineRows": ("dispatch", {"machines": 4, "resources": 3}),
    "OneJob": ("gate", {}),
    "PairProspects": ("dispatch", {"slots": 4, "machines": 4, "resources": 3}),
    "Places": ("placement", {"slots": 4}),
    "QueueWindow": ("order", {"slots": 4}),
    "RequestsAndMachines": ("dispatch", {"slots": 4, "machines": 4}),
    "RunningJobs": ("preemptor", {"slots": 4}),
    "StartOrHold": ("order on machines", {"slots": 4}),
    "WaitingJobs": ("order", {"slots": 4}),
    "WholeState": ("inspector", {"jobs": 4}),
}
"""A seat and the parameters of each encoder."""


def seen(encoder: Encoder, seat: str, run_time: Sequence[int]) -> list[float]:
    """Return the observation at the first decision of a seat."""
    policy, cluster = SEATS[seat]
    nodes = [1] * 6 if cluster is MACHINES else [2, 1, 3, 1, 1, 1]
    simulation = Simulation(jobs(run_time, nodes), policy, cluster, begun=BEGUN)
    decision, out = simulation.next_decision(), np.zeros(encoder.shape, dtype=np.float32)
    assert decision is not None and decision.system.now == 50 and len(decision.system.running) >= 2
    encoder.bind(decision.system)(decision, out)
    return out.ravel().tolist()


def test_all_encoders_have_a_seat() -> None:
    assert sorted(SEEN) == sorted(ENCODERS)


@pytest.mark.parametrize("name", sorted(SEEN))
def test_true_run_times_are_not_shown(name: str) -> None:
    seat, parameters = SEEN[name]
    for encoder in (plain := ENCODERS.named(name)(**parameters), Flat(plain)):
        first, *others = (seen(encoder, seat, run_time) for run_time in RUN_TIMES)
        assert any(first), f"{encoder!r} shows nothing"
        assert all(other == first for other in others), encoder
