"""Causes of waits: each by a schedule in which it alone applies, and free requests second by second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Machines, Simulation, Workload, make
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.gate import Gate, Held
from hpcsimkit.kernel.job_gates import Licenses
from hpcsimkit.kernel.system import System
from hpcsimkit.results.compared_use import ComparedUse
from hpcsimkit.results.room_over_time import RoomOverTime
from hpcsimkit.results.validation import Validation
from hpcsimkit.results.wait_causes import CAUSES, WaitCauses, cause_of
from tests.drawn import examples


def causes(
    cluster: Any = 4,
    policy: str = "fcfs",
    labels: dict[str, tuple[str, ...]] | None = None,
    options: dict[str, Any] | None = None,
    **columns: Any,
) -> WaitCauses:
    columns.setdefault("recorded_wait_time", [0] * len(columns["submit_time"]))
    resources = ("cpus",) if "cpus" in columns else ()
    log = Workload(columns, machine_size=4, labels=labels or {}, resources=resources)
    result = Simulation(log, make(policy), cluster, simulator="simpy", **(options or {})).run()
    return WaitCauses(Validation(result), None if isinstance(cluster, int) else cluster)


def sums(found: WaitCauses, which: str, by: str = "all", group: str = "all jobs") -> dict[str, float]:
    """Return the seconds of all jobs of a group by cause."""
    table = found.table[(found.table["by"] == by) & (found.table["group"] == group)]
    seconds = table[which] * table["jobs"]
    return {cause: round(value, 6) for cause, value in zip(table["cause"], seconds, strict=True) if value}


def test_resources_and_priority_on_counted_nodes() -> None:
    """Job 2 lacks a node until 90; job 3 would fit beside job 1, and then beside job 2."""
    found = causes(
        submit_time=[0, 0, 1], run_time=[90, 50, 9], nodes=[2, 3, 1], recorded_wait_time=[0, 90, 139]
    )
    assert sums(found, "simulated") == {"resources": 90, "priority": 89}
    assert sums(found, "recorded") == {"resources": 90, "priority": 139}


def test_the_machines_on_which_a_job_fits_count_and_not_totals() -> None:
    """Two machines have two free CPUs each: job 3 needs three on one of them, until 50 on record."""
    columns: dict[str, Any] = {
        "submit_time": [0, 0, 10], "run_time": [90, 50, 9], "nodes": [1, 1, 1], "cpus": [2, 2, 3],
        "recorded_wait_time": [0, 0, 60],
    }  # fmt: skip
    lists = {"node_list": ("node1", "node2")}
    known = causes(Machines.of(2, cpus=4), "fcfs+worst-fit", lists, **columns, node_list=[0, 1, 1])
    assert sums(known, "recorded") == {"resources": 40, "priority": 20}
    assert sums(known, "simulated") == {"resources": 40}
    unknown = causes(Machines.of(2, cpus=4), "fcfs", **columns)
    assert sums(unknown, "recorded") == {"priority": 60}
    hardly = causes(Machines.of(2, cpus=4), "fcfs", lists, **columns, node_list=[0, 1, -1])
    assert sums(hardly, "recorded") == {"priority": 60}


def test_machines_without_a_feature_are_no_room() -> None:
    """The second machine is idle, but only the first one is fast."""
    machines = Machines.of(1, "fast", cpus=4, features=["fast"]) + Machines.of(1, cpus=4)
    columns: dict[str, Any] = {
        "submit_time": [0, 5], "run_time": [40, 9], "nodes": [1, 1], "cpus": [4, 1], "constraint": [0, 0],
        "recorded_wait_time": [0, 50], "node_list": [0, 0],
    }  # fmt: skip
    found = causes(machines, "fcfs", {"constraint": ("fast",), "node_list": ("fast1",)}, **columns)
    assert sums(found, "recorded") == {"resources": 35, "priority": 15}


def test_machines_that_are_out_of_order() -> None:
    """The second machine is gone from 10 to 60; on record, job 2 waits for 50 s more than it needs to."""
    columns: dict[str, Any] = {
        "submit_time": [0, 20], "run_time": [90, 9], "nodes": [1, 1], "cpus": [4, 4],
        "recorded_wait_time": [0, 90], "node_list": [0, 1],
    }  # fmt: skip
    options = {"outages": Outages([Outage(10, 60, machines=("node2",))])}
    found = causes(Machines.of(2, cpus=4), "fcfs", {"node_list": ("node1", "node2")}, options, **columns)
    assert sums(found, "recorded") == {"nodes down": 40, "priority": 50}
    assert sums(found, "simulated") == {"nodes down": 40}


def test_whole_machines_need_all_of_a_machine() -> None:
    columns: dict[str, Any] = {
        "submit_time": [0, 5], "run_time": [40, 9], "nodes": [1, 1], "cpus": [1, 1], "exclusive": [-1, 1],
        "recorded_wait_time": [0, 50], "node_list": [0, 0],
    }  # fmt: skip
    found = causes(Machines.of(1, cpus=4), "fcfs", {"node_list": ("node1",)}, **columns)
    assert sums(found, "recorded") == {"resources": 35, "priority": 15}


def test_pooled_requests_are_free_in_sum() -> None:
    """Three CPUs are free on two machines until 40, then all eight."""
    columns: dict[str, Any] = {
        "submit_time": [0, 0, 5], "run_time": [40, 60, 9], "nodes": [1, 1, 1], "cpus": [3, 2, 6],
        "spread": [-1, -1, 1], "recorded_wait_time": [0, 0, 55], "node_list": [0, 1, -1],
    }  # fmt: skip
    jobs = {name: values * 20 if name != "submit_time" else values for name, values in columns.items()}
    jobs["submit_time"] = [each + 1000 * number for number in range(20) for each in columns["submit_time"]]
    jobs["node_list"] = [0, 1, -1] + [0, 1, 0] * 19
    jobs["spread"], jobs["cpus"] = [-1, -1, 1] + [-1] * 57, [3, 2, 6] + [1, 1, 1] * 19
    jobs["recorded_wait_time"] = [0, 0, 55] + [0] * 57
    found = causes(Machines.of(2, cpus=4), "fcfs", {"node_list": ("node1", "node2")}, **jobs)
    assert sums(found, "recorded") == {"resources": 35, "priority": 20}


def test_each_partition_has_its_own_machines() -> None:
    """The machine of `b` is idle, but job 2 may only use that of `a`."""
    cluster = Partitions(
        [Partition("a", machines=["node1"]), Partition("b", machines=["node2"])],
        machines=Machines.of(2, cpus=4),
    )
    columns: dict[str, Any] = {
        "submit_time": [0, 5, 7], "run_time": [40, 9, 5], "nodes": [1, 1, 1], "cpus": [4, 1, 1],
        "partition": [0, 0, 1], "recorded_wait_time": [0, 50, 8], "node_list": [0, 0, 1],
    }  # fmt: skip
    labels = {"partition": ("a", "b"), "node_list": ("node1", "node2")}
    found = causes(cluster, "fcfs", labels, **columns)
    assert sums(found, "recorded") == {"resources": 35, "priority": 23}
    assert sums(found, "recorded", "partition", "b") == {"priority": 8}
    assert sums(found, "simulated") == {"resources": 35}


def test_nodes_that_are_out_of_order() -> None:
    """From 10 to 60, two of four nodes are gone; job 2 lacks them from 20 on, job 3 would lack one anyway."""
    options = {"outages": Outages([Outage(10, 60, nodes=2)])}
    found = causes(
        submit_time=[0, 20, 30],
        run_time=[90, 10, 5],
        nodes=[1, 3, 4],
        recorded_wait_time=[0, 50, 60],
        options=options,
    )
    assert sums(found, "recorded") == {"nodes down": 40, "priority": 10, "resources": 60}
    assert sums(found, "simulated") == {"nodes down": 40, "resources": 60}


def test_reasons_of_the_log_and_of_gates() -> None:
    """On record, the last reason takes the whole wait; job 3 waits for the licence, and then behind job 2."""
    columns: dict[str, Any] = {
        "submit_time": [0, 0, 5, 6], "run_time": [30, 40, 9, 1], "nodes": [1, 3, 1, 1],
        "recorded_wait_time": [0, 0, 50, 7], "licenses": [0, -1, 0, -1],
        "recorded_reason": [-1, -1, 0, 1], "recorded_held_time": [0, 3, 2, 4],
    }  # fmt: skip
    labels = {"licenses": ("a",), "recorded_reason": ("AssocGrpCpuLimit", "Dependency")}
    found = causes(4, "fcfs", labels, {"gates": (Licenses({"a": 1}),)}, **columns)
    given = {"not eligible": 5, "dependencies": 4}
    assert sums(found, "recorded") == {"not eligible": 5, "limits": 50, "dependencies": 11}
    assert sums(found, "simulated") == {**given, "licences": 25, "resources": 33}
    assert list(found.table["cause"].head(4)) == [
        "not eligible",
        "dependencies",
        "licences",
        "limits",
    ]


def test_a_reason_of_a_gate_of_the_user_is_a_limit() -> None:
    class Quota(Gate):
        def holds(self, job: Job, system: System) -> Held | None:
            return Held("Quota", until=7) if system.now < 7 else None

    columns: dict[str, Any] = {"submit_time": [0, 0], "run_time": [9, 9], "nodes": [4, 1]}
    found = causes(4, "fcfs", None, {"gates": (Quota(),)}, **columns)
    assert sums(found, "simulated") == {"limits": 14, "resources": 9}
    for group, seconds in (("3-4", {"limits": 7}), ("1", {"limits": 7, "resources": 9})):
        assert sums(found, "simulated", "size", group) == seconds


def test_what_the_log_states_of_loops_and_priorities() -> None:
    """Job 3 was started before job 2, which had a higher priority; job 4 has none on record."""
    columns: dict[str, Any] = {
        "submit_time": [0, 0, 2, 3, 4], "run_time": [30, 40, 9, 9, 9], "nodes": [1, 4, 1, 1, 1],
        "recorded_wait_time": [0, 30, 1, 7, 26], "recorded_backfilled": [0, 0, 1, -1, 0],
        "recorded_priority": [5, 9, 8, -1, 7],
    }  # fmt: skip
    assert list(causes(**columns).sentences()) == [
        "backfill started 20% of the jobs on record, with 2% of their wait",
        "25% of the jobs on record started before a job with a higher priority",
    ]
    assert list(causes(submit_time=[0], run_time=[1], nodes=[1]).sentences()) == []


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("QOSGrpGRES", "limits"), ("AssocMaxJobsLimit", "limits"), ("PartitionTimeLimit", "limits"),
        ("PartitionDown", "nodes down"), ("ReqNodeNotAvail, UnavailableNodes:c3", "nodes down"),
        ("DependencyNeverSatisfied", "dependencies"), ("JobHeldAdmin", "begin time or hold"),
        ("JobArrayTaskLimit", "array limit"), ("Priority", "priority"), ("Resources", "resources"), ("Cleaning", ""),
    ],
)  # fmt: skip
def test_reasons(reason: str, cause: str) -> None:
    assert cause_of(reason) == cause
    assert not cause or cause in CAUSES


@given(st.data())
@examples(0.5)
def test_free_requests_are_those_of_each_second(data: st.DataObject) -> None:
    """On machines whose jobs are all known, and with the schedule that a simulation makes."""
    count = data.draw(st.integers(2, 8))
    numbers = st.integers(0, 12)
    jobs = [
        {
            "submit_time": data.draw(numbers), "run_time": data.draw(st.integers(0, 9)), "cpus": data.draw(st.integers(1, 4)),
            "nodes": data.draw(st.integers(1, 2)), "exclusive": data.draw(st.sampled_from([-1, -1, 1])),
        }
        for _ in range(count)
    ]  # fmt: skip
    columns: dict[str, Any] = {name: [job[name] for job in jobs] for name in jobs[0]}
    cluster = Machines.of(2, cpus=4)
    log = Workload(columns, resources=("cpus",))
    made = Simulation(log, make("fcfs+easy"), cluster, simulator="simpy").run()
    assert made.placements is not None
    lists = tuple(dict.fromkeys(word.replace(" ", ",") for word in made.placements.words()))
    of_job = [lists.index(word.replace(" ", ",")) for word in made.placements.words()]
    wait = made.start_time - made.submit_time
    log = Workload(
        {**columns, "recorded_wait_time": wait, "node_list": of_job},
        resources=("cpus",),
        labels={"node_list": lists},
    )
    result = Simulation(log, make("fcfs"), cluster, simulator="simpy").run()
    room = RoomOverTime(ComparedUse(Validation(result), cluster))
    for which, schedule in (("recorded", made), ("simulated", result)):
        rows = np.arange(count)
        found = room.seconds(which, rows, result.submit_time, schedule.start_time)
        for row in rows.tolist():
            times = range(int(result.submit_time[row]), int(schedule.start_time[row]))
            assert found[row] == sum(_fits(jobs[row], schedule, jobs, time) for time in times)


def _fits(job: dict[str, int], schedule: Any, jobs: list[dict[str, int]], time: int) -> bool:
    free = [4, 4]
    for row, other in enumerate(jobs):
        if schedule.start_time[row] <= time < schedule.end_time[row]:
            for machine in schedule.placements.allocation(row).machines:
                free[machine] -= 4 if other["exclusive"] == 1 else other["cpus"]
    needed = 4 if job["exclusive"] == 1 else job["cpus"]
    return sum(each >= needed for each in free) >= job["nodes"]
