"""`train-cush` and `teach-cush` as a user types them: small clusters, gone on with, and what is wrong."""

from __future__ import annotations

import csv
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush import evolved, taught, trainer
from hpcsimkit.agents.cush.training import AGENTS
from hpcsimkit.agents.training.workers import Workers
from tests.cli.conftest import CLI

SMALL = ("train-cush", "--nodes", 2, "--out", "out")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few job sets in an epoch, and few candidates of the expert."""
    monkeypatch.setattr(trainer, "CushSettings", partial(trainer.CushSettings, job_sets=2, simulations=4))
    monkeypatch.setattr(taught, "TaughtSettings", partial(taught.TaughtSettings, job_sets=3))
    monkeypatch.setattr(evolved, "EVOLVED", replace(evolved.EVOLVED, population=2, elite=1, episodes=2))


def epochs(folder: Path) -> list[int]:
    with (folder / "curve.csv").open() as file:
        return [int(row["steps"]) for row in csv.DictReader(file)]


def test_a_training_that_is_gone_on_with(cli: CLI, tmp_path: Path) -> None:
    flags = (
        "--fresh",
        "--equal-sets",
        "--rate",
        "3e-5",
        "--style-rate",
        "0.002",
        "--horizon",
        3,
        "--seed",
        4,
    )
    outcome = cli(*SMALL, *flags, "--epochs", 1)
    assert (outcome.code, outcome.err) == (0, "")
    first, second = outcome.out.splitlines()
    assert first.startswith("1 epochs: turnaround ")
    assert second == "agents: out/job_selector.hpcsim, out/policy_selector.hpcsim"
    agents = {seat: Agent.load(tmp_path / "out" / file) for seat, file in AGENTS.items()}
    settings, problem = agents["order"].about["settings"], agents["order"].about["problem"]
    assert (settings["fresh"], settings["equal_sets"]) == (True, True)
    assert (settings["learning_rate"], settings["style_learning_rate"]) == (3e-5, 0.002)
    assert (problem["nodes"], problem["horizon"], agents["order"].about["seed"]) == (2, 3, 4)
    assert "there is a checkpoint already" in cli(*SMALL, *flags, "--epochs", 2).line()
    outcome = cli(*SMALL, *flags, "--epochs", 2, "--resume", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert epochs(tmp_path / "out") == [1, 2]

    before = Agent.load(tmp_path / "out" / AGENTS["order"]).network.tensors
    outcome = cli(*SMALL, *flags, "--epochs", 1, "--resume")
    assert outcome.out.startswith("2 epochs: "), "as many as there are, whatever was asked for"
    after = Agent.load(tmp_path / "out" / AGENTS["order"]).network.tensors
    assert all(np.array_equal(after[name], before[name]) for name in before), "nothing was learned"
    assert "another one's" in cli(*SMALL, "--epochs", 3, "--resume").line()


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (("--nodes", 0), "CuSH: nodes needs a whole number of at least 1, found 0"),
        (("--horizon", 1), "CuSH: horizon needs a whole number of at least 2, found 1"),
        (("--epochs", 0), "CuSH: epochs needs a whole number of at least 1, found 0"),
        (("--rate", 0), "CuSH: learning_rate needs a number above 0, found 0.0"),
        (("--style-rate", "nan"), "CuSH: style_learning_rate needs a number above 0, found nan"),
        (("--seed", -1), "CuSH: seed needs a whole number of at least 0, found -1"),
        (("--system", "frontier"), "frontier"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    cli: CLI, tmp_path: Path, flags: tuple[object, ...], found: str
) -> None:
    given = {"--nodes": 2, "--epochs": 1, "--out": "out", **dict([flags])}
    assert found in cli("train-cush", *(word for flag in given.items() for word in flag)).line()
    assert not (tmp_path / "out").exists()


TAUGHT = ("teach-cush", "--nodes", 2, "--evolve", 1, "--out", "taught")


def test_who_is_taught(cli: CLI, tmp_path: Path) -> None:
    rates = ("--rate", "0.01", "--filter-rate", "0.03", "--style-rate", "0.02")
    flags = ("--horizon", 3, "--seed", 4, *rates, "--system", "summit")
    outcome = cli(*TAUGHT, *flags, "--epochs", 2)
    assert (outcome.code, outcome.err) == (0, "")
    first, second = outcome.out.splitlines()
    assert first.startswith("2 epochs: turnaround ")
    assert second == "agents: taught/job_selector.hpcsim, taught/policy_selector.hpcsim"
    agent, teacher = (
        Agent.load(tmp_path / "taught" / file) for file in (AGENTS["order"], "teacher/last.hpcsim")
    )
    about = agent.about
    assert about is not None
    assert (about["algorithm"], about["seed"], about["problem"]["system"]) == ("cush-taught", 4, "summit")
    names = ("learning_rate", "filter_learning_rate", "style_learning_rate")
    assert [about["settings"][name] for name in names] == [0.01, 0.03, 0.02]
    assert (about["problem"]["horizon"], teacher.encoder.horizon) == (3, 3)
    assert "there is a checkpoint already" in cli(*TAUGHT, *flags, "--epochs", 2).line()
    outcome = cli(*TAUGHT, *flags, "--epochs", 2, "--resume", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert epochs(tmp_path / "taught") == [1, 2]
    assert "another one's" in cli(*TAUGHT, *flags, "--epochs", 3, "--resume").line()


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (("--evolve", 0), "--evolve': Input should be greater than or equal to 1"),
        (("--horizon", 1), "CuSH: horizon needs a whole number of at least 2, found 1"),
        (("--epochs", 0), "CuSH: epochs needs a whole number of at least 1, found 0"),
        (("--rate", "inf"), "CuSH: learning_rate needs a number above 0, found inf"),
        (("--filter-rate", 0), "CuSH: filter_learning_rate needs a number above 0, found 0.0"),
        (("--seed", -1), "CuSH: seed needs a whole number of at least 0, found -1"),
    ],
)
def test_nobody_is_taught_by_what_is_wrong(
    cli: CLI, tmp_path: Path, flags: tuple[object, ...], found: str
) -> None:
    given = {**dict(zip(TAUGHT[1::2], TAUGHT[2::2], strict=True)), **dict([flags])}
    assert found in cli(TAUGHT[0], *(word for flag in given.items() for word in flag)).line()
    assert not (tmp_path / "taught").exists()


def test_a_folder_with_something_in_it_is_refused_before_anything_evolves(cli: CLI, tmp_path: Path) -> None:
    assert cli(*SMALL, "--epochs", 1).code == 0
    line = cli("teach-cush", "--nodes", 2, "--evolve", 1, "--epochs", 1, "--out", "out").line()
    assert "there is a checkpoint already" in line
    assert not (tmp_path / "out" / "teacher").exists()
    assert cli(*TAUGHT, "--epochs", 1).code == 0
    (tmp_path / "taught" / "checkpoint.safetensors").unlink()
    assert "there is a teacher already: go on with it (--resume)" in cli(*TAUGHT, "--epochs", 1).line()
    assert cli(*TAUGHT, "--epochs", 1, "--resume").code == 0


def test_several_processes_do_not_teach(cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Two(Workers):
        count = 2

    monkeypatch.setattr("hpcsimkit.agents.training.workers.joined_workers", lambda: nullcontext(Two()))
    assert "teach-cush is for one process, found 2" in cli(*TAUGHT, "--epochs", 1).line()
    assert not (tmp_path / "taught").exists()
