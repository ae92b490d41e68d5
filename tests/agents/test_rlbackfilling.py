"""RLBackfilling: the seat's modes, what it is paid, its networks, and that it trains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import Simulation, Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.torch_networks import ActorCritic
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.reward import BASELINE, TimelyImprovement
from hpcsimkit.agents.rlbackfilling.seat import MODES, backfilling_seat
from hpcsimkit.agents.rlbackfilling.settings import PUBLISHED, backfilling_environment
from hpcsimkit.agents.seats import RandomChoice, default_choice, play
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.event_order import EVENT_ORDERS
from hpcsimkit.kernel.observers import Promises
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies import EASY, FCFS, SJF
from hpcsimkit.workloads import default_workload
from tests.kernel.dirlab_cases import load

LOG = default_workload(np.random.default_rng(4), jobs=400, load=1.2)


# --- the seat ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("decline", [False, True])
def test_guarded_seats_break_no_promise(seed: int, decline: bool) -> None:
    for order in (FCFS(), SJF()):
        promises = Promises()
        seat = backfilling_seat(order, decline=decline)
        play(Simulation(LOG, seat, observers=[promises]), RandomChoice(np.random.default_rng(seed)))
        assert promises.made > 10
        assert (promises.broken, promises.delay) == (0, 0)


def test_unguarded_seats_break_promises() -> None:
    promises = Promises()
    seat = backfilling_seat(mode="unguarded")
    play(Simulation(LOG, seat, observers=[promises]), RandomChoice(np.random.default_rng(0)))
    assert 0 < promises.broken <= promises.made
    assert promises.delay >= promises.broken


def test_a_guarded_seat_answered_like_easy_is_easy() -> None:
    found = play(Simulation(LOG, backfilling_seat(SJF())), default_choice)
    expected = Simulation(LOG, Pipeline(SJF(), backfiller=EASY())).run()
    assert found.start_time.tolist() == expected.start_time.tolist()


def test_who_always_declines_starts_nothing_behind_the_head() -> None:
    found = play(Simulation(LOG, backfilling_seat(decline=True)), lambda decision: None)
    assert found.start_time.tolist() == Simulation(LOG, Pipeline(FCFS())).run().start_time.tolist()


def test_published_guards_are_stricter() -> None:
    """Who ends at the very second of the reservation is offered by the textbook's rule only."""
    # 10 nodes; at 10 s four of them are free, and job 3 is promised 100 s.
    columns = {
        "submit_time": [0, 0, 1, 2, 2, 2], "run_time": [100, 10, 50, 90, 89, 88], "nodes": [6, 4, 8, 2, 2, 2]
    }  # fmt: skip
    log = Workload(columns, machine_size=10)

    def first_menu(semantics: str) -> list[int]:
        seat = backfilling_seat(semantics=semantics)  # type: ignore[arg-type]
        simulation = Scenario(log, Setup(event_order=EVENT_ORDERS[semantics]())).simulation(seat)
        decision = simulation.next_decision()
        assert decision is not None
        assert decision.system.now == 10
        return [job.id for job in decision.options]

    assert first_menu("textbook") == [4, 5, 6]
    assert first_menu("dirlab") == [5, 6]


def test_unknown_mode() -> None:
    with pytest.raises(UsageError, match="needs one of guarded, penalty, unguarded, found 'strict'"):
        backfilling_seat(mode="strict")  # type: ignore[arg-type]


# --- promises ---------------------------------------------------------------------------------------------


def test_promises_lapse_when_another_job_is_put_first() -> None:
    # 4 nodes. Job 2 is blocked at 1 s and promised 9 s. Job 3, shorter, is first from 2 s on and fits.
    columns = {"submit_time": [0, 1, 2], "run_time": [9, 20, 12], "nodes": [3, 4, 1]}
    promises = Promises()
    log = Workload(columns, machine_size=4)
    found = Simulation(log, Pipeline(SJF(), backfiller=EASY()), observers=[promises]).run()
    assert found.start_time.tolist() == [0, 14, 2]
    assert (promises.made, promises.broken) == (1, 0)  # it was promised 14 s anew
    promises = Promises()
    Simulation(log, Pipeline(FCFS(), backfiller=EASY()), observers=[promises]).run()
    assert (promises.made, promises.broken) == (2, 0)  # then job 3 is blocked, behind it


def test_jobs_that_outlive_their_requests_break_promises() -> None:
    columns = {"submit_time": [0, 1], "run_time": [30, 5], "nodes": [4, 4], "requested_time": [10, 5]}
    promises = Promises()
    Simulation(
        Workload(columns, machine_size=4), Pipeline(FCFS(), backfiller=EASY()), observers=[promises]
    ).run()
    assert (promises.made, promises.broken, promises.delay) == (1, 1, 20)


# --- the reward -------------------------------------------------------------------------------------------


def test_the_baseline_runs_by_the_rules_of_the_run(shared: Path) -> None:
    log = load(shared, "lublin256", "rlbf")
    reward = Improvement(BASELINE)
    scenario = Scenario.sequence(log, 3000, 256)
    simulation = scenario.simulation(BASELINE, observers=[reward])
    result = simulation.run()
    assert reward.take(simulation.system) == 0.0
    base = result.bounded_slowdown().mean()
    other = scenario.simulation(Pipeline(FCFS()), observers=[reward])
    worse = other.run().bounded_slowdown().mean()
    assert worse > base
    assert reward.take(other.system) == pytest.approx((base - worse) / base)


def test_penalties_by_hand() -> None:
    # 4 nodes: job 2 is blocked and promised 9 s; jobs 3 and 4 fit; who starts 3 first delays it to 52 s.
    columns = {"submit_time": [0, 1, 2, 2], "run_time": [9, 9, 50, 3], "nodes": [3, 4, 1, 1]}
    log, earned = Workload(columns, machine_size=4), {}
    for choice in (3, 4):
        rewards = [TimelyImprovement(Pipeline(FCFS()), penalty=5.0), Improvement(Pipeline(FCFS()))]
        simulation = Simulation(log, backfilling_seat(mode="penalty"), observers=rewards)
        sums, asked = [0.0, 0.0], 0
        while (decision := simulation.next_decision()) is not None:
            sums = [total + each.take(simulation.system) for total, each in zip(sums, rewards, strict=True)]
            asked += len(decision.options) > 1
            simulation.answer(
                next((job for job in decision.options if job.id == choice), decision.options[0])
            )
        sums = [total + each.take(simulation.system) for total, each in zip(sums, rewards, strict=True)]
        assert asked == 1
        earned[choice] = sums
    assert earned[3][0] == pytest.approx(earned[3][1] - 5.0)
    assert earned[4][0] == pytest.approx(earned[4][1])


# --- learning ---------------------------------------------------------------------------------------------


def test_sizes_of_the_published_networks() -> None:
    networks = ActorCritic((128, 6), 128, kind=PUBLISHED.kind, hidden=PUBLISHED.hidden, activation="relu")
    sizes = [sum(each.numel() for each in part.parameters()) for part in (networks.actor, networks.critic)]
    assert sizes == [897, 25_281]
    assert networks.network().parameters == 897


@pytest.mark.parametrize("mode", MODES)
def test_it_trains_saves_and_schedules(mode: str, tmp_path: Path) -> None:
    env = backfilling_environment(
        LOG, "sjf", mode, decline=mode == "guarded", jobs=64, slots=16, first=0  # type: ignore[arg-type]
    )  # fmt: skip
    settings = replace(PUBLISHED, episodes=4, n_epochs=5, total_timesteps=60)
    agents = [SpinningUpPPO(env, settings, seed=7).train() for _ in range(2)]
    assert agents[0].network == agents[1].network
    agents[0].save(tmp_path / "model.hpcsim")
    agent = Agent.load(tmp_path / "model.hpcsim")
    assert (agent.encoder, agent.mask, agent.stage) == (env.encoder, env.mask, "backfiller")
    policy = env.policy
    assert isinstance(policy, Pipeline)
    agent.base = policy.backfiller.base  # type: ignore[union-attr]
    scenario = Scenario.sequence(LOG, 100, 200)
    result = scenario.simulation(Pipeline(SJF(), backfiller=agent)).run()
    assert (result.start_time >= result.submit_time).all()
    assert isinstance(agent.encoder, Candidates)
    assert isinstance(agent.mask, Slots)
