"""RLScheduler: what its agent sees, its seat, its networks, and that it trains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hpcsimkit import Simulation, Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.torch_networks import ActorCritic
from hpcsimkit.agents.rlscheduler.encoder import WaitingJobs
from hpcsimkit.agents.rlscheduler.seat import scheduling_seat
from hpcsimkit.agents.rlscheduler.settings import PUBLISHED, scheduling_environment
from hpcsimkit.agents.seats import default_choice, play
from hpcsimkit.agents.spaces.rewards import FinalScore
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies import FCFS, SJF
from hpcsimkit.policies.dirlab import published
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(4), jobs=400, load=1.2)


def test_rows_by_hand() -> None:
    columns = {
        "submit_time": [0, 100, 4420], "run_time": [5000, 10, 20], "requested_time": [6000, 5000, 40],
        "nodes": [6, 8, 2], "user": [1, 4, -1], "group": [-1, -1, -1], "executable": [3, 1, 2],
        "requested_memory": [10, 30, 5],
    }  # fmt: skip
    log = Workload(columns, machine_size=10)
    encoder = WaitingJobs.of(log, slots=3)
    assert encoder == WaitingJobs(3, 5000, 30, 4, None, 3)
    simulation = Scenario(log, Setup(event_order=DirlabOrder())).simulation(Pipeline(scheduling_seat().order))
    while (decision := simulation.next_decision()) is not None and len(decision.options) < 2:
        simulation.answer(decision.options[0])
    assert decision is not None
    assert decision.system.now == 4420
    found = np.zeros(encoder.shape, dtype=np.float32)
    encoder.bind(simulation.system)(decision, found)
    most = 0.99999
    expected = [
        [0.1, most, 0.8, most, most, 1, 1 / 3, 1e-5],
        [0, 0.008, 0.2, 1 / 6, 1, 1, 2 / 3, most],
        [0, 1, 1, 1, 1, 1, 1, 0],
    ]
    np.testing.assert_allclose(found, expected, rtol=2e-6)


@pytest.mark.parametrize("backfilling", [False, True])
def test_answered_like_a_base_scheduler_the_seat_is_that(backfilling: bool) -> None:
    scenario = Scenario.sequence(LOG, 20, 300)
    seat = scheduling_seat(backfilling=backfilling, semantics="dirlab", slots=400)
    found = play(scenario.simulation(seat), default_choice).start_time
    expected = scenario.simulation(published("rlscheduler", backfilling=backfilling)).run().start_time
    np.testing.assert_array_equal(found, expected)

    def shortest(decision: Decision) -> Job:
        return min(decision.options, key=lambda job: (job.requested_time, job.submit_time))

    found = play(scenario.simulation(seat), shortest).start_time
    expected = scenario.simulation(published("rlscheduler", "sjf", backfilling=backfilling)).run().start_time
    np.testing.assert_array_equal(found, expected)


def test_textbook_seats_keep_to_nobody() -> None:
    def shortest(decision: Decision) -> Job:
        return min(decision.options, key=lambda job: (job.requested_time, job.submit_time))

    found = play(Simulation(LOG, scheduling_seat(slots=400)), shortest).start_time
    np.testing.assert_array_equal(found, Simulation(LOG, Pipeline(SJF())).run().start_time)
    with pytest.raises(UsageError, match="needs 'textbook' or 'dirlab', found 'other'"):
        scheduling_seat(semantics="other")  # type: ignore[arg-type]


def test_who_has_waited_longest_is_offered() -> None:
    columns = {"submit_time": [0, 1, 1, 2, 3], "run_time": [9] * 5, "nodes": [4] * 5}
    simulation = Simulation(Workload(columns, machine_size=4), scheduling_seat(slots=2))
    menus = []
    while (decision := simulation.next_decision()) is not None:
        menus.append([job.id for job in decision.options])
        simulation.answer(decision.options[-1])
    # Whoever is chosen does not fit at first; when one has started the next is asked for at once.
    assert menus == [[1], [2, 3], [2, 3], [2, 3], [2, 3], [2, 4], [2, 4], [2, 5], [2, 5], [2], [2]]


@pytest.mark.parametrize(("metric", "sign"), [("mean_bounded_slowdown", -1), ("utilisation", 1)])
def test_the_final_score(metric: str, sign: int) -> None:
    from hpcsimkit.results.metrics import measure

    reward = FinalScore(metric)
    simulation = Simulation(LOG, Pipeline(FCFS()), observers=[reward])
    result = simulation.run()
    assert reward.take(simulation.system) == pytest.approx(sign * measure(result)[metric])
    assert reward.take(simulation.system) == 0.0
    with pytest.raises(UsageError, match="a metric with a direction is needed, found 'jobs'"):
        Simulation(LOG, Pipeline(FCFS()), observers=[FinalScore("jobs")]).run()


def test_networks() -> None:
    networks = ActorCritic(
        (128, 8), 128, kind="slots", hidden=PUBLISHED.hidden, activation="relu",
        critic_hidden=PUBLISHED.critic_hidden,
    )  # fmt: skip
    sizes = [sum(each.numel() for each in part.parameters()) for part in (networks.actor, networks.critic)]
    rows, whole = 961, 128 * 64 + 64 + 64 * 32 + 32 + 32 * 8 + 8 + 8 + 1
    assert sizes == [rows, rows + whole] == [961, 11_570]
    critic = networks.value_network()
    assert critic.parameters == rows + whole
    observations = np.random.default_rng(0).random((5, 128, 8), dtype=np.float32)
    with torch.no_grad():
        expected = networks.values(torch.from_numpy(observations)).numpy()
    np.testing.assert_allclose(critic.many(observations)[:, 0], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(critic.scores(observations[0]), expected[:1], rtol=1e-4, atol=1e-6)


def test_it_trains_and_schedules(tmp_path: Path) -> None:
    env = scheduling_environment(LOG, jobs=32, slots=16, first=0)
    settings = replace(PUBLISHED, episodes=4, n_epochs=3, total_timesteps=120)
    agents = [SpinningUpPPO(env, settings, seed=3).train() for _ in range(2)]
    assert agents[0].network == agents[1].network
    agents[0].save(tmp_path / "model.hpcsim")
    agent = Agent.load(tmp_path / "model.hpcsim")
    assert agent.encoder == env.encoder
    result = Simulation(LOG, Pipeline(order=agent, window=16)).run()
    assert (result.start_time >= result.submit_time).all()
