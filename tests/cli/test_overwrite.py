"""Finished results of other settings are replaced only after consent, whatever the command."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CLI
from tests.cli.test_train import TINY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths in messages")

COMPARE = ("compare", "--jobs", 50, "-p", "fcfs+easy", "--no-report", "-q", "--out", "out")


def contents(folder: Path) -> dict[str, bytes]:
    """All files, except for those of times and machines."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(".run.json"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def files(folder: Path) -> dict[str, bytes]:
    """All files without records and pictures."""
    return {name: text for name, text in contents(folder).items() if name.endswith((".csv", ".txt"))}


def answered(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A terminal with an answer typed in."""
    terminal = io.StringIO(text)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_another_seed_is_refused_and_the_same_command_is_not(cli: CLI, tmp_path: Path) -> None:
    assert cli(*COMPARE) == (0, "", "")
    first = contents(tmp_path / "out")
    line = "results of other settings are there: seed was 0, is 2; --overwrite replaces them, another --out"
    assert cli(*COMPARE, "--seed", 2).line() == f"{tmp_path}/out: {line} keeps them"
    assert contents(tmp_path / "out") == first
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing is left of the refused run"
    assert cli(*COMPARE) == (0, "", "")
    assert cli(*COMPARE, "--workers", 2) == (0, "", ""), "the same results"
    assert contents(tmp_path / "out") == first
    assert cli(*COMPARE, "--seed", 2, "--overwrite") == (0, "", "")
    assert contents(tmp_path / "out") != first
    assert "seed was 2, is 0" in cli(*COMPARE).line()


def test_differences_are_named(cli: CLI, log: Path, tmp_path: Path) -> None:
    words = ("compare", log, "-q", "--no-report", "--out", "out", "-p", "fcfs")
    assert cli(*words).code == 0
    line = cli(*words, "-p", "sjf", "--walltime", "kill", "--load-factor", 2, "--seed", 1).line()
    assert "walltime was " in line and "and 1 more" in line
    assert "policies was fcfs, is fcfs, sjf" in cli(*words, "-p", "sjf").line()
    log.write_text(log.read_text().replace(" 50 ", " 51 "))
    assert "log was tiny.swf (" in cli(*words).line()
    (tmp_path / "out" / "provenance.json").write_text("{}")
    assert "there: not recorded there; --overwrite" in cli(*words).line()


QUICK = {
    "predict": ("predict", "tiny.swf", "--predictor", "requested"),
    "explain": ("explain", "sjf+hold-unfit", "tiny.swf"),
    "validate": ("validate", "recorded.swf"),
    "advise": ("advise", "tiny.swf", "--futures", "2", "--what-if", "time=9"),
    "what-if": ("what-if", "tiny.swf", "--set", "nodes+=1"),
}
"""Commands that write a few files beside others."""


@pytest.mark.parametrize("name", QUICK)
def test_quick_commands_replace_files_of_other_settings_only_if_told(
    name: str, cli: CLI, log: Path, tmp_path: Path
) -> None:
    assert cli("compare", log, "-p", "fcfs", "-q", "--no-report", "--out", "c").code == 0
    (tmp_path / "c" / "schedules" / "fcfs.swf").rename(tmp_path / "recorded.swf")
    words = (*QUICK[name], "-q", "--out", "out")
    assert cli(*words) == (0, "", "")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    first = files(tmp_path / "out")
    assert cli(*words) == (0, "", ""), "the same again"
    assert (
        "jobs was not set, is 2; --overwrite replaces them, another --out" in cli(*words, "--jobs", 2).line()
    )
    assert files(tmp_path / "out") == first
    assert cli(*words, "--jobs", 2, "--overwrite") == (0, "", "")
    assert files(tmp_path / "out").keys() == first.keys()
    assert files(tmp_path / "out") != first
    out = tmp_path / "out"
    (record,) = {*out.glob("*.json")} - {*out.glob("*.run.json"), out / "windows.json"}
    assert json.loads(record.read_text())["settings"]["jobs"] == 2
    record.unlink()
    assert "there: not recorded there; --overwrite" in cli(*words).line()


def test_without_a_folder_each_setting_has_its_own(cli: CLI, log: Path, tmp_path: Path) -> None:
    words = ("what-if", log, "--set")
    for change, place in (
        ("nodes+=1", "tiny-what-if"),
        ("nodes+=2", "tiny-what-if-2"),
        ("nodes+=1", "tiny-what-if"),
    ):
        assert cli(*words, change).out.splitlines()[-1] == f"results: results/{place}/what-if.png"


def test_code_that_changed_under_the_same_name(cli: CLI, log: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from hpcsimkit import Order\n\nclass Mine(Order):\n    def key(self, job):\n        return job.id\n"
    )
    words = ("compare", str(log), "-p", "mine.py:Mine", "-q", "--no-report", "--out", "out")
    assert cli(*words) == cli(*words) == (0, "", "")
    mine.write_text(mine.read_text().replace("job.id", "-job.id"))
    line = cli(*words).line()
    assert "there: code was mine.py (" in line and "; --overwrite replaces them" in line
    assert cli(*words, "--overwrite").code == 0


@pytest.mark.parametrize(
    ("answer", "replaced"), [("y\n", True), ("yes\n", True), ("n\n", False), ("", False)]
)
def test_on_a_terminal_it_is_asked(
    answer: str, replaced: bool, cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli(*COMPARE).code == 0
    first = contents(tmp_path / "out")
    answered(monkeypatch, answer)
    outcome = cli(*COMPARE, "--seed", 2)
    question = f"hpcsimkit: {tmp_path}/out: results of other settings are there: seed was 0, is 2; replace"
    assert outcome.err.startswith(f"{question} them? [y/N] ")
    if not answer:
        assert "[y/N] \nhpcsimkit" in outcome.err, "a line of its own"
    assert (outcome.code, contents(tmp_path / "out") != first) == (0 if replaced else 2, replaced)


def test_trainings_and_evaluations(cli: CLI, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "t.toml").write_text(TINY)
    train = ("train", "t.toml", "-q", "--out", "agent")
    assert cli(*train) == (0, "", "")
    first = contents(tmp_path / "agent")
    assert "seed was 0, is 1; --overwrite replaces them" in cli(*train, "--seed", 1).line()
    weights = tmp_path / "agent" / "best.hpcsim"
    weights.write_bytes(b"kept")
    assert cli(*train) == (0, "", ""), "nothing is trained"
    line = "agent: this training is finished, nothing is trained; --overwrite trains it again\n"
    assert cli(*(word for word in train if word != "-q")) == (0, line, "")
    assert weights.read_bytes() == b"kept"
    assert cli(*train, "--overwrite") == (0, "", ""), "trained again"
    assert contents(tmp_path / "agent").keys() == first.keys()
    assert weights.read_bytes() == first["best.hpcsim"]

    words = ("--jobs", 20, "-p", "fcfs", "-q", "--out", "judged", "--sequences")
    evaluate = ("evaluate", "agent/best.hpcsim", *words, 2)
    assert cli(*evaluate) == cli(*evaluate) == (0, "", "")
    assert "sequences was 2, is 3; --overwrite replaces" in cli(*evaluate[:-1], 3).line()
    compare = (
        "compare",
        "--jobs",
        20,
        "-p",
        "fcfs+agent:agent/best.hpcsim",
        "-q",
        "--no-report",
        "--out",
        "c",
    )
    assert cli(*compare) == cli(*compare) == (0, "", "")
    assert cli(*train, "--seed", 1, "--overwrite") == (0, "", "")
    assert "models was best.hpcsim (" in cli(*compare).line(), "another agent of the same name"
    assert contents(tmp_path / "agent").keys() == first.keys()
    assert "model was best.hpcsim (" in cli(*evaluate).line(), "another agent of the same name"
    assert cli(*evaluate, "--overwrite") == (0, "", "")
