"""Two levels on one seat: hand-drawn schedules, and the same schedule as the pipeline's with EASY."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Pipeline, Simulation, Workload
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Answering, Decision, External
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.observers import Promises
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import read_swf


class Largest(Answering):
    """Chooses the largest job that is offered, on both levels."""

    def answer(self, decision: Decision) -> int:
        sizes = [job.nodes for job in decision.options]
        return sizes.index(max(sizes))


def jobs(*rows: tuple[int, int, int, int], nodes: int) -> Workload:
    """Jobs as (submit_time, run_time, requested_time, nodes)."""
    columns = dict(
        zip(("submit_time", "run_time", "requested_time", "nodes"), zip(*rows, strict=True), strict=True)
    )
    return Workload(columns, machine_size=nodes)


def played(workload: Workload, policy: TwoLevel) -> Result:
    """Whoever is asked from outside takes what the heuristic would."""
    simulation = Simulation(workload, policy)
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(decision.default)
    return simulation.result()


def test_who_is_chosen_and_does_not_fit_gets_the_reservation_not_the_oldest() -> None:
    # 10 nodes. At 100 s job 0 (6 nodes) still runs until 500; jobs 1 (5), 2 (8) and 3 (3, long) wait.
    # The largest, job 2, is chosen: reserved at 500. Job 1 (5) does not fit in 4; job 3 fits, but would not
    # end by 500 and 10 - 8 = 2 nodes are left over then: it may not start. Job 4 (4 nodes, short) may.
    workload = jobs(
        (0, 500, 500, 6), (100, 50, 60, 5), (100, 100, 100, 8), (100, 900, 900, 3), (100, 90, 90, 4), nodes=10
    )
    result = Simulation(workload, TwoLevel(Largest(), window=50)).run()
    # At 500 job 2 starts, as reserved; of jobs 1 and 3 the larger gets the next reservation, until 600.
    assert result.start_time.tolist() == [0, 600, 500, 600, 100]
    assert [Mode(mode) for mode in result.mode.tolist()] == [
        Mode.READY, Mode.RESERVED, Mode.RESERVED, Mode.READY, Mode.BACKFILLED,
    ]  # fmt: skip


def test_level_2_may_use_nodes_that_are_left_over() -> None:
    # 4 nodes: job 1 (3) is reserved at 100; job 2 (1 node) runs past that on the node that is left over.
    workload = jobs((0, 100, 100, 2), (1, 10, 10, 3), (2, 500, 500, 1), nodes=4)
    assert Simulation(workload, TwoLevel(Largest())).run().start_time.tolist() == [0, 100, 2]


def test_a_reservation_is_over_when_its_job_starts() -> None:
    """Job 2 starts as reserved at 100, fails at 105 and returns: the seat is asked again."""
    workload = jobs((0, 100, 100, 4), (1, 10, 10, 3), nodes=4)
    outages = Outages([Outage(105, 110, nodes=4)])
    simulation = Simulation(workload, TwoLevel(External()), outages=outages)
    asked = []
    while (decision := simulation.next_decision()) is not None:
        asked.append(
            (simulation.system.now, [job.id for job in decision.options], decision.job and decision.job.id)
        )
        simulation.answer_position(0)
    assert asked == [(0, [1], None), (1, [2], None), (105, [2], None)]


def test_nobody_is_asked_on_level_1_while_a_reservation_stands() -> None:
    workload = jobs((0, 100, 100, 4), (1, 10, 10, 3), (2, 10, 10, 4), (3, 10, 10, 1), nodes=4)
    simulation = Simulation(workload, TwoLevel(External(), window=50))
    asked = []
    while (decision := simulation.next_decision()) is not None:
        offered = [job.id for job in decision.options]
        asked.append((simulation.system.now, offered, decision.job and decision.job.id))
        simulation.answer_position(0)
    assert asked == [(0, [1], None), (1, [2], None), (100, [3, 4], None), (100, [4], 3)]
    assert simulation.result().start_time.tolist() == [0, 100, 110, 100]


def test_only_the_jobs_that_came_first_are_in_the_window() -> None:
    whole = [(0, 10), (1, 50), (2, 40), (3, 5), (4, 7)]
    workload = jobs(*((submit, run, run, 4) for submit, run in whole), nodes=4)
    offered = []

    class Last(Answering):
        def answer(self, decision: Decision) -> int:
            offered.append([job.id for job in decision.options])
            return len(decision.options) - 1

    result = Simulation(workload, TwoLevel(Last(), window=2)).run()
    assert offered == [[1], [2], [3, 4], [3, 5], [3]]
    assert result.start_time.tolist() == [0, 10, 72, 60, 65]


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    count = draw(st.integers(1, 25))
    row = st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(1, 60), st.integers(1, 8))
    return jobs(*draw(st.lists(row, min_size=count, max_size=count)), nodes=8)


@given(workloads(), st.integers(1, 6))
def test_the_heuristic_behind_the_seat_is_easy_that_commits(workload: Workload, window: int) -> None:
    pipeline = Pipeline(backfiller=EASY(), commit=True, window=window)
    expected = Simulation(workload, pipeline).run()
    found = played(workload, TwoLevel(External(), window))
    assert found.start_time.tolist() == expected.start_time.tolist()
    assert found.mode.tolist() == expected.mode.tolist()


@given(workloads(), st.integers(0, 9))
def test_whoever_chooses_nobody_starts_after_what_was_promised_and_nobody_is_lost(
    workload: Workload, seed: int
) -> None:
    honest = jobs(*zip(
        workload.submit_time.tolist(), workload.run_time.tolist(),
        np.maximum(workload.run_time, workload.requested_time).tolist(), workload.nodes.tolist(), strict=True,
    ), nodes=8)  # fmt: skip
    promises = Promises()
    result = Simulation(
        honest, TwoLevel(RandomAgent(Slots(5)), 5), observers=[promises], seed=seed
    ).run()  # fmt: skip
    assert promises.broken == 0
    assert (result.start_time >= honest.submit_time).all()


@pytest.mark.parametrize("order", [None, SJF()])
def test_real_log_as_the_pipeline(shared: Path, order: SJF | None) -> None:
    workload = read_swf(shared / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz").first(6000)
    workload = workload.fitting(workload.machine_size)
    pipeline = Pipeline(order=order, backfiller=EASY(), commit=True, window=50)
    expected = Simulation(workload, pipeline).run().start_time
    assert np.array_equal(played(workload, TwoLevel(External(), 50, order)).start_time, expected)


def test_on_machines_as_on_nodes() -> None:
    from hpcsimkit import Machines

    rng = np.random.default_rng(3)
    count = 60
    columns = {
        "submit_time": np.sort(rng.integers(0, 400, count)), "run_time": rng.integers(1, 90, count),
        "nodes": np.ones(count, dtype=np.int64), "cpus": rng.integers(1, 9, count),
    }  # fmt: skip
    on_machines = Simulation(
        Workload(columns, resources=("cpus",)), TwoLevel(LargestOfCpus()), Machines.of(1, cpus=8)
    ).run()
    counted = Workload(
        {**{name: columns[name] for name in ("submit_time", "run_time")}, "nodes": columns["cpus"]},
        machine_size=8,
    )
    assert (
        on_machines.start_time.tolist() == Simulation(counted, TwoLevel(Largest())).run().start_time.tolist()
    )


class LargestOfCpus(Answering):
    """Chooses who asks for the most CPUs."""

    def answer(self, decision: Decision) -> int:
        cluster = decision.system.cluster
        sizes = [cluster.asked(job) for job in decision.options]
        return sizes.index(max(sizes))


def test_clear_words_for_what_makes_no_sense() -> None:
    workload = jobs((0, 1, 1, 1), nodes=2)
    with pytest.raises(UsageError, match="the seat of two levels needs an External, found SJF"):
        Simulation(workload, TwoLevel(SJF())).run()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="window needs a whole number of at least 1, found 0"):
        Simulation(workload, TwoLevel(External(), window=0)).run()
