"""Windows that reserve homogeneous nodes for the jobs of some users. Rows: submission, run, requested, nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import BeginAt
from hpcsimkit.kernel.simulation import Simulation
from tests.kernel import naive_machines
from tests.kernel.helpers import Row, run, starts, workload
from tests.kernel.machine_helpers import RESOURCES, asked
from tests.kernel.naive_machines import Shut

COURSE = Window(10, 20, nodes=2, users=(7,))
"""Two of the four nodes, from 10 to 20 s, for user 7."""

BACKFILLING = ("fcfs+easy", "fcfs+easy-k(2)", "fcfs+conservative", "fcfs+conservative-replan")


def starts_of(rows: list[Row], policy: str, users: list[int], *windows: Window, **options: Any) -> list[int]:
    jobs = workload(rows, 4, user=users)
    return starts(jobs, policy, calendar=Calendar(windows or (COURSE,)), **options)


# --- by hand ---------------------------------------------------------------------------------------------


def test_only_jobs_of_the_users_run_into_the_window() -> None:
    assert starts_of([(0, 15, 15, 3)], "fcfs", [1]) == [20]
    assert starts_of([(0, 15, 15, 3)], "fcfs", [7]) == [0]
    assert starts_of([(0, 10, 10, 4)], "fcfs", [1]) == [0]
    assert starts_of([(0, 15, 15, 2)], "fcfs", [1]) == [0]


def test_the_nodes_are_kept_free_for_the_users_until_the_window_ends() -> None:
    """The job of user 7 ends at 13 s, but its nodes stay reserved; at 20 s, all four are there."""
    rows = [(10, 3, 3, 2), (12, 6, 6, 3), (13, 6, 6, 2)]
    for policy in BACKFILLING:
        assert starts_of(rows, policy, [7, 1, 1]) == [10, 20, 13], policy


def test_reservations_of_backfilling_beside_the_window() -> None:
    """The head waits for three nodes until 20 s: user 7 has two until then, but not beyond; others fill the rest."""
    rows = [(0, 12, 12, 3), (0, 30, 30, 2), (0, 20, 20, 2), (1, 9, 9, 2)]
    for policy in BACKFILLING:
        assert starts_of(rows, policy, [1, 7, 7, 1]) == [20, 32, 0, 1], policy


def test_windows_take_nodes_that_no_other_window_has() -> None:
    """From 15 to 20 s, all have one: nodes 0 and 1 are for user 7, node 2 is for user 8, node 3 is gone until 25 s."""
    windows = COURSE, Window(15, 30, nodes=1, users=(8,)), Window(15, 25, nodes=1)
    rows = [(0, 30, 30, 2), (0, 30, 30, 1), (0, 16, 16, 1), (0, 15, 15, 1)]
    assert starts_of(rows, "fcfs+easy", [7, 8, 1, 1], *windows) == [0, 0, 25, 0]


def test_a_job_that_exceeds_its_estimate_keeps_its_nodes() -> None:
    """It has all nodes until 13 s; user 7 gets two of them then."""
    assert starts_of([(0, 13, 5, 4), (10, 2, 2, 2)], "fcfs+easy", [1, 7]) == [0, 13]


def test_running_jobs_keep_their_nodes_when_a_policy_takes_over() -> None:
    """The job backfilled at 2 s is on node 3, beside the reservation of the second job, which has nodes 0 to 2.

    So the last job, which runs into the window of the same nodes, waits for node 3 until 32 s. On node 2, the
    first one that was free, the backfilled job would leave it node 3.
    """
    rows = [(0, 10, 10, 2), (1, 10, 10, 3), (2, 30, 30, 1), (21, 40, 40, 1)]
    window = Window(40, 60, nodes=3, users=(7,))
    for policy in BACKFILLING:
        taken_over = BeginAt(5, make("fcfs+easy"))
        assert starts_of(rows, policy, [1] * 4, window) == [0, 10, 2, 32], policy
        assert starts_of(rows, policy, [1] * 4, window, begin_at=taken_over) == [0, 10, 2, 32], policy


def test_results_are_those_of_homogeneous_nodes() -> None:
    windows = Window(30, 40, nodes=3, name="maintenance"), COURSE
    result = run(
        workload([(0, 15, 15, 3), (16, 20, 20, 2)], 4, user=[7, 1]), "fcfs", calendar=Calendar(windows)
    )
    assert result.start_time.tolist() == [0, 40]
    assert (result.size, result.unit, result.placements) == (4, "nodes", None)
    assert result.options["calendar"] == [
        {"start": 10, "end": 20, "nodes": 2, "users": [7]},
        {"start": 30, "end": 40, "nodes": 3},
    ]
    down = result.downtime
    assert down is not None
    assert [each.tolist() for each in (down.start, down.end, down.machine, down.amount)] == [
        [30],
        [40],
        [0],
        [3],
    ]


def test_stopped_jobs_beside_a_reservation() -> None:
    """An outage of node 0 stops the job of user 1; the result has attempts, on no machines."""
    outages = Outages([Outage(5, 6, nodes=1, machines=(0,))])
    jobs = workload([(0, 10, 10, 4)], 4, user=[1])
    result = run(jobs, "fcfs", calendar=Calendar([COURSE]), outages=outages)
    assert result.attempts is not None and result.attempts.placements is None
    assert result.attempts.start_time.tolist() == [0, 20]


def test_jobs_take_nodes_whatever_else_they_request() -> None:
    columns = {"submit_time": [0], "run_time": [15], "nodes": [2], "user": [1], "cpus": [64], "memory": [1]}
    jobs = Workload(columns, machine_size=4, resources=("cpus", "memory"))
    assert starts(jobs, "fcfs", calendar=Calendar([COURSE])) == [0]


def test_dates_of_a_log() -> None:
    jobs = workload([(0, 15, 15, 3)], 4, user=[1])
    dated = replace(jobs, header={"UnixStartTime": "843480031", "TimeZoneString": "Europe/Stockholm"})
    window = Window("1996-09-23 14:00:41", "1996-09-23 14:00:51", nodes=2, users=(7,))
    assert starts(dated, "fcfs", calendar=Calendar([window])) == [20]


def test_what_is_refused() -> None:
    jobs = workload([(0, 5, 5, 1)], 4, user=[7])
    with pytest.raises(UsageError, match="windows at 15 s: 5 nodes are gone or reserved at once, of 4"):
        run(jobs, "fcfs", calendar=Calendar([COURSE, Window(15, 16, nodes=3)]))
    with pytest.raises(UsageError, match="the cluster has homogeneous nodes, found machine 'node1'"):
        run(jobs, "fcfs", calendar=Calendar([COURSE, Window(15, 16, machines=("node1",))]))
    with pytest.raises(UsageError, match="knows no calendar"):
        run(jobs, "oracle-srtf", calendar=Calendar([COURSE]))
    parted, placed = Partitions([Partition("a", nodes=4)]), replace(jobs, labels={"partition": ("a",)})
    jobs = replace(placed, columns={**jobs.columns, "partition": [0]})
    with pytest.raises(UsageError, match="accounts need machines, or homogeneous nodes without partitions"):
        run(jobs, "fcfs", cluster=parted, calendar=Calendar([COURSE]))


# --- against others --------------------------------------------------------------------------------------


class Case(NamedTuple):
    rows: list[Row]
    windows: list[tuple[int, int, int, tuple[int, ...]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw jobs for four nodes, each of a user of its own, and windows; the last one lies ahead throughout."""
    times, windows = st.integers(0, 30), []
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, 9))):
        took = draw(st.integers(1, 12))
        wanted = max(1, took + draw(st.sampled_from([0, 0, 3, 9, -3])))
        rows.append((draw(times), took, wanted, draw(st.integers(1, 4))))
    users = st.sets(st.integers(0, len(rows) - 1), max_size=4)
    for _ in range(draw(st.integers(1, 3))):
        begin, nodes = draw(times), draw(st.integers(1, 3))
        windows.append((begin, begin + draw(st.integers(1, 12)), nodes, tuple(sorted(draw(users)))))
    while max(sum(n for b, e, n, _ in windows if b <= at < e) for at in range(50)) > 4:
        windows.pop()
    return Case(sorted(rows, key=lambda row: row[0]), [*windows, (300, 301, 1, (0,))])


def shut(windows: list[tuple[int, int, int, tuple[int, ...]]]) -> list[Shut]:
    """Give each window, by its beginning, the first nodes that are in no other one at any of its seconds."""
    found: list[Shut] = []
    for begin, end, nodes, users in sorted(windows, key=lambda each: each[0]):
        taken = {n for each in found for n in each.machines if set(range(*each[:2])) & {begin}}
        found.append(Shut(begin, end, tuple(n for n in range(4) if n not in taken)[:nodes], users))
    return found


@pytest.mark.parametrize("filler", ["", "+easy", "+easy-k(2)", "+conservative", "+conservative-replan"])
@given(case=cases())
def test_schedules_equal_naive_ones(filler: str, case: Case) -> None:
    """The naive simulator has four machines with one CPU each, and nothing else."""
    jobs = [
        asked(at, took, requested=wanted, cpus=nodes, spread=True) for at, took, wanted, nodes in case.rows
    ]
    machines, windows = Machines(["a", "b", "c", "d"], RESOURCES, [[1, 0, 0]] * 4), shut(case.windows)
    counts = {"": 0, "+easy": 1, "+easy-k(2)": 2, "+conservative-replan": None}
    if filler in counts:
        expected, _ = naive_machines.reservations(machines, jobs, counts[filler], windows=windows)
    else:
        expected, *_ = naive_machines.conservative(machines, jobs, windows=windows)
    given_windows = [Window(b, e, nodes=n, users=users) for b, e, n, users in case.windows]
    own = workload(case.rows, 4, user=list(range(len(case.rows))))
    assert starts(own, f"fcfs{filler}", calendar=Calendar(given_windows)) == expected


@pytest.mark.parametrize("filler", ["", "+easy"])
@given(case=cases(), share=st.floats(0, 1))
def test_a_run_that_another_policy_begins_goes_on_as_before(filler: str, case: Case, share: float) -> None:
    """If it is the same policy, the jobs that run then keep their nodes."""
    jobs = workload(case.rows, 4, user=list(range(len(case.rows))))
    windows = [Window(b, e, nodes=n, users=users) for b, e, n, users in case.windows]
    policy, submit = make(f"fcfs{filler}"), jobs.submit_time
    whole = Simulation(jobs, policy, calendar=Calendar(windows)).run()
    at = int(submit.min() + share * (submit.max() - submit.min()))
    again = Simulation(jobs, policy, calendar=Calendar(windows), begin_at=BeginAt(at, policy)).run()
    assert np.array_equal(again.start_time, whole.start_time)
