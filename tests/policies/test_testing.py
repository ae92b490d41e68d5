"""Test runs in holes. Rows: submission, run, requested, nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ImpossibleScheduleError, ScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import AfterJobs
from hpcsimkit.kernel.job_gates import BeginTimes
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.policy import Backfiller, Policy
from hpcsimkit.kernel.reservation import reserve
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.kernel.verification import verify
from hpcsimkit.policies import EASY, HoleTests, Pipeline
from hpcsimkit.reports.figures import MODE_COLOURS
from hpcsimkit.reports.gantt import plot_gantt
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result
from tests.kernel.helpers import Row, deep, rows_and_size, run, workload
from tests.kernel.machine_cases import cases
from tests.kernel.machine_helpers import run_on
from tests.kernel.naive_tests import attempts_with_tests
from tests.kernel.test_attempts import attempts
from tests.kernel.test_machine_invariants import PromisingConservative

HOLE: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (2, 5, 500, 1), (3, 300, 500, 1)]
"""On four nodes: one node is free until 100 s, when the second job, the head, needs all four."""

TESTS = "fcfs+easy+tests(seconds=10)"

# --- by hand ---------------------------------------------------------------------------------------------


def test_what_ends_is_done_and_what_does_not_goes_back() -> None:
    """The third job ends in its test at 7 s. The fourth is stopped at 17 s, and starts when it fits at 150 s."""
    result = run(workload(HOLE, 4), TESTS)
    assert attempts(result) == [[(0, 100)], [(100, 150)], [(2, 7)], [(7, 17), (150, 450)]]
    assert result.attempts is not None
    assert result.attempts.outcome.tolist() == [0, 0, 0, Outcome.TESTED, 0]
    assert result.attempts.lost.tolist() == [0, 0, 0, 10, 0]
    assert result.mode.tolist() == [Mode.READY, Mode.RESERVED, Mode.TESTED, Mode.RESERVED]


def test_a_job_may_start_after_another_has_been_tested() -> None:
    """The fourth job starts for the first time at 7 s, in a test; the fifth fits when the test is over at 17 s."""
    jobs = workload([*HOLE, (3, 2, 2, 1)], 4, dependency=[""] * 4 + ["after:4"])
    simulation = Simulation(jobs, make(TESTS), gates=(AfterJobs(), BeginTimes()))
    result = simulation.run()
    assert attempts(result)[3:] == [[(7, 17), (150, 450)], [(17, 19)]]
    free = Simulation(workload([*HOLE, (3, 2, 2, 1)], 4), make(TESTS)).run()
    assert attempts(free)[3:] == [[(9, 19), (150, 450)], [(7, 9)]]
    with pytest.raises(ImpossibleScheduleError, match=r"job 5 starts at t=7 s, though .* is met at t=9 s"):
        verify(simulation, replace(free, workload=jobs))


def test_no_test_begins_before_the_job_may_start() -> None:
    """The fourth job is tested from 7 s on; from the log, it could begin at 8 s."""
    jobs = workload(HOLE, 4, begin_time=[-1, -1, -1, 8])
    simulation = Simulation(jobs, make(TESTS), gates=(BeginTimes(),))
    assert attempts(simulation.run())[3] == [(8, 18), (150, 450)]
    with pytest.raises(ImpossibleScheduleError, match="job 4 starts at t=7 s, before its begin_time of 8 s"):
        verify(simulation, replace(Simulation(workload(HOLE, 4), make(TESTS)).run(), workload=jobs))


def test_the_wait_ends_with_the_start_that_counts() -> None:
    """A test that is stopped ends no wait, and its work is lost: 10 node-seconds of 4 nodes in 450 s."""
    result = run(workload(HOLE, 4), TESTS)
    assert result.wait_time.tolist() == [0, 99, 0, 147]
    assert result.bounded_slowdown()[3] == pytest.approx(447 / 300)
    assert measure(result, names=["lost_area_share"])["lost_area_share"] == pytest.approx(10 / (4 * 450))


def test_without_tests_the_short_job_waits() -> None:
    assert run(workload(HOLE, 4), "fcfs+easy").start_time.tolist() == [0, 100, 150, 150]


def test_a_job_that_takes_as_long_as_its_test_is_done() -> None:
    result = run(workload([*HOLE[:2], (3, 10, 500, 1)], 4), TESTS)
    assert attempts(result)[2] == [(3, 13)]


def test_the_hole_must_be_as_long_as_the_test() -> None:
    """From 91 s on, no test of 10 s ends before the head starts at 100 s; at 90 s, one does."""
    late = workload([*HOLE[:2], (91, 5, 500, 1)], 4)
    assert run(late, TESTS).start_time.tolist() == [0, 100, 150]
    on_time = workload([*HOLE[:2], (90, 50, 500, 1)], 4)
    assert attempts(run(on_time, TESTS)) == [[(0, 100)], [(100, 150)], [(90, 100), (150, 200)]]


def test_levels_follow_one_another() -> None:
    result = run(workload(HOLE, 4), "fcfs+easy+tests(seconds=[10, 60])")
    assert attempts(result)[3] == [(7, 17), (17, 77), (150, 450)]


def test_nobody_is_tested_while_no_job_is_blocked() -> None:
    assert run(workload([(0, 5, 500, 1), (1, 5, 500, 1)], 4), TESTS).attempts is None


def test_checkpoints_are_kept_and_restarts_cost() -> None:
    """With a checkpoint every 4 s, 8 s of the test count; the restart takes 30 s, and 292 s of work follow."""
    jobs = workload([*HOLE[:2], HOLE[3]], 4)
    result = run(jobs, TESTS, restart=Restart(checkpoint=4, cost=30))
    assert attempts(result)[2] == [(3, 13), (150, 150 + 30 + 292)]
    assert result.attempts is not None
    assert result.attempts.lost[2:].tolist() == [2, 0]
    assert result.attempts.overhead[2:].tolist() == [0, 30]


def test_a_preempted_job_would_continue_but_a_tested_one_begins_anew() -> None:
    assert attempts(run(workload(HOLE, 4), TESTS, restart=Restart("continue")))[3][1] == (150, 450)


@pytest.mark.parametrize(
    ("column", "tested"), [([1, 1, 1, 1], True), ([1, 1, 1, 0], False), ([0, 0, 0, 7], True)]
)
def test_a_column_says_who_may_be_tested(column: list[int], tested: bool) -> None:
    jobs = workload(HOLE, 4, qos=column)
    result = run(jobs, "fcfs+easy+tests(seconds=10, restartable='qos')")
    assert (len(attempts(result)[3]) > 1) == tested


def test_large_jobs_may_be_left_out() -> None:
    rows: list[Row] = [(0, 100, 100, 6), (1, 50, 50, 8), (3, 300, 500, 2)]
    for largest, times in ((0.25, 2), (0.24, 1)):
        result = run(workload(rows, 8), f"fcfs+easy+tests(seconds=10, largest={largest})")
        assert len(attempts(result)[2]) == times


def test_a_share_of_the_users_allows_tests() -> None:
    """Over 40 users, about half are tested: all jobs of a user, or none; with the same seed, the same ones."""
    rows: list[Row] = [(0, 2000, 2000, 3), (1, 50, 50, 4), *((2, 300, 5000, 1) for _ in range(80))]
    jobs = workload(rows, 4, user=[100, 100, *(number // 2 for number in range(80))])
    policy = "fcfs+easy+tests(seconds=10, users=0.5)"
    times = np.array([len(each) for each in attempts(run(jobs, policy, seed=1))[2:]]).reshape(40, 2)
    assert (times[:, 0] == times[:, 1]).all()
    assert 10 < (times[:, 0] == 2).sum() < 30
    again = np.array([len(each) for each in attempts(run(jobs, policy, seed=1))[2:]])
    assert again.tolist() == times.ravel().tolist()


def test_conservative_keeps_the_reservation_of_a_tested_job() -> None:
    """The tested job has its reservation at 150 s before and after; the one that came later has the next one."""
    rows: list[Row] = [*HOLE[:2], (3, 300, 500, 1), (5, 300, 500, 4)]
    result = run(workload(rows, 4), "fcfs+conservative+tests(seconds=10)")
    assert attempts(result) == [[(0, 100)], [(100, 150)], [(3, 13), (150, 450)], [(450, 750)]]


def test_conservative_takes_back_the_reservation_of_a_job_that_ends_in_its_test() -> None:
    """The third job would have kept the four nodes from 150 s on; the fourth has them as it is done at 8 s."""
    rows: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (3, 5, 500, 1), (4, 300, 500, 4)]
    result = run(workload(rows, 4), "fcfs+conservative+tests(seconds=10)")
    assert attempts(result) == [[(0, 100)], [(100, 150)], [(3, 8)], [(150, 450)]]


def test_tests_take_from_what_later_reservations_leave() -> None:
    """From 5 s on, the third job leaves one node: of two waiting jobs, one may be tested at 3 s, the other after it."""
    rows: list[Row] = [(0, 100, 100, 1), (0, 5, 5, 2), (1, 56, 56, 4), (2, 50, 50, 6)]
    rows += [(3, 300, 500, 1), (3, 300, 500, 1)]
    for backfilling in ("conservative", "easy-k(2)"):
        result = run(workload(rows, 6), f"fcfs+{backfilling}+tests(seconds=10)")
        assert attempts(result)[2:4] == [[(5, 61)], [(100, 150)]]
        assert attempts(result)[4:] == [[(3, 13), (150, 450)], [(13, 23), (150, 450)]]


def test_a_tested_job_is_back_by_its_own_reservation() -> None:
    """With a delay of 137 s, a job that is stopped at 13 s is back at 150 s, when its reservation begins."""
    jobs = workload([*HOLE[:2], (3, 300, 500, 1)], 4)
    for delay, found in ((137, [(3, 13), (150, 450)]), (138, [(150, 450)])):
        result = run(jobs, "fcfs+conservative+tests(seconds=10)", restart=Restart(delay=delay))
        assert attempts(result)[2] == found


def test_a_job_that_could_be_backfilled_is_not_tested() -> None:
    """Its estimate is not longer than the test: if the backfiller leaves it, so do tests."""

    class Idle(EASY):
        def fill(self, head: Job, system: System) -> tuple[Job, ...]:
            return ()

    policy = Pipeline(backfiller=Idle(), tester=HoleTests(10))
    assert run(workload([*HOLE[:2], (2, 5, 10, 1)], 4), policy).start_time.tolist() == [0, 100, 150]


def test_no_test_reaches_into_maintenance() -> None:
    """Two of four nodes are gone from 50 s on: a test of 10 s fits before, a job of 500 s does not."""
    rows: list[Row] = [(0, 40, 40, 3), (1, 50, 50, 4), (3, 5, 500, 1), (41, 300, 500, 1)]
    calendar = Calendar([Window(45, 60, nodes=4)])
    result = run(workload(rows, 4), TESTS, calendar=calendar)
    assert attempts(result)[2] == [(3, 8)]
    assert attempts(result)[3][0][0] >= 60


def test_gantt_draws_tests() -> None:
    result = run(workload(HOLE, 4), TESTS)
    axes = plot_gantt(result, window=(0, 450))
    colours = {to_hex(each.get_facecolor()) for each in axes.patches + axes.artists}
    assert MODE_COLOURS["tested"] in colours


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("fcfs+easy+tests(seconds=0)", "seconds needs a whole number"),
        ("fcfs+easy+tests(seconds=[60, 60])", "several in ascending order"),
        ("fcfs+easy+tests(seconds=[])", "seconds needs a whole number"),
        ("fcfs+easy+tests(seconds='x')", "seconds needs a whole number"),
        ("fcfs+easy+tests(users=0)", "users needs a share above 0"),
        ("fcfs+easy+tests(users=many)", "users needs a share above 0, at most 1, found 'many'"),
        ("fcfs+easy+tests(largest=2)", "largest needs a share above 0"),
        ("fcfs+easy+tests(restartable='mine')", "no column 'mine'"),
        ("fcfs+tests", "tests need a backfiller with reservations"),
        ("fcfs+greedy+tests", "tests need a backfiller with reservations"),
        ("fcfs+fitting+tests", "tests need a backfiller with reservations"),
        ("fcfs+easy+preempt+tests", "either tests or a preemptor"),
    ],
)
def test_what_makes_no_sense_is_refused(policy: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        run(workload(HOLE, 4), policy)


@pytest.mark.parametrize("limit", [0, 500, None, 2.5])
def test_a_test_needs_a_limit_below_the_estimate(limit: Any) -> None:
    class Tries(Policy):
        def schedule(self, system: System) -> None:
            system.start(system.queue.first(), mode=Mode.TESTED, limit=limit)

    with pytest.raises(ScheduleError, match="a test needs a limit"):
        run(workload([(0, 5, 500, 1)], 4), Tries())


# --- a naive simulator, and invariants -----------------------------------------------------------------

LEVELS = st.sampled_from([[1], [2], [4], [1, 3], [2, 5, 9]])

KEYS: dict[str, Any] = {
    "fcfs": lambda job, now: job[0],
    "sjf": lambda job, now: job[2],
    "laf": lambda job, now: -job[2] * job[3],
    "xfactor": lambda job, now: -(now - job[0] + job[2]) / job[2],
}


@given(
    case=rows_and_size(), levels=LEVELS, order=st.sampled_from(sorted(KEYS)), limit=st.sampled_from([200, 2])
)
def test_easy_with_tests_equals_a_naive_simulator(
    case: tuple[list[Row], int], levels: list[int], order: str, limit: int
) -> None:
    rows, size = case
    with deep(limit):
        result = run(workload(rows, size), f"{order}+easy+tests(seconds={levels})")
    assert attempts(result) == attempts_with_tests(rows, size, levels, KEYS[order])


@given(case=rows_and_size(), levels=LEVELS, data=st.data())
def test_only_jobs_that_may_be_tested_are(
    case: tuple[list[Row], int], levels: list[int], data: st.DataObject
) -> None:
    rows, size = case
    allowed = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    policy = f"fcfs+easy+tests(seconds={levels}, restartable='qos')"
    result = run(workload(rows, size, qos=[int(each) for each in allowed]), policy)
    rows_allowed = {row for row, each in enumerate(allowed) if each}
    assert attempts(result) == attempts_with_tests(rows, size, levels, allowed=rows_allowed)


@pytest.mark.parametrize("backfilling", ["easy", "easy-sjf", "easy-k(2)", "conservative", "easy-saf"])
@given(
    case=rows_and_size(), levels=LEVELS, order=st.sampled_from(["fcfs", "sjf", "wfp3"]),
    walltime=st.sampled_from(["run", "kill"]),
)  # fmt: skip
def test_machines_equal_counted_nodes(
    backfilling: str, case: tuple[list[Row], int], levels: list[int], order: str, walltime: str
) -> None:
    rows, size = case
    name = f"{order}+{backfilling}+tests(seconds={levels})"
    expected = attempts(run(workload(rows, size), name, walltime=walltime))
    for cluster in (Machines.of(1, cpus=size), Machines.of(size, cpus=1)):
        assert attempts(run(workload(rows, size), name, cluster=cluster, walltime=walltime)) == expected


def check_tests(result: Result, levels: list[int]) -> None:
    """Check that stopped tests take as long as their level, once each, and that what is done is done once."""
    found = result.attempts
    if found is None:
        return
    tested = found.outcome == Outcome.TESTED
    number = found.number[tested]
    took = (found.end_time - found.start_time)[tested]
    assert took.tolist() == [levels[each - 1] for each in number]
    run_time = result.workload.run_time[found.job[tested]]
    assert (run_time > took).all()
    assert (found.outcome[found.number == found.count(len(result))[found.job]] != Outcome.TESTED).all()
    assert (np.bincount(found.job, found.work, len(result)) == result.workload.run_time).all()


@pytest.mark.parametrize("name", ["fcfs", "sjf+commit", "laf+commit", "fcfs+easy-sjf"])
@given(case=cases(), levels=LEVELS)
def test_no_head_starts_later_than_reserved(name: str, case: Any, levels: list[int]) -> None:
    """Where the head stays the head and estimates are upper bounds; also by the reservation after the tests."""
    policy = make(f"{name}+tests(seconds={levels})" if "easy" in name else f"{name}+easy+tests({levels})")

    class Promising(HoleTests):
        promised: ClassVar[dict[int, list[int]]] = {}

        def chosen(self, head: Job, filler: Backfiller, system: System) -> Iterator[tuple[Job, int, Level]]:
            before = reserve(head, system)[0]
            yield from super().chosen(head, filler, system)
            assert reserve(head, system)[0] <= before
            self.promised.setdefault(head.index, []).append(before)

    policy.tester = Promising(levels)
    Promising.promised.clear()
    result = run_on(*case, policy, walltime="kill")
    check_tests(result, levels)
    for row, promises in Promising.promised.items():
        assert promises == sorted(promises, reverse=True)
        assert result.start_time[row] <= promises[-1]


@given(case=cases(), levels=LEVELS, order=st.sampled_from(["fcfs", "sjf", "wfp3"]))
def test_conservative_keeps_every_promise_beside_tests(case: Any, levels: list[int], order: str) -> None:
    """A reservation only ever moves forward, also that of a job that is tested; no job starts after it."""
    policy = make(f"{order}+conservative+tests(seconds={levels})")
    policy.backfiller = PromisingConservative()
    PromisingConservative.promised.clear()
    result = run_on(*case, policy, walltime="kill")
    check_tests(result, levels)
    for row, promises in PromisingConservative.promised.items():
        assert promises == sorted(promises, reverse=True)
        assert result.start_time[row] <= promises[-1]


@pytest.mark.parametrize("backfilling", ["easy", "conservative", "easy-k(2)"])
@given(case=rows_and_size(), levels=LEVELS)
def test_partitions_that_share_machines(
    backfilling: str, case: tuple[list[Row], int], levels: list[int]
) -> None:
    """Each job is tested once at each level, wherever it waits; capacity is verified in each run."""
    rows, size = case
    whole = Machines.of(size, cpus=1)
    parts = [Partition("a", machines=whole.names), Partition("b", machines=whole.names[: max(size - 1, 1)])]
    small = [(at, taken, asked, min(nodes, max(size - 1, 1))) for at, taken, asked, nodes in rows]
    jobs = workload(small, size, partition=[row % 3 for row in range(len(rows))])
    jobs = replace(jobs, labels={"partition": ("a", "b", "a,b")})
    policy = make(f"fcfs+{backfilling}+tests(seconds={levels})")
    result = Simulation(jobs, policy, Partitions(parts, whole)).run()
    assert (result.end_time >= 0).all()
    check_tests(result, levels)


@given(case=rows_and_size(), period=st.sampled_from([2, 7]), levels=LEVELS)
def test_tests_end_between_passes(case: tuple[list[Row], int], period: int, levels: list[int]) -> None:
    rows, size = case
    check_tests(run(workload(rows, size), f"fcfs+easy+tests(seconds={levels})", period=period), levels)


def test_a_workload_without_long_estimates_is_not_changed() -> None:
    rows: list[Row] = [(number // 2, 1 + number % 7, 1 + number % 7, 1 + number % 4) for number in range(60)]
    jobs: Workload = workload(rows, 5)
    tested = run(jobs, "fcfs+easy+tests(seconds=10)")
    assert tested.hash == run(jobs, "fcfs+easy").hash
