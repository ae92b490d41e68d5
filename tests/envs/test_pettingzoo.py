"""The environment of several seats as PettingZoo's own test wants it, and its rewards."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra [learn]: pip install 'hpcsimkit[learn]'")

from pettingzoo.test import api_test, seed_test

from hpcsimkit import External, Pipeline, default_workload
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanBoundedSlowdown, MinusMeanWait
from hpcsimkit.envs.episode import Player
from hpcsimkit.envs.pettingzoo_aec import SeatsAECEnv
from hpcsimkit.envs.turns import TurnTaking


def env() -> SeatsAECEnv:
    """Three seats, two kinds of rewards, windows with a load that makes jobs wait."""
    log = default_workload(np.random.default_rng(0), jobs=400)
    seats = Pipeline(
        order=External(), inspector=External(), backfiller=External(decline=True), window=4, max_rejections=3
    )
    players = {
        "order": Player(QueueWindow(4), Slots(4), MinusMeanWait(scale=3600)),
        "inspector": Player(InspectorFeatures(), AcceptReject(), MinusMeanBoundedSlowdown()),
        "backfiller": Player(QueueWindow(4), Slots(4, decline=True), MinusMeanWait(scale=3600)),
    }
    return SeatsAECEnv(TurnTaking(Windows(log, 64), seats, players, attempts=100))


@pytest.mark.filterwarnings("ignore::UserWarning")  # no render(); observations are no images
def test_pettingzoo_accepts_it() -> None:
    api_test(env(), num_cycles=200)
    seed_test(env, num_cycles=20)


def test_returns_are_metrics() -> None:
    problem, rng = env(), np.random.default_rng(3)
    problem.reset(seed=5)
    returns = dict.fromkeys(problem.possible_agents, 0.0)
    for agent in problem.agent_iter():
        _, reward, over, _, info = problem.last()
        returns[agent] += reward
        problem.step(None if over else int(rng.choice(info["action_mask"].nonzero()[0])))
    result = problem.turns.episode.result()
    wait = float(result.wait_time.mean()) / 3600
    assert returns["order"] == pytest.approx(-wait)
    assert returns["backfiller"] == pytest.approx(-wait)
    assert returns["inspector"] < -1, "a bounded slowdown is at least 1"


def test_invalid_actions_are_replaced_and_reported() -> None:
    one, other = env(), env()
    for problem, action in ((one, 99), (other, None)):
        problem.reset(seed=5)
        agent = problem.agent_selection
        valid = int(problem.infos[agent]["action_mask"].argmax())
        problem.step(valid if action is None else action)
        assert problem.infos[agent].get("invalid", False) is (action is not None)
    assert one.agent_selection == other.agent_selection
    assert one.observe(one.agent_selection).tolist() == other.observe(other.agent_selection).tolist()
