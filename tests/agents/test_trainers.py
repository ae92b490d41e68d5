"""Trainers: numbers by hand, gradients by finite differences, known optima, stopping and going on."""

from __future__ import annotations

import csv
import math
import signal
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch
from threadpoolctl import threadpool_limits

from hpcsimkit import make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.torch_networks import ActorCritic, masked_log_probabilities
from hpcsimkit.agents.training.a2c import (
    A2C,
    PolicyGradient,
    PolicyGradientSettings,
    policy_gradient_loss,
)
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.on_policy import Batch, OnPolicyTrainer, Settings
from hpcsimkit.agents.training.ppo import PPO, PPOSettings, policy_loss, value_loss
from hpcsimkit.agents.training.returns import discounted_returns, generalised_advantages
from hpcsimkit.agents.training.trainer import CHECKPOINT, CURVE
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


def test_the_baseline_of_a_policy_gradient_is_the_mean_of_its_move() -> None:
    """Two episodes of two moves and one: the second move is compared with itself alone."""
    trainer = PolicyGradient(env(), PolicyGradientSettings(gamma=0.5))
    played = np.array([[True, True], [True, False]])
    rewards = np.array([[1, 5], [4, 0]], dtype=np.float32)
    over = np.array([[False, True], [True, False]])
    nothing: Any = None
    expected = trainer.expected(nothing, nothing, played, rewards, over)
    assert expected.tolist() == [[(1 + 2 + 5) / 2] * 2, [4, 0]]


def of_groups(**changes: Any) -> PPO:
    """Two groups of three episodes."""
    return PPO(
        env(), PPOSettings(episodes=6, group=3, whole_episodes=True, gae_lambda=1.0, **changes), seed=2
    )


def test_the_baseline_of_a_group_is_its_mean() -> None:
    """The last of six episodes has a single move; 7 is the mean of 10 and 4, and nobody's is left for it."""
    played = np.array([[True] * 6, [True] * 5 + [False]])
    rewards = np.array([[1, 2, 3, 0, 0, 8], [2, 4, 6, 10, 4, 0]], dtype=np.float32)
    nothing: Any = None
    over = np.array([[False] * 5 + [True], [True] * 5 + [False]])
    expected = of_groups(gamma=0.5).expected(nothing, nothing, played, rewards, over)
    assert expected.tolist() == [[(2 + 4 + 6) / 3] * 3 + [(5 + 2 + 8) / 3] * 3, [4, 4, 4, 7, 7, 0]]


def test_episodes_of_a_group_have_the_same_jobs_and_are_compared_with_one_another() -> None:
    trainer = of_groups(gamma=1.0)
    trainer.begin_run()
    trainer.steps = 0
    for _ in range(3):
        first = trainer.observations.reshape(2, 3, -1)
        assert (first == first[:, :1]).all()
        assert (first[0] != first[1]).any()
        batch, _ = trainer._play()
        advantages = batch.advantages.reshape(-1, 2, 3)  # all episodes have as many moves
        assert advantages.std() > 0.1
        assert advantages.sum(dim=2).abs().max() < 1e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"whole_episodes": False}, "ppo: group needs whole_episodes"),
        ({"group": 4}, "6 episodes cannot be divided into groups of 4"),
    ],
)
def test_groups_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    settings = replace(of_groups().settings, **changes)
    with pytest.raises(UsageError, match=message):
        PPO(env(), settings).train()


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


def steps_of_chance(count: int = 7, actions: int = 4) -> Batch:
    """Steps that a policy near an untrained one could have taken, in double precision."""
    rng = np.random.default_rng(0)
    valid = rng.random((count, actions)) < 0.7
    valid[:, 0] = True
    columns = (
        rng.normal(size=(count, 5, 3)), valid, [int(np.flatnonzero(row)[-1]) for row in valid],
        rng.normal(-1, 0.3, count), *rng.normal(size=(3, count)),
    )  # fmt: skip
    return Batch(*(torch.tensor(np.asarray(column)) for column in columns))


def slope(function: Any, flat: torch.Tensor, place: int, step: float = 1e-6) -> float:
    """How fast a number changes with one of the numbers it depends on."""
    was, found = flat[place].item(), []
    for moved in (was + step, was - step):
        flat[place] = moved
        found.append(function().item())
    flat[place] = was
    return (found[0] - found[1]) / (2 * step)


@pytest.mark.parametrize("kind", ["dense", "slots"])
def test_gradients_are_those_of_finite_differences(kind: str) -> None:
    """Of all weights, for the losses of A2C, which torch differentiates, and of PPO, whose slopes are written out."""
    torch.manual_seed(0)
    networks = ActorCritic((5, 3), 4, kind=kind, hidden=(6,)).double()
    batch, rng = steps_of_chance(), np.random.default_rng(1)

    def outputs() -> tuple[torch.Tensor, torch.Tensor]:
        return networks.scores(batch.observations), networks.values(batch.observations)

    def of_a2c() -> torch.Tensor:
        logarithms = masked_log_probabilities(networks.scores(batch.observations), batch.valid)
        chosen = logarithms.gather(1, batch.actions[:, None])[:, 0]
        return policy_gradient_loss(chosen, batch.advantages)

    def of_ppo() -> torch.Tensor:
        scores, values = outputs()
        policy, entropy, _ = policy_loss(scores, batch, 0.2, 0.3)[0]
        return policy - 0.3 * entropy + 0.5 * value_loss(values, batch, 1.0)[0]

    def backward_of_ppo() -> None:
        scores, values = outputs()
        with torch.no_grad():
            slopes = policy_loss(scores, batch, 0.2, 0.3)[1], 0.5 * value_loss(values, batch, 1.0)[1]
        torch.autograd.backward((scores, values), slopes)

    for loss, backward in ((of_a2c, lambda: of_a2c().backward()), (of_ppo, backward_of_ppo)):
        networks.zero_grad()
        backward()
        for parameter in networks.parameters():
            if parameter.grad is None:
                continue
            gradient, flat = parameter.grad.flatten().clone(), parameter.data.flatten()
            for place in rng.choice(len(flat), min(3, len(flat)), replace=False).tolist():
                assert gradient[place].item() == pytest.approx(slope(loss, flat, place), abs=1e-5)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_slopes_of_losses_are_those_that_torch_finds(clip: float | None) -> None:
    """Where ratios and values are clipped, and where they are not."""
    batch = steps_of_chance(400)
    scores, values = torch.randn(400, 4).double(), (batch.values + torch.randn(400)).double()
    scores.requires_grad = values.requires_grad = True
    logarithms = masked_log_probabilities(scores, batch.valid)
    ratios = (logarithms.gather(1, batch.actions[:, None])[:, 0] - batch.log_probabilities).exp()
    surrogate = torch.min(ratios * batch.advantages, ratios.clamp(0.8, 1.2) * batch.advantages).mean()
    entropy = torch.distributions.Categorical(logits=logarithms).entropy().mean()
    far = values if clip is None else batch.values + (values - batch.values).clamp(-clip, clip)
    squares = torch.nn.functional.mse_loss(far, batch.returns)
    (-surrogate - 0.01 * entropy + squares).backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        (policy, found, _), of_scores = policy_loss(scores, batch, 0.2, 0.01)
        value, of_values = value_loss(values, batch, clip)
    assert policy.item() == pytest.approx(-surrogate.item())
    assert found.item() == pytest.approx(entropy.item())
    assert value.item() == pytest.approx(squares.item())
    assert scores.grad is not None and values.grad is not None
    assert torch.allclose(of_scores, scores.grad, atol=1e-12)
    assert torch.allclose(of_values, values.grad, atol=1e-12)
    assert 50 < int((of_values == 0).sum()) < 350 if clip else bool(of_values.all())


@pytest.mark.parametrize("kind", ["dense", "slots"])
def test_what_plays_is_what_learns(kind: str) -> None:
    """Networks in numpy, which play, agree with those in torch, which learn."""
    trainer = PPO(env(), replace(SHORT, kind=kind, learning_rate=1e-2), seed=3)
    trainer.train()
    batch, _ = trainer._play()
    with torch.no_grad():
        logarithms = masked_log_probabilities(trainer.networks.scores(batch.observations), batch.valid)
        values = trainer.networks.values(batch.observations)
    chosen = logarithms.gather(1, batch.actions[:, None])[:, 0]
    assert torch.allclose(chosen, batch.log_probabilities, atol=1e-6)
    assert torch.allclose(values, batch.values, rtol=1e-6, atol=1e-6)
    assert bool(batch.valid.gather(1, batch.actions[:, None]).all())
    assert float(logarithms.exp().max(dim=1).values.mean()) > 0.3  # it has learned something


# --- settings of published systems ------------------------------------------------------------------------------


def learned(settings: PPOSettings, seed: int = 3) -> tuple[PPO, Batch]:
    """A trainer that has learned from one round, and the round."""
    trainer = PPO(env(), settings, seed=seed)
    trainer._set_up()
    batch, _ = trainer._play()
    trainer.learn(batch)
    return trainer, batch


def weights_of(trainer: PPO) -> dict[str, Any]:
    return {name: values.clone() for name, values in trainer.networks.state_dict().items()}


def test_a_critic_that_does_not_learn() -> None:
    settings = replace(SHORT, learning_rate=0.0, value_learning_rate=1e-3)
    first = PPO(env(), settings, seed=3)
    first._set_up()
    for rates, still in (((0.0, 1e-3), "actor"), ((1e-3, 0.0), "critic")):
        trainer, _ = learned(replace(SHORT, learning_rate=rates[0], value_learning_rate=rates[1]))
        for name, values in weights_of(trainer).items():
            assert torch.equal(values, first.networks.state_dict()[name]) == name.startswith(still), name


def test_two_equal_rates_are_one() -> None:
    one, _ = learned(replace(SHORT, learning_rate=1e-3))
    two, _ = learned(replace(SHORT, learning_rate=1e-3, value_learning_rate=1e-3))
    for name, values in weights_of(one).items():
        assert torch.allclose(values, weights_of(two)[name], atol=1e-6), name


def test_scaled_rewards() -> None:
    """What is learned from is smaller; what is told of rewards is not. Advantages are normalised anyway."""
    settings = replace(SHORT, n_steps=66, gae_lambda=1.0)
    plain, scaled = (PPO(env(), replace(settings, reward_scale=scale), seed=3) for scale in (1.0, 0.01))
    for trainer in (plain, scaled):
        trainer._set_up()
    (batch, sums), (small, told) = plain._play(), scaled._play()
    assert sums == told and len(sums) >= 32
    assert torch.equal(batch.actions, small.actions)
    early = slice(0, 16 * 22)  # before episodes have ended, returns hold nothing that the critic believes
    assert torch.allclose(batch.returns[early], 100 * small.returns[early], atol=1e-4)


def test_epochs_end_when_the_policy_is_far() -> None:
    settings = replace(SHORT, learning_rate=1e-2, n_epochs=8)
    updates = []
    for target in (None, 1e9, 1e-9, 0.01):
        trainer, _ = learned(replace(settings, target_kl=target))
        updates.append(int(trainer.optimiser.state_dict()["state"][0]["step"]))
    whole = 8 * 256 // settings.batch_size
    assert updates[:3] == [whole, whole, whole // 8]
    assert whole // 8 < updates[3] < whole
    assert updates[3] % (whole // 8) == 0


def test_divergence_by_hand() -> None:
    """Of two steps whose actions are e times as likely, and as likely, as they were."""
    batch = steps_of_chance(2)._replace(valid=torch.ones(2, 4, dtype=torch.bool))
    uniform = torch.full((2,), math.log(0.25), dtype=torch.float64)
    batch = batch._replace(log_probabilities=uniform - torch.tensor([1.0, 0.0]))
    (_, entropy, approx_kl), _ = policy_loss(torch.zeros(2, 4).double(), batch, 0.2)
    assert float(approx_kl) == pytest.approx((math.e - 2) / 2)
    assert float(entropy) == pytest.approx(math.log(4))


def test_advantages_are_normalised_over_the_round_or_the_batch() -> None:
    whole, parts = (learned(replace(SHORT, normalise=how))[0] for how in ("round", "batch"))
    assert not all(
        torch.equal(a, b) for a, b in zip(weights_of(whole).values(), weights_of(parts).values(), strict=True)
    )
    one, other = (learned(replace(SHORT, normalise=how, batch_size=256))[0] for how in ("round", "batch"))
    for name, values in weights_of(one).items():  # one batch is the round
        assert torch.allclose(values, weights_of(other)[name], atol=1e-5), name


@pytest.mark.parametrize("options", [{}, {"clip_range_vf": 0.2, "ent_coef": 0.01, "max_grad_norm": 0.1}])
def test_learns_the_same_as_maskable_ppo(options: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same weights, the same steps and the same order: the same weights."""
    from sb3_contrib import MaskablePPO

    ours = PPO(
        env(), PPOSettings(
            episodes=1, n_steps=256, batch_size=48, n_epochs=3, kind="dense", normalise="batch", learning_rate=1e-3,
            clip_range_vf=options.get("clip_range_vf"), ent_coef=options.get("ent_coef", 0.0),
            max_grad_norm=options.get("max_grad_norm", 0.5),
        ), seed=3,
    )  # fmt: skip
    ours._set_up()
    layers = {"net_arch": [64, 64], "activation_fn": torch.nn.Tanh}
    theirs = MaskablePPO(
        "MlpPolicy", ours.vector, n_steps=256, batch_size=48, n_epochs=3, learning_rate=1e-3, policy_kwargs=layers,
        device="cpu", **options,
    )  # fmt: skip
    chains = [
        (ours.networks.actor, [*theirs.policy.mlp_extractor.policy_net, theirs.policy.action_net]),
        (ours.networks.critic, [*theirs.policy.mlp_extractor.value_net, theirs.policy.value_net]),
    ]
    pairs = [
        (a, b) for mine, yours in chains for a, b in zip(mine, yours, strict=True) if hasattr(a, "weight")
    ]
    assert len(pairs) == 6
    for mine, yours in pairs:
        yours.load_state_dict(mine.state_dict())
    batch, _ = ours._play()
    memory = theirs.rollout_buffer
    for name, column in {
        "observations": batch.observations, "actions": batch.actions, "values": batch.values,
        "log_probs": batch.log_probabilities, "advantages": batch.advantages, "returns": batch.returns,
        "action_masks": batch.valid,
    }.items():  # fmt: skip
        array = getattr(memory, name)
        array[...] = column.numpy().reshape(array.shape)
    memory.full = True
    theirs.set_logger(stable_baselines3.common.logger.Logger(None, []))
    orders = [np.random.default_rng(turn).permutation(256) for turn in range(3)]
    told = iter(orders)
    monkeypatch.setattr(np.random, "permutation", lambda count: next(told))
    theirs.train()
    monkeypatch.undo()
    again = iter(orders)
    ours.rng = type("Told", (), {"permutation": staticmethod(lambda count: next(again))})()  # type: ignore[assignment]
    before = weights_of(ours)
    measures = ours.learn(batch)
    for mine, yours in pairs:
        for a, b in ((mine.weight, yours.weight), (mine.bias, yours.bias)):
            assert torch.allclose(a, b, atol=1e-5)
    assert max(float((before[name] - now).abs().max()) for name, now in weights_of(ours).items()) > 1e-3
    noted = theirs.logger.name_to_value
    assert measures["policy_loss"] == pytest.approx(noted["train/policy_gradient_loss"], abs=1e-6)
    assert measures["value_loss"] == pytest.approx(noted["train/value_loss"], rel=1e-5)
    assert measures["entropy"] == pytest.approx(-noted["train/entropy_loss"], rel=1e-5)


# --- known optima ---------------------------------------------------------------------------------------------

TRAINERS: dict[str, tuple[type[OnPolicyTrainer], Settings]] = {
    "ppo": (PPO, PPOSettings(total_timesteps=40_000, kind="slots", gamma=1.0, learning_rate=1e-3, n_steps=88)),
    "a2c": (A2C, Settings(total_timesteps=50_000, kind="slots", gamma=1.0, learning_rate=3e-3, n_steps=22)),
    "pg": (PolicyGradient, Settings(total_timesteps=50_000, kind="slots", gamma=1.0, gae_lambda=1.0, learning_rate=3e-3, n_steps=33)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("ppo", 0.125),
        *(
            pytest.param(name, share, marks=pytest.mark.slow)
            for name in TRAINERS
            for share in (0.125, 1)
            if (name, share) != ("ppo", 0.125)
        ),
    ],
)
def test_shortest_first_is_learned(name: str, share: float) -> None:
    """From a network that, by the chance of its seed, prefers long jobs; in an eighth of the time, half of it."""
    trainer, settings = TRAINERS[name]
    unseen, waits = range(1000, 1040), []
    optimum = mean_wait(make("sjf"), unseen)
    for steps in (0, int(share * settings.total_timesteps)):
        agent = trainer(env(), replace(settings, total_timesteps=steps), seed=2).train()
        waits.append(mean_wait(seated(agent), unseen))
    assert waits[0] > 1.5 * optimum
    if share == 1:
        assert waits[1] == pytest.approx(optimum)
    assert waits[1] - optimum < 0.5 * (waits[0] - optimum)


# --- the same seed, and going on -----------------------------------------------------------------------------

SHORT = PPOSettings(
    total_timesteps=16 * 16 * 6, episodes=16, n_steps=16, kind="slots", n_epochs=2, batch_size=64
)


@cache
def straight() -> list[str]:
    """What PPO tells of a training from beginning to end."""
    return told_by(PPO(env(), SHORT, seed=3))


def test_same_seed_same_curve_other_seed_another() -> None:
    curves = [straight(), *(told_by(PPO(env(), SHORT, seed=seed)) for seed in (3, 4))]
    assert curves[0] == curves[1] != curves[2]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_of_numpy_do_not_matter(threads: int) -> None:
    """A training in Python, where NumPy has all cores, is that of the command line, where it has one."""
    with threadpool_limits(threads, user_api="blas"):
        assert told_by(PPO(env(), SHORT, seed=3)) == straight()


@pytest.mark.parametrize(
    ("trainer", "settings"),
    [
        (PPO, SHORT),
        (PPO, replace(SHORT, group=4, whole_episodes=True)),
        (A2C, Settings(total_timesteps=SHORT.total_timesteps, n_steps=16, kind="slots")),
    ],
)
def test_a_run_that_was_stopped_goes_on_bit_for_bit(
    trainer: type[OnPolicyTrainer], settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def validate(agent: Agent) -> float:
        return -mean_wait(seated(agent), range(3))

    def made() -> OnPolicyTrainer:
        return trainer(env(), settings, seed=3, validate=validate, validate_every=2)

    goes_on_as_if_never_stopped(made, 4, tmp_path, monkeypatch)


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpcsimkit.agents.training.trainer.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    opened, reports = Path.open, []

    def full(path: Path, mode: str = "r", **options: Any) -> Any:
        file = opened(path, mode, **options)
        if len(reports) == 3 and path.name.startswith(f".{CHECKPOINT}"):
            file.write(b"the first bytes")
            file.close()
            raise OSError(28, "No space left on device")
        return file

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(WorkloadError, match=rf"{CHECKPOINT}: cannot be written: No space left on device"):
        PPO(env(), SHORT, seed=3).train(tmp_path, tell=reports.append)
    monkeypatch.undo()
    assert not list(tmp_path.glob(".*"))
    rest = told_by(PPO(env(), SHORT, seed=3), folder=tmp_path, resume=True)
    assert rest == straight()[2:]


def test_a_checkpoint_of_another_training(tmp_path: Path) -> None:
    PPO(env(), SHORT, seed=3).train(tmp_path)
    assert (tmp_path / CHECKPOINT).exists()
    with pytest.raises(UsageError, match="a checkpoint of this training is needed, found another one's"):
        PPO(env(), SHORT, seed=4).train(tmp_path, resume=True)


def test_a_checkpoint_may_change_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a processor that passes for a GPU, so that all that is left to differ is what the settings say."""
    monkeypatch.setattr(
        "hpcsimkit.agents.training.network_trainer.device_named", lambda name: torch.device("cpu")
    )
    monkeypatch.setattr("hpcsimkit.agents.training.trainer.SECONDS_BETWEEN_CHECKPOINTS", 0.0)

    def stop(report: Report) -> None:
        if report.steps == 4 * 256:
            raise StopError

    with pytest.raises(StopError):
        PPO(env(), replace(SHORT, device="cuda"), seed=3).train(tmp_path, tell=stop)
    rest = told_by(PPO(env(), SHORT, seed=3), folder=tmp_path, resume=True)
    assert rest == straight()[3:]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("trainer", [PPO, A2C])
def test_on_a_gpu_and_back(trainer: type[OnPolicyTrainer], tmp_path: Path) -> None:
    settings = (
        SHORT if trainer is PPO else Settings(total_timesteps=SHORT.total_timesteps, n_steps=16, kind="slots")
    )
    reports: list[Report] = []
    for device, steps in (("cuda", 512), ("cpu", 1024), ("cuda", SHORT.total_timesteps)):
        part = trainer(env(), replace(settings, device=device), seed=3)

        def stop(report: Report, until: int = steps) -> None:
            reports.append(report)
            if report.steps == until < SHORT.total_timesteps:
                signal.raise_signal(signal.SIGINT)

        try:
            part.train(tmp_path, resume=True, tell=stop)
        except KeyboardInterrupt:
            assert steps < SHORT.total_timesteps
        assert next(part.networks.parameters()).device.type == device
    there = trainer(env(), settings, seed=3)
    here: list[Report] = []
    there.train(tell=here.append)
    assert [report.steps for report in reports] == [report.steps for report in here]
    for one, other in zip(reports, here, strict=True):
        assert one.measures["entropy"] == pytest.approx(other.measures["entropy"], rel=0.05)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "abacus"}, "device: cpu or cuda is needed, found 'abacus'"),
        ({"device": "meta"}, "device: cpu or cuda is needed, found 'meta'"),
        ({"device": "cuda:99"}, r"device: 'cuda:99' is not there: torch .* sees (no|\d+) GPU"),
        ({"normalise": "never"}, "ppo: normalise needs one of round, batch, found 'never'"),
    ],
)
def test_settings_that_are_none(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PPO(env(), replace(SHORT, **changes)).train()


def test_the_best_agent_is_kept(tmp_path: Path) -> None:
    scores = iter([1.0, 5.0, 2.0, 3.0, 0.0, 4.0])
    agent = PPO(env(), SHORT, seed=3, validate=lambda agent: next(scores), validate_every=1).train(tmp_path)
    assert agent.about is not None
    assert agent.about["validation"] == 5.0
    assert agent.about["steps"] == 2 * 16 * 16
    assert Agent.load(tmp_path / "best.hpcsim") == agent


def test_a_loss_that_is_no_number() -> None:
    trainer = PPO(env(), PPOSettings(total_timesteps=16 * 16 * 6, n_steps=16, learning_rate=1e30), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UsageError, match=r"ppo: the loss is (nan|inf) after \d+ steps"):
            trainer.train()


def test_rounds_and_truncated_episodes_count() -> None:
    reports: list[Report] = []
    PPO(env(max_steps=5), SHORT, seed=0).train(tell=reports.append)
    assert reports[-1].steps == reports[-1].of == SHORT.total_timesteps
    assert reports[-1].episodes == SHORT.total_timesteps // 5 // 16 * 16
    assert all(math.isfinite(report.reward) for report in reports)


# --- the curve ------------------------------------------------------------------------------------------------


def test_the_curve_as_a_table_and_in_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setattr("hpcsimkit.agents.training.trainer.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
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


def test_a_training_shows_itself_and_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    from matplotlib.axes import Axes

    settings = PPOSettings(total_timesteps=96, episodes=2, n_steps=16, hidden=(4,))
    trainer = PPO(env(), settings)
    assert repr(trainer) == "<PPO: 0 of 96 steps>"
    assert "not begun" in trainer._repr_html_()
    trainer.train(progress=True)
    assert "96/96" in capsys.readouterr().err
    assert repr(trainer) == "<PPO: 96 of 96 steps>"
    page = trainer._repr_html_()
    assert "data:image/png" in page
    assert "96 of 96" in page
    ax = trainer.plot()
    assert isinstance(ax, Axes)
    assert trainer.plot(ax) is ax
    silent = PPO(env(), settings)
    silent.train()
    assert capsys.readouterr() == ("", "")


def test_scores_of_invalid_actions_do_not_matter() -> None:
    """Beside the score of an invalid action, those of all others are too small for an exponential."""

    class Actor:
        def many(self, observations: Any, valid: Any) -> Any:
            return np.array([[1000.0, 1.0, 1.0], [1.0, 1000.0, 1.0]], dtype=np.float32)

    trainer = SimpleNamespace(rng=np.random.default_rng(1))
    valid = np.array([[False, True, True], [True, False, False]])
    actions, logarithms = OnPolicyTrainer.act(trainer, Actor(), np.zeros((2, 1)), valid)  # type: ignore[arg-type]
    assert valid[[0, 1], actions].all()
    assert logarithms.tolist() == pytest.approx([np.log(0.5), 0])
