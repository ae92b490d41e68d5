"""The Gymnasium environment: the same schedules as the heuristic's, rewards that add up, clear errors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as check_gymnasium
from stable_baselines3.common.env_checker import check_env as check_sb3

from hpcsimkit import External, Machines, Pipeline, Simulation, Workload, make
from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import AnyOf, Fixed, Generated, Windows
from hpcsimkit.agents.spaces.masks import JobMachine, Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown, MinusMeanWait, Utilisation
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.envs.vector_environment import SchedulingVecEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.workloads import burst, default_workload, read_swf, write_swf

LOG = default_workload(np.random.default_rng(3), jobs=300)
SLOTS = 8


def order_env(**changes: Any) -> SchedulingEnv:
    parts: dict[str, Any] = {
        "episodes": Windows(LOG, 64),
        "policy": Pipeline(order=External(), window=SLOTS),
        "encoder": QueueWindow(SLOTS),
        "mask": Slots(SLOTS),
        "reward": MinusMeanWait(),
    }
    return SchedulingEnv(**{**parts, **changes})


def play(env: SchedulingEnv, choose: Any, seed: int = 0) -> tuple[float, dict[str, Any], int]:
    """Play an episode; returns the sum of rewards, the last info and the number of steps."""
    observation, _ = env.reset(seed=seed)
    total, steps = 0.0, 0
    while True:
        observation, reward, terminated, truncated, info = env.step(choose(env, observation))
        total, steps = total + reward, steps + 1
        if terminated or truncated:
            return total, info, steps


def first(env: SchedulingEnv, _: Any) -> int:
    return int(env.action_masks().argmax())


def anything(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda env, _: int(rng.choice(np.flatnonzero(env.action_masks())))


# --- what others check ------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_gymnasium_and_sb3_find_nothing_wrong() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both advise against ranges up to infinity
        check_gymnasium(order_env(), skip_render_check=True)
        check_sb3(order_env())


def test_seeds() -> None:
    same = [play(order_env(), anything(1), seed=4) for _ in range(2)]
    assert same[0] == same[1]
    assert play(order_env(), anything(1), seed=5)[0] != same[0][0]


# --- rewards add up ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("reward", "metric", "scale"),
    [
        (MinusMeanWait(), "mean_wait_time", 1.0),
        (MinusMeanWait(scale=3600), "mean_wait_time", 3600.0),
        (MinusMeanBoundedSlowdown(), "mean_bounded_slowdown", 1.0),
    ],
)
def test_the_sum_of_rewards_is_minus_the_metric(
    reward: Reward, metric: str, scale: float, seed: int, skip: bool
) -> None:
    total, info, steps = play(order_env(reward=reward, skip=skip), anything(seed), seed)
    assert steps > 0
    assert total * scale == pytest.approx(-info["metrics"][metric], rel=1e-9)


def test_utilisation_adds_up_to_the_work_done() -> None:
    env = order_env(reward=Utilisation(), episodes=Fixed(LOG.first(64)))
    total, _, _ = play(env, anything(0))
    work = (LOG.first(64).run_time * LOG.first(64).nodes).sum()
    assert total == pytest.approx(work / (256 * LOG.first(64).span))


# --- the same schedules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fcfs", "sjf", "f1+easy"])
def test_answering_like_the_heuristic_gives_its_schedule(name: str) -> None:
    policy = make(name)
    order, policy.window = policy.order, SLOTS
    closed = Simulation(LOG, policy).run()
    opened = make(name)
    opened.window, opened.order = SLOTS, External(order)
    env = order_env(policy=opened, episodes=Fixed(LOG))
    _, info, _ = play(env, lambda env, _: env.mask.action(env.episode.decision, env.episode.decision.default))
    assert env.episode is not None
    assert env.episode.result().hash == closed.hash
    assert info["metrics"]["mean_wait_time"] == pytest.approx(closed.wait_time.mean())


@pytest.mark.slow
def test_answering_like_the_heuristic_on_a_whole_log(shared: Path) -> None:
    log = read_swf(shared / "traces/KTH-SP2-1996-2.1-cln.swf.gz")
    closed = Simulation(log, make("sjf+easy+window(16)")).run()
    opened = make("sjf+easy+window(16)")
    opened.order = External(opened.order)
    env = order_env(policy=opened, episodes=Fixed(log), encoder=QueueWindow(16), mask=Slots(16))
    play(env, lambda env, _: env.mask.action(env.episode.decision, env.episode.decision.default))
    assert env.episode is not None
    assert env.episode.result().hash == closed.hash


# --- pairs of jobs and machines ------------------------------------------------------------------------------


def pair_env(**changes: Any) -> SchedulingEnv:
    rng = np.random.default_rng(0)
    jobs = 40
    columns = {
        "submit_time": rng.integers(0, 50, jobs), "run_time": rng.integers(1, 90, jobs),
        "requested_time": rng.integers(90, 200, jobs), "nodes": np.ones(jobs),
        "cpus": rng.integers(1, 9, jobs), "gpus": rng.integers(0, 2, jobs),
        "memory": rng.integers(1, 60, jobs) * 10**9,
    }  # fmt: skip
    workload = Workload(columns, resources=("cpus", "gpus", "memory"))
    cluster = Machines.of(2, cpus=8, memory="64 GB") + Machines.of(1, "gpu", cpus=16, gpus=2, memory="128 GB")
    parts: dict[str, Any] = {
        "episodes": Fixed(workload, cluster),
        "policy": Dispatch(External(), slots=5),
        "encoder": RequestsAndMachines(5, 3),
        "mask": JobMachine(5, 3),
        "reward": MinusMeanWait(),
        "stage": "dispatch",
    }
    return SchedulingEnv(**{**parts, **changes})


def test_pairs() -> None:
    env = pair_env()
    total, info, steps = play(env, anything(2))
    assert total == pytest.approx(-info["metrics"]["mean_wait_time"])
    assert 0 < steps <= 40


def test_every_valid_pair_can_be_chosen_and_no_other_is_offered() -> None:
    env = pair_env(skip=False)
    env.reset(seed=0)
    assert env.episode is not None
    while (decision := env.episode.decision) is not None:
        system = decision.system
        valid = env.action_masks().reshape(5, 3)
        for slot, job in enumerate(decision.jobs):  # type: ignore[attr-defined]
            amounts = np.array([job.request.amounts])
            assert valid[slot].tolist() == (system.free >= amounts).all(axis=1).tolist()
        assert not valid[len(decision.jobs) :].any()  # type: ignore[attr-defined]
        for position, action in enumerate(np.flatnonzero(valid).tolist()):
            job, machine = decision.options[position]
            assert env.mask.position(decision, action) == position
            assert env.mask.action(decision, (job, machine)) == action
        env.step(int(np.flatnonzero(valid)[-1]))


# --- episodes ----------------------------------------------------------------------------------------------


def test_windows_with_a_warm_up_begin_where_learning_does() -> None:
    env = order_env(episodes=Windows(LOG, 40, warmup=60))
    env.reset(seed=1)
    assert env.episode is not None
    scenario = env.episode.scenario
    assert len(scenario.workload) == 100
    begin = np.sort(scenario.workload.submit_time)[60]
    assert scenario.learn_from == begin
    assert env.episode.simulation.system.now >= begin
    assert env.episode.decisions == 0


def test_a_window_larger_than_the_log() -> None:
    with pytest.raises(
        UsageError, match=r"windows of 0 \+ 301 jobs need a log of so many.*; lublin-256 has 300"
    ):
        order_env(episodes=Windows(LOG, 301)).reset()


def test_any_of_and_generated() -> None:
    logs = [burst(size, np.random.default_rng(0), machine_size=8) for size in (20, 30)]
    sizes = set()
    env = order_env(episodes=AnyOf(logs))
    for seed in range(10):
        env.reset(seed=seed)
        assert env.episode is not None
        sizes.add(len(env.episode.simulation.workload))
    assert sizes == {20, 30}
    env = order_env(episodes=Generated(lambda rng: burst(25, rng, machine_size=8)))
    assert play(env, first)[1]["metrics"]["makespan"] > 0


def test_machines_do_not_remember_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hpcsimkit.envs.scenario.MANY_NEEDS", 20)
    cluster = Machines.of(2, cpus=1000)

    class Anew(Episodes):
        def sample(self, rng: np.random.Generator) -> Scenario:
            cpus = rng.choice(np.arange(1, 1000), 10, replace=False)
            columns = {
                "submit_time": np.zeros(10),
                "run_time": np.full(10, 5),
                "nodes": np.ones(10),
                "cpus": cpus,
            }
            return Scenario(Workload(columns, resources=("cpus",)), Setup(cluster))

    rng, hashes = np.random.default_rng(0), []
    for scenario in [Anew().sample(rng) for _ in range(9)]:
        hashes.append(scenario.simulation(make("fcfs+easy")).run().hash)
        assert (
            Simulation(scenario.workload, make("fcfs+easy"), Machines.of(2, cpus=1000)).run().hash
            == hashes[-1]
        )
    assert 20 <= len(cluster.needs) < 30
    assert len(set(hashes)) > 1


# --- copies ------------------------------------------------------------------------------------------------

COPIES: dict[str, Any] = {"copied": copy.deepcopy, "pickled": lambda it: pickle.loads(pickle.dumps(it))}


def rest(env: SchedulingEnv, seed: int) -> list[Any]:
    """Play on to the end, and through the next episode; return what is seen."""
    seen: list[Any] = []
    choose = anything(seed)
    for _ in range(2):
        over = False
        while not over:
            observation, reward, terminated, truncated, info = env.step(choose(env, None))
            seen.append((observation.tolist(), reward, terminated, truncated, info))
            over = terminated or truncated
        seen.append(env.reset()[0].tolist())
    return seen


@pytest.mark.parametrize("simulator", ["simpy", "compiled"])
@pytest.mark.parametrize("episodes", [Windows(LOG, 64), Windows(LOG, 40, warmup=20)])
@pytest.mark.parametrize(("way", "steps"), [("copied", 0), ("copied", 9), ("pickled", 9)])
def test_an_environment_is_copied_in_the_middle_of_an_episode(
    way: str, steps: int, episodes: Episodes, simulator: str
) -> None:
    if simulator == "compiled":
        pytest.importorskip("numba")
    env = order_env(episodes=episodes, simulator=simulator, max_steps=30)
    env.reset(seed=7)
    choose = anything(2)
    for _ in range(steps):
        env.step(choose(env, None))
    env.episodes = Windows(LOG, 32)  # the episode that runs is not one of these
    other = COPIES[way](COPIES[way](env))
    assert other.episode is not env.episode and other.reward is not env.reward
    assert other.action_masks().tolist() == env.action_masks().tolist()
    expected = rest(env, 5)
    assert rest(other, 5) == expected
    assert len(expected) > 20


@pytest.mark.parametrize("way", COPIES)
def test_an_environment_is_copied_before_and_after_an_episode(way: str) -> None:
    new = COPIES[way](order_env())
    assert new.episode is None
    assert play(new, anything(1), seed=4) == play(order_env(), anything(1), seed=4)
    over = COPIES[way](new)
    assert over.episode is not None
    with pytest.raises(UsageError, match="the episode is over"):
        over.step(0)
    assert play(over, anything(1), seed=4) == play(order_env(), anything(1), seed=4)


@pytest.mark.parametrize("way", COPIES)
def test_a_run_is_not_copied_between_its_decisions(way: str) -> None:
    run = Simulation(LOG, Pipeline(order=External()))
    copied = COPIES[way](run)
    for each in (run, copied):
        assert each.next_decision() is not None
    with pytest.raises(UsageError, match="a run cannot be copied or pickled between its decisions"):
        COPIES[way](run)
    over = Simulation(LOG, make("fcfs+easy"), simulator="simpy")
    assert COPIES[way](over).run().hash == over.run().hash == COPIES[way](over).result().hash


# --- what goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["encoder", "mask", "reward"])
def test_parts_are_not_exchanged_silently(part: str) -> None:
    env = order_env()
    other = getattr(order_env(), part)
    with pytest.raises(UsageError, match=f"the {part} of an environment stays as it is: make another"):
        setattr(env, part, other)
    env.episodes = Fixed(LOG)  # is asked anew each time
    env.reset(seed=0)
    assert env.episode is not None
    assert env.episode.scenario.workload is LOG
    assert copy.deepcopy(order_env()).reset(seed=3)[0].shape == (SLOTS + 1, 5)


def test_an_invalid_action_counts_as_the_first_valid_one() -> None:
    one, other = order_env(skip=False), order_env(skip=False)
    one.reset(seed=0), other.reset(seed=0)
    assert not one.action_masks()[SLOTS - 1]
    wrong, right = one.step(SLOTS - 1), other.step(int(other.action_masks().argmax()))
    assert wrong[4].pop("invalid") is True
    assert np.array_equal(wrong[0], right[0])
    assert wrong[1:] == right[1:]


@pytest.mark.parametrize("action", [-1, SLOTS, 99, 0.5, "0", None, [0]])
def test_an_action_outside_the_space_is_refused(action: object) -> None:
    env = order_env(skip=False)
    env.reset(seed=0)
    before = env.action_masks()
    with pytest.raises(UsageError, match=rf"step needs a whole number from 0 to {SLOTS - 1}, found"):
        env.step(action)
    assert np.array_equal(env.action_masks(), before), "nothing has happened"
    assert len(env.step(np.array(int(before.argmax())))) == 5


def test_truncation_by_a_limit_of_steps_only() -> None:
    _, info, steps = play(order_env(max_steps=3, skip=False), first)
    assert steps == 3
    assert "metrics" not in info


def test_stepping_before_the_beginning_and_after_the_end() -> None:
    env = order_env()
    with pytest.raises(UsageError, match="reset the environment before the first step"):
        env.step(0)
    play(env, first)
    with pytest.raises(UsageError, match="the episode is over: reset the environment first"):
        env.step(0)


def test_an_episode_without_a_decision() -> None:
    lonely = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    with pytest.raises(UsageError, match="no decision for the order seat"):
        order_env(episodes=Fixed(lonely)).reset()
    with pytest.raises(UsageError, match="no decision for the order seat"):
        SchedulingVecEnv(order_env(episodes=Fixed(lonely)), 2).reset()


class SeesNothingButNaN(QueueWindow):
    def bind(self, system: Any) -> Any:
        def encode(decision: Any, out: Any) -> None:
            out[0, 0] = np.nan

        return encode


class SeesInfinities(QueueWindow):
    def bind(self, system: Any) -> Any:
        def encode(decision: Any, out: Any) -> None:
            out[0, 0], out[0, 1] = np.inf, -np.inf

        return encode


class PaysNaN(MinusMeanWait):
    def take(self, system: Any) -> float:
        return float("nan")


class AllowsNothing(Slots):
    def write(self, decision: Any, out: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"encoder": SeesNothingButNaN(SLOTS)},
            r"SeesNothingButNaN\(slots=8\) sees what is no finite number at ",
        ),
        (
            {"encoder": SeesInfinities(SLOTS)},
            r"SeesInfinities\(slots=8\) sees what is no finite number at Dec",
        ),
        ({"reward": PaysNaN()}, r"PaysNaN\(\) pays nan at t=\d+ s"),
        ({"mask": AllowsNothing(SLOTS)}, r"AllowsNothing\(slots=8\) leaves no action for Decision\('order'"),
        ({"episodes": Fixed(LOG), "encoder": RequestsAndMachines(8, 3)}, "needs 3 machines, found Nodes"),
    ],
)
def test_plug_ins_gone_wrong(changes: dict[str, Encoder | Reward | Mask], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        play(order_env(**changes), first)


def test_render() -> None:
    env = order_env(render_mode="ansi")
    assert env.render() is None
    env.reset(seed=0)
    assert env.render().startswith("t=")
    env.render_mode = "rgb_array"
    picture = env.render()
    assert (picture.shape, picture.dtype) == ((120, 480, 3), np.uint8)
    with pytest.raises(UsageError, match="render_mode needs 'ansi' or 'rgb_array', found 'human'"):
        order_env(render_mode="human")


# --- many at once ------------------------------------------------------------------------------------------


def test_each_episode_of_a_vector_is_that_of_a_single_environment() -> None:
    count, steps = 3, 200
    vector = SchedulingVecEnv(order_env(), count, seed=7)
    observations = vector.reset()
    choices = np.random.default_rng(0)
    history: list[list[tuple[Any, ...]]] = [[] for _ in range(count)]
    for _ in range(steps):
        masks = vector.action_masks()
        actions = np.array([choices.choice(np.flatnonzero(mask)) for mask in masks])
        before = observations
        observations, rewards, over, infos = vector.step(actions)
        for place in range(count):
            history[place].append((before[place], masks[place], actions[place], rewards[place], over[place]))
            if over[place]:
                assert infos[place]["episode"]["l"] > 0
                assert infos[place]["metrics"]["mean_wait_time"] == pytest.approx(
                    -infos[place]["episode"]["r"]
                )
    assert sum(over for steps_of in history for *_, over in steps_of) > 2
    for place, stream in enumerate(np.random.SeedSequence(7).spawn(count)):
        single = order_env()
        single.np_random = np.random.default_rng(stream)
        observation, _ = single.reset()
        for seen, mask, action, reward, over in history[place]:
            assert np.array_equal(observation, seen)
            assert np.array_equal(single.action_masks(), mask)
            observation, earned, terminated, _, _ = single.step(action)
            assert np.float32(earned) == reward
            assert terminated == over
            if terminated:
                observation, _ = single.reset()


def test_a_vector_of_nothing() -> None:
    with pytest.raises(UsageError, match="a count of at least 1, found 0"):
        SchedulingVecEnv(order_env(), 0)


@pytest.mark.parametrize("modules", ["gymnasium, hpcsimkit", "hpcsimkit, gymnasium"])
def test_names_are_registered_in_either_order_of_imports(modules: str) -> None:
    code = f'import {modules}; print(gymnasium.make("hpcsimkit/Order-v0").reset(seed=0)[0].shape)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "(17, 5)\n"), done.stderr


def test_gymnasium_is_not_loaded_with_hpcsimkit() -> None:
    code = 'import hpcsimkit, sys; sys.exit("gymnasium" in sys.modules)'
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SEATS_BY_NAME = (
    *("Order", "Backfill", "Backfiller", "Inspector", "Gate", "Placement", "Preemptor", "Tester", "Dispatch"),
)


@pytest.mark.parametrize("name", SEATS_BY_NAME)
def test_flat_observations_by_name_are_the_others_in_a_row(name: str) -> None:
    env, flat = (gymnasium.make(f"hpcsimkit/{name}{suffix}-v0") for suffix in ("", "Flat"))
    (seen, _), (row, _) = env.reset(seed=3), flat.reset(seed=3)
    for _ in range(20):
        assert row.tolist() == seen.ravel().tolist()
        action = int(np.flatnonzero(env.unwrapped.action_masks())[-1])  # type: ignore[attr-defined]
        (seen, *rest), (row, *others) = env.step(action), flat.step(action)
        assert rest[:3] == others[:3]
        if rest[1]:
            break


@pytest.mark.parametrize("name", ["Order", "Gate", "Preemptor", "Tester"])
def test_vectors_by_name_step_as_single_environments_do(name: str) -> None:
    vector = gymnasium.make_vec(f"hpcsimkit/{name}-v0", num_envs=2, vectorization_mode="vector_entry_point")
    env = gymnasium.make(f"hpcsimkit/{name}-v0")
    seen, _ = vector.reset(seed=5)
    assert seen[0].tolist() == env.reset(seed=5)[0].tolist()
    for _ in range(3):
        seen, rewards, *_ = vector.step(np.zeros(2, dtype=int))
        single, reward, *_ = env.step(0)
        assert seen[0].tolist() == single.tolist()
        assert rewards[0] == reward


def test_options_of_a_name() -> None:
    log = default_workload(np.random.default_rng(2), jobs=80)
    options: dict[str, Any] = {
        "log": log,
        "policy": "sjf+easy",
        "reward": "MinusMeanWait",
        "jobs": 40,
        "slots": 4,
    }
    env: Any = gymnasium.make("hpcsimkit/Order-v0", **options).unwrapped
    assert repr(env.policy) == "Pipeline(order=External(base=SJF()), backfiller=EASY(), window=4)"
    assert (env.reward, env.episodes.jobs, env.encoder) == (MinusMeanWait(), 40, QueueWindow(4))
    env.reset(seed=0)
    assert env.episode.simulation.workload.name == log.name
    own = gymnasium.make(
        "hpcsimkit/Order-v0", encoder=QueueWindow(3), mask=Slots(3), policy=Pipeline(External(), window=3)
    )
    assert own.observation_space.shape == (4, 5)
    with pytest.raises(UsageError, match="unknown policy 'sfj'"):
        gymnasium.make("hpcsimkit/Order-v0", policy="sfj")


def test_a_log_of_a_name_is_a_path_too(tmp_path: Path) -> None:
    write_swf(default_workload(np.random.default_rng(2), jobs=80), tmp_path / "log.swf")
    env: Any = gymnasium.make("hpcsimkit/Order-v0", log=str(tmp_path / "log.swf"), jobs=40).unwrapped
    env.reset(seed=0)
    assert env.episode.simulation.workload.machine_size == 256


@pytest.mark.parametrize("name", [name for name in SEATS_BY_NAME if name not in ("Backfill", "Gate")])
def test_registered_names(name: str) -> None:
    env = gymnasium.make(f"hpcsimkit/{name}-v0")
    observation, _ = env.reset(seed=0)
    assert observation.shape == env.observation_space.shape
    over, steps = False, 0
    while not over:
        action = int(env.unwrapped.action_masks().argmax())  # type: ignore[attr-defined]
        _, _, over, _, info = env.step(action)
        steps += 1
    assert steps > 3
    assert info["metrics"]["mean_wait_time"] > 0
