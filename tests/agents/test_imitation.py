"""Imitation: the expert's choices are learned, the mixing share falls, and going on after a stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training.imitation import Imitation, ImitationSettings, expert_named
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from tests.agents.tiny_problem import JOBS, env, goes_on_as_if_never_stopped, told_by, two_classes

SETTINGS = ImitationSettings(total_timesteps=3000, episodes=8, kind="slots", hidden=(8,), expert="sjf+easy")
SHORT = replace(SETTINGS, total_timesteps=8 * 16 * 5, updates=2)


def agreement(agent: Agent, expert: str) -> float:
    """Share of decisions in unseen job sets answered as by the expert; jobs of one length are identical."""
    choice, same = expert_named(expert, "order"), list[bool]()
    for seed in range(1000, 1020):
        simulation = Simulation(
            two_classes(np.random.default_rng(seed)), Pipeline(order=External(), window=JOBS)
        )
        decision = simulation.next_decision()
        agent.reset(simulation.system)
        while decision is not None:
            answer = decision.options[agent.answer(decision)]
            if len(decision.options) > 1:
                same.append(answer.requested_time == choice(decision).requested_time)
            simulation.answer(answer)
            decision = simulation.next_decision()
    return float(np.mean(same))


@pytest.mark.parametrize(("expert", "opposite"), [("sjf+easy", "ljf"), ("ljf", "sjf+easy")])
def test_unseen_decisions_agree_with_the_expert(expert: str, opposite: str) -> None:
    agent = Imitation(env(), replace(SETTINGS, expert=expert), seed=2).train()
    assert agreement(agent, expert) > 0.9 > agreement(agent, opposite)


def test_heuristic_behind_the_seat_is_the_expert_by_default() -> None:
    behind = env(policy=Pipeline(order=External(base=make("sjf").order), window=JOBS))
    curves = []
    for name in ("", "sjf"):
        trainer = Imitation(behind, replace(SHORT, expert=name), seed=3)
        curves.append(told_by(trainer))
    assert curves[0] == curves[1]


def test_share_of_the_expert_falls() -> None:
    trainer = Imitation(env(), SHORT, seed=1)
    trainer.train()
    assert [report.measures["beta"] for report in trainer.curve] == pytest.approx([1, 0.6, 0.2, 0, 0])


def test_choices_without_an_action_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Imitation(env(), SHORT, seed=1)
    trainer._set_up()

    def last(decision: Decision) -> object:
        return decision.options[-1]

    trainer._expert = last
    valid = trainer.vector.action_masks()
    assert (trainer._wanted(valid) == JOBS - 1).all()
    valid[:, -1] = False
    assert (trainer._wanted(valid) == -1).all()


def test_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> Imitation:
        settings = replace(SHORT, memory=300)
        return Imitation(
            env(), settings, seed=5, validate=lambda agent: agent.about["steps"], validate_every=2
        )

    goes_on_as_if_never_stopped(made, 3, tmp_path, monkeypatch)


def test_bad_settings() -> None:
    with pytest.raises(UsageError, match="cannot answer at the inspector seat"):
        expert_named("sjf", "inspector")
    with pytest.raises(UsageError, match="nosuch"):
        Imitation(env(), replace(SHORT, expert="nosuch")).train()
    with pytest.raises(UsageError, match="a memory of at least 8 decisions is needed, found 3"):
        Imitation(env(), replace(SHORT, memory=3)).train()
