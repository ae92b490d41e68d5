"""Windows of a calendar on homogeneous nodes: equal schedules on both simulators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from tests.compiled.test_equality import (
    assert_equal_results,
    assert_equal_schedules,
    long_queue,
    uncompiled,
    workloads,
)
from tests.drawn import examples

ORDERS = ["fcfs", "lcfs", "sjf", "saf", "wfp3", "fcfs+window(3)", "slurm", "random"]
BACKFILLING = [
    "none",
    "easy",
    "easy-sjf",
    "easy-noise",
    "easy++",
    "greedy",
    "fitting",
    "easy-k(1)",
    "easy-k(3)",
    "conservative",
    "conservative+last-two",
    "conservative-replan",
]


@st.composite
def windows_for(draw: Any) -> Callable[[int], Calendar]:
    """Some windows of a cluster of any size, of which one may have begun before the first submission."""
    numbers, count = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(1, 7))

    def made(size: int) -> Calendar:
        found: list[Window] = []
        while not found:
            for _ in range(count):
                start = int(numbers.choice([-50, 0, 5, 20, 60, 100, 300]) + numbers.integers(0, 60))
                end = start + int(numbers.choice([1, 5, 20, 100]))
                drawn = Window(start, end, int(numbers.integers(1, size + 1)))
                beginnings = [each.start for each in (*found, drawn)]
                at_once = [
                    sum(w.nodes for w in (*found, drawn) if w.start <= at < w.end) for at in beginnings
                ]
                if max(at_once) <= size:
                    found.append(drawn)
        return Calendar(found)

    return made


@st.composite
def beside_windows(draw: Any) -> tuple[Workload, Calendar]:
    """Jobs and windows."""
    jobs, windows = draw(workloads()), draw(windows_for())
    return jobs, windows(jobs.machine_size)


def check(drawn: tuple[Workload, Calendar], order: str, backfilling: str, walltime: str, seed: int) -> None:
    jobs, calendar = drawn
    order = order.partition("+")[0] if backfilling == "fitting" else order
    policy = make(f"{order}+{backfilling}")
    assert_equal_results(jobs, policy, calendar=calendar, walltime=walltime, seed=seed)


CASES = given(
    beside_windows(),
    st.sampled_from(ORDERS),
    st.sampled_from(BACKFILLING),
    st.sampled_from(["run", "kill"]),
    st.integers(0, 9),
)
test_random_windows = uncompiled(examples(8)(CASES(check)))
test_many_random_windows = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


@pytest.mark.parametrize("policy", ["sjf+easy", "fcfs+conservative", "wfp3+easy-k(3)", "lcfs+greedy"])
def test_long_queues(policy: str) -> None:
    """Compiled; every 1000 s, half of the nodes are gone for 100 s, and once all of them."""
    windows = [Window(start, start + 100, 32) for start in range(500, 20_000, 1000)]
    calendar = Calendar([*windows, Window(3000, 3400, 64)])
    assert_equal_results(long_queue(200), make(policy), calendar=calendar)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"restart": Restart(delay=1)}, "no calendar where jobs may be stopped"),
        ({"begun": Begun(3000, {0: 2900})}, "no past of a begun run"),
        (
            {"cluster": Machines.of(2, cpus=64), "calendar": Calendar([Window(5, 9, machines=(0,))])},
            "a calendar on homogeneous nodes only",
        ),
        ({"policy": "oracle-srtf"}, "it knows no calendar"),
    ],
)
def test_refuses_with_the_reason(options: Any, reason: str) -> None:
    parameters = {"calendar": Calendar([Window(5, 9)]), **options}
    policy = make(parameters.pop("policy", "fcfs"))
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(long_queue(9), policy, simulator="compiled", **parameters).run()
    assert reason in str(error.value) and "\n" not in str(error.value)


@uncompiled
def test_a_partition_over_all_nodes() -> None:
    whole = Partitions([Partition("all", nodes=64, default=True)])
    calendar = Calendar([Window(500, 900, 64)])
    found, _ = assert_equal_schedules(long_queue(30), make("fcfs+easy"), cluster=whole, calendar=calendar)
    assert not ((found.start_time < 900) & (found.end_time > 500) & (found.start_time >= 500)).any()
    assert found.downtime is not None and found.started_in is not None


def test_nodes_reserved_for_users_are_refused_in_the_words_of_a_user() -> None:
    reserved = Calendar([Window(5, 9, 7, users=(1,))])
    with pytest.raises(UsageError, match="it knows no homogeneous nodes that are reserved for users or acc"):
        Simulation(long_queue(9), make("fcfs"), calendar=reserved, simulator="compiled").run()


@pytest.mark.parametrize("simulator", ["simpy", "compiled"])
def test_windows_beyond_the_cluster_are_refused(simulator: str) -> None:
    calendar = Calendar([Window(5, 9, 70)])
    with pytest.raises(UsageError, match="windows at 5 s: 70 nodes are gone or reserved at once, of 64"):
        Simulation(long_queue(9), make("fcfs"), calendar=calendar, simulator=simulator).run()
