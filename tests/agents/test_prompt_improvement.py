"""Improvements that are paid while jobs wait: by hand, and against what is paid at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, Workload, make
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import inspector_environment
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Fixed, Windows
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.prompt_improvement import ACCOUNTS, PromptImprovement, PromptRatio
from hpcsimkit.agents.spaces.rewards import KINDS, Improvement
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.errors import UsageError
from hpcsimkit.results.metrics import measure
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(3), jobs=200, load=1.3)


def sums_at_random(env: SchedulingEnv, seed: int, answers: int | None = None) -> tuple[float, int]:
    """Play an episode at random; returns what was earned, and how many decisions earned something."""
    rng = np.random.default_rng(seed if answers is None else answers)
    env.reset(seed=seed)
    total, paid, over = 0.0, 0, False
    while not over:
        action = int(rng.choice(np.flatnonzero(env.action_masks())))
        _, earned, over, cut, _ = env.step(action)
        total, paid, over = total + float(earned), paid + (earned != 0), over or cut
    return total, paid


def worth_of_nothing(kind: str, reward: Any) -> float:
    """What an improvement pays if the metric is 0."""
    return {"native": reward._base, "percentage": 1.0, "bounded": 1.0, "win-loss": 1.0}[kind]


@pytest.mark.parametrize("metric", sorted(ACCOUNTS))
@pytest.mark.parametrize("kind", KINDS)
def test_the_sum_is_that_of_the_improvement(metric: str, kind: Any) -> None:
    def env(reward: Reward) -> SchedulingEnv:
        return SchedulingEnv(Fixed(LOG), Pipeline(External(), window=8), QueueWindow(8), Slots(8), reward)

    for seed in range(3):
        prompt, late = (reward(make("fcfs"), metric, kind) for reward in (PromptImprovement, Improvement))
        (found, often), (expected, once) = (sums_at_random(env(each), seed) for each in (prompt, late))
        assert found == pytest.approx(expected - worth_of_nothing(kind, late))
        assert once <= 1
        if metric != "max_bounded_slowdown" and kind != "win-loss":
            assert often > 50


@pytest.mark.parametrize("metric", sorted(ACCOUNTS))
@pytest.mark.parametrize("kind", ["native", "percentage", "bounded"])
def test_after_a_warm_up_the_sum_differs_by_a_constant_of_the_episode(metric: str, kind: Any) -> None:
    """It is the improvement less its value at the first decision, whatever the agent does after it."""

    def env(reward: Reward) -> SchedulingEnv:
        episodes = Windows(LOG, 60, warmup=60)
        return SchedulingEnv(episodes, Pipeline(External(), window=8), QueueWindow(8), Slots(8), reward)

    prompt, late = (reward(make("fcfs"), metric, kind) for reward in (PromptImprovement, Improvement))
    for seed in range(2):
        env(prompt).reset(seed=seed)
        before = prompt._paid
        assert before != pytest.approx(worth_of_nothing(kind, prompt)), "a part was discarded"
        expected = [sums_at_random(env(late), seed, answers)[0] for answers in range(2)]
        found = [sums_at_random(env(prompt), seed, answers)[0] for answers in range(2)]
        assert found == pytest.approx([each - before for each in expected])
        assert metric == "max_bounded_slowdown" or expected[0] != expected[1]


@pytest.mark.parametrize("metric", sorted(ACCOUNTS))
@pytest.mark.parametrize("baseline", ["fcfs", "lcfs"])
def test_ratios_add_up_to_a_logarithm(metric: str, baseline: str) -> None:
    """Of 1 + the metric, whatever the baseline."""
    env = SchedulingEnv(
        Fixed(LOG), Pipeline(External(), window=8), QueueWindow(8), Slots(8),
        PromptRatio(make(baseline), metric), metrics=[metric],
    )  # fmt: skip
    rng = np.random.default_rng(5)
    env.reset(seed=5)
    total, paid, over = 0.0, 0, False
    while not over:
        _, earned, over, _, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        total, paid = total + float(earned), paid + (earned != 0)
    assert total == pytest.approx(-np.log1p(info["metrics"][metric]))
    assert paid > (1 if metric == "max_bounded_slowdown" else 50)


@pytest.mark.parametrize("metric", ["mean_bounded_slowdown", "mean_wait_time"])
def test_jobs_that_come_back_from_tests_count_once(metric: str) -> None:
    """At the end, what has accrued is the metric: the first start of a job that is stopped does not count."""
    prompt = PromptRatio(make("fcfs"), metric)
    policy = make("fcfs+easy+tests(seconds=300)")
    result = Simulation(LOG, policy, observers=[prompt]).run()
    assert result.attempts is not None and len(result.attempts.job) > 5
    expected = measure(result, names=[metric])[metric]
    assert prompt._account.value(int(result.end_time.max())) == pytest.approx(expected)


@pytest.mark.parametrize("short", [0.5, 1.0])
def test_killed_jobs_and_published_rules(short: float) -> None:
    """Jobs that are killed at their requested time; and time that goes on event by event."""
    requested = np.maximum((LOG.run_time * short).astype(np.int64), 1)
    columns = {"submit_time": LOG.submit_time, "run_time": LOG.run_time, "nodes": LOG.size,
               "requested_time": requested}  # fmt: skip
    log = Workload(columns, machine_size=LOG.machine_size)
    encoder = InspectorFeatures(longest_time=10_000)
    for prompt in (False, True):
        env = inspector_environment(log, first=0, encoder=encoder, prompt=prompt)
        sums = [sums_at_random(env, seed)[0] for seed in range(3)]
        if not prompt:
            expected = [each - 1.0 for each in sums]
    assert sums == pytest.approx(expected)


def test_by_hand() -> None:
    # One node. Job 1 runs 0 to 10; job 2 (5 s, counts as 10 s) comes at 2 and starts at 10, job 3 (20 s) comes
    # at 4 and starts at 15. Mean waits: (0 + 8 + 11) / 3; slowdowns 1, (8 + 5) / 10, (11 + 20) / 20.
    log = Workload({"submit_time": [0, 2, 4], "run_time": [10, 5, 20], "nodes": [1] * 3}, machine_size=1)
    waits, slow = (PromptImprovement(make("lcfs"), metric, "native")
                   for metric in ("mean_wait_time", "mean_bounded_slowdown"))  # fmt: skip
    simulation = Simulation(log, Pipeline(External()), observers=[waits, slow])
    paid = []
    while simulation.next_decision() is not None:
        now = simulation.system.now
        paid.append((now, waits.take(simulation.system), slow.take(simulation.system)))
        simulation.answer_position(0)
    paid.append((0, waits.take(simulation.system), slow.take(simulation.system)))
    at = {now: (wait, slowdown) for now, wait, slowdown in reversed(paid)}
    assert at[0] == (0.0, 0.0)
    assert at[2] == pytest.approx((0.0, -1 / 3)), "job 1 has started: its slowdown is 1"
    assert at[4] == pytest.approx((-2 / 3, -(2 / 10) / 3)), "job 2 waits"
    assert at[10] == pytest.approx((-(6 + 6) / 3, -(6 / 10 + 6 / 20) / 3)), "jobs 2 and 3 wait"
    assert sum(wait for _, wait, _ in paid) == pytest.approx(-19 / 3)
    assert sum(slowdown for *_, slowdown in paid) == pytest.approx(-(1 + 13 / 10 + 31 / 20) / 3)


def test_metrics_that_do_not_accrue_are_refused() -> None:
    simulation = Simulation(LOG, make("fcfs"), observers=[PromptImprovement(make("fcfs"), "utilisation")])
    with pytest.raises(UsageError, match=r"a metric that accrues is needed, one of .*, found 'utilisation'"):
        simulation.run()
