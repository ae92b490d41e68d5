"""Algorithms of users: found by name with consent, trained, saved, and refused with one line."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training.catalogue import TRAINERS
from hpcsimkit.io import catalogue
from tests.cli.conftest import CLI

MINE = """
from dataclasses import dataclass

from hpcsimkit.agents.ranges import Share
from hpcsimkit.agents.training.a2c import A2C, A2CSettings
from hpcsimkit.agents.training.on_policy import OnPolicyTrainer, Settings
from hpcsimkit.agents.training.trainer import Trainer

print("mine is imported")


@dataclass(frozen=True)
class MineSettings(A2CSettings):
    mix: Share = 0.0


class Mine(A2C):
    algorithm = "mine"
    settings: MineSettings

    def weights(self, batch):
        normal = super().weights(batch)
        return self.settings.mix * batch.returns + (1 - self.settings.mix) * normal


class Bare(Trainer):
    pass


class Incomplete(OnPolicyTrainer):
    settings: Settings


class Other:
    pass
"""

FILE = """
slots = 4
[generate]
nodes = 8
jobs = 80
[episodes]
jobs = 8
[validation]
windows = 1
[trainer]
algorithm = "{algorithm}"
total_timesteps = 128
episodes = 2
n_steps = 16
"""


def put(folder: Path, algorithm: str, more: str = "") -> None:
    (folder / "mine.py").write_text(MINE)
    (folder / "t.toml").write_text(FILE.format(algorithm=algorithm) + more)


@pytest.mark.parametrize("name", ["mine:Mine", "mine.py:Mine"])
def test_trained_with_consent(name: str, cli: CLI, tmp_path: Path) -> None:
    put(tmp_path, name, "mix = 0.5\n")
    code = name.partition(":")[0]
    refused = cli("train", "t.toml", "--out", "out")
    assert f"t.toml:11: trainer.algorithm: {name!r} is code that is not the kit's own" in refused.line()
    assert "imported" not in refused.out and not (tmp_path / "out").exists()
    assert cli("train", "t.toml", "--out", "out", "--quiet", "--allow-code", code).code == 0
    agent = Agent.load(tmp_path / "out" / "last.hpcsim")
    assert agent.about is not None
    assert (agent.about["algorithm"], agent.about["settings"]["mix"]) == ("mine", 0.5)
    again = cli("train", "out/training.toml", "--out", "again", "--quiet", "--allow-code", code)
    assert (again.code, again.err) == (0, "")
    assert Agent.load(tmp_path / "again" / "last.hpcsim").network == agent.network


def test_without_a_change_it_is_the_algorithm_that_it_derives_from(cli: CLI, tmp_path: Path) -> None:
    networks = []
    for name in ("mine:Mine", "a2c"):
        put(tmp_path, name)
        assert cli("train", "t.toml", "--out", name[:4], "-q", "--allow-code", "mine").code == 0
        networks.append(Agent.load(tmp_path / name[:4] / "last.hpcsim").network)
    assert all(
        np.array_equal(networks[0].tensors[name], networks[1].tensors[name]) for name in networks[0].tensors
    )


@pytest.mark.parametrize(
    ("name", "more", "found"),
    [
        ("mine:Mine", "mix = 1.5", "t.toml:15: trainer.mix must be less than or equal to 1, found 1.5"),
        ("mine:Mine", "mixed = 1.5", "t.toml:15: trainer.mixed: unknown key; nearest: mix"),
        ("mine:Other", "", "trainer.algorithm: 'mine:Other' needs a subclass of Trainer, found <class"),
        ("mine:Bare", "", "'mine:Bare' needs an annotation settings with a dataclass"),
        ("mine:Incomplete", "", "trainer.algorithm: 'mine:Incomplete' is incomplete; methods needed: learn"),
        ("mine:Missing", "", "trainer.algorithm: 'mine:Missing': mine has no 'Missing'"),
        ("pppo", "", "trainer.algorithm: unknown algorithm 'pppo'; nearest: ppo"),
    ],
)
def test_errors_are_one_line(name: str, more: str, found: str, cli: CLI, tmp_path: Path) -> None:
    put(tmp_path, name, more + "\n")
    assert found in cli("train", "t.toml", "--out", "out", "--allow-code", "mine").line()
    assert not (tmp_path / "out").exists()


def test_an_installed_algorithm(cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("theirs", "hpcsimkit.agents.training.a2c:A2C", TRAINERS.group)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point] * (group == TRAINERS.group))
    put(tmp_path, "theirs")
    assert cli("train", "t.toml", "--out", "out", "--quiet").code == 0
    agent = Agent.load(tmp_path / "out" / "last.hpcsim")
    assert agent.about is not None and agent.about["algorithm"] == "a2c"
