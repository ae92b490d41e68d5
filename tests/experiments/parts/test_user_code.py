"""Code of the user: which modules are found, which are not, and in which processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.engine import user_code
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.trust import CALLER, Trust

SIBLING = "from helper import PATIENCE\nfrom hpcsimkit.policies import SJF\n\n\nclass Mine(SJF):\n    patience = PATIENCE\n"


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """Nothing of other tests is known, and nothing of these afterwards."""
    user_code.forget()
    yield
    user_code.forget()


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module that imports one beside it; the current folder is another one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "own.py").write_text(SIBLING)
    (folder / "helper.py").write_text("PATIENCE = 7\nopen('executed', 'w').close()\n")
    return folder


def test_a_module_beside_consented_code_needs_consent_too(theirs: Path) -> None:
    for code in ("own", "own.py"):
        with pytest.raises(UsageError) as error:
            Trust((code,)).imported(f"{code}:Mine", str(theirs))
        assert str(error.value) == (
            f"'{code}' imports 'helper' from {theirs / 'helper.py'}, to which there is no consent: "
            "--allow-code helper"
        )
        assert not Path("executed").exists()


@pytest.mark.parametrize("allowed", [("own", "helper"), ("../theirs",), ("own", "../theirs/helper.py")])
def test_what_consent_to_a_module_beside_it_may_name(theirs: Path, allowed: tuple[str, ...]) -> None:
    before = list(sys.path)
    assert Trust(allowed).imported("own:Mine", str(theirs)).patience == 7
    assert sys.path == before


def test_a_file_of_a_consented_folder(theirs: Path) -> None:
    assert Trust((str(theirs),)).imported(f"{theirs}/own.py:Mine").patience == 7


def test_code_of_the_caller_imports_what_is_beside_it(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(theirs)
    assert CALLER.imported("own:Mine").patience == 7


def test_modules_of_a_folder_do_not_replace_libraries(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (theirs / "helper.py").unlink()
    (theirs / "own.py").write_text("import colorsys\nwhere = colorsys.__file__\n")
    (theirs / "colorsys.py").write_text("")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert str(theirs) not in CALLER.imported("own:where", str(theirs))


def test_packages_with_and_without_an_init_file(theirs: Path) -> None:
    for package in ("whole", "plain"):
        (theirs / package).mkdir()
        (theirs / package / "part.py").write_text("from helper import PATIENCE\n")
    (theirs / "whole" / "__init__.py").write_text("from .part import PATIENCE\n")
    trust = Trust((str(theirs),))
    assert trust.imported("whole:PATIENCE", str(theirs)) == 7
    assert trust.imported("plain.part:PATIENCE", str(theirs)) == 7


@pytest.mark.parametrize("code", ["own", "own.py"])
def test_other_processes_find_what_the_objects_are_made_of(theirs: Path, code: str, root: Path) -> None:
    """A pickle of an object is read in a process that has never heard of its module."""
    made = Trust((str(theirs),)).imported(f"{code}:Mine", str(theirs))()
    Path("pickled").write_bytes(pickle.dumps((user_code.Consents(), made)))
    read = "import pickle, sys; print(pickle.load(open('pickled', 'rb'))[1].patience, sys.path)"
    done = subprocess.run(
        [sys.executable, "-c", read],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("7 "), done.stderr
    assert str(theirs) not in done.stdout


NEIGHBOURS = ("bottleneck", "numexpr", "pynvml")
"""Modules that pandas and PyTorch import if they find them."""


def test_consent_to_a_module_runs_no_neighbour(theirs: Path, root: Path) -> None:
    """D9: the libraries of the kit look for optional modules while the file's folder is known."""
    for name in NEIGHBOURS:
        (theirs / f"{name}.py").write_text(f"open('executed-{name}', 'w').close()\n__version__ = '99'\n")
    (theirs / "own.py").write_text("from hpcsimkit.policies import SJF as Mine\n")
    Path("e.toml").write_text('jobs = 20\npolicies = ["fcfs", "own:Mine"]\nimport_from = "../theirs"\n')
    script = (
        "from hpcsimkit.run import main\n"
        "try:\n    main(['compare', 'e.toml', '--allow-code', 'own', '-q', '--no-report', '--out', 'out'])\n"
        "except SystemExit as leaving:\n    assert leaving.code == 0\n"
        "import pandas\nfrom importlib.util import find_spec\n"
        f"specs = map(find_spec, {NEIGHBOURS})\n"
        "print([spec.name for spec in specs if spec is not None and 'theirs' in spec.origin])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
    assert not list(Path().glob("executed*"))


def test_files_and_folders_of_long_names_are_not_there() -> None:
    long: Any = "x" * 5000
    assert user_code.file_of(long, ["."]) is None
    assert not Trust((long,)).allows("mine", long)
