"""Stable-Baselines3 behind the kit's trainers: the same training, known optima, files without pickles."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch.distributions import Distribution

from hpcsimkit import make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.masked_ppo.settings import PUBLISHED, SETTINGS
from hpcsimkit.agents.networks.torch_networks import ACTIVATIONS
from hpcsimkit.agents.training.global_random_state import GlobalRandomState
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.maskable_policy import DensePolicy
from hpcsimkit.agents.training.sb3 import (
    ALGORITHMS,
    SB3A2C,
    SB3DQN,
    SB3PPO,
    SB3Settings,
    SB3Trainer,
    agent_of,
)
from hpcsimkit.agents.training.trainer import CHECKPOINT
from hpcsimkit.envs.vector_environment import SchedulingVecEnv
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

EIGHT = {"episodes": 8, "hidden": (16,)}
SHORT = {
    "maskable-ppo": SB3Settings(total_timesteps=8 * 16 * 5, **EIGHT, options={"n_steps": 16, "batch_size": 32, "n_epochs": 2}),
    "sb3-ppo": SB3Settings(total_timesteps=8 * 16 * 5, **EIGHT, options={"n_steps": 16, "batch_size": 32, "n_epochs": 2}),
    "sb3-a2c": SB3Settings(total_timesteps=8 * 16 * 5, **EIGHT, options={"n_steps": 16}),
    "sb3-dqn": SB3Settings(
        total_timesteps=1024 * 5, **EIGHT,
        options={
            "buffer_size": 2000, "batch_size": 16, "train_freq": 8, "target_update_interval": 300,
            "learning_starts": 1500, "exploration_fraction": 1.0, "exploration_final_eps": 0.5,
        },
    ),
}  # fmt: skip

USUAL = [pytest.param(name, marks=[pytest.mark.slow] * (name == "sb3-dqn")) for name in ALGORITHMS]
"""All algorithms; the one that learns longest is slow."""


def trainer(algorithm: str, settings: SB3Settings | None = None, seed: int = 3, **how: Any) -> SB3Trainer:
    return SB3Trainer(small_env(), settings or SHORT[algorithm], algorithm=algorithm, seed=seed, **how)


# --- the same as by itself ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=[pytest.mark.slow] * (name == "sb3-dqn")) for name in ALGORITHMS]
)
def test_trains_as_the_method_learn_does(algorithm: str) -> None:
    """Weights are equal bit for bit to those of the library's own loop with the same seeds."""
    ours = trainer(algorithm)
    ours.train()

    streams = np.random.SeedSequence(3).spawn(3)
    chance, _, episodes = (int(stream.generate_state(1)[0]) for stream in streams)
    pattern = small_env()
    vector = SchedulingVecEnv(pattern, 8, seed=episodes)
    vector.action_space = copy.deepcopy(pattern.action_space)
    vector.action_space.seed(chance)
    with GlobalRandomState(chance):
        package, name = ALGORITHMS[algorithm]
        kind = getattr({"sb3_contrib": sb3_contrib, "stable_baselines3": stable_baselines3}[package], name)
        layers = {"net_arch": [16], "activation_fn": torch.nn.Tanh}
        theirs = kind("MlpPolicy", vector, policy_kwargs=layers, device="cpu", **SHORT[algorithm].options)
        theirs.learn(SHORT[algorithm].total_timesteps)
    assert ours.steps == theirs.num_timesteps == SHORT[algorithm].total_timesteps
    assert ours.model._n_updates == theirs._n_updates > 0
    assert ours.model._current_progress_remaining == theirs._current_progress_remaining == 0
    expected = theirs.policy.state_dict()
    for weights, values in ours.model.policy.state_dict().items():
        assert torch.equal(values, expected[weights]), weights


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_policy_with_fewer_calls_is_that_of_sb3_contrib(activation: str) -> None:
    """Samples, values, probabilities, entropies and gradients are equal bit for bit."""
    hidden = replace(SHORT["maskable-ppo"], hidden=(16, 8), activation=activation)
    built = trainer("maskable-ppo", hidden)
    built._set_up()
    ours = built.model.policy
    theirs = MaskableActorCriticPolicy(
        built.env.observation_space, built.env.action_space, lambda _: 3e-4,
        net_arch=[16, 8], activation_fn=ACTIVATIONS[activation],
    )  # fmt: skip
    assert type(ours) is DensePolicy
    rng = np.random.default_rng(0)
    for parameter in theirs.parameters():
        parameter.data += torch.from_numpy(rng.normal(size=parameter.shape).astype(np.float32))
    ours.load_state_dict(theirs.state_dict())
    seen = torch.from_numpy(rng.normal(size=(64, 5, 5)).astype(np.float32))
    valid = rng.random((64, FEW)) < 0.6
    valid[np.arange(64), rng.integers(FEW, size=64)] = True
    answers, evaluations = [], []
    for policy in (ours, theirs):
        torch.manual_seed(1)
        answers.append(policy(seen, action_masks=valid))
        evaluations.append(
            policy.evaluate_actions(seen, answers[-1][0], torch.from_numpy(valid.astype(np.float32)))
        )
        sum(part.sum() for part in evaluations[-1]).backward()
    for mine, expected in zip(answers[0] + evaluations[0], answers[1] + evaluations[1], strict=True):
        assert mine.shape == expected.shape and torch.equal(mine, expected)
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine.grad, expected.grad)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_agent_chooses_what_the_model_predicts(algorithm: str) -> None:
    """On random observations; of the models that know no masks, with the values of what is no option struck out."""
    built = trainer(algorithm, replace(SHORT[algorithm], hidden=(16, 8)))
    built._set_up()
    model = built.model
    with torch.no_grad():
        for parameter in model.policy.parameters():  # far from the small first weights
            parameter += torch.randn(
                parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())
            )
    agent = agent_of(model, built.env)
    rng = np.random.default_rng(0)
    chosen = []
    for _ in range(200):
        seen = rng.normal(size=(5, 5)).astype(np.float32)
        valid = rng.random(FEW) < 0.6
        valid[rng.integers(FEW)] = True
        agent._observation, agent._valid, agent._random = seen, valid, None
        if algorithm == "maskable-ppo":
            expected = int(model.predict(seen, deterministic=True, action_masks=valid)[0])
        else:
            free = int(model.predict(seen, deterministic=True)[0])
            agent._valid = np.ones(FEW, dtype=np.bool_)
            assert agent._choice() == free
            agent._valid = valid
            flat = torch.from_numpy(seen[None])
            with torch.no_grad():
                if algorithm == "sb3-dqn":
                    scores = model.q_net(flat)
                else:
                    scores = model.policy.get_distribution(flat).distribution.logits
            expected = int(np.where(valid, scores.numpy()[0], -np.inf).argmax())
        assert agent._choice() == expected
        chosen.append(expected)
    assert set(chosen) == set(range(FEW))


def test_agents_do_not_change_when_training_goes_on() -> None:
    agents: list[Agent] = []
    scores: list[Any] = []
    seen = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)

    def keep(agent: Agent) -> float:
        agents.append(agent)
        scores.append(agent.network.scores(seen).copy())
        return 0.0

    trainer("maskable-ppo", validate=keep, validate_every=1).train()
    assert len(agents) == 5
    assert len({agent.network.digest for agent in agents}) == 5
    for agent, then in zip(agents, scores, strict=True):
        assert np.array_equal(agent.network.scores(seen), then)
        assert np.array_equal(agent.network.tensors["bias.0"], agent.network._layers[0][1])


# --- learning -------------------------------------------------------------------------------------------------

LEARNING = {
    "maskable-ppo": SB3Settings(total_timesteps=16_384, options={"n_steps": 64, "gamma": 1.0, "learning_rate": 2e-3}),
    "sb3-ppo": SB3Settings(total_timesteps=24_576, options={"n_steps": 64, "gamma": 1.0, "learning_rate": 2e-3}),
    "sb3-a2c": SB3Settings(total_timesteps=40_000, options={"n_steps": 8, "gamma": 1.0, "learning_rate": 2e-3}),
    "sb3-dqn": SB3Settings(
        total_timesteps=20_000,
        options={
            "gamma": 0.9, "learning_rate": 1e-3, "target_update_interval": 500, "exploration_fraction": 0.5,
            "train_freq": 1, "gradient_steps": 2, "batch_size": 64,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("share", [0.125, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=[pytest.mark.slow] * (name != "maskable-ppo")) for name in LEARNING],
)
def test_shortest_first_is_learned(algorithm: str, share: float) -> None:
    """In an eighth of the time, a part of it."""
    unseen, waits = range(1000, 1040), []
    optimum = mean_wait(make("sjf"), unseen, FEW)
    settings = LEARNING[algorithm]
    for steps in (0, int(share * settings.total_timesteps)):
        agent = trainer(algorithm, replace(settings, total_timesteps=steps), seed=0).train()
        waits.append(mean_wait(seated(agent, FEW), unseen, FEW))
    assert waits[0] > 1.2 * optimum
    if share == 1:
        assert waits[1] == pytest.approx(optimum)
    assert waits[1] < waits[0]


# --- the same seed, and going on ------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", USUAL)
def test_same_seed_same_curve_other_seed_another(algorithm: str) -> None:
    curves = []
    for seed in (3, 3, 4):
        random.seed(len(curves))  # the global generators are nobody's business
        np.random.seed(len(curves))  # noqa: NPY002
        torch.manual_seed(len(curves))
        curves.append(told_by(trainer(algorithm, seed=seed)))
    assert curves[0] == curves[1] != curves[2]


@pytest.mark.parametrize("algorithm", USUAL)
def test_a_run_that_was_stopped_goes_on_bit_for_bit(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DQN with a memory that has begun to forget; with a validation that draws from the global generators."""

    def validate(agent: Agent) -> float:
        return -mean_wait(seated(agent, FEW), range(3), FEW) + 0 * random.random() * float(torch.rand(1))

    def made() -> SB3Trainer:
        return trainer(algorithm, seed=5, validate=validate, validate_every=2)

    goes_on_as_if_never_stopped(made, 4, tmp_path, monkeypatch)


@pytest.mark.slow
def test_without_its_memory_dqn_learns_on_when_it_has_seen_enough_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SHORT["sb3-dqn"], keep_memory=False)
    whole, sizes = told_by(trainer("sb3-dqn", settings)), []
    for keeps in (True, False):
        half = replace(settings, total_timesteps=1024 * 3, keep_memory=keeps)
        trainer("sb3-dqn", half).train(tmp_path)
        sizes.append((tmp_path / CHECKPOINT).stat().st_size)
        (tmp_path / CHECKPOINT).unlink()
    assert sizes[1] < sizes[0] / 3

    monkeypatch.setattr(SB3Trainer, "identity", lambda self: {})  # so that the rest of the steps may follow
    trainer("sb3-dqn", half).train(tmp_path)
    reports: list[Report] = []
    gone_on = trainer("sb3-dqn", settings)
    updates: list[int] = []
    gone_on.train(
        tmp_path,
        resume=True,
        tell=lambda report: (reports.append(report), updates.append(gone_on.model._n_updates)),
    )  # type: ignore[func-returns-value]
    assert [report.steps for report in reports] == [1024 * 4, 1024 * 5]
    assert "loss" not in reports[0].measures  # 1024 of 1500 that it starts with
    assert "loss" in reports[1].measures
    assert whole[3:] != [str(report._replace(steps_per_second=0)) for report in reports]


def test_nothing_is_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("pickled")

    for library, name in ((pickle, "dumps"), (pickle, "loads"), (torch, "save"), (torch, "load")):
        monkeypatch.setattr(library, name, refused)
    for algorithm in ("maskable-ppo", "sb3-a2c"):  # on policy; the one of a replay buffer is slow
        trainer(algorithm).train(tmp_path / algorithm)
        trainer(algorithm).train(tmp_path / algorithm, resume=True)


# --- chance ---------------------------------------------------------------------------------------------------


def test_training_leaves_the_global_generators_alone() -> None:
    def drawn() -> list[float]:
        return [random.random(), float(np.random.random()), float(torch.rand(1))]  # noqa: NPY002

    def seeded() -> None:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        torch.manual_seed(1)

    seeded()
    expected = drawn()
    seeded()
    trainer("sb3-dqn", replace(SHORT["sb3-dqn"], total_timesteps=2048)).train()
    assert drawn() == expected
    assert Distribution._validate_args is True


def test_chance_from_its_state() -> None:
    def draw(chance: GlobalRandomState) -> list[float]:
        with chance:
            return [random.random(), float(np.random.normal()), float(torch.randn(3).sum())]  # noqa: NPY002

    first = GlobalRandomState(5)
    draw(first)
    second = GlobalRandomState(6)
    second.restore(first.state())
    assert draw(first) == draw(second) != draw(GlobalRandomState(5))


# --- settings -------------------------------------------------------------------------------------------------


def test_the_published_settings_reach_the_model() -> None:
    assert SETTINGS["masked-ppo"] is PUBLISHED
    built = SB3Trainer(env(), PUBLISHED, seed=1)
    built._set_up()
    model = built.model
    assert type(model) is sb3_contrib.MaskablePPO
    assert (model.n_envs, model.n_steps, model.batch_size, model.n_epochs) == (1, 2048, 64, 10)
    assert (model.gamma, model.gae_lambda, model.ent_coef, model.vf_coef, model.max_grad_norm) == (
        0.99,
        0.95,
        0,
        0.5,
        0.5,
    )
    assert (model.lr_schedule(1), model.clip_range(1), model.clip_range_vf(1)) == (3e-4, 0.2, 1.0)
    assert model.clip_range_vf(0) == 1.0
    assert model.target_kl is None and model.normalize_advantage
    assert model.policy.optimizer.defaults["eps"] == 1e-5
    shapes = [
        tuple(layer.weight.shape) for layer in model.policy.modules() if isinstance(layer, torch.nn.Linear)
    ]
    assert shapes == [(64, 65), (64, 64), (64, 65), (64, 64), (12, 64), (1, 64)]
    assert {type(layer) for layer in model.policy.mlp_extractor.policy_net} == {
        torch.nn.Linear,
        torch.nn.Tanh,
    }
    assert PUBLISHED.total_timesteps == 300_000


def test_what_is_saved_says_all_options(tmp_path: Path) -> None:
    settings = SB3Settings(total_timesteps=128, episodes=1, options={"gamma": 0.5})
    agent = SB3Trainer(small_env(), settings).train(tmp_path)
    about = Agent.load(tmp_path / "last.hpcsim").about
    assert about == agent.about
    assert about is not None
    assert about["algorithm"] == "maskable-ppo"
    assert about["settings"]["options"] == {"n_steps": 128, "batch_size": 512, "gamma": 0.5}


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [(SB3PPO, "sb3-ppo"), (SB3A2C, "sb3-a2c"), (SB3DQN, "sb3-dqn"), (SB3Trainer, "maskable-ppo")],
)
def test_each_algorithm_has_its_class(kind: Callable[..., SB3Trainer], algorithm: str) -> None:
    assert kind(small_env()).algorithm == algorithm
    built = kind(small_env(), SB3Settings(episodes=4))
    built._set_up()
    assert type(built.model).__name__ == ALGORITHMS[algorithm][1]


@pytest.mark.parametrize(
    ("algorithm", "settings", "message"),
    [
        ("trpo", SB3Settings(), r"an algorithm of maskable-ppo, .* is needed, found 'trpo'"),
        ("sb3-ppo", SB3Settings(options={"learning": 1}), r"sb3-ppo has the options learning_rate, n_steps, .*; found 'learning'"),
        ("sb3-ppo", SB3Settings(options={"env": 1}), r"found 'env'"),
        ("sb3-a2c", SB3Settings(options={"gamma": [1]}), r"sb3-a2c: gamma needs a number, a word or a boolean, found \[1\]"),
        ("sb3-ppo", SB3Settings(options={"n_steps": 1, "batch_size": 1}, episodes=1), r"sb3-ppo: .*batch_size.*"),
        ("sb3-dqn", SB3Settings(options={"optimize_memory_usage": True}), r"sb3-dqn: ReplayBuffer does not support"),
        ("maskable-ppo", SB3Settings(activation="gelu"), r"activation needs one of relu, tanh, found 'gelu'"),
    ],
)  # fmt: skip
def test_settings_that_are_none(algorithm: str, settings: SB3Settings, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        trainer(algorithm, settings).train()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("algorithm", ["maskable-ppo", "sb3-ppo", "sb3-a2c"])
def test_weights_that_are_no_numbers(algorithm: str) -> None:
    options = {**SHORT[algorithm].options, "learning_rate": 1e30}
    with pytest.raises(UsageError, match=rf"{algorithm}: weights are no finite numbers after \d+ steps"):
        trainer(algorithm, replace(SHORT[algorithm], options=options)).train()


def test_episodes_that_are_cut_off_count() -> None:
    reports: list[Report] = []
    SB3Trainer(small_env(max_steps=2), SHORT["maskable-ppo"]).train(tell=reports.append)
    assert reports[-1].episodes >= SHORT["maskable-ppo"].total_timesteps // 2 - 8
    assert all(np.isfinite(report.reward) for report in reports)
