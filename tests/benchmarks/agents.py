"""Speed for learners: steps of environments, training from end to end, an agent's answer."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

LUBLIN = "lublin-1.swf"


def _random_steps(env: Any, repetitions: int, episodes: int = 1) -> dict[str, float]:
    """Play episodes with random valid actions; steps/s of the environment, the choice not counted."""
    best = 0.0
    rng = np.random.default_rng(0)
    for repetition in range(repetitions):
        seconds, steps = 0.0, 0
        for episode in range(episodes):
            began = time.process_time()
            env.reset(seed=repetition * (episodes - 1) + episode)
            seconds += time.process_time() - began
            over = False
            while not over:
                actions = np.flatnonzero(env.action_masks())
                action = int(actions[rng.integers(len(actions))])
                began = time.process_time()
                _, _, over, _, _ = env.step(action)
                seconds += time.process_time() - began
                steps += 1
        best = max(best, steps / seconds)
    return {"seconds": 1 / best, "per_second": best}


def _on(env: Any, policy: str) -> Any:
    """Return the environment on the simulator that the case names, loaded."""
    env.simulator = "simpy" if policy.endswith("SimPy") else "compiled"
    env.reset(seed=10**6)
    return env


def _compile_baselines(env: Any, episodes: int) -> None:
    """Begin episodes with the compiled simulator loaded, until it simulates all baselines, as in a training."""
    from hpcsimkit.kernel.event_order import DirlabOrder
    from hpcsimkit.kernel.simulation import Simulation

    env.reset(seed=10**6)
    jobs = env.episode.scenario.workload
    Simulation(jobs, env.reward.baseline, event_order=DirlabOrder(), simulator="compiled").run()
    for episode in range(episodes):
        env.reset(seed=10**6 + episode)


def window(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Choose among 16 jobs of a log of 5 000 on homogeneous nodes."""
    from hpcsimkit import External, Pipeline
    from hpcsimkit.agents.spaces.encoders import QueueWindow
    from hpcsimkit.agents.spaces.episodes import Fixed
    from hpcsimkit.agents.spaces.masks import Slots
    from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    from hpcsimkit.envs.environment import SchedulingEnv
    from hpcsimkit.workloads import default_workload

    log = default_workload(np.random.default_rng(1), jobs=5_000, load=1.0)
    env = SchedulingEnv(
        Fixed(log), Pipeline(order=External(), window=16), QueueWindow(16), Slots(16), MinusMeanWait()
    )
    return _random_steps(_on(env, policy), repetitions)


def pairs(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Choose among 128 jobs x 9 machines, 2 000 jobs waiting at first."""
    from hpcsimkit import External, Machines, Workload
    from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
    from hpcsimkit.agents.spaces.episodes import Fixed
    from hpcsimkit.agents.spaces.masks import JobMachine
    from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    from hpcsimkit.envs.environment import SchedulingEnv
    from hpcsimkit.policies.one_seat.dispatch import Dispatch

    rng, jobs = np.random.default_rng(1), 2_000
    columns = {
        "submit_time": np.zeros(jobs), "run_time": rng.integers(60, 10**5, jobs), "nodes": np.ones(jobs),
        "cpus": rng.integers(1, 33, jobs), "gpus": (rng.random(jobs) < 0.02) * rng.integers(1, 3, jobs),
        "memory": rng.integers(1, 65, jobs) * 10**9,
    }  # fmt: skip
    log = Workload(columns, resources=("cpus", "gpus", "memory"))
    cluster = Machines.of(7, cpus=64, memory="256 GB") + Machines.of(
        2, "gpu", cpus=64, gpus=8, memory="512 GB"
    )
    env = SchedulingEnv(
        Fixed(log, cluster), Dispatch(External(), slots=128), RequestsAndMachines(128, 9),
        JobMachine(128, 9), MinusMeanWait(), stage="dispatch",
    )  # fmt: skip
    return _random_steps(_on(env, policy), repetitions)


def inspector(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Accept or reject what SJF has selected: sequences of 128 jobs of a log of 5 000, by published rules."""
    from hpcsimkit.agents.schedinspector.settings import inspector_environment
    from hpcsimkit.workloads import default_workload

    log = default_workload(np.random.default_rng(1), jobs=5_000, load=1.0)
    env = inspector_environment(log)
    _compile_baselines(env, 30)
    return _random_steps(_on(env, policy), 10 * repetitions)


def backfilling(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Choose among up to 128 jobs behind a blocked one, RLBackfilling's rules and sequences of 256 jobs."""
    from hpcsimkit.agents.rlbackfilling.settings import backfilling_environment
    from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown
    from hpcsimkit.envs.environment import SchedulingEnv
    from hpcsimkit.workloads.dirlab import read_published

    env = backfilling_environment(read_published(traces / LUBLIN, "rlbackfilling"))
    if "alone" in policy:
        env = SchedulingEnv(
            env.episodes, env.policy, env.encoder, env.mask, MinusMeanBoundedSlowdown(), stage=env.stage
        )
    else:
        _compile_baselines(env, 20)
    return _random_steps(_on(env, policy), repetitions, episodes=20)


def games(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Play CuSH's job sets as its training does, 24 simulations of each of 10 sets, by chance; episodes/s.

    Pictures, masks, returns and placements included; what networks take is not.
    """
    from hpcsimkit.agents.cush.game import Game, play
    from hpcsimkit.agents.cush.problem import CushProblem
    from hpcsimkit.agents.cush.returns import job_selector_returns

    problem, count, best = CushProblem(system=source), 240, float("inf")  # type: ignore[arg-type]
    sets = problem.scenarios(np.random.default_rng(1), count // 24)
    for repetition in range(repetitions):
        rng = np.random.default_rng(repetition)
        began = time.process_time()
        all_games = [Game(each, problem, np.full(2, 0.5), rng) for each in sets for _ in range(24)]
        play(all_games, problem, lambda _, valid: valid / valid.sum(axis=1, keepdims=True), rng)
        turnarounds = np.array([game.fared().normalised_turnaround for game in all_games])
        job_selector_returns([game.rewards() for game in all_games], turnarounds, 0.9)
        best = min(best, time.process_time() - began)
    return {"seconds": best, "per_second": count / best}


def training(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Train 32 episodes side by side in batches of 512: steps/s from end to end.

    By MaskablePPO as sb3-contrib runs it or as the kit's trainer does, or by the kit's PPO.

    The network is the same, and so are the updates, of which both make ten passes over 4 096 steps.
    """
    import torch

    torch.set_num_threads(1)
    train, steps = TRAININGS[policy.partition(",")[0]], 40_960
    train(4_096)  # loads what is imported late
    best = float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        train(steps)
        best = min(best, time.process_time() - began)
    return {"seconds": best, "per_second": steps / best}


def _maskable_ppo(steps: int) -> None:
    from sb3_contrib import MaskablePPO

    from hpcsimkit.agents.standard import order
    from hpcsimkit.envs.vector_environment import SchedulingVecEnv

    environment = SchedulingVecEnv(order(), 32)
    MaskablePPO("MlpPolicy", environment, n_steps=128, batch_size=512, seed=1).learn(steps)


def _kits_maskable_ppo(steps: int) -> None:
    from hpcsimkit.agents.standard import order
    from hpcsimkit.agents.training.sb3 import SB3Settings, SB3Trainer

    SB3Trainer(order(), SB3Settings(total_timesteps=steps, episodes=32), seed=1).train()


def _own_ppo(steps: int) -> None:
    from hpcsimkit.agents.standard import order
    from hpcsimkit.agents.training.ppo import PPO, PPOSettings

    settings = PPOSettings(total_timesteps=steps, episodes=32, n_steps=128, normalise="batch")
    PPO(order(), settings, seed=1).train()


TRAININGS = {
    "MaskablePPO": _maskable_ppo,
    "maskable-ppo of the kit": _kits_maskable_ppo,
    "PPO of the kit": _own_ppo,
}
"""Trainings by the names of their cases."""


def batches(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Step 16 episodes of the order seat side by side with random valid actions: steps/s of a way to do so."""
    import gymnasium

    from hpcsimkit.rl import SchedulingVecEnv

    name, many, steps, best = "hpcsimkit/Order-v0", 16, 1_000, float("inf")
    rng = np.random.default_rng(1)
    if policy == "make, DummyVecEnv":
        from stable_baselines3.common.vec_env import DummyVecEnv

        batch: Any = DummyVecEnv([lambda: gymnasium.make(name)] * many)
    elif policy == "make_vec":
        batch = gymnasium.make_vec(name, num_envs=many, vectorization_mode="vector_entry_point")
    else:
        batch = SchedulingVecEnv(gymnasium.make(name).unwrapped, many)

    def valid() -> Any:
        if policy == "make_vec":
            return batch.unwrapped.action_masks()
        return np.array(batch.env_method("action_masks"))

    batch.reset()
    for _ in range(repetitions):
        began = time.process_time()
        for _ in range(steps):
            batch.step((rng.random((many, 16)) * valid()).argmax(axis=1))
        best = min(best, time.process_time() - began)
    return {"seconds": best, "per_second": steps * many / best}


def inference(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Score 16 actions by the network of an agent, or 128 slots by RLBackfilling's kernel network."""
    from hpcsimkit.agents.networks.numpy_networks import Dense, SlotScores

    rng = np.random.default_rng(0)
    if policy.startswith("slots"):
        return _kernel(SlotScores, rng, repetitions)
    shapes = {"weight.0": (32, 85), "bias.0": (32,), "weight.1": (16, 32), "bias.1": (16,)}
    network = Dense({name: rng.normal(size=shape) for name, shape in shapes.items()})
    observation, count, best = rng.normal(size=(17, 5)).astype(np.float32), 20_000, float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        for _ in range(count):
            network.scores(observation)
        best = min(best, (time.process_time() - began) / count)
    return {"seconds": best, "per_second": 1 / best}


def _kernel(network_of: Any, rng: np.random.Generator, repetitions: int) -> dict[str, float]:
    sizes = [6, 32, 16, 8, 1]
    tensors: dict[str, Any] = {}
    for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
        tensors |= {f"weight.{layer}": rng.normal(size=(outputs, inputs)), f"bias.{layer}": np.zeros(outputs)}
    network, observation = network_of(tensors, "relu"), rng.random((128, 6), dtype=np.float32)
    rows, count, best = np.arange(128), 20_000, float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        for _ in range(count):
            network.scores_of(observation, rows)
        best = min(best, (time.process_time() - began) / count)
    return {"seconds": best, "per_second": 1 / best}
