"""Windows on machines: gone for all, or reserved for the jobs of some users or accounts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.closures import Closure, Closures
from hpcsimkit.cluster.machine_profile import MachineProfile
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ImpossibleScheduleError, ScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.observers import Promises
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.kernel.verification import verify
from hpcsimkit.results.result import Result
from tests.kernel import machine_cases, naive_machines
from tests.kernel.machine_helpers import Asked, asked, jobs_on_machines, placed
from tests.kernel.naive_machines import Shut

TWO = Machines.of(2, cpus=4)
"""Machines node1 and node2."""


def simulate(
    jobs: list[Asked] | Workload, policy: str, cluster: Any, *windows: Window, **columns: Any
) -> Result:
    workload = jobs if isinstance(jobs, Workload) else jobs_on_machines(jobs, **columns)
    return Simulation(workload, make(policy), cluster, calendar=Calendar(windows)).run()


# --- by hand ---------------------------------------------------------------------------------------------


def test_a_job_that_would_run_into_a_window_takes_another_machine() -> None:
    window = Window(10, 20, machines=("node1",))
    assert placed(simulate([asked(0, 10, cpus=1)], "fcfs", TWO, window)) == [(0, "node1")]
    assert placed(simulate([asked(0, 11, cpus=1)], "fcfs", TWO, window)) == [(0, "node2")]


def test_a_job_on_both_machines_waits_for_the_end_of_the_window() -> None:
    """Meanwhile, shorter jobs fill the time before it, and longer ones the other machine up to its start."""
    jobs = [
        asked(0, 11, nodes=2, cpus=4),
        asked(0, 10, cpus=4),
        asked(0, 20, cpus=4),
        asked(1, 20, cpus=1),
    ]
    window = Window(10, 20, machines=("node1",))
    for policy in ("fcfs+easy", "fcfs+easy-k(2)", "fcfs+conservative", "fcfs+conservative-replan"):
        assert simulate(jobs, policy, TWO, window).start_time.tolist() == [20, 0, 0, 31], policy
    assert simulate(jobs, "fcfs", TWO, window).start_time.tolist() == [20, 31, 31, 41]


def test_a_pooled_request_waits_until_the_machines_are_there() -> None:
    jobs = [asked(0, 11, cpus=6, spread=True), asked(0, 11, cpus=4, spread=True)]
    window = Window(10, 20, machines=("node1",))
    assert simulate(jobs, "fcfs+easy", TWO, window).start_time.tolist() == [20, 0]


def test_more_windows_than_a_profile_has_space_for_at_first() -> None:
    """Of every 20 s, node1 is there for 10: too short for the first job, which waits for the last window to end."""
    windows = [Window(20 * number + 10, 20 * number + 20, machines=("node1",)) for number in range(100)]
    jobs = [asked(0, 11, nodes=2, cpus=4), asked(0, 11, cpus=1)]
    for policy in ("fcfs+easy", "fcfs+easy-k(2)", "fcfs+conservative"):
        assert simulate(jobs, policy, TWO, *windows).start_time.tolist() == [2000, 0], policy


def test_a_job_that_exceeds_its_estimate_keeps_its_machine() -> None:
    """The window gets the rest of the machine at 10 s, and the job's part at 14 s."""
    jobs = [asked(0, 14, requested=5, cpus=1), asked(12, 3, cpus=3)]
    result = simulate(jobs, "fcfs+easy", Machines.of(1, cpus=4), Window(10, 20, machines=(0,)))
    assert result.start_time.tolist() == [0, 20]
    down = result.downtime
    assert down is not None
    assert list(zip(down.start.tolist(), down.end.tolist(), down.amount.tolist(), strict=True)) == [
        (10, 20, 3),
        (14, 20, 1),
    ]


def test_plans_of_reservations_are_not_made_anew_for_what_was_announced() -> None:
    simulation = Simulation(
        jobs_on_machines([asked(0, 30, cpus=4)]),
        make("fcfs+conservative"),
        TWO,
        calendar=Calendar([Window(10, 20, machines=("node2",))]),
    )
    result = simulation.run()
    assert simulation.system.corrections == 0 and result.downtime is not None


def test_a_reservation_is_for_the_jobs_of_its_users() -> None:
    """Of the two jobs, that of user 7 may run on node1 at any time."""
    jobs = [asked(0, 30, cpus=4), asked(0, 30, cpus=4), asked(0, 30, cpus=4)]
    window = Window(10, 20, machines=("node1",), users=(7,), name="class")
    result = simulate(jobs, "fcfs+easy", TWO, window, user=[1, 7, 1])
    assert placed(result) == [(0, "node2"), (0, "node1"), (30, "node1")]
    assert result.downtime is None


def test_users_and_accounts_are_given_by_name_and_both_are_needed() -> None:
    jobs = [asked(0, 30, cpus=4) for _ in range(3)]
    workload = jobs_on_machines(jobs, user=[0, 1, 1], group=[0, 0, 1])
    workload = Workload(
        workload.columns,
        resources=workload.resources,
        labels={"user": ("ann", "bob"), "group": ("physics", "music")},
    )
    for window, expected in (
        (Window(0, 9, machines=(0,), users=("bob",)), [False, True, True]),
        (Window(0, 9, machines=(0,), accounts=("physics",)), [True, True, False]),
        (Window(0, 9, machines=(0,), users=("bob",), accounts=("physics",)), [False, True, False]),
    ):
        assert window.admits(workload).tolist() == expected
    one = Machines.of(1, cpus=4)
    window = Window(0, 1000, machines=(0,), users=("bob",), accounts=("physics",))
    assert simulate(workload, "sjf+easy", one, window).start_time.tolist() == [1000, 0, 1030]


def test_partitions_see_the_windows_of_their_machines() -> None:
    """node2 belongs to both partitions; its window delays the jobs of both, that of a first."""
    partitions = Partitions(
        [Partition("a", machines=("node1", "node2")), Partition("b", machines=("node2",))], machines=TWO
    )
    jobs = [asked(0, 11, nodes=2, cpus=4), asked(0, 11, cpus=4), asked(0, 11, cpus=4), asked(1, 9, cpus=4)]
    workload = jobs_on_machines(jobs, partition=[0, 0, 1, 1])
    workload = Workload(
        workload.columns, resources=workload.resources, labels={"partition": ("a", "b"), "constraint": ()}
    )
    result = simulate(workload, "fcfs+easy", partitions, Window(10, 20, machines=("node2",)))
    assert result.start_time.tolist() == [20, 0, 31, 1]


@pytest.mark.parametrize("policy", ["fcfs", "fcfs+easy", "fcfs+conservative"])
def test_jobs_of_a_partition_wait_for_the_end_of_a_reservation(policy: str) -> None:
    partitions = Partitions(
        [Partition("a", machines=("node1",)), Partition("b", machines=("node2",))], machines=TWO
    )
    workload = jobs_on_machines([asked(0, 11, cpus=4), asked(1, 11, cpus=4)], partition=[0, 0])
    workload = Workload(
        workload.columns, resources=workload.resources, labels={"partition": ("a", "b"), "constraint": ()}
    )
    window = Window(10, 20, machines=("node1",), users=(7,))
    assert simulate(workload, policy, partitions, window).start_time.tolist() == [20, 31]


def test_limits_of_a_partition_hold_beside_windows() -> None:
    partitions = Partitions([Partition("a", in_use={"cpus": 4})], machines=TWO)
    jobs = [asked(0, 11, cpus=4), asked(0, 5, cpus=4), asked(0, 4, cpus=2)]
    workload = jobs_on_machines(jobs, partition=[0, 0, 0])
    workload = Workload(
        workload.columns, resources=workload.resources, labels={"partition": ("a",), "constraint": ()}
    )
    for policy in ("fcfs+easy", "fcfs+conservative"):
        result = simulate(workload, policy, partitions, Window(10, 20, machines=("node1",)))
        assert result.start_time.tolist() == [0, 11, 16], policy
        assert placed(result)[0] == (0, "node2")


def test_a_preemptor_stops_nobody_for_a_machine_that_is_about_to_go() -> None:
    one = Machines.of(1, cpus=4)
    jobs = [asked(0, 8, cpus=4), asked(1, 10, cpus=4), asked(2, 4, cpus=4)]
    policy = "fcfs+easy+preempt(by=qos)"
    workload = jobs_on_machines(jobs, qos=[0, 1, 1])
    result = simulate(workload, policy, one, Window(10, 20, machines=(0,)))
    assert result.start_time.tolist() == [0, 20, 30] and result.attempts is None


def test_promises_are_those_beside_the_windows() -> None:
    """The head could start at 10 s without the window, and is promised 20 s."""
    promises = Promises()
    jobs = jobs_on_machines([asked(0, 10, cpus=4), asked(0, 11, nodes=2, cpus=4)])
    calendar = Calendar([Window(15, 20, machines=("node1",))])
    Simulation(jobs, make("fcfs+easy"), TWO, calendar=calendar, observers=[promises]).run()
    assert (promises.made, promises.broken) == (1, 0)


def test_a_start_on_reserved_machines_is_an_impossible_schedule() -> None:
    jobs = jobs_on_machines([asked(0, 30, cpus=4), asked(15, 1, cpus=4)], user=[1, 2])
    plain = Simulation(jobs, make("fcfs"), TWO)
    made = plain.run()
    for users, wrong in (((2,), False), ((1,), True)):
        calendar = Calendar([Window(10, 20, machines=("node2",), users=users)])
        simulation = Simulation(jobs, make("fcfs"), TWO, calendar=calendar, name="fcfs")
        if wrong:
            with pytest.raises(
                ImpossibleScheduleError, match=r"job 2 starts at t=15 s on machine node2, which is res"
            ):
                verify(simulation, made)
        else:
            verify(simulation, made)


# --- profiles --------------------------------------------------------------------------------------------


def closed_profile() -> tuple[MachineProfile, Job]:
    """A profile of one machine that is closed from 10 to 20 s, and a job that needs all of it for 11 s."""
    one = Machines.of(1, cpus=4)
    (job,) = jobs_on_machines([asked(0, 11, cpus=4)]).jobs
    profile = MachineProfile(one, 0, one.capacity)
    profile.close(Closures([Closure(10, 20, np.array([True]), np.array([False]))]))
    return profile, job


def test_a_profile_keeps_the_ends_of_closures_when_levels_become_equal() -> None:
    profile, job = closed_profile()
    for start, end in ((10, 15), (5, 20), (20, 30)):
        profile.occupy(start, end, Allocation([0], [[2]]))
        profile.release(start, end, Allocation([0], [[2]]))
    assert profile.earliest(job, 11, 0)[0] == 20 and profile.earliest(job, 10, 0)[0] == 0


def test_no_reservation_moves_into_a_closure() -> None:
    profile, job = closed_profile()
    allocation = Allocation([0], [[4]])
    profile.occupy(40, 51, allocation)
    assert profile.earlier(job, 40, 11, allocation, 100)[0] == 20
    assert profile.earlier(job, 40, 10, allocation, 100)[0] == 0


def test_what_is_refused() -> None:
    jobs = [asked(0, 11, cpus=1)]
    window = Window(10, 20, machines=("node1",))

    class Rash(Policy):
        def schedule(self, system: System) -> None:
            job = system.queue.first()
            system.start(job, system.cluster.place(job, system.free))

    with pytest.raises(
        ScheduleError, match=r"job 1 at t=0 s: Allocation\(\[0\], .* does not lie within what"
    ):
        Simulation(jobs_on_machines(jobs), Rash(), TWO, calendar=Calendar([window])).run()
    with pytest.raises(UsageError, match=r"window from 5 to 6 s: Machines\(2: 8 cpus\) has no machine 'x'"):
        simulate(jobs, "fcfs", TWO, Window(5, 6, machines=("x",)))
    for policy in ("optimization", "bfbp", "oracle-srtf"):
        with pytest.raises(UsageError, match="knows no calendar"):
            simulate(jobs, policy, TWO, window)


# --- against naive simulators ----------------------------------------------------------------------------


class Case(NamedTuple):
    cluster: Machines
    jobs: list[Asked]
    windows: list[Shut]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw jobs and one to three windows, each open to none or to some of the jobs."""
    cluster, jobs = draw(machine_cases.cases(exact=draw(st.booleans())))
    if not cluster.capacity.any(axis=1).all():  # a machine with nothing has nothing to close
        cluster = Machines(
            cluster.names, cluster.resources, np.maximum(cluster.capacity, 1), cluster.features
        )
    windows = []
    for _ in range(draw(st.integers(1, 3))):
        begin, machines = draw(st.integers(0, 30)), st.sets(st.integers(0, len(cluster) - 1), min_size=1)
        some = st.sets(st.integers(0, len(jobs) - 1), max_size=3)
        open_to = draw(some) if draw(st.booleans()) else set[int]()
        end = begin + draw(st.integers(1, 12))
        windows.append(Shut(begin, end, tuple(sorted(draw(machines))), tuple(sorted(open_to))))
    return Case(cluster, jobs, windows)


RESERVATIONS = {"": 0, "+easy": 1, "+easy-k(2)": 2, "+conservative-replan": None}
ORDERS = {"fcfs": lambda job: job.submit, "sjf": lambda job: job.estimate}


def assert_equal(case: Case, order: str, filler: str) -> None:
    """Compare starts and places; each job has a user of its own."""
    cluster, jobs, windows = case
    found = simulate(
        jobs,
        order + filler,
        cluster,
        *(Window(each.begin, each.end, machines=each.machines, users=each.open_to) for each in windows),
        user=list(range(len(jobs))),
    )
    if filler in RESERVATIONS:
        count = RESERVATIONS[filler]
        expected, places = naive_machines.reservations(cluster, jobs, count, ORDERS[order], windows)
    else:
        expected, places, *_ = naive_machines.conservative(cluster, jobs, ORDERS[order], windows)
    assert found.start_time.tolist() == expected
    assert machine_cases.given(found) == places


FILLERS = (*RESERVATIONS, "+conservative")


@pytest.mark.parametrize("filler", FILLERS)
@given(case=cases(), order=st.sampled_from(sorted(ORDERS)))
def test_schedules_equal_naive_ones(case: Case, order: str, filler: str) -> None:
    assert_equal(case, order, filler)


@pytest.mark.parametrize("filler", ["", "+easy", "+easy-k(2)"])
@given(case=cases(), share=st.floats(0, 1))
def test_a_run_that_begins_beside_windows_goes_on_as_before(case: Case, share: float, filler: str) -> None:
    cluster, jobs, windows = case
    workload = jobs_on_machines(jobs, user=list(range(len(jobs))))
    each = [Window(one.begin, one.end, machines=one.machines, users=one.open_to) for one in windows]
    whole = simulate(workload, f"fcfs{filler}", cluster, *each)
    start, end = whole.start_time, whole.end_time
    at = int(start.min() + share * (end.max() - start.min()))
    running = (start < at) & (end > at)
    kept = np.flatnonzero((start >= at) | running)
    row = {int(job): place for place, job in enumerate(kept)}
    assert whole.placements is not None
    begun = Begun(
        at,
        {row[job]: int(start[job]) for job in np.flatnonzero(running).tolist()},
        {row[job]: whole.placements.allocation(job) for job in np.flatnonzero(running).tolist()},
    )
    if len(kept):
        policy = make(f"fcfs{filler}")
        rest = Simulation(workload.select(kept), policy, cluster, calendar=Calendar(each), begun=begun)
        assert rest.run().start_time.tolist() == start[kept].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("filler", FILLERS)
@given(case=cases(), order=st.sampled_from(sorted(ORDERS)))
@settings(max_examples=2_000)
def test_thousands_of_schedules_equal_naive_ones(case: Case, order: str, filler: str) -> None:
    assert_equal(case, order, filler)
