"""Every command with a results folder, killed at its file operations, on a full disk, and twice at a time.

The commands are those of the command line itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import typer

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.run import app, main
from tests.experiments.learn.test_learn import SMALL
from tests.kill_points import Kill, Program, check, content, differences, end, run, start

pytestmark = pytest.mark.skipif(not hasattr(sys, "addaudithook") or sys.platform == "win32", reason="forks")

ROWS = [(1, 0, 0, 50, 4), (2, 5, 45, 100, 8), (3, 12, 150, 20, 1), (4, 15, 835, 20, 7)]
LOG = "; MaxProcs: 8\n" + "".join(
    f"{job} {submit} {wait} {run_time} {nodes} -1 -1 {nodes} 100 -1 1 {job % 2}{' -1' * 6}\n"
    for job, submit, wait, run_time, nodes in ROWS
)

TRAINING = """
generate = { nodes = 16, jobs = 120, load = 1.1 }
trainer = { total_timesteps = 16, episodes = 2, n_steps = 8, hidden = [4], n_epochs = 1 }
episodes = { jobs = 12 }
validation = { windows = 1 }
"""

SHORTEST = {"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)}


class Words(NamedTuple):
    """A command line without ``--out``, words that change its settings, and how to go on.

    Of a `long` one, not all operations are tested.
    """

    words: tuple[str, ...]
    other: tuple[str, ...]
    resume: tuple[str, ...] = ()
    long: bool = False


COMMANDS = {
    "compare": Words(
        ("compare", "a.swf", "-p", "fcfs", "-p", "sjf+easy", "--no-report"), ("--seed", "1"), ("--resume",)
    ),
    "sweep": Words(("sweep", "a.swf", "-p", "fcfs", "--axis", "seed=0,1", "--no-report"), ("--jobs", "3")),
    "train": Words(("train", "t.toml"), ("--seed", "1"), ("--resume",), long=True),
    "evaluate": Words(
        ("evaluate", "best.hpcsim", "a.swf", "-p", "fcfs", "--sequences", "2", "--jobs", "3"),
        ("--seed", "1"),
        ("--resume",),
    ),
    "learn": Words(("learn", "small.swf", "--seconds", "300"), ("--seed", "1"), long=True),
    "validate": Words(("validate", "a.swf"), ("-p", "ljf")),
    "predict": Words(("predict", "a.swf", "--predictor", "last-two"), ("-p", "ljf")),
    "what-if": Words(("what-if", "a.swf", "--set", "nodes+=1"), ("-p", "ljf")),
    "advise": Words(("advise", "a.swf", "--at", "12", "--futures", "3", "--calibration", "2"), ("-p", "ljf")),
    "explain": Words(("explain", "sjf+hold-unfit", "a.swf"), ("--seed", "1")),
}
"""Arguments of the commands with a results folder."""

QUICK = ("sweep", "what-if")
"""Commands that are tested by default; the others are slow."""

APART = {"reproduce": "its tasks take minutes: tests/test_killed.py runs one with tasks of its own"}
"""Commands that are not in `COMMANDS`, with the reason."""


def commands_with_a_folder() -> Iterator[str]:
    """Names of the commands with an option ``--out FOLDER``."""
    program = typer.main.get_command(app)
    for name, command in program.commands.items():  # type: ignore[attr-defined]
        for each in getattr(command, "params", ()):
            if "--out" in each.opts and each.metavar == "FOLDER":
                yield name


def test_all_commands_are_here() -> None:
    assert {*commands_with_a_folder()} == {*COMMANDS, *APART}


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in COMMANDS]
)
def words(request: pytest.FixtureRequest) -> Words:
    if request.param == "train":
        pytest.importorskip("torch")
    return COMMANDS[request.param]


def prepare(folder: Path) -> None:
    (folder / "a.swf").write_text(LOG)
    (folder / "t.toml").write_text(TRAINING)
    about = {"training": {"policy": "random+easy", "metric": "mean_wait_time"}}
    Agent(QueueWindow(8), Slots(8), SlotScores(SHORTEST), "order", about=about).save(folder / "best.hpcsim")
    lines = [
        f"{job.id} {job.submit_time} -1 {job.run_time} {job.nodes} -1 -1 {job.nodes} {job.requested_time} "
        f"-1 1 {job.user}{' -1' * 6}\n"
        for job in SMALL.jobs
    ]
    (folder / "small.swf").write_text("; MaxProcs: 8\n" + "".join(lines))


def program(words: Words, *more: str) -> Program:
    def begin(resume: bool) -> int:
        with pytest.raises(SystemExit) as leaving:
            main([*words.words, *more, "-q", "--out", "out", *(words.resume if resume else ())])
        return int(str(leaving.value.code))

    return begin


@pytest.mark.parametrize("every", [30, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_it_goes_on(words: Words, every: int, tmp_path: Path) -> None:
    assert check(program(words), tmp_path, prepare, every=every if not words.long else 40, last=2) > 2


@pytest.mark.slow
def test_killed_while_it_replaces_other_results(words: Words, tmp_path: Path) -> None:
    """Half of the files are of other settings: the record never tells of those."""

    def with_others(folder: Path) -> None:
        prepare(folder)
        code, _, said = run(program(words, *words.other), folder)
        assert code == 0, said

    check(program(words, "--overwrite") if words.words[0] != "sweep" else program(words),
          tmp_path, with_others, every=1 if not words.long else 40)  # fmt: skip


def straight(words: Words, folder: Path) -> tuple[dict[str, object], list[str]]:
    """The files of a run without interruption, and its operations; libraries are loaded in this process."""
    folder.mkdir()
    prepare(folder)
    with contextlib.chdir(folder):
        assert program(words)(False) == 0
    shutil.rmtree(folder / "out")
    code, operations, said = run(program(words), folder)
    assert code == 0, said
    expected = content(folder)
    shutil.rmtree(folder / "out")
    return expected, operations


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(words: Words, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    expected, operations = straight(words, folder)
    opened = [number for number, each in enumerate(operations, start=1) if each.startswith("open ")]
    for number in {opened[0], opened[len(opened) // 2], opened[-1]}:
        code, _, said = run(program(words), folder, kill=Kill(number, full=True))
        at = f"operation {number}, {operations[number - 1]}: {said}"
        assert code == 2, at
        assert re.fullmatch(
            r"hpcsimkit: (\S+: )?\S+: cannot be written: No space left on device.*\n", said
        ), at
        code, _, said = run(program(words), folder, resume=True)
        assert code == 0, said
        assert differences(expected, content(folder)) == [], at
        shutil.rmtree(folder / "out")


def test_two_at_a_time(words: Words, tmp_path: Path) -> None:
    """The first is stopped while it holds the folder; the second, with other settings, is refused."""
    folder = tmp_path / "here"
    expected, operations = straight(words, folder)
    locks = [number for number, each in enumerate(operations, start=1) if each.endswith(".lock")]
    first = next(number for number in range(locks[0], len(operations) + 1) if number not in locks)
    process = start(program(words), folder, "-first", kill=Kill(first, stops=True))
    os.waitpid(process, os.WUNTRACED)
    try:
        code, _, said = run(program(words, *words.other), folder)
    finally:
        os.kill(process, signal.SIGCONT)
        assert end(process, folder, "-first")[0] == 0
    assert code == 2, said
    assert re.fullmatch(r"hpcsimkit: \S+: another run is writing .*\(process \d+ on .*\)\n", said)
    assert differences(expected, content(folder)) == []


def test_equal_settings_make_equal_folders(words: Words, tmp_path: Path) -> None:
    """All files but those of times and machines, in folders of other names, at other times."""
    prepare(tmp_path)
    found: list[dict[str, object]] = []
    with contextlib.chdir(tmp_path):
        for name in ("first", "second"):
            with pytest.raises(SystemExit) as leaving:
                main([*words.words, "-q", "--out", name])
            assert leaving.value.code == 0
            found.append(content(tmp_path / name))
            assert list((tmp_path / name).glob("*.run.json"))
    assert differences(*found) == []


RECORDS = {
    name: f"{stem}.json"
    for name, stem in {
        "sweep": "provenance",
        "learn": "provenance",
        "validate": "validation",
        "predict": "predictions",
        "what-if": "what-if",
        "advise": "advice",
        "explain": "explanation",
    }.items()
}
"""Records of the commands that write in place."""


def test_files_are_on_the_disk_before_their_record(
    words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves a record of whole files, or none."""
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    synced, seen = set[int](), list[str]()
    fsync, replace, rename = os.fsync, Path.replace, Path.rename
    record, out = RECORDS.get(words.words[0]), tmp_path / "out"

    def remembered(number: int) -> None:
        fsync(number)
        synced.add(os.fstat(number).st_ino)

    def missing(folder: Path) -> set[str]:
        files = (file for file in [folder, *folder.rglob("*")] if not file.name.startswith("."))
        return {str(file) for file in files if file.stat().st_ino not in synced}

    def replaced(self: Path, target: Path) -> Path:
        if target.name == record and b'"unfinished"' not in self.read_bytes():
            seen.append(target.name)
            assert {name for name in missing(target.parent) if target.parent == Path(name).parent} <= {
                str(target)
            }
        elif target.name == "outcome.json" and target.parent.absolute() != out:
            assert {Path(name).name for name in missing(target.parent)} <= {"inputs.json", target.name}
            assert self.stat().st_ino in synced
        return replace(self, target)

    def renamed(self: Path, target: Path) -> Path:
        if self.name == "out.partial":
            seen.append(self.name)
            assert missing(self) == set()
        return rename(self, target)

    for owner, name, function in (
        (os, "fsync", remembered),
        (Path, "replace", replaced),
        (Path, "rename", renamed),
    ):
        monkeypatch.setattr(owner, name, function)
    assert program(words)(False) == 0
    assert seen == [record or "out.partial"]
    assert out.stat().st_ino in synced
