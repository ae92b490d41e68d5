"""`train` interrupted, and gone on with: by signals, by parts that go wrong on the way, on changed files."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.networks.model_file import read_model
from tests.cli.test_train import TINY, names, tiny, without_rates
from tests.forking import Forked

__all__ = ["tiny"]


def loud() -> None:
    """Say when a round begins, and go on when told; checkpoints are written as ever."""
    from hpcsimkit.agents.training.on_policy import OnPolicyTrainer

    play = OnPolicyTrainer._play

    def told(self: Any) -> Any:
        print("round", flush=True)
        sys.stdin.readline()
        return play(self)

    OnPolicyTrainer._play = told  # type: ignore[method-assign]


def interrupted(process: Forked, after: int, number: int) -> tuple[int | None, str]:
    """Send a signal when so many rounds have begun; returns exit code and standard error."""
    for begun in range(after):
        if begun:
            process.stdin.write("\n")
        assert process.stdout.readline() == "round\n", process.communicate()
    process.send_signal(number)
    process.stdin.close()
    _, err = process.communicate()
    return process.returncode, err


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_nothing_is_lost_by_an_interruption(cli, start, tiny, tmp_path, number) -> None:
    """Long before a checkpoint is due: the round at hand is in it, and what follows is the same bit for bit."""
    flags = ["--steps", "1280", "-q", "--out"]
    assert cli("train", tiny, *flags, "straight") == (0, "", "")
    train = ["train", "tiny.toml", *flags, "stopped"]
    code, err = interrupted(start(*train, before=loud), 5, number)
    assert code == 128 + number
    assert err == (
        "hpcsimkit: stopped; the last checkpoint is kept; to go on: the same command with --resume --out stopped\n"
    )
    partial = tmp_path / "stopped.partial"
    played = len(without_rates(partial))
    assert 5 <= played < 10
    assert read_model(partial / "checkpoint.safetensors")[1]["rounds"] == played
    assert not list(partial.glob(".*.tmp"))

    code, err = interrupted(start(*train, "--resume", before=loud), 2, number)
    assert code == 128 + number
    assert played + 2 <= len(without_rates(partial)) < 10
    assert cli("train", tiny, *flags, "stopped", "--resume") == (0, "", "")
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    assert without_rates(straight) == without_rates(stopped)
    for file in ("best.hpcsim", "last.hpcsim", "training.toml"):
        assert (straight / file).read_bytes() == (stopped / file).read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_two_trainings_in_one_folder(cli, start, tiny, tmp_path) -> None:
    train = ["train", "tiny.toml", "--steps", "1000000", "-q", "--out", "agent"]
    process = start(*train, before=loud)
    process.stdout.readline()
    for flags in ([], ["--resume"]):
        line = cli(*train, *flags).line()
        assert line.startswith(
            f"{tmp_path}/agent.partial: another run is writing these results now (process "
        )
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_replacement_is_resumed(cli, monkeypatch, tmp_path) -> None:
    """An interrupted training beside the finished one that it shall replace."""
    (tmp_path / "t.toml").write_text(TINY)
    train = ("train", "t.toml", "--out", "agent", "-q")
    assert cli(*train) == (0, "", "")
    stops(cli, monkeypatch, tmp_path, "--overwrite")
    assert cli(*train).line().startswith(f"{tmp_path}/agent.partial: an interrupted training is there")
    assert cli(*train, "--resume") == (0, "", "")
    assert json.loads((tmp_path / "agent" / "provenance.run.json").read_text())["resumed"]
    assert not (tmp_path / "agent.partial").exists()


# --- files that are not what they were ---------------------------------------------------------------------


OF_FILES = TINY[TINY.index("[trainer]") :]


@pytest.mark.parametrize(
    ("head", "changed"),
    [
        ('logs = ["a.swf", "b.swf"]\n', "b"),
        ('logs = ["a.swf", "b.swf"]\n', "c"),
        ('log = "a.swf"\n', "a"),
    ],
)
def test_a_changed_log(cli, tmp_path, monkeypatch, head, changed) -> None:
    for name, seed in (("a", 1), ("b", 2), ("c", 3)):
        flags = ["--nodes", 16, "--jobs", 200, "--load", 1.1, "--seed", seed]
        assert cli("generate", "lublin", *flags, "-o", f"{name}.swf", "-q").code == 0
    (tmp_path / "t.toml").write_text(head + OF_FILES + 'log = "c.swf"\n')
    stops(cli, monkeypatch, tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "agent.partial").iterdir()}

    file = tmp_path / f"{changed}.swf"
    text = file.read_text()
    file.write_text(text.replace("1 ", "1  ", 1) + "\n")
    line = cli("train", "t.toml", "--out", "agent", "--resume", "-q").line()
    assert line == (
        f"{file}: the file has changed since the interrupted training in {tmp_path}/agent.partial began; "
        "choose another --out"
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "agent.partial").iterdir()} == before
    line = cli("train", "agent.partial/training.toml", "--out", "other", "-q").line()
    assert line.startswith(f"{file}: a text with SHA-256 ")
    file.write_text(text)
    assert cli("train", "t.toml", "--out", "agent", "--resume", "-q") == (0, "", "")
    assert cli("train", "agent/training.toml", "--out", "again", "-q") == (0, "", "")
    assert without_rates(tmp_path / "agent") == without_rates(tmp_path / "again")


def stops(cli: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, *flags: str) -> None:
    """Train until the second round is over, and leave a checkpoint."""
    from hpcsimkit.agents.training.on_policy import OnPolicyTrainer

    learn, turns = OnPolicyTrainer.round, iter(range(99))

    def interrupted_once(self: Any) -> Any:
        if next(turns) == 1:
            signal.raise_signal(signal.SIGINT)
        return learn(self)

    with monkeypatch.context() as patch:
        patch.setattr(OnPolicyTrainer, "round", interrupted_once)
        assert cli("train", "t.toml", "--out", "agent", "-q", *flags).code == 130
    assert len(without_rates(folder / "agent.partial")) == 2


def test_hashes_need_their_logs(cli, tmp_path) -> None:
    (tmp_path / "t.toml").write_text("logs = ['a', 'b']\nlogs_sha256 = ['c']\n")
    assert cli("train", "t.toml").line() == "t.toml: 'logs_sha256' needs one for each of 'logs'"


# --- parts that go wrong on the way --------------------------------------------------------------------------

PARTS = """
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
import hpcsimkit.agents.training.trainer as trainer

trainer.SECONDS_BETWEEN_CHECKPOINTS = 0.0
calls = 0


def now(limit=300):
    global calls
    calls += 1
    return calls > limit


class SeesNaN(QueueWindow):
    def bind(self, system):
        encode = super().bind(system)

        def late(decision, out):
            encode(decision, out)
            if now():
                out[0, 0] = float("nan")

        return late


class PaysNaN(MinusMeanWait):
    def take(self, system):
        return float("nan") if now() else super().take(system)


class PaysInfinitely(MinusMeanWait):
    def take(self, system):
        return -float("inf") if now() else super().take(system)


class AllowsNothing(Slots):
    def write(self, decision, out):
        if not now(1600):  # chance is asked first  # chance is asked first  # chance is asked first
            super().write(decision, out)
"""


@pytest.mark.parametrize(
    ("part", "name", "message"),
    [
        ("encoder", "SeesNaN", "SeesNaN(slots=16) sees what is no finite number at Decision('order', t="),
        ("reward", "PaysNaN", "PaysNaN() pays nan at t="),
        ("reward", "PaysInfinitely", "PaysInfinitely() pays -inf at t="),
        ("mask", "AllowsNothing", "AllowsNothing(slots=16) leaves no action for Decision('order', t="),
    ],
)
def test_parts_that_go_wrong_on_the_way(cli, tiny, tmp_path, monkeypatch, part, name, message) -> None:
    """One line, exit code 2, and the checkpoint before it is there to go on from once the part is mended."""
    from hpcsimkit.agents.training import trainer

    monkeypatch.setattr(trainer, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    module = f"parts_{name.lower()}"
    (tmp_path / f"{module}.py").write_text(PARTS)
    tiny.write_text(TINY + f'[{part}]\nname = "{module}:{name}"\n')
    flags = ("--out", "agent", "--steps", 2000, "--allow-code", module, "-q")
    line = cli("train", tiny, *flags).line()
    assert message in line
    assert line.endswith(
        "; the last checkpoint is kept; to go on: the same command with --resume --out agent"
    )
    assert 1 <= len(without_rates(tmp_path / "agent.partial")) < 15
    sys.modules[module].calls = -(10**9)  # mended
    assert cli("train", tiny, *flags, "--resume") == (0, "", "")


@pytest.mark.parametrize("algorithm", ["ppo", "maskable-ppo"])
def test_nothing_to_decide(cli, tmp_path, algorithm) -> None:
    rows = "\n".join(f"{n} {100 * n} -1 10 4 -1 -1 4 10" + " -1" * 9 for n in range(1, 400))
    (tmp_path / "idle.swf").write_text(f"; MaxProcs: 8\n{rows}\n")
    (tmp_path / "t.toml").write_text(
        f'log = "idle.swf"\n[episodes]\njobs = 3\n[trainer]\nalgorithm = "{algorithm}"\n'
    )
    line = cli("train", "t.toml", "--out", "agent", "-q").line()
    assert line == (
        "idle: 1000 episodes in a row have no decision for the order seat; longer ones, or a higher load "
        "(load_factor), may have some"
    )
    assert names(tmp_path) == ["idle.swf", "t.toml"]


def test_a_model_whose_encoder_is_another(cli, tiny, tmp_path) -> None:
    """The file says one encoder, the network was made for another: told when it is loaded, by each command."""
    from hpcsimkit.agents.networks.model_file import write_model

    assert cli("train", tiny, "--out", "agent", "-q") == (0, "", "")
    tensors, about = read_model(tmp_path / "agent" / "best.hpcsim")
    about["encoder"]["parameters"]["slots"] = 20
    write_model(
        tmp_path / "odd.hpcsim", tensors, {key: about[key] for key in about if key not in ("format", "kit")}
    )
    for command in (["evaluate", "odd.hpcsim"], ["compare", "-p", "fcfs+agent:odd.hpcsim"]):
        line = cli(*command).line()
        assert line.removeprefix("-p: ").startswith("odd.hpcsim: Dense(")
        assert line.endswith(" reads 85 numbers; QueueWindow(slots=20) gives 105")
