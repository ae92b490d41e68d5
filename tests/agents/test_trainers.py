"""Trainers: numbers by hand, gradients by finite differences, known optima, stopping and going on."""

from __future__ import annotations

import csv
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpcsimkit import make
from hpcsimkit.agents.a2c import A2C, PolicyGradient, policy_gradient_loss
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.learning_curve import Report
from hpcsimkit.agents.on_policy import OnPolicyTrainer, Settings
from hpcsimkit.agents.ppo import PPO, PPOSettings, clipped_loss
from hpcsimkit.agents.returns import discounted_returns, generalised_advantages
from hpcsimkit.agents.torch_networks import ActorCritic, masked_log_probabilities
from hpcsimkit.agents.trainer import CHECKPOINT, CURVE
from hpcsimkit.errors import UsageError, WorkloadError
from tests.agents.tiny_problem import (
    StopError,
    env,
    goes_on_as_if_never_stopped,
    mean_wait,
    seated,
    told_by,
)

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


@pytest.mark.parametrize("name", TRAINERS)
def test_shortest_first_is_learned(name: str) -> None:
    """From a network that, by the chance of its seed, prefers long jobs."""
    trainer, settings = TRAINERS[name]
    unseen, waits = range(1000, 1040), []
    optimum = mean_wait(make("sjf"), unseen)
    for steps in (0, settings.steps):
        agent = trainer(env(), replace(settings, steps=steps), seed=2).train()
        waits.append(mean_wait(seated(agent), unseen))
    assert waits[0] > 1.5 * optimum
    assert waits[1] == pytest.approx(optimum)


# --- the same seed, and going on -----------------------------------------------------------------------------

SHORT = PPOSettings(steps=16 * 16 * 6, episodes=16, rollout=16, kind="slots", epochs=2, batch=64)


def test_same_seed_same_curve_other_seed_another() -> None:
    curves = [told_by(PPO(env(), SHORT, seed=seed)) for seed in (3, 3, 4)]
    assert curves[0] == curves[1] != curves[2]


@pytest.mark.parametrize("trainer", [PPO, A2C])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(
    trainer: type[OnPolicyTrainer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SHORT if trainer is PPO else Settings(steps=SHORT.steps, rollout=16, kind="slots")

    def validate(agent: Agent) -> float:
        return -mean_wait(seated(agent), range(3))

    def made() -> OnPolicyTrainer:
        return trainer(env(), settings, seed=3, validate=validate, validate_every=2)

    goes_on_as_if_never_stopped(made, 4, tmp_path, monkeypatch)


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpcsimkit.agents.trainer.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    write, reports = Path.write_bytes, []

    def full(path: Path, data: bytes) -> int:
        if len(reports) == 3 and path.name.startswith(f".{CHECKPOINT}"):
            write(path, data[:100])
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(WorkloadError, match=rf"{CHECKPOINT}: cannot be written: No space left on device"):
        PPO(env(), SHORT, seed=3).train(tmp_path, tell=reports.append)
    monkeypatch.undo()
    assert not list(tmp_path.glob(".*"))
    rest = told_by(PPO(env(), SHORT, seed=3), folder=tmp_path, resume=True)
    assert rest == told_by(PPO(env(), SHORT, seed=3))[2:]


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


# --- the curve ------------------------------------------------------------------------------------------------


def test_the_curve_as_a_table_and_in_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setattr("hpcsimkit.agents.trainer.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    reports: list[Report] = []

    def stop(report: Report) -> None:
        if report.steps == 4 * 16 * 16:  # TensorBoard has it, the checkpoint has not
            raise StopError

    with pytest.raises(StopError):
        PPO(env(), SHORT, seed=3).train(tmp_path, tensorboard=True, tell=stop)
    PPO(env(), SHORT, seed=3).train(tmp_path, tensorboard=True, resume=True)
    PPO(env(), SHORT, seed=3).train(tell=reports.append)

    rows = list(csv.DictReader((tmp_path / CURVE).read_text().splitlines()))
    assert [int(row["steps"]) for row in rows] == [256 * turn for turn in range(1, 7)]
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    for name in ("policy_loss", "value_loss", "entropy"):
        expected = [report.measures[name] for report in reports]
        assert [float(row[name]) for row in rows] == expected
        scalars = events.Scalars(name)
        assert [scalar.step for scalar in scalars] == [report.steps for report in reports]
        assert [scalar.value for scalar in scalars] == pytest.approx(expected)
    assert "validation" not in events.Tags()["scalars"]  # nobody asked


def test_tensorboard_needs_a_folder() -> None:
    with pytest.raises(UsageError, match="TensorBoard needs a folder"):
        PPO(env(), SHORT).train(tensorboard=True)
