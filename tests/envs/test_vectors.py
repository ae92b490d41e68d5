"""Many episodes side by side: the same numbers as single environments give, through both interfaces."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space

from hpcsimkit import External, Pipeline, Workload
from hpcsimkit.agents.spaces.episodes import Fixed, Windows
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.standard import dispatch
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.gymnasium_vector import SchedulingVectorEnv
from hpcsimkit.envs.vector_environment import SchedulingVecEnv
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.reservation import EASY
from tests.envs.test_environment import COPIES, LOG, SLOTS, order_env

COUNT = 3


def backfill_env() -> SchedulingEnv:
    """Whose infos name a job, and at the end none."""
    policy = Pipeline(backfiller=External(EASY(), decline=True), window=SLOTS)
    return order_env(
        policy=policy, mask=Slots(SLOTS, decline=True), stage="backfiller", episodes=Windows(LOG, 100)
    )


MAKERS = {
    "order": order_env,
    "cut off": lambda: order_env(max_steps=7),
    "backfill": backfill_env,
    "dispatch": lambda: dispatch(jobs=30),
}


def same(found: Any, expected: Any) -> None:
    """Compare what environments tell, however deep it is nested."""
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            same(found[key], value)
    elif isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        if expected.dtype == object:
            for one, other in zip(found, expected, strict=True):
                same(one, other)
        else:
            assert np.array_equal(found, expected)
    else:
        assert found == expected


def chosen(masks: Any, rng: np.random.Generator) -> np.ndarray:
    """Any valid action; 0 where there is none; now and then one that is not valid."""
    actions = [int(rng.choice(np.flatnonzero(mask))) if mask.any() else 0 for mask in masks]
    return np.where(rng.random(len(actions)) < 0.05, rng.integers(len(masks[0]), size=len(actions)), actions)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_same_as_gymnasiums_own_vector(name: str, mode: str) -> None:
    """Observations, rewards, flags, infos and masks, step after step."""
    make, rng, ends, invalid = MAKERS[name], np.random.default_rng(0), 0, 0
    theirs = SyncVectorEnv([make] * COUNT, autoreset_mode=mode)
    ours = SchedulingVectorEnv(make(), COUNT, autoreset_mode=mode)
    assert ours.metadata == theirs.metadata
    assert ours.observation_space == theirs.observation_space == batch_space(make().observation_space, COUNT)
    assert ours.action_space == theirs.action_space
    assert ours.single_action_space == theirs.single_action_space
    for seed in (5, [1, 2, 3], None):
        same(ours.reset(seed=seed), theirs.reset(seed=seed))  # type: ignore[arg-type]
        for _ in range(120):
            masks = ours.action_masks()
            same(masks, np.array(theirs.call("action_masks")))
            actions = chosen(masks, rng)
            found, expected = ours.step(actions), theirs.step(actions)
            same(found, expected)
            assert found[0] in ours.observation_space
            ends += int((found[2] | found[3]).sum())
            invalid += "invalid" in found[4]
            for infos in expected[4].get("final_info", {}), expected[4]:
                assert ("metrics" in infos) <= bool(expected[2].any())
    assert ends > 3
    assert invalid > 3
    ours.close()


def test_some_episodes_begin_anew() -> None:
    theirs, ours = SyncVectorEnv([order_env] * COUNT), SchedulingVectorEnv(order_env(), COUNT)
    same(ours.reset(seed=5), theirs.reset(seed=5))
    for _ in range(10):
        same(ours.step([0] * COUNT), theirs.step([0] * COUNT))
    some = np.array([True, False, True])
    for seed in (None, 9, [None, 3, 4]):
        found = ours.reset(seed=seed, options={"reset_mask": some})  # type: ignore[arg-type]
        same(found, theirs.reset(seed=seed, options={"reset_mask": some.copy()}))  # type: ignore[arg-type]
        same(ours.step([1] * COUNT), theirs.step([1] * COUNT))


@pytest.mark.parametrize("name", MAKERS)
def test_both_interfaces_give_the_same_numbers(name: str) -> None:
    rng, ends = np.random.default_rng(0), 0
    sb3 = SchedulingVecEnv(MAKERS[name](), COUNT, seed=7)
    gym = SchedulingVectorEnv(MAKERS[name](), COUNT, autoreset_mode=AutoresetMode.SAME_STEP)
    gym._streams = [np.random.default_rng(stream) for stream in np.random.SeedSequence(7).spawn(COUNT)]
    observations = sb3.reset()
    assert np.array_equal(gym.reset()[0], observations)
    for _ in range(200):
        masks = gym.action_masks()
        assert np.array_equal(masks, sb3.action_masks())
        actions = chosen(masks, rng)
        seen, earned, terminated, truncated, infos = gym.step(actions)
        observations, rewards, over, told = sb3.step(actions)
        assert np.array_equal(seen, observations)
        assert np.array_equal(earned.astype(np.float32), rewards)
        assert np.array_equal(terminated | truncated, over)
        for place in np.flatnonzero(over):
            ends += 1
            assert told[place]["TimeLimit.truncated"] == truncated[place]
            assert np.array_equal(told[place]["terminal_observation"], infos["final_obs"][place])
            if terminated[place]:
                final = infos["final_info"]["metrics"]
                assert told[place]["metrics"] == {key: final[key][place] for key in told[place]["metrics"]}
    assert ends > 3


def test_gymnasium_finds_nothing_wrong() -> None:
    """With its own wrapper for vectors that records returns and lengths."""
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(SchedulingVectorEnv(order_env(), COUNT))
    envs.reset(seed=0)
    rewards, lengths, told = np.zeros(COUNT), np.zeros(COUNT, dtype=int), 0
    for _ in range(200):
        _, earned, terminated, truncated, infos = envs.step(np.zeros(COUNT, dtype=int))
        rewards, lengths = rewards + earned, lengths + 1
        for place in np.flatnonzero(terminated | truncated):
            told += 1
            assert infos["episode"]["r"][place] == pytest.approx(rewards[place])
            assert infos["metrics"]["mean_wait_time"][place] == pytest.approx(-rewards[place])
            rewards[place], lengths[place] = 0, -1
    assert told > 3


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"count": 0}, "a count of at least 1, found 0"),
        (
            {"autoreset_mode": "Sometimes"},
            "autoreset_mode needs one of NextStep, SameStep, found 'Sometimes'",
        ),
        ({"autoreset_mode": AutoresetMode.DISABLED}, "autoreset_mode needs one of"),
        ({"seed": [1, 2]}, "3 seeds are needed, found 2"),
        ({"options": {"reset_mask": np.zeros(3, dtype=bool)}}, "reset_mask needs 3 flags, some of them set"),
    ],
)
def test_what_is_not_understood(how: dict[str, Any], message: str) -> None:
    made = {key: how[key] for key in ("count", "autoreset_mode") if key in how}
    asked = {key: how[key] for key in ("seed", "options") if key in how}
    with pytest.raises(UsageError, match=message):
        SchedulingVectorEnv(order_env(), **{"count": COUNT, **made}).reset(**asked)


def test_a_step_before_the_beginning() -> None:
    with pytest.raises(UsageError, match="reset the environment before the first step"):
        SchedulingVectorEnv(order_env(), COUNT).step([0] * COUNT)


# --- episodes without a decision ------------------------------------------------------------------------------


class Sometimes(Fixed):
    """Every third episode has a decision."""

    def __init__(self, workload: Workload, lonely: Workload) -> None:
        super().__init__(workload)
        self.lonely = lonely
        self.drawn = 0

    def sample(self, rng: np.random.Generator) -> Any:
        self.drawn += 1
        return super().sample(rng) if self.drawn % 3 == 0 else Fixed(self.lonely).sample(rng)


def test_episodes_without_a_decision_are_passed_over() -> None:
    lonely = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, name="lonely", machine_size=1)
    episodes = Sometimes(LOG, lonely)
    env = order_env(episodes=episodes, attempts=3)
    for turn in (1, 2):
        env.reset(seed=0)
        assert episodes.drawn == 3 * turn
    with pytest.raises(
        UsageError, match="lonely: 2 episodes in a row have no decision for the order seat; longer ones"
    ):
        order_env(episodes=Sometimes(LOG, lonely), attempts=2).reset()
    with pytest.raises(UsageError, match=r"lonely: an episode has no decision for the order seat$"):
        order_env(episodes=Fixed(lonely)).reset()
    with pytest.raises(UsageError, match="attempts needs a whole number of at least 1, found 0"):
        order_env(attempts=0)


@pytest.mark.parametrize("make", [SchedulingVecEnv, SchedulingVectorEnv])
@pytest.mark.parametrize("way", COPIES)
def test_batches_are_copied_in_the_middle_of_episodes(way: str, make: Any) -> None:
    envs = make(order_env(), COUNT)
    envs.reset()
    for number in range(5):
        envs.step(np.arange(COUNT) * number % 2)
    other = COPIES[way](envs)
    for _ in range(200):
        actions = np.array([mask.argmax() for mask in envs._batch.valid])
        same(other.step(actions), envs.step(actions))
    assert other._batch.totals == envs._batch.totals
