"""Names of code in every leaf of every file that the kit reads: nothing runs, and nothing is written outside the results.

The formats are those of `hpcsimkit.io.formats`, without which no file is read (tests/test_architecture.py); the commands
are those of the command line itself. What a line reads is not believed but heard.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import typer

from hpcsimkit.io.formats import Format
from hpcsimkit.run import app
from tests.audit.lines import LINES, READERS
from tests.audit.trying import wrong


@pytest.fixture(scope="module")
def listener() -> Iterator[Executor]:
    """A process of its own: hundreds of copies of one that has run many tests would take minutes."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        yield executor


def commands(group: Any = None, before: str = "") -> Iterator[str]:
    """Yield the names of all commands of the command line."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        yield from commands(command, f"{before}{name} ") if hasattr(command, "commands") else [before + name]


def test_every_command_is_tried() -> None:
    assert set(LINES) == set(commands()), "tests/audit/lines.py needs lines of each command"
    for name, lines in LINES.items():
        assert all(f"{each.words} ".startswith(f"{name} ") for each in lines)


def test_every_format_is_tried() -> None:
    tried = {
        form
        for lines in (*LINES.values(), *READERS.values())
        for each in lines
        if not each.slow
        for form in each.reads
    }
    assert tried == set(Format), "tests/audit/lines.py needs lines that read files of each format"


@pytest.mark.parametrize("name", [*LINES, *READERS])
def test_names_of_code_in_files_run_nothing(name: str, tmp_path: Path, listener: Executor) -> None:
    for number, each in enumerate({**LINES, **READERS}[name]):
        if not each.slow:
            found = listener.submit(wrong, name, number, tmp_path / str(number), quick=True).result()
            assert found is None, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, lines in {**LINES, **READERS}.items() for number in range(len(lines))],
)
def test_names_of_code_in_every_leaf_run_nothing(
    name: str, number: int, tmp_path: Path, listener: Executor
) -> None:
    found = listener.submit(wrong, name, number, tmp_path, quick=False).result()
    assert found is None, found
