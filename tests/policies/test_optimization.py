"""DRAS's two objectives and its policy Optimization: the reference cases, and schedules drawn by hand."""

from __future__ import annotations

import json
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.policies import check_policy
from hpcsimkit.experiments.checks.workloads import random_workloads
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.policies import Optimization
from hpcsimkit.policies.placing.knapsack import choose, choose_many
from hpcsimkit.policies.placing.objectives import capability, capability_values, capacity, capacity_values
from tests.kernel.helpers import run, starts, workload


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Any]:
    """Rewards, and best sets by brute force."""
    return json.loads((shared / "refs" / "dras_cases.json").read_text())


# --- rewards ---------------------------------------------------------------------------------------------


def test_rewards_of_equation_1(cases: dict[str, Any]) -> None:
    assert len(cases["reward_eq1"]) == 40
    for case in cases["reward_eq1"]:
        waits = [case["now"] - job["submit"] for job in case["queue"]]
        nodes = [job["size"] for job in case["queue"]]
        selected, total, before = case["selected"], case["N"], case["used_before"]
        used = before + (nodes[selected] if case["starts"] else 0)
        found = capability(waits, nodes, [selected], used, total)
        assert found == pytest.approx(case["eq1_paper"], rel=1e-12)
        floored = capability(waits, nodes, [selected], used, total, least_longest=21_600)
        assert floored == pytest.approx(case["eq1_cqgym_tmax_over_queue"], rel=1e-12)
        if case["starts"]:  # alone, a job is worth what its start is rewarded with
            value = capability_values(waits, nodes, total)[selected]
            assert found == pytest.approx(value + before / total / 3, rel=1e-12)


def test_rewards_of_equation_2(cases: dict[str, Any]) -> None:
    assert len(cases["reward_eq2"]) == 20
    for case in cases["reward_eq2"]:
        requested = [job["req_time"] for job in case["queue"]]
        waits = [case["now"] - job["submit"] for job in case["queue"]]
        assert capacity(requested) == pytest.approx(case["eq2_t_is_req_time"], rel=1e-12)
        assert capacity(waits) == pytest.approx(case["eq2_t_is_wait"], rel=1e-12)
        assert capacity(requested) == pytest.approx(-capacity_values(requested).mean(), rel=1e-12)


def test_rewards_at_their_limits() -> None:
    assert capability([5, 0], [1, 2], [], used=3, total=4, weights=(1, 1, 2)) == 1.5
    assert capability([0, 0], [1, 2], [1], used=2, total=4, weights=(1, 0, 0)) == 0
    assert capability([9, 3], [1, 3], [0, 1], used=4, total=4, weights=(1, 2, 3)) == 6 / 9 + 2 * 2 / 4 + 3
    assert capability_values([0, 0], [1, 2], 4).tolist() == [2 / 3 * 1 / 4, 2 / 3 * 2 / 4]
    assert capability_values([50, 100], [1, 1], 1, weights=(1, 0, 0), least_longest=1000).tolist() == [
        0.05,
        0.1,
    ]
    assert capacity([]) == 0
    assert capacity_values([0, -5, 0.5]).tolist() == [1, 1, 1]


# --- best sets -------------------------------------------------------------------------------------------


def columns(case: dict[str, Any]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Ids, waits, sizes and requested times of a case's jobs, oldest first."""
    jobs = case["jobs"]
    waits = [case["now"] - job["submit"] for job in jobs]
    assert waits == sorted(waits, reverse=True) and waits[0] == case["t_max"]
    return (
        [job["id"] for job in jobs], waits, [job["size"] for job in jobs], [job["req_time"] for job in jobs]
    )  # fmt: skip


@pytest.mark.parametrize("objective", ["additive_eq1", "eq2_req_time"])
def test_best_sets(objective: str, cases: dict[str, Any]) -> None:
    assert len(cases["knapsack"]) == 60
    for case in cases["knapsack"]:
        ids, waits, sizes, requested = columns(case)
        if objective == "additive_eq1":
            values = capability_values(waits, sizes, case["N"])
        else:
            values = capacity_values(requested)
        chosen = choose(values, sizes, case["free"])
        assert [ids[place] for place in chosen] == case[objective]["ids"]
        assert values[chosen].sum() == pytest.approx(case[objective]["value"], rel=1e-12)
        by_program = choose_many(values, np.reshape(sizes, (-1, 1)), [case["free"]])
        assert values[by_program].sum() == pytest.approx(case[objective]["value"], rel=1e-12)


def test_best_sets_by_the_letter_of_equation_1(cases: dict[str, Any]) -> None:
    """Means over the set are no sum over jobs: small sets win, so another one than the knapsack's."""
    others = 0
    for case in cases["knapsack"]:
        ids, waits, sizes, _ = columns(case)
        busy = case["N"] - case["free"]
        places = range(len(ids))
        sets = chain.from_iterable(combinations(places, count) for count in range(1, len(ids) + 1))
        rewards = {
            chosen: capability(waits, sizes, chosen, busy + sum(sizes[j] for j in chosen), case["N"])
            for chosen in sets
            if sum(sizes[j] for j in chosen) <= case["free"]
        }
        best = max(rewards, key=rewards.__getitem__, default=())
        assert [ids[place] for place in best] == case["literal_eq1"]["ids"]
        if best:
            assert rewards[best] == pytest.approx(case["literal_eq1"]["value"], rel=1e-12)
        others += case["literal_eq1"]["ids"] != case["additive_eq1"]["ids"]
    assert others == 38


# --- schedules -------------------------------------------------------------------------------------------

CROWD = workload([(0, 10, 10, 4), (0, 10, 10, 7), (1, 9, 9, 3), (1, 7, 7, 3), (2, 1, 1, 5)], 10)


def test_schedule_by_hand() -> None:
    """Capability: at 0 job 2, of 7 nodes, is worth more than job 1, of 4; they do not fit together.

    At 1, 3 nodes are free: jobs 3 and 4 are alike, so the older starts, until 10. At 10 all nodes are free;
    jobs 1, 4, 5 wait for 4 + 3 + 5 nodes, for 10, 9, 8 s: in 30ths of the weights' third, they are worth
    30 + 24, 27 + 18, 24 + 30; so jobs 1 and 5, the heaviest, go and leave a node. At 11, job 5 ends: job 4.
    """
    assert starts(CROWD, "optimization") == [10, 0, 1, 11, 10]


def test_schedule_by_hand_for_capacity() -> None:
    """At 0 jobs 1 and 2 are worth a tenth each: the older. At 1, 6 nodes: jobs 3 and 4. At 8, job 4 leaves 3.

    At 10 all others have ended; job 5 is worth 1, job 2 a tenth, and they want 12 nodes.
    """
    assert starts(CROWD, "optimization(objective=capacity)") == [0, 11, 1, 1, 10]


def test_wait_as_time() -> None:
    """Equation 2 by waits: who has waited least is worth most; at 5, job 4 beats jobs 2 and 3."""
    jobs = workload([(0, 5, 5, 4), (1, 5, 5, 4), (2, 5, 5, 4), (4, 5, 5, 4)], 4)
    assert starts(jobs, "optimization(capacity)") == [0, 5, 10, 15]
    assert starts(jobs, "optimization(capacity, time=wait)") == [0, 15, 10, 5]


def test_weights() -> None:
    """At 9, job 2 has waited longest, job 3 is larger."""
    jobs = workload([(0, 9, 9, 4), (1, 5, 5, 2), (7, 5, 5, 4)], 4)
    assert starts(jobs, Optimization(w1=1, w2=0, w3=0)) == [0, 9, 14]
    assert starts(jobs, Optimization(w1=0, w2=1, w3=0)) == [0, 14, 9]
    assert starts(jobs, Optimization(w1=0, w2=0, w3=1)) == [0, 14, 9]


def test_worthless_jobs_start_too() -> None:
    """At 0 nobody has waited, so nothing is worth anything: as many as fit."""
    jobs = workload([(0, 5, 5, 3), (0, 5, 5, 2), (0, 5, 5, 2)], 4)
    assert starts(jobs, Optimization(w1=1, w2=0, w3=0)) == [5, 0, 0]


def test_worthless_jobs_displace_no_other() -> None:
    """At 5, job 2 has waited; jobs 3 and 4, which come then, are worth nothing, together too."""
    jobs = workload([(0, 5, 5, 4), (1, 5, 5, 4), (5, 5, 5, 2), (5, 5, 5, 2)], 4)
    assert starts(jobs, Optimization(w1=1, w2=0, w3=0)) == [0, 5, 10, 10]


def test_window() -> None:
    """At 9, two jobs of 2 nodes are worth as much as those of 3 and 1, and have not the youngest.

    Of the first two, the older is as good as the other. The job of 1 node is out of sight until 18, when
    the others leave no node; with three in sight it is not.
    """
    jobs = workload([(0, 9, 9, 4), (1, 9, 9, 3), (2, 9, 9, 2), (3, 9, 9, 2), (4, 9, 9, 1)], 4)
    assert starts(jobs, Optimization("capacity")) == [0, 18, 9, 9, 18]
    assert starts(jobs, Optimization("capacity", window=2)) == [0, 9, 18, 18, 27]
    assert starts(jobs, Optimization("capacity", window=4)) == [0, 18, 9, 9, 18]


def test_the_window_moves_on_within_a_pass() -> None:
    jobs = workload([(0, 9, 9, 4), (1, 9, 9, 1), (2, 9, 9, 1), (3, 9, 9, 4), (4, 9, 9, 1)], 4)
    assert starts(jobs, Optimization("capacity", window=2)) == [0, 9, 9, 18, 9]
    assert starts(jobs, Optimization("capacity", window=1)) == [0, 9, 9, 18, 27]


def test_it_is_a_catalogued_policy() -> None:
    assert make("optimization") == make("knapsack") == Optimization()
    assert make("knapsack(capacity,window=50)") == Optimization("capacity", window=50)


@pytest.mark.parametrize(
    "policy",
    [Optimization(), Optimization("capacity", window=5), Optimization(w2=0, w3=0), Optimization("capacity", time="wait")],
    ids=repr,
)  # fmt: skip
def test_it_keeps_the_rules(policy: Optimization) -> None:
    assert check_policy(policy, cluster=16).rejected == 0


def test_it_keeps_the_rules_on_machines() -> None:
    machines = Machines.of(2, cpus=4) + Machines.of(1, cpus=8, gpus=2)
    workloads = random_workloads(np.random.default_rng(0), 6, cluster=machines, shared=True)
    assert not check_policy(Optimization(), workloads=workloads, cluster=machines).notes


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("optimization(speed)", "objective needs 'capability' or 'capacity', found 'speed'"),
        ("optimization(time=start)", "time needs 'request' or 'wait', found 'start'"),
        ("optimization(w1=-1)", "numbers of at least 0"),
        ("optimization(w1=0,w2=0,w3=0)", "not all of them 0"),
        ("optimization(w1=x)", "numbers of at least 0"),
        ("optimization(window=0)", "window needs a whole number of at least 1, found 0"),
        ("optimization(window=2.5)", "window needs a whole number of at least 1, found 2.5"),
        ("optimization(node_limit=0)", "node_limit needs a whole number of at least 1, found 0"),
    ],
)
def test_parameters_that_make_no_sense(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        run(CROWD, name)
    assert "\n" not in str(caught.value)


# --- machines --------------------------------------------------------------------------------------------


def test_counted_nodes_are_machines_of_one_processor() -> None:
    rng = np.random.default_rng(0)
    rows = [tuple(row) for row in np.column_stack([
        np.sort(rng.integers(0, 300, 80)), rng.integers(0, 40, 80), rng.integers(1, 60, 80), rng.integers(1, 9, 80),
    ]).tolist()]  # fmt: skip
    jobs = workload(rows, 8)
    for name in ("optimization", "optimization(capacity)"):
        expected = starts(jobs, name)
        assert starts(jobs, name, cluster=Machines.of(8, cpus=1)) == expected
        assert starts(jobs, name, cluster=Machines.of(1, cpus=8, gpus=2)) == expected


GB = 10**9


def asking(*rows: tuple[int, int, int], **more: Any) -> Workload:
    """Jobs of 5 s that arrive together: cpus, gpus, memory [GB]."""
    cpus, gpus, memory = np.array(rows).T
    columns = {"cpus": cpus, "gpus": gpus, "memory": memory * GB, **more}
    always = {
        "submit_time": np.zeros(len(rows)),
        "run_time": np.full(len(rows), 5),
        "nodes": np.ones(len(rows)),
    }
    return Workload({**always, **columns}, resources=("cpus", "gpus", "memory"))


TWO = Machines.of(1, "gpu", cpus=8, gpus=2, memory="16 GB") + Machines.of(1, cpus=8, memory="16 GB")


@pytest.mark.parametrize(("memory", "expected"), [(4, [0, 0, 5, 0]), (5, [0, 0, 5, 5])])
def test_shared_machines_by_hand(memory: int, expected: list[int]) -> None:
    """Dominant shares of 16 cpus, 2 gpus, 32 GB: 1, 1/2, 1/2, 3/8.

    Job 1 takes all gpus, so job 3 waits; job 2 takes all cpus of the other machine, so job 4 shares with
    job 1, if there is memory for both.
    """
    jobs = asking((4, 2, memory), (8, 0, 1), (5, 1, 1), (4, 0, 12))
    result = run(jobs, Optimization(w1=0, node_limit=None), cluster=TWO)
    assert result.start_time.tolist() == expected


def test_constraints_count() -> None:
    """Both jobs may use the first machine only; without constraints there are machines enough."""
    jobs = asking((8, 0, 1), (7, 0, 1), constraint=[0, 0])
    labelled = Workload(jobs.columns, resources=jobs.resources, labels={"constraint": ("big",)})
    machines = Machines.of(1, features=["big"], cpus=8, memory="16 GB") + Machines.of(
        3, cpus=8, memory="16 GB"
    )
    assert starts(labelled, Optimization(w1=0), cluster=machines) == [0, 5]
    assert starts(asking((8, 0, 1), (7, 0, 1)), Optimization(w1=0), cluster=machines) == [0, 0]


def test_totals_by_hand() -> None:
    """Shares 3/4, 3/4, 4/5: the first two together take all 8 cpus and 20 GB of two machines."""
    jobs = asking((6, 0, 5), (2, 0, 15), (5, 0, 16), spread=[1, 1, 1])
    assert starts(jobs, Optimization(), cluster=Machines.of(2, cpus=4, memory="10 GB")) == [0, 0, 5]


@pytest.mark.parametrize("more", [{"nodes": [1, 2]}, {"exclusive": [0, 1]}, {"spread": [0, 1]}], ids=str)
def test_jobs_that_are_neither_on_one_machine_nor_totals(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"share one machine each, or totals.*job 2 asks for") as caught:
        run(asking((1, 0, 1), (1, 0, 1), **more), "optimization", cluster=TWO)
    assert "\n" not in str(caught.value)


def test_on_machines_it_keeps_the_machines_rules() -> None:
    """A day's worth of random jobs: the system itself checks every allocation."""
    rng = np.random.default_rng(3)
    rows = np.stack(
        [rng.integers(1, 9, 60), rng.integers(0, 3, 60) * (rng.random(60) < 0.3), rng.integers(1, 17, 60)]
    )
    jobs = asking(*map(tuple, rows.T.astype(int)), submit_time=np.sort(rng.integers(0, 40, 60)))
    for policy in (Optimization(), Optimization("capacity", window=10)):
        result = run(jobs, policy, cluster=TWO + TWO)
        assert result.finished.all()
        assert result.hash == run(jobs, policy, cluster=TWO + TWO).hash


def test_the_longest_wait_counts_however_short_it_is() -> None:
    values = capability_values([0.25, 0.5], [1, 1], 4)
    assert values.tolist() == pytest.approx([(0.5 + 2 / 4) / 3, (1 + 2 / 4) / 3])
    assert capability([0.25, 0.5], [1, 1], [0, 1], used=2, total=4) == pytest.approx(
        (0.75 + 1 / 4 + 2 / 4) / 3
    )
