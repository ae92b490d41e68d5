"""Test runs in holes: equal attempts on both simulators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.outages import Failures, Outage, Outages, OutageSource
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import attempts as of_attempts
from hpcsimkit.compiled import hole_tests, passes, plan, stops
from hpcsimkit.errors import ImpossibleScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, HoleTests, Pipeline
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.workloads import read_swf
from tests.compiled.test_equality import assert_equal_schedules, long_queue, uncompiled, workloads
from tests.compiled.test_stops import failing, restarts
from tests.drawn import examples
from tests.kernel.helpers import Row, rows_and_size, run, workload
from tests.kernel.naive_tests import attempts_with_tests
from tests.kernel.test_attempts import attempts

HOLE: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (2, 5, 500, 1), (3, 300, 500, 1)]
"""On four nodes: one node is free until 100 s, when the second job, the head, needs all four."""

ORDERS = [
    "fcfs",
    "lcfs",
    "sjf",
    "saf",
    "oracle-sjf",
    "wfp3",
    "unicef",
    "xfactor",
    "fcfs+window(3)",
    "wfp3+window(2)",
]
BACKFILLING = [
    "easy",
    "easy-sjf",
    "easy-ar",
    "easy-noise",
    "easy-k(1)",
    "easy-k(3)",
    "conservative-replan",
    "conservative",
]
LEVELS = ["1", "2", "5", "[1,4]", "[2,5,60]"]
WHO = ["", ", users=0.5", ", largest=0.4", ", restartable='queue'"]


def check(
    jobs: Workload,
    order: str,
    backfilling: str,
    levels: str,
    who: str,
    restart: Restart,
    walltime: str,
    seed: int,
) -> None:
    policy = make(f"{order}+{backfilling}+tests(seconds={levels}{who})")
    restart = Restart(delay=restart.delay) if backfilling == "conservative" else restart
    assert_equal_schedules(jobs, policy, restart=restart, walltime=walltime, seed=seed)


CASES = given(
    workloads(), st.sampled_from(ORDERS), st.sampled_from(BACKFILLING), st.sampled_from(LEVELS), st.sampled_from(WHO),
    st.just(Restart()) | restarts(), st.sampled_from(["run", "kill"]), st.integers(0, 9),
)  # fmt: skip
test_random_workloads = uncompiled(examples(4)(CASES(check)))
test_many_random_workloads = pytest.mark.slow(settings(max_examples=20_000)(CASES(check)))


def check_outages(
    drawn: tuple[Workload, OutageSource],
    order: str,
    backfilling: str,
    levels: str,
    restart: Restart,
    walltime: str,
) -> None:
    policy = make(f"{order}+{backfilling}+tests(seconds={levels})")
    assert_equal_schedules(drawn[0], policy, outages=drawn[1], restart=restart, walltime=walltime)


FAILING = given(
    failing(),
    st.sampled_from(ORDERS),
    st.sampled_from(["easy", "easy-k(2)"]),
    st.sampled_from(LEVELS),
    restarts(),
    st.sampled_from(["run", "kill"]),
)
test_random_outages = uncompiled(examples(4)(FAILING(check_outages)))
test_many_random_outages = pytest.mark.slow(settings(max_examples=10_000)(FAILING(check_outages)))


@uncompiled
@given(case=rows_and_size(), levels=st.sampled_from([[1], [2], [4], [1, 3], [2, 5, 9]]))
def test_equals_a_naive_simulator(case: tuple[list[Row], int], levels: list[int]) -> None:
    rows, size = case
    result = run(workload(rows, size), f"fcfs+easy+tests(seconds={levels})", simulator="compiled")
    assert attempts(result) == attempts_with_tests(rows, size, levels)


@uncompiled
def test_conservative_keeps_the_reservation_of_a_tested_job() -> None:
    """The tested job has its reservation at 150 s before and after; the one that came later has the next one."""
    rows: list[Row] = [*HOLE[:2], (3, 300, 500, 1), (5, 300, 500, 4)]
    found, _ = assert_equal_schedules(workload(rows, 4), make("fcfs+conservative+tests(seconds=10)"))
    assert attempts(found) == [[(0, 100)], [(100, 150)], [(3, 13), (150, 450)], [(450, 750)]]


@pytest.mark.parametrize("policy", ["wfp3+conservative", "fcfs+easy-k(3)"])
def test_long_queues_with_more_reservations(policy: str) -> None:
    """Compiled; with a delay, so that jobs are not back when their tests are over."""
    tests = make(f"{policy}+tests(seconds=[60, 900])")
    found, _ = assert_equal_schedules(long_queue(300), tests, restart=Restart(delay=7))
    assert found.attempts is not None
    assert (found.attempts.outcome == Outcome.TESTED).sum() > 10


@pytest.mark.parametrize("policy", ["unicef+easy", "sjf+easy-saf"])
def test_long_queues(policy: str) -> None:
    """Compiled; node by node fails, and many tests are stopped."""
    tests = make(f"{policy}+tests(seconds=[60, 900], users=0.7)")
    restart = Restart(delay=7, checkpoint=100, checkpoint_cost=2, cost=1)
    failures = Failures(mtbf=40_000, repair=500)
    found, _ = assert_equal_schedules(long_queue(300), tests, outages=failures, restart=restart)
    assert found.attempts is not None
    assert (found.attempts.outcome == Outcome.TESTED).sum() > 30
    assert (found.attempts.outcome == Outcome.FAILED).sum() > 5


@uncompiled
def test_by_hand() -> None:
    """The third job ends in its test at 7 s. The fourth is stopped at 17 s, and starts when it fits at 150 s."""
    found, _ = assert_equal_schedules(workload(HOLE, 4), make("fcfs+easy+tests(seconds=10)"))
    assert attempts(found) == [[(0, 100)], [(100, 150)], [(2, 7)], [(7, 17), (150, 450)]]


@uncompiled
def test_what_a_test_frees_goes_out_of_order_with_the_others() -> None:
    """From 5 s on, two nodes are to go out: one does when the test is over at 12 s, although a job waits for it."""
    rows: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (2, 300, 500, 1), (8, 5, 500, 1)]
    outages = Outages([Outage(5, 60, 2, drain=True)])
    found, _ = assert_equal_schedules(workload(rows, 4), make("fcfs+easy+tests(seconds=10)"), outages=outages)
    assert found.downtime is not None and found.downtime.start.tolist() == [12]
    assert attempts(found)[3][0][0] >= 60


@uncompiled
def test_the_users_are_those_drawn_by_the_kernel() -> None:
    """After the noise of the estimates, from the next generator of the run."""
    jobs = long_queue(120)
    policy = make("fcfs+easy-noise+tests(seconds=60, users=0.5)")
    found = [assert_equal_schedules(jobs, policy, seed=seed)[0].attempts for seed in (1, 2)]
    assert found[0] is not None and found[1] is not None
    assert found[0].job.tolist() != found[1].job.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", ["unicef+easy", "fcfs+easy-sjf", "wfp3+easy", "fcfs+easy-k(3)", "fcfs+conservative"]
)
@pytest.mark.parametrize(
    "log", ["KTH-SP2-1996-2.1-cln.swf.gz", "HPC2N-2002-2.2-cln.swf.gz", "ALCF-Theta-2022.swf.gz"]
)
def test_whole_logs(log: str, policy: str, shared: Path) -> None:
    jobs = read_swf(shared / "traces" / log)
    found, _ = assert_equal_schedules(
        jobs.fitting(jobs.machine_size), make(f"{policy}+tests(seconds=[60, 900])")
    )
    assert found.attempts is not None
    assert (found.attempts.outcome == Outcome.TESTED).sum() > 1000


def test_a_part_of_a_real_log(shared: Path) -> None:
    log = read_swf(shared / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz").fitting(100)
    found, _ = assert_equal_schedules(log.first(4000), make("unicef+easy+tests(seconds=300)"))
    assert found.attempts is not None
    assert (found.attempts.outcome == Outcome.TESTED).sum() > 100


# --- a break of the rules is noticed -------------------------------------------------------------------


@uncompiled
@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (hole_tests, "admissible", lambda room, nodes, seconds: nodes <= room[0]),  # the head is delayed
        (hole_tests, "less", lambda jobs, run, room, row: room),  # two tests take the same nodes
        (hole_tests, "sort", lambda listing, count: None),  # jobs are tested in the order of their submission
        (stops, "join", lambda jobs, stops, row: None),  # among equals, stopped jobs come back in front
        (of_attempts, "TESTED", -1),  # they go on where they were stopped
    ],
)
def test_a_broken_rule_is_noticed(
    place: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, broken)
    with pytest.raises((AssertionError, ImpossibleScheduleError)):
        _compare_some()


def _compare_some() -> None:
    for policy in ("unicef+easy+tests(seconds=60)", "lcfs+easy+tests(seconds=[60, 900])"):
        assert_equal_schedules(long_queue(200), make(policy))
    assert_equal_schedules(workload([*HOLE, *HOLE[2:]], 4), make("saf+easy+tests(seconds=10)"))


@uncompiled
@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (passes, "release_tested", lambda *state: None),  # reservations of jobs that are done remain
        (plan, "_reserve_after_test", lambda *state: False),  # a job is planned to start during its own test
        (hole_tests, "fits", lambda profile, nodes, seconds: True),  # tests delay reservations
    ],
)
def test_a_broken_plan_is_noticed(
    place: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, broken)
    with pytest.raises((AssertionError, ImpossibleScheduleError)):
        _compare_plans()


def _compare_plans() -> None:
    for order in ("fcfs", "sjf", "wfp3"):
        for levels in ("60", "[60, 900]"):
            policy = make(f"{order}+conservative+tests(seconds={levels})")
            assert_equal_schedules(long_queue(200), policy, restart=Restart(delay=30))


# --- refusals ------------------------------------------------------------------------------------------


class Own(HoleTests):
    """A tester of a user."""


@pytest.mark.parametrize(
    ("policy", "options", "reason"),
    [
        ("fcfs+conservative+tests", {"restart": Restart(cost=1)}, "where conservative backfilling has tests"),
        ("fcfs+conservative+tests", {"outages": Outages([])}, "it knows no outages, checkpoints or costs"),
        ("aged+easy+tests", {}, "the order Aged"),
        ("slurm+easy+tests", {}, "no SlurmMultifactor() where jobs may be stopped"),
        (
            "fcfs+easy+tests(users=0.5)",
            {"cluster": Partitions([Partition("a", nodes=64, default=True), Partition("b", nodes=64)])},
            "it draws no users over several partitions",
        ),
        ("fcfs+easy+tests", {"dependencies": True}, "it knows no Dependencies"),
        (Pipeline(backfiller=EASY(), tester=Own()), {}, "the tester Own() is not compiled"),
    ],
)
def test_refuses_with_the_reason(policy: Any, options: Any, reason: str) -> None:
    policy = make(policy) if isinstance(policy, str) else policy
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(long_queue(9), policy, simulator="compiled", **options).run()
    assert reason in str(error.value) and "\n" not in str(error.value)


@uncompiled
@pytest.mark.parametrize("parameters", ["seconds=[60, 60]", "users=2", "largest=0", "restartable=mine"])
def test_wrong_parameters_are_the_same_error(parameters: str) -> None:
    errors = []
    for simulator in ("simpy", "compiled"):
        with pytest.raises(UsageError) as error:
            Simulation(long_queue(9), f"fcfs+easy+tests({parameters})", simulator=simulator).run()
        errors.append(str(error.value))
    assert errors[0] == errors[1]
