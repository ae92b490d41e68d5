"""Inspector and backfiller in one pipeline: seated together, trained one after the other, and at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hpcsimkit import External, Pipeline
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.masks import AcceptReject, Slots
from hpcsimkit.agents.rewards import Improvement, MinusMeanBoundedSlowdown
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.settings import PUBLISHED
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import PUBLISHED as OF_INSPECTORS
from hpcsimkit.agents.sequences import Sequences
from hpcsimkit.agents.spinning_up import SpinningUpPPO
from hpcsimkit.agents.together import Together
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.episode import Player
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.dirlab import FittingCandidates, published
from hpcsimkit.result import Result
from hpcsimkit.scenario import Scenario
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(4), jobs=400, load=1.2)
EPISODES = Sequences(LOG, 48)
BASE = published("rlbackfilling", "sjf", backfilling=True)
ROWS = 8
TINY = replace(PUBLISHED, episodes=3, epochs=4, steps=30)
TINY_INSPECTOR = replace(OF_INSPECTORS, episodes=3, epochs=4, steps=60)


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


def trained_together(seed: int) -> tuple[dict[str, Agent], list[dict[str, float]]]:
    players = {
        "inspector": Player(InspectorFeatures(), AcceptReject(), Improvement(BASE)),
        "backfiller": Player(Candidates(ROWS), Slots(ROWS), MinusMeanBoundedSlowdown()),
    }
    told: list[dict[str, float]] = []
    trainer = Together(
        EPISODES, pipeline(External(), External()), players,
        {"inspector": TINY_INSPECTOR, "backfiller": TINY}, seed=seed,
    )  # fmt: skip
    agents = trainer.train(2, tell=lambda number, sums: told.append({"round": number, **sums}))
    return agents, told


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
    assert [each["round"] for each in told] == [1, 2]
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
    agents = Together(EPISODES, policy, {"backfiller": player}, {"backfiller": TINY}).train(1)
    assert list(agents) == ["backfiller"]
    assert agents["backfiller"].network.parameters == 897
