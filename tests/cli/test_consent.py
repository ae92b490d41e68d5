"""Consent on the command line: one option of all commands, and what is remembered of it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from hpcsimkit.run import app
from tests.cli.conftest import CLI

MINE = "from hpcsimkit.policies import SJF as Mine\n"
WITHOUT_CODE = {"policies", "parts", "plot", "generate lublin", "generate mimic"}
"""Commands that read no file which may name code."""


def commands() -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Yield all commands by name."""
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        yield from (
            ((f"{name} {each}", found) for each, found in inner.items()) if inner else [(name, command)]
        )


def test_all_commands_that_read_names_of_code_have_one_option_for_consent() -> None:
    having = {
        name for name, command in commands() for option in command.params if "--allow-code" in option.opts
    }
    assert having == {name for name, _ in commands()} - WITHOUT_CODE
    for name, command in commands():
        options = {text for option in command.params for text in [*option.opts, *option.secondary_opts]}
        assert ("--remember-code" in options, "--forget-code" in options) == (name in having,) * 2


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which consent is remembered."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "mine.py").write_text(MINE)
    (tmp_path / "theirs" / "e.toml").write_text(
        f'jobs = 9\npolicies = ["mine:Mine"]\nimport_from = "{tmp_path / "theirs"}"\n'
    )
    return tmp_path / "config" / "hpcsimkit" / "allowed-code.json"


RUN = ("compare", "theirs/e.toml", "--no-report", "--overwrite", "--out", "out")


def test_consent_is_not_remembered_unless_asked_for(cli: CLI, memory: Path) -> None:
    assert cli(*RUN, "--allow-code", "mine", "-q").code == 0
    assert not memory.exists()
    assert (
        cli(*RUN)
        .line()
        .endswith("--allow-code mine (looked for in " + str(memory.parents[2] / "theirs") + " too)")
    )


def test_consent_is_remembered_for_a_folder_and_forgotten(cli: CLI, memory: Path, tmp_path: Path) -> None:
    assert cli(*RUN, "--allow-code", "mine", "--remember-code", "-q").code == 0
    code = str(tmp_path / "theirs" / "mine.py")
    assert json.loads(memory.read_text()) == {str(tmp_path / "theirs"): [code]}
    if os.name == "posix":
        assert stat.S_IMODE(memory.stat().st_mode) == 0o600
        assert stat.S_IMODE(memory.parent.stat().st_mode) == 0o700
    again = cli(*RUN)
    assert again.code == 0
    assert again.only_line() == (
        f"consent to {code} is remembered for {tmp_path / 'theirs'}; --forget-code forgets it"
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "e.toml").write_bytes((tmp_path / "theirs" / "e.toml").read_bytes())
    assert "without consent" in cli("compare", "other/e.toml", "--out", "out2").line()
    assert "without consent" in cli(*RUN, "--forget-code").line()
    assert json.loads(memory.read_text()) == {}
    assert sorted(path.name for path in (tmp_path / "theirs").iterdir() if path.suffix) == [
        "e.toml",
        "mine.py",
    ]


def test_what_cannot_be_remembered_is_one_line(cli: CLI, memory: Path) -> None:
    assert cli(*RUN, "--remember-code").line() == "--remember-code needs code to remember: --allow-code NAME"
    assert "need a file that names code" in cli("compare", "--jobs", "9", "--forget-code").line()
    memory.parent.mkdir(parents=True)
    memory.write_text("[1")
    assert cli(*RUN).line().startswith(f"{memory}: names of code by folder are needed")
    memory.write_text('{"x": [1]}')
    assert cli(*RUN).line().startswith(f"{memory}: names of code by folder are needed")
    memory.chmod(0o666)
    assert cli(*RUN).line() == f"{memory}: a file that only you may write is needed"


def test_code_named_in_a_value_of_the_command_line_is_the_users_own(
    cli: CLI, memory: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(MINE)
    flags = ("--set", "policy=own.py:Mine+easy", "--out", "what-if", "-q")
    assert cli("what-if", *flags).code == 0
    flags = ("--axis", "placement=first-fit,place.py:Place", "--out", "sweep", "-q")
    (tmp_path / "place.py").write_text("from hpcsimkit.policies import BestFit as Place\n")
    (tmp_path / "m.csv").write_text("MachineName,TotalMemory,TotalCPUs,TotalGPUs\na,1,4,0\nb,1,4,0\n")
    (tmp_path / "s.toml").write_text('policies = ["fcfs"]\nmachines = "m.csv"\njobs = 9\n')
    assert cli("sweep", "s.toml", *flags).code == 0


# --- paths ---------------------------------------------------------------------------------------------------


def path_arguments() -> Iterator[tuple[str, ...]]:
    """Yield a command for each of its arguments and options that may be a path, with that path left open."""
    needed = {
        "generate lublin": ("--out", "x.swf"),
        "generate mimic": ("--out", "x.swf"),
        "what-if": ("--set", "nodes+=1"),
    }
    for name, command in commands():
        for option in command.params:
            if getattr(option, "metavar", "") in (
                "LOG",
                "FILE",
                "FOLDER",
                "MODEL",
                "RESULTS",
                "INSPECTOR",
                "SYSTEM",
            ):
                given = needed.get(name, ()) if option.name != "out" else needed.get(name, ())[2:]
                yield (
                    name,
                    *given,
                    *([max(option.opts, key=len)] if option.param_type_name == "option" else []),
                )


@pytest.mark.parametrize("arguments", sorted(set(path_arguments())), ids=" ".join)
def test_a_path_longer_than_a_name_is_one_line(cli: CLI, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """D11: every argument of every command that is a path."""
    name, *others = arguments
    (tmp_path / "log.swf").write_text(
        "".join(f"{n} {n} -1 9 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n" for n in range(1, 9))
    )
    named = {
        "evaluate": "no.hpcsim",
        "check": "sjf",
        "explain": "sjf+hold-unfit",
        "reproduce": "rlscheduler",
        "plot": ".",
    }
    first = [] if not others or others[-1] in ("x.swf", "nodes+=1") else [named.get(name, "log.swf")]
    if name.startswith("generate lublin"):
        first = []
    line = cli(*name.split(), *first, *others, "x" * 300).line()
    assert "defect" not in line and "Traceback" not in line
