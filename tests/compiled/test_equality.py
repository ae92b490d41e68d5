"""Schedules of the compiled simulator, equal to those of SimPy in every column of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.compiled import queue, support
from hpcsimkit.compiled.orders import KEYS, ONE_BY_ONE
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import begun_at
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import read_swf

ORDERS = [
    "fcfs",
    "lcfs",
    "fcfs-shortest",
    "sjf",
    "ljf",
    "saf",
    "laf",
    "sqf",
    "largest",
    "srf",
    "f1",
    "f2",
    "f3",
    "f4",
    "oracle-sjf",
    "oracle-saf",
    "random",
    "wfp3",
    "unicef",
    "xfactor",
    "slurm",
]
SHARES = ["slurm(shares=log, half_life=0)", "slurm(shares_by=group, half_life=40, max_age=50, size=300)"]
BACKFILLING = [
    "none",
    "easy",
    "easy-sjf",
    "easy-saf",
    "easy-bestfit",
    "easy-ar",
    "easy-noise",
    "easy++",
    "greedy",
    "fitting",
    "conservative",
    "conservative+actual",
    "conservative+noisy",
    "conservative+last-two",
    "conservative-replan",
    "easy-k(1)",
    "easy-k(3)",
    "easy-k(2)+last-two",
]
WINDOWS = ("", "+window(1)", "+window(3)")
COMPILED = [
    "fcfs+easy",
    "sjf+easy",
    "lcfs+greedy",
    "wfp3+easy-sjf",
    "sjf+easy-k(5)",
    "slurm+easy+last-two",
    "fcfs+conservative",
]

uncompiled = pytest.mark.usefixtures("interpreted")
COLUMNS = ("submit_time", "start_time", "end_time", "mode", "killed")


def assert_equal_schedules(
    jobs: Workload, policy: Any, changed: Callable[[Result], Result] = lambda result: result, **settings: Any
) -> tuple[Result, Result]:
    """Compare all but placements, and return the results of the compiled simulator and of SimPy, as changed."""
    reference = changed(Simulation(jobs, policy, simulator="simpy", **settings).run())
    found = changed(Simulation(jobs, policy, simulator="compiled", **settings).run())
    assert found.simulator == "compiled"
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(found, column), getattr(reference, column), err_msg=column)
        assert getattr(found, column).dtype == getattr(reference, column).dtype
    assert found.workload.columns.keys() == reference.workload.columns.keys()
    for name in ("passes", "policy", "size", "seed", "options", "choices", "unit"):
        assert getattr(found, name) == getattr(reference, name), name
    for table in ("attempts", "downtime", "held"):
        assert_equal_tables(getattr(found, table), getattr(reference, table), table)
    return found, reference


def assert_equal_tables(found: Any, reference: Any, table: str) -> None:
    """Compare the attempts, the outages or the held jobs of two results, row by row."""
    assert (found is None) == (reference is None), table
    for each in () if found is None else fields(reference):
        ours, theirs = getattr(found, each.name), getattr(reference, each.name)
        if isinstance(theirs, Placements):
            assert_equal_tables(ours, theirs, f"{table}.placements")
            continue
        if isinstance(theirs, Machines):
            assert ours is theirs
            continue
        np.testing.assert_array_equal(ours, theirs, err_msg=f"{table}.{each.name}")
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)


def assert_equal_results(jobs: Workload, policy: Any, **settings: Any) -> None:
    found, reference = assert_equal_schedules(jobs, policy, **settings)
    assert found.placements == reference.placements


@st.composite
def workloads(draw: Any) -> Workload:
    """Bursts and gaps, ties, jobs of no length, jobs that outlive their estimates or ask for the whole machine."""
    size = draw(st.sampled_from([1, 2, 5, 16]))
    jobs = draw(st.integers(1, 30))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32)))
    gaps = numbers.choice([0, 0, 1, 2, 7, 60], jobs)
    run_time = numbers.choice([0, 1, 2, 5, 9, 61, 4000], jobs)
    requested = np.maximum(run_time + numbers.choice([-60, -3, 0, 0, 1, 30], jobs), 1)
    nodes = np.where(numbers.random(jobs) < 0.2, size, numbers.integers(1, size + 1, jobs))
    columns = {
        "submit_time": numbers.permutation(np.cumsum(gaps)) if draw(st.booleans()) else np.cumsum(gaps),
        "run_time": run_time,
        "requested_time": requested,
        "nodes": nodes,
        "user": numbers.integers(-1, 3, jobs),
        "group": numbers.integers(0, 9, jobs),
        "queue": numbers.integers(0, 3, jobs),
    }
    return Workload(columns, machine_size=size)


def check_random(jobs: Workload, order: str, backfilling: str, window: str, walltime: str, seed: int) -> None:
    if backfilling == "fitting":
        window = ""
    assert_equal_results(jobs, make(f"{order}+{backfilling}{window}"), walltime=walltime, seed=seed)


CASES = given(
    workloads(),
    st.sampled_from([*ORDERS, *SHARES]),
    st.sampled_from(BACKFILLING),
    st.sampled_from(WINDOWS),
    st.sampled_from(["run", "kill"]),
    st.integers(0, 9),
)
test_random_workloads = uncompiled(settings(max_examples=400)(CASES(check_random)))
test_many_random_workloads = pytest.mark.slow(settings(max_examples=20_000)(CASES(check_random)))


SHARED = (
    SlurmMultifactor(),
    SlurmMultifactor(shares="log", half_life=0),
    SlurmMultifactor(shares_by="group", half_life=40, max_age=50, size=300),
)
"""Orders of candidates that depend on all jobs so far."""


def by_shares(policy: str, candidates: SlurmMultifactor) -> Any:
    """Return a policy with EASY, its candidates in an order by shares."""
    pipeline = make(policy)
    pipeline.backfiller = EASY(candidates)
    return pipeline


def check_shares(
    jobs: Workload, order: str, candidates: Any, window: str, walltime: str, begun: bool
) -> None:
    parameters: dict[str, Any] = {"walltime": walltime}
    if begun:
        other = Simulation(jobs, make("sjf+easy"), walltime=walltime, simulator="simpy").run()
        jobs, parameters["begun"] = begun_at(other, int(np.median(other.start_time)))
    assert_equal_results(jobs, by_shares(f"{order}{window}", candidates), **parameters)


BY_SHARES = given(
    workloads(),
    st.sampled_from(["fcfs", "sjf", "lcfs", "wfp3", "slurm"]),
    st.sampled_from(SHARED),
    st.sampled_from(WINDOWS),
    st.sampled_from(["run", "kill"]),
    st.booleans(),
)
test_random_shares_of_candidates = uncompiled(settings(max_examples=100)(BY_SHARES(check_shares)))
test_many_random_shares_of_candidates = pytest.mark.slow(
    settings(max_examples=10_000)(BY_SHARES(check_shares))
)


def check_begun(jobs: Workload, order: str, backfilling: str, window: str, walltime: str, seed: int) -> None:
    """A run from a state of another one; that of the same policy ends with the same schedule."""
    policy = make(f"{order}+{backfilling}{'' if backfilling == 'fitting' else window}")
    other = Simulation(jobs, make("sjf+easy"), walltime=walltime, simulator="simpy").run()
    rest, begun = begun_at(other, int(np.median(other.start_time)))
    assert_equal_results(rest, policy, begun=begun, walltime=walltime, seed=seed)


test_random_begun_runs = uncompiled(settings(max_examples=200)(CASES(check_begun)))
test_many_random_begun_runs = pytest.mark.slow(settings(max_examples=10_000)(CASES(check_begun)))


@pytest.mark.parametrize("policy", COMPILED)
def test_long_queues(policy: str) -> None:
    """Hundreds of waiting jobs fill, split and empty the blocks of the queue.

    With 1500 jobs and reservations for all, or scores by shares, SimPy takes up to a minute.
    """
    slow = "conservative" in policy or "slurm" in policy
    assert_equal_results(long_queue(400 if slow else 1500), make(policy))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["saf+easy++", "lcfs+conservative", "wfp3+conservative"])
def test_further_long_queues(policy: str) -> None:
    test_long_queues(policy)


@uncompiled
@pytest.mark.parametrize("policy", ["saf+conservative+last-two", "unicef+conservative-replan"])
def test_many_reservations_made_anew(policy: str) -> None:
    """Each of them many times: with 1500 jobs, SimPy takes hours."""
    assert_equal_results(long_queue(60), make(policy))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short queues have many blocks, which are split, dropped and searched several at a time."""
    monkeypatch.setattr(queue, "BLOCK", 4)
    monkeypatch.setattr(queue, "TOGETHER", 2)


@uncompiled
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "policy", ["saf+easy", "lcfs+easy", "sjf+greedy", "ljf+easy-k(3)", "saf+conservative"]
)
def test_queues_of_many_blocks(policy: str) -> None:
    assert_equal_results(long_queue(120), make(policy))


def test_many_shares_of_candidates() -> None:
    assert_equal_results(long_queue(400), by_shares("fcfs", SHARED[0]))


def test_every_part_is_compiled() -> None:
    """By the tests of long queues, here, on machines, with outages, windows, gates and tests."""
    policies = [*map(make, COMPILED), by_shares("fcfs", SHARED[0])]
    jobs = long_queue(1)
    needed = {part for policy in policies for part in support._parts(Simulation(jobs, policy))}
    assert needed | {"machines", "stops", "windows", "tests"} == set(support.PARTS)


def long_queue(count: int) -> Workload:
    numbers = np.random.default_rng(7)
    return Workload(
        {
            "submit_time": np.sort(numbers.integers(0, 2000, count)),
            "run_time": numbers.integers(0, 500, count),
            "requested_time": numbers.integers(1, 600, count),
            "nodes": numbers.integers(1, 65, count),
            "user": numbers.integers(0, 9, count),
        },
        machine_size=64,
    )


@uncompiled
@pytest.mark.parametrize("policy", ["random+easy", "sjf+easy-noise", "random+easy-noise", "lcfs+easy++"])
def test_unsorted_logs(policy: str) -> None:
    """Random numbers are drawn in order of arrival, which is not that of the rows."""
    numbers = np.random.default_rng(5)
    jobs = Workload(
        {
            "submit_time": numbers.integers(0, 3000, 200),
            "run_time": numbers.integers(0, 90, 200),
            "nodes": numbers.integers(1, 9, 200),
            "user": numbers.integers(0, 4, 200),
        },
        machine_size=8,
    )
    assert_equal_results(jobs, make(policy), seed=3)


@pytest.mark.parametrize("order", KEYS, ids=lambda order: order.__name__)
def test_keys_equal_those_of_the_policies(order: Any) -> None:
    """Equal keys, bit for bit; a formula that is changed on one side only fails here."""
    numbers = np.random.default_rng(3)
    jobs = Workload(
        {
            "submit_time": numbers.integers(0, 10**8, 500),
            "run_time": numbers.integers(0, 10**5, 500),
            "requested_time": numbers.integers(1, 10**6, 500),
            "nodes": numbers.integers(1, 10**5, 500),
        },
        machine_size=10**5,
    )
    assert_equal_keys(order, jobs)


@pytest.mark.parametrize("order", KEYS, ids=lambda order: order.__name__)
def test_keys_of_jobs_without_cpus(order: Any) -> None:
    columns = {
        "submit_time": [0, 3, 5],
        "run_time": [9, 5, 7],
        "nodes": [1] * 3,
        "cpus": [0, 1, 2],
        "gpus": [1] * 3,
    }
    jobs = Workload(columns, resources=("cpus", "gpus"))
    assert jobs.size.tolist() == [0, 1, 2]
    assert_equal_keys(order, jobs)


def assert_equal_keys(order: Any, jobs: Workload) -> None:
    expected = [order().key(job) for job in jobs.jobs]
    found = list(zip(*(column.tolist() for column in KEYS[order](jobs)), strict=True))
    assert found == [key if isinstance(key, tuple) else (key,) for key in expected]


@pytest.mark.slow
@pytest.mark.parametrize("walltime", ["run", "kill"])
@pytest.mark.parametrize("backfilling", BACKFILLING)
@pytest.mark.parametrize("order", ORDERS)
def test_a_real_log(order: str, backfilling: str, walltime: str, shared: Path) -> None:
    log = read_swf(shared / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz").fitting(100)
    assert_equal_results(log, make(f"{order}+{backfilling}"), walltime=walltime)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        "fcfs",
        "fcfs+easy",
        "sjf+easy",
        "wfp3+easy",
        "fcfs+easy++",
        "fcfs+greedy",
        "fcfs+easy-k(4)",
        "fcfs+conservative",
    ],
)
@pytest.mark.parametrize(
    "log",
    ["SDSC-SP2-1998-4.2-cln.swf.gz", "HPC2N-2002-2.2-cln.swf.gz", "lublin-1.swf", "ALCF-Theta-2022.swf.gz"],
)
def test_other_real_logs(log: str, policy: str, shared: Path) -> None:
    jobs = read_swf(shared / "traces" / log)
    assert_equal_results(jobs.fitting(jobs.machine_size), make(policy))


def test_every_compiled_policy_is_tested() -> None:
    """Those of the published simulators are tested by their rules, in ``test_dirlab``."""
    tested = {type(make(f"{order}+easy").queue_order) for order in ORDERS}
    assert tested >= {*KEYS, *support.VARYING}.difference(ONE_BY_ONE)
