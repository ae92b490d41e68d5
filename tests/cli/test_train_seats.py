"""Agents on several seats of one pipeline, trained together from a file."""

from __future__ import annotations

import csv
import signal
import sys
from pathlib import Path

import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training.together import Together
from hpcsimkit.experiments.training.training import Training
from tests.cli.conftest import CLI

FILE = """
stage = "order"
policy = "sjf+easy"
slots = 4
[generate]
nodes = 8
jobs = 80
[episodes]
jobs = 10
[validation]
windows = 1
every = 1
[reward]
name = "MinusMeanWait"
[trainer]
algorithm = "together"
rounds = 2
episodes = 2
n_epochs = 2
hidden = [8]
kind = "slots"
[seats.inspector.reward]
name = "MinusMeanBoundedSlowdown"
[seats.inspector.trainer]
kind = "dense"
hidden = [6, 6]
"""


def put(folder: Path, text: str = FILE) -> str:
    (folder / "t.toml").write_text(text)
    return "t.toml"


def test_an_order_and_an_inspector(cli: CLI, tmp_path: Path) -> None:
    outcome = cli("train", put(tmp_path), "--out", "out")
    assert (outcome.code, outcome.err) == (0, "")
    assert "sjf+easy" in outcome.out and "random agent" in outcome.out
    agents = {seat: Agent.load(tmp_path / "out" / f"{seat}-best.hpcsim") for seat in ("order", "inspector")}
    assert {seat: agent.stage for seat, agent in agents.items()} == {seat: seat for seat in agents}
    rewards = [agent.trained["reward"].partition("(")[0] for agent in agents.values()]
    assert rewards == ["MinusMeanWait", "MinusMeanBoundedSlowdown"]
    settings = [(agent.about or {})["settings"] for agent in agents.values()]
    assert [(each["kind"], each["hidden"]) for each in settings] == [("slots", [8]), ("dense", [6, 6])]
    with (tmp_path / "out" / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["steps"]) for row in rows] == [2, 4]
    assert all(float(row[name]) < 0 for row in rows for name in ("reward", "inspector", "validation"))

    policy = "agent:out/order-best.hpcsim+agent:out/inspector-best.hpcsim+easy"
    compared = cli("compare", "--nodes", 8, "--jobs", 20, "-p", policy, "-p", "fcfs+easy", "--no-report")
    assert (compared.code, compared.err) == (0, "")
    again = cli("train", "out/training.toml", "--out", "again", "--quiet")
    assert (again.code, again.err) == (0, "")
    for name in ("order-last.hpcsim", "inspector-last.hpcsim", "curve.csv", "training.toml"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_resumed_bit_for_bit(cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path)
    assert cli("train", file, "--out", "straight", "-q").code == 0
    with monkeypatch.context() as patched:
        patched.setattr(Together, "keep", lambda self, folder: signal.raise_signal(signal.SIGTERM))
        assert "to go on: the same command with --resume" in cli("train", file, "--out", "stopped").err
    assert cli("train", file, "--out", "stopped", "--resume", "-q").code == 0
    for name in ("order-best.hpcsim", "order-last.hpcsim", "inspector-last.hpcsim", "curve.csv"):
        one, other = (tmp_path / folder / name for folder in ("straight", "stopped"))
        assert one.read_bytes() == other.read_bytes(), name


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    training = Training.read(tmp_path / put(tmp_path))
    (tmp_path / "saved.toml").write_text(training.saved())
    again = Training.read(tmp_path / "saved.toml")
    assert again.open_policy() == training.open_policy()
    for stage, seat in training.of_seats.items():
        assert repr(again.of_seats[stage].environment_parts) == repr(seat.environment_parts)
        settings = vars(again.of_seats[stage].trainer_part.settings)
        assert settings == vars(seat.trainer_part.settings)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ('"together"', '"a2c"', "trainer.rounds: unknown key"),
        ('"together"\nrounds = 2', '"ppo"', "t.toml:16: trainer.algorithm: ppo needs no further seats"),
        ("rounds = 2", "rounds = 0", "t.toml:17: trainer.rounds must be greater than or equal to 1, found 0"),
        ("[6, 6]", "[6, 0]", "seats.inspector.trainer.hidden[1] must be greater than or equal to 1, found 0"),
        ("seats.inspector.reward", "seats.order.reward", "seats.order: other seats of a pipeline"),
        ("seats.inspector.reward", "seats.inspector.rewards", "seats.inspector.rewards: other seats of"),
        (
            '[seats.inspector.reward]\nname = "Minus',
            '[seats.inspector]\nreward = "Minus',
            "seats.inspector.reward",
        ),
        ("MinusMeanBoundedSlowdown", "Minus", "seats.inspector.reward.name: unknown reward 'Minus'"),
    ],
)
def test_errors_are_one_line(old: str, new: str, found: str, cli: CLI, tmp_path: Path) -> None:
    assert found in cli("train", put(tmp_path, FILE.replace(old, new)), "--out", "out").line()
    assert not (tmp_path / "out").exists()


def test_together_needs_further_seats(cli: CLI, tmp_path: Path) -> None:
    line = cli("train", put(tmp_path, '[trainer]\nalgorithm = "together"\n')).line()
    assert "t.toml:2: trainer.algorithm: together needs further seats, [seats.NAME]" in line
