"""Schedules and placements of the compiled simulator on machines, equal to those of SimPy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import filling, machine_profile, on_machines, planned_filling, support
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import begun_at
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import Conservative
from hpcsimkit.policies.portfolio.guarded import Remembered
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import read_job_table
from tests.compiled.test_equality import ORDERS, SHARED, SHARES, assert_equal_schedules, by_shares, uncompiled
from tests.drawn import examples
from tests.kernel import naive_machines
from tests.kernel.machine_cases import KINDS, cases, exceeding
from tests.kernel.machine_cases import given as amounts_given
from tests.kernel.machine_helpers import Asked, asked, jobs_on_machines, run_on
from tests.kernel.test_machine_references import FILES, beocat, nine

PLACEMENTS = ["", "+first-fit", "+best-fit", "+worst-fit"]
BACKFILLING = [
    "none",
    "easy",
    "easy-sjf",
    "easy-saf",
    "easy-bestfit",
    "easy-ar",
    "easy-noise",
    "greedy",
    "fitting",
    "conservative",
    "conservative+actual",
    "conservative+noisy",
    "conservative-replan",
    "easy-k(1)",
    "easy-k(3)",
]
PREDICTED = ["easy++", "easy+last-two", "greedy+last-two", "conservative+last-two", "easy-k(2)+last-two"]
WINDOWS = ["", "", "+window(1)", "+window(3)"]


def assert_equal_results(jobs: Workload, policy: Any, cluster: Any, **parameters: Any) -> Result:
    policy = make(policy) if isinstance(policy, str) else policy
    found, reference = assert_equal_schedules(jobs, policy, cluster=cluster, **parameters)
    assert_equal_placements(found.placements, reference.placements)
    return found


def assert_equal_placements(found: Placements | None, expected: Placements | None) -> None:
    assert found is not None
    assert expected is not None
    assert found.cluster is expected.cluster
    assert found.jobs == expected.jobs
    for name in ("job", "machine", "amounts", "events"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
        assert ours is theirs or (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)


def without_counts(case: tuple[Machines, list[Asked]]) -> tuple[Machines, Workload]:
    cluster, wanted = case
    jobs = jobs_on_machines([replace(job, constraint=job.constraint.replace("*1", "")) for job in wanted])
    return cluster, jobs.without(cluster.misfits(jobs), "fits no machine without its counts")


def check_random(
    case: tuple[Machines, list[Asked]],
    order: str,
    placement: str,
    backfilling: str,
    window: str,
    walltime: str,
    seed: int,
) -> None:
    cluster, jobs = without_counts(case)
    policy = f"{order}{placement}+{backfilling}{'' if backfilling == 'fitting' else window}"
    assert_equal_results(jobs, policy, cluster, walltime=walltime, seed=seed)


def drawn(backfilling: list[str], orders: list[str], windows: list[str]) -> Any:
    return given(
        cases(sorted(KINDS.keys() - {"counts"}), most=25),
        st.sampled_from(orders),
        st.sampled_from(PLACEMENTS),
        st.sampled_from(backfilling),
        st.sampled_from(windows),
        st.sampled_from(["run", "kill"]),
        st.integers(0, 9),
    )


CASES = drawn([*BACKFILLING, *PREDICTED], [*ORDERS, *SHARES], WINDOWS)
test_random_workloads = uncompiled(settings(max_examples=300)(CASES(check_random)))
test_many_random_workloads = pytest.mark.slow(settings(max_examples=20_000)(CASES(check_random)))


def pooled_crowd(seed: int) -> tuple[Machines, Workload]:
    """Three machines, and more pooled requests at once than they have room for."""
    numbers, count = np.random.default_rng(seed), 25
    columns = {
        "submit_time": np.sort(numbers.integers(0, 60, count)),
        "run_time": numbers.integers(0, 90, count),
        "requested_time": numbers.choice([1, 20, 60, 90], count),
        "nodes": np.ones(count, dtype=np.int64),
        "cpus": numbers.choice([1, 2, 5, 12, 30], count),
        "memory": numbers.choice([0, 1, 8, 60], count) * 10**9,
        "spread": np.ones(count, dtype=np.bool_),
    }
    cluster = Machines.of(2, cpus=8, memory="16 GB") + Machines.of(1, cpus=16, memory="32 GB")
    return cluster, Workload(columns, resources=("cpus", "memory"))


@uncompiled
def test_several_reservations_of_pooled_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the profile of totals, where other jobs are asked whether they delay none of them."""
    answers: list[bool] = []
    fits_throughout = planned_filling.fits_throughout

    def noted(machines: Any, profile: Any, row: int, duration: int) -> bool:
        assert profile.counters[machine_profile.ON_TOTALS]
        answers.append(fits_throughout(machines, profile, row, duration))
        return answers[-1]

    monkeypatch.setattr(planned_filling, "fits_throughout", noted)
    for seed in range(30):
        cluster, jobs = pooled_crowd(seed)
        walltime = ("run", "kill")[seed % 2]
        for policy in (f"fcfs+easy-k({seed % 3 + 1})", f"sjf+best-fit+easy-k({seed % 2 + 1})"):
            assert_equal_results(jobs, policy, cluster, walltime=walltime)
    assert min(answers.count(True), answers.count(False)) > 50


@uncompiled
def test_the_first_job_that_does_not_fit_is_reserved() -> None:
    """No pass before its own has found a job that does not fit; the next one starts it."""
    jobs = jobs_on_machines([asked(0, 10, cpus=3), asked(1, 5, cpus=3)])
    assert_equal_results(jobs, "fcfs+easy", Machines.of(1, cpus=4))


@uncompiled
def test_a_newcomer_alone_is_tried_behind_the_same_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the last ten jobs fits when it arrives, and would delay the head: the others are not tried again."""
    searches: list[int] = []
    list_fitting = filling._list_fitting

    def noted(*state: Any) -> int:
        searches.append(list_fitting(*state))
        return searches[-1]

    monkeypatch.setattr(filling, "_list_fitting", noted)
    late = [asked(second, 500, cpus=1) for second in range(2, 12)]
    jobs = jobs_on_machines([asked(0, 100, cpus=3), asked(1, 10, cpus=4), *late])
    for policy in ("fcfs+easy", "wfp3+easy"):
        assert_equal_results(jobs, policy, Machines.of(1, cpus=4))
    assert len(searches) == 4  # behind the head when it arrives, and when it ends


@uncompiled
def test_conservative_beside_jobs_that_exceed_equals_the_naive_simulator() -> None:
    exceeded = []

    @examples(1.5)
    @given(
        cases(["one machine", "some machines", "totals", "mixed"], most=14),
        st.sampled_from(["fcfs", "sjf"]),
        st.integers(0, 2**32),
    )
    def check(case: tuple[Machines, list[Asked]], order: str, seed: int) -> None:
        cluster, wanted = case[0], exceeding(case[1], seed)
        key = {"fcfs": lambda job: job.submit, "sjf": lambda job: job.estimate}[order]
        expected, places, _, passes = naive_machines.conservative(cluster, wanted, key)
        found = run_on(cluster, wanted, make(f"{order}+conservative"), simulator="compiled")
        assert found.start_time.tolist() == expected
        assert amounts_given(found) == places
        exceeded.append(passes > 0)

    check()
    assert sum(exceeded) > 0.25 * len(exceeded)


def check_shares(
    case: tuple[Machines, list[Asked]], order: str, placement: str, candidates: Any, walltime: str
) -> None:
    cluster, jobs = without_counts(case)
    assert_equal_results(jobs, by_shares(f"{order}{placement}", candidates), cluster, walltime=walltime)


test_many_random_shares_of_candidates = pytest.mark.slow(
    settings(max_examples=3_000)(
        given(
            cases(sorted(KINDS.keys() - {"counts"}), most=25),
            st.sampled_from(["fcfs", "sjf", "wfp3", "slurm"]),
            st.sampled_from(PLACEMENTS),
            st.sampled_from(SHARED),
            st.sampled_from(["run", "kill"]),
        )(check_shares)
    )
)


def check_begun(
    case: tuple[Machines, list[Asked]],
    order: str,
    placement: str,
    backfilling: str,
    window: str,
    walltime: str,
    seed: int,
) -> None:
    """A run from a state of another one, with its allocations and with those that the cluster chooses."""
    cluster, jobs = without_counts(case)
    policy = make(f"{order}{placement}+{backfilling}{'' if backfilling == 'fitting' else window}")
    before = make(f"sjf{placement}+easy")
    other = Simulation(jobs, before, cluster, walltime=walltime, simulator="simpy").run()
    rest, begun = begun_at(other, int(np.median(other.start_time)))
    for state in (begun, replace(begun, allocations={})):
        found = Simulation(rest, policy, cluster, begun=state, walltime=walltime, simulator="compiled")
        if obstacle := support.obstacle(found):
            assert not state.allocations and "do not fit" in obstacle
        else:
            assert_equal_results(rest, policy, cluster, begun=state, walltime=walltime, seed=seed)


test_random_begun_runs = uncompiled(settings(max_examples=100)(CASES(check_begun)))
test_many_random_begun_runs = pytest.mark.slow(settings(max_examples=5_000)(CASES(check_begun)))


def crowd(count: int, seed: int) -> tuple[Machines, Workload]:
    """Machines of unequal size, and jobs of one or several machines, whole machines and pooled requests."""
    numbers = np.random.default_rng(seed)
    cluster = (
        Machines.of(4, cpus=16, memory="64 GB")
        + Machines.of(2, "gpu", cpus=8, gpus=4, memory="32 GB", features=("fast",))
        + Machines.of(1, "fat", cpus=32, memory="512 GB", features=("fast",))
    )
    pooled = numbers.random(count) < 0.2
    columns = {
        "submit_time": np.sort(numbers.integers(0, 12 * count, count)),
        "run_time": numbers.choice([0, 1, 40, 300, 900], count),
        "requested_time": numbers.choice([1, 60, 300, 1000], count),
        "nodes": numbers.choice([1, 1, 1, 2, 3], count),
        "cpus": np.where(pooled, numbers.integers(1, 60, count), numbers.integers(1, 9, count)),
        "gpus": np.where(numbers.random(count) < 0.1, 1, 0),
        "memory": numbers.choice([0, 1, 4, 30], count) * 10**9,
        "spread": pooled,
        "exclusive": numbers.random(count) < 0.1,
        "constraint": np.where(numbers.random(count) < 0.1, 0, -1),
    }
    jobs = Workload(columns, resources=("cpus", "gpus", "memory"), labels={"constraint": ("fast",)})
    return cluster, jobs.without(cluster.misfits(jobs), "fits no machine")


@pytest.mark.parametrize(
    "policy",
    [
        "fcfs+easy",
        "saf+best-fit+easy-sjf",
        "wfp3+worst-fit+easy++",
        "sjf+greedy",
        "sjf+best-fit+conservative",
        "fcfs+easy-k(4)",
    ],
)
def test_long_queues(policy: str) -> None:
    """Dozens of running jobs fill, split and empty the blocks by expected end."""
    cluster, jobs = crowd(100 if "conservative" in policy else 300, seed=len(policy))
    assert_equal_results(jobs, policy, cluster)


@pytest.mark.parametrize("pooled", [False, True])
def test_reservations_of_jobs_that_arrive_at_once(pooled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many reservations on each machine; the profile of pooled requests has more steps than are written."""
    monkeypatch.setattr(machine_profile, "MOST_STEPS", 100)
    count = 150
    numbers = np.random.default_rng(2)
    columns = {
        "submit_time": np.zeros(count),
        "run_time": numbers.integers(1, 300, count),
        "requested_time": numbers.integers(300, 900, count),
        "nodes": np.ones(count),
        "cpus": numbers.integers(1, 9, count),
        "memory": numbers.integers(1, 20, count) * 10**9,
        "spread": np.full(count, pooled),
    }
    jobs = Workload(columns, resources=("cpus", "memory"))
    cluster = Machines.of(2, cpus=8, memory="32 GB") + Machines.of(1, cpus=16, memory="32 GB")
    assert_equal_results(jobs, "fcfs+conservative", cluster)


@pytest.mark.parametrize(
    "policy", ["fcfs", "fcfs+best-fit+easy", "sjf+worst-fit+fitting", "fcfs+best-fit+conservative"]
)
@pytest.mark.parametrize("file", FILES)
def test_nine_machines(file: str, policy: str, shared: Path) -> None:
    cluster, jobs = nine(shared), beocat(shared / f"refs/beocat/{file}_jobs.csv.gz")
    count = 150 if "conservative" in policy else 600
    jobs = jobs.without(cluster.misfits(jobs), "fits no machine").first(count)
    assert_equal_results(jobs, policy, cluster)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        "fcfs+easy",
        "fcfs+best-fit+easy",
        "sjf+worst-fit",
        "xfactor+best-fit+easy",
        "fcfs+easy++",
        "sjf+best-fit+conservative",
        "fcfs+conservative+last-two",
        "wfp3+conservative",
        "fcfs+easy-k(4)",
    ],
)
@pytest.mark.parametrize("month", ["03", "04", "05"])
def test_a_month_of_beocat(month: str, policy: str, shared: Path) -> None:
    cluster = Machines.read(shared / "traces/beocat-machines.csv")
    jobs = read_job_table(shared / f"traces/beocat-2021-{month}.csv.gz")
    jobs = jobs.without(cluster.misfits(jobs), "fits no machine")
    slow = policy.startswith(("xfactor", "wfp3")) or "conservative" in policy or "easy-k" in policy
    assert_equal_results(jobs.first(20_000) if slow else jobs, policy, cluster)


def test_a_log_of_processors_and_one_partition() -> None:
    """Jobs without a request take processors of any machines."""
    numbers = np.random.default_rng(8)
    columns = {
        "submit_time": np.sort(numbers.integers(0, 900, 200)),
        "run_time": numbers.integers(0, 60, 200),
        "nodes": numbers.integers(1, 13, 200),
        "partition": np.zeros(200),
    }
    jobs, machines = Workload(columns, labels={"partition": ("a",)}), Machines.of(3, cpus=4)
    assert_equal_results(jobs, "fcfs+easy", machines)
    assert_equal_results(jobs, "sjf+best-fit+easy", Partitions([Partition("a")], machines))


def test_no_jobs() -> None:
    columns: Any = {name: [] for name in ("submit_time", "run_time", "nodes", "cpus")}
    assert_equal_results(Workload(columns, resources=("cpus",)), "fcfs+easy", Machines.of(2, cpus=4))


def test_placements_change_nothing_on_counted_nodes() -> None:
    jobs = Workload({"submit_time": [0, 1, 2], "run_time": [9, 4, 5], "nodes": [3, 2, 1]}, machine_size=4)
    found = [
        Simulation(jobs, make(policy), simulator=simulator).run().start_time.tolist()
        for policy in ("fcfs+easy", "fcfs+best-fit+easy")
        for simulator in ("simpy", "compiled")
    ]
    assert found == [[0, 9, 2]] * 4


def test_refuses_counts() -> None:
    cluster = Machines.of(3, cpus=4, gpus=0, memory="1 GB", features=("a",))
    jobs = jobs_on_machines([asked(0, 5, cpus=1, nodes=2, constraint="a*1")])
    with pytest.raises(UsageError, match="cannot run this: it knows no constraints with counts"):
        Simulation(jobs, make("fcfs"), cluster, simulator="compiled").run()


def test_reservations_may_be_as_long_as_remembered_estimates() -> None:
    """Times of plans have to be exact: 2 000 s of runs and 2 * 500 s of requests or 2 * 10^9 s of estimates."""
    jobs = Workload(
        {"submit_time": [0, 7], "run_time": [1000] * 2, "requested_time": [500] * 2, "nodes": [1, 1]}
    )
    remembered = Remembered(np.full(2, 10**9), np.zeros((2, 9)))
    plans = Pipeline(backfiller=Conservative(), estimates=remembered)
    end = 7 + 2_000 + TIME_LIMIT
    assert on_machines._last_reserved_end(jobs, Pipeline(backfiller=Conservative())) == end + 2_000
    assert on_machines._last_reserved_end(jobs, plans) == end + 2 * 10**9
    assert on_machines._last_reserved_end(jobs, Pipeline(estimates=remembered)) == end + TIME_LIMIT
