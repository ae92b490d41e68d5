"""Deep Q-learning: targets, losses and exploration by hand, memory, a known optimum, stopping and going on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpcsimkit import make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training.dql import DQL, DQLSettings, Transitions, exploration, q_targets
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.errors import UsageError
from tests.agents.tiny_problem import (
    FEW,
    env,
    goes_on_as_if_never_stopped,
    mean_wait,
    seated,
    small_env,
    told_by,
)

SHORT = DQLSettings(
    total_timesteps=8 * 16 * 6,
    episodes=8,
    round=16,
    memory=300,
    begin=64,
    batch_size=32,
    every=3,
    target_every=7,
)


def ready(settings: DQLSettings = SHORT, **changes: Any) -> DQL:
    """A trainer that is set up and has not played."""
    trainer = DQL(small_env(**changes), settings, seed=0)
    trainer._set_up()
    return trainer


# --- targets and losses by hand -------------------------------------------------------------------------------

VALUES = torch.tensor([[5.0, 9.0, 7.0], [1.0, 2.0, 3.0], [4.0, 8.0, 6.0]])
VALID = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
REWARDS, GOES_ON = torch.tensor([-1.0, -2.0, 0.5]), torch.tensor([True, False, True])


def test_targets_take_the_best_option_and_nothing_after_the_end() -> None:
    found = q_targets(REWARDS, GOES_ON, VALUES, VALID, 0.9)
    assert found.tolist() == pytest.approx([-1 + 0.9 * 7, -2, 0.5 + 0.9 * 8])


def test_double_targets_are_chosen_by_the_one_and_valued_by_the_other() -> None:
    chooser = torch.tensor([[3.0, 99.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
    found = q_targets(REWARDS, GOES_ON, VALUES, VALID, 0.9, chooser)
    assert found.tolist() == pytest.approx([-1 + 0.9 * 5, -2, 0.5 + 0.9 * 6])


@pytest.mark.parametrize("double", [False, True])
def test_the_loss_by_hand(double: bool) -> None:
    """One layer: what an action is worth is a sum one can write down."""
    trainer = ready(replace(SHORT, hidden=(), double=double, gamma=0.5))
    rng = np.random.default_rng(0)
    weights, of_target = rng.normal(size=(2, FEW, 25)).astype(np.float32)
    for networks, values in ((trainer.networks, weights), (trainer.target, of_target)):
        networks.actor[0].weight.data = torch.from_numpy(values)
    seen, following = rng.random((2, 3, 5, 5)).astype(np.float32)
    valid = np.array([[True, True, False, False], [True, False, True, True], [False] * 4])
    step = Transitions(
        seen,
        np.array([1, 0, 3]),
        np.array([-1, -4, 2], dtype=np.float32),
        np.array([True, True, False]),
        following,
        valid,
    )

    expected = []
    for row in range(3):
        target = float(step.rewards[row])
        if step.goes_on[row]:
            flat = following[row].ravel()
            options = np.flatnonzero(valid[row])
            by = weights if double else of_target
            best = max(options, key=lambda action: float(by[action] @ flat))
            target += 0.5 * float(of_target[best] @ flat)
        off = abs(float(weights[step.actions[row]] @ seen[row].ravel()) - target)
        expected.append(off**2 / 2 if off < 1 else off - 0.5)  # Huber
    loss, values = trainer.loss(Transitions(*map(torch.from_numpy, step)))
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-5)
    assert values.tolist() == pytest.approx(
        [float(weights[a] @ seen[r].ravel()) for r, a in enumerate([1, 0, 3])], rel=1e-4
    )


@pytest.mark.parametrize("kind", ["dense", "slots"])
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    """Targets stand still: they are reckoned without a gradient, and here from a target network of its own."""
    trainer = ready(replace(SHORT, kind=kind, hidden=(6,), double=False))
    for networks in (trainer.networks, trainer.target):
        networks.double()
    rng = np.random.default_rng(1)
    for parameter in trainer.networks.parameters():  # away from the target network
        parameter.data += torch.tensor(rng.normal(0, 0.3, parameter.shape))
    valid = rng.random((7, FEW)) < 0.7
    valid[:, 0] = True
    batch = Transitions(*map(torch.tensor, (
        rng.normal(size=(7, 5, 5)), rng.integers(FEW, size=7), rng.normal(size=7), rng.random(7) < 0.7,
        rng.normal(size=(7, 5, 5)), valid,
    )))  # fmt: skip
    trainer.networks.zero_grad()
    trainer.loss(batch)[0].backward()  # type: ignore[no-untyped-call]
    for parameter in trainer.networks.actor.parameters():
        assert parameter.grad is not None
        gradient, flat = parameter.grad.flatten(), parameter.data.flatten()
        for place in rng.choice(len(flat), min(4, len(flat)), replace=False).tolist():
            was, found = flat[place].item(), []
            for moved in (was + 1e-6, was - 1e-6):
                flat[place] = moved
                found.append(trainer.loss(batch)[0].item())
            flat[place] = was
            assert gradient[place].item() == pytest.approx((found[0] - found[1]) / 2e-6, abs=1e-6)


# --- exploration ----------------------------------------------------------------------------------------------


def test_the_schedule_of_exploration() -> None:
    assert [exploration(steps, 0.8, 0.2, 100) for steps in (0, 25, 100, 101)] == pytest.approx(
        [0.8, 0.65, 0.2, 0.2]
    )
    assert exploration(0, 0.8, 0.2, 0) == 0.2
    reports: list[Report] = []
    settings = replace(SHORT, explore_first=0.9, explore_last=0.1, explore_for=0.5)
    DQL(small_env(), settings, seed=0).train(tell=reports.append)
    assert [report.measures["exploration"] for report in reports] == pytest.approx(
        [0.9 - 0.8 / 3, 0.9 - 1.6 / 3, 0.1, 0.1, 0.1, 0.1]
    )


def test_only_options_are_chosen_and_drawn() -> None:
    trainer = ready(replace(SHORT, explore_first=0.5, explore_last=0.5))
    rng = np.random.default_rng(0)
    seen = np.repeat(rng.random((1, 5, 5)).astype(np.float32), 40_000, axis=0)
    valid = np.repeat(np.array([[True, False, True, True]]), 40_000, axis=0)
    scores = trainer.networks.scores(torch.from_numpy(seen[:1])).detach().numpy()[0]
    best = int(np.where(valid[0], scores, -np.inf).argmax())
    share = np.bincount(trainer._act(seen, valid), minlength=4) / len(seen)
    expected = [0.5 / 3 * option + 0.5 * (action == best) for action, option in enumerate(valid[0])]
    assert share == pytest.approx(expected, abs=0.01)
    assert share[1] == 0


# --- memory ---------------------------------------------------------------------------------------------------


def test_what_is_remembered_is_what_happened() -> None:
    trainer = ready(replace(SHORT, memory=1000), max_steps=2)
    vector, play = trainer.vector, trainer.vector.step
    happened: list[tuple[Any, ...]] = []

    def watched(actions: Any) -> Any:
        seen = vector._batch.observations.copy()
        after, rewards, over, infos = told = play(actions)
        for place in range(SHORT.episodes):
            if not infos[place].get("TimeLimit.truncated"):
                valid = vector.action_masks()[place]
                happened.append(
                    (seen[place], actions[place], rewards[place], not over[place], after[place], valid)
                )
        return told

    vector.step = watched  # type: ignore[method-assign]
    for _ in range(20):
        trainer._play()
    assert len(trainer.memory) == len(happened) < 20 * SHORT.episodes
    for name, column, expected in zip(
        Transitions._fields, trainer.memory.columns(), zip(*happened, strict=True), strict=True
    ):
        assert np.array_equal(column, np.array(expected)), name


def test_steps_that_are_cut_off_are_not_kept() -> None:
    whole, cut = ready(), ready(max_steps=2)
    for trainer in (whole, cut):
        sums = [reward for _ in range(12) for reward in trainer._play()]
        trainer.sums = sums  # type: ignore[attr-defined]
    assert len(whole.memory) == 12 * SHORT.episodes
    assert len(cut.memory) == 12 * SHORT.episodes - len(cut.sums)  # type: ignore[attr-defined]
    assert Transitions(*cut.memory.columns()).goes_on.all()
    assert not Transitions(*whole.memory.columns()).goes_on.all()


def test_a_memory_that_is_too_small() -> None:
    with pytest.raises(
        UsageError, match=r"dql: a memory of at least 1000 transitions is needed .*, found 200"
    ):
        DQL(env(), DQLSettings(memory=200)).train()


# --- learning -------------------------------------------------------------------------------------------------


def test_the_target_network_follows_every_so_many_updates() -> None:
    trainer = ready(replace(SHORT, begin=8, every=1, target_every=4))
    first, equal = trainer.networks.network(), []
    assert trainer.target.network() == first
    for _ in range(9):
        trainer._play()
        trainer._learn(Transitions(*map(torch.from_numpy, trainer.memory.sample(trainer.rng, 8))))
        equal.append(trainer.target.network() == trainer.networks.network())
    assert equal == [False, False, False, True, False, False, False, True, False]
    assert trainer.target.network() != first


def test_nothing_is_learned_before_the_memory_has_begun_and_then_every_so_many_decisions() -> None:
    reports: list[Report] = []
    trainer = DQL(small_env(), replace(SHORT, begin=8 * 20, every=3), seed=0)
    trainer.train(tell=reports.append)
    assert [math.isnan(report.measures["loss"]) for report in reports] == [True] + [False] * 5
    assert trainer._updates == len([turn for turn in range(1, 97) if turn >= 20 and turn % 3 == 0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "slots"])
def test_shortest_first_is_learned(kind: str) -> None:
    settings = DQLSettings(total_timesteps=10_000, kind=kind, gamma=0.9)
    unseen, waits = range(1000, 1040), []
    optimum = mean_wait(make("sjf"), unseen, FEW)
    for some in (0, settings.total_timesteps):
        agent = DQL(small_env(), replace(settings, total_timesteps=some), seed=2).train()
        waits.append(mean_wait(seated(agent, FEW), unseen, FEW))
    assert waits[0] > 1.2 * optimum
    assert waits[1] == pytest.approx(optimum)


@pytest.mark.slow
def test_scores_are_what_the_rest_of_an_episode_brings() -> None:
    """Two jobs, one node, one decision: minus the wait of the other job."""
    agent = DQL(small_env(), DQLSettings(total_timesteps=10_000, gamma=1.0), seed=2).train()
    for short_first, other in ((10, 100), (100, 10)):
        seen = np.zeros((5, 5), dtype=np.float32)
        seen[:2] = [[1, short_first / 100, 1, 1.1, 1], [1, other / 100, 1, 1.1, 1]]
        seen[4, :3] = [1, 2 / FEW, 0]
        waits = [-short_first / FEW / 100, -other / FEW / 100]
        assert agent.network.scores(seen)[:2].tolist() == pytest.approx(waits, abs=0.05)


def test_same_seed_same_curve_other_seed_another() -> None:
    curves = [told_by(DQL(env(), SHORT, seed=seed)) for seed in (3, 3, 4)]
    assert curves[0] == curves[1] != curves[2]


def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a memory that has begun to forget, and between two updates of the target network."""

    def validate(agent: Agent) -> float:
        return -mean_wait(seated(agent, FEW), range(3), FEW)

    def made() -> DQL:
        return DQL(small_env(), SHORT, seed=3, validate=validate, validate_every=2)

    goes_on_as_if_never_stopped(made, 4, tmp_path, monkeypatch)
