"""Trainers: numbers by hand, gradients by finite differences, known optima, stopping and going on."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpcsimkit import External, Pipeline, Simulation, Workload, make
from hpcsimkit.agents.a2c import A2C, PolicyGradient, policy_gradient_loss
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.encoders import QueueWindow
from hpcsimkit.agents.episodes import Generated
from hpcsimkit.agents.masks import Slots
from hpcsimkit.agents.on_policy import CHECKPOINT, CURVE, LAST, OnPolicyTrainer, Report, Settings
from hpcsimkit.agents.ppo import PPO, PPOSettings, clipped_loss
from hpcsimkit.agents.returns import discounted_returns, generalised_advantages
from hpcsimkit.agents.rewards import MinusMeanWait
from hpcsimkit.agents.torch_networks import ActorCritic, masked_log_probabilities
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.errors import UsageError

JOBS = 12


def two_classes(rng: np.random.Generator) -> Workload:
    """Short and long jobs on a single node, all there at once: shortest first is best."""
    columns = {"submit_time": np.zeros(JOBS), "run_time": rng.choice([10, 100], JOBS), "nodes": np.ones(JOBS)}
    return Workload(columns, machine_size=1)


def env(**changes: Any) -> SchedulingEnv:
    parts: dict[str, Any] = {
        "episodes": Generated(two_classes),
        "policy": Pipeline(order=External(), window=JOBS),
        "encoder": QueueWindow(JOBS, time_scale=100),
        "mask": Slots(JOBS),
        "reward": MinusMeanWait(scale=100),
    }
    return SchedulingEnv(**{**parts, **changes})


# --- returns and advantages by hand --------------------------------------------------------------------------


def column(*values: float) -> Any:
    return np.array(values, dtype=np.float32)[:, None]


def test_returns_end_where_episodes_end() -> None:
    rewards, over = column(1, 2, 3, 4), np.array([[False], [True], [False], [False]])
    returns = discounted_returns(rewards, over, np.array([10], dtype=np.float32), 0.9)
    assert returns[:, 0] == pytest.approx([1 + 0.9 * 2, 2, 3 + 0.9 * (4 + 0.9 * 10), 4 + 0.9 * 10])


def test_advantages_by_hand() -> None:
    rewards, values = column(1, 2, 3), column(0.5, 1.5, 2.5)
    over, after = np.array([[False], [True], [False]]), np.array([4], dtype=np.float32)
    surprises = [1 + 0.9 * 1.5 - 0.5, 2 - 1.5, 3 + 0.9 * 4 - 2.5]
    expected = [surprises[0] + 0.9 * 0.8 * surprises[1], surprises[1], surprises[2]]
    assert generalised_advantages(rewards, values, over, after, 0.9, 0.8)[:, 0] == pytest.approx(expected)


def test_advantages_to_the_end_are_returns_less_values() -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 20, 3)).astype(np.float32)
    over, after = rng.random((20, 3)) < 0.2, rng.normal(size=3).astype(np.float32)
    advantages = generalised_advantages(rewards, values, over, after, 0.9, 1.0)
    assert advantages + values == pytest.approx(discounted_returns(rewards, over, after, 0.9), abs=1e-5)


# --- masks and losses -----------------------------------------------------------------------------------------


def test_masked_probabilities() -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    logarithms = masked_log_probabilities(scores, torch.tensor([[True, False, True]]))
    weights = [math.exp(1), 0, math.exp(3)]
    assert logarithms.exp()[0].tolist() == pytest.approx([weight / sum(weights) for weight in weights])
    logarithms[0, 0].backward()  # type: ignore[no-untyped-call]
    share = math.exp(3) / sum(weights)
    assert scores.grad is not None
    assert scores.grad[0].tolist() == pytest.approx([share, 0, -share])


@pytest.mark.parametrize("kind", ["dense", "slots"])
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    torch.manual_seed(0)
    networks = ActorCritic((5, 3), 4, kind=kind, hidden=(6,)).double()
    rng = np.random.default_rng(0)
    observations = torch.tensor(rng.normal(size=(7, 5, 3)))
    valid = torch.tensor(rng.random((7, 4)) < 0.7)
    valid[:, 0] = True
    actions = torch.tensor([int(np.flatnonzero(row)[-1]) for row in valid.numpy()])
    before, advantages = torch.tensor(rng.normal(-1, 0.1, 7)), torch.tensor(rng.normal(size=7))

    def losses() -> list[torch.Tensor]:
        logarithms = masked_log_probabilities(networks.scores(observations), valid)
        chosen = logarithms.gather(1, actions[:, None])[:, 0]
        entropy = -(logarithms.exp() * logarithms).sum(dim=1).mean()
        value = torch.nn.functional.mse_loss(networks.values(observations), advantages)
        return [
            clipped_loss(torch.exp(chosen - before), advantages, 0.2),
            policy_gradient_loss(chosen, advantages), entropy, value,
        ]  # fmt: skip

    for which in range(4):
        for parameter in networks.parameters():
            networks.zero_grad()
            losses()[which].backward()  # type: ignore[no-untyped-call]
            if parameter.grad is None:
                continue
            gradient, flat = parameter.grad.flatten().clone(), parameter.data.flatten()
            for place in rng.choice(len(flat), min(3, len(flat)), replace=False).tolist():
                was, step = flat[place].item(), 1e-6
                found = []
                for moved in (was + step, was - step):
                    flat[place] = moved
                    found.append(losses()[which].item())
                flat[place] = was
                assert gradient[place].item() == pytest.approx((found[0] - found[1]) / (2 * step), abs=1e-5)


# --- known optima ---------------------------------------------------------------------------------------------

TRAINERS: dict[str, tuple[type[OnPolicyTrainer], Settings]] = {
    "ppo": (PPO, PPOSettings(steps=40_000, kind="slots", discount=1.0, learning_rate=1e-3, rollout=88)),
    "a2c": (A2C, Settings(steps=50_000, kind="slots", discount=1.0, learning_rate=3e-3, rollout=22)),
    "pg": (PolicyGradient, Settings(steps=50_000, kind="slots", discount=1.0, trace=1.0, learning_rate=3e-3, rollout=33)),
}  # fmt: skip


def mean_wait(scheduler: Any, seeds: range) -> float:
    logs = [two_classes(np.random.default_rng(seed)) for seed in seeds]
    return float(np.mean([Simulation(log, scheduler).run().wait_time.mean() for log in logs]))


@pytest.mark.parametrize("name", TRAINERS)
def test_shortest_first_is_learned(name: str) -> None:
    """From a network that, by the chance of its seed, prefers long jobs."""
    trainer, settings = TRAINERS[name]
    unseen, waits = range(1000, 1040), []
    optimum = mean_wait(make("sjf"), unseen)
    for steps in (0, settings.steps):
        agent = trainer(env(), replace(settings, steps=steps), seed=2).train()
        waits.append(mean_wait(Pipeline(order=agent, window=JOBS), unseen))
    assert waits[0] > 1.5 * optimum
    assert waits[1] == pytest.approx(optimum)


# --- the same seed, and going on -----------------------------------------------------------------------------

SHORT = PPOSettings(steps=16 * 16 * 6, episodes=16, rollout=16, kind="slots", epochs=2, batch=64)


def without_rates(curve: list[Report]) -> list[str]:
    return [str(report._replace(steps_per_second=0)) for report in curve]


def test_same_seed_same_curve_other_seed_another() -> None:
    curves = []
    for seed in (3, 3, 4):
        curve: list[Report] = []
        PPO(env(), SHORT, seed=seed).train(tell=curve.append)
        curves.append(without_rates(curve))
    assert curves[0] == curves[1] != curves[2]


class StopError(Exception):
    """Somebody has pulled the plug."""


@pytest.mark.parametrize("trainer", [PPO, A2C])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(
    trainer: type[OnPolicyTrainer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SHORT if trainer is PPO else Settings(steps=SHORT.steps, rollout=16, kind="slots")
    monkeypatch.setattr("hpcsimkit.agents.on_policy.SECONDS_BETWEEN_CHECKPOINTS", 0.0)

    def validate(agent: Agent) -> float:
        return -mean_wait(Pipeline(order=agent, window=JOBS), range(3))

    def made() -> OnPolicyTrainer:
        return trainer(env(), settings, seed=3, validate=validate, validate_every=2)

    whole: list[Report] = []
    straight = made().train(tmp_path / "straight", tell=whole.append)

    def stop(report: Report) -> None:
        if report.steps == settings.steps // 6 * 4:
            raise StopError

    with pytest.raises(StopError):
        made().train(tmp_path / "stopped", tell=stop)
    rest: list[Report] = []
    gone_on = made().train(tmp_path / "stopped", resume=True, tell=rest.append)
    assert len(rest) == 3
    assert without_rates(whole[3:]) == without_rates(rest)
    assert gone_on.network == straight.network
    for file in (LAST, "best.hpcsim"):
        assert Agent.load(tmp_path / "straight" / file) == Agent.load(tmp_path / "stopped" / file)
    lines = [(tmp_path / name / CURVE).read_text().splitlines() for name in ("straight", "stopped")]
    assert len(lines[0]) == len(lines[1]) == 7


def test_a_checkpoint_of_another_training(tmp_path: Path) -> None:
    PPO(env(), SHORT, seed=3).train(tmp_path)
    assert (tmp_path / CHECKPOINT).exists()
    with pytest.raises(UsageError, match="a checkpoint of this training is needed, found another one's"):
        PPO(env(), SHORT, seed=4).train(tmp_path, resume=True)


def test_the_best_agent_is_kept(tmp_path: Path) -> None:
    scores = iter([1.0, 5.0, 2.0, 3.0, 0.0, 4.0])
    agent = PPO(env(), SHORT, seed=3, validate=lambda agent: next(scores), validate_every=1).train(tmp_path)
    assert agent.about is not None
    assert agent.about["validation"] == 5.0
    assert agent.about["steps"] == 2 * 16 * 16
    assert Agent.load(tmp_path / "best.hpcsim") == agent


def test_a_loss_that_is_no_number() -> None:
    trainer = PPO(env(), PPOSettings(steps=16 * 16 * 6, rollout=16, learning_rate=1e30), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UsageError, match=r"ppo: the loss is (nan|inf) after \d+ steps"):
            trainer.train()


def test_rounds_and_truncated_episodes_count() -> None:
    reports: list[Report] = []
    PPO(env(max_steps=5), SHORT, seed=0).train(tell=reports.append)
    assert reports[-1].steps == reports[-1].of == SHORT.steps
    assert reports[-1].episodes == SHORT.steps // 5 // 16 * 16
    assert all(math.isfinite(report.reward) for report in reports)
