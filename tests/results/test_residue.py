"""Residue: each cause by a schedule in which it alone applies, and amounts by hand."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit import Machines, Pipeline, Simulation, Workload
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.policies import EASY
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


def test_the_first_day_of_a_long_log() -> None:
    found = residue(
        submit_time=[0, 8 * DAY], run_time=[10, 10], nodes=[1, 1], recorded_wait_time=[5000, 5000]
    )
    assert shares(found) == {"beginning": 0.5, "room": 0.5}


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
    assert sorted(amounts for _, amounts in found._groups) == [[2], [4]]
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
    recorded, simulated = submit + waits, found._submit + found.validation.simulated.astype(int)

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
