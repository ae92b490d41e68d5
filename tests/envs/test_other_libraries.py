"""Learners of other libraries on the environments: they learn a problem whose solution is known."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from hpcsimkit import External, Pipeline, Simulation, Workload, compare, default_workload
from hpcsimkit.agents.model_agent import ModelAgent
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.agents.spaces.seat_encoders import Flat
from hpcsimkit.agents.training.sb3 import agent_of
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.gymnasium_vector import SchedulingVectorEnv
from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.scenario import Scenario
from tests.envs import single_file_ppo

SHORT, LONG = 1_000, 10_000


class LongAndShort(Episodes):
    """Two jobs that need the whole machine, a long and a short one in random order."""

    def sample(self, rng: np.random.Generator) -> Scenario:
        times = rng.permutation([SHORT, LONG]).tolist()
        return Scenario(Workload({"submit_time": [0, 0], "run_time": times, "nodes": [4, 4]}, machine_size=4))


def environment() -> SchedulingEnv:
    """The best mean reward is -0.5: the long job waits for the short one; the worst is -5."""
    return SchedulingEnv(
        LongAndShort(),
        Pipeline(External()),
        QueueWindow(2, time_scale=10_000),
        Slots(2),
        MinusMeanWait(scale=1_000),
    )


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


def test_plain_ppo_of_stable_baselines3() -> None:
    vector = DummyVecEnv([environment] * 4)
    model = PPO("MlpPolicy", vector, n_steps=32, learning_rate=0.003, gamma=1.0, seed=0, device="cpu")
    agent = agent_of(model.learn(2_048), environment())
    rng = np.random.default_rng(1)
    for _ in range(4):
        workload = LongAndShort().sample(rng).workload
        result = Simulation(workload, Pipeline(agent)).run()
        assert sorted(result.start_time.tolist()) == [0, SHORT]


def test_plain_ppo_is_told_of_invalid_actions() -> None:
    env = gymnasium.make("hpcsimkit/Order-v0", slots=64)
    env.reset(seed=0)
    assert not env.unwrapped.action_masks()[63]  # type: ignore[attr-defined]
    assert env.step(63)[4]["invalid"]


def test_a_single_file_loop_on_the_vector_environment() -> None:
    envs = SchedulingVectorEnv(environment(), 16, autoreset_mode="SameStep")
    shape = envs.single_observation_space.shape
    assert shape is not None
    actor = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), 2))
    optimiser = torch.optim.Adam(actor.parameters(), lr=0.1)
    observations, _ = envs.reset(seed=0)
    means = []
    for _ in range(60):
        valid = torch.tensor(envs.action_masks())
        scores = actor(torch.tensor(observations)).masked_fill(~valid, -torch.inf)
        actions = torch.distributions.Categorical(logits=scores)
        chosen = actions.sample()
        observations, rewards, ended, _, infos = envs.step(chosen.numpy())
        assert ended.all() and not np.any(infos.get("invalid", False))
        reward = torch.tensor(rewards)
        loss = -(actions.log_prob(chosen) * (reward - reward.mean())).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        means.append(float(reward.mean()))
    assert np.mean(means[:5]) < -2.0 and np.mean(means[-5:]) > -1.0


@pytest.mark.parametrize("masked", [False, True])
def test_single_files_of_ppo_run_as_they_are(masked: bool) -> None:
    """In the style of CleanRL: the name of the environment is all that is changed; its network has a seat at once."""
    args = single_file_ppo.Args(env_id="hpcsimkit:hpcsimkit/OrderFlat-v0", masked=masked, total_timesteps=256)
    learned, _ = single_file_ppo.train(args)
    agent = ModelAgent(learned.actor, QueueWindow(16), flat=True)
    workload = default_workload(np.random.default_rng(1), jobs=60)
    assert compare(workload, {"mine": Pipeline(agent, window=16)}).result("mine").finished.all()


@pytest.mark.slow
def test_a_single_file_learns_the_shorter_job() -> None:
    gymnasium.register("LongAndShort-v0", lambda: environment_of("flat"))
    args = single_file_ppo.Args(env_id="LongAndShort-v0", masked=True, total_timesteps=8_192)
    _, returns = single_file_ppo.train(args)
    assert np.mean(returns[-200:]) > -1.0
    assert np.mean(returns[:100]) < -2.0


def environment_of(kind: str) -> SchedulingEnv:
    """The environment, with flat observations."""
    env = environment()
    return SchedulingEnv(env.episodes, env.policy, Flat(env.encoder), env.mask, env.reward)
