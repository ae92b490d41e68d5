"""The command line as a user has it: in this process where that is enough, else in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hpcsimkit.reproductions import rivals
from hpcsimkit.run import main
from tests.forking import Forked
from tests.waiting import PATIENCE


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    def line(self) -> str:
        """What went wrong: exactly one line on standard error, with the code for wrong input."""
        assert self.code == 2, self
        return self.only_line()

    def only_line(self) -> str:
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("hpcsimkit: ")
        return lines[0].removeprefix("hpcsimkit: ")


CLI = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def drawn_where_told(request: pytest.FixtureRequest) -> None:
    """Pictures are blank but for tests with the mark `pictures`."""
    if not request.node.get_closest_marker("pictures"):
        request.getfixturevalue("blank_pictures")


@pytest.fixture(scope="session")
def loaded_torch() -> None:
    """Whatever PyTorch loads for its first optimiser: here once, instead of in each process of a training."""
    import torch

    torch.optim.Adam([torch.zeros(1, requires_grad=True)])


@pytest.fixture
def few_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of the kit's heuristics beside the agents of a reproduction, instead of fifteen."""
    for name in {*rivals.RULES} - {"FCFS/EASY", "SJF/EASY", "SAF/EASY"}:
        monkeypatch.delitem(rivals.RULES, name)  # type: ignore[arg-type]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CLI:
    """Run a command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main(list(map(str, arguments)))
        out, err = capsys.readouterr()
        assert isinstance(leaving.value.code, int)
        return Outcome(leaving.value.code, out, err)

    return run


@pytest.fixture
def command(root: Path) -> list[str]:
    """The beginning of every command line."""
    return [sys.executable, "-m", "hpcsimkit.run"]


@pytest.fixture
def environment(root: Path) -> dict[str, str]:
    """The caller's, but output is buffered, as it is by default."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**kept, "PYTHONPATH": str(root)}


@pytest.fixture
def shell(tmp_path: Path, command: list[str], environment: dict[str, str]) -> CLI:
    """Run a command line in a process of its own, in an empty folder."""

    def run(*arguments: object, **options: object) -> Outcome:
        done = subprocess.run(
            [*command, *map(str, arguments)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE, **options,
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


Start = Callable[..., Forked]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a command line in a copy of this process, to be killed or interrupted; `before` is called there first."""
    if not hasattr(os, "fork"):
        pytest.skip("copies of a process need fork")

    def begin(*arguments: object, before: Callable[[], None] = lambda: None) -> Forked:
        def work() -> None:
            before()
            main(list(map(str, arguments)))

        return Forked(work, tmp_path)

    return begin


@pytest.fixture
def apart(start: Start) -> CLI:
    """Run a command line in a copy of this process: what it imports is forgotten."""

    def run(*arguments: object) -> Outcome:
        process = start(*arguments)
        out, err = process.communicate()
        assert process.returncode is not None
        return Outcome(process.returncode, out, err)

    return run


ROWS = {  # job: submit, run, nodes, requested
    1: (100, 50, 4, 60),
    2: (109, 50, 8, 60),
    3: (110, 20, 2, 100),
    4: (111, 10, 2, 30),
    5: (112, 5, 9, 30),
}
"""On 8 nodes: job 5 is larger than the machine."""


def swf_row(job: int, submit: int, run: int, nodes: int, requested: int) -> str:
    return f"{job} {submit} -1 {run} {nodes} -1 -1 {nodes} {requested}" + " -1" * 9


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of five jobs whose schedules can be worked out by hand."""
    path = tmp_path / "tiny.swf"
    rows = [swf_row(job, *row) for job, row in ROWS.items()]
    path.write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    return path
