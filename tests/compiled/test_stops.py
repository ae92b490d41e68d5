"""Jobs that outages stop and that come back: equal attempts and outages on both simulators."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Failures, Outage, Outages, OutageSource
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import stopping
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, FCFS, Pipeline
from tests.compiled.test_equality import assert_equal_schedules, long_queue, uncompiled, workloads
from tests.drawn import examples

ORDERS = ["fcfs", "lcfs", "sjf", "saf", "oracle-sjf", "wfp3", "fcfs+window(3)"]
BACKFILLING = [
    "none",
    "easy",
    "easy-sjf",
    "easy-ar",
    "easy-noise",
    "greedy",
    "fitting",
    "easy-k(1)",
    "easy-k(3)",
    "conservative",
    "conservative-replan",
]


@st.composite
def restarts(draw: Any) -> Restart:
    checkpoint = draw(st.sampled_from([None, None, 3, 20]))
    return Restart(
        preempted=draw(st.sampled_from(["continue", "anew"])),
        delay=draw(st.sampled_from([0, 0, 1, 30])),
        limit=draw(st.sampled_from([None, None, 0, 1])),
        checkpoint=checkpoint,
        checkpoint_cost=0 if checkpoint is None else draw(st.integers(0, 3)),
        cost=draw(st.sampled_from([0, 0, 2])),
    )


@st.composite
def lists_of_outages(draw: Any, size: int) -> Outages:
    """Some outages, in any order, of which no more than all nodes are out of order at once."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    found: list[Outage] = []
    for _ in range(draw(st.integers(0, 7))):
        start = int(numbers.choice([0, 5, 20, 60, 100, 300]) + numbers.integers(0, 60))
        drawn = Outage(
            start,
            start + int(numbers.choice([1, 5, 20, 100])),
            int(numbers.integers(1, size + 1)),
            position=float(numbers.choice([0, 0.3, 0.7, 1])),
            drain=bool(numbers.random() < 0.3),
        )
        beginnings = [each.start for each in (*found, drawn)]
        at_once = [sum(o.nodes for o in (*found, drawn) if o.start <= at < o.end) for at in beginnings]
        if max(at_once) <= size:
            found.append(drawn)
    return Outages(found)


RANDOM = st.builds(
    Failures,
    mtbf=st.sampled_from([30_000, 200_000]),
    repair=st.sampled_from([5, 60]),
    law=st.sampled_from(["exponential", "weibull", "lognormal"]),
    shape=st.just(0.7),
    rack=st.sampled_from([1, 3]),
)


@st.composite
def failing(draw: Any) -> tuple[Workload, OutageSource]:
    jobs = draw(workloads())
    return jobs, draw(RANDOM if draw(st.integers(0, 3)) == 0 else lists_of_outages(jobs.machine_size))


@pytest.fixture(params=[(1, 0)])
def little_space(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outages are drawn one by one, and the record of stopped attempts has to grow."""
    chunk, space = request.param
    monkeypatch.setattr(stopping, "CHUNK", chunk)
    monkeypatch.setattr(stopping, "SPACE", space)


def check(
    drawn: tuple[Workload, OutageSource],
    order: str,
    backfilling: str,
    restart: Restart,
    walltime: str,
    seed: int,
) -> None:
    jobs, outages = drawn
    order = order.partition("+")[0] if backfilling == "fitting" else order
    policy = make(f"{order}+{backfilling}")
    assert_equal_schedules(jobs, policy, outages=outages, restart=restart, walltime=walltime, seed=seed)


CASES = given(
    failing(),
    st.sampled_from(ORDERS),
    st.sampled_from(BACKFILLING),
    restarts(),
    st.sampled_from(["run", "kill"]),
    st.integers(0, 9),
)
test_random_outages = uncompiled(pytest.mark.usefixtures("little_space")(examples(8)(CASES(check))))
test_many_random_outages = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


@st.composite
def preemptors(draw: Any) -> str:
    first = draw(st.sampled_from(["youngest", "oldest", "least_lost", "smallest", "placement"]))
    mode, exempt = (
        draw(st.sampled_from(["requeue", "requeue", "cancel"])),
        draw(st.sampled_from([0, 0, 5, 50])),
    )
    return f"preempt(first={first}, mode={mode}, exempt_time={exempt})"


def check_preemption(
    drawn: tuple[Workload, OutageSource], order: str, backfilling: str, preemptor: str, restart: Restart
) -> None:
    policy = make(f"{order}+{backfilling}+{preemptor}")
    assert_equal_schedules(drawn[0], policy, outages=drawn[1], restart=restart)


PREEMPTED = given(
    failing(),
    st.sampled_from(ORDERS),
    st.sampled_from(["none", "easy", "easy-sjf", "greedy", "easy-k(3)", "conservative-replan"]),
    preemptors(),
    restarts(),
)
test_random_preemption = uncompiled(
    pytest.mark.usefixtures("little_space")(examples(8)(PREEMPTED(check_preemption)))
)
test_much_random_preemption = pytest.mark.slow(settings(max_examples=10_000)(PREEMPTED(check_preemption)))


@uncompiled
@pytest.mark.usefixtures("little_space")
@pytest.mark.parametrize("order", ["fcfs", "wfp3"])
def test_more_stops_in_a_pass_than_there_is_space_for(order: str) -> None:
    """Four jobs stop four others, and are stopped by four more; the run begins again, with space for eight."""
    columns = {"submit_time": [0] * 4 + [5] * 8, "run_time": [20] * 12, "nodes": [1] * 12}
    jobs = Workload({**columns, "queue": [0] * 4 + [1] * 4 + [2] * 4}, machine_size=4)
    found, _ = assert_equal_schedules(jobs, make(f"{order}+preempt"), restart=Restart(delay=9))
    assert found.attempts is not None
    assert found.attempts.job[found.attempts.end_time == 5].tolist() == list(range(8))


@pytest.mark.parametrize(
    "policy",
    ["sjf+easy", "fcfs+conservative", "wfp3+easy-sjf+preempt(by=user)", "fcfs+easy-k(3)+preempt(by=user)"],
)
def test_long_queues(policy: str) -> None:
    """Compiled; node by node fails, some of them again before the last one is repaired."""
    failures = Failures(mtbf=40_000, repair=500)
    restart = Restart(delay=7, checkpoint=100, checkpoint_cost=2, cost=1)
    found, _ = assert_equal_schedules(long_queue(300), make(policy), outages=failures, restart=restart)
    assert found.attempts is not None and len(found.attempts) > 310
    assert found.downtime is not None and len(found.downtime.start) > 20


@uncompiled
def test_checkpoints_without_outages() -> None:
    restart = Restart(checkpoint=10, checkpoint_cost=1)
    found, _ = assert_equal_schedules(long_queue(40), make("fcfs+easy"), restart=restart)
    assert found.attempts is not None and (found.attempts.overhead > 0).any()


@uncompiled
def test_a_partition_over_all_nodes() -> None:
    jobs, whole = long_queue(30), Partitions([Partition("all", nodes=64, default=True)])
    outages = Outages([Outage(50, 90, 60), Outage(300, 400, 64)])
    found, reference = assert_equal_schedules(jobs, make("fcfs"), cluster=whole, outages=outages)
    assert found.started_in is not None and reference.started_in is not None
    assert found.started_in.tolist() == reference.started_in.tolist()


@uncompiled
def test_a_job_that_is_stopped_before_the_next_pass_is_planned_like_one_that_arrives() -> None:
    """It has had a reservation, which it used at 0 s; at 5 s it comes behind the other one.

    Without the outage the other job would start at 20 s; with it, both nodes are there from 9 s on.
    """
    jobs = Workload({"submit_time": [0, 0], "run_time": [20, 8], "nodes": [2, 2]}, machine_size=2)
    outages = Outages([Outage(5, 9, 1)])
    found, _ = assert_equal_schedules(jobs, make("fcfs+conservative"), outages=outages)
    assert found.attempts is not None
    starts = [found.attempts.start_time[found.attempts.job == row].tolist() for row in (0, 1)]
    assert all(before < after for row in starts for before, after in pairwise(row))
    assert starts == [[0, 17], [9]]


@uncompiled
@pytest.mark.parametrize(("position", "nodes", "failed"), [(0.25, 1, [1]), (0.3, 2, [1, 2]), (1.0, 1, [3])])
def test_an_outage_hits_the_jobs_on_its_nodes_only(position: float, nodes: int, failed: list[int]) -> None:
    jobs = Workload({"submit_time": [0] * 4, "run_time": [20] * 4, "nodes": [1] * 4}, machine_size=4)
    outages = Outages([Outage(5, 9, nodes, position=position)])
    found, _ = assert_equal_schedules(jobs, make("fcfs"), outages=outages)
    assert found.attempts is not None
    assert np.flatnonzero(found.attempts.count(4) > 1).tolist() == failed


@uncompiled
@pytest.mark.parametrize(("delay", "submitted", "starts"), [(0, 5, [9, 29]), (5, 10, [18, 10])])
def test_jobs_that_come_back_are_planned_before_or_after_submissions(
    delay: int, submitted: int, starts: list[int]
) -> None:
    """At once: before the submissions of the instant; after a delay: behind them."""
    columns = {"submit_time": [0, submitted], "run_time": [20, 8], "nodes": [2, 2]}
    found, _ = assert_equal_schedules(
        Workload(columns, machine_size=2),
        make("fcfs+conservative"),
        outages=Outages([Outage(5, 9, 1)]),
        restart=Restart(delay=delay),
    )
    assert found.attempts is not None
    assert found.attempts.start_time[found.attempts.number > 1].tolist() == starts[:1]
    assert found.start_time.tolist() == [0, starts[1]]


@uncompiled
def test_of_equal_jobs_the_first_of_the_log_is_stopped() -> None:
    """Although the other one is expected to end before it."""
    columns = {"submit_time": [0, 0, 5], "run_time": [20] * 3, "nodes": [1] * 3, "queue": [0, 0, 1]}
    jobs = Workload({**columns, "requested_time": [90, 50, 20]}, machine_size=2)
    found, _ = assert_equal_schedules(jobs, make("fcfs+preempt"))
    assert found.attempts is not None and found.attempts.count(3).tolist() == [2, 1, 1]


@uncompiled
def test_outages_that_wait_for_nodes_keep_their_own_ends() -> None:
    """A node goes at 10 s until 40 s; of two others, one goes at 20 s and one at 30 s, until 60 s."""
    columns = {"submit_time": [0, 0, 0, 0, 35], "run_time": [10, 20, 30, 31, 5], "nodes": [1, 1, 1, 1, 4]}
    outages = Outages([Outage(5, 40, nodes=1, drain=True), Outage(6, 60, nodes=2, drain=True)])
    found, _ = assert_equal_schedules(Workload(columns, machine_size=4), make("fcfs"), outages=outages)
    assert found.start_time.tolist() == [0, 0, 0, 0, 60]


@uncompiled
def test_nodes_of_a_job_that_ends_at_once_go_out_of_order_with_the_others() -> None:
    """At 10 s the first job is stopped for one without run time, at whose end both nodes go out of order."""
    columns = {"submit_time": [0, 10], "run_time": [100, 0], "nodes": [2, 1], "queue": [0, 1]}
    outages = Outages([Outage(5, 50, 2, drain=True)])
    found, _ = assert_equal_schedules(
        Workload(columns, machine_size=2), make("fcfs+preempt"), outages=outages
    )
    assert found.downtime is not None and found.downtime.amounts.tolist() == [[2]]


class OwnOutages(OutageSource):
    """Outages of a user's class."""

    def outages(self, cluster: Any, begin: int, rng: np.random.Generator) -> Any:
        return iter(())

    @property
    def record(self) -> object:
        return None


@pytest.mark.parametrize(
    ("policy", "options", "reason"),
    [
        ("fcfs+easy", {"outages": OwnOutages()}, "it knows no outages"),
        ("random+easy", {"restart": Restart(delay=1)}, "no RandomOrder() where jobs may be stopped"),
        ("slurm+easy", {"restart": Restart(delay=1)}, "no SlurmMultifactor() where jobs may be stopped"),
        ("fcfs+preempt(grace_time=5)", {}, "no suspensions and no grace"),
        ("fcfs+preempt(mode=suspend)", {}, "no suspensions and no grace"),
        (
            "fcfs+preempt",
            {"cluster": Machines.of(2, cpus=64)},
            "it knows a preemptor on homogeneous nodes only",
        ),
        ("fcfs+easy++", {"restart": Restart(delay=1)}, "where jobs may be stopped"),
    ],
)
def test_refuses_with_the_reason(policy: str, options: Any, reason: str) -> None:
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(long_queue(9), make(policy), simulator="compiled", **options).run()
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_wrong_outages_are_the_same_error() -> None:
    outages = Outages([Outage(5, 9, 70)])
    errors = []
    for simulator in ("simpy", "compiled"):
        with pytest.raises(UsageError) as error:
            Simulation(
                long_queue(9), Pipeline(FCFS(), backfiller=EASY()), outages=outages, simulator=simulator
            ).run()
        errors.append(str(error.value))
    assert errors[0] == errors[1]
