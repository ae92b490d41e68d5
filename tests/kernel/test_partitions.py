"""Partitions: disjoint ones are as if alone, one over the whole cluster is no partition, shared ones as the page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit import Machines, Workload
from hpcsimkit.agents.seats import default_choice, play
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.observers import Observer, Promises, Timeline
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, SJF, Conservative, Reservations, SlurmMultifactor
from hpcsimkit.policies.catalogue import CATALOGUE
from hpcsimkit.results.breakdown import breakdown
from hpcsimkit.results.result import Result
from tests.drawn import examples
from tests.kernel.machine_cases import cases
from tests.kernel.machine_helpers import Asked, jobs_on_machines
from tests.kernel.naive_partitions import NaiveJob, NaivePartition, naive_starts

NAMES = ("a", "b", "c")
COUNTED = Partitions([Partition("a", nodes=6), Partition("b", nodes=4, priority=2), Partition("c", nodes=9)])
MACHINES = (
    Machines.of(3, cpus=4, gpus=1) + Machines.of(2, "big", cpus=8) + Machines.of(2, "gpu", cpus=4, gpus=2)
)
DISJOINT = Partitions(
    [Partition("a", machines=MACHINES.names[:3]), Partition("b", machines=MACHINES.names[3:])], MACHINES
)
ORACLES = ("oracle-sjf", "oracle-saf", "published-wfp3", "published-unicef")


def random_jobs(seed: int, jobs: int, partitions: int, largest: int, **columns: object) -> Workload:
    """Return random jobs, some of which exceed their estimates or take no time."""
    rng = np.random.default_rng(seed)
    values = {
        "submit_time": np.sort(rng.integers(0, 60, jobs)),
        "run_time": rng.integers(0, 30, jobs),
        "requested_time": rng.integers(1, 40, jobs),
        "nodes": rng.integers(1, largest + 1, jobs),
        "user": rng.integers(0, 4, jobs),
        "partition": rng.integers(0, partitions, jobs),
        **columns,
    }
    return Workload(values, labels={"partition": NAMES})


def assert_alone(workload: Workload, cluster: Partitions, policy: str) -> None:
    """Each partition's jobs start as if nothing else was there."""
    together = Simulation(workload, make(policy), cluster, seed=3).run()
    for number, view in enumerate(cluster.views):
        rows = np.flatnonzero(workload.partition == number)
        alone = Simulation(workload.select(rows), make(policy), view.cluster, seed=3).run()
        assert together.start_time[rows].tolist() == alone.start_time.tolist(), policy
        assert together.mode[rows].tolist() == alone.mode.tolist(), policy


orders = sorted(name for name in CATALOGUE["order"] if name not in ORACLES)
backfillings = sorted(name for name in CATALOGUE["backfilling"] if name != "published-easy")


@pytest.mark.parametrize(
    "policy", [f"{order}+easy" for order in orders] + [f"wfp3+{each}" for each in backfillings]
)
def test_disjoint_partitions_are_alone(policy: str) -> None:
    assert_alone(random_jobs(1, 60, 3, 4), COUNTED, policy)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(orders), st.sampled_from(backfillings))
def test_disjoint_partitions_are_alone_at_random(seed: int, order: str, backfilling: str) -> None:
    assert_alone(random_jobs(seed, 40, 3, 4), COUNTED, f"{order}+{backfilling}")


@pytest.mark.slow
@pytest.mark.parametrize(("order", "backfilling"), [*product(orders, backfillings)])
def test_every_order_and_backfilling_alone(order: str, backfilling: str) -> None:
    for seed in range(5):
        assert_alone(random_jobs(seed, 60, 3, 4), COUNTED, f"{order}+{backfilling}")


def on_machines(seed: int, jobs: int) -> Workload:
    rng = np.random.default_rng(seed + 1)
    workload = random_jobs(seed, jobs, 2, 2)
    columns = {**workload.columns, "cpus": rng.integers(1, 4, jobs), "gpus": rng.integers(0, 2, jobs)}
    return Workload(columns, labels=workload.labels, resources=("cpus", "gpus"))


@pytest.mark.parametrize("placement", sorted(CATALOGUE["placement"]))
@pytest.mark.parametrize("backfilling", ["easy", "conservative", "easy-k"])
def test_disjoint_machines_are_alone(placement: str, backfilling: str) -> None:
    assert_alone(on_machines(4, 40), DISJOINT, f"sjf+{placement}+{backfilling}")


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(orders), st.sampled_from(backfillings))
def test_one_partition_is_no_partition(seed: int, order: str, backfilling: str) -> None:
    workload = random_jobs(seed, 40, 1, 8)
    policy = make(f"{order}+{backfilling}")
    one = Simulation(workload, policy, Partitions([Partition("a", nodes=10)]), seed=seed).run()
    none = Simulation(workload, policy, 10, seed=seed).run()
    assert one.hash == none.hash
    assert one.passes == none.passes


def test_one_partition_over_the_whole_cluster_is_the_plain_run_with_a_name() -> None:
    pipeline = Pipeline(order=External(), backfiller=EASY())
    simulation = Simulation(random_jobs(5, 30, 1, 4), pipeline, Partitions([Partition("a", nodes=5)]))
    partitions = set()
    while (decision := simulation.next_decision()) is not None:
        partitions.add(decision.partition)
        simulation.answer(decision.options[0])
    assert partitions == {"a"}
    assert [simulation.system.ledger.partition_of(row) for row in range(30)] == ["a"] * 30
    assert breakdown(simulation.result(), "partition").jobs.to_dict() == {"a": 30}
    assert Partitions([Partition("a")], MACHINES).is_whole
    assert not Partitions([Partition("a", machines=MACHINES.names[:3])], MACHINES).is_whole
    assert not COUNTED.is_whole


def test_part_of_a_cluster_as_the_only_partition() -> None:
    workload = on_machines(2, 60)
    columns = {**workload.columns, "partition": np.zeros(60)}
    workload = Workload(columns, labels=workload.labels, resources=workload.resources)
    part = Partitions([Partition("a", machines=MACHINES.names[:5])], MACHINES)
    one = Simulation(workload, make("sjf+easy"), part).run()
    alone = Simulation(workload, make("sjf+easy"), part.views[0].cluster).run()
    assert one.hash == alone.hash


def test_one_partition_of_all_machines_records_the_same_placements() -> None:
    workload = on_machines(2, 60)
    workload = Workload(
        {**workload.columns, "partition": np.zeros(60)},
        labels={"partition": ("a",)},
        resources=workload.resources,
    )
    one = Simulation(workload, make("sjf+best-fit+easy"), Partitions([Partition("a")], MACHINES)).run()
    none = Simulation(workload, make("sjf+best-fit+easy"), MACHINES).run()
    assert one.hash == none.hash


# --- shared machines -----------------------------------------------------------------------------------

CPUS = (4, 4, 2, 8, 4)
LABELS = ("a", "b", "c", "a,b", "b,c", "c,a", "a,b,c")


def shared_case(
    seed: int, *, limits: bool = False
) -> tuple[Workload, Partitions, list[NaiveJob], list[NaivePartition]]:
    """Return random jobs on overlapping partitions, for the kernel and for the naive simulator."""
    rng = np.random.default_rng(seed)
    machines = Machines([f"m{number}" for number in range(5)], ["cpus"], [[amount] for amount in CPUS])
    sets = [sorted(rng.choice(5, size=int(rng.integers(1, 6)), replace=False).tolist()) for _ in NAMES]
    tiers = rng.integers(0, 3, 3).tolist()
    own, most, members = [""] * 3, [100] * 3, [[0, 1, 2, 3]] * 3
    at_once: list[dict[str, int | str]] = [{}, {}, {}]
    if limits:
        own = [str(rng.choice(["", "", "fcfs", "sjf"])) for _ in NAMES]
        most = rng.integers(2, 7, 3).tolist()  # CPUs of a job
        members = [rng.choice(4, size=3, replace=False).tolist() for _ in NAMES]  # accounts
        more = np.random.default_rng((seed, 1))
        for each in at_once:
            each |= {"nodes": int(more.integers(2, 5))} if more.random() < 0.5 else {}
            each |= {"cpus": int(more.integers(3, 9))} if more.random() < 0.5 else {}
    parts = [
        Partition(
            name,
            machines=[f"m{number}" for number in sets[place]],
            priority=tiers[place],
            max_per_job={"cpus": most[place]},
            in_use=at_once[place],
            accounts=[f"group{number}" for number in members[place]],
            order=make(own[place]).order if own[place] else None,
        )
        for place, name in enumerate(NAMES)
    ]
    cluster = Partitions(parts, machines)
    jobs = 25
    users = np.random.default_rng((seed, 2)).integers(0, 4, jobs)
    columns = {
        "submit_time": np.sort(rng.integers(0, 40, jobs)),
        "run_time": rng.integers(0, 20, jobs),
        "requested_time": rng.integers(1, 20, jobs),
        "nodes": rng.integers(1, 3, jobs),
        "cpus": rng.integers(1, 4, jobs),
        "partition": rng.integers(0, len(LABELS), jobs),
        "group": rng.integers(-1, 4, jobs),
        "user": users,
    }
    labels = {"partition": LABELS, "group": tuple(f"group{number}" for number in range(4))}
    workload = Workload(columns, labels=labels, resources=("cpus",))
    workload = workload.without(cluster.misfits(workload), "no place")
    naive = []
    for job in workload.jobs:
        named = [NAMES.index(name) for name in LABELS[job.partition].split(",")]
        cpus = job.request.amounts[0]
        able = [
            place
            for place in named
            if sum(CPUS[each] >= cpus for each in sets[place]) >= job.nodes
            and job.nodes * cpus <= min(most[place], at_once[place].get("cpus", 100))
            and job.nodes <= at_once[place].get("nodes", 100)
            and (job.group == -1 or job.group in members[place])
        ]
        times = job.submit_time, job.run_time, job.requested_time
        naive.append(NaiveJob(job.index, *times, job.nodes, cpus, able, job.user))
    naive_parts = [NaivePartition(*each) for each in zip(sets, tiers, own, strict=True)]
    for part, each in zip(naive_parts, at_once, strict=True):
        part.most_nodes, part.most_cpus = each.get("nodes", 1000), each.get("cpus", 1000)
    return workload, cluster, naive, naive_parts


def assert_as_naive(seed: int, order: str, backfilling: str) -> int:
    """Compare start times, and return the number of planned passes beside a job that exceeds its estimate."""
    workload, cluster, jobs, partitions = shared_case(seed, limits=True)
    found = Simulation(workload, make(f"{order}+{backfilling}"), cluster).run().start_time.tolist()
    assert found == naive_starts(jobs, partitions, list(CPUS), order, backfilling), seed
    return sum(partition.exceeding for partition in partitions)


@pytest.mark.parametrize("backfilling", ["none", "greedy", "easy", "conservative"])
@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_shared_machines_as_the_page_says(order: str, backfilling: str) -> None:
    exceeding = sum(assert_as_naive(seed, order, backfilling) for seed in range(20))
    assert (exceeding > 50) == (backfilling == "conservative")


@pytest.mark.slow
@pytest.mark.parametrize("backfilling", ["none", "greedy", "easy", "conservative"])
@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_thousands_on_shared_machines(order: str, backfilling: str) -> None:
    for seed in range(1000, 2000):
        assert_as_naive(seed, order, backfilling)


def small(jobs: list[tuple[int, int, int, int]], labels: tuple[str, ...]) -> Workload:
    """Return jobs of (submission, run time, CPUs, label number)."""
    submit, run, cpus, partition = zip(*jobs, strict=True)
    columns = {"submit_time": submit, "run_time": run, "nodes": [1] * len(jobs), "cpus": cpus}
    return Workload({**columns, "partition": partition}, labels={"partition": labels}, resources=("cpus",))


TWO = Machines.of(1, "x", cpus=4) + Machines.of(1, "y", cpus=4)


def test_higher_priority_is_first_at_an_instant() -> None:
    workload = small([(0, 5, 4, 0), (0, 5, 4, 1)], ("low", "high"))
    parts = [Partition("low", machines=["x1"]), Partition("high", machines=["x1"], priority=1)]
    assert Simulation(workload, Pipeline(), Partitions(parts, TWO)).run().start_time.tolist() == [5, 0]


def test_reservation_does_not_bind_other_partitions() -> None:
    # x1 is shared: the head of `all` (8 CPUs from any machines) is due at 10, the job of `x` delays it to 22.
    jobs = [(0, 10, 2, 0), (1, 5, 8, 1), (2, 20, 2, 0)]
    workload = small(jobs, ("x", "all"))
    workload = Workload({**workload.columns, "spread": [1] * 3}, labels=workload.labels, resources=("cpus",))
    parts = [Partition("x", machines=["x1"]), Partition("all")]
    found = Simulation(workload, Pipeline(backfiller=EASY()), Partitions(parts, TWO)).run()
    assert found.start_time.tolist() == [0, 22, 2]


def test_job_in_two_partitions_starts_where_it_can_first(tmp_path: Path) -> None:
    workload = small([(0, 9, 4, 0), (0, 5, 4, 1), (1, 5, 4, 2), (2, 5, 4, 1)], ("a", "b", "a,b"))
    parts = [Partition("a", machines=["x1"]), Partition("b", machines=["y1"])]
    simulation = Simulation(workload, Pipeline(), Partitions(parts, TWO))
    result = simulation.run()
    assert result.start_time.tolist() == [0, 0, 5, 10]
    assert [simulation.system.ledger.partition_of(row) for row in range(4)] == ["a", "b", "b", "b"]
    assert result.started_in is not None
    assert result.started_in.tolist() == ["a", "b", "b", "b"]
    assert breakdown(result, "partition").jobs.to_dict() == {"a": 1, "b": 3}
    result.save(tmp_path / "run.npz")
    assert breakdown(Result.load(tmp_path / "run.npz"), "partition").jobs.to_dict() == {"a": 1, "b": 3}


def test_job_that_left_the_queue_gives_way_in_its_other_partition() -> None:
    # The wide head of `a` starts in `b`; the job behind it in `a` follows at the same instant.
    jobs = [(0, 9, 2, 0), (0, 4, 4, 1), (1, 5, 4, 2), (1, 5, 2, 0)]
    parts = [Partition("a", machines=["x1"]), Partition("b", machines=["y1"])]
    found = Simulation(small(jobs, ("a", "b", "a,b")), Pipeline(), Partitions(parts, TWO)).run()
    assert found.start_time.tolist() == [0, 0, 4, 4]


# --- limits of the amounts in use ------------------------------------------------------------------------------


def test_head_waits_for_what_its_partition_may_use() -> None:
    """Of 8 CPUs, jobs of `x` may use 5 at once. C waits for A and B. D ends before that, E leaves C its 4.

    ::

        ..DDEEEEEEEEEE.
        BBBBBBBBBBCCCCC
        BBBBBBBBBBCCCCC
        AAAAAAAAAACCCCC
        AAAAAAAAAACCCCC
    """
    jobs = [(0, 10, 2, 0), (0, 10, 2, 0), (1, 5, 4, 0), (2, 2, 1, 0), (2, 10, 1, 0)]
    parts = [Partition("x", in_use={"cpus": 5})]
    found = Simulation(small(jobs, ("x",)), Pipeline(backfiller=EASY()), Partitions(parts, TWO)).run()
    assert found.start_time.tolist() == [0, 0, 10, 2, 4]
    for backfiller in (Conservative(), Reservations(2)):
        again = Simulation(small(jobs, ("x",)), Pipeline(backfiller=backfiller), Partitions(parts, TWO)).run()
        assert again.start_time.tolist() == found.start_time.tolist()


def test_a_long_job_leaves_the_head_what_it_may_use() -> None:
    # 4 of 8 CPUs at once: C needs 3 of them at 10, so one is left over: D may have it for long, E must wait.
    jobs = [(0, 10, 2, 0), (1, 5, 3, 0), (2, 30, 1, 0), (2, 30, 1, 0)]
    parts = [Partition("x", in_use={"cpus": 4})]
    found = Simulation(small(jobs, ("x",)), Pipeline(backfiller=EASY()), Partitions(parts, TWO)).run()
    assert found.start_time.tolist() == [0, 10, 2, 15]


def test_jobs_of_other_partitions_do_not_count() -> None:
    jobs = [(0, 9, 3, 0), (0, 9, 2, 1), (1, 9, 2, 1), (1, 9, 2, 1)]
    parts = [Partition("free"), Partition("x", in_use={"nodes": 2})]
    found = Simulation(small(jobs, ("free", "x")), Pipeline(), Partitions(parts, TWO)).run()
    assert found.start_time.tolist() == [0, 0, 1, 9]


def test_counted_nodes_in_use() -> None:
    parts = [Partition("a", nodes=6, in_use={"nodes": 4}), *COUNTED.parts[1:]]
    workload = random_jobs(3, 60, 3, 4)
    found = Simulation(workload, make("sjf+easy"), Partitions(parts)).run()
    parts[0] = Partition("a", nodes=4)
    assert (
        found.start_time.tolist()
        == Simulation(workload, make("sjf+easy"), Partitions(parts)).run().start_time.tolist()
    )
    assert found.size == COUNTED.size


@pytest.mark.parametrize("backfilling", backfillings)
@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_a_limit_of_what_is_plenty_is_a_smaller_cluster(order: str, backfilling: str) -> None:
    """9 CPUs at once of 40, for pooled requests; 9 nodes at once of jobs for which any machine has room."""
    plenty = Machines.of(10, cpus=1000)
    pooled, per_node = Machines.of(10, cpus=4), {"cpus": np.ones(35)}
    for seed in range(2):
        workload = random_jobs(seed, 35, 1, 8)
        expected = Simulation(workload, make(f"{order}+{backfilling}"), 9, seed=seed).run()
        single = Workload({**workload.columns, **per_node}, labels=workload.labels, resources=("cpus",))
        for jobs, limit, machines in ((workload, "cpus", pooled), (single, "nodes", plenty)):
            cluster = Partitions([Partition("a", in_use={limit: 9})], machines)
            found = Simulation(jobs, make(f"{order}+{backfilling}"), cluster, seed=seed).run()
            assert found.start_time.tolist() == expected.start_time.tolist(), (seed, limit)


@pytest.mark.parametrize("backfilling", backfillings)
@examples(0.1)
@given(
    cases(most=12), st.sampled_from(["fcfs", "sjf", "wfp3", "slurm"]), st.sampled_from(sorted(CATALOGUE["placement"])),
    st.sampled_from(["run", "kill"]), st.integers(0, 99), st.sampled_from([0, 1]),
)  # fmt: skip
def test_a_limit_that_never_binds_changes_nothing(
    backfilling: str,
    case: tuple[Machines, list[Asked]],
    order: str,
    placement: str,
    walltime: str,
    seed: int,
    more: int,
) -> None:
    """As much as there is, or more, of each resource, and more nodes than all jobs together use."""
    machines, asked = case
    rng = np.random.default_rng(seed)
    jobs = jobs_on_machines(asked)
    jobs = Workload(
        {**jobs.columns, "partition": rng.integers(0, 3, len(jobs)), "user": rng.integers(0, 2, len(jobs))},
        labels={**jobs.labels, "partition": ("a", "b", "a,b")},
        resources=jobs.resources,
    )
    some = list(rng.choice(machines.names, int(rng.integers(1, len(machines) + 1)), replace=False))
    enough = {name: total + more for name, total in zip(machines.resources, machines.totals, strict=True)}
    enough["nodes"] = int(jobs.nodes.sum()) + more

    def starts(**limits: dict[str, int]) -> list[list[Any]]:
        cluster = Partitions([Partition("a", machines=some, **limits), Partition("b", **limits)], machines)  # type: ignore[arg-type]
        fitting = jobs.without(cluster.misfits(jobs), "fits nowhere")
        policy = make(f"{order}+{placement}+{backfilling}")
        found = Simulation(fitting, policy, cluster, seed=seed, walltime=walltime).run()
        assert found.placements is not None
        return [found.start_time.tolist(), found.mode.tolist(), found.placements.words()]

    assert starts(in_use=enough) == starts()


@pytest.mark.parametrize("limits", [{}, {"cpus": 24}, {"cpus": 1000, "nodes": 1}])
@pytest.mark.parametrize("backfilling", ["easy-k", "conservative", "conservative-replan"])
def test_reservations_of_pooled_requests_hold_totals_whatever_the_limits(
    backfilling: str, limits: dict[str, int]
) -> None:
    """Of 24 CPUs, B has 16 until 5 s, and C 14 from then on: D, of 4, starts at 3 s, when A ends."""
    columns = {"submit_time": [0, 1, 1, 3], "run_time": [3, 4, 5, 5], "nodes": [7, 16, 14, 4]}
    workload = Workload({**columns, "partition": [0] * 4}, labels={"partition": ("a",)})
    cluster = Partitions([Partition("a", in_use=limits)], Machines.of(3, cpus=8))
    found = Simulation(workload, make(f"fcfs+{backfilling}"), cluster).run()
    assert found.start_time.tolist() == [0, 1, 5, 3]


@pytest.mark.parametrize("placement", sorted(CATALOGUE["placement"]))
@pytest.mark.parametrize("backfilling", ["none", "easy", "conservative", "easy-k"])
def test_no_more_is_in_use_than_the_limit(placement: str, backfilling: str) -> None:
    parts = [Partition("a", in_use={"cpus": 7, "gpus": 2}), Partition("b", in_use={"nodes": 3})]
    cluster = Partitions(parts, MACHINES)
    workload = on_machines(6, 40)
    workload = workload.without(cluster.misfits(workload), "beyond")
    found = Simulation(workload, make(f"sjf+{placement}+{backfilling}"), cluster, seed=2).run()
    assert len(workload) > 25 and found.started_in is not None
    cpus, gpus = (workload.column(name) * workload.nodes for name in ("cpus", "gpus"))
    for at in np.unique(found.start_time).tolist():
        runs = (found.start_time <= at) & (found.end_time > at)
        here = {name: runs & (found.started_in == name) for name in ("a", "b")}
        assert cpus[here["a"]].sum() <= 7 and gpus[here["a"]].sum() <= 2
        assert workload.nodes[here["b"]].sum() <= 3


@pytest.mark.parametrize("window", [None, 5])
def test_jobs_that_fit_are_within_the_limits(window: int | None) -> None:
    """A pipeline that looks only at jobs that fit has the schedule of greedy backfilling."""
    cluster = Partitions([Partition("a", in_use={"cpus": 7}), Partition("b", in_use={"nodes": 3})], MACHINES)
    workload = on_machines(6, 40)
    workload = workload.without(cluster.misfits(workload), "beyond")
    found = Simulation(workload, Pipeline(order=SJF(), fitting=True, window=window), cluster).run()
    if window is None:
        greedy = Simulation(workload, make("sjf+greedy"), cluster).run()
        assert found.start_time.tolist() == greedy.start_time.tolist()
    assert found.finished.all()


def test_limits_that_are_refused() -> None:
    for machines, part, found in (
        (None, {"nodes": 4, "in_use": {"cpus": 3}}, "in_use of homogeneous nodes needs at least 1 of nodes, found 3 of cpus"),
        (None, {"nodes": 4, "in_use": {"nodes": 0}}, "in_use of homogeneous nodes needs at least 1 of nodes, found 0 of nodes"),
        (TWO, {"in_use": {"gpu": 3}}, "in_use needs amounts of nodes, cpus, found 'gpu'"),
        (TWO, {"in_use": 3}, "in_use needs amounts by resource, found 3"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            Partitions([Partition("a", **part)], machines)
        assert str(caught.value) == f"partition 'a': {found}"
    workload = small([(0, 9, 3, 0)], ("a",))
    cluster = Partitions([Partition("a", in_use={"cpus": 2})], TWO)
    with pytest.raises(ScheduleError, match="job 1 fits none of its partitions"):
        Simulation(workload, Pipeline(), cluster)
    cluster = Partitions([Partition("a", in_use={"cpus": 3})], TWO)
    with pytest.raises(UsageError, match="partition 'a' has in_use: a policy whose machines are chosen by"):
        Simulation(workload, make("bfbp"), cluster).run()


def test_limits_leave_the_other_partitions() -> None:
    columns = {"submit_time": [0, 0], "run_time": [5, 5], "requested_time": [60, 600], "nodes": [1, 1]}
    workload = Workload({**columns, "partition": [0, 0]}, labels={"partition": ("short,long",)})
    parts = [Partition("short", nodes=4, max_time=60), Partition("long", nodes=1)]
    assert Partitions(parts).admitted(workload).tolist() == [[True, False], [True, True]]


def test_who_may_use_a_partition() -> None:
    columns = {"submit_time": [0] * 5, "run_time": [5] * 5, "nodes": [1] * 5, "partition": [0] * 5}
    who = {"user": [0, 1, 0, -1, 0], "group": [0, 0, 1, -1, 0], "qos": [0, 0, 0, -1, 1]}
    labels = {
        "partition": ("a",),
        "user": ("ada", "ben"),
        "group": ("physics", "ml"),
        "qos": ("normal", "high"),
    }
    workload = Workload({**columns, **who}, labels=labels)
    for lists, allowed in (
        ({}, [True] * 5),
        ({"users": ["ada"]}, [True, False, True, True, True]),
        ({"accounts": ["physics"]}, [True, True, False, True, True]),
        ({"denied_accounts": ["physics"]}, [False, False, True, True, False]),
        ({"qos": ["normal"], "users": ["ada"]}, [True, False, True, True, False]),
        ({"denied_qos": ["high"]}, [True, True, True, True, False]),
    ):
        cluster = Partitions([Partition("a", nodes=4, **lists)])
        assert cluster.admitted(workload).tolist() == [allowed]
        assert (cluster.reasons(workload) == "").tolist() == allowed


def test_why_no_partition_admits_a_job() -> None:
    """Of the first partition in which a job may run; "short,long" is that of job 4."""
    columns = {"submit_time": [0] * 6, "run_time": [5] * 6, "requested_time": [60, 61, 60, 601, 60, 60]}
    workload = Workload(
        {
            **columns,
            "nodes": [2, 2, 3, 1, 2, 4],
            "partition": [0, 0, 0, 1, 2, 2],
            "cpus": [4] * 5 + [2],
            "user": [0, 0, 0, 0, 1, 0],
        },
        labels={"partition": ("short", "short,long", "own"), "user": ("ada", "ben")},
        resources=("cpus",),
    )
    parts = [
        Partition("short", machines=["x1", "y1"], max_time=60),
        Partition("long", machines=["x1", "y1"], max_time=600),
        Partition("own", machines=["x1", "y1"], max_per_job={"cpus": 4}, users=["ada"]),
    ]
    assert Partitions(parts, TWO).reasons(workload).tolist() == [
        "",
        "exceeds max_time of partition 'short'",
        "exceeds machines of partition 'short'",
        "exceeds max_time of partition 'short'",
        "may not run in any of its partitions",
        "exceeds max_per_job of cpus of partition 'own'",
    ]
    limits = [Partition("short", machines=["x1", "y1"], in_use={"cpus": 7}), *parts[1:]]
    assert Partitions(limits, TWO).reasons(workload)[0] == "exceeds machines or in_use of partition 'short'"


def test_a_partition_with_an_order_of_its_own() -> None:
    jobs = [(0, 9, 4, 0), (1, 5, 4, 0), (2, 3, 4, 0), (0, 9, 4, 1), (1, 5, 4, 1), (2, 3, 4, 1)]
    workload = small(jobs, ("x", "y"))
    parts = [Partition("x", machines=["x1"]), Partition("y", machines=["y1"], order=make("sjf").order)]
    found = Simulation(workload, Pipeline(), Partitions(parts, TWO)).run()
    assert found.start_time.tolist() == [0, 9, 14, 0, 12, 9]
    parts[1] = Partition("y", machines=["y1"], order="sjf")
    with pytest.raises(UsageError, match="partition 'y': order needs an Order, found 'sjf'"):
        Simulation(workload, Pipeline(), Partitions(parts, TWO)).run()


def test_job_beyond_all_limits_is_one_line() -> None:
    workload = Workload(
        {"submit_time": [0], "run_time": [5], "nodes": [3], "partition": [0]}, labels={"partition": ("a",)}
    )
    with pytest.raises(ScheduleError, match="job 1 fits none of its partitions: it needs 3 nodes for 5 s"):
        Simulation(workload, Pipeline(), Partitions([Partition("a", nodes=4, max_nodes=2)]))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "at least one"),
        ([Partition("a")], "partition 'a' needs a number of nodes"),
        (
            [Partition("a", nodes=2, machines=["n1"])],
            "partition 'a' needs a number of nodes, found no machines",
        ),
        ([Partition("a", nodes=1), Partition("a", nodes=2)], "partition 'a' is defined twice"),
        ([Partition("a", nodes=1, default=True), Partition("b", nodes=2, default=True)], "the default"),
    ],
)
def test_invalid_partitions(parts: list[Partition], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Partitions(parts)


@pytest.mark.parametrize("users", [[1], "ada", 7])
def test_names_are_lists_of_texts(users: Any) -> None:
    with pytest.raises(UsageError, match="partition 'a': users needs a list of names, found"):
        Partition("a", nodes=4, users=users)


def test_observers_see_the_end_of_a_run_on_partitions() -> None:
    class Ends(Observer):
        seen = 0

        def on_finish(self, system: System) -> None:
            self.seen += 1

    ends = Ends()
    jobs = random_jobs(5, 30, 1, 4)
    Simulation(jobs, Pipeline(), Partitions([Partition("a", nodes=5)]), observers=[ends]).run()
    assert ends.seen == 1


def test_unknown_partition_and_machine() -> None:
    workload = Workload(
        {"submit_time": [0], "run_time": [5], "nodes": [1], "partition": [0]}, labels={"partition": ("b",)}
    )
    with pytest.raises(ScheduleError, match="job 1 needs a partition: a; found partition 'b'"):
        Simulation(workload, Pipeline(), Partitions([Partition("a", nodes=4)]))
    with pytest.raises(UsageError, match="unknown machine 'z9'; there are x1, y1"):
        Partitions([Partition("a", machines=["z9"])], TWO)


def test_job_without_partition_belongs_to_the_default() -> None:
    workload = Workload({"submit_time": [0], "run_time": [5], "nodes": [1]})
    with pytest.raises(ScheduleError, match="job 1 needs a partition: a; found none"):
        Simulation(workload, Pipeline(), Partitions([Partition("a", nodes=4)]))
    parts = [Partition("a", nodes=4), Partition("b", nodes=4, default=True)]
    assert Partitions(parts).admitted(workload).tolist() == [[False], [True]]


def test_published_rules_know_no_partitions() -> None:
    workload = random_jobs(0, 5, 1, 1)
    with pytest.raises(UsageError, match="'dirlab' know no partitions"):
        Simulation(workload, Pipeline(), Partitions([Partition("a", nodes=4)]), event_order=DirlabOrder())


@pytest.mark.parametrize("seat", ["order", "placement", "backfiller", "inspector"])
def test_open_seats_answered_by_their_heuristics(seat: str) -> None:
    stages = {"order": SJF(), "backfiller": EASY()}
    seen: set[str] = set()

    def answer(decision: Decision) -> object:
        seen.add(decision.partition)
        return default_choice(decision)

    for seed in range(15):
        workload, cluster, *_ = shared_case(seed)
        opened = Pipeline(**{**stages, seat: External(stages.get(seat))})
        found = play(Simulation(workload, opened, cluster), answer)
        closed = Simulation(workload, Pipeline(**stages), cluster).run()
        assert found.start_time.tolist() == closed.start_time.tolist()
    assert seen == set(NAMES)


def test_observers_see_the_whole_cluster() -> None:
    workload = random_jobs(5, 60, 3, 4)
    timeline, promises = Timeline(), Promises()
    result = Simulation(workload, make("sjf+easy"), COUNTED, observers=[timeline, promises]).run()
    assert timeline.steps.busy.tolist() == result.timeline().busy.tolist()
    assert timeline.steps.waiting.tolist() == result.timeline().waiting.tolist()
    made = 0
    for number, view in enumerate(COUNTED.views):
        alone = Promises()
        part = workload.select(workload.partition == number)
        Simulation(part, make("sjf+easy"), view.cluster, observers=[alone]).run()
        made += alone.made
    assert promises.made == made


@pytest.mark.parametrize(("usage", "first"), [("partition", 2), ("cluster", 3)])
def test_slurm_counts_the_usage_of_a_partition_or_of_the_cluster(usage: str, first: int) -> None:
    """User 0 runs on one of two shared machines in b, user 2 on the other in a, where 0 and 1 wait for it."""
    machines = Machines.of(2, cpus=1)
    columns = {
        "submit_time": [0, 0, 1, 2],
        "run_time": [100, 50, 10, 10],
        "nodes": [1] * 4,
        "cpus": [1] * 4,
        "user": [0, 2, 0, 1],
        "partition": [1, 0, 0, 0],
    }
    workload = Workload(columns, labels={"partition": ("a", "b")}, resources=("cpus",))
    order = SlurmMultifactor(age=0, attribute=0, usage=usage)
    shared = Partitions([Partition("a"), Partition("b")], machines)
    starts = Simulation(workload, Pipeline(order=order), shared).run().start_time.tolist()
    assert starts[:2] == [0, 0]
    assert starts[first] == 50
    assert starts[5 - first] == 60
    with pytest.raises(UsageError, match="slurm: usage needs 'partition' or 'cluster', found 'mine'"):
        Simulation(workload, Pipeline(order=SlurmMultifactor(usage="mine")), shared).run()


def test_slurm_counts_users_whose_jobs_started_at_once_in_another_partition() -> None:
    """User 3 of partition x is entitled to a third of all, so that C goes before D.

    At 31 s, C has priority 2000 and D 1931.8 if three users share the cluster, and 2076.0 if only two do.

    x   ...AAAAAAAAAAAAAAAAAAAA
    y   ...............BBBBBBBBBBBBBBBBBCCCDDDDDDDDDDDDD
        ...............BBBBBBBBBBBBBBBBBCCC
        ...............BBBBBBBBBBBBBBBBBCCC
        ................................CCC
    """
    columns = {"submit_time": [3, 15, 25, 31], "run_time": [20, 17, 3, 13], "requested_time": [7, 17, 21, 6]}
    columns |= {"nodes": [1, 3, 4, 1], "user": [3, 1, 0, 1], "partition": [0, 1, 1, 1]}
    workload = Workload(columns, labels={"partition": ("x", "y")})
    cluster = Partitions([Partition("x", nodes=1), Partition("y", nodes=4)])
    order = SlurmMultifactor(half_life=50, usage="cluster", qos=0)
    found = Simulation(workload, Pipeline(order=order), cluster).run()
    assert found.start_time.tolist() == [3, 15, 32, 35]


def test_slurm_compares_requests_with_the_longest_in_any_partition() -> None:
    """B asks for 10 s and C for 20 s, 90 s later: of 20 s that is half, of the 1000 s of A only a hundredth."""
    columns = {"submit_time": [0, 0, 1, 91], "run_time": [1, 95, 9, 9], "requested_time": [1000, 95, 20, 10]}
    columns |= {"nodes": [1] * 4, "user": [0] * 4, "partition": [0, 1, 1, 1]}
    workload = Workload(columns, labels={"partition": ("x", "y")})
    cluster = Partitions([Partition("x", nodes=1), Partition("y", nodes=1)])
    for usage, expected in (("partition", [0, 0, 104, 95]), ("cluster", [0, 0, 95, 104])):
        order = SlurmMultifactor(max_age=1000, fair_share=0, usage=usage)
        found = Simulation(workload, Pipeline(order=order), cluster).run()
        assert found.start_time.tolist() == expected, usage


def test_slurm_learns_of_an_arrival_elsewhere_after_a_pass_of_the_same_instant() -> None:
    """E arrives in x at 95 s, when D has run for 0 s in y, where the waiting jobs have been sorted by then.

    Only with its request of 1000 s as the longest one, B (requests 20 s, from 1 s on) goes before C (10 s, 91 s).
    """
    columns = {"submit_time": [0, 1, 91, 2, 2], "run_time": [95, 9, 9, 0, 9]}
    columns |= {"requested_time": [95, 20, 10, 1, 1000], "nodes": [1] * 5, "user": [0] * 5}
    columns |= {"partition": [1, 1, 1, 1, 0], "preceding": [-1] * 4 + [4], "think_time": [-1] * 4 + [0]}
    workload = Workload(columns, labels={"partition": ("x", "y")})
    cluster = Partitions([Partition("x", nodes=1), Partition("y", nodes=1)])
    order = SlurmMultifactor(max_age=1000, fair_share=0, usage="cluster")
    found = Simulation(workload, Pipeline(order=order), cluster, dependencies=True).run()
    assert found.start_time.tolist() == [0, 95, 104, 95, 95]


def users_case(seed: int) -> tuple[Workload, Partitions, list[NaiveJob], list[NaivePartition]]:
    """Return random jobs of one machine each; those of partition "a" start at once, and request more time."""
    rng = np.random.default_rng(seed)
    count, sets = 25, ([0, 1], [2, 3], [3, 4])
    idle = rng.random(count) < 0.4
    columns = {
        "submit_time": np.sort(rng.integers(0, 60, count)),
        "run_time": rng.integers(0, 20, count),
        "requested_time": np.where(idle, rng.integers(1, 200, count), rng.integers(1, 20, count)),
        "nodes": np.ones(count, dtype=np.int64),
        "cpus": np.where(idle, 1, rng.integers(1, 5, count)),
        "user": rng.integers(0, 8, count),
        "partition": np.where(idle, 0, rng.choice([1, 2, 4, 4], count)),  # of LABELS
    }
    workload = Workload(columns, labels={"partition": LABELS}, resources=("cpus",))
    machines = Machines([f"m{number}" for number in range(5)], ["cpus"], [[40], [40], [4], [4], [4]])
    parts = [
        Partition(name, machines=[f"m{number}" for number in numbers])
        for name, numbers in zip(NAMES, sets, strict=True)
    ]
    naive = [
        NaiveJob(
            job.index, job.submit_time, job.run_time, job.requested_time, 1, job.request.amounts[0],
            [NAMES.index(name) for name in LABELS[job.partition].split(",")], job.user,
        )
        for job in workload.jobs
    ]  # fmt: skip
    return workload, Partitions(parts, machines), naive, [NaivePartition(each, 0) for each in sets]


def assert_slurm_as_naive(case: Callable[[int], Any], seed: int, usage: str, backfilling: str) -> None:
    workload, cluster, jobs, partitions = case(seed)
    policy = make(f"slurm(half_life=50,usage={usage!r},qos=0)+{backfilling}")
    found = Simulation(workload, policy, cluster).run().start_time.tolist()
    cpus = cluster.whole.capacity[:, 0].tolist()
    assert found == naive_starts(jobs, partitions, cpus, "slurm", backfilling, usage), seed


CASES = {"shared": partial(shared_case, limits=True), "users": users_case}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("usage", ["partition", "cluster"])
def test_slurm_as_the_page_says(usage: str, case: str) -> None:
    for seed in range(15):
        assert_slurm_as_naive(CASES[case], seed, usage, ("none", "easy")[seed % 2])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("usage", ["partition", "cluster"])
@pytest.mark.parametrize("backfilling", ["none", "greedy", "easy"])
def test_hundreds_of_slurm(usage: str, case: str, backfilling: str) -> None:
    for seed in range(1000, 1400):
        assert_slurm_as_naive(CASES[case], seed, usage, backfilling)


def test_whole_machines_are_the_rule_of_one_partition_of_two() -> None:
    parts = Partitions([Partition("a"), Partition("b", exclusive=True)], Machines.of(2, cpus=8))
    columns = {
        "submit_time": [0, 0],
        "run_time": [9, 9],
        "nodes": [1, 1],
        "partition": [0, 1],
        "cpus": [1, 1],
    }
    jobs = Workload(columns, resources=("cpus",), labels={"partition": ("a", "b")})
    assert parts.with_rules(jobs).column("exclusive").tolist() == [-1, 1]


def test_max_nodes_does_not_limit_pooled_requests() -> None:
    columns = {"submit_time": [0] * 3, "run_time": [9] * 3, "nodes": [2, 3, 3], "cpus": [1] * 3}
    columns |= {"partition": [0] * 3, "spread": [0, 0, 1]}
    workload = Workload(columns, labels={"partition": ("a",)}, resources=("cpus",))
    cluster = Partitions([Partition("a", max_nodes=2)], Machines.of(3, cpus=4))
    assert cluster.admitted(workload)[0].tolist() == [True, False, True]


def test_a_plan_is_made_anew_when_a_planned_job_starts_in_another_partition() -> None:
    """D is planned after C in b, at 29 s; C starts in a at 5 s, so that D moves up to 20 s."""
    columns = {"submit_time": [0, 0, 1, 2], "run_time": [5, 20, 9, 3], "nodes": [2, 1, 2, 2]}
    workload = Workload({**columns, "partition": [0, 1, 2, 1]}, labels={"partition": ("a", "b", "a,b")})
    plans: list[tuple[int, str]] = []

    class Spy(Conservative):
        def _make_anew(self, system: System) -> None:
            plans.append((system.now, system.partition))
            super()._make_anew(system)

    cluster = Partitions([Partition("a", nodes=2), Partition("b", nodes=2)])
    found = Simulation(workload, Pipeline(backfiller=Spy()), cluster).run()
    assert found.start_time.tolist() == [0, 0, 5, 20]
    assert plans == [(5, "b")]


@pytest.mark.parametrize(("last", "start", "mode"), [(2, 10, Mode.READY), (0, 20, Mode.RESERVED)])
def test_the_partition_in_which_a_job_starts_decides_whether_it_was_reserved(
    last: int, start: int, mode: Mode
) -> None:
    """D was the first job that did not fit in a, and never in b, where C was; it may start in both, or in a alone.

    a   AAAAAAAAAAAAAAAAAAAA        b   BBBBBBBBBBCCCCC
                                        BBBBBBBBBBDDDDD
    """
    columns = {"submit_time": [0, 0, 1, 2], "run_time": [20, 10, 5, 5], "nodes": [1, 2, 1, 1]}
    workload = Workload({**columns, "partition": [0, 1, 1, last]}, labels={"partition": ("a", "b", "a,b")})
    cluster = Partitions([Partition("a", nodes=1), Partition("b", nodes=2)])
    found = Simulation(workload, make("fcfs+easy"), cluster).run()
    assert found.start_time.tolist() == [0, 0, 10, start]
    assert found.mode.tolist() == [Mode.READY, Mode.READY, Mode.RESERVED, mode]


def test_limits_of_a_job_in_all_and_on_each_node() -> None:
    columns = {"submit_time": [0] * 4, "run_time": [9] * 4, "nodes": [2, 2, 1, 2], "cpus": [2, 3, 4, 6]}
    columns |= {"partition": [0] * 4, "spread": [0, 0, 0, 1]}
    workload = Workload(columns, labels={"partition": ("a",)}, resources=("cpus",))
    machines = Machines.of(2, cpus=4)

    def admitted(**limits: dict[str, int]) -> list[bool]:
        cluster = Partitions([Partition("a", **limits)], machines)  # type: ignore[arg-type]
        return cluster.admitted(workload)[0].tolist()

    assert admitted(max_per_job={"cpus": 4}) == [True, False, True, False]
    assert admitted(max_per_node={"cpus": 3, "gpus": 0}) == [True, True, False, True]
    assert admitted(max_per_node={"cpus": 2}, max_per_job={"cpus": 5}) == [True, False, False, False]
