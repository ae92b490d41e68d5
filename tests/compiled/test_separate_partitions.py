"""Partitions without common machines and jobs, compiled one by one: equal to their schedulers on one clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import loading, support
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.attempts import events_of_attempts
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.predicting.bounded import KeyColumn
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.results.result import Result
from tests.compiled.test_equality import (
    BACKFILLING,
    ORDERS,
    assert_equal_schedules,
    assert_equal_tables,
    uncompiled,
    workloads,
)
from tests.compiled.test_machines import PLACEMENTS, without_counts
from tests.kernel.machine_cases import KINDS, cases

NAMES = ("a", "b", "c")
TESTS = ["easy", "conservative", "easy-k(2)", "easy-sjf"]
LEVELS = ["tests(seconds=2)", "tests(seconds=[1, 4])", "tests(seconds=5, largest=0.5)"]
RESTARTS = [Restart(), Restart("anew", delay=3)]
OF_OTHERS = {"random", "slurm"}
"""Orders that are refused where jobs may be stopped."""


def assert_equal_results(jobs: Workload, policy: Any, cluster: Partitions, **options: Any) -> Result:
    policy = make(policy) if isinstance(policy, str) else policy
    found, reference = assert_equal_schedules(jobs, policy, in_one_order, cluster=cluster, **options)
    np.testing.assert_array_equal(found.started_in, reference.started_in)
    assert found.started_in is not None and reference.started_in is not None
    assert found.started_in.dtype == reference.started_in.dtype
    assert_equal_tables(found.placements, reference.placements, "placements")
    np.testing.assert_array_equal(found.workload.run_time, reference.workload.run_time)
    return found


def in_one_order(result: Result) -> Result:
    """Return a result with events in the order of time, then of partitions, then of the run.

    What several partitions do at one instant is in no order that means anything.
    """
    attempts, places, names = result.attempts, result.placements, result.started_in
    if places is None:
        return result
    assert places.events is not None
    if attempts is None:
        order = order_of(places.events, result, names)
        return replace(result, placements=replace(places, events=places.events[order]))
    by_attempt = events_of_attempts(places.events, attempts.job)
    assert attempts.placements is not None
    np.testing.assert_array_equal(attempts.placements.events, by_attempt)
    order = order_of(by_attempt, attempts, attempts.partition)
    of_attempts = replace(attempts.placements, events=by_attempt[order])
    return replace(
        result,
        placements=replace(places, events=places.events[order]),
        attempts=replace(attempts, placements=of_attempts),
    )


def order_of(events: Any, table: Any, names: Any) -> Any:
    rows = np.where(events >= 0, events, ~events)
    at = np.where(events >= 0, table.start_time[rows], table.end_time[rows])
    assert (np.diff(at) >= 0).all()
    return np.lexsort((np.arange(len(events)), names[rows], at))


def named(jobs: Workload, numbers: np.random.Generator, parts: Partitions) -> Workload:
    """Return jobs with partitions, those that fit there."""
    columns = {**jobs.columns, "partition": numbers.integers(0, len(parts.parts), len(jobs))}
    jobs = replace(jobs, columns=columns, labels={**jobs.labels, "partition": parts.names})
    return jobs.without(parts.misfits(jobs), "exceeds its partition")


@st.composite
def on_nodes(draw: Any) -> tuple[Partitions, Workload]:
    """Homogeneous nodes in one to three partitions, with priorities, limits and orders of their own."""
    jobs, numbers = draw(workloads()), np.random.default_rng(draw(st.integers(0, 2**32)))
    assert jobs.machine_size is not None
    parts = [
        Partition(
            name,
            nodes=int(numbers.integers(1, jobs.machine_size + 1)),
            priority=int(numbers.integers(0, 3)),
            max_time=None if numbers.random() < 0.7 else 60,
            order=None if numbers.random() < 0.7 else make("sjf").queue_order,
        )
        for name in NAMES[: draw(st.integers(1, 3))]
    ]
    cluster = Partitions(parts)
    return cluster, named(jobs, numbers, cluster)


@st.composite
def on_machines(draw: Any) -> tuple[Partitions, Workload]:
    """Machines in up to three partitions that share none; some machines may be in no partition."""
    machines, jobs = without_counts(draw(cases(sorted(KINDS.keys() - {"counts"}), most=25)))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    where = numbers.integers(0, 4, len(machines))
    members = {name: np.flatnonzero(where == number) for number, name in enumerate(NAMES)}
    parts = [
        Partition(name, machines=[machines.names[each] for each in of], priority=int(numbers.integers(0, 3)))
        for name, of in members.items()
        if len(of)
    ]
    cluster = Partitions(parts or [Partition("all")], machines)
    return cluster, named(jobs, numbers, cluster)


def is_compiled(case: tuple[Partitions, Workload], policy: str) -> bool:
    """Return whether there are jobs, and the first resource of the machines in each partition."""
    cluster, jobs = case
    lacking = any(not view.cluster.size for view in cluster.views)
    if lacking and len(jobs):
        reason = support.obstacle(Simulation(jobs, make(policy), cluster))
        assert reason is not None and reason.startswith("it knows no partitions without ")
    return len(jobs) > 0 and not lacking


def check_plain(
    case: tuple[Partitions, Workload], order: str, placement: str, filler: str, walltime: str, seed: int
) -> None:
    cluster, jobs = case
    if cluster.machines is not None:
        order = f"{order}{placement}"
    if is_compiled(case, f"{order}+{filler}"):
        assert_equal_results(jobs, f"{order}+{filler}", cluster, walltime=walltime, seed=seed)


def check_tests(
    case: tuple[Partitions, Workload], order: str, filler: str, tests: str, restart: Restart
) -> None:
    cluster, jobs = case
    if is_compiled(case, f"{order}+{filler}+{tests}"):
        assert_equal_results(jobs, f"{order}+{filler}+{tests}", cluster, restart=restart)


PLAIN = given(
    st.one_of(on_nodes(), on_machines()),
    st.sampled_from([each for each in ORDERS if each != "slurm"]),
    st.sampled_from(PLACEMENTS),
    st.sampled_from(BACKFILLING),
    st.sampled_from(["run", "kill"]),
    st.integers(0, 9),
)
WITH_TESTS = given(
    st.one_of(on_nodes(), on_machines()),
    st.sampled_from([each for each in ORDERS if each not in OF_OTHERS]),
    st.sampled_from(TESTS),
    st.sampled_from(LEVELS),
    st.sampled_from(RESTARTS),
)
test_random_partitions = uncompiled(settings(max_examples=100)(PLAIN(check_plain)))
test_random_partitions_with_tests = uncompiled(settings(max_examples=100)(WITH_TESTS(check_tests)))
test_many_random_partitions = pytest.mark.slow(settings(max_examples=5_000)(PLAIN(check_plain)))
test_many_random_partitions_with_tests = pytest.mark.slow(
    settings(max_examples=5_000)(WITH_TESTS(check_tests))
)


def crowded(count: int, cluster: Partitions) -> Workload:
    numbers = np.random.default_rng(count)
    took = numbers.choice([0, 5, 40, 300], count)
    columns = {
        "submit_time": np.sort(numbers.integers(0, 20 * count, count)),
        "run_time": took,
        "requested_time": np.maximum(took, 1) + numbers.choice([0, 0, 500], count),
        "nodes": numbers.integers(1, 4, count),
        "user": numbers.integers(0, 5, count),
    }
    return named(Workload(columns), numbers, cluster)


TWO = Partitions([Partition("a", nodes=4, priority=1), Partition("b", nodes=3)])


@pytest.mark.parametrize("policy", ["unicef+easy+tests(seconds=10)", "oracle-srtf", "fcfs+easy"])
def test_compiled(policy: str) -> None:
    found = assert_equal_results(crowded(200, TWO), policy, TWO)
    assert (found.attempts is not None) == (policy != "fcfs+easy")


def crowded_machines(seed: int) -> tuple[Partitions, Workload]:
    """Five machines, two of each partition and one of none; half of the jobs take less than they ask for."""
    numbers, count = np.random.default_rng(seed), 40
    names = numbers.permutation([f"node{number}" for number in range(1, 6)]).tolist()
    parts = [Partition("a", machines=names[:2]), Partition("b", machines=names[2:4])]
    cluster, took = Partitions(parts, Machines.of(5, cpus=4)), numbers.choice([1, 3, 20, 60], count)
    columns = {
        "submit_time": np.sort(numbers.integers(0, 100, count)),
        "run_time": took,
        "requested_time": np.where(numbers.random(count) < 0.5, 90, np.maximum(took - 2, 1)),
        "nodes": numbers.choice([1, 1, 2], count),
        "cpus": numbers.integers(1, 5, count),
    }
    return cluster, named(Workload(columns, resources=("cpus",)), numbers, cluster)


@uncompiled
def test_tests_on_machines() -> None:
    """Often with jobs that are stopped, and ended by their limits, in both partitions."""
    stopped = []
    for seed in range(24):
        cluster, jobs = crowded_machines(seed)
        found = assert_equal_results(
            jobs, "fcfs+best-fit+easy+tests(seconds=5)", cluster, walltime=("kill", "run")[seed % 2]
        )
        assert found.attempts is not None
        stopped.append(set(found.attempts.partition[found.attempts.outcome == Outcome.TESTED]))  # type: ignore[index]
    assert stopped.count({"a", "b"}) > 10


@uncompiled
@pytest.mark.parametrize("policy", ["fcfs+easy+preempt", "sjf+preempt(by=queue, first=youngest)"])
def test_jobs_are_preempted_in_their_partition(policy: str) -> None:
    stopped = []
    for seed in range(12):
        numbers, count = np.random.default_rng(seed), 40
        columns = {
            "submit_time": np.sort(numbers.integers(0, 200, count)),
            "run_time": numbers.integers(0, 60, count),
            "nodes": numbers.integers(1, 4, count),
            "queue": numbers.integers(0, 3, count),
        }
        found = assert_equal_results(named(Workload(columns), numbers, TWO), policy, TWO)
        stopped.append(found.attempts is not None)
    assert sum(stopped) > 6


@uncompiled
def test_jobs_are_stopped_in_one_partition_only() -> None:
    """The other one has a row for each job, too."""
    columns = {
        "submit_time": [0, 1, 2, 3],
        "run_time": [20, 30, 9, 5],
        "requested_time": [20, 30, 90, 5],
        "nodes": [3, 4, 1, 3],
        "partition": [0, 0, 0, 1],
    }
    columns["requested_time"][3] = 2
    jobs = Workload(columns, labels={"partition": ("a", "b")})
    found = assert_equal_results(jobs, "fcfs+easy+tests(seconds=4)", TWO, walltime="kill")
    assert found.attempts is not None
    assert found.attempts.job.tolist() == [0, 1, 2, 2, 3]
    assert found.attempts.outcome[-1] == Outcome.LIMIT
    assert found.attempts.partition.tolist() == ["a", "a", "a", "a", "b"]  # type: ignore[union-attr]


MACHINES = Machines.of(3, cpus=2)
SHARED = Partitions(
    [Partition("a", machines=["node1", "node2"]), Partition("b", machines=["node2", "node3"])], MACHINES
)
LIMITED = Partitions([Partition("a", nodes=4), Partition("b", nodes=3, in_use={"nodes": 2})])
BY_SHARES = Partitions([Partition("a", nodes=4), Partition("b", nodes=3, order=make("slurm").queue_order)])
IN_BOTH = ("a", "a,b")


@pytest.mark.parametrize(
    ("reason", "policy", "cluster", "names", "options"),
    [
        (
            "it knows no machines in several partitions, found some in 'a' and 'b'",
            None,
            SHARED,
            TWO.names,
            {},
        ),
        ("it knows no jobs that may start in several partitions", None, TWO, IN_BOTH, {}),
        ("it knows no period over several partitions, found 60", None, TWO, TWO.names, {"period": 60}),
        ("Observer observes events", None, TWO, TWO.names, {"observers": [Observer()]}),
        ("it draws no users over several", make("fcfs+easy+tests(users=0.5)"), TWO, TWO.names, {}),
        ("it knows no SlurmMultifactor over several", make("slurm+easy"), TWO, TWO.names, {}),
        ("it knows no SlurmMultifactor over several", make("fcfs+easy"), BY_SHARES, TWO.names, {}),
        ("it knows no KeyColumn over several", Pipeline(KeyColumn(np.zeros(2))), TWO, TWO.names, {}),
        (
            "the placement RoundRobin() is not compiled (partition 'a')",
            make("round-robin"),
            TWO,
            TWO.names,
            {},
        ),
        ("it knows no limits of the amounts in use, found some in 'b'", None, LIMITED, TWO.names, {}),
    ],
)
def test_refusals(
    reason: str, policy: Any, cluster: Partitions, names: tuple[str, ...], options: dict[str, Any]
) -> None:
    columns = {"submit_time": [0, 0], "run_time": [9, 9], "nodes": [1, 1], "partition": [0, 1]}
    jobs = Workload(columns, labels={"partition": names})
    found = support.obstacle(Simulation(jobs, policy or make("fcfs"), cluster, **options))
    assert found is not None
    assert found.startswith(reason)


def test_a_log_without_jobs() -> None:
    empty = crowded(9, TWO).first(0)
    assert support.obstacle(Simulation(empty, make("fcfs"), TWO)) is not None
    assert len(Simulation(empty, make("fcfs"), TWO).run()) == 0


def test_jobs_are_counted_by_kind() -> None:
    """A partition with an order of its own may need another program; both must be worth their loading."""
    parts = [Partition("a", nodes=4), Partition("b", nodes=3, order=make("unicef").queue_order)]
    cluster = Partitions(parts)
    jobs = crowded(120, cluster)
    simulation = Simulation(jobs, make("fcfs+easy"), cluster)
    found = support._jobs_by_kind(simulation)
    assert sum(found.values()) == len(jobs)
    assert len(found) == 2
    before = {kind: loading.SEEN[kind] for kind in found}
    with support.announced([simulation]):
        assert {kind: loading.ANNOUNCED[kind] for kind in found} == {
            kind: count + loading.BESIDE_JOBS for kind, count in found.items()
        }
        support.takes(simulation)
    assert all(loading.SEEN[kind] - before[kind] >= count for kind, count in found.items())
