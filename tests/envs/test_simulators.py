"""Environments whose runs pause in the compiled simulator: all that an agent sees and learns is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

from hpcsimkit import External, Pipeline
from hpcsimkit.agents.masked_ppo.balanced import balanced_environment
from hpcsimkit.agents.masked_ppo.environments import improved_environment, published_environment
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
from hpcsimkit.agents.rlbackfilling.settings import backfilling_environment
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import inspector_environment
from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import Fixed, Windows
from hpcsimkit.agents.spaces.machine_encoders import JobMachinePairs, MachineRows
from hpcsimkit.agents.spaces.masks import AcceptReject, JobMachine, Slots
from hpcsimkit.agents.spaces.rewards import (
    FinalScore,
    Improvement,
    MinusMeanBoundedSlowdown,
    MinusMeanWait,
    Utilisation,
)
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO, SpinningUpSettings
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Encoder, Reward
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies import SJF
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(5), jobs=1_500, load=1.1)
WINDOWS = Windows(LOG, 64, warmup=32)
Simulators = Literal["auto", "simpy", "compiled"]


def inspector(reward: Reward) -> SchedulingEnv:
    policy = Pipeline(SJF(), inspector=External(), backfiller=EASY(), max_interval=600, max_rejections=5)
    encoder = InspectorFeatures(backfilling="easy", predicted=True)
    return SchedulingEnv(WINDOWS, policy, encoder, AcceptReject(), reward, stage="inspector", attempts=50)


def backfiller(reward: Reward) -> SchedulingEnv:
    encoder, mask = Candidates(16, decline=True, predicted=True), Slots(16, decline=True)
    policy = backfilling_seat(decline=True)
    return SchedulingEnv(WINDOWS, policy, encoder, mask, reward, stage="backfiller", attempts=50)


def order(reward: Reward) -> SchedulingEnv:
    policy = Pipeline(External(SJF()), backfiller=EASY(), window=16)
    return SchedulingEnv(WINDOWS, policy, QueueWindow(16), Slots(16), reward, attempts=50)


def on_nine_machines(count: int, seed: int) -> Workload:
    """Jobs in a hurry, whose requests are few."""
    rng = np.random.default_rng(seed)
    columns = {
        "submit_time": np.sort(rng.integers(0, 40 * count, count)),
        "run_time": rng.integers(0, 9_000, count),
        "requested_time": rng.choice([3_600, 7_200, 36_000], count),
        "nodes": np.ones(count),
        "cpus": rng.choice([1, 8, 24], count),
        "gpus": rng.choice([0, 0, 0, 2], count),
        "memory": rng.choice([4, 120], count) * 10**9,
    }
    return Workload(columns, resources=("cpus", "gpus", "memory"))


DAY = on_nine_machines(150, seed=2)


def dispatch(encoder: Encoder, reward: Reward) -> SchedulingEnv:
    policy, mask = Dispatch(External(), slots=12, order=SJF()), JobMachine(12, len(NINE_MACHINES))
    return SchedulingEnv(Fixed(DAY, NINE_MACHINES), policy, encoder, mask, reward, stage="dispatch")


ENVIRONMENTS: list[Callable[[], SchedulingEnv]] = [
    lambda: inspector(Improvement(Pipeline(SJF(), backfiller=EASY()))),
    lambda: inspector(MinusMeanBoundedSlowdown()),
    lambda: backfiller(MinusMeanWait()),
    lambda: backfiller(Utilisation()),
    lambda: order(MinusMeanBoundedSlowdown()),
    lambda: order(FinalScore("mean_wait_time")),
    lambda: inspector_environment(LOG, prompt=True),
    lambda: inspector_environment(LOG, backfilling=True, kind="ratio"),
    lambda: backfilling_environment(LOG, jobs=64),
    lambda: backfilling_environment(LOG, "sjf", "guarded", jobs=64, decline=True),
    lambda: published_environment(DAY, "wait"),
    lambda: published_environment(DAY, "utilisation"),
    lambda: improved_environment([DAY], on_nine_machines(80, seed=3)),
    lambda: balanced_environment([DAY]),
    lambda: dispatch(JobMachinePairs(12, 9, 3), MinusMeanWait()),
    lambda: dispatch(MachineRows(9, 3), MinusMeanBoundedSlowdown()),
    lambda: dispatch(RequestsAndMachines(12, 9), Utilisation()),
]


def played(env: SchedulingEnv, simulator: Simulators, episodes: int = 2) -> tuple[list[Any], list[Any]]:
    """Return what an agent with random actions gets, as arrays and as other objects."""
    env.simulator = simulator
    rng, arrays, others = np.random.default_rng(7), list[Any](), list[Any]()
    for seed in range(episodes):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            arrays += [observation, env.action_masks()]
            action = int(rng.choice(np.flatnonzero(env.action_masks())))
            observation, reward, terminated, truncated, info = env.step(action)
            others.append((action, reward, terminated, truncated, info))
            over = terminated or truncated
        assert env.episode is not None
        result = env.episode.result()
        arrays += [result.start_time, result.mode, result.end_time]
        others.append((result.passes, result.choices, result.options))
        assert result.simulator == ("simpy" if simulator == "simpy" else "compiled")
    return arrays, others


@pytest.mark.parametrize("made", ENVIRONMENTS)
def test_steps_are_the_same(made: Callable[[], SchedulingEnv]) -> None:
    arrays, others = played(made(), "compiled")
    known_arrays, known_others = played(made(), "simpy")
    assert repr(others) == repr(known_others)
    for one, other in zip(arrays, known_arrays, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("made", [ENVIRONMENTS[0], ENVIRONMENTS[2], ENVIRONMENTS[4]])
def test_weights_are_the_same(made: Callable[[], SchedulingEnv]) -> None:
    """A training by PPO, weight for weight."""
    trained = []
    for simulator in ("compiled", "simpy"):
        env = made()
        env.simulator = simulator
        kind = "dense" if env.stage == "inspector" else "slots"
        settings = SpinningUpSettings(total_timesteps=300, episodes=3, n_epochs=2, hidden=(8,), kind=kind)
        network: Any = SpinningUpPPO(env, settings, seed=3).train().network
        trained.append(network.digest)
        assert set(env.simulators) == {simulator} and env.simulators[simulator] >= settings.episodes
    assert trained[0] == trained[1]


class OfItsOwn(InspectorFeatures):
    """A class of a user, which declares nothing."""


class Declared(InspectorFeatures):
    """One that does."""

    reads_compiled = True


@pytest.mark.parametrize("encoder", [OfItsOwn(), Declared()])
def test_parts_of_users_are_taken_only_if_they_declare_it(encoder: Encoder) -> None:
    policy = Pipeline(SJF(), inspector=External(), backfiller=EASY(), max_interval=600, max_rejections=5)
    env = SchedulingEnv(
        WINDOWS, policy, encoder, AcceptReject(), MinusMeanWait(), stage="inspector", simulator="compiled"
    )
    if isinstance(encoder, Declared):
        env.reset(seed=1)
        return
    with pytest.raises(UsageError, match="OfItsOwn is not known to read only what a compiled run shows"):
        env.reset(seed=1)


def test_an_unknown_simulator_is_refused() -> None:
    env = inspector(MinusMeanWait())
    env.simulator = "fast"  # type: ignore[assignment]
    with pytest.raises(UsageError, match="simulator needs 'auto', 'simpy' or 'compiled', found 'fast'"):
        env.reset(seed=1)
