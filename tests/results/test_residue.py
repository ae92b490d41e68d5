"""Residue: each cause by a schedule in which it alone applies, and amounts by hand."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit import Machines, Pipeline, Simulation, Workload, make
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.policies import EASY
from hpcsimkit.results.recorded_nodes import RecordedNodes
from hpcsimkit.results.residue import DAY, Residue
from hpcsimkit.results.validation import Validation


def residue(cluster: Any = 4, notes: dict[str, int] | None = None, **columns: Any) -> Residue:
    workload = Workload(
        columns,
        machine_size=4,
        labels={"partition": ("a", "b")},
        resources=("cpus",) if "cpus" in columns else (),
        notes=notes or {},
    )
    result = Simulation(workload, Pipeline(backfiller=EASY()), cluster).run()
    return Residue(Validation(result), None if isinstance(cluster, int) else cluster)


def shares(found: Residue) -> dict[str, float]:
    table = found.table.set_index("cause")
    assert table.share.sum() == pytest.approx(1)
    return {cause: share for cause, share in table.share.items() if share}


def test_room_on_record() -> None:
    """Job 2 needs 2 nodes at 10; on record it starts at 3000, though 2 are free for 1000 s from 2000 on."""
    found = residue(
        submit_time=[0, 0, 10],
        run_time=[2000, 4000, 900],
        nodes=[2, 2, 2],
        recorded_wait_time=[0, 0, 2990],
    )
    assert shares(found) == {"room": 1}
    assert next(found.sentences()) == (
        "the simulation starts jobs too early for 100% of the error, too late for 0%"
    )


def test_no_room_on_record_is_unexplained() -> None:
    """On record, the second job waits for the first without need, and the third for the second."""
    found = residue(
        submit_time=[0, 0, 10],
        run_time=[2000, 2000, 900],
        nodes=[2, 2, 4],
        recorded_wait_time=[0, 2000, 3990],
    )
    assert shares(found) == pytest.approx({"room": 0.5, "unexplained": 0.5})


def test_another_order() -> None:
    """On record the later of two equal jobs starts first."""
    found = residue(
        submit_time=[0, 10, 20], run_time=[2000] * 3, nodes=[4] * 3, recorded_wait_time=[0, 3990, 1980]
    )
    assert found.validation.error.tolist() == [0, -2000, 2000]
    assert shares(found) == {"order": 1}
    assert found.table.set_index("cause").jobs["order"] == 2


def test_more_in_use_than_there_is() -> None:
    """On record, both jobs run at once on 4 of 4 nodes."""
    found = residue(submit_time=[0, 10], run_time=[2000] * 2, nodes=[4] * 2, recorded_wait_time=[0, 0])
    assert shares(found) == {"beyond": 1}


def test_never_so_much_in_use() -> None:
    """On record, the second job waits until the first has ended, as on 2 nodes."""
    columns = {"submit_time": [0, 10], "run_time": [2000] * 2, "nodes": [2] * 2}
    found = residue(**columns, recorded_wait_time=[0, 1990])
    assert found._above.tolist() == [False, True]
    assert shares(found) == {"room": 1}  # which comes first


@pytest.mark.parametrize(
    ("last", "causes"), [(7 * DAY, {"beginning": 0.5, "room": 0.5}), (7 * DAY - 1, {"room": 1})]
)
def test_the_first_day_of_a_long_log(last: int, causes: dict[str, float]) -> None:
    found = residue(submit_time=[0, last], run_time=[10, 10], nodes=[1, 1], recorded_wait_time=[5000, 5000])
    assert shares(found) == causes


def test_partitions_that_share_machines_are_looked_at_together() -> None:
    """Partitions a and b share m1, c has m3 alone: in a, there is room only where b does not run."""
    machines = Machines(["m1", "m2", "m3"], ["cpus"], [[2], [2], [2]])
    parts = [Partition("b", machines=["m1"]), Partition("a", machines=["m1", "m2"])]
    columns: dict[str, Any] = {
        "submit_time": [0, 0, 10],
        "run_time": [3000] * 3,
        "nodes": [1] * 3,
        "cpus": [2] * 3,
        "partition": [1, 0, 0],
        "recorded_wait_time": [0, 0, 2990],
    }
    found = residue(Partitions([*parts, Partition("c", machines=["m3"])], machines), **columns)
    assert sorted(amounts for _, amounts in found.use.groups) == [[2], [4]]
    assert not found.validation.error.any()  # what is simulated is what is recorded
    columns["recorded_wait_time"] = [0, 0, 6000]
    assert shares(residue(Partitions(parts, machines), **columns)) == {"room": 1}


def test_what_the_log_says_of_its_waits() -> None:
    found = residue(
        notes={"eligible after submission (dependency, hold, array limit): submitted then": 3},
        submit_time=np.arange(20) * 5000,
        run_time=[10] * 20,
        nodes=[1] * 18 + [4] * 2,
        recorded_wait_time=[0] * 18 + [4000] * 2,
    )
    assert list(found.sentences()) == [
        "the simulation starts jobs too early for 100% of the error, too late for 0%",
        "size 3-4: 100% of the error, 10% of the jobs",
        "hour 01:00: 50% of the error, 10% of the jobs",
        "room on record: judged by the number of free nodes",
        "nodes that were down count as room on record: a failure log (--failures FILE) would tell",
        "3 jobs became eligible after their submission: their waits begin then",
    ]


def test_without_errors_there_is_nothing_to_explain() -> None:
    found = residue(submit_time=[0], run_time=[10], nodes=[1], recorded_wait_time=[0])
    assert not found.table.share.any()
    assert list(found.sentences()) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_causes_of_random_schedules_by_brute_force(seed: int) -> None:
    """Room and order, instant by instant and pair by pair, in units of 100 s."""
    rng = np.random.default_rng(seed)
    jobs, unit = 14, 100
    submit = np.sort(rng.integers(0, 40, jobs)) * unit
    run, nodes = rng.integers(1, 20, jobs) * unit, rng.integers(1, 5, jobs)
    limit = run + rng.integers(0, 5, jobs) * unit
    waits = rng.integers(0, 60, jobs) * unit
    found = residue(
        submit_time=submit, run_time=run, requested_time=limit, nodes=nodes, recorded_wait_time=waits
    )
    recorded, simulated = submit + waits, found.use.submit + found.validation.simulated.astype(int)

    def others(row: int, time: int) -> int:
        runs = (recorded <= time) & (time < recorded + run) & (np.arange(jobs) != row)
        return int(nodes[runs].sum())

    for row in range(jobs):
        places = range(submit[row], recorded[row] + 1, unit)
        first = next(
            place
            for place in places
            if all(
                others(row, time) + nodes[row] <= 4
                for time in range(place, min(place + run[row], recorded[row]), unit)
            )
        )
        early = simulated[row] - recorded[row] < -600
        assert found._room[row] == (early and recorded[row] - first > 600)
    swapped = np.zeros(jobs, dtype=bool)
    for one, other in combinations(range(jobs), 2):
        larger = nodes[other] >= nodes[one] and limit[other] >= limit[one]
        if larger and (recorded[other] < recorded[one]) != (simulated[other] < simulated[one]):
            swapped[[one, other]] = True
    assert found._order.tolist() == swapped.tolist()


# --- room on each node ---------------------------------------------------------------------------------------

HALF_FREE = {
    "submit_time": [0, 0, 10],
    "run_time": [4000, 4000, 900],
    "nodes": [1, 1, 1],
    "cpus": [2, 2, 3],
    "recorded_wait_time": [0, 0, 3990],
}


def on_two(lists: tuple[str, ...] = ("node1", "node2", "node1"), **columns: Any) -> Residue:
    """Return the residue of jobs on two machines of 4 CPUs, each on the node that the log names."""
    numbers = [-1 if not name else place for place, name in enumerate(lists)]
    log = Workload(
        {**HALF_FREE, **columns, "node_list": numbers}, labels={"node_list": lists}, resources=("cpus",)
    )
    return Residue(
        Validation(Simulation(log, Pipeline(), Machines.of(2, cpus=4)).run()), Machines.of(2, cpus=4)
    )


def test_half_of_each_node_is_no_room() -> None:
    """Until 4000, 2 of 4 CPUs are free on each node, 4 in all, and job 3 needs 3 on one.

    In the simulation, jobs 1 and 2 share a node, and it starts at once.
    """
    found = on_two()
    assert found.validation.error.tolist() == [0, 0, -3990]
    assert found._room_judged() == "room on record: judged on each node"
    assert "room" not in shares(found)
    found = on_two(("", "", ""))
    assert (
        found._room_judged()
        == "room on record: judged by totals, as the log names the nodes of 0% of the jobs"
    )
    assert shares(found) == {"room": 1}


def test_room_on_a_node() -> None:
    """Job 2 ends at 10, and its node is free for job 3."""
    assert shares(on_two(run_time=[4000, 10, 900])) == {"room": 1}


def test_room_in_the_own_partition_only() -> None:
    """Of partition `a`, node 1 is half full, and node 2 is empty in `b`."""
    log = Workload(
        {**HALF_FREE, "run_time": [4000, 10, 900], "node_list": [0, 1, 0], "partition": [0, 1, 0]},
        labels={"node_list": ("node1", "node2"), "partition": ("a", "b")},
        resources=("cpus",),
    )
    for machines, room in ((["node1"], False), (["node1", "node2"], True)):
        cluster = Partitions(
            [Partition("a", machines=machines), Partition("b", machines=["node2"])], Machines.of(2, cpus=4)
        )
        found = Residue(Validation(Simulation(log, Pipeline(), cluster).run()), cluster)
        assert found.use.nodes is not None
        assert found.use.nodes.earliest(2, found._may_use(2)) == (10 if room else 4000)


def test_a_list_of_unknown_nodes_does_not_count() -> None:
    for lists in (("node1", "node9", "node1"), ("node1", "node[1-2]", "node1"), ("node1", "node[", "node1")):
        assert "names the nodes of 67% of the jobs" in on_two(lists)._room_judged()
    many = {name: values * 10 for name, values in HALF_FREE.items()}
    found = on_two(("node1", "node2", "node1") * 9 + ("node1", "node2", ""), **many)
    assert (
        found._room_judged() == "room on record: judged on each node; 1 jobs without known nodes: not counted"
    )


def test_jobs_that_are_not_compared_have_no_nodes_and_are_not_counted() -> None:
    """Of 60 jobs, 30 have no wait on record, and one of the others no nodes."""
    many = {name: values * 20 for name, values in HALF_FREE.items()}
    many["recorded_wait_time"][30:] = [-1] * 30
    found = on_two(
        ("node1", "node2", "node1") * 9 + ("node1", "node2", "") + ("node1", "node2", "node1") * 10, **many
    )
    assert found.use.nodes is not None and found.use.nodes.known.tolist() == [True] * 29 + [False] * 31
    assert found._room_judged().endswith("; 1 jobs without known nodes: not counted")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_earliest_start_beside_all_others(data: st.DataObject) -> None:
    """Second by second: the first start at which so many machines stay free, or are its own on record."""
    draw = lambda least, most: data.draw(st.integers(least, most))  # noqa: E731
    names, capacity = [f"m{number}" for number in range(3)], [draw(1, 3) for _ in range(3)]
    features = [data.draw(st.sets(st.sampled_from("ab"))) for _ in names]
    cluster = Machines(names, ("cpus",), [[amount] for amount in capacity], features)
    jobs = []
    for _ in range(draw(1, 6)):
        where = sorted(data.draw(st.sets(st.integers(0, 2), min_size=1, max_size=3)))
        begin, took = draw(0, 12), draw(1, 6)
        exclusive, counts = draw(0, 3) == 0, draw(0, 1) if len(where) > 1 else 0
        jobs.append(
            (draw(0, begin), begin, took, where, draw(1, min(capacity[m] for m in where)), exclusive, counts)
        )
    jobs.sort(key=lambda job: job[0])
    lists = tuple(f"m[{','.join(map(str, job[3]))}]" for job in jobs)
    log = Workload(
        {
            "submit_time": [job[0] for job in jobs],
            "run_time": [job[2] for job in jobs],
            "nodes": [len(job[3]) for job in jobs],
            "cpus": [job[4] for job in jobs],
            "exclusive": [int(job[5]) for job in jobs],
            "constraint": [0 if job[6] else -1 for job in jobs],
            "node_list": range(len(jobs)),
        },
        labels={"node_list": lists, "constraint": ("a*1",)},
        resources=("cpus",),
    )
    starts, ends = np.array([job[1] for job in jobs]), np.array([job[1] + job[2] for job in jobs])
    nodes = RecordedNodes(log, cluster, starts, ends)
    assert nodes.known.all()
    machines = sorted(data.draw(st.sets(st.integers(0, 2), min_size=1)))

    def free(machine: int, at: int) -> int:
        there = [job for job in jobs if job[1] <= at < job[1] + job[2] and machine in job[3]]
        return capacity[machine] - sum(capacity[machine] if job[5] else job[4] for job in there)

    for row, (submit, start, took, where, cpus, exclusive, counts) in enumerate(jobs):
        least = [capacity[machine] if exclusive else cpus for machine in range(3)]

        def able(machine: int, at: int) -> bool:
            own = machine in where and at >= start  # noqa: B023
            return capacity[machine] >= cpus and (own or free(machine, at) >= least[machine])  # noqa: B023

        expected = start
        for first in range(submit, start):
            stay = [m for m in machines if all(able(m, at) for at in range(first, first + took))]
            if len(stay) >= len(where) and (not counts or any("a" in features[m] for m in stay)):
                expected = first
                break
        assert nodes.earliest(row, np.array(machines)) == expected


def test_nodes_that_were_down_are_no_room() -> None:
    """The second job could have started at once, had its nodes not been down until 3600 s."""
    columns = {
        "submit_time": [0, 10],
        "run_time": [900, 900],
        "nodes": [2, 3],
        "recorded_wait_time": [0, 3590],
    }
    log = Workload(columns, machine_size=4)
    without = Residue(Validation(Simulation(log, make("fcfs")).run()))
    assert without.table.set_index("cause").share["room"] == 1
    assert [text for text in without.sentences() if "down" in text] == [
        "nodes that were down count as room on record: a failure log (--failures FILE) would tell"
    ]
    outages = Outages([Outage(5, 3600, nodes=2)])
    error = Validation(Simulation(log, make("fcfs"), outages=outages).run()).error
    assert error.tolist() == [0, 0], "the simulation waits for the nodes, too"
    longer = Workload({**columns, "recorded_wait_time": [0, 7190]}, machine_size=4)
    late = Residue(Validation(Simulation(longer, make("fcfs"), outages=outages).run()))
    assert late.table.set_index("cause").share["room"] == 1, "from 3600 s on, there was room"
    gone = Outages([Outage(5, 3600, nodes=2), Outage(4500, 7200, nodes=4)])
    with_both = Residue(Validation(Simulation(longer, make("fcfs"), outages=gone).run()))
    assert [text for text in with_both.sentences() if "down" in text] == [
        "nodes that were down by the failure log are no room on record"
    ]
