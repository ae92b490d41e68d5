"""Packing: best-fit bin packing against all pairs one by one, and dominant shares by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import BestFitBinPacking, Greedy, LargestFirst
from hpcsimkit.policies.placing.packing import DominantShare
from hpcsimkit.policies.placing.placements import FirstFit
from tests.drawn import examples
from tests.kernel.helpers import rows_and_size, workload
from tests.kernel.machine_helpers import Asked, asked, clusters, one_job, placed, run_on


class PairByPair(Policy):
    """Best-fit bin packing as the paper words it: all pairs, one after the other, after every start."""

    def schedule(self, system: System) -> None:
        while (pair := self._best(system)) is not None:
            job, machine = pair
            cluster: Any = system.cluster
            system.start(job, cluster.need(job).take(system.free, np.array([machine])))

    def _best(self, system: System) -> tuple[Job, int] | None:
        cluster: Any = system.cluster
        best, least = None, float("inf")
        for job in system.queue:
            assert job.request is not None
            features = set(filter(None, job.request.constraint.split("&")))
            wants = [job.request.amount(name) for name in cluster.resources]
            for machine, (free, has) in enumerate(
                zip(system.free.tolist(), cluster.capacity.tolist(), strict=True)
            ):
                if any(f < w for f, w in zip(free, wants, strict=True)) or not features <= set(
                    cluster.features[machine]
                ):
                    continue
                shares = [(f - w) / h for f, w, h in zip(free, wants, has, strict=True) if h]
                left = sum(shares) / len(shares) if shares else 1.0
                if left < least:  # the first of equals stays
                    best, least = (job, machine), left
        return best


@st.composite
def jobs_for_one_machine_each(draw: st.DrawFn) -> tuple[Machines, list[Asked]]:
    cluster = draw(clusters())
    jobs = []
    for _ in range(draw(st.integers(1, 14))):
        home = draw(st.integers(0, len(cluster) - 1))
        amounts = [draw(st.integers(0, high)) for high in cluster.capacity[home].tolist()]
        if not any(amounts):  # that would fit nowhere
            continue
        names = sorted(cluster.features[home])
        jobs.append(
            asked(draw(st.integers(0, 4)), draw(st.integers(0, 5)), constraint="&".join(names[: draw(st.integers(0, 2))]),
                  **dict(zip(cluster.resources, amounts, strict=True)))
        )  # fmt: skip
    return cluster, jobs


@given(jobs_for_one_machine_each())
def test_bin_packing_equals_all_pairs_one_by_one(case: tuple[Machines, list[Asked]]) -> None:
    cluster, jobs = case
    assert placed(run_on(cluster, jobs, BestFitBinPacking())) == placed(run_on(cluster, jobs, PairByPair()))


def test_bin_packing_by_hand() -> None:
    """The least is left where C (8 CPUs) fills a, which has no GPUs; then D leaves (6/8 + 0/2) / 2 of b.

    That is less than A or B leave; beside D, A leaves (2/8 + 0/2) / 2 of b, and B finds no GPU until 9.
    """
    machines = Machines(["a", "b"], ["cpus", "gpus"], [[8, 0], [8, 2]])
    jobs = [
        asked(0, 9, cpus=4),
        asked(0, 9, cpus=4, gpus=1),
        asked(0, 9, cpus=8),
        asked(0, 9, cpus=2, gpus=2),
    ]
    assert placed(run_on(machines, jobs, BestFitBinPacking())) == [(0, "b"), (9, "b"), (0, "a"), (0, "b")]


def test_ties_go_to_the_first_job_and_then_to_the_first_machine() -> None:
    two = Machines.of(2, cpus=8)
    jobs = [asked(0, 9, cpus=4, memory=0), asked(0, 5, cpus=4), asked(0, 9, cpus=8), asked(0, 9, cpus=8)]
    jobs[0].kind = 3  # needs what the second needs
    # 8 of 8 first (jobs 3 and 4, node1 and node2), then at 9 the first of the two equal ones.
    assert placed(run_on(two, jobs, BestFitBinPacking())) == [
        (9, "node1"),
        (9, "node1"),
        (0, "node1"),
        (0, "node2"),
    ]


def test_jobs_that_span_machines_are_refused() -> None:
    two = Machines.of(2, cpus=8)
    for options, words in (
        ({"nodes": 2}, "2 machines with 3 cpus each"), ({"spread": True}, "3 cpus in all"),
        ({"exclusive": True}, "a whole machine with 3 cpus"),
    ):  # fmt: skip
        jobs = [asked(0, 5, cpus=1), asked(0, 5, cpus=3, **options)]
        with pytest.raises(UsageError) as error:
            run_on(two, jobs, BestFitBinPacking())
        assert str(error.value) == (
            f"best-fit bin packing needs jobs that share one machine each; job 2 asks for {words}"
        )


@examples(0.5)
@given(rows_and_size(max_jobs=10))
def test_on_counted_nodes_the_largest_that_fits_comes_first(case: tuple[Any, int]) -> None:
    rows, size = case
    jobs = workload(rows, size)
    expected = Simulation(jobs, Pipeline(order=LargestFirst(), backfiller=Greedy())).run()
    assert Simulation(jobs, BestFitBinPacking()).run().hash == expected.hash


# --- dominant shares -------------------------------------------------------------------------------------


def share(job: Asked, cluster: Machines) -> float:
    order = DominantShare()
    run = Simulation(
        Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}), Pipeline(order=order), cluster
    )
    run.next_decision()
    order.reset(run.system)
    from hpcsimkit.jobs.job import Request

    amounts = Request(
        tuple(job.amounts), tuple(job.amounts.values()), job.spread, job.exclusive, job.constraint
    )
    return order.key(one_job(amounts, job.nodes))


def test_dominant_shares() -> None:
    cluster = Machines.of(2, cpus=10, gpus=2, memory="100 B") + Machines.of(1, cpus=20)  # 40, 4, 200
    assert share(asked(0, 1, cpus=4), cluster) == 0.1
    assert share(asked(0, 1, cpus=4, gpus=1), cluster) == 0.25
    assert share(asked(0, 1, cpus=4, gpus=1, memory=60), cluster) == 0.3
    assert share(asked(0, 1, cpus=4, gpus=1, memory=60, nodes=2), cluster) == 0.6
    assert share(asked(0, 1, cpus=30, gpus=1, spread=True, nodes=2), cluster) == 0.75
    assert share(asked(0, 1), cluster) == 0
    no_gpus = Machines.of(2, cpus=10, gpus=0)
    assert share(asked(0, 1, cpus=4), no_gpus) == 0.2


def test_the_smallest_dominant_share_comes_first() -> None:
    one = Machines.of(1, cpus=8, gpus=2)
    jobs = [
        asked(0, 1, cpus=2, gpus=2),
        asked(0, 1, cpus=6, gpus=1),
        asked(0, 1, cpus=3, gpus=1),
        asked(0, 1, cpus=4),
    ]
    # Shares 1, 6/8, 4/8 (GPUs), 4/8: the third and fourth, then the second, then the first.
    result = run_on(one, jobs, Pipeline(order=DominantShare(), placement=FirstFit()))
    assert result.start_time.tolist() == [2, 1, 0, 0]
    counted = Workload({"submit_time": [0, 0], "run_time": [1, 1], "nodes": [3, 2]}, machine_size=4)
    assert Simulation(counted, Pipeline(order=DominantShare())).run().start_time.tolist() == [1, 0]
