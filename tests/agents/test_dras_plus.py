"""DRAS+: its rows, its guard and its training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.ahead import COLUMNS, WITH_TESTS, JobsAhead
from hpcsimkit.agents.dras.plus import PLUS, TESTED_FIRST, PlusValidation, plus_environment, plus_policy
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.seats import Watched, default_choice, play
from hpcsimkit.agents.spaces.masks import GuardedSlots
from hpcsimkit.agents.training.taught_ppo import TaughtPPO
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import PolicyError, UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import Aged, GuardedWait, Live
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(1), nodes=64, jobs=300, load=1.1)
SMALL = replace(PLUS, total_timesteps=512, episodes=2, n_steps=64, n_epochs=2, batch_size=64, watched=0.3)
"""A training of a few seconds: one round of the critic alone, three of PPO."""


def agent(slots: int = 64, **weights: float) -> Agent:
    """Return a weighted sum of the columns of a given number."""
    row = np.zeros((1, COLUMNS))
    for column, weight in weights.items():
        row[0, int(column.removeprefix("c"))] = weight
    network = SlotScores({"weight.0": row, "bias.0": np.zeros(1)})
    return Agent(JobsAhead(slots), GuardedSlots(slots), network, "order")


def test_rows_by_hand() -> None:
    """At 100 s two jobs run on six of eight nodes: two nodes of the first are expected at 140 s, four at 400 s.

    User 1 has a job that took 20 of 40 s, and asks for 80 s: 100/3 s are predicted. Of user 2 nothing is known: half
    of the 300 s requested are.
    """
    columns = {
        "submit_time": [0, 20, 20, 50, 100], "run_time": [20, 120, 380, 7, 9], "user": [1, 3, 3, 1, 2],
        "requested_time": [40, 120, 380, 80, 300], "nodes": [8, 2, 4, 4, 8],
    }  # fmt: skip
    policy = Pipeline(order=External(skip=True), estimates=Live(), window=3)
    simulation = Simulation(Workload(columns, machine_size=8), policy)
    while (decision := simulation.next_decision()) is not None and decision.system.now < 100:
        simulation.answer_position(0)
    assert decision is not None and [job.id for job in decision.options] == [4, 5]
    out = np.zeros((3, COLUMNS), dtype=np.float32)
    JobsAhead(3).bind(decision.system)(decision, out)
    times = [decision.system.estimator.prediction(job).mean for job in decision.options]
    assert times == pytest.approx([100 / 3, 150])
    short, long = times
    mean = np.sqrt(short * long)
    area = np.log(mean) + 0.5 * np.log(0.5)
    free = [2 / 8, *((2 + 2 * (mean * by >= 40) + 4 * (mean * by >= 300)) / 8 for by in (1, 4, 16))]
    all_rows = [np.log(3), *free]
    expected = [
        [np.log1p(50 / short), np.log1p(50 / 80), np.log(short / mean), np.log(0.5), np.log(short * 0.5) - area,
         np.log(80 / short), 0, np.log1p(40 / short), *all_rows],
        [0, 0, np.log(long / mean), 0, np.log(long) - area, np.log(2), 0, np.log1p(300 / long), *all_rows],
        [0] * COLUMNS,
    ]  # fmt: skip
    assert out == pytest.approx(np.array(expected), abs=1e-5)


@pytest.mark.parametrize("tests", [0, 300])
def test_the_first_weights_are_the_heuristic_behind_the_seat(tests: int) -> None:
    by_rows = Simulation(LOG, plus_policy(agent(c0=1.0), tests=tests)).run()
    by_order = Simulation(LOG, plus_policy(GuardedWait(Aged(mean=1)), tests=tests)).run()
    assert by_rows.wait_time.tolist() == by_order.wait_time.tolist()
    assert (by_rows.attempts is not None) == bool(tests)


def test_who_has_waited_for_too_long_goes_first() -> None:
    """Whatever the agent wants: shortest last, and a guard of twice the mean wait."""
    late: list[bool] = []

    class Late:
        def bind(self, system: System) -> Any:
            return self.observe

        def observe(self, decision: Decision, position: int) -> None:
            guard: Any = decision.system.order
            submitted = np.array([job.submit_time for job in decision.options])
            if guard.is_late(submitted, decision.system.now).any():
                late.append(decision.options[position].submit_time == submitted.min())

    Simulation(LOG, plus_policy(Watched(agent(c2=1.0), Late()), times=2.0)).run()
    assert len(late) > 20 and all(late)


def test_the_unit_of_time_changes_nothing() -> None:
    """All times a minute instead of a second: the same observation."""
    seen = []
    for unit in (1, 60):
        columns = {"submit_time": [0, 60, 120], "run_time": [600, 900, 240], "nodes": [3, 4, 1]}
        times = {name: unit * np.array(columns[name]) for name in ("submit_time", "run_time")}
        policy = Pipeline(order=External(skip=True), window=3)
        simulation = Simulation(Workload({**columns, **times}, machine_size=4), policy)
        decision, out = simulation.next_decision(), np.zeros((3, COLUMNS), dtype=np.float32)
        assert decision is not None
        JobsAhead(3).bind(decision.system)(decision, out)
        seen.append(out)
    assert seen[0].any() and seen[0] == pytest.approx(seen[1])


def test_machines_are_not_nodes() -> None:
    log = Workload(
        {"submit_time": [0, 0], "run_time": [1, 1], "nodes": [1, 1], "cpus": [1, 1]}, resources=("cpus",)
    )
    with pytest.raises(UsageError, match="needs homogeneous nodes, found Machines"):
        Simulation(log, plus_policy(agent()), Machines.of(2, cpus=1)).run()


def test_rewards_add_up_to_the_slowdown_with_tests() -> None:
    env = plus_environment(LOG, tests=300, slots=16, jobs=60)
    rng = np.random.default_rng(3)
    episode = env.begin(rng, env.reward)
    before, total = env.reward._paid, 0.0
    while episode.decision is not None:
        valid = np.zeros(env.mask.actions, dtype=np.bool_)
        episode.write(np.zeros(env.encoder.shape, dtype=np.float32), valid)
        episode.answer(int(rng.choice(valid.nonzero()[0])))
        total += episode.reward("order")
    slowdown = episode.result().bounded_slowdown().mean()
    assert total == pytest.approx(np.log((1 + env.reward._base) / (1 + slowdown)) - before)


def trainer(*, chosen: bool = False, **changes: Any) -> TaughtPPO:
    settings = replace(SMALL, teacher_first=TESTED_FIRST) if chosen else SMALL
    env = plus_environment(LOG, tests=300, slots=16, jobs=40, chosen=chosen)
    return TaughtPPO(env, replace(settings, **changes), seed=1)


def test_the_network_begins_as_the_heuristic() -> None:
    network = trainer(watched=1.0).train().network
    seen = np.random.default_rng(1).normal(size=(16, COLUMNS)).astype(np.float32)
    assert network.scores(seen) == pytest.approx(PLUS.sharpness * seen[:, 0], abs=0.1)


# --- tests among the actions -------------------------------------------------------------------------------------


def choosing(slots: int = 64, **weights: float) -> Agent:
    """Return a weighted sum of the columns of a given number, for the order and for tests."""
    row = np.zeros((1, WITH_TESTS))
    for column, weight in weights.items():
        row[0, int(column.removeprefix("c"))] = weight
    network = SlotScores({"weight.0": row, "bias.0": np.zeros(1)})
    return Agent(JobsAhead(slots, tests=True), GuardedSlots(slots), network, "order")


def starts(policy: Policy) -> list[int]:
    return Simulation(LOG, policy).run().start_time.tolist()


@pytest.mark.parametrize(("weight", "tests"), [(1.0, 300), (-100.0, 0)])
def test_the_agent_decides_on_each_test(weight: float, tests: int) -> None:
    """Which it prefers to none: all tests, or none."""
    chosen = starts(plus_policy(choosing(c0=1.0, c13=weight), tests=300, chosen=True))
    assert chosen == starts(plus_policy(GuardedWait(Aged(mean=1)), tests=tests))


def test_the_default_is_the_heuristic_with_all_tests() -> None:
    open_seat = plus_policy(External(), tests=300, chosen=True)
    found = play(Simulation(LOG, open_seat), default_choice)
    assert found.start_time.tolist() == starts(plus_policy(GuardedWait(Aged(mean=1)), tests=300))
    assert {stage for stage, _ in found.choices} == {"order"}


def test_a_test_by_hand() -> None:
    """At 2 s one of 4 nodes is free for 98 s; job 3, of which nothing is known, is expected to take 900 s."""
    columns = {"submit_time": [0, 1, 2], "run_time": [100, 50, 5], "nodes": [3, 4, 1]}
    log = Workload({**columns, "requested_time": [100, 50, 900]}, machine_size=4)
    policy = plus_policy(External(skip=True), tests=7, slots=3, chosen=True)
    simulation, out = Simulation(log, policy), np.zeros((3, WITH_TESTS), dtype=np.float32)
    decision = simulation.next_decision()
    assert decision is not None
    encode = JobsAhead(3, tests=True).bind(decision.system)
    encode(decision, out)
    assert not out[:, COLUMNS:].any() and out[:2, :COLUMNS].any(axis=1).all()
    decision = simulation.proceed(decision.position(log.jobs[1]))
    assert decision is not None and decision.seconds == 7
    out.fill(0)
    encode(decision, out)
    expected = [0, 0, 0, np.log(1 / 4), 0, 0, 1, 0, np.log(3), 1 / 4, 1, 1, 1, 1, 0, np.log(98 / 7)]
    assert out[0] == pytest.approx(np.array(expected), abs=1e-5)
    assert not out[1:].any()
    valid = np.zeros(3, dtype=np.bool_)
    GuardedSlots(3).write(decision, valid)
    assert valid.tolist() == [True, True, False]
    with pytest.raises(PolicyError, match="a decision among jobs is needed"):
        len(decision.rows)


def test_the_network_begins_with_tests() -> None:
    """By weights of which most draws let a test start; the teacher's scores with a sharpness of 5."""
    network = trainer(chosen=True, watched=1.0).train().network
    seen = np.random.default_rng(1).normal(size=(16, WITH_TESTS)).astype(np.float32)
    assert network.scores(seen) == pytest.approx(PLUS.sharpness * (seen[:, 0] + 0.4 * seen[:, 13]), abs=0.1)
    trained = trainer(chosen=True).train()
    found = PlusValidation(LOG, tests=300, slots=16, chosen=True)(trained)
    result = Simulation(LOG, plus_policy(trained, tests=300, slots=16, chosen=True)).run()
    assert found.score <= -result.bounded_slowdown().mean() + 1e-9


def test_a_resumed_training_is_the_same_as_one_at_a_time(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def interrupt(report: object) -> None:
        if getattr(report, "of", 0) == SMALL.total_timesteps and len(trained.curve) == 2:
            trained._write(tmp_path)  # as after a longer time
            raise StoppedError

    whole, trained = trainer().train(), trainer()
    with pytest.raises(StoppedError):
        trained.train(tmp_path, tell=interrupt)
    assert trainer().train(tmp_path, resume=True).network == whole.network


def test_a_validation_is_the_slowdown_unless_a_job_waits_longer_than_under_unicef() -> None:
    found = PlusValidation(LOG, tests=300)
    score, measures = found(agent(c0=1.0))
    result = Simulation(LOG, plus_policy(agent(c0=1.0), tests=300)).run()
    longer = max(result.wait_time.max() / found._longest, 1.0)
    assert score == pytest.approx(-longer * result.bounded_slowdown().mean())
    assert measures["agreement"] > 0.99, "all but ties"
    worst, _ = found(agent(c2=1.0))
    assert worst < score


def test_an_agent_from_a_file(tmp_path: Path) -> None:
    """Its file holds the weights and JSON; the number of slots is free."""
    agent(16, c0=1.0).save(tmp_path / "dras-plus.hpcsim")
    loaded = Agent.load(tmp_path / "dras-plus.hpcsim")
    assert len(Simulation(LOG, plus_policy(loaded, slots=16)).run()) == len(LOG)
