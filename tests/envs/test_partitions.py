"""Environments on clusters with partitions: decisions, observations, masks and rewards of each partition."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Simulation, Workload, make
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown, MinusMeanWait, Utilisation
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.kernel.pipeline import Pipeline
from tests.kernel.test_partitions import COUNTED, random_jobs, shared_case

SLOTS = 6
Seen = dict[str, list[tuple[int, bytes, bytes, int]]]


def opened(name: str) -> Pipeline:
    """Return a policy whose order of the queue is an open seat, with the heuristic behind it."""
    policy = make(name)
    assert isinstance(policy, Pipeline)
    policy.order, policy.window = External(policy.order), SLOTS
    return policy


def closed(name: str) -> Pipeline:
    policy = make(name)
    assert isinstance(policy, Pipeline)
    policy.window = SLOTS
    return policy


def play(
    workload: Workload, cluster: Any, name: str, reward: Reward, seed: int = 0
) -> tuple[float, SchedulingEnv, Seen]:
    """Answer as the heuristic; return the sum of rewards, the environment, and what each partition saw."""
    episodes = Fixed(workload, cluster, seed=seed)
    env = SchedulingEnv(episodes, opened(name), QueueWindow(SLOTS), Slots(SLOTS), reward)
    observation, _ = env.reset(seed=0)
    total, over, seen = 0.0, False, defaultdict(list)
    while not over:
        assert env.episode is not None
        decision = env.episode.decision
        assert decision is not None
        action = env.mask.action(decision, decision.default)
        masks = env.action_masks()
        assert masks[action]
        assert masks.sum() == len(decision.options)
        seen[decision.partition].append((decision.system.now, observation.tobytes(), masks.tobytes(), action))
        observation, paid, over, _, _ = env.step(action)
        total += float(paid)
    return total, env, dict(seen)


@pytest.mark.parametrize("name", ["sjf", "wfp3+easy", "sjf+conservative"])
@pytest.mark.parametrize("shared", [False, True])
def test_answering_like_the_heuristic_gives_its_schedule(name: str, shared: bool) -> None:
    workload, cluster = shared_case(3)[:2] if shared else (random_jobs(1, 60, 3, 4), COUNTED)
    expected = Simulation(workload, closed(name), cluster).run()
    total, env, seen = play(workload, cluster, name, MinusMeanWait())
    assert env.episode is not None
    result = env.episode.result()
    assert result.hash == expected.hash
    assert total == pytest.approx(-expected.wait_time.mean())
    assert set(seen) == set(cluster.names)
    assert result.started_in is not None
    assert set(result.started_in) <= set(cluster.names)


def test_each_partition_sees_what_it_sees_alone() -> None:
    workload = random_jobs(2, 90, 3, 4)
    _, _, together = play(workload, COUNTED, "sjf+easy", MinusMeanWait())
    for number, (name, view) in enumerate(zip(COUNTED.names, COUNTED.views, strict=True)):
        alone = workload.select(np.flatnonzero(workload.partition == number))
        _, _, seen = play(alone, view.cluster, "sjf+easy", MinusMeanWait())
        assert together[name] == seen[""]


def test_rewards_are_those_of_the_whole_cluster() -> None:
    workload = random_jobs(4, 60, 3, 4)
    result = Simulation(workload, closed("sjf+easy"), COUNTED).run()
    slowdown, _, _ = play(workload, COUNTED, "sjf+easy", MinusMeanBoundedSlowdown())
    assert slowdown == pytest.approx(-result.bounded_slowdown().mean())
    busy, _, _ = play(workload, COUNTED, "sjf+easy", Utilisation())
    work = float((workload.run_time * workload.nodes).sum())
    assert busy == pytest.approx(work / (COUNTED.size * workload.span))
