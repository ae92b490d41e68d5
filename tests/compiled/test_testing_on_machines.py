"""Test runs in holes on machines: equal attempts and placements on both simulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages, OutageSource
from hpcsimkit.compiled import (
    hole_tests,
    hole_tests_on_machines,
    machine_profile,
    passes,
    plan,
    planned_filling,
)
from hpcsimkit.errors import ImpossibleScheduleError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.results.result import Result
from tests.compiled.test_equality import uncompiled
from tests.compiled.test_machine_outages import failing, little_space
from tests.compiled.test_machines import PLACEMENTS, assert_equal_results, without_counts
from tests.compiled.test_stops import restarts
from tests.compiled.test_testing import LEVELS, WHO
from tests.drawn import examples
from tests.kernel.machine_cases import KINDS, cases
from tests.kernel.machine_helpers import asked, jobs_on_machines
from tests.kernel.test_attempts import attempts

__all__ = ["little_space"]

ORDERS = ["fcfs", "lcfs", "saf", "oracle-sjf", "wfp3", "unicef", "fcfs+window(3)", "wfp3+window(2)"]
BACKFILLING = [
    "easy",
    "easy-sjf",
    "easy-ar",
    "easy-k(1)",
    "easy-k(2)",
    "easy-k(3)",
    "conservative-replan",
    "conservative",
]


@st.composite
def on_machines(draw: Any) -> tuple[Machines, Workload]:
    return without_counts(draw(cases(sorted(KINDS.keys() - {"counts"}), most=25)))


def check(
    drawn: tuple[Machines, Workload] | tuple[Machines, Workload, OutageSource],
    order: str,
    placement: str,
    backfilling: str,
    levels: str,
    who: str,
    restart: Restart,
    walltime: str,
    seed: int,
) -> None:
    cluster, jobs, *outages = drawn
    who = "" if "restartable" in who else who
    if backfilling == "conservative":
        outages, restart = [], Restart(delay=restart.delay)
    policy = f"{order}{placement}+{backfilling}+tests(seconds={levels}{who})"
    options: dict[str, Any] = {"restart": restart, "walltime": walltime, "seed": seed}
    if outages:
        options["outages"] = outages[0]
    assert_equal_results(jobs, policy, cluster, **options)


def of(drawn: Any) -> Any:
    return given(
        drawn,
        st.sampled_from(ORDERS),
        st.sampled_from(PLACEMENTS),
        st.sampled_from(BACKFILLING),
        st.sampled_from(LEVELS),
        st.sampled_from(WHO),
        st.just(Restart()) | restarts(),
        st.sampled_from(["run", "kill"]),
        st.integers(0, 9),
    )


test_random_workloads = uncompiled(examples(8)(of(on_machines())(check)))
test_many_random_workloads = pytest.mark.slow(settings(max_examples=20_000)(of(on_machines())(check)))
test_random_outages = uncompiled(pytest.mark.usefixtures("little_space")(examples(4)(of(failing())(check))))
test_many_random_outages = pytest.mark.slow(settings(max_examples=10_000)(of(failing())(check)))


TWO = Machines.of(2, cpus=4)
HOLE = [
    asked(0, 100, cpus=3),
    asked(1, 50, cpus=4, nodes=2),
    asked(2, 500, cpus=4),
    asked(3, 5, requested=500, cpus=1),
]
"""The second job, the head, needs both machines at 100 s. Until then one CPU of the first is free, and the other."""


def number_tested(result: Result) -> int:
    assert result.attempts is not None
    return int((result.attempts.outcome == Outcome.TESTED).sum())


@uncompiled
def test_by_hand() -> None:
    """The third job is stopped at 12 s, and starts behind the head; the fourth ends in its test."""
    found = assert_equal_results(jobs_on_machines(HOLE), "fcfs+easy+tests(seconds=10)", TWO)
    assert attempts(found) == [[(0, 100)], [(100, 150)], [(2, 12), (150, 650)], [(3, 8)]]


@uncompiled
def test_two_tests_together_leave_reservations_their_machines() -> None:
    """Of the second machine, reservations leave one CPU from 5 s on, so that the last job is tested at 12 s."""
    jobs = [
        asked(0, 5, cpus=4),
        asked(0, 5, cpus=2),
        asked(1, 50, cpus=4),
        asked(1, 50, cpus=3),
        asked(1, 50, cpus=4, nodes=2),
        asked(2, 500, cpus=1),
        asked(2, 500, cpus=1),
    ]
    found = assert_equal_results(jobs_on_machines(jobs), "fcfs+easy-k(3)+tests(seconds=10)", TWO)
    assert [job[0] for job in attempts(found)[2:]] == [(5, 55), (5, 55), (55, 105), (2, 12), (12, 22)]


@uncompiled
def test_what_a_test_frees_goes_out_of_order_with_the_others() -> None:
    """From 5 s on, the machine is to go out: a CPU does when the test is over at 12 s, although a job waits for it."""
    jobs = [
        asked(0, 100, cpus=3),
        asked(1, 50, cpus=4),
        asked(2, 300, requested=500, cpus=1),
        asked(8, 5, requested=500, cpus=1),
    ]
    outages = Outages([Outage(5, 60, machines=(0,), drain=True)])
    one = Machines.of(1, cpus=4)
    found = assert_equal_results(jobs_on_machines(jobs), "fcfs+easy+tests(seconds=10)", one, outages=outages)
    assert found.downtime is not None and found.downtime.start.tolist() == [12]
    assert attempts(found)[3][0][0] >= 60


@uncompiled
def test_a_job_is_back_from_its_test_when_its_reservation_begins() -> None:
    """Of two reservations, the second begins at 150 s; a test of 200 s would go on until then, one of 60 s not."""
    for seconds, expected in ((200, [(150, 650)]), (60, [(2, 62), (150, 650)])):
        found = assert_equal_results(
            jobs_on_machines(HOLE[:3]), f"fcfs+easy-k(2)+tests(seconds={seconds})", TWO
        )
        assert attempts(found)[2] == expected


def busy(count: int) -> tuple[Machines, Workload]:
    """Machines of two kinds, and jobs of one node, of two, and pooled ones, whose estimates are too long."""
    numbers = np.random.default_rng(5)
    columns = {
        "submit_time": np.cumsum(numbers.integers(0, 60, count)),
        "run_time": numbers.choice([5, 50, 300, 900], count),
        "requested_time": numbers.choice([200, 900, 2000], count),
        "nodes": numbers.integers(1, 4, count),
        "cpus": numbers.integers(1, 9, count),
        "memory": numbers.integers(0, 9, count) * 10**9,
        "spread": numbers.integers(0, 2, count),
    }
    cluster = Machines.of(4, cpus=8, memory="16 GB") + Machines.of(2, cpus=16, memory="8 GB")
    jobs = Workload(columns, resources=("cpus", "memory"))
    return cluster, jobs.without(cluster.misfits(jobs), "fits no machine")


@uncompiled
@pytest.mark.parametrize("walltime", ["kill", "run"])
def test_plans_on_totals_once_the_last_job_that_needs_a_machine_has_ended_in_its_test(walltime: str) -> None:
    """Of many pooled jobs and a few of one machine, which end in their tests."""
    numbers, count = np.random.default_rng(0), 40
    spread = numbers.random(count) < 0.8
    columns = {
        "submit_time": np.cumsum(numbers.integers(0, 60, count)),
        "run_time": np.where(spread, numbers.choice([100, 300, 900], count), 5),
        "requested_time": np.where(spread, numbers.choice([300, 900], count), 2000),
        "nodes": np.ones(count, dtype=np.int64),
        "cpus": np.where(spread, numbers.integers(4, 24, count), numbers.integers(1, 5, count)),
        "spread": spread.astype(np.int64),
    }
    jobs = Workload(columns, resources=("cpus",))
    name = "fcfs+conservative+tests(seconds=20)"
    assert_equal_results(jobs, name, Machines.of(4, cpus=8), walltime=walltime)


SLOWER = [
    pytest.param(f"wfp3+worst-fit+{backfilling}", marks=pytest.mark.slow)
    for backfilling in ("easy-k(3)", "conservative")
]


@pytest.mark.parametrize("policy", ["unicef+best-fit+easy", *SLOWER])
def test_many_tests(policy: str) -> None:
    """Compiled; with a delay, so that jobs are not back when their tests are over."""
    cluster, jobs = busy(400)
    name = f"{policy}+tests(seconds=[60, 700])"
    assert number_tested(assert_equal_results(jobs, name, cluster, restart=Restart(delay=7))) > 20


# --- a break of the rules is noticed -------------------------------------------------------------------


@uncompiled
@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (hole_tests_on_machines, "reserve", lambda machines, head, now: now + 10**6),  # the head is delayed
        (hole_tests_on_machines, "sort", lambda listing, count: None),  # tested in the order of submission
        (hole_tests_on_machines, "fits_throughout", lambda machines, profile, row, seconds: True),
        (hole_tests_on_machines, "hold_started", lambda *state: None),  # two tests in the same hole
        (hole_tests_on_machines, "RESERVED", hole_tests_on_machines.RESERVED - 1),  # not back in time
        (planned_filling, "RESERVED", 2),  # the reservation of an earlier pass
        (hole_tests, "take_free", lambda *state: None),  # what drains goes on running jobs
    ],
)
def test_a_broken_rule_is_noticed(
    place: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, broken)
    with pytest.raises((AssertionError, ImpossibleScheduleError)):
        _compare_some()


@uncompiled
@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (machine_profile, "is_away", lambda tests, row: False),  # a job starts that is not back
        (plan, "_reserve_after_test", lambda *state: False),  # it is reserved a slot during its test
        (plan, "_entry", lambda plan, tests, machines, row: row),  # its reservation ends with its test
        (hole_tests_on_machines, "note_unexamined", lambda profile, row: None),  # it has missed releases
        (machine_profile, "_settle_machines_of", lambda profile, entry: None),  # what its last test frees
        (passes, "release_tested", lambda *state: None),  # its reservation stays when it ends in its test
    ],
)
def test_a_broken_rule_of_plans_is_noticed(
    place: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, broken)
    with pytest.raises((AssertionError, ImpossibleScheduleError, IndexError)):
        _compare_plans()


def _compare_plans() -> None:
    cluster, jobs = busy(80)
    for policy, levels, delay, walltime in (
        ("fcfs", "20", 300, "kill"),
        ("saf", "[1, 2, 3, 5]", 300, "kill"),
        ("wfp3", "[20, 100]", 0, "run"),
        ("fcfs+best-fit", "20", 30, "run"),
    ):
        name = f"{policy}+conservative+tests(seconds={levels})"
        restart = Restart(delay=delay)
        assert_equal_results(jobs, name, cluster, restart=restart, walltime=walltime)
    test_totals_after_two_tests_on_different_machines()


@uncompiled
def test_totals_after_two_tests_on_different_machines() -> None:
    """A whole machine of 16 CPUs is free again at 7 s, and one of 8 at 16 s: 15 CPUs of two machines, then.

    The second job needs all machines at 100 s. The third is tested on the machine of 16 CPUs, and then, since the
    fourth starts there at 7 s, on another.
    """
    three = Machines.of(1, cpus=8) + Machines.of(1, cpus=16) + Machines.of(1, cpus=8)
    jobs = [
        asked(0, 100, cpus=1),
        asked(1, 100, cpus=8, nodes=3),
        asked(2, 500, requested=1000, cpus=1, exclusive=True),
        asked(3, 60, cpus=16),
        asked(8, 40, cpus=15, spread=True),
    ]
    name = "fcfs+conservative+tests(seconds=[5, 9])"
    found = assert_equal_results(jobs_on_machines(jobs), name, three)
    assert attempts(found)[2:] == [[(2, 7), (7, 16), (200, 700)], [(7, 67)], [(16, 56)]]


test_plans_with_tests = uncompiled(_compare_plans)


def _compare_some() -> None:
    cluster, jobs = busy(250)
    for policy in ("unicef+easy", "sjf+easy-k(3)", "wfp3+easy-k(2)"):
        for levels in ("20", "[60, 700]"):
            name = f"{policy}+tests(seconds={levels})"
            assert_equal_results(jobs, name, cluster, restart=Restart(delay=30))
    test_two_tests_together_leave_reservations_their_machines()
    test_what_a_test_frees_goes_out_of_order_with_the_others()
