"""The order that simulates what is to come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit import Machines, Pipeline, Simulation, check_policy, make
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.policy import FCFS
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.portfolio.looking_ahead import LookingAhead
from hpcsimkit.results.result import Result
from tests.kernel.helpers import workload

CROWD = workload([(0, 100, 100, 4), (1, 60, 60, 4), (2, 10, 10, 4), (3, 10, 10, 4), (90, 5, 5, 4)], 4)


def heuristic(policy: str) -> list[int]:
    return Simulation(CROWD, make(policy)).run().start_time.tolist()


def run(order: LookingAhead, jobs: Any = CROWD, cluster: Any = None) -> Result:
    return Simulation(jobs, Pipeline(order, backfiller=EASY()), cluster).run()


def test_a_portfolio_of_one_is_that_order() -> None:
    assert run(LookingAhead([SJF()])).start_time.tolist() == heuristic("sjf+easy")


def test_follows_the_better_order() -> None:
    by_request = run(LookingAhead([FCFS(), SJF()], every=1, objective="wait"))
    assert by_request.start_time.tolist() == heuristic("sjf+easy")
    first = run(LookingAhead([FCFS(), SJF()], every=10_000))
    assert first.start_time.tolist() == heuristic("sjf+easy"), "reviewed once, with two jobs waiting"


def test_reads_estimates_not_run_times() -> None:
    # The second job asks for little and takes long: by its request it goes first.
    jobs = workload([(0, 100, 100, 4), (1, 60, 10, 4), (2, 10, 60, 4)], 4)
    assert run(LookingAhead([FCFS(), SJF()]), jobs).start_time.tolist() == [0, 100, 160]
    actual = Simulation(jobs, make("looking-ahead+easy+actual")).run()
    assert actual.start_time.tolist() == [0, 100, 160], "no order of the portfolio sees run times"
    longer = workload([(0, 100, 100, 4), (1, 600, 10, 4), (2, 10, 60, 4)], 4)
    assert run(LookingAhead([FCFS(), SJF()]), longer).start_time.tolist() == [0, 100, 700]


def test_on_machines_and_partitions() -> None:
    order = LookingAhead([FCFS(), SJF()], deepest=8)
    check_policy(Pipeline(order, backfiller=EASY()), cluster=Machines.of(3, cpus=4, gpus=1))
    parts = Partitions([Partition("a", nodes=4, default=True), Partition("b", nodes=2)])
    together = run(LookingAhead([FCFS(), SJF()]), CROWD, parts)
    assert together.start_time.tolist() == run(LookingAhead([FCFS(), SJF()])).start_time.tolist()


def test_better_than_its_worst_order_on_a_crowded_cluster() -> None:
    random = np.random.default_rng(2)
    rows = [
        (int(at), int(lasts), int(lasts), int(nodes))
        for at, lasts, nodes in zip(
            np.sort(random.integers(0, 20_000, 300)),
            random.lognormal(5, 1.5, 300) + 1,
            random.integers(1, 9, 300),
            strict=True,
        )
    ]
    jobs = workload(rows, 8)

    def slowdown(policy: Any) -> float:
        return float(Simulation(jobs, policy).run().bounded_slowdown().mean())

    ahead = slowdown(Pipeline(LookingAhead([FCFS(), SJF()], every=600), backfiller=EASY()))
    assert ahead < slowdown(make("fcfs+easy"))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"every": 0}, "every needs a whole number of at least 1, found 0"),
        ({"deepest": 2.5}, "deepest needs a whole number of at least 1, found 2.5"),
        ({"objective": "speed"}, "objective needs 'bounded slowdown' or 'wait', found 'speed'"),
        ({"orders": ["sjf"]}, r"a sequence of orders is needed, found \['sjf'\]"),
        ({"orders": []}, r"a sequence of orders is needed, found \[\]"),
    ],
)
def test_wrong_parameters(options: dict[str, Any], found: str) -> None:
    with pytest.raises(UsageError, match=found):
        run(LookingAhead(**options))
