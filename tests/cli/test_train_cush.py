"""CuSH's trainings from files, as a user starts them: small clusters, resumed runs, and errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush import taught
from hpcsimkit.agents.cush.trainer import CushTrainer
from hpcsimkit.agents.cush.training import AGENTS, GamesTrainer
from hpcsimkit.agents.training.callbacks import Callback
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.trainer import Round
from hpcsimkit.experiments.training.problem_run import ProblemRun
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.io.interruption import Stopped
from tests.cli.conftest import CLI

SMALL = """
seed = 4
[trainer]
algorithm = "cush"
epochs = 2
job_sets = 2
simulations = 4
average_every = 1
learning_rate = 3e-5
[problem]
nodes = 2
horizon = 3
"""
TAUGHT = (
    SMALL.replace('"cush"', '"cush-taught"\nteacher_timesteps = 100')
    .replace("job_sets = 2", "job_sets = 3")
    .replace("simulations = 4", "simulations = 1")
    .replace("nodes = 2", 'nodes = 2\nsystem = "summit"')
)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few candidates of the expert."""
    monkeypatch.setattr(taught, "EVOLVED", replace(taught.EVOLVED, population=2, elite=1, episodes=2))


def put(folder: Path, text: str) -> str:
    (folder / "t.toml").write_text(text)
    return "t.toml"


class Notes(Callback):
    """The steps of each round; an exception after some number of rounds."""

    def __init__(self, most: int = 9) -> None:
        self.steps: list[int] = []
        self.most = most

    def on_update(self, report: Report) -> None:
        self.steps.append(report.steps)
        if len(self.steps) == self.most:
            raise RuntimeError("enough")


def test_callbacks_of_a_run_with_its_own_problem(tmp_path: Path) -> None:
    training = Training.read(tmp_path / put(tmp_path, SMALL))
    with pytest.raises(RuntimeError, match="enough"):
        ProblemRun(training, tmp_path / "out").run(callbacks=[Notes(most=1)])
    notes = Notes()
    assert ProblemRun(training, tmp_path / "out").run(resume=True, callbacks=[notes]) is not None
    assert notes.steps == [1, 2]


def test_two_selectors_from_a_file(cli: CLI, tmp_path: Path) -> None:
    outcome = cli("train", put(tmp_path, SMALL), "--out", "out")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("after 2 epochs") and lines[-1] == "results: out"
    agents = {seat: Agent.load(tmp_path / "out" / file) for seat, file in AGENTS.items()}
    about = agents["order"].about
    assert about is not None
    assert (about["settings"]["learning_rate"], about["problem"]["nodes"], about["seed"]) == (3e-5, 2, 4)
    facts = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert (facts["algorithm"], facts["problem"]["horizon"]) == ("cush", 3)
    assert json.loads((tmp_path / "out" / "provenance.run.json").read_text())["workers"] == 1
    line = cli("train", "t.toml", "--out", "out", "--seed", 5).line()
    assert "seed was 4, is 5; --overwrite replaces them" in line
    outcome = cli("train", "t.toml", "--out", "out")
    assert outcome.code == 0 and outcome.out.startswith("out: this training is finished, nothing is trained")

    again = cli("train", "out/training.toml", "--out", "again", "--quiet")
    assert (again.code, again.out, again.err) == (0, "", "")
    for name in (*AGENTS.values(), "curve.csv", "training.toml"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


@pytest.mark.parametrize("text", [SMALL, TAUGHT])
def test_resumed_bit_for_bit(text: str, cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted after the first epoch, at which there is a checkpoint."""
    file = put(tmp_path, text)
    assert cli("train", file, "--out", "straight").code == 0
    play = GamesTrainer.round

    def stop(self: GamesTrainer) -> Round:
        if self.rounds:
            raise Stopped
        return play(self)

    with monkeypatch.context() as patched:
        patched.setattr(GamesTrainer, "round", stop)
        interrupted = cli("train", file, "--out", "stopped")
    assert "the last checkpoint is kept; to go on: the same command with --resume" in interrupted.err
    assert "--resume goes on with it" in cli("train", file, "--out", "stopped").line()
    assert "trainer.learning_rate was 3e-05, is 0.1" in (
        cli("train", put(tmp_path, text.replace("3e-5", "0.1")), "--out", "stopped", "--resume").line()
    )
    assert cli("train", put(tmp_path, text), "--out", "stopped", "--resume").code == 0
    names = [path.relative_to(tmp_path / "straight") for path in (tmp_path / "straight").rglob("*.*")]
    for name in {*names} - {Path("provenance.run.json")}:
        if name.suffix not in (".png", ".svg"):
            one, other = (tmp_path / folder / name for folder in ("straight", "stopped"))
            assert one.read_bytes() == other.read_bytes(), name


def test_the_expert_is_trained_first(cli: CLI, tmp_path: Path) -> None:
    assert cli("train", put(tmp_path, TAUGHT), "--out", "out", "--quiet").code == 0
    agent, teacher = (
        Agent.load(tmp_path / "out" / file) for file in (AGENTS["order"], "teacher/last.hpcsim")
    )
    assert agent.about is not None
    assert (agent.about["algorithm"], agent.about["problem"]["system"]) == ("cush-taught", "summit")
    assert (agent.about["problem"]["horizon"], teacher.encoder.horizon) == (3, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("nodes = 2", "nodes = 0", "t.toml:11: problem.nodes must be greater than or equal to 1, found 0"),
        ("horizon = 3", "horizon = 1", "problem.horizon must be greater than or equal to 2, found 1"),
        ("nodes = 2", 'system = "frontier"', "problem.system"),
        ("nodes = 2", "node = 2", "problem.node: unknown key; nearest: nodes"),
        ("epochs = 2", "epochs = 0", "t.toml:5: trainer.epochs must be greater than or equal to 1, found 0"),
        ("3e-5", "0.0", "trainer.learning_rate must be greater than 0, found 0.0"),
        ("seed = 4", "seed = -1", "t.toml:2: seed must be greater than or equal to 0, found -1"),
        ("seed = 4", "slots = 4", "t.toml:2: slots: cush has a table [problem] instead"),
        ('"cush"', '"ppo"', "trainer.job_sets: unknown key"),
    ],
)
def test_errors_are_one_line(old: str, new: str, found: str, cli: CLI, tmp_path: Path) -> None:
    assert found in cli("train", put(tmp_path, SMALL.replace(old, new)), "--out", "out").line()
    assert not (tmp_path / "out").exists()


def test_a_problem_is_for_algorithms_that_have_one(cli: CLI, tmp_path: Path) -> None:
    line = cli("train", put(tmp_path, '[trainer]\nalgorithm = "ppo"\n[problem]\nnodes = 2\n')).line()
    assert "problem: ppo learns from jobs, not from a problem of its own" in line


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="torchrun has no gloo over its sockets there")
def test_workers_that_torchrun_starts(tmp_path: Path, root: Path) -> None:
    put(tmp_path, SMALL)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *("-m", "hpcsimkit.run", "train", "t.toml"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(root)}

    def start(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *flags], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )

    without = start()
    assert without.returncode != 0 and "2 workers need the same --out, found none" in without.stderr
    done = start("--out", "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("results: out") == 1
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {*AGENTS.values(), "checkpoint.safetensors", "checkpoint-1.safetensors"} <= names
    assert not any("before" in name or name.startswith(".") for name in names)


def test_progress_has_a_rate(cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of the training reach the progress bar, in epochs."""
    told: list[Report] = []
    train = CushTrainer.train

    def noted(self: CushTrainer, *args: Any, tell: object, **options: Any) -> dict[str, Agent]:
        return train(self, *args, tell=told.append, **options)

    monkeypatch.setattr(CushTrainer, "train", noted)
    assert cli("train", put(tmp_path, SMALL), "--out", "out", "--quiet").code == 0
    assert [(report.steps, report.of) for report in told] == [(1, 2), (2, 2)]
    assert all(report.steps_per_second > 0 for report in told) and CushTrainer.unit == "epochs"
