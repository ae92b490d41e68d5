"""Jobs that outages of machines stop and that come back: equal attempts and placements on both simulators."""

from __future__ import annotations

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
from tests.compiled.test_equality import uncompiled
from tests.compiled.test_machines import PLACEMENTS, WINDOWS, assert_equal_results, without_counts
from tests.compiled.test_stops import restarts
from tests.drawn import examples
from tests.kernel.machine_cases import KINDS, cases
from tests.kernel.machine_helpers import asked, jobs_on_machines

ORDERS = ["fcfs", "lcfs", "sjf", "oracle-sjf", "wfp3"]
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
TWO = Machines.of(2, cpus=4)


@st.composite
def lists_of_outages(draw: Any, cluster: Machines) -> Outages:
    """Some outages of one machine or several, in any order, at the same time or not."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    found = []
    for _ in range(draw(st.integers(0, 9))):
        start, lasting = int(numbers.integers(0, 40)), int(numbers.choice([1, 3, 10, 40]))
        some = numbers.permutation(len(cluster))[: numbers.integers(1, len(cluster) + 1)]
        machines = tuple(map(int, some))
        found.append(Outage(start, start + lasting, machines=machines, drain=bool(numbers.random() < 0.4)))
    return Outages(found)


RANDOM = st.builds(
    Failures,
    mtbf=st.sampled_from([20, 200]),
    repair=st.sampled_from([3, 20]),
    rack=st.sampled_from([1, 2]),
)


@st.composite
def failing(draw: Any) -> tuple[Machines, Workload, OutageSource]:
    cluster, jobs = without_counts(draw(cases(sorted(KINDS.keys() - {"counts"}), most=25)))
    return cluster, jobs, draw(RANDOM if draw(st.integers(0, 3)) == 0 else lists_of_outages(cluster))


@pytest.fixture
def little_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outages are drawn one by one, and all that is recorded has to grow."""
    monkeypatch.setattr(stopping, "CHUNK", 1)
    monkeypatch.setattr(stopping, "SPACE", 0)


def check(
    drawn: tuple[Machines, Workload, OutageSource],
    order: str,
    placement: str,
    backfilling: str,
    window: str,
    restart: Restart,
    walltime: str,
    seed: int,
) -> None:
    cluster, jobs, outages = drawn
    policy = f"{order}{placement}+{backfilling}{'' if backfilling == 'fitting' else window}"
    options: dict[str, Any] = {"outages": outages, "restart": restart, "walltime": walltime, "seed": seed}
    assert_equal_results(jobs, policy, cluster, **options)


CASES = given(
    failing(),
    st.sampled_from(ORDERS),
    st.sampled_from(PLACEMENTS),
    st.sampled_from(BACKFILLING),
    st.sampled_from(WINDOWS),
    restarts(),
    st.sampled_from(["run", "kill"]),
    st.integers(0, 9),
)
test_random_outages = uncompiled(pytest.mark.usefixtures("little_space")(examples(8)(CASES(check))))
test_many_random_outages = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


SLOWER = (pytest.param(policy, marks=pytest.mark.slow) for policy in ("wfp3+easy-sjf", "fcfs+conservative"))


@pytest.mark.parametrize("policy", ["fcfs+best-fit+easy", *SLOWER])
def test_many_outages(policy: str) -> None:
    """Compiled; racks of machines fail, and all that is recorded has to grow."""
    numbers, count = np.random.default_rng(3), 300
    columns = {
        "submit_time": np.cumsum(numbers.integers(0, 40, count)),
        "run_time": numbers.integers(0, 900, count),
        "requested_time": numbers.choice([200, 600, 900], count),
        "nodes": numbers.integers(1, 3, count),
        "cpus": numbers.integers(1, 9, count),
        "memory": numbers.integers(0, 9, count) * 10**9,
    }
    jobs = Workload(columns, resources=("cpus", "memory"))
    cluster = Machines.of(4, cpus=8, memory="16 GB") + Machines.of(2, cpus=16, memory="8 GB")
    options = {"outages": Failures(mtbf=2_000, repair=300, rack=2), "restart": Restart(delay=30)}
    found = assert_equal_results(jobs, policy, cluster, **options)
    assert found.attempts is not None
    assert found.downtime is not None
    assert found.attempts.count(count).max() > 2
    assert len(found.downtime.start) > 50


def hand_drawn(jobs: list[Any], outages: list[Outage], policy: str = "fcfs+easy") -> Any:
    options = {"outages": Outages(outages)}
    return assert_equal_results(jobs_on_machines(jobs), policy, TWO, **options)


@uncompiled
def test_a_machine_drains_part_by_part() -> None:
    """Jobs of 2, 1 and 1 CPUs end at 10, 20 and 30 s: from 5 s on, what they leave goes out of order."""
    jobs = [asked(0, 10, cpus=2), asked(0, 20, cpus=1), asked(0, 30, cpus=1), asked(6, 5, cpus=4)]
    drained = Outage(5, 50, machines=(0,), drain=True)
    found = hand_drawn(jobs, [drained, Outage(0, 12, machines=(1,))], "fcfs+first-fit+easy")
    assert found.start_time.tolist() == [0, 0, 0, 12]
    parts = zip(found.downtime.start, found.downtime.machine, found.downtime.amount, strict=True)
    assert [tuple(map(int, part)) for part in parts] == [(0, 1, 4), (10, 0, 2), (20, 0, 1), (30, 0, 1)]


@uncompiled
def test_a_machine_that_another_outage_holds_is_taken_again() -> None:
    """The first outage ends at 20 s, and the second one, of both machines, has begun at 10 s."""
    outages = [Outage(5, 20, machines=(0,)), Outage(10, 30, machines=(1, 0))]
    found = hand_drawn([asked(0, 40, cpus=4), asked(1, 7, cpus=4), asked(2, 3, cpus=4)], outages)
    assert found.downtime.start.tolist() == [5, 10, 20]
    assert found.downtime.machine.tolist() == [0, 1, 0]
    assert found.attempts.job.tolist() == [0, 0, 0, 1, 2]
    assert found.attempts.start_time.tolist() == [0, 8, 30, 1, 30]


@uncompiled
@pytest.mark.parametrize("policy", ["fcfs+easy", "wfp3+easy"])
@pytest.mark.parametrize("newcomers", [[], [asked(15, 500, cpus=4)]], ids=["alone", "beside another"])
def test_a_job_that_comes_back_behind_the_same_head_is_tried(policy: str, newcomers: list[Any]) -> None:
    """The third job is backfilled at 2 s, fails at 5 s, and may start again at 15 s; the head waits since 1 s."""
    jobs = [asked(0, 100, cpus=3), asked(1, 10, cpus=4, nodes=2), asked(2, 20, cpus=4), *newcomers]
    options = {"outages": Outages([Outage(5, 6, machines=(1,))]), "restart": Restart(delay=10)}
    found = assert_equal_results(jobs_on_machines(jobs), policy, TWO, **options)
    assert found.attempts.start_time[found.attempts.job == 2].tolist() == [2, 15]


@uncompiled
def test_too_little_space_for_what_is_out_of_order(little_space: None) -> None:
    """One machine goes out of order in four parts, for which there is space after a new beginning."""
    jobs = [asked(0, end, cpus=1) for end in (10, 20, 30)]
    found = hand_drawn(jobs, [Outage(5, 50, machines=(0,), drain=True)])
    assert found.downtime.start.tolist() == [5, 10, 20, 30]


@uncompiled
def test_a_partition_over_all_machines() -> None:
    whole = Partitions([Partition("all", default=True)], TWO)
    jobs = jobs_on_machines([asked(0, 10, cpus=4), asked(0, 10, cpus=4)])
    found = assert_equal_results(jobs, "fcfs+easy", whole, outages=Outages([Outage(5, 9, machines=(1,))]))
    assert found.attempts.partition.tolist() == ["all"] * 3


@pytest.mark.parametrize(
    ("policy", "outages", "reason"),
    [
        ("fcfs+preempt", [], "it knows a preemptor on homogeneous nodes only"),
        ("fcfs+easy", [Outage(5, 2 * 10**11, machines=(0,))], "its outages end too late"),
    ],
)
def test_refuses_with_the_reason(policy: str, outages: list[Outage], reason: str) -> None:
    jobs = jobs_on_machines([asked(0, 10, cpus=4)])
    with pytest.raises(UsageError, match=reason):
        Simulation(jobs, make(policy), TWO, outages=Outages(outages), simulator="compiled").run()
