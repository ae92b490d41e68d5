"""CuSH+: its rows, its reward and its training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import Pipeline
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.context import JobsInContext
from hpcsimkit.agents.cush.plus import (
    BASELINE,
    PLUS,
    ManySizes,
    PlusValidation,
    plus_environment,
    plus_policy,
)
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.training.taught_ppo import TaughtPPO
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies import SJF
from hpcsimkit.policies.placing.styles import SuitsKind

FEATURES = 22
SMALL = replace(
    PLUS,
    total_timesteps=768,
    episodes=4,
    n_steps=64,
    group=2,
    n_epochs=2,
    batch_size=128,
    teacher_timesteps=600,
    teacher_episodes=2,
    teacher_population=6,
    teacher_elite=2,
    watched=0.4,
)
"""A training of a few seconds: one round of the critic alone, two of PPO."""


def network(**weights: float) -> SlotScores:
    """Return a weighted sum of the columns of a given number."""
    row = np.zeros((1, FEATURES))
    for column, weight in weights.items():
        row[0, int(column.removeprefix("c"))] = weight
    return SlotScores({"weight.0": row, "bias.0": np.zeros(1)})


def agent(slots: int, weights: SlotScores) -> Agent:
    return Agent(JobsInContext(slots), CushProblem(slots=slots).mask, weights, "order")


def test_shortest_first_by_the_rows_is_shortest_first() -> None:
    """The relative length ranks as the length; a large negative score of the last row never holds a job."""
    shortest = network(c0=-1.0, c15=-99.0)
    for scenario in CushProblem(jobs=30).scenarios(np.random.default_rng(1), 5):
        by_rows = scenario.simulation(plus_policy(agent(100, shortest))).run()
        by_order = scenario.simulation(plus_policy(SJF())).run()
        assert by_rows.wait_time.tolist() == by_order.wait_time.tolist()


def test_the_number_of_slots_changes_nothing_if_all_jobs_are_visible() -> None:
    weights = network(c0=-1.0, c5=-0.5, c7=-1.0, c15=-2.0, c16=0.3)
    for scenario in CushProblem(jobs=20).scenarios(np.random.default_rng(2), 5):
        found = [scenario.simulation(plus_policy(agent(slots, weights))).run() for slots in (20, 100)]
        assert found[0].wait_time.tolist() == found[1].wait_time.tolist()


def test_the_unit_of_time_changes_nothing() -> None:
    """All times an hour instead of a second: the same schedule in hours."""
    weights = network(c0=-1.0, c4=0.5, c6=-0.5, c8=0.4, c11=0.2, c15=-1.0)
    problem = CushProblem(jobs=15)
    for scenario in problem.scenarios(np.random.default_rng(3), 3):
        jobs = scenario.workload
        names = ("id", "nodes", "spread", "kind", "cpus", "gpus")
        columns = {name: jobs.column(name) for name in names}
        times = {name: 3600 * jobs.column(name) for name in ("submit_time", "run_time", "requested_time")}
        longer = Workload({**columns, **times}, resources=jobs.resources, labels=jobs.labels)
        policy = plus_policy(agent(100, weights))
        short, long = (
            Scenario(each, Setup(scenario.setup.cluster)).simulation(policy).run() for each in (jobs, longer)
        )
        assert (3600 * short.wait_time).tolist() == long.wait_time.tolist()


def test_rewards_add_up_to_the_waits_relative_to_the_baseline() -> None:
    env = plus_environment(ManySizes(fewest=10, most=20, lognormal=0.5))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        episode = env.begin(rng, env.reward)
        while episode.decision is not None:
            valid = np.zeros(env.mask.actions, dtype=np.bool_)
            episode.write(np.zeros(env.encoder.shape, dtype=np.float32), valid)
            episode.answer(int(rng.choice(valid.nonzero()[0])))
        times = episode.scenario.workload.requested_time
        base = 1 + (episode.scenario.simulation(BASELINE).run().wait_time / times).mean()
        ledger = episode.simulation.system.ledger
        waits = (ledger.start_time - ledger.submit_time) / times
        assert episode.reward("order") == pytest.approx(-waits.mean() / base)


def test_a_resumed_training_is_the_same_as_one_at_a_time(tmp_path: Path) -> None:
    episodes = ManySizes(fewest=3, most=6)

    def trainer() -> TaughtPPO:
        return TaughtPPO(plus_environment(episodes), SMALL, seed=1)

    class StoppedError(Exception):
        pass

    def interrupt(report: object) -> None:
        if getattr(report, "of", 0) == SMALL.total_timesteps and len(trained.curve) == 2:
            trained._write(tmp_path)  # as after a longer time
            raise StoppedError

    whole = trainer().train()
    trained = trainer()
    with pytest.raises(StoppedError):
        trained.train(tmp_path, tell=interrupt)
    assert trainer().train(tmp_path, resume=True).network == whole.network


def test_the_network_begins_as_its_teacher_and_the_critic_learns_first() -> None:
    trained = TaughtPPO(
        plus_environment(ManySizes(fewest=5, most=10)),
        replace(SMALL, watched=1.0, whole_episodes=False, group=1),
        seed=1,
    )
    network = trained.train().network
    seen = np.random.default_rng(1).normal(size=(101, FEATURES)).astype(np.float32)
    expected = PLUS.sharpness * trained.teacher.network.scores(seen)
    assert network.scores(seen) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    losses = [report.measures["value_loss"] for report in trained.curve]
    assert losses[-1] < losses[0]


def test_a_validation_is_beside_sjf_with_easy() -> None:
    validation = PlusValidation(sets=4)
    score, measures = validation(agent(100, network(c0=-1.0, c15=-99.0)))
    assert -3 < score < -0.8
    assert 0 <= measures["agreement"] <= 1 and measures["commonest"] < 1


def test_an_agent_in_three_lines(tmp_path: Path) -> None:
    """Its file holds the weights and JSON; the number of slots is free."""
    agent(100, network(c0=-1.0)).save(tmp_path / "cush-plus.hpcsim")
    loaded = Agent.load(tmp_path / "cush-plus.hpcsim")
    scenario = CushProblem(jobs=8).scenarios(np.random.default_rng(1), 1)[0]
    assert len(scenario.simulation(plus_policy(loaded)).run()) == 8
    assert isinstance(plus_policy(loaded), Pipeline) and isinstance(plus_policy().placement, SuitsKind)
