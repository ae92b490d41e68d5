"""Several seats learned at once: turns, rewards that add up for each player, clear errors."""

from __future__ import annotations

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, Workload, make
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Fixed, Windows
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown, MinusMeanWait
from hpcsimkit.envs.episode import Player
from hpcsimkit.envs.turns import TurnTaking
from hpcsimkit.errors import UsageError
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(3), jobs=300, load=1.2)


def table(episodes: object = None, **how: object) -> TurnTaking:
    policy = Pipeline(order=External(SJF()), backfiller=External(EASY(), decline=True), window=6)
    players = {
        "order": Player(QueueWindow(6), Slots(6), MinusMeanWait()),
        "backfiller": Player(QueueWindow(6), Slots(6, decline=True), MinusMeanBoundedSlowdown()),
    }
    return TurnTaking(episodes or Fixed(LOG), policy, players, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_each_players_rewards_add_up_to_his_metric(seed: int, skip: bool) -> None:
    turns, rng = table(skip=skip), np.random.default_rng(seed)
    turns.reset(seed=seed)
    sums, count = dict.fromkeys(turns.possible_agents, 0.0), dict.fromkeys(turns.possible_agents, 0)
    for stage in turns.agent_iter():
        _, reward, terminated, truncated, info = turns.last()
        sums[stage] += reward
        count[stage] += 1
        assert not truncated
        action = None if terminated else int(rng.choice(np.flatnonzero(info["action_mask"])))
        turns.step(action)
    result = turns.episode.result()
    assert min(count.values()) > 5
    assert sums["order"] == pytest.approx(-result.wait_time.mean())
    assert sums["backfiller"] == pytest.approx(-result.bounded_slowdown().mean())


def test_answering_like_the_heuristics_gives_their_schedule() -> None:
    turns = table()
    turns.reset(seed=0)
    for _ in turns.agent_iter():
        decision = turns.episode.decision
        turns.step(None if decision is None else turns.episode.player.mask.action(decision, decision.default))
    assert turns.episode.result().hash == Simulation(LOG, make("sjf+easy+window(6)")).run().hash


def test_same_seed_same_episode() -> None:
    firsts = []
    for seed in (1, 1, 2):
        turns = table(Windows(LOG, 64, warmup=20))
        turns.reset(seed=seed)
        firsts.append(turns.episode.scenario.workload.hash)
    assert firsts[0] == firsts[1] != firsts[2]


def test_wrong_use() -> None:
    shared = MinusMeanWait()
    player = Player(QueueWindow(6), Slots(6), shared)
    with pytest.raises(UsageError, match="each player needs a reward of its own"):
        TurnTaking(Fixed(LOG), Pipeline(order=External()), {"order": player, "backfiller": player})
    turns = table()
    with pytest.raises(UsageError, match="the episode is over: reset first"):
        turns.step(0)
    turns.reset(seed=0)
    with pytest.raises(UsageError, match=r"the (order|backfiller) seat needs an action, found None"):
        turns.step(None)
    lonely = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    with pytest.raises(UsageError, match="an episode has no decision to take"):
        table(Fixed(lonely)).reset()
