"""Models of Stable-Baselines3 become agents that choose the same, or are called as they are."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch
from gymnasium import spaces
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnvWrapper,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

from hpcsimkit import Pipeline, Simulation
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.model_agent import ModelAgent
from hpcsimkit.agents.training.sb3_models import agent_of, dense_of
from hpcsimkit.envs.vector_environment import SchedulingVecEnv
from hpcsimkit.errors import UsageError
from tests.agents.tiny_problem import small_env, two_classes

RELU, TANH = torch.nn.ReLU, torch.nn.Tanh
ON_POLICY = {
    "default": {},
    "no hidden layer": {"net_arch": []},
    "relu": {"net_arch": [16, 8], "activation_fn": RELU},
    "one network each": {"net_arch": {"pi": [8, 12], "vf": [16]}},
    "extractors apart": {"net_arch": [8], "share_features_extractor": False},
    "no orthogonal weights": {"net_arch": [8], "ortho_init": False},
    "other optimiser": {"net_arch": [8], "optimizer_class": torch.optim.SGD},
}
OFF_POLICY = {
    "default": {},
    "no hidden layer": {"net_arch": []},
    "tanh": {"net_arch": [16, 8], "activation_fn": TANH},
}
KINDS: dict[str, type[Any]] = {
    "PPO": stable_baselines3.PPO, "A2C": stable_baselines3.A2C, "DQN": stable_baselines3.DQN,
    "MaskablePPO": sb3_contrib.MaskablePPO, "TRPO": sb3_contrib.TRPO,
}  # fmt: skip
FEW_STEPS: dict[str, dict[str, Any]] = {"PPO": {"n_steps": 16, "batch_size": 16}, "TRPO": {"n_steps": 16, "batch_size": 16},
             "MaskablePPO": {"n_steps": 16, "batch_size": 16}, "DQN": {"buffer_size": 100}}  # fmt: skip
CASES = [("PPO", how) for how in ON_POLICY] + [("DQN", how) for how in OFF_POLICY]
CASES += [(name, how) for name in ("A2C", "MaskablePPO", "TRPO") for how in ("default", "relu")]


def model_of(name: str, vector: Any = None, policy: Any = "MlpPolicy", **policy_kwargs: Any) -> Any:
    """Return a model with weights far from the small first ones, all drawn from one seed."""
    vector = SchedulingVecEnv(small_env(), 1, seed=0) if vector is None else vector
    kind = KINDS[name]
    model = kind(policy, vector, policy_kwargs=policy_kwargs, device="cpu", seed=0, **FEW_STEPS.get(name, {}))
    drawn = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            if parameter.ndim > 1:  # biases would soon decide alone
                parameter += torch.randn(parameter.shape, generator=drawn)
    return model


def chosen_by(model: Any, seen: Any, valid: Any) -> int:
    """Return the best of the actions that are options, by the model's own code."""
    if isinstance(model, sb3_contrib.MaskablePPO):
        return int(model.predict(seen, deterministic=True, action_masks=valid)[0])
    batch = torch.from_numpy(seen[None])
    with torch.no_grad():
        if isinstance(model, stable_baselines3.DQN):
            scores = model.q_net(batch).numpy()[0]
        else:
            scores = model.policy.get_distribution(batch).distribution.logits.numpy()[0]
    assert int(scores.argmax()) == int(model.predict(seen, deterministic=True)[0])
    return int(np.where(valid, scores, -np.inf).argmax())


@pytest.mark.parametrize("decisions", [100, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "how"), CASES)
def test_decisions_are_those_of_the_model(name: str, how: str, decisions: int) -> None:
    """In episodes of the environment, the model's answers leading on; and as many on random observations."""
    variants = OFF_POLICY if name == "DQN" else ON_POLICY
    env, model = small_env(), model_of(name, **variants[how])
    agent, rng = agent_of(model, env), np.random.default_rng(3)
    seen, _ = env.reset(seed=3)
    chosen = set()
    for _ in range(decisions):
        valid = env.action_masks()
        expected = chosen_by(model, seen, valid)
        assert chosen_by_agent(agent, seen, valid) == expected
        other, any_action = rng.normal(size=seen.shape).astype(np.float32), np.ones_like(valid)
        chosen.add(chosen_by(model, other, any_action))
        assert chosen_by_agent(agent, other, any_action) == chosen_by(model, other, any_action)
        seen, _, terminated, truncated, _ = env.step(expected)
        if terminated or truncated:
            seen, _ = env.reset()
    assert len(chosen) > 1


def chosen_by_agent(agent: Agent, seen: Any, valid: Any) -> int:
    agent._observation, agent._valid, agent._random = seen, valid, None
    return agent._choice()


def test_a_few_updates_later_they_still_are() -> None:
    env, model = small_env(), model_of("PPO", net_arch=[8])
    model.learn(64)
    agent = agent_of(model, env)
    rng = np.random.default_rng(0)
    for _ in range(100):
        seen = rng.normal(size=env.observation_space.shape).astype(np.float32)
        valid = np.ones(env.action_space.n, dtype=np.bool_)  # type: ignore[attr-defined]
        assert chosen_by_agent(agent, seen, valid) == chosen_by(model, seen, valid)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda: VecMonitor(SchedulingVecEnv(small_env(), 1, seed=0)),
        lambda: VecNormalize(SchedulingVecEnv(small_env(), 1, seed=0), norm_obs=False),  # rewards only
        lambda: DummyVecEnv([lambda: Monitor(small_env())]),
        lambda: DummyVecEnv(
            [lambda: ActionMasker(Monitor(small_env()), lambda env: env.unwrapped.action_masks())]
        ),
        lambda: DummyVecEnv(
            [lambda: gymnasium.wrappers.TransformReward(small_env(), lambda reward: reward / 9)]
        ),
    ],
    ids=["VecMonitor", "rewards normalised", "Monitor", "ActionMasker", "TransformReward"],
)
def test_wrappers_that_change_neither_observations_nor_actions(wrapped: Any) -> None:
    assert agent_of(model_of("MaskablePPO", wrapped(), net_arch=[8]), small_env()).network.inputs == 25


# --- called as they are, or refused by name ---------------------------------------------------------------------------------------


class Doubled(BaseFeaturesExtractor):
    """Doubles what it sees."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        super().__init__(space, spaces.flatdim(space))

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return 2 * observations.flatten(1)


class Flatter(FlattenExtractor):
    """A subclass may do anything."""


class OwnPolicy(ActorCriticPolicy):
    """A policy of a user's own."""


class Shifted(gymnasium.ObservationWrapper):  # type: ignore[type-arg]
    """Adds 1."""

    def observation(self, observation: Any) -> Any:
        return observation + np.float32(1)


def scheduling() -> Any:
    return SchedulingVecEnv(small_env(), 1, seed=0)


class TwoParts(gymnasium.ObservationWrapper):  # type: ignore[type-arg]
    """Observations as a dictionary."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = spaces.Dict({"all": env.observation_space})

    def observation(self, observation: Any) -> Any:
        return {"all": observation}


class Pictures(gymnasium.ObservationWrapper):  # type: ignore[type-arg]
    """Observations as pictures."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0, 255, (36, 36, 1), dtype=np.uint8)

    def observation(self, observation: Any) -> Any:
        return np.zeros((36, 36, 1), dtype=np.uint8)


def recurrent() -> Any:
    model = sb3_contrib.RecurrentPPO(
        "MlpLstmPolicy", scheduling(), n_steps=16, batch_size=16, seed=0, device="cpu"
    )
    drawn = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter += torch.randn(parameter.shape, generator=drawn) * (0.3 if parameter.ndim > 1 else 1.0)
    return model


def quantiles() -> Any:
    return sb3_contrib.QRDQN("MlpPolicy", scheduling(), buffer_size=100, device="cpu")


def with_layer(layer: torch.nn.Module) -> Any:
    model = model_of("PPO", net_arch=[8, 8])
    model.policy.mlp_extractor.policy_net[1] = layer
    return model


WHOLE: dict[str, Any] = {
    "extractor": lambda: model_of("PPO", features_extractor_class=Doubled),
    "extractor of a subclass": lambda: model_of("A2C", features_extractor_class=Flatter),
    "extractor of DQN": lambda: model_of("DQN", features_extractor_class=Doubled),
    "masked extractor": lambda: model_of("MaskablePPO", features_extractor_class=Doubled),
    "VecNormalize": lambda: model_of("PPO", warmed(VecNormalize(scheduling()))),
    "below VecMonitor": lambda: model_of("PPO", VecMonitor(warmed(VecNormalize(scheduling())))),
    "VecFrameStack": lambda: model_of("PPO", VecFrameStack(scheduling(), 3)),
    "normalised, then stacked": lambda: model_of("PPO", VecFrameStack(warmed(VecNormalize(scheduling())), 2)),
    "ObservationWrapper": lambda: model_of("PPO", DummyVecEnv([lambda: Shifted(small_env())])),
    "dictionary": lambda: model_of("PPO", DummyVecEnv([lambda: TwoParts(small_env())]), "MultiInputPolicy"),
    "own policy": lambda: model_of("PPO", policy=OwnPolicy),
    "recurrent": recurrent,
    "quantiles": quantiles,
    "activation": lambda: model_of("PPO", activation_fn=torch.nn.ELU),
    "layer": lambda: with_layer(torch.nn.LayerNorm(8)),
    "mixed activations": lambda: with_layer(RELU()),
}


def warmed(normalising: Any) -> Any:
    """Return a normalising environment that has seen some observations."""
    normalising.reset()
    for action in (0, 1, 0, 1):
        normalising.step(np.array([action]))
    normalising.training = False
    return normalising


def raw_observations(model: Any) -> Any:
    """The observations of the environment before all wrappers."""
    vector = model.env
    while hasattr(vector, "venv"):
        vector = vector.venv
    inner = vector.env if isinstance(vector, SchedulingVecEnv) else vector.envs[0].unwrapped
    batch = vector._batch if isinstance(vector, SchedulingVecEnv) else inner._batch
    return batch.observations.copy()


@pytest.mark.parametrize("what", WHOLE)
def test_what_a_conversion_would_lose_is_called_as_it_is(what: str) -> None:
    """Step by step as the model's own code chooses in its own, wrapped environment, from the same observations."""
    model = WHOLE[what]()
    agent = agent_of(model, small_env())
    assert isinstance(agent, ModelAgent)
    assert agent.model is model
    seen, state, memory, chosen = model.env.reset(), None, None, set()
    begins = np.ones(1, dtype=np.bool_)
    every = np.ones((1, 4), dtype=np.bool_)
    for _ in range(40):
        options = {"action_masks": every} if isinstance(model, sb3_contrib.MaskablePPO) else {}
        expected, state = model.predict(
            seen, state=state, episode_start=begins, deterministic=True, **options
        )
        actions, memory = agent.choose(raw_observations(model), every, memory)
        assert actions.tolist() == expected.tolist()
        chosen.add(int(actions[0]))
        seen, _, over, _ = model.env.step(np.array([0]))
        begins = over
        if over[0]:
            memory = None
    assert len(chosen) > 1 or what not in ("recurrent", "VecFrameStack"), (
        "what it remembers does not matter here"
    )


@pytest.mark.parametrize(
    "what", ["extractor", "VecNormalize", "VecFrameStack", "recurrent", "quantiles", "extractor of DQN"]
)
def test_models_of_all_kinds_take_decisions_in_runs(what: str) -> None:
    """Valid ones only, whatever the model prefers; the same in a second run, which remembers nothing of the first."""
    agent = agent_of(WHOLE[what](), small_env())
    workload = two_classes(np.random.default_rng(1))
    policy = Pipeline(order=agent, window=4)
    first = Simulation(workload, policy).run()
    assert Simulation(workload, policy).run().hash == first.hash
    assert first.finished.all()


class Deaf(gymnasium.ActionWrapper):  # type: ignore[type-arg]
    """Other actions than those of the model."""

    def action(self, action: Any) -> Any:
        return 0


class OwnVector(VecEnvWrapper):
    """A wrapper of a user's own, which may do anything."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        return self.venv.step_wait()


@pytest.mark.parametrize(
    ("wrapped", "problem"),
    [
        (lambda: DummyVecEnv([lambda: Deaf(small_env())]), "its environment is wrapped in ActionWrapper"),
        (
            lambda: OwnVector(scheduling()),
            "its environment is wrapped in OwnVector, which may change observations",
        ),
    ],
)
def test_what_cannot_be_repeated_is_refused_by_name(wrapped: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=f"PPO cannot take decisions: {problem}"):
        agent_of(model_of("PPO", wrapped()), small_env())


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (lambda: model_of("PPO", DummyVecEnv([lambda: TwoParts(small_env())]), "MultiInputPolicy"), "its policy is MultiInputActorCriticPolicy"),
        (lambda: model_of("PPO", DummyVecEnv([lambda: Pictures(small_env())]), "CnnPolicy"), "its policy is ActorCriticCnnPolicy"),
        (lambda: object(), "its policy is NoneType"),
    ],
    ids=["MultiInputPolicy", "CnnPolicy", "no model"],
)  # fmt: skip
def test_layers_alone_are_no_network(model: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=f"cannot be made an agent: {problem}; supported are"):
        dense_of(model())


def test_continuous_actions_are_refused() -> None:
    model = stable_baselines3.PPO(
        "MlpPolicy", "Pendulum-v1", n_steps=16, batch_size=16, use_sde=True, device="cpu"
    )
    with pytest.raises(UsageError, match="PPO cannot be made an agent: its actions are Box"):
        dense_of(model)


def test_a_model_of_another_environment_is_refused() -> None:
    model = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16, device="cpu")
    with pytest.raises(
        UsageError, match=r"it sees observations of shape \(4,\), the environment gives \(5, 5\)"
    ):
        agent_of(model, small_env())
