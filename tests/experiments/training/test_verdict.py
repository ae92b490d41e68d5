"""Whether an agent has learned: its own reward, as an episode pays it, beside chance and constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpcsimkit import EASY, Pipeline, Workload, make
from hpcsimkit.agents.model_agent import ModelAgent
from hpcsimkit.agents.seats import ConstantAction, Watched
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.rewards import Improvement, MinusMeanWait
from hpcsimkit.agents.training.behaviour import Behaviour
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Encoder, Episodes, Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.parts.learner_parts import seated
from hpcsimkit.experiments.training.verdict import Verdict, _earned, verdict_on
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.system import System
from hpcsimkit.workloads.models.synthetic import burst

SLOTS = 4


def window(seed: int, jobs: int = 12) -> Scenario:
    """Jobs that come at once, each as large as the machine: only their order counts."""
    rng = np.random.default_rng(seed)
    times = rng.integers(10, 1000, jobs)
    columns = {"submit_time": [0] * jobs, "run_time": times, "requested_time": times, "nodes": [4] * jobs}
    return Scenario(Workload(columns, machine_size=4))


CROWDED = Scenario(burst(40, np.random.default_rng(1), machine_size=32))


class Blind(Encoder):
    """The time, at any seat."""

    shape = (1,)

    def bind(self, system: System) -> Any:
        def encode(decision: Decision, out: Any) -> None:
            out[0] = system.now

        return encode


class Only(Episodes):
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    def sample(self, rng: np.random.Generator) -> Scenario:
        return self.scenario


# The heuristic answers during a warm-up: shortest first is action 0 of the inspector only, which accepts.
@pytest.mark.parametrize(
    ("stage", "begin"), [("order", None), ("backfiller", None), ("inspector", None), ("inspector", 5000)]
)
@pytest.mark.parametrize("reward", [MinusMeanWait(), Improvement(make("fcfs+easy"))])
def test_what_is_earned_is_the_return_of_an_episode(stage: str, begin: int | None, reward: Reward) -> None:
    scenario = replace(CROWDED, learn_from=begin)
    mask = AcceptReject() if stage == "inspector" else Slots(SLOTS)
    constant = ConstantAction(mask, 0)
    policy = seated(make("sjf+easy"), External(), stage, SLOTS)
    env = SchedulingEnv(Only(scenario), policy, Blind(), mask, reward, stage=stage)
    env.reset(seed=0)
    returns, over = 0.0, False
    while not over:
        _, paid, over, _, _ = env.step(constant._choice(np.flatnonzero(env.action_masks())))
        returns += float(paid)
    found = _earned(constant, scenario, lambda holder: seated(make("sjf+easy"), holder, stage, SLOTS), reward)
    assert found == pytest.approx(returns)
    assert returns != 0


def judged(model: Any, windows: int) -> Verdict:
    agent = ModelAgent(model, QueueWindow(SLOTS))
    behaviour = Behaviour(agent)

    def seat(holder: Any) -> Any:
        return seated(Pipeline(order=make("fcfs").order, backfiller=EASY()), holder, "order", SLOTS)

    scenarios = [window(seed) for seed in range(windows)]
    for scenario in scenarios:
        scenario.simulation(seat(Watched(agent, behaviour))).run()
    return verdict_on(agent, behaviour, scenarios, seat, MinusMeanWait)


def test_shortest_first_has_learned() -> None:
    verdict = judged(lambda seen: -seen[:-1, 1], 10)
    assert verdict.is_learned
    assert (
        list(verdict.rivals) == ["random agent", "always action 0"]
        or "always action" in list(verdict.rivals)[1]
    )
    chance, constant = verdict.rivals
    assert chance == "random agent"
    assert constant.startswith("always action ")
    assert all((verdict.agent >= rewards).all() for rewards in verdict.rivals.values())
    choices, word, *_ = verdict.lines()
    assert choices.startswith("choices: 2")
    assert word.startswith("learned: mean reward in validation -")
    assert verdict.record()["is_learned"] is True


def test_a_constant_has_not() -> None:
    """Nor has an agent that always takes the slot that is best in these windows: it earns no more than itself."""
    best = int(list(judged(lambda seen: -seen[:-1, 1], 10).rivals)[1].split()[-1])
    verdict = judged(lambda seen: np.eye(SLOTS)[best], 10)
    assert not verdict.is_learned
    assert list(verdict.lines())[1].startswith("not shown to have learned: mean reward")


def test_the_longest_first_has_not_although_it_differs() -> None:
    verdict = judged(lambda seen: seen[:-1, 1], 10)
    assert all(each.is_significant for each in verdict.comparisons.values())
    assert not verdict.is_learned


def test_four_windows_show_nothing() -> None:
    verdict = judged(lambda seen: -seen[:-1, 1], 4)
    assert not verdict.is_learned
    assert verdict.record()["rivals"]["random agent"]["p_value"] > 0.05
