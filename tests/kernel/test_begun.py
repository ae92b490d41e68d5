"""Runs that begin with running jobs: they continue as the whole run does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Machines, Simulation, Workload, default_workload, make
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.kernel.begun import Begun, begun_at
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.results.result import Result
from tests.kernel.helpers import rows_and_size, workload
from tests.kernel.machine_helpers import asked, jobs_on_machines

MEMORYLESS = ("fcfs", "fcfs+easy", "sjf+easy", "wfp3+easy", "saf+greedy", "fcfs+conservative-replan")


def continued(whole: Result, at: int, policy: str, cluster: Any = None, **options: Any) -> Result:
    jobs, begun = begun_at(whole, at)
    size = whole.size if cluster is None else cluster
    return Simulation(jobs, make(policy), size, begun=begun, **options).run()


def rest(whole: Result, at: int) -> Any:
    return whole.start_time[whole.end_time > at].tolist()


@pytest.mark.parametrize("policy", MEMORYLESS)
@given(drawn=rows_and_size(), walltime=st.sampled_from(["run", "kill"]), data=st.data())
def test_continues_as_the_whole_run(policy: str, drawn: Any, walltime: Any, data: st.DataObject) -> None:
    whole = Simulation(workload(*drawn), make(policy), walltime=walltime).run()
    instants = sorted({*whole.start_time.tolist(), *whole.submit_time.tolist(), *whole.end_time.tolist()})
    at = data.draw(st.sampled_from(instants))
    assert continued(whole, at, policy, walltime=walltime).start_time.tolist() == rest(whole, at)


@pytest.mark.parametrize("policy", MEMORYLESS)
def test_continues_on_a_log(policy: str) -> None:
    whole = Simulation(default_workload(np.random.default_rng(1)).first(1500), make(policy)).run()
    for at in np.quantile(whole.submit_time, [0.3, 0.6, 0.9], method="lower").tolist():
        following = continued(whole, at, policy)
        assert following.start_time.tolist() == rest(whole, at)
        assert (following.wait_time >= 0).all()


@pytest.mark.parametrize("policy", ["fcfs+easy", "sjf+easy+best-fit"])
def test_continues_on_machines(policy: str) -> None:
    cluster = Machines.of(3, cpus=4, gpus=1)
    random = np.random.default_rng(5)
    jobs = jobs_on_machines(
        [
            asked(int(at), int(run), cpus=int(cpus), gpus=int(gpus))
            for at, run, cpus, gpus in zip(
                np.sort(random.integers(0, 200, 60)),
                random.integers(1, 60, 60),
                random.integers(1, 5, 60),
                random.integers(0, 2, 60),
                strict=True,
            )
        ]
    )
    whole = Simulation(jobs, make(policy), cluster).run()
    assert whole.placements is not None
    for at in (40, 120, 180):
        following = continued(whole, at, policy, cluster)
        assert following.start_time.tolist() == rest(whole, at)
        assert following.placements is not None
        left = np.flatnonzero(whole.end_time > at).tolist()
        assert following.placements.words() == [whole.placements.words()[row] for row in left]


THREE = Workload({"submit_time": [0, 5, 8], "run_time": [10, 9, 1], "nodes": [3, 4, 1]}, machine_size=4)


def test_by_hand() -> None:
    simulation = Simulation(THREE, make("fcfs+easy"), begun=Begun(6, {0: 0}))
    result = simulation.run()
    assert result.start_time.tolist() == [0, 10, 8], "the last job fits beside the first and ends at 9 s"
    assert result.end_time.tolist() == [10, 19, 9]
    assert result.options["begun"] == {"at": 6, "running": 1}
    assert simulation.another(make("fcfs")).run().start_time.tolist() == [0, 10, 19]


def test_waiting_jobs_start_at_once_where_they_can() -> None:
    result = Simulation(THREE, make("fcfs"), begun=Begun(7, {})).run()
    assert result.start_time.tolist() == [7, 17, 26]


@pytest.mark.parametrize(
    ("begun", "found"),
    [
        (Begun(6, {3: 0}), "a row below 3 is needed, found 3"),
        (Begun(6, {1: 4}), "job 2, submitted at 5 s, cannot run from 4 to 13 s and at 6 s"),
        (Begun(12, {0: 0}), "job 1, submitted at 0 s, cannot run from 0 to 10 s and at 12 s"),
        (Begun(6, {0: 0}, {1: 4}), "an allocation belongs to a running job, found one of row 1"),
    ],
)
def test_impossible_states(begun: Begun, found: str) -> None:
    with pytest.raises(UsageError, match=found):
        Simulation(THREE, make("fcfs"), begun=begun)


def test_too_many_running_jobs() -> None:
    with pytest.raises(ScheduleError, match="job 2"):
        Simulation(THREE, make("fcfs"), begun=Begun(6, {0: 0, 1: 5})).run()


def test_what_a_begun_run_does_not_know() -> None:
    begun = Begun(6, {0: 0})
    for options in (
        {"dependencies": True},
        {"event_order": DirlabOrder()},
        {"service_time": lambda job, allocation, cluster: 1.5},
    ):
        with pytest.raises(UsageError, match=r"know(s)? no"):
            Simulation(THREE, make("fcfs"), begun=begun, **options)
    parts = Partitions([Partition("a", nodes=4, default=True), Partition("b", nodes=4)])
    with pytest.raises(UsageError, match="knows no partitions"):
        Simulation(THREE, make("fcfs"), parts, begun=begun)
