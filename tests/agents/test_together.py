"""Inspector and backfiller in one pipeline: seated together, trained one after the other, and at once."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import External, Pipeline
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.settings import PUBLISHED
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import PUBLISHED as OF_INSPECTORS
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.rewards import Improvement, MinusMeanBoundedSlowdown
from hpcsimkit.agents.spaces.sequences import Sequences
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO
from hpcsimkit.agents.training.together import Together
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode import Player
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.io.interruption import Stopped
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.dirlab import FittingCandidates, published
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import default_workload
from tests.agents.tiny_problem import without_rates

LOG = default_workload(np.random.default_rng(4), jobs=400, load=1.2)
EPISODES = Sequences(LOG, 48)
BASE = published("rlbackfilling", "sjf", backfilling=True)
ROWS = 8
TINY = replace(PUBLISHED, episodes=3, n_epochs=4, total_timesteps=30)
TINY_INSPECTOR = replace(OF_INSPECTORS, episodes=3, n_epochs=4, total_timesteps=60)


def pipeline(inspector: External, backfiller: External) -> Pipeline:
    """Base, inspector and backfiller in one; seats are open or taken."""
    backfiller.base = FittingCandidates(slots=ROWS)
    return Pipeline(SJF(), inspector, backfiller=backfiller, max_interval=600, max_rejections=3)


def schedule(inspector: Agent, backfiller: Agent) -> Result:
    policy = pipeline(inspector, backfiller)
    return Scenario.sequence(LOG, 50, 300).simulation(policy).run()


def trained_one_after_the_other() -> tuple[Agent, Agent]:
    backfilling = SchedulingEnv(
        EPISODES, pipeline(None, External()), Candidates(ROWS), Slots(ROWS), Improvement(BASE),  # type: ignore[arg-type]
        stage="backfiller", attempts=100,
    )  # fmt: skip
    backfiller = SpinningUpPPO(backfilling, TINY, seed=1).train()
    inspecting = SchedulingEnv(
        EPISODES, pipeline(External(), backfiller), InspectorFeatures(), AcceptReject(), Improvement(BASE),
        stage="inspector", attempts=100,
    )  # fmt: skip
    return SpinningUpPPO(inspecting, TINY_INSPECTOR, seed=2).train(), backfiller


def together(seed: int, rounds: int = 3) -> Together:
    players = {
        "inspector": Player(InspectorFeatures(), AcceptReject(), Improvement(BASE)),
        "backfiller": Player(Candidates(ROWS), Slots(ROWS), MinusMeanBoundedSlowdown()),
    }
    return Together(
        EPISODES, pipeline(External(), External()), players,
        {"inspector": TINY_INSPECTOR, "backfiller": TINY}, rounds=rounds, seed=seed,
    )  # fmt: skip


def trained_together(seed: int) -> tuple[dict[str, Agent], list[dict[str, float]]]:
    told: list[Report] = []
    agents = together(seed, rounds=2).train(tell=told.append)
    return agents, [{"steps": each.steps, "inspector": each.reward, **each.measures} for each in told]


def test_one_after_the_other() -> None:
    runs = []
    for _ in range(2):
        inspector, backfiller = trained_one_after_the_other()
        assert (inspector.stage, backfiller.stage) == ("inspector", "backfiller")
        runs.append(schedule(inspector, backfiller))
    assert runs[0].hash == runs[1].hash
    assert (runs[0].start_time >= runs[0].submit_time).all()


def test_together() -> None:
    (agents, told), (again, told_again) = trained_together(5), trained_together(5)
    assert told == told_again
    assert [each["steps"] for each in told] == [3, 6]
    assert all(np.isfinite(list(each.values())).all() for each in told)
    for stage in ("inspector", "backfiller"):
        assert agents[stage].network == again[stage].network
        assert agents[stage].stage == stage
    other, _ = trained_together(6)
    assert other["inspector"].network != agents["inspector"].network
    found = schedule(agents["inspector"], agents["backfiller"])
    assert found.hash == schedule(again["inspector"], again["backfiller"]).hash
    assert (found.start_time >= found.submit_time).all()


def test_what_each_seat_earns_is_what_it_is_paid_for() -> None:
    """Sums of rewards that are told are those of the metrics, less what came before the first decision."""
    _, told = trained_together(5)
    assert all(each["backfiller"] < 0 for each in told)
    assert all(each["inspector"] <= 1 for each in told)


def test_a_seat_alone_learns_as_well() -> None:
    player = Player(Candidates(ROWS), Slots(ROWS), Improvement(BASE))
    policy = Pipeline(SJF(), backfiller=External(EASY()))
    agents = Together(EPISODES, policy, {"backfiller": player}, {"backfiller": TINY}, rounds=1).train()
    assert list(agents) == ["backfiller"]
    assert agents["backfiller"].network.parameters == 897


def test_stopped_and_gone_on_bit_for_bit(tmp_path: Path) -> None:
    """SIGTERM in the second round: it is played to its end; all that is told and written later is the same."""
    told: dict[str, list[Report]] = {"straight": [], "stopped": []}
    whole = together(7).train(tmp_path / "straight", tell=told["straight"].append)

    def stop(report: Report) -> None:
        told["stopped"].append(report)
        if report.steps == 6:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped) as stopped:
        together(7).train(tmp_path / "stopped", tell=stop)
    assert stopped.value.number == signal.SIGTERM
    rest = together(7).train(tmp_path / "stopped", resume=True, tell=told["stopped"].append)
    assert without_rates(told["straight"]) == without_rates(told["stopped"])
    assert {stage: agent.network for stage, agent in whole.items()} == {
        stage: agent.network for stage, agent in rest.items()
    }
    for file in (tmp_path / "straight").iterdir():
        assert file.read_bytes() == (tmp_path / "stopped" / file.name).read_bytes(), file.name
    with pytest.raises(UsageError, match="a checkpoint of this training is needed, found another one's"):
        together(8).train(tmp_path / "stopped", resume=True)


def test_groups_of_episodes_are_for_one_agent() -> None:
    player = Player(Candidates(ROWS), Slots(ROWS), Improvement(BASE))
    policy = Pipeline(SJF(), backfiller=External(EASY()))
    settings = {"backfiller": replace(TINY, group=3)}
    with pytest.raises(UsageError, match="backfiller: agents that learn together cannot have groups"):
        Together(EPISODES, policy, {"backfiller": player}, settings, rounds=1).train()
