"""Commands refuse impossible schedules of a user's policy with one line, and leave no results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.errors import ImpossibleScheduleError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.workloads import default_workload
from tests.cli.conftest import CLI

MINE = """
from hpcsimkit import Order, Policy


class Free(Policy):
    def schedule(self, system):
        system.free = 10**9
        for job in list(system.queue):
            system.start(job)


class Now(Policy):
    def schedule(self, system):
        system.now = 0
        for job in list(system.queue):
            if system.fits(job):
                system.start(job)


class Clears(Policy):
    def schedule(self, system):
        system.queue.jobs.clear()


class Large(Order):
    '''An order that makes the machine larger by a quarter.'''

    def reset(self, system):
        self._system = system

    def key(self, job):
        if job.index == 9:
            self._system.free += self._system.cluster.size // 4
        return 0


class Locked(Policy):
    def __init__(self):
        import threading

        self._lock = threading.Lock()
"""

CASES = [
    ("Free", r"job \d+ starts at t=\d+ s, when \d+ nodes are in use, of \d+"),
    ("Now", r"job \d+ starts at t=0 s, before it is submitted at t=\d+ s"),
    ("Clears", r"job \d+, submitted at t=\d+ s, was neither started nor rejected"),
    ("Large", r"job \d+ starts at t=\d+ s, when \d+ nodes are in use, of \d+"),
]


@pytest.fixture(autouse=True)
def mine(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)


@pytest.mark.parametrize(("name", "message"), CASES)
def test_compare(cli: CLI, name: str, message: str, tmp_path: Path) -> None:
    outcome = cli("compare", "--jobs", 200, "--load-factor", 2, "-p", f"mine.py:{name}", "--out", "out")
    line = outcome.line()
    assert re.fullmatch(f"mine.py:{name}: impossible schedule: {message}", line), line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "message"), CASES)
def test_check(cli: CLI, name: str, message: str) -> None:
    line = cli("check", f"mine.py:{name}").line()
    assert f"{name}() fails" in line.replace("Pipeline(order=Large())", "Large()")
    assert re.search(f"impossible schedule: {message}; on Workload", line), line


def test_check_of_a_policy_that_cannot_be_copied(cli: CLI) -> None:
    assert cli("check", "mine.py:Locked").line() == (
        "Locked() fails 'parameters': a copy of Locked cannot be made: "
        "TypeError: cannot pickle '_thread.lock' object"
    )


def test_sweep(cli: CLI) -> None:
    outcome = cli("sweep", "--jobs", 100, "-p", "mine.py:Clears", "--axis", "seed=1,2", "--out", "out")
    assert (outcome.code, outcome.err) == (3, "hpcsimkit: all 2 cells failed; reasons are in out\n")
    assert "mine.py:Clears: impossible schedule: job 1, submitted at t=" in outcome.out


ROW = {"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)}


def test_evaluate(cli: CLI, tmp_path: Path) -> None:
    about = {"training": {"policy": "fcfs+easy", "metric": "mean_wait_time"}}
    Agent(QueueWindow(8), Slots(8), SlotScores(ROW), "order", about=about).save(tmp_path / "a.hpcsim")
    command = ("evaluate", "a.hpcsim", "--sequences", 2, "--jobs", 100, "--out", "out", "-p", "mine.py:Large")
    cli("generate", "lublin", "--nodes", 16, "--jobs", 200, "--load", 2, "-o", "x.swf", "-q")
    assert cli(*command, "x.swf").line().startswith("mine.py:Large: impossible schedule: job ")
    assert not (tmp_path / "out").exists()


TRAINING = """
stage = "backfiller"
policy = "mine.py:Large+easy"
slots = 4
[generate]
nodes = 8
jobs = 400
load = 2.0
[episodes]
jobs = 40
[validation]
windows = 1
[trainer]
algorithm = "ppo"
total_timesteps = 128
episodes = 2
n_steps = 16
"""


def test_train(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(TRAINING)
    line = cli("train", "t.toml", "--out", "out", "-q", "--allow-code", "mine.py").line()
    assert "impossible schedule: job " in line
    assert not (tmp_path / "out" / "last.hpcsim").exists()


def test_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever plays: the last step of the episode fails."""
    monkeypatch.chdir(tmp_path)
    large = make("mine.py:Large")
    assert isinstance(large, Pipeline)
    jobs = default_workload(np.random.default_rng(1), jobs=100, load=2.0)
    policy = Pipeline(large.order, backfiller=External())
    env = SchedulingEnv(Fixed(jobs), policy, QueueWindow(4), Slots(4), MinusMeanWait(), stage="backfiller")
    env.reset(seed=1)
    with pytest.raises(ImpossibleScheduleError, match="nodes are in use, of 256"):
        play_on(env)


def play_on(env: SchedulingEnv) -> None:
    """Play an episode to its end."""
    while not env.step(0)[2]:
        pass
