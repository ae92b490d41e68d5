"""Rewards by hand, and against what they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, Workload, make, measure
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.spaces.rewards import Capability, Capacity, Improvement
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.policies import SJF
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(3), jobs=200, load=1.2)
SMALL = Workload(
    {"submit_time": [0, 2, 4], "run_time": [10, 10, 5], "requested_time": [10, 20, 5], "nodes": [3, 4, 1]},
    machine_size=4,
)


def earned(reward: Reward, name: str, workload: Workload = SMALL, **how: Any) -> float:
    """Run a policy to its end and return what was earned in all, asked once, at the end."""
    simulation = Scenario(workload).changed(**how).simulation(make(name), observers=[reward])
    simulation.run()
    return reward.take(simulation.system)


def test_equation_1_by_hand() -> None:
    # t=0: job 1 starts: nobody has waited. t=4: job 3 has not waited, job 2 for 2 s. t=10: job 2 alone, 8 s.
    expected = [0 + 3 / 4 + 3 / 4, 0 + 1 / 4 + 4 / 4, 1 + 4 / 4 + 4 / 4]
    assert earned(Capability(), "fcfs+greedy") == pytest.approx(sum(expected) / 3)
    assert earned(Capability((1.0, 0.0, 0.0)), "fcfs+greedy") == pytest.approx(1.0)


def test_equation_2_by_hand() -> None:
    # Job 1 starts, and nobody else is there; job 2 starts when it has ended, and job 3 waits; then job 3.
    assert earned(Capacity(), "fcfs") == pytest.approx(-1 / 5)
    # Job 2 has the reservation when it comes, and waits itself, also when job 3 is backfilled.
    assert earned(Capacity(reserved=True), "fcfs+easy") == pytest.approx(-1 / 20 - 1 / 20)


@pytest.mark.parametrize("metric", ["mean_bounded_slowdown", "mean_wait_time", "utilisation"])
def test_improvements(metric: str) -> None:
    base, ours = (measure(Simulation(LOG, make(name)).run())[metric] for name in ("fcfs", "sjf"))
    difference = base - ours if metric != "utilisation" else ours - base
    assert earned(Improvement(make("fcfs"), metric, "native"), "sjf", LOG) == pytest.approx(difference)
    assert earned(Improvement(make("fcfs"), metric), "sjf", LOG) == pytest.approx(difference / base)
    worse = earned(Improvement(make("sjf"), metric, "bounded"), "fcfs", LOG)
    assert worse == pytest.approx(-difference / max(base, ours, 1))
    win = earned(Improvement(make("fcfs"), metric, "win-loss"), "sjf", LOG)
    assert win == (difference > 0) - (difference < 0)
    assert earned(Improvement(make("sjf"), metric, "win-loss"), "sjf", LOG) == 0


def test_the_baseline_runs_once_for_each_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    class Counted(SJF):
        def reset(self, system: Any) -> None:
            runs.append(system.seed)

    reward = Improvement(Pipeline(order=Counted()))
    for seed in (1, 1, 2, 1):
        earned(reward, "fcfs", LOG, seed=seed)
    assert runs == [1, 2]


def test_it_is_paid_at_the_end_only() -> None:
    from hpcsimkit.agents.spaces.encoders import QueueWindow
    from hpcsimkit.agents.spaces.masks import Slots
    from hpcsimkit.envs.environment import SchedulingEnv

    env = SchedulingEnv(
        Fixed(LOG), Pipeline(order=External(), window=4), QueueWindow(4), Slots(4), Improvement(make("fcfs"))
    )
    env.reset(seed=0)
    over, rewards = False, []
    while not over:
        _, reward, over, _, _ = env.step(int(env.action_masks().argmax()))
        rewards.append(reward)
    assert set(rewards) == {0.0}, "first come, first served is what it is compared with"


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (
            Improvement(make("fcfs"), "mean_weight"),
            "a metric with a direction is needed, found 'mean_weight'",
        ),
        (Improvement(make("fcfs"), "jobs"), "a metric with a direction is needed, found 'jobs'"),
        (
            Improvement(make("fcfs"), kind="ratio"),
            "kind needs one of native, percentage, win-loss, bounded, found 'ratio'",
        ),  # type: ignore[arg-type]
    ],
)
def test_wrong_parameters(reward: Reward, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        earned(reward, "fcfs")
