"""Agents on the seat of the preemptor: what they see, a random one, and one that is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.seats import RandomAgent, with_agent
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.agents.spaces.running_jobs import RunningJobs
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, FCFS, Pipeline
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.run import main
from tests.kernel.helpers import workload
from tests.kernel.test_attempts import attempts

TIERS = [(0, 30, 50, 2), (1, 40, 40, 2), (5, 10, 10, 2)]
"""Rows (submission, run time, requested time, nodes) of two jobs of a lower tier and one of a higher one."""

JOBS = workload(TIERS, 4, queue=[0, 0, 1])


class One(Episodes):
    """The same three jobs in each episode."""

    def sample(self, rng: np.random.Generator) -> Scenario:
        return Scenario(JOBS)


def environment(slots: int, *, decline: bool) -> SchedulingEnv:
    policy = Pipeline(FCFS(), backfiller=EASY(), preemptor=External(PreemptLowerTiers()))
    encoder, mask = RunningJobs(slots, time_scale=10.0), Slots(slots, decline=decline)
    return SchedulingEnv(One(), policy, encoder, mask, MinusMeanWait(), stage="preemptor", skip=False)


def test_an_observation_shows_requests_and_elapsed_times() -> None:
    """At 5 s, the third job does not fit; the job that started last comes first."""
    env = environment(3, decline=True)
    seen, _ = env.reset(seed=1)
    assert seen.tolist() == [
        pytest.approx(row)
        for row in (
            [1, 4.0, 0.5, 0.4, 0.4],
            [1, 5.0, 0.5, 0.5, 0.5],
            [0, 0, 0, 0, 0],
            [0, 1.0, 0.5, 0.0, 1 / 3],
        )
    ]
    assert env.action_masks().tolist() == [True, True, False, True]
    env.step(1)
    assert env.episode is not None
    assert attempts(env.episode.simulation.result()) == [[(0, 5), (15, 40)], [(1, 41)], [(5, 15)]]


def test_the_time_of_an_attempt_counts_from_its_start() -> None:
    """The first job was stopped at 5 s and runs again from 15 s on."""
    rows = [*TIERS, (20, 5, 5, 4)]
    policy = Pipeline(FCFS(), backfiller=EASY(), preemptor=External(PreemptLowerTiers()))
    simulation = Simulation(workload(rows, 4, queue=[0, 0, 1, 1]), policy)
    decision = simulation.next_decision()
    assert decision is not None
    simulation.answer(decision.options[1])
    decision = simulation.next_decision()
    assert decision is not None and decision.system.now == 20
    out = np.zeros((3, 5), dtype=np.float32)
    RunningJobs(2, time_scale=1.0).bind(decision.system)(decision, out)
    assert out[:, 3:].tolist() == [[5, 20], [19, 19], [0, 1 / 2]]


def test_other_decisions_are_refused() -> None:
    simulation = Simulation(JOBS, Pipeline(order=External()))
    decision = simulation.next_decision()
    assert decision is not None
    with pytest.raises(UsageError, match="RunningJobs encodes decisions of the preemptor, found"):
        RunningJobs(2).bind(decision.system)(decision, np.zeros((3, 5), dtype=np.float32))


def agent_by_elapsed_time(sign: int) -> Agent:
    weights = {"weight.0": np.array([[9, 0, 0, sign, 0]]), "bias.0": np.array([0])}
    return Agent(RunningJobs(4), Slots(4), SlotScores(weights), "preemptor")


@pytest.mark.parametrize(("sign", "expected"), [(1, [[(0, 5), (15, 40)], [(1, 41)]]), (-1, None)])
def test_an_agent_stops_the_jobs_that_it_scores_highest(sign: int, expected: object) -> None:
    """The one that has run longest, or else the youngest, as the heuristic does."""
    heuristic = attempts(Simulation(JOBS, make("fcfs+easy+preempt")).run())
    policy = Pipeline(FCFS(), backfiller=EASY(), preemptor=External(PreemptLowerTiers()))
    found = attempts(Simulation(JOBS, with_agent(policy, agent_by_elapsed_time(sign))).run())
    assert found[:2] == (heuristic[:2] if expected is None else expected)


def test_a_random_agent_stops_jobs_of_lower_tiers_only() -> None:
    starts = set()
    for seed in range(12):
        mask = Slots(4, decline=True)
        policy = Pipeline(
            FCFS(), backfiller=EASY(), preemptor=RandomAgent(mask, PreemptLowerTiers(), decline=True)
        )
        result = Simulation(JOBS, policy, seed=seed).run()
        assert len(attempts(result)[2]) == 1
        starts.add(int(result.start_time[2]))
    assert starts == {5, 30}


@pytest.mark.parametrize("decline", [True, False])
def test_a_trained_agent_takes_its_seat_by_name(decline: bool, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    training = tmp_path / "training.toml"
    training.write_text(
        'stage = "preemptor"\npolicy = "fcfs+easy+preempt(by=nodes)"\nslots = 4\n'
        "[generate]\nnodes = 16\njobs = 200\nload = 1.2\n"
        f"[mask]\ndecline = {str(decline).lower()}\n"
        "[episodes]\njobs = 32\n"
        '[trainer]\nalgorithm = "ppo"\ntotal_timesteps = 64\nn_steps = 32\n'
        "[validation]\nwindows = 1\n"
    )
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["train", str(training), "-q", "--out", str(tmp_path / "agent")])
    agent = tmp_path / "agent" / "best.hpcsim"
    policy = make(f"fcfs+easy+preempt(by=nodes)+agent:{agent}")
    rows = [(0, 30, 50, 2), (1, 40, 40, 1), (5, 10, 10, 3)]
    assert len(Simulation(workload(rows, 4), policy).run()) == 3
    assert isinstance(policy, Pipeline) and isinstance(policy.preemptor, Agent)
    assert policy.preemptor.base == PreemptLowerTiers(by="nodes")
