"""PPO on whole episodes: what a round is, how policy and value learn, known optima, stopping and going on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hpcsimkit import External, Pipeline, Workload
from hpcsimkit.agents.training.a2c import A2C
from hpcsimkit.agents.training.on_policy import Batch, Settings
from hpcsimkit.agents.training.returns import generalised_advantages
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO, SpinningUpSettings
from hpcsimkit.errors import UsageError
from tests.agents.tiny_problem import env, goes_on_as_if_never_stopped, mean_wait, seated

SETTINGS = SpinningUpSettings(
    total_timesteps=6_000,
    episodes=10,
    n_epochs=20,
    learning_rate=3e-3,
    value_learning_rate=3e-3,
    hidden=(16,),
)


class Sizes:
    """Episodes of 2 to 9 jobs: some end long before others."""

    def sample(self, rng: np.random.Generator) -> Any:
        from hpcsimkit.envs.scenario import Scenario

        jobs = int(rng.integers(2, 10))
        columns = {
            "submit_time": np.zeros(jobs), "run_time": rng.choice([10, 100], jobs), "nodes": np.ones(jobs)
        }  # fmt: skip
        return Scenario(Workload(columns, machine_size=1))


def played(trainer: SpinningUpPPO | A2C) -> tuple[Batch, list[float]]:
    trainer._set_up()
    return trainer._play()


@pytest.mark.parametrize("make", [SpinningUpPPO, A2C])
def test_a_round_is_one_whole_episode_in_each_place(make: Any) -> None:
    settings = SETTINGS if make is SpinningUpPPO else Settings(episodes=10, whole_episodes=True, hidden=(16,))
    one_by_one = Pipeline(order=External(), window=12, fitting=True)  # as many decisions as jobs
    trainer = make(env(episodes=Sizes(), policy=one_by_one, skip=False), settings, seed=2)
    trainer._set_up()
    lengths = [len(trainer.vector._batch.episode(n).simulation.workload) for n in range(10)]
    assert len(set(lengths)) > 3
    batch, sums = trainer._play()
    assert len(sums) == 10
    assert trainer.steps == len(batch.actions) == sum(lengths)
    assert batch.valid.any(dim=1).all()
    lengths = [len(trainer.vector._batch.episode(n).simulation.workload) for n in range(10)]
    assert all(trainer.vector._batch.episode(n).decisions == 0 for n in range(10)), "the next ones have begun"
    batch, sums = trainer._play()
    assert (len(sums), len(batch.actions)) == (10, sum(lengths))


@pytest.mark.parametrize("value_gae_lambda", [None, 0.0, 1.0])
def test_what_was_not_played_does_not_count(value_gae_lambda: float | None) -> None:
    """Of two episodes of two steps and one: advantages are those of each for itself.

    So is what the critic learns: reckoned as advantages are, from what it believes of the next state, or what
    was earned.
    """
    settings = replace(SETTINGS, episodes=2, gamma=0.9, gae_lambda=0.8, value_gae_lambda=value_gae_lambda)
    trainer = SpinningUpPPO(env(), settings, seed=2)
    trainer._set_up()
    critic = trainer.networks.value_network()
    rng, shape = np.random.default_rng(0), trainer.env.encoder.shape
    seen = rng.normal(size=(2, 2, *shape)).astype(np.float32)
    playing = np.array([[True, True], [True, False]])
    rewards = np.array([[1, 5], [2, 0]], dtype=np.float32)
    over = np.array([[False, True], [True, False]])
    steps, moves = trainer._rollouts
    for at, actions in ((0, [1, 2]), (1, [3])):
        count = len(actions)
        steps.add(
            seen[at, :count], np.ones((count, 12), dtype=np.bool_), np.array(actions),
            np.zeros(count, dtype=np.float32),
        )  # fmt: skip
        row = slice(at, at + 1)
        moves.add(playing[row], rewards[row], over[row], np.zeros((1, 2), dtype=np.bool_))
    batch = trainer._worth(critic)
    assert batch.actions.tolist() == [1, 2, 3]
    values = critic.many(seen.reshape(4, *shape))[:, 0].reshape(2, 2)
    nothing = np.zeros(1, dtype=np.float32)
    first = generalised_advantages(rewards[:, :1], values[:, :1], over[:, :1], nothing, 0.9, 0.8)[:, 0]
    assert batch.advantages.tolist() == pytest.approx([first[0], 5 - values[0, 1], first[1]], rel=1e-5)
    later = {None: first[0] + values[0, 0], 0.0: 1 + 0.9 * values[1, 0], 1.0: 1 + 0.9 * 2}[value_gae_lambda]
    assert batch.returns.tolist() == pytest.approx([later, 5, 2], rel=1e-5)


def test_policy_and_value_learn_apart() -> None:
    """With a divergence that is reached at once the policy takes one step, the value all of them."""
    trainer = SpinningUpPPO(env(), replace(SETTINGS, target_kl=-1.0, n_epochs=5), seed=2)
    batch, _ = played(trainer)
    told = trainer.learn(batch)
    assert told["passes"] == 1
    states = trainer.optimiser.state_dict()["state"]
    assert [float(states[part]["step"]) for part in (0, 1)] == [1, 5]


def test_learning_the_value_leaves_the_policy_alone() -> None:
    trainer = SpinningUpPPO(env(), SETTINGS, seed=2)
    batch, _ = played(trainer)
    trainer.learn(batch)  # from now on Adam has momentum
    weights = [parameter.detach().clone() for parameter in trainer.networks.actor.parameters()]
    values = trainer.networks.values(batch.observations)
    trainer._descend(1, values, torch.ones_like(values))
    assert all(torch.equal(*pair) for pair in zip(weights, trainer.networks.actor.parameters(), strict=True))
    assert not torch.equal(values, trainer.networks.values(batch.observations))


@pytest.mark.slow
def test_it_comes_near_the_best_order() -> None:
    """How near depends on the processor, whose sums differ in their last digits."""
    settings = replace(SETTINGS, total_timesteps=20_000, episodes=20, learning_rate=1e-2, target_kl=0.05)
    agent = SpinningUpPPO(env(), settings, seed=1).train()
    seeds = range(100, 120)
    from hpcsimkit import make

    shortest, first = (mean_wait(make(name), seeds) for name in ("sjf", "fcfs"))
    assert mean_wait(seated(agent), seeds) < shortest + 0.4 * (first - shortest)


def test_it_goes_on_as_if_never_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> SpinningUpPPO:
        settings = replace(SETTINGS, total_timesteps=700)
        return SpinningUpPPO(env(), settings, seed=3, validate=lambda agent: 0.0, validate_every=2)

    goes_on_as_if_never_stopped(made, 3, tmp_path, monkeypatch)


@pytest.mark.parametrize("change", [{"value_learning_rate": None}, {"normalise": "batch"}])
def test_settings_that_make_no_sense(change: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError, match="spinning-up-ppo needs a value_learning_rate, and normalise='round'"
    ):
        SpinningUpPPO(env(), replace(SETTINGS, **change)).train()


def test_whole_episodes_of_a_pipeline_without_decisions_are_refused() -> None:
    one = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    from hpcsimkit.agents.spaces.episodes import Fixed

    alone = env(episodes=Fixed(one), policy=Pipeline(order=External(), window=12))
    with pytest.raises(UsageError, match="no decision for the order seat"):
        SpinningUpPPO(alone, SETTINGS).train()
