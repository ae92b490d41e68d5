"""Agents on the seat of the tester: what they see, what they may answer, and one that is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.seats import (
    ConstantAction,
    Observe,
    RandomAgent,
    Watched,
    Watcher,
    default_choice,
    play,
)
from hpcsimkit.agents.spaces.holes import JobAndHole
from hpcsimkit.agents.spaces.masks import AcceptReject
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.holes import longest
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, HoleTests, Pipeline
from hpcsimkit.run import main
from tests.kernel.helpers import Row, rows_and_size, run, workload
from tests.kernel.test_attempts import attempts

HOLE: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (2, 5, 500, 1), (3, 300, 500, 1)]
"""On four nodes: one node is free until 100 s, when the second job, the head, needs all four."""

LEVELS = st.sampled_from([[1], [2], [1, 3], [2, 5, 9]])
BACKFILLING = ["easy", "easy-sjf", "easy-k(2)", "conservative"]


def opened(policy: str) -> Pipeline:
    """Return a pipeline with its tester behind an open seat."""
    found = make(policy)
    assert isinstance(found, Pipeline)
    found.tester = External(found.tester)
    return found


# --- answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(case=rows_and_size(), levels=LEVELS)
def test_who_tests_all_is_the_closed_pipeline(
    backfilling: str, case: tuple[list[Row], int], levels: list[int]
) -> None:
    rows, size = case
    name = f"fcfs+{backfilling}+tests(seconds={levels})"
    found = play(Simulation(workload(rows, size), opened(name)), default_choice)
    assert attempts(found) == attempts(run(workload(rows, size), name))


@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(case=rows_and_size(), levels=LEVELS)
def test_who_tests_none_is_the_pipeline_without_tests(
    backfilling: str, case: tuple[list[Row], int], levels: list[int]
) -> None:
    rows, size = case
    policy = opened(f"fcfs+{backfilling}+tests(seconds={levels})")
    found = play(Simulation(workload(rows, size), policy), lambda decision: False)
    assert attempts(found) == attempts(run(workload(rows, size), f"fcfs+{backfilling}"))


def test_each_job_is_a_question_of_its_own() -> None:
    """The third job is refused at 2 s and at 3 s; the fourth is tested from 3 s on."""
    simulation = Simulation(workload(HOLE, 4), opened("fcfs+easy+tests(seconds=10)"))
    asked = []

    def answer(decision: Decision) -> bool:
        assert decision.job is not None and decision.stage == "tester"
        asked.append((decision.system.now, decision.job.index, decision.seconds))
        return decision.job.index == 3

    assert attempts(play(simulation, answer))[2:] == [[(150, 155)], [(3, 13), (150, 450)]]
    assert asked == [(2, 2, 10), (3, 2, 10), (3, 3, 10), (13, 2, 10)]


def test_agents_that_have_not_learned() -> None:
    jobs = workload(HOLE, 4)
    policy = Pipeline(backfiller=EASY(), tester=ConstantAction(AcceptReject(), 1, HoleTests(10)))
    assert attempts(run(jobs, policy)) == attempts(run(jobs, "fcfs+easy"))
    policy.tester = ConstantAction(AcceptReject(), 0, HoleTests(10))
    assert attempts(run(jobs, policy)) == attempts(run(jobs, "fcfs+easy+tests(seconds=10)"))
    policy.tester = RandomAgent(AcceptReject(), HoleTests(10))
    assert {len(attempts(run(jobs, policy, seed=seed))[3]) for seed in range(8)} == {1, 2}


class Counting(Watcher):
    """Counts decisions."""

    seen = 0

    def bind(self, system: System) -> Observe:
        def observe(decision: Decision, position: int) -> None:
            self.seen += 1

        return observe


def test_tests_of_a_watched_agent_count_once() -> None:
    """The agent and its watcher have the same tester behind them."""
    watcher, levels = Counting(), HoleTests([10, 60])
    policy = Pipeline(backfiller=EASY(), tester=Watched(ConstantAction(AcceptReject(), 0, levels), watcher))
    jobs = workload(HOLE, 4)
    assert attempts(run(jobs, policy)) == attempts(run(jobs, "fcfs+easy+tests(seconds=[10, 60])"))
    assert watcher.seen == 3


def test_an_open_seat_needs_a_base() -> None:
    with pytest.raises(UsageError, match="an open tester seat needs a base"):
        Simulation(workload(HOLE, 4), Pipeline(backfiller=EASY(), tester=External())).next_decision()


def test_the_compiled_simulator_refuses_the_open_seat_by_name() -> None:
    with pytest.raises(
        UsageError, match=r"the tester External\(base=HoleTests\(seconds=10\)\) is not compiled"
    ):
        Simulation(workload(HOLE, 4), opened("fcfs+easy+tests(seconds=10)"), simulator="compiled").run()


# --- observations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_machines", [False, True])
@pytest.mark.parametrize("backfilling", BACKFILLING)
@given(case=rows_and_size(), data=st.data())
def test_the_longest_test_that_a_hole_allows(
    backfilling: str, on_machines: bool, case: tuple[list[Row], int], data: st.DataObject
) -> None:
    """It is feasible, and one second more is not, unless it is the limit."""
    rows, size = case
    cluster = Machines.of(size, cpus=1) if on_machines else None
    simulation = Simulation(workload(rows, size), opened(f"fcfs+{backfilling}+tests(seconds=1)"), cluster)
    while (decision := simulation.next_decision()) is not None:
        job, limit = decision.job, data.draw(st.integers(1, 70))
        assert job is not None
        found = longest(decision.hole, job, limit)
        feasible = [
            seconds for seconds in range(1, limit + 1) if decision.hole.level(job, seconds) is not None
        ]
        assert found == max(feasible) == len(feasible)
        simulation.answer(data.draw(st.booleans()))


def test_an_observation_by_hand() -> None:
    """At 13 s: the third job is tested again, since it ended within the test for another job of its user."""
    rows: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (2, 5, 500, 1), (13, 300, 400, 1)]
    jobs = workload(rows, 4, user=[1, 2, 3, 3])
    simulation = Simulation(jobs, opened("fcfs+easy+tests(seconds=10)"))
    encoder = JobAndHole(time_scale=100.0)
    seen = []
    while (decision := simulation.next_decision()) is not None:
        out = np.zeros(13, dtype=np.float32)
        encoder.bind(decision.system)(decision, out)
        seen.append(out.tolist())
        simulation.answer(True)
    waiting = 1 * 0.5 + 0.25 * 4
    assert seen[1] == pytest.approx(
        [4, 0.25, 0, 10 / 400, 87 / 400, 10 / 87, 0.25, 2 / 64, waiting, 1 / 64, 0, 1, 1 / 16]
    )
    assert seen[0][10:] == [0, 0, 0]


def test_other_decisions_are_refused() -> None:
    simulation = Simulation(workload(HOLE, 4), Pipeline(order=External()))
    decision = simulation.next_decision()
    assert decision is not None and decision.seconds is None
    with pytest.raises(UsageError, match="JobAndHole encodes decisions of the tester, found"):
        JobAndHole().bind(decision.system)(decision, np.zeros(13, dtype=np.float32))
    with pytest.raises(PolicyError, match="a decision on a test is needed"):
        _ = decision.hole


# --- a training ----------------------------------------------------------------------------------------


def test_a_trained_agent_takes_its_seat_by_name(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    training = tmp_path / "training.toml"
    training.write_text(
        'stage = "tester"\npolicy = "unicef+easy+tests(seconds=60)"\n'
        "[generate]\nnodes = 16\njobs = 400\nload = 1.2\n"
        "[episodes]\njobs = 64\n"
        '[trainer]\nalgorithm = "ppo"\ntotal_timesteps = 64\nn_steps = 32\n'
        "[validation]\nwindows = 1\n"
    )
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["train", str(training), "-q", "--out", str(tmp_path / "agent")])
    policy: Any = make(f"fcfs+easy+tests(seconds=10)+agent:{tmp_path / 'agent' / 'best.hpcsim'}")
    assert isinstance(policy.tester, Agent) and policy.tester.base == HoleTests(10)
    assert len(Simulation(workload(HOLE, 4), policy).run()) == 4
